//! The conversation of a request in canonical form, as a chain of hashes.
//!
//! Clients send the same conversation again at every step, but not byte for byte: cache marks move, strings become
//! blocks, fields are reordered. The chain hashes what a message says instead. Instructions are left out, because
//! frameworks put the time of day into them; an answer counts by what it called, or by its text where it called
//! nothing, because clients drop reasoning and annotations when they echo it.
//!
//! Only new items are parsed: the chain of an item list that was seen before is found by a hash of its raw bytes.

mod answer;
mod canonical;
mod item;

use std::borrow::Cow;

use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use self::answer::Answer;
use self::canonical::{Members, canonical_item, mix, user_text};
use self::item::{Class, Item};
use super::{Call, Dialect, Reply};
use crate::json::{self, Odd};
use crate::limits::RUN_CLUES;

pub use self::answer::{call_id_hash, looks_unique};

/// Where a conversation stands after a request. Lists are newest first and bounded.
#[derive(Clone, Debug)]
pub struct History {
    /// The whole request, with an answer that it begins for the model and the earlier answer that it continues by id.
    pub end: u64,
    /// The chain just behind each earlier answer. An earlier request and its answer gave the same value.
    pub after_answers: Vec<u64>,
    /// The chain just before each earlier answer: what an earlier request alone gave.
    pub before_answers: Vec<u64>,
    /// Each earlier answer together with what was said last before it: stays when the beginning is cut off.
    pub exchanges: Vec<u64>,
    /// Hashes of the ids of calls in the history.
    pub call_ids: Vec<u64>,
    /// What to remember by the hash of the raw items, so that the next request need not read them again.
    pub marks: Vec<(u64, Mark)>,
    /// Items that had to be parsed.
    pub parsed_items: usize,
    /// The chain in front of the answer that is asked for.
    base: u64,
    last_input: u64,
    /// An answer that the request begins and the model continues.
    begun: Option<Box<Answer>>,
    dialect: Dialect,
}

/// A conversation with the answer to its last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The chain behind the answer: what the next request carries in `after_answers`.
    pub after: u64,
    /// What it carries in `exchanges`; None where that would be too common to be evidence.
    pub exchange: Option<u64>,
}

/// What is known of a raw item list up to one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The chain up to here.
    pub chain: u64,
    /// The chain before and behind the last answer up to here.
    pub last_answer: Option<(u64, u64)>,
    /// What was given to the model last.
    pub last_input: u64,
}

/// Places from the end of the list that are looked up, and the number that is remembered of each request.
const MARK_LOOKUPS: usize = 64;
const MARK_PLACES: usize = 3;
/// How many of each kind of evidence are kept: together they fit under [`RUN_CLUES`].
const AFTER_ANSWERS: usize = RUN_CLUES / 2;
const BEFORE_ANSWERS: usize = RUN_CLUES / 6;
const CALL_IDS: usize = RUN_CLUES / 6;
const EXCHANGES: usize = RUN_CLUES / 16;
const SEED: u64 = 0x5bd1_e995_9d1b_54a5;

/// Reads the conversation of a request. `known` finds the mark of a raw prefix that was remembered earlier.
///
/// None when the request carries no conversation.
pub fn read(call: &Call<'_>, known: impl Fn(u64) -> Option<Mark>) -> Option<History> {
    let (dialect, items) = (call.dialect, call.items.as_slice());
    let mut history = match call.prompt {
        None if items.is_empty() => return None,
        None => read_items(dialect, items, known),
        Some(prompt) => read_prompt(dialect, prompt),
    };
    if let Some(previous) = &call.previous_id {
        // The provider holds what came before: the same words after another answer are another request.
        let previous = xxh3_64(previous.as_bytes());
        history.base = mix(history.base, previous);
        history.end = mix(history.end, previous);
    }
    Some(history)
}

impl History {
    /// What the next request carries of this request and its answer.
    #[must_use]
    pub fn followed_by(&self, reply: &Reply) -> Followed {
        let is_text = self.begun.is_none() && reply.tool_calls.is_empty();
        let short = is_text.then(|| Answer::of_short_text(&reply.text)).flatten();
        let (key, is_telling) = short.unwrap_or_else(|| {
            let answer = self.answer(reply);
            (answer.key(), answer.is_telling())
        });
        let is_telling = self.before().is_some() && is_telling;
        Followed { after: mix(self.base, key), exchange: is_telling.then(|| mix(self.last_input, key)) }
    }

    /// Whether the next request can refer to the answer by its id.
    #[must_use]
    pub fn refers_to_answers(&self) -> bool {
        self.dialect.refers_to_answers()
    }

    /// What the next request carries in `before_answers`. None for a bare prompt, where answers do not stand apart.
    #[must_use]
    pub fn before(&self) -> Option<u64> {
        (self.dialect != Dialect::OpenaiCompletions).then_some(self.base)
    }

    fn answer(&self, reply: &Reply) -> Answer {
        let mut answer = self.begun.as_deref().cloned().unwrap_or_else(|| Answer::new(self.dialect));
        answer.text(&reply.text);
        for call in &reply.tool_calls {
            answer.call(&call.id, &call.name, &call.arguments);
        }
        answer
    }

    fn new(dialect: Dialect) -> History {
        History {
            end: SEED,
            after_answers: Vec::new(),
            before_answers: Vec::new(),
            exchanges: Vec::new(),
            call_ids: Vec::new(),
            marks: Vec::new(),
            parsed_items: 0,
            base: SEED,
            last_input: SEED,
            begun: None,
            dialect,
        }
    }
}

