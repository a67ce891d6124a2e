//! The spellings of a model's name that mean the same price, from the most to the least specific.
//!
//! Only known prefixes and suffixes come off. What stays must be in the list as a whole: a name is never matched by
//! its beginning. Tags that change the price (`:free`, `:online`, a region's `eu/`) stay.

use std::borrow::Cow;
use std::ops::Range;

use crate::limits::MODEL_NAME_BYTES;

/// Every spelling of one name. They are ranges of one text, so there is one allocation for all of them.
#[derive(Debug)]
pub(super) struct Spellings {
    text: String,
    starts: Vec<usize>,
    ends: Vec<(usize, Ending)>,
    implied: Option<&'static str>,
    is_regional: bool,
}

/// What was taken off the end to get a spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Nothing, or what no list has: a fine-tune's owner, `:thinking`, `@default`, Bedrock's `-v1:0`.
    Named,
    /// A date: another snapshot may have been meant.
    Undated,
    /// `-latest`.
    Latest,
}

/// Prefixes that say who serves or made the model, with the provider whose list to look in.
const PREFIXES: &[(&str, Option<&str>)] = &[
    ("accounts/fireworks/models/", Some("fireworks")),
    ("alibaba/", Some("dashscope")),
    ("amazon/", Some("bedrock")),
    ("anthropic/", Some("anthropic")),
    ("azure/", Some("azure")),
    ("azure_ai/", Some("azure")),
    ("bedrock/", Some("bedrock")),
    ("cerebras/", Some("cerebras")),
    ("cohere/", Some("cohere")),
    ("dashscope/", Some("dashscope")),
    ("deepinfra/", Some("deepinfra")),
    ("deepseek-ai/", Some("deepseek")),
    ("deepseek/", Some("deepseek")),
    ("fireworks/", Some("fireworks")),
    ("fireworks_ai/", Some("fireworks")),
    ("gemini/", Some("gemini")),
    ("google/", Some("gemini")),
    ("groq/", Some("groq")),
    ("meta-llama/", None),
    ("minimax/", Some("minimax")),
    ("minimaxai/", Some("minimax")),
    ("mistral/", Some("mistral")),
    ("mistralai/", Some("mistral")),
    ("models/", Some("gemini")),
    ("moonshot/", Some("moonshot")),
    ("moonshotai/", Some("moonshot")),
    ("nvidia/", None),
    ("openai/", Some("openai")),
    ("openrouter/", None),
    ("perplexity/", Some("perplexity")),
    ("qwen/", Some("dashscope")),
    ("sambanova/", Some("sambanova")),
    ("together/", Some("together")),
    ("together_ai/", Some("together")),
    ("vertex/", Some("vertex")),
    ("vertex_ai/", Some("vertex")),
    ("x-ai/", Some("xai")),
    ("xai/", Some("xai")),
    ("z-ai/", Some("zai")),
    ("zai-org/", Some("zai")),
    ("zai/", Some("zai")),
];
/// Bedrock's regions cost more than its plain names: a row under one of them stands for that region only.
const BEDROCK_REGIONS: &[&str] = &["us.", "eu.", "apac.", "au.", "jp.", "ca.", "in.", "us-gov.", "global."];
/// Bedrock's makers. `deepseek.` is not one of them: what follows it, `v3.2` or `r1`, names nothing on its own.
const BEDROCK_MAKERS: &[&str] = &[
    "amazon.",
    "anthropic.",
    "cohere.",
    "google.",
    "meta.",
    "minimax.",
    "mistral.",
    "moonshotai.",
    "nvidia.",
    "openai.",
    "qwen.",
    "xai.",
    "zai.",
];
/// Tags that choose how the model is served or answers, at the same token price.
const FREE_TAGS: &[&str] = &[":thinking", ":beta", "@default", "@latest"];
/// Routers put prefixes before prefixes, but not without end.
const MOST_PREFIXES: usize = 4;

impl Spellings {
    /// The spellings of `model` as `provider` was asked for it; nothing when it is too long to be a name.
    pub(super) fn of(provider: &str, model: &str) -> Option<Spellings> {
        if model.is_empty() || model.len() > MODEL_NAME_BYTES {
            return None;
        }
        let text = spelled(model);
        let mut spellings =
            Spellings { starts: vec![0], ends: Vec::with_capacity(4), implied: None, is_regional: false, text };
        let is_bedrock = spellings.strip_prefixes(provider);
        spellings.strip_suffixes(is_bedrock);
        Some(spellings)
    }

