//! How an account is written: `HOLDER WINDOW`, such as `agent:bot daily`, `key:key-abc monthly`, `everything monthly` or
//! `run:bot/task run`. One that is only watched has ` shadow` behind it.

use std::fmt;
use std::str::FromStr;

use super::{AccountId, Holder, Window};
use crate::id::{AgentName, BadName, RunId};
use crate::limits::KILL_VALUE_BYTES;

/// A text that names no account, with what is wrong about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAccount {
    /// Not one of the forms.
    #[error(
        "an account is `everything WINDOW`, `agent:NAME WINDOW` or `key:ID WINDOW`, with `daily` or `monthly` for WINDOW, \
         or `run:AGENT/ID run`"
    )]
    Form,
    /// The window is missing, or is none.
    #[error("`{0}` does not end in a window: write `daily`, `monthly` or, for a run, `run` behind it")]
    NoWindow(String),
    /// A window that this holder does not have.
    #[error("{holder} has no {window} budget; a run has a `run` budget, everybody else `daily` and `monthly` ones")]
    WrongWindow {
        /// Whose.
        holder: String,
        /// Which window.
        window: &'static str,
    },
    /// A name in it cannot be one.
    #[error(transparent)]
    Name(#[from] BadName),
    /// A key id that cannot be one.
    #[error("a key id has 1 to {KILL_VALUE_BYTES} printable characters and no spaces")]
    Key,
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.holder, self.window.as_str())?;
        if self.is_shadow { f.write_str(" shadow") } else { Ok(()) }
    }
}

impl FromStr for AccountId {
    type Err = BadAccount;

    fn from_str(text: &str) -> Result<AccountId, BadAccount> {
        // From the end: a run's id may hold spaces.
        let (rest, is_shadow) = text.strip_suffix(" shadow").map_or((text, false), |rest| (rest, true));
        let (holder, word) = rest.rsplit_once(' ').unwrap_or((rest, ""));
        let window = [Window::Run, Window::Day, Window::Month].into_iter().find(|window| window.as_str() == word);
        let Some(window) = window else {
            // A text that is nothing at all is told about the whole form.
            holder_of(rest)?;
            return Err(BadAccount::NoWindow(rest.chars().take(KILL_VALUE_BYTES).collect()));
        };
        let holder = holder_of(holder)?;
        if matches!(holder, Holder::Run(..)) != (window == Window::Run) {
            return Err(BadAccount::WrongWindow { holder: holder.to_string(), window: window.as_str() });
        }
        Ok(AccountId { holder, window, is_shadow })
    }
}

fn holder_of(text: &str) -> Result<Holder, BadAccount> {
    if text == "everything" {
        return Ok(Holder::Everything);
    }
    match text.split_once(':') {
        Some(("agent", name)) => Ok(Holder::Agent(AgentName::parse(name)?)),
        Some(("key", id)) => {
            let is_id = (1..=KILL_VALUE_BYTES).contains(&id.len())
                && !id.contains(|c: char| c.is_control() || c.is_whitespace());
            if is_id { Ok(Holder::Key(id.into())) } else { Err(BadAccount::Key) }
        }
        Some(("run", rest)) => {
            let (agent, run) = rest.split_once('/').ok_or(BadAccount::Form)?;
            Ok(Holder::Run(AgentName::parse(agent)?, RunId::parse(run)?))
        }
        _ => Err(BadAccount::Form),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> BadAccount {
        text.parse::<AccountId>().unwrap_err()
    }

    #[test]
    fn an_account_comes_back_from_its_text() {
        for text in [
            "everything monthly",
            "agent:bot daily",
            "agent:team:bot@x monthly shadow",
            "key:key-abcdefgh daily",
            "run:bot/task run",
            "run:bot/a/b daily run",
            "run:bot/the run shadow run",
            "run:bot/x run shadow",
        ] {
            let account: AccountId = text.parse().unwrap();
            assert_eq!(account.to_string(), text);
        }
        let tricky: AccountId = "run:bot/a/b daily run".parse().unwrap();
        assert_eq!(tricky.holder, holder_of("run:bot/a/b daily").unwrap());
        assert!("run:bot/x run shadow".parse::<AccountId>().unwrap().is_shadow);
    }

    #[test]
    fn other_texts_are_refused_with_words() {
        for text in ["", "daily", "all daily", "tool:x daily", "run:bot run"] {
            assert_eq!(error(text), BadAccount::Form, "{text}");
        }
        for text in ["agent:bot", "everything", "run:bot/x", "key:k1", "agent:bot shadow"] {
            assert!(matches!(error(text), BadAccount::NoWindow(_)), "{text}: {:?}", error(text));
        }
        assert!(matches!(error("agent:b t daily"), BadAccount::Name(_)));
        assert_eq!(error("key: daily"), BadAccount::Key);
        assert_eq!(error("key:a b daily"), BadAccount::Key);
        let told = error("agent:bot run").to_string();
        assert!(told.starts_with("agent:bot has no run budget"), "{told}");
        assert!(matches!(error("run:bot/x daily"), BadAccount::WrongWindow { .. }));
    }

    #[test]
    fn a_key_id_is_bounded() {
        let key = |bytes: usize| format!("key:{} daily", "k".repeat(bytes)).parse::<AccountId>();
        assert!(key(KILL_VALUE_BYTES).is_ok());
        assert_eq!(key(KILL_VALUE_BYTES + 1), Err(BadAccount::Key));
    }
}
