//! Counting tokens where a provider did not report them.
//!
//! The tokenizers are large and slow to load, so they are loaded on first use, and nothing here runs on the request
//! path. What is counted is an estimate and is marked as one.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use memchr::memmem::Finder;
use serde_json::Value;
use sprag_core::limits::COUNTS_AT_ONCE;
use sprag_core::usage::{BYTES_PER_TOKEN, Usage};
use sprag_core::wire::Reply;
use tiktoken_rs::CoreBPE;

/// Bytes of a prompt that are kept for counting; longer prompts are scaled up from that.
const SAMPLE_BYTES: usize = 16 << 10;
/// Text is counted in pieces of this size: a tokenizer takes a time that grows with the square of a word's length.
const PIECE_BYTES: usize = 1 << 10;
/// A shorter run of base64 letters may be a word.
const INLINED_BYTES: usize = 64;

/// Where a body says of what kind it inlines something, and how near to it.
const KINDS: [&[u8]; 3] = [b"\"media_type\"", b"\"mimeType\"", b"\"mime_type\""];
const KIND_BYTES: usize = 256;

/// What stands before base64: in a data URL, or in a field called data. Prepared once, for every body is searched.
static DATA_URL: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(";base64,"));
static DATA_FIELD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"data\":"));

/// What is kept of a prompt in case its tokens must be counted.
#[derive(Clone, Debug, Default)]
pub struct PromptSample {
    text: Box<[u8]>,
    total_bytes: usize,
    /// Pictures and files that are inlined.
    inlined: u32,
    /// Bytes of those that are not known to be pictures.
    doubtful_bytes: usize,
}

impl PromptSample {
    /// Keeps the beginning of a request body, without what is inlined as base64: models do not read that as text.
    #[must_use]
    pub fn of(body: &[u8]) -> PromptSample {
        let mut text = Vec::with_capacity(body.len().min(SAMPLE_BYTES));
        let mut total_bytes = 0;
        let mut keep = |part: &[u8]| {
            let room = SAMPLE_BYTES.saturating_sub(text.len());
            text.extend_from_slice(&part[..part.len().min(room)]);
            total_bytes += part.len();
        };
        let (mut rest, mut number, mut doubtful_bytes) = (body, 0, 0);
        while let Some(start) = marker_end(rest) {
            let (text, inlined) = rest.split_at(start);
            keep(text);
            let bytes = inlined_bytes(inlined);
            number += u32::from(bytes > 0);
            rest = &inlined[bytes..];
            if bytes > 0 && !is_picture(&body[..body.len() - inlined.len()], rest) {
                doubtful_bytes += bytes;
            }
        }
        keep(rest);
        PromptSample { text: text.into(), total_bytes, inlined: number, doubtful_bytes }
    }

    /// Bytes of the prompt, without what is inlined.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.total_bytes as u64
    }

    /// Bytes that are inlined and not known to be a picture: some text looks the same.
    #[must_use]
    pub fn doubtful_bytes(&self) -> u64 {
        self.doubtful_bytes as u64
    }

    /// Pictures and files that are inlined.
    #[must_use]
    pub fn inlined(&self) -> u32 {
        self.inlined
    }
}

/// The next place where base64 may begin.
fn marker_end(rest: &[u8]) -> Option<usize> {
    let in_url = DATA_URL.find(rest).map(|at| at + DATA_URL.needle().len());
    // Behind the colon stands one space at most.
    let in_field = DATA_FIELD.find_iter(rest).find_map(|at| {
        let colon = at + DATA_FIELD.needle().len();
        let value = colon + usize::from(rest.get(colon) == Some(&b' '));
        (rest.get(value) == Some(&b'"')).then_some(value + 1)
    });
    in_url.into_iter().chain(in_field).min()
}

/// Whether base64 between `before` and `after` stands where requests have their pictures: in the address of one, or in a
/// field beside which its kind is named. Quotes within a text stand behind a backslash, so no text looks like that.
fn is_picture(before: &[u8], after: &[u8]) -> bool {
    let near = &before[before.len().saturating_sub(KIND_BYTES)..];
    if near.ends_with(b";base64,") {
        let Some(quote) = memchr::memrchr(b'"', near) else { return false };
        let (field, address) = near.split_at(quote);
        let field = field.trim_ascii_end().strip_suffix(b":").unwrap_or_default().trim_ascii_end();
        return address.starts_with(b"\"data:image/")
            && (field.ends_with(b"\"url\"") || field.ends_with(b"\"image_url\""));
    }
    // Within one object, whose fields stand in any order.
    let object = &near[memchr::memrchr2(b'{', b'}', near).map_or(0, |at| at + 1)..];
    let behind = &after[..after.len().min(KIND_BYTES)];
    let behind = &behind[..memchr::memchr2(b'{', b'}', behind).unwrap_or(behind.len())];
    let names_picture = |fields: &[u8]| {
        KINDS.iter().any(|kind| {
            memchr::memmem::find_iter(fields, kind).any(|at| {
                let value = fields[at + kind.len()..].trim_ascii_start().strip_prefix(b":").unwrap_or_default();
                value.trim_ascii_start().starts_with(b"\"image/")
            })
        })
    };
    names_picture(object) || names_picture(behind)
}

