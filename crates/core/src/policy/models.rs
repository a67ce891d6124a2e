//! Which models an agent may ask.
//!
//! A model has several spellings: routers put a provider before its name, Gemini a `models/`. All that mean one model
//! count as one. Endings do not: `gpt-4o-mini`, `gpt-4o-2024-08-06` and `gpt-4o:online` are other models than `gpt-4o`.

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memmem;

use crate::limits::{MODEL_NAME_BYTES, MODEL_PATTERNS};
use crate::loops::Mode;
use crate::price;
use crate::wire::{Reason, Refusal};

/// The models of an agent. Without any pattern it may ask all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Models {
    /// Whether the list is kept.
    pub mode: Mode,
    /// Names in which `*` stands for anything. Shared by all agents with the same list.
    pub allow: Arc<[String]>,
}

impl Models {
    /// Why the list cannot be used.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        if self.allow.len() > MODEL_PATTERNS {
            return Some(format!("more than {MODEL_PATTERNS} patterns"));
        }
        let is_bad = |text: &&String| {
            text.is_empty() || text.len() > MODEL_NAME_BYTES || text.contains(|c: char| c.is_control() || c == ' ')
        };
        let bad = self.allow.iter().find(is_bad)?;
        let shown: String = bad.chars().take(80).collect();
        Some(format!(
            "\"{shown}\" is not the name of a model; expected 1 to {MODEL_NAME_BYTES} characters without spaces, in which \
             * stands for anything"
        ))
    }

    /// Whether a model is on the list.
    #[must_use]
    pub fn allows(&self, model: &str) -> bool {
        let is_listed = |name: &str| self.allow.iter().any(|pattern| matches(pattern, name));
        if price::is_plain_name(model) {
            return is_listed(model);
        }
        price::names_without_prefixes(model).is_some_and(|names| names.iter().any(|name| is_listed(name)))
    }

    /// Stops a call to a model that is not on the list. `is_llm` is false for requests that ask no model.
    pub(super) fn check(&self, model: Option<&str>, is_llm: bool) -> Result<(), Refusal> {
        if !is_llm || self.allow.is_empty() {
            return Ok(());
        }
        let model = model.filter(|model| !model.is_empty());
        if model.is_some_and(|model| self.allows(model)) {
            return Ok(());
        }
        let allowed = self.allow.join(", ");
        let refusal = match model {
            Some(model) => {
                let shown: String = model.chars().take(MODEL_NAME_BYTES).collect();
                let message = format!(
                    "this agent may not ask model `{shown}`; ask one of these, or add it to `models.allow`: {allowed}"
                );
                Refusal::new(Reason::ModelNotAllowed, message).with("model", shown)
            }
            // The provider would choose one.
            None => {
                let message = format!("the request names no model, and this agent may ask only: {allowed}");
                Refusal::new(Reason::ModelNotAllowed, message).with("model", serde_json::Value::Null)
            }
        };
        Err(refusal.with("allowed_models", self.allow.to_vec()))
    }
}

