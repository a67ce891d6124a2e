//! What a request adds to its conversation since the model last spoke.
//!
//! The conversation is read from its end back to the last answer, so the cost follows what is new and not the length
//! of the history. What came before is not looked at, but for the opening and, on demand, the last user text.

mod item;

use std::borrow::Cow;
use std::cell::OnceCell;

use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use self::item::{Class, Item, first_text, joined, text};
use crate::wire::{Call, Dialect};

/// The new part of a request, borrowed from its body.
#[derive(Clone, Debug, Default)]
pub struct Turn<'a> {
    /// A hash of how the conversation begins: one run may hold several conversations.
    pub opening: u64,
    /// The last answer that the request carries; None where it carries none (a first request, or a history that the
    /// provider keeps).
    pub said: Option<Said<'a>>,
    /// Tool results after that answer.
    pub results: Vec<ToolResult<'a>>,
    /// User text after that answer, its parts joined by line ends. Empty when the turn is made of tool results.
    pub user_text: Cow<'a, str>,
    /// The last user text of the whole conversation, where it was looked for.
    pub last_user_text: Option<Cow<'a, str>>,
    /// The conversation is one text that grows: the transcript of a completion-style agent.
    pub is_transcript: bool,
    /// The provider keeps what came before: the request continues an earlier answer by its id.
    pub is_continued: bool,
    /// Items in the request.
    pub items: usize,
    /// Those of them that came with the last answer and after it: the others are what the model answered.
    pub new_items: usize,
    /// Items that had to be read.
    pub parsed_items: usize,
    /// The hash of the user text, once it was asked for.
    pub user_text_hash: KnownHash,
}

/// A hash that is worked out once. A copy begins without: its text may be changed.
#[derive(Debug, Default)]
pub struct KnownHash(OnceCell<u64>);

impl Clone for KnownHash {
    fn clone(&self) -> KnownHash {
        KnownHash::default()
    }
}

/// What the model said.
#[derive(Clone, Debug, Default)]
pub struct Said<'a> {
    /// Its text.
    pub text: Cow<'a, str>,
    /// Its calls.
    pub calls: Vec<ToolUse<'a>>,
}

/// A call that the model asked for.
#[derive(Clone, Debug, Default)]
pub struct ToolUse<'a> {
    /// The id by which its result refers to it; empty where there is none.
    pub id: Cow<'a, str>,
    /// The tool.
    pub name: Cow<'a, str>,
    /// Arguments as JSON text.
    pub arguments: Cow<'a, str>,
}

/// What a tool gave back.
#[derive(Clone, Debug, Default)]
pub struct ToolResult<'a> {
    /// The call that it answers.
    pub call_id: Cow<'a, str>,
    /// The tool, where the result names it.
    pub name: Cow<'a, str>,
    /// Its text, parts joined by line ends; a structure as JSON text; a hash in place of an image.
    pub text: Cow<'a, str>,
    /// The dialect itself marks it as an error.
    pub is_error: bool,
}

impl Turn<'_> {
    /// A hash of the user text: several detectors ask for it.
    pub(super) fn user_text_hash(&self) -> u64 {
        *self.user_text_hash.0.get_or_init(|| xxh3_64(self.user_text.as_bytes()))
    }
}

/// Items at the front that make the opening, and the bytes that count of each.
const OPENING_ITEMS: usize = 4;
const OPENING_BYTES: usize = 512;

/// Reads the end of a conversation. The last user text of all of it is looked for only where it is wanted: finding it
/// may take reading the history.
#[must_use]
pub fn read_turn<'a>(call: &Call<'a>, wants_last_user_text: bool) -> Turn<'a> {
    let mut turn = match call.prompt {
        Some(prompt) => read_prompt(call.dialect, prompt),
        None => read_items(call.dialect, &call.items, wants_last_user_text),
    };
    turn.is_continued = call.previous_id.is_some();
    if wants_last_user_text && turn.last_user_text.is_none() && !turn.user_text.is_empty() {
        turn.last_user_text = Some(turn.user_text.clone());
    }
    turn
}

