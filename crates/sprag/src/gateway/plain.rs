//! What goes on record of a call, without the secrets in it: names of models and tools, the path, proofs. Some APIs have
//! their key in the path, and a client can call a tool anything.
//!
//! Names of runs and agents are not changed here: one that holds a secret is refused before (`identify`).

use std::borrow::Cow;

use sprag_core::dlp::{Scanner, for_record};
use sprag_core::event::Event;
use sprag_core::limits::{EVENT_PATH_BYTES, MODEL_NAME_BYTES, REPLY_WORD_BYTES};
use sprag_core::loops::Finding;

use super::identify::percent_decoded;

/// A word of an answer. It was cut at twice as much.
const WORD_BYTES: usize = REPLY_WORD_BYTES / 2;
/// What must be kept of a model's name until it is recorded.
pub(crate) const MODEL_SEEN_BYTES: usize = 2 * MODEL_NAME_BYTES;

/// A path. What is only to be seen once it is decoded is hidden in the decoded one.
pub(crate) fn path(scanner: &Scanner, path: &str) -> String {
    let told = for_record(scanner, path, EVENT_PATH_BYTES);
    let decoded = percent_decoded(path);
    if decoded == path {
        return told.into_owned();
    }
    let meant = for_record(scanner, &decoded, EVENT_PATH_BYTES);
    match meant.contains("[REDACTED:") {
        true => meant.replace(char::is_control, " "),
        false => told.into_owned(),
    }
}

/// All names that an event holds.
pub(crate) fn event(scanner: &Scanner, event: &mut Event) {
    model(scanner, &mut event.model);
    let words = event.finish.iter_mut().chain(&mut event.tools);
    words.for_each(|word| hide(scanner, word, WORD_BYTES));
}

/// The name of a model.
pub(crate) fn model(scanner: &Scanner, model: &mut Option<String>) {
    if let Some(model) = model {
        hide(scanner, model, MODEL_NAME_BYTES);
    }
}

/// The names of tools in proofs, and where proofs speak of them.
pub(crate) fn proofs(scanner: &Scanner, findings: &mut [Finding]) {
    for Finding { proof, .. } in findings {
        for tool in proof.steps.iter_mut().flat_map(|step| &mut step.tools) {
            let Cow::Owned(plain) = for_record(scanner, tool, WORD_BYTES) else { continue };
            proof.summary = proof.summary.replace(tool.as_str(), &plain);
            *tool = plain;
        }
    }
}

/// What somebody is told about a model. Its name there may have been cut at its bound.
pub(crate) fn message(scanner: &Scanner, message: &str, model: Option<&str>) -> String {
    match model.map(|model| (model, for_record(scanner, model, MODEL_NAME_BYTES / 2))) {
        Some((model, plain)) if plain != model => message.replace(model, &plain),
        _ => message.to_owned(),
    }
}

fn hide(scanner: &Scanner, name: &mut String, most: usize) {
    let plain = for_record(scanner, name, most);
    if plain != *name {
        *name = plain.into_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_a_path_is_seen_behind_its_escapes() {
        let scanner = Scanner::default();
        for (sent, told) in [
            ("/v1/chat/completions", "/v1/chat/completions"),
            ("/v1/files/a%20b", "/v1/files/a%20b"),
            ("/v1/keys/sk-7Qm2Xv9Lr4Tn8Wb1Kd6Hs3/usage", "/v1/keys/[REDACTED:OPENAI_KEY]/usage"),
            ("/v1/keys/sk%2D7Qm2Xv9Lr4Tn8Wb1Kd6Hs3", "/v1/keys/[REDACTED:OPENAI_KEY]"),
            ("/users/mia%40mail.org%0a/mails", "/users/[REDACTED:EMAIL] /mails"),
        ] {
            assert_eq!(path(&scanner, sent), told);
        }
    }

    #[test]
    fn what_is_said_of_a_model_is_kept_without_its_secret() {
        let scanner = Scanner::default();
        let key = "sk-7Qm2Xv9Lr4Tn8Wb1Kd6Hs3";
        let said = format!("this agent may not ask model `{key}`");
        assert_eq!(message(&scanner, &said, Some(key)), "this agent may not ask model `[REDACTED:OPENAI_KEY]`");
        assert_eq!(message(&scanner, "no model `gpt-4o`", Some("gpt-4o")), "no model `gpt-4o`");
    }
}