/// Whether a name, spelled as all are compared, fits a pattern as written. Each part between two `*` is looked for once,
/// from left to right: that is linear, and the leftmost place is always the best one.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern = spelled(pattern);
    let mut parts = pattern.split('*');
    let (first, last) = (parts.next().unwrap_or_default(), parts.next_back());
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = last else { return rest.is_empty() };
    for part in parts {
        let Some(at) = memmem::find(rest.as_bytes(), part.as_bytes()) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

/// Most patterns are written as they are compared.
fn spelled(pattern: &str) -> Cow<'_, str> {
    let is_plain = pattern.bytes().all(|byte| !byte.is_ascii_uppercase() && byte != b'.' && byte != b'@');
    if is_plain { Cow::Borrowed(pattern) } else { Cow::Owned(price::spelled_name(pattern)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(allow: &[&str]) -> Models {
        Models { mode: Mode::Enforce, allow: allow.iter().map(|&text| text.to_owned()).collect() }
    }

    #[test]
    fn a_name_is_on_the_list_as_a_whole_and_in_any_spelling() {
        for (pattern, name, is_allowed) in [
            ("gpt-4o", "gpt-4o", true),
            ("gpt-4o", "GPT-4o", true),
            ("GPT-4o", "gpt-4o", true),
            ("gpt-4o", "openai/gpt-4o", true),
            ("gpt-4o", "openrouter/openai/gpt-4o", true),
            ("gemini-2.5-pro", "models/gemini-2.5-pro", true),
            ("gemini-2.5-pro", "publishers/google/models/gemini-2.5-pro", true),
            ("claude-sonnet-4-5", "anthropic/claude-sonnet-4.5", true),
            ("claude-sonnet-4.5", "claude-sonnet-4-5", true),
            ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5-20250929", true),
            ("claude-*", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", true),
            // Not the same model.
            ("gpt-4o", "gpt-4o-mini", false),
            ("gpt-4o", "gpt-4o-2024-08-06", false),
            ("gpt-4o", "gpt-4o:online", false),
            ("gpt-4o", "ft:gpt-4o:org::id", false),
            ("gpt-4o", "xgpt-4o", false),
            ("gpt-4o", "gpt-4", false),
            ("gpt-4o", "gpt-4o ", false),
            ("gpt-4o", "gpt-4o/gpt-5", false),
            ("gpt-4o", "evil/gpt-4o", false),
            ("gpt-4o", "/gpt-4o", false),
            ("gemini-2.5-pro", "gemini-2x5-pro", false),
            // One provider only.
            ("openai/*", "openai/gpt-4o", true),
            ("openai/*", "gpt-4o", false),
            ("openai/*", "anthropic/claude-opus-4", false),
            // Stars.
            ("*", "anything", true),
            ("gpt-4o*", "gpt-4o", true),
            ("gpt-4o*", "gpt-4o-mini", true),
            ("gpt-*-mini", "gpt-4o-mini", true),
            ("gpt-*-mini", "gpt-mini", false),
            ("gpt-*mini", "gpt-mini", true),
            ("*-mini", "gpt-4o-mini-2024", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("a**a", "aa", true),
            ("*a*", "bab", true),
        ] {
            assert_eq!(models(&[pattern]).allows(name), is_allowed, "{pattern} {name}");
        }
    }

    #[test]
    fn stars_never_take_long() {
        let pattern = "*a".repeat(MODEL_NAME_BYTES / 2);
        let name = "a".repeat(MODEL_NAME_BYTES - 1) + "b";
        let list = models(&vec![pattern.as_str(); MODEL_PATTERNS]);
        let before = std::time::Instant::now();
        assert!(!list.allows(&name));
        assert!(before.elapsed().as_millis() < 500);
    }

    #[test]
    fn a_refusal_names_the_model_and_the_list() {
        let list = models(&["gpt-4o", "claude-*"]);
        assert!(list.check(Some("openai/gpt-4o"), true).is_ok());
        assert!(list.check(None, false).is_ok() && models(&[]).check(None, true).is_ok());
        let refusal = list.check(Some("gpt-4o-mini"), true).unwrap_err();
        assert_eq!(
            refusal.message,
            "this agent may not ask model `gpt-4o-mini`; ask one of these, or add it to `models.allow`: gpt-4o, claude-*"
        );
        let expected = serde_json::json!({"model": "gpt-4o-mini", "allowed_models": ["gpt-4o", "claude-*"]});
        assert_eq!(serde_json::Value::from(refusal.fields), expected);
        assert_eq!(refusal.reason, Reason::ModelNotAllowed);
        for unnamed in [None, Some("")] {
            let refusal = list.check(unnamed, true).unwrap_err();
            assert!(refusal.message.starts_with("the request names no model"), "{}", refusal.message);
        }
        // A name that is too long to be one is refused, and not repeated in full.
        let long = "g".repeat(MODEL_NAME_BYTES + 1);
        let refusal = models(&["*"]).check(Some(&long), true).unwrap_err();
        assert_eq!(refusal.fields["model"].as_str().map(str::len), Some(MODEL_NAME_BYTES));
    }

    #[test]
    fn the_list_is_bounded() {
        assert_eq!(models(&vec!["m"; MODEL_PATTERNS]).problem(), None);
        let problem = models(&vec!["m"; MODEL_PATTERNS + 1]).problem().unwrap();
        assert_eq!(problem, "more than 256 patterns");
        assert_eq!(models(&[&"m".repeat(MODEL_NAME_BYTES)]).problem(), None);
        for bad in ["", "gpt 4", "a\n", &"m".repeat(MODEL_NAME_BYTES + 1)] {
            assert!(models(&["fine", bad]).problem().unwrap().contains("is not the name of a model"), "{bad}");
        }
    }
}