/// How much of the beginning of `text` is base64: nothing where it may be words.
fn inlined_bytes(text: &[u8]) -> usize {
    let is_base64 = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'-' | b'_' | b'\\');
    let length = text.iter().position(|b| !is_base64(b)).unwrap_or(text.len());
    if length < INLINED_BYTES { 0 } else { length }
}

/// The tokenizers, and how many answers are being counted.
#[derive(Debug, Default)]
pub struct Tokens {
    counting: AtomicUsize,
    /// The tokenizer of older models, and that of the others, is loaded or on its way.
    loading: [AtomicBool; 2],
}

/// What was counted of an answer that grows, so that each part of it is counted once.
#[derive(Debug, Default)]
pub struct Tally {
    prompt: Option<u64>,
    text: Counted,
    /// Of each call of a tool, its name and its arguments.
    calls: Vec<[Counted; 2]>,
}

/// The part of a text that is counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    bytes: usize,
    tokens: u64,
}

impl Tokens {
    /// Loads the tokenizer of a model in the background, for those that cannot wait for it later.
    pub fn prepare(&self, model: &str) {
        let is_older = is_older(model);
        if self.loading[usize::from(is_older)].swap(true, Ordering::Relaxed) {
            return;
        }
        let model = model.to_owned();
        let load = move || drop(tokenizer(&model).encode_ordinary("a"));
        // A thread of its own: the program may end before it does.
        if let Err(error) = std::thread::Builder::new().name("tokenizer".to_owned()).spawn(load) {
            tracing::warn!(%error, "the tokenizer is loaded when it is needed");
        }
    }

    /// The usage of an answer so far. Counts only what has come since the last time.
    #[must_use]
    pub fn so_far(&self, model: &str, sample: &PromptSample, reply: &Reply, tally: &mut Tally) -> Usage {
        let tokenizer = tokenizer(model);
        let tokens = &|text: &str| count(tokenizer, text);
        let mut usage = reply.usage.unwrap_or_default();
        usage.estimated = true;
        if reply.usage.is_none() {
            usage.input = *tally.prompt.get_or_insert_with(|| prompt_tokens(sample, tokens));
        }
        let mut output = scaled(tally.text.grown(&reply.text, tokens), reply.text.len() as u64, reply.text_bytes);
        tally.calls.resize(reply.tool_calls.len().max(tally.calls.len()), Default::default());
        for (call, [name, arguments]) in reply.tool_calls.iter().zip(&mut tally.calls) {
            output += name.grown(&call.name, tokens) + arguments.grown(&call.arguments, tokens);
        }
        add_output(&mut usage, output, reply);
        usage
    }

    /// The usage of an answer, with what the provider left out counted: the input when it reported nothing, the output
    /// when the answer broke off before its final figures.
    #[must_use]
    pub fn complete(&self, model: &str, sample: &PromptSample, reply: &Reply) -> Usage {
        let place = self.counting.fetch_add(1, Ordering::Relaxed);
        let tokens: &dyn Fn(&str) -> u64 = if place < COUNTS_AT_ONCE {
            let tokenizer = tokenizer(model);
            &move |text| count(tokenizer, text)
        } else {
            &|text| text.len() as u64 / BYTES_PER_TOKEN
        };
        let usage = completed(sample, reply, tokens);
        self.counting.fetch_sub(1, Ordering::Relaxed);
        usage
    }
}

fn completed(sample: &PromptSample, reply: &Reply, tokens: &dyn Fn(&str) -> u64) -> Usage {
    let mut usage = reply.usage.unwrap_or_default();
    usage.estimated = true;
    if reply.usage.is_none() {
        usage.input = prompt_tokens(sample, tokens);
    }
    let mut output = scaled(tokens(&reply.text), reply.text.len() as u64, reply.text_bytes);
    for call in &reply.tool_calls {
        output += tokens(&call.name) + tokens(&call.arguments);
    }
    add_output(&mut usage, output, reply);
    usage
}

fn add_output(usage: &mut Usage, output: u64, reply: &Reply) {
    let reasoning = reply.reasoning_bytes / BYTES_PER_TOKEN;
    usage.reasoning = usage.reasoning.max(reasoning);
    usage.output = usage.output.max(output + reasoning);
}