    /// Every spelling with what its end lost. Prefixes go after suffixes: a region's own row wins over the plain one.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Ending)> {
        self.spelled_from(self.starts.len())
    }

    /// The name as a whole, and without each of its prefixes.
    fn without_prefixes(&self) -> impl Iterator<Item = &str> {
        self.starts.iter().filter_map(|&start| self.text.get(start..)).filter(|name| !name.is_empty())
    }

    fn spelled_from(&self, starts: usize) -> impl Iterator<Item = (&str, Ending)> {
        self.starts.iter().take(starts).flat_map(move |&start| {
            self.ends.iter().filter_map(move |&(end, ending)| {
                self.text.get(start..end).filter(|name| !name.is_empty()).map(|name| (name, ending))
            })
        })
    }

    /// The spellings under which a row of the list is found. A row of one region keeps its prefix.
    pub(super) fn of_row(&self) -> impl Iterator<Item = (&str, Ending)> {
        let starts = if self.is_regional { 1 } else { self.starts.len() };
        self.spelled_from(starts)
    }

    /// The provider that the name points at.
    pub(super) fn implied(&self) -> Option<&'static str> {
        self.implied
    }

    /// Takes prefixes off one by one and says whether one was a Bedrock maker.
    fn strip_prefixes(&mut self, provider: &str) -> bool {
        let mut start = 0;
        let mut is_bedrock = false;
        if let Some(after) = after_resource_path(&self.text) {
            self.implied = Some(if self.text.starts_with("arn:") { "bedrock" } else { "vertex" });
            start = after;
            self.starts.push(start);
        }
        for _ in 0..MOST_PREFIXES {
            let Some(rest) = self.text.get(start..) else { break };
            let is_named = |prefix: &&str| rest.starts_with(*prefix);
            // Most names have neither sign, and then no prefix to look for.
            let (has_slash, has_dot) = (rest.contains('/'), rest.contains('.'));
            let (length, implied) = if !has_slash && !has_dot {
                break;
            } else if let Some(region) = BEDROCK_REGIONS.iter().find(|p| has_dot && is_named(p)) {
                self.is_regional = true;
                (region.len(), Some("bedrock"))
            } else if let Some(maker) = BEDROCK_MAKERS.iter().find(|p| has_dot && is_named(p)) {
                is_bedrock = true;
                (maker.len(), Some("bedrock"))
            } else if let Some((prefix, implied)) = PREFIXES.iter().find(|(p, _)| has_slash && is_named(p)) {
                (prefix.len(), *implied)
            } else if !provider.is_empty() && rest.strip_prefix(provider).is_some_and(|rest| rest.starts_with('/')) {
                (provider.len() + 1, None)
            } else {
                break;
            };
            self.implied = self.implied.or(implied);
            start += length;
            self.starts.push(start);
        }
        is_bedrock
    }

    fn strip_suffixes(&mut self, is_bedrock: bool) {
        let mut end = self.text.len();
        self.ends.push((end, Ending::Named));
        let name_at = self.starts.last().copied().unwrap_or(0);
        let tagged = fine_tune_base(&self.text, name_at)
            .or_else(|| FREE_TAGS.iter().find_map(|tag| self.text.strip_suffix(tag)).map(str::len));
        if let Some(base) = tagged {
            end = base;
            self.ends.push((end, Ending::Named));
        }
        if let Some(base) = without_version(self.slice(0..end), is_bedrock) {
            end = base;
            self.ends.push((end, Ending::Named));
        }
        if let Some(base) = without_date(self.slice(0..end)) {
            self.ends.push((base, Ending::Undated));
        } else if let Some(base) = self.slice(0..end).strip_suffix("-latest") {
            self.ends.push((base.len(), Ending::Latest));
        }
    }

    fn slice(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or("")
    }
}

/// The spellings that differ from a name only in who serves or made the model; nothing when it is too long to be a name.
pub(crate) fn names_without_prefixes(model: &str) -> Option<Vec<Cow<'_, str>>> {
    if is_plain(model) {
        return Some(vec![Cow::Borrowed(model)]);
    }
    let owned = |name: &str| Cow::Owned(name.to_owned());
    Spellings::of("", model).map(|spellings| spellings.without_prefixes().map(owned).collect())
}

/// One name for all spellings that differ only in who serves or made the model; nothing when it is too long to be a name.
#[must_use]
pub fn plain_model_name(model: &str) -> Option<Cow<'_, str>> {
    if is_plain(model) {
        return Some(Cow::Borrowed(model));
    }
    names_without_prefixes(model).and_then(|mut names| names.pop())
}

