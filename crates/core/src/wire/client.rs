//! Which program is calling, as far as it matters for a refusal: at which status it gives up and shows why.
//!
//! Most clients raise an error at any 4xx once `x-should-retry: false` is there. A few do not read that header, or
//! take some statuses for an invitation to try again. The table here was measured with the programs themselves; the
//! client suites hold it.

use super::refusal::Reason;

/// A client with habits of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Client {
    /// Claude Code, and what is built on it. At 400 and 422 it sends the request again with fewer features, a 403 it
    /// takes for a failed login.
    ClaudeCode,
    /// Codex. It tries again at everything but 400, and of a 429 it does not show the message.
    Codex,
    /// Gemini CLI. It tries again at 429.
    GeminiCli,
    /// Vercel's `ai`. It tries again at 429, whatever the headers say.
    VercelAi,
    /// Everyone else: the SDKs of OpenAI, Anthropic and Google, and the frameworks upon them, give up at once.
    #[default]
    Other,
}

impl Client {
    /// Tells a client by the headers `user-agent` and `originator`.
    #[must_use]
    pub fn of(user_agent: Option<&str>, originator: Option<&str>) -> Client {
        if originator.is_some_and(|name| name.starts_with("codex")) {
            return Client::Codex;
        }
        let agent = user_agent.unwrap_or_default().trim_start();
        let names = |product: &str| agent.split_whitespace().any(|word| word.starts_with(product));
        if agent.starts_with("claude-cli/") {
            Client::ClaudeCode
        } else if agent.starts_with("codex") {
            Client::Codex
        } else if agent.starts_with("GeminiCLI") {
            Client::GeminiCli
        } else if names("ai/") || names("ai-sdk-") || names("ai-sdk/") {
            Client::VercelAi
        } else {
            Client::Other
        }
    }

    /// The status at which this client sends one request and shows the reason; None where `usual` is one.
    #[must_use]
    pub fn prefers(self, reason: Reason, usual: u16) -> Option<u16> {
        match self {
            Client::ClaudeCode if matches!(usual, 401 | 402) => None,
            Client::ClaudeCode if reason == Reason::BudgetExceeded => Some(402),
            Client::ClaudeCode => Some(451),
            Client::Codex => Some(400),
            Client::GeminiCli => Some(400),
            Client::VercelAi => matches!(usual, 408 | 409 | 429 | 500..).then_some(403),
            Client::Other => None,
        }
    }
}

/// The status of a stop for a client, as nobody configured another.
#[must_use]
pub fn adapted_status(client: Client, reason: Reason) -> u16 {
    let usual = reason.error_status();
    client.prefers(reason, usual).unwrap_or(usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_told_by_what_they_send() {
        let cases = [
            (Some("claude-cli/2.1.325 (external, sdk-cli)"), None, Client::ClaudeCode),
            (Some("codex_exec/0.166.0 (Debian 12.0.0; x86_64) unknown"), Some("codex_exec"), Client::Codex),
            (Some("codex_cli_rs/0.50.0"), None, Client::Codex),
            (Some("my-wrapper/1"), Some("codex_vscode"), Client::Codex),
            (Some("GeminiCLI-tui/0.61.0/gemini-2.5-flash (linux; x64; terminal)"), None, Client::GeminiCli),
            (Some("GeminiCLI/0.61.0/gemini-2.5-pro"), None, Client::GeminiCli),
            (Some("ai/7.0.169 ai-sdk/provider-utils/5.0.1 runtime/node.js/v24"), None, Client::VercelAi),
            (Some("ai-sdk-anthropic/4.0.102 runtime/node.js/v24"), None, Client::VercelAi),
            (Some("OpenAI/Python 3.49.0"), None, Client::Other),
            (Some("google-genai-sdk/3.1.0 gl-python/3.11.7"), None, Client::Other),
            (Some("openai/1.0"), None, Client::Other),
            (Some("not-claude-cli/1"), None, Client::Other),
            (None, None, Client::Other),
        ];
        for (user_agent, originator, expected) in cases {
            assert_eq!(Client::of(user_agent, originator), expected, "{user_agent:?} {originator:?}");
        }
    }

    #[test]
    fn no_stop_meets_a_client_with_a_status_that_it_repeats() {
        for reason in Reason::ALL.into_iter().filter(|reason| reason.is_policy()) {
            let status = |client| adapted_status(client, reason);
            assert!(matches!(status(Client::ClaudeCode), 401 | 402 | 451), "{reason:?}");
            assert_eq!(status(Client::Codex), 400, "{reason:?}");
            assert_eq!(status(Client::GeminiCli), 400, "{reason:?}");
            assert!(matches!(status(Client::VercelAi), 401..=403), "{reason:?}");
            assert_eq!(status(Client::Other), reason.error_status(), "{reason:?}");
        }
        assert_eq!(adapted_status(Client::ClaudeCode, Reason::BudgetExceeded), 402);
        assert_eq!(adapted_status(Client::ClaudeCode, Reason::LoopDetected), 451);
        assert_eq!(adapted_status(Client::ClaudeCode, Reason::AuthenticationError), 401);
        assert_eq!(adapted_status(Client::VercelAi, Reason::LoopDetected), 403);
    }
}
