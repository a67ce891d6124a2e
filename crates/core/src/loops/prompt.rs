//! What is compared: the prompt of a request and the answer of a model, as numbers.
//!
//! The prompt is the turn: its user text, or its tool results together with the calls that they answer. Agents that
//! write their commands into plain text get the results back as user text; those turns count as results as well, or
//! two edits that both say "ok" would be the same prompt. [`PromptScope::LastUserMessage`] takes the last user message
//! as it stands, as the older systems did.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::canonical::canonical;
use super::words::has_fewer_words;
use super::{PromptScope, Said, Turn};
use crate::wire::Reply;

/// Prompts of fewer words are never evidence alone.
const TELLING_WORDS: usize = 3;
/// Answers of fewer words are no evidence where the questions differ.
const TELLING_ANSWER_WORDS: usize = 4;
/// What shows that an answer's text holds a command: code, a ReAct action, a call written out.
const COMMAND_MARKS: [&str; 4] = ["```", "<function=", "<tool_call>", "<invoke "];
const ACTION_MARK: &str = "Action:";

/// What a request asks.
#[derive(Clone, Debug)]
pub(super) struct Prompt<'a> {
    /// Its text: the user's, or that of the results.
    pub(super) text: Cow<'a, str>,
    /// The same for the same prompt only.
    pub(super) exact: u64,
    /// The calls that the model made before; 0 where it made none.
    pub(super) calls: u64,
    /// It is what a tool gave back, not what a user wrote.
    pub(super) is_results: bool,
    /// Too few words to be evidence alone.
    pub(super) is_short: bool,
    /// How the conversation begins, where the prompt is its first; else 0.
    pub(super) opening: u64,
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The same for the same text and calls only; 0 for an empty answer.
    pub(super) exact: u64,
    /// Its calls; 0 where it has none.
    pub(super) calls: u64,
    /// It says what to do next, as calls or as a command in its text.
    pub(super) is_command: bool,
    /// Too short, or too formal, to be evidence where the questions differ.
    pub(super) is_short: bool,
}

impl<'a> Prompt<'a> {
    /// None where the request asks nothing, or repeats a user message that it does not carry.
    pub(super) fn read(turn: &'a Turn<'a>, scope: PromptScope) -> Option<Prompt<'a>> {
        match scope {
            PromptScope::Turn => Prompt::of_turn(turn),
            PromptScope::LastUserMessage => Prompt::of_last_user_message(turn),
        }
    }

    fn of_turn(turn: &'a Turn<'a>) -> Option<Prompt<'a>> {
        let calls = turn.said.as_ref().map_or(0, hash_of_calls);
        if !turn.results.is_empty() {
            return Some(Prompt {
                text: text_of_results(turn),
                exact: xxh3_64_with_seed(turn.user_text.trim().as_bytes(), hash_of_results(turn)),
                calls,
                is_results: true,
                // Where the provider keeps the history, the calls are not known, and "ok" alone says nothing.
                is_short: turn.said.is_none(),
                opening: 0,
            });
        }
        let text = turn.user_text.trim();
        if text.is_empty() {
            return None;
        }
        let command = turn.said.as_ref().filter(|said| said.calls.is_empty() && carries_command(&said.text));
        let calls = command.map_or(calls, |said| xxh3_64(said.text.trim().as_bytes()));
        Some(Prompt {
            text: Cow::Borrowed(text),
            exact: match command {
                Some(_) => xxh3_64_with_seed(text.as_bytes(), calls),
                None if text.len() == turn.user_text.len() => turn.user_text_hash(),
                None => xxh3_64(text.as_bytes()),
            },
            calls,
            // A transcript repeats all that was said; what it gains is looked at by `progress`.
            is_results: command.is_some() || turn.is_transcript,
            is_short: command.is_none() && has_fewer_words(text, TELLING_WORDS),
            opening: if turn.said.is_none() { turn.opening } else { 0 },
        })
    }

    fn of_last_user_message(turn: &'a Turn<'a>) -> Option<Prompt<'a>> {
        let text = match turn.user_text.trim() {
            "" => turn.last_user_text.as_deref()?.trim(),
            text => text,
        };
        Some(Prompt {
            text: Cow::Borrowed(text),
            exact: xxh3_64(text.as_bytes()),
            calls: turn.said.as_ref().map_or(0, hash_of_calls),
            is_results: false,
            is_short: false,
            opening: 0,
        })
    }
}