impl Counted {
    /// Tokens of a text that was a part of this one at the last time.
    fn grown(&mut self, text: &str, tokens: &dyn Fn(&str) -> u64) -> u64 {
        let new = text.get(self.bytes..).unwrap_or_default();
        // The last word may go on; without words, the last bytes.
        let tail = new.rfind(' ').unwrap_or_else(|| new.floor_char_boundary(new.len().saturating_sub(PIECE_BYTES)));
        self.tokens += tokens(&new[..tail]);
        self.bytes += tail;
        self.tokens + tokens(&new[tail..])
    }
}

/// The tokenizer of a model; the newest one stands in for models of other makers.
fn tokenizer(model: &str) -> &'static CoreBPE {
    if is_older(model) { tiktoken_rs::cl100k_base_singleton() } else { tiktoken_rs::o200k_base_singleton() }
}

fn is_older(model: &str) -> bool {
    (model.contains("gpt-4") && !model.contains("gpt-4o") && !model.contains("gpt-4.1"))
        || model.contains("gpt-3.5")
        || model.contains("text-embedding")
}

fn count(tokenizer: &CoreBPE, mut text: &str) -> u64 {
    let mut tokens = 0;
    while !text.is_empty() {
        let (piece, rest) = text.split_at(piece_end(text));
        tokens += tokenizer.encode_ordinary(piece).len() as u64;
        text = rest;
    }
    tokens
}

/// The end of the first piece: before a space where there is one, so that hardly a token is cut.
fn piece_end(text: &str) -> usize {
    if text.len() <= PIECE_BYTES {
        return text.len();
    }
    let end = text.floor_char_boundary(PIECE_BYTES);
    text[..end].rfind(' ').filter(|space| *space > 0).unwrap_or(end)
}

fn scaled(tokens: u64, of_bytes: u64, to_bytes: u64) -> u64 {
    tokens.saturating_mul(to_bytes).checked_div(of_bytes).unwrap_or(0)
}

fn prompt_tokens(sample: &PromptSample, tokens: &dyn Fn(&str) -> u64) -> u64 {
    // A whole body is counted by its texts alone; a cut one with its punctuation, which models see in part too.
    if let Ok(value) = serde_json::from_slice::<Value>(&sample.text) {
        let mut sum = 0;
        each_text(&value, &mut |text| sum += tokens(text));
        return sum;
    }
    let text = String::from_utf8_lossy(&sample.text);
    scaled(tokens(&text), sample.text.len() as u64, sample.total_bytes as u64)
}