fn read_items(dialect: Dialect, items: &[&RawValue], known: impl Fn(u64) -> Option<Mark>) -> History {
    let mut raw_chain = Vec::with_capacity(items.len());
    let mut raw = SEED ^ dialect as u64;
    for item in items {
        raw = mix(raw, xxh3_64(item.get().as_bytes()));
        raw_chain.push(raw);
    }
    let resume = (0..items.len()).rev().take(MARK_LOOKUPS).find_map(|at| Some((at + 1, known(raw_chain[at])?)));
    let (start, mark) = resume.unwrap_or((0, Mark { chain: SEED, last_answer: None, last_input: SEED }));

    let mut reader = Reader { mark, answer: None, history: History::new(dialect) };
    if let Some((before, after)) = mark.last_answer {
        reader.history.before_answers.push(before);
        reader.history.after_answers.push(after);
    }
    for at in start..items.len() {
        let is_input = reader.item(items[at]);
        if is_input {
            reader.history.marks.push((raw_chain[at], reader.mark));
        }
    }
    reader.finish()
}

/// A prompt that is one string. What a completion continues may be the transcript of a conversation, in which the
/// earlier answers end where a line ends.
fn read_prompt(dialect: Dialect, prompt: &RawValue) -> History {
    let mut history = History::new(dialect);
    history.parsed_items = 1;
    let Ok(text) = json::from_str::<Cow<'_, str>>(prompt.get()) else {
        history.base = mix(SEED, xxh3_64(prompt.get().as_bytes()));
        history.end = history.base;
        return history;
    };
    if dialect != Dialect::OpenaiCompletions {
        history.last_input = user_text(&text);
        history.base = mix(SEED, history.last_input);
        history.end = history.base;
        return history;
    }
    let mut transcript = Answer::endless(dialect);
    let line_ends = memchr::memrchr_iter(b'\n', text.as_bytes()).take(AFTER_ANSWERS);
    let mut read = 0;
    let mut line_ends: Vec<usize> = line_ends.collect();
    line_ends.reverse();
    for end in line_ends {
        transcript.text(&text[read..end]);
        history.after_answers.push(mix(SEED, transcript.key()));
        read = end;
    }
    history.after_answers.reverse();
    transcript.text(&text[read..]);
    history.end = mix(SEED, transcript.key());
    history.begun = Some(Box::new(transcript));
    history
}

/// What an item is and, of one that was given to the model, its hash: in one pass, where nothing in it is odd.
fn quickly(raw: &RawValue, dialect: Dialect) -> Result<(Class, u64), Odd> {
    let mut members = Members::default();
    members.read(raw.get())?;
    let class = Class::of(members.text("role")?, members.text("type")?, dialect);
    Ok((class, if class == Class::Input { members.hash()? } else { 0 }))
}

struct Reader {
    mark: Mark,
    /// The answer that is being put together from consecutive items.
    answer: Option<Answer>,
    history: History,
}

impl Reader {
    /// Takes one item; true when it is something that was given to the model.
    fn item(&mut self, raw: &RawValue) -> bool {
        self.history.parsed_items += 1;
        let dialect = self.history.dialect;
        match quickly(raw, dialect) {
            Ok((Class::Input, hash)) => {
                self.input(hash);
                return true;
            }
            Ok((Class::Instructions | Class::Reasoning, _)) => return false,
            Ok((Class::Answer, _)) | Err(Odd) => {}
        }
        let Some(item) = Item::read(raw) else {
            self.input(xxh3_64(raw.get().as_bytes()));
            return true;
        };
        match item.class(dialect) {
            Class::Instructions | Class::Reasoning => false,
            Class::Answer => {
                item.add_to(self.answer.get_or_insert_with(|| Answer::new(dialect)));
                false
            }
            Class::Input => {
                self.input(canonical_item(raw));
                true
            }
        }
    }

    fn input(&mut self, hash: u64) {
        if let Some(answer) = self.answer.take() {
            let after = self.note(&answer);
            self.mark.last_answer = Some((self.mark.chain, after));
            self.mark.chain = after;
        }
        self.mark.chain = mix(self.mark.chain, hash);
        self.mark.last_input = hash;
    }

    /// Keeps what an earlier answer tells; gives the chain behind it.
    fn note(&mut self, answer: &Answer) -> u64 {
        let key = answer.key();
        let after = mix(self.mark.chain, key);
        self.history.before_answers.push(self.mark.chain);
        self.history.after_answers.push(after);
        if answer.is_telling() && self.mark.last_input != SEED {
            self.history.exchanges.push(mix(self.mark.last_input, key));
        }
        self.history.call_ids.extend(answer.unique_ids());
        after
    }

    fn finish(mut self) -> History {
        // An answer at the end is begun by the client, or paused by the model: the reply continues it.
        let begun = self.answer.take();
        self.history.base = self.mark.chain;
        self.history.last_input = self.mark.last_input;
        self.history.end = begun.as_ref().map_or(self.mark.chain, |answer| self.note(answer));
        self.history.begun = begun.map(Box::new);

        let newest_first = |list: &mut Vec<u64>, most: usize| {
            list.reverse();
            list.truncate(most);
        };
        newest_first(&mut self.history.after_answers, AFTER_ANSWERS);
        newest_first(&mut self.history.before_answers, BEFORE_ANSWERS);
        newest_first(&mut self.history.exchanges, EXCHANGES);
        newest_first(&mut self.history.call_ids, CALL_IDS);
        let places = self.history.marks.len();
        self.history.marks.drain(..places.saturating_sub(MARK_PLACES));
        self.history
    }
}

#[cfg(test)]
mod tests;