impl Answer {
    pub(super) fn of_reply(reply: &Reply) -> Answer {
        Answer::of_hashed(reply, None)
    }

    /// The same; `known` is the hash of the answer's text without white space of ASCII around it, where that is known.
    pub(super) fn of_hashed(reply: &Reply, known: Option<u64>) -> Answer {
        let calls = reply.tool_calls.iter().map(|call| hash_of_call(&call.name, &call.arguments));
        Answer::new(&reply.text, calls.fold(0, u64::wrapping_add), known)
    }

    fn new(text: &str, calls: u64, known: Option<u64>) -> Answer {
        // Without a call there is no seed; of some texts more is trimmed here.
        let known = known.filter(|_| calls == 0 && text.trim().len() == text.trim_ascii().len());
        let text = text.trim();
        let is_empty = text.is_empty() && calls == 0;
        Answer {
            exact: if is_empty { 0 } else { known.unwrap_or_else(|| xxh3_64_with_seed(text.as_bytes(), calls)) },
            calls,
            is_command: calls != 0 || carries_command(text),
            is_short: text.starts_with(['{', '[']) || has_fewer_words(text, TELLING_ANSWER_WORDS),
        }
    }
}

/// The hashes of the turn's results, each with the call that it answers.
pub(super) fn results_with_calls(turn: &Turn<'_>) -> impl Iterator<Item = u64> {
    let calls = turn.said.as_ref().map_or(&[][..], |said| &said.calls);
    turn.results.iter().enumerate().map(move |(index, result)| {
        let by_id = || calls.iter().find(|call| !call.id.is_empty() && call.id == result.call_id);
        let by_place = || calls.get(index).filter(|call| call.id.is_empty() || result.call_id.is_empty());
        let call = by_id().or_else(by_place);
        let asked = call.map_or_else(|| xxh3_64(result.name.as_bytes()), |c| hash_of_call(&c.name, &c.arguments));
        xxh3_64_with_seed(result.text.as_bytes(), asked ^ u64::from(result.is_error))
    })
}

/// Whatever their order.
fn hash_of_results(turn: &Turn<'_>) -> u64 {
    results_with_calls(turn).fold(0, u64::wrapping_add)
}

/// Whatever their order; 0 where there are none.
fn hash_of_calls(said: &Said<'_>) -> u64 {
    said.calls.iter().map(|call| hash_of_call(&call.name, &call.arguments)).fold(0, u64::wrapping_add)
}

/// The order of keys and the white space between them do not matter; digits do.
fn hash_of_call(name: &str, arguments: &str) -> u64 {
    xxh3_64_with_seed(name.as_bytes(), xxh3_64(canonical(arguments).as_bytes()))
}

fn text_of_results<'a>(turn: &'a Turn<'a>) -> Cow<'a, str> {
    if let ([only], "") = (turn.results.as_slice(), &*turn.user_text) {
        return Cow::Borrowed(&only.text);
    }
    let texts: Vec<&str> = turn.results.iter().map(|result| &*result.text).chain([&*turn.user_text]).collect();
    Cow::Owned(texts.join("\n"))
}