/// Visits what the model reads: strings, but neither inline images nor the settings of the request.
fn each_text(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) if !text.starts_with("data:") => visit(text),
        Value::Array(list) => list.iter().for_each(|v| each_text(v, visit)),
        Value::Object(map) => {
            let is_setting =
                |key: &str| matches!(key, "model" | "data" | "role" | "type" | "id" | "tool_call_id" | "metadata");
            map.iter().filter(|(key, _)| !is_setting(key)).for_each(|(_, v)| each_text(v, visit));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_the_provider_left_out() {
        let body = br#"{"model":"gpt-4o","messages":[{"role":"user","content":"hello world"}]}"#;
        let reply = Reply { text: "hello world hello".into(), text_bytes: 17, ..Reply::default() };
        let usage = Tokens::default().complete("gpt-4o", &PromptSample::of(body), &reply);
        assert_eq!((usage.input, usage.output, usage.estimated), (2, 3, true));
    }

    #[test]
    fn an_answer_that_grows_is_counted_part_by_part() {
        let text = "Sprag counts what is new: fünf Wörter, then 1234567 and 不用空格的文字。 ".repeat(60);
        let body = br#"{"model":"gpt-4o","messages":[{"role":"user","content":"hello world"}]}"#;
        let (tokens, sample, mut tally) = (Tokens::default(), PromptSample::of(body), Tally::default());
        let mut shown = Reply::default();
        for (at, letter) in text.char_indices() {
            shown.text.push(letter);
            shown.text_bytes += letter.len_utf8() as u64;
            if at % 97 == 0 {
                let so_far = tokens.so_far("gpt-4o", &sample, &shown, &mut tally);
                assert_eq!(so_far.input, 2);
            }
        }
        let (grown, whole) =
            (tokens.so_far("gpt-4o", &sample, &shown, &mut tally), tokens.complete("gpt-4o", &sample, &shown));
        assert!(grown.output.abs_diff(whole.output) <= 2, "{} and {}", grown.output, whole.output);
        assert!(tally.text.bytes + 100 > text.len(), "hardly anything is counted again");
    }

    #[test]
    fn inlined_images_are_not_text() {
        let image = "iVBORw0KGgo".repeat(100_000);
        let chat = format!(
            r#"{{"messages":[{{"content":[{{"image_url":{{"url":"data:image/png;base64,{image}"}}}},{{"text":"what is this"}}]}}]}}"#
        );
        let anthropic =
            format!(r#"{{"messages":[{{"content":[{{"source":{{"data": "{image}"}}}},{{"text":"what is this"}}]}}]}}"#);
        for body in [chat, anthropic] {
            let sample = PromptSample::of(body.as_bytes());
            assert!(sample.total_bytes < 200, "{}", sample.total_bytes);
            let tokens = Tokens::default().complete("gpt-4o", &sample, &Reply::default()).input;
            assert!((3..20).contains(&tokens), "{tokens}");
        }
        let anthropic =
            |kind: &str| format!(r#"{{"source":{{"type":"base64","media_type":"{kind}","data":"{image}"}}}}"#);
        for picture in [
            format!(r#"{{"image_url":{{"url": "data:image/png;base64,{image}"}}}}"#),
            format!(r#"{{"type":"input_image","image_url":"data:image/jpeg;base64,{image}","detail":"low"}}"#),
            anthropic("image/png"),
            format!(r#"{{"inlineData":{{"data": "{image}", "mimeType" : "image/webp"}}}}"#),
        ] {
            let sample = PromptSample::of(picture.as_bytes());
            assert_eq!((sample.inlined(), sample.doubtful_bytes()), (1, 0), "{}", &picture[..80]);
        }
        for other in [
            format!(r#"{{"content":"say ;base64,{image}"}}"#),
            format!(r#"{{"content":"data:image/png;base64,{image}"}}"#),
            format!(r#"{{"content":"\"url\":\"data:image/png;base64,{image}"}}"#),
            format!(r#"{{"content":"\"media_type\":\"image/png\"","data":"{image}"}}"#),
            format!(r#"{{"source":{{"media_type":"image/png"}},"data":"{image}"}}"#),
            anthropic("application/pdf"),
        ] {
            let sample = PromptSample::of(other.as_bytes());
            assert_eq!((sample.inlined(), sample.doubtful_bytes()), (1, image.len() as u64), "{}", &other[..80]);
        }
        let words = r#"{"data":"short words stay","x":";base64, not"}"#;
        assert_eq!(PromptSample::of(words.as_bytes()).total_bytes, words.len());
    }

    #[test]
    fn past_the_bound_tokens_are_estimated_from_the_length() {
        let reply = Reply { text: "word ".repeat(80), text_bytes: 400, ..Reply::default() };
        let tokens = Tokens::default();
        let at_the_bound = || tokens.complete("gpt-4o", &PromptSample::default(), &reply).output;
        tokens.counting.store(COUNTS_AT_ONCE - 1, Ordering::Relaxed);
        assert_eq!(at_the_bound(), 81);
        tokens.counting.store(COUNTS_AT_ONCE, Ordering::Relaxed);
        assert_eq!(at_the_bound(), 100);
        assert_eq!(tokens.counting.load(Ordering::Relaxed), COUNTS_AT_ONCE);
    }

    #[test]
    fn a_word_without_end_is_counted_in_time() {
        let word = "a".repeat(sprag_core::limits::REPLY_TEXT_BYTES);
        let begun = std::time::Instant::now();
        assert!(count(tokenizer("gpt-4o"), &word) > 1000);
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }

    #[test]
    fn pieces_cut_hardly_a_token() {
        let text = "The quick brown fox jumps over the lazy dog. ".repeat(200);
        let whole = tokenizer("gpt-4o").encode_ordinary(&text).len() as u64;
        assert_eq!(count(tokenizer("gpt-4o"), &text), whole);
        let umlauts = "ü".repeat(PIECE_BYTES);
        assert!(count(tokenizer("gpt-4o"), &umlauts) > 0);
    }

    #[test]
    fn keeps_what_was_reported_and_counts_the_rest() {
        let reported = Usage { input: 900, output: 1, ..Usage::default() };
        let reply =
            Reply { text: "one two three four".into(), text_bytes: 18, usage: Some(reported), ..Reply::default() };
        let usage = Tokens::default().complete("claude", &PromptSample::default(), &reply);
        assert_eq!((usage.input, usage.output), (900, 4));
    }

    #[test]
    fn long_prompts_are_scaled_up_from_their_beginning() {
        let body = format!("{{\"messages\":\"{}\"}}", "word ".repeat(20_000));
        let sample = PromptSample::of(body.as_bytes());
        assert_eq!(sample.text.len(), SAMPLE_BYTES);
        let tokens = Tokens::default().complete("gpt-4o", &sample, &Reply::default()).input;
        assert!((19_000..=21_000).contains(&tokens), "{tokens}");
    }
}