/// Whether a name is its only spelling: there is nothing to take off, and it is spelled as all are compared. Most are.
pub(crate) fn is_plain(model: &str) -> bool {
    let is_compared = |byte: u8| !byte.is_ascii_uppercase() && !matches!(byte, b'.' | b'/' | b'@');
    (1..=MODEL_NAME_BYTES).contains(&model.len()) && model.bytes().all(is_compared)
}

/// A name in the characters that all lists are compared in: lower case, Vertex's `@20250929` as `-20250929`, and
/// `claude-sonnet-4.5`, as routers write it, as `claude-sonnet-4-5`.
pub(crate) fn spelled(model: &str) -> String {
    let mut text = model.to_ascii_lowercase();
    if let Some(at) = text.find('@')
        && text.get(at + 1..).is_some_and(|rest| rest.starts_with("20"))
    {
        text.replace_range(at..=at, "-");
    }
    if text.contains("claude-") && text.contains('.') {
        let is_digit = |at: Option<usize>| at.and_then(|at| text.as_bytes().get(at)).is_some_and(u8::is_ascii_digit);
        let is_point = |at: usize| is_digit(at.checked_sub(1)) && is_digit(at.checked_add(1));
        text = text.char_indices().map(|(at, c)| if c == '.' && is_point(at) { '-' } else { c }).collect();
    }
    text
}

/// Where the name starts in an ARN of Bedrock or in a resource path of Vertex.
fn after_resource_path(text: &str) -> Option<usize> {
    if text.starts_with("arn:") {
        let markers = ["inference-profile/", "foundation-model/"];
        return markers.into_iter().find_map(|marker| text.find(marker).map(|at| at + marker.len()));
    }
    let publisher = text.find("publishers/")?;
    let models = text.get(publisher..)?.find("/models/")?;
    Some(publisher + models + "/models/".len())
}

/// Where the base ends in `ft:base:owner::id`. The base keeps its `ft:`, because a fine-tune has its own price.
fn fine_tune_base(text: &str, name_at: usize) -> Option<usize> {
    let base_at = name_at + "ft:".len();
    let base = text.get(name_at..)?.strip_prefix("ft:")?;
    base.find(':').map(|colon| base_at + colon)
}

/// Where the name ends without Bedrock's version. `-v2:0` is another model (`titan-embed-text-v2:0`) unless a date
/// before it already says which one; `-v1` alone is a version only behind a maker's prefix and a number.
fn without_version(name: &str, is_bedrock: bool) -> Option<usize> {
    if let Some(base) = name.strip_suffix("-v1:0") {
        return Some(base.len());
    }
    if is_bedrock && let Some(base) = name.strip_suffix("-v1") {
        return base.bytes().any(|byte| byte.is_ascii_digit()).then_some(base.len());
    }
    let (base, version) = name.rsplit_once("-v")?;
    let (major, minor) = version.split_once(':')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(major) && is_number(minor) && without_date(base).is_some()).then_some(base.len())
}

/// Where the name ends without `-2024-08-06` or `-20240806`.
fn without_date(name: &str) -> Option<usize> {
    let with_dashes = name.len().checked_sub("-2024-08-06".len());
    let compact = name.len().checked_sub("-20240806".len());
    with_dashes.filter(|&at| name.get(at..).is_some_and(is_dashed_date)).or_else(|| {
        compact.filter(|&at| name.get(at..).and_then(|date| date.strip_prefix('-')).is_some_and(is_compact_date))
    })
}

fn is_dashed_date(text: &str) -> bool {
    match text.as_bytes() {
        [b'-', y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] => is_day([*y1, *y2, *y3, *y4, *m1, *m2, *d1, *d2]),
        _ => false,
    }
}

fn is_compact_date(text: &str) -> bool {
    text.as_bytes().try_into().is_ok_and(is_day)
}

/// Whether the digits are a day of this century.
fn is_day(digits: [u8; 8]) -> bool {
    let [y1, y2, _, _, m1, m2, d1, d2] = digits;
    let two = |tens: u8, ones: u8| (tens - b'0') * 10 + (ones - b'0');
    digits.iter().all(u8::is_ascii_digit)
        && (y1, y2) == (b'2', b'0')
        && (1..=12).contains(&two(m1, m2))
        && (1..=31).contains(&two(d1, d2))
}