fn carries_command(text: &str) -> bool {
    // What to look for is worked out once.
    static MARKS: LazyLock<[memmem::Finder<'static>; 4]> = LazyLock::new(|| COMMAND_MARKS.map(memmem::Finder::new));
    static ACTION: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(ACTION_MARK));
    let text = text.as_bytes();
    // All others begin with one of these, which most texts do not have.
    let has_marks =
        || memchr::memchr2(b'`', b'<', text).is_some() && MARKS.iter().any(|mark| mark.find(text).is_some());
    ACTION.find(text).is_some() || has_marks()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::{ToolResult, ToolUse};

    fn said(text: &'static str, calls: &[(&'static str, &'static str, &'static str)]) -> Said<'static> {
        let call = |(id, name, arguments): &(&'static str, &'static str, &'static str)| ToolUse {
            id: Cow::Borrowed(id),
            name: Cow::Borrowed(name),
            arguments: Cow::Borrowed(arguments),
        };
        Said { text: text.into(), calls: calls.iter().map(call).collect() }
    }

    fn result(call_id: &'static str, text: &'static str) -> ToolResult<'static> {
        ToolResult { call_id: call_id.into(), text: text.into(), ..ToolResult::default() }
    }

    fn exact(turn: &Turn<'_>) -> u64 {
        Prompt::read(turn, PromptScope::Turn).unwrap().exact
    }

    #[test]
    fn results_are_compared_with_the_calls_that_they_answer() {
        let turn = |arguments, text| Turn {
            said: Some(said("", &[("1", "edit", arguments)])),
            results: vec![result("1", text)],
            ..Turn::default()
        };
        let first = turn(r#"{"line":1,"to":"a"}"#, "ok");
        assert_eq!(exact(&first), exact(&turn(r#"{ "to": "a", "line": 1 }"#, "ok")), "the order of keys");
        assert_ne!(exact(&first), exact(&turn(r#"{"line":2,"to":"a"}"#, "ok")), "another edit");
        assert_ne!(exact(&first), exact(&turn(r#"{"line":1,"to":"a"}"#, "no")), "another result");
    }

    #[test]
    fn the_order_of_parallel_calls_does_not_matter() {
        let calls = [("1", "a", "{}"), ("2", "b", "{}")];
        let there =
            Turn { said: Some(said("", &calls)), results: vec![result("1", "x"), result("2", "y")], ..Turn::default() };
        let back = Turn {
            said: Some(said("", &[calls[1], calls[0]])),
            results: vec![result("2", "y"), result("1", "x")],
            ..Turn::default()
        };
        let crossed = Turn { results: vec![result("1", "y"), result("2", "x")], ..there.clone() };
        assert_eq!(exact(&there), exact(&back));
        assert_ne!(exact(&there), exact(&crossed));
    }

    #[test]
    fn what_answers_a_command_in_plain_text_is_a_result() {
        let turn = |text| Turn { said: Some(said(text, &[])), user_text: "exit code 0".into(), ..Turn::default() };
        let (sed, ls, talk) = (turn("```sh\nsed -i s/a/b/ x\n```"), turn("```sh\nls\n```"), turn("Done with it."));
        assert_ne!(exact(&sed), exact(&ls));
        assert!(Prompt::read(&sed, PromptScope::Turn).unwrap().is_results);
        assert!(!Prompt::read(&talk, PromptScope::Turn).unwrap().is_results);
    }

    #[test]
    fn the_scope_decides_what_a_turn_of_results_asks() {
        let mut turn = Turn { results: vec![result("1", "x")], ..Turn::default() };
        assert!(Prompt::read(&turn, PromptScope::LastUserMessage).is_none(), "the one before stays");
        turn.last_user_text = Some("Book a flight".into());
        let prompt = Prompt::read(&turn, PromptScope::LastUserMessage).unwrap();
        assert_eq!((&*prompt.text, prompt.is_results), ("Book a flight", false));
        assert!(Prompt::read(&Turn::default(), PromptScope::Turn).is_none(), "nothing asked");
    }

    #[test]
    fn a_known_hash_gives_the_same_answer() {
        for text in ["", " ", "yes", " a few words of it \n", "\u{a0}wide space around it\u{3000}", "run: ```ls```"] {
            for calls in [0, 7] {
                let known = xxh3_64(text.trim_ascii().as_bytes());
                assert_eq!(Answer::new(text, calls, Some(known)), Answer::new(text, calls, None), "{text:?} {calls}");
            }
        }
    }

    #[test]
    fn answers_are_their_content() {
        let answer = |text, calls: &[(&'static str, &'static str, &'static str)]| {
            let said = said(text, calls);
            Answer::new(&said.text, hash_of_calls(&said), None)
        };
        assert_eq!(answer("", &[]).exact, 0);
        assert_eq!(answer(" a b c d ", &[]), answer("a b c d", &[]));
        assert_ne!(answer("x", &[("1", "a", "{}")]).exact, answer("x", &[]).exact);
        assert_eq!(answer("x", &[("1", "a", "{}")]).exact, answer("x", &[("2", "a", "{ }")]).exact, "ids differ");
        assert!(answer(r#"{"label":"positive","score":1,"why":"so it is"}"#, &[]).is_short);
        assert!(answer("yes", &[]).is_short && !answer("The answer is 10", &[]).is_short);
    }
}