fn read_items<'a>(dialect: Dialect, items: &[&'a RawValue], wants_last_user_text: bool) -> Turn<'a> {
    let mut turn = Turn { opening: 0, items: items.len(), ..Turn::default() };
    let (mut texts, mut said) = (Vec::new(), None::<Said<'a>>);
    // Of a short conversation the opening is read with the rest.
    let mut front: [Option<(Item<'a>, Class)>; OPENING_ITEMS] = Default::default();
    let mut at = items.len();
    while at > 0 {
        if said.is_some() && Item::begins_as_input(items[at - 1]) {
            break;
        }
        let item = Item::parse(items[at - 1]);
        let class = item.class(dialect);
        if said.is_some() && class == Class::Input {
            break;
        }
        turn.parsed_items += 1;
        at -= 1;
        match class {
            Class::Aside => {}
            Class::Input => {
                let (results_before, texts_before) = (turn.results.len(), texts.len());
                item.given(&mut turn.results, &mut texts);
                turn.results[results_before..].reverse();
                texts[texts_before..].reverse();
            }
            // An answer at the very end is begun by the client, or paused by the model: it is not over.
            Class::Answer if texts.is_empty() && turn.results.is_empty() => {}
            Class::Answer => {
                let (mut spoken, mut calls) = (Vec::new(), Vec::new());
                item.said(&mut spoken, &mut calls);
                let said = said.get_or_insert_default();
                calls.append(&mut said.calls);
                said.calls = calls;
                said.text = joined(spoken.into_iter().chain([std::mem::take(&mut said.text)]));
            }
        }
        if let Some(place) = front.get_mut(at) {
            *place = Some((item, class));
        }
    }
    turn.said = said;
    turn.new_items = items.len() - at;
    turn.results.reverse();
    turn.user_text = joined(texts.into_iter().rev());
    if wants_last_user_text && turn.user_text.is_empty() {
        turn.last_user_text = items[..at].iter().rev().find_map(|raw| {
            turn.parsed_items += 1;
            let item = Item::parse(raw);
            let mut texts = Vec::new();
            if item.class(dialect) == Class::Input {
                item.given(&mut Vec::new(), &mut texts);
            }
            let text = joined(texts.into_iter());
            (!text.is_empty()).then_some(text)
        });
    }
    read_opening(dialect, items, front, &mut turn);
    turn
}

/// Instructions do not count: clients put the time of day, and marks of their own, into them.
fn read_opening<'a>(
    dialect: Dialect,
    items: &[&'a RawValue],
    front: [Option<(Item<'a>, Class)>; OPENING_ITEMS],
    turn: &mut Turn<'a>,
) {
    let (mut texts, mut count) = ([&[][..]; OPENING_ITEMS], 0);
    for (raw, known) in items.iter().zip(front) {
        let (item, class) = known.unwrap_or_else(|| {
            turn.parsed_items += 1;
            let item = Item::parse(raw);
            let class = item.class(dialect);
            (item, class)
        });
        match class {
            Class::Answer => break,
            Class::Aside => {}
            Class::Input => {
                let text = first_text(&item, OPENING_BYTES);
                texts[count] = text;
                count += 1;
                // Of one text that grows only the beginning stays the same, and nothing can follow it.
                if text.len() == OPENING_BYTES {
                    break;
                }
            }
        }
    }
    turn.opening = match texts[..count] {
        [only] => xxh3_64(only),
        ref texts => xxh3_64(&texts.concat()),
    };
}

fn read_prompt<'a>(dialect: Dialect, prompt: &'a RawValue) -> Turn<'a> {
    let user_text = text(Some(prompt)).unwrap_or(Cow::Borrowed(prompt.get()));
    let opening = user_text.as_bytes();
    Turn {
        opening: xxh3_64(&opening[..opening.len().min(OPENING_BYTES)]),
        user_text,
        is_transcript: dialect == Dialect::OpenaiCompletions,
        items: 1,
        new_items: 1,
        parsed_items: 1,
        ..Turn::default()
    }
}

#[cfg(test)]
mod tests;
