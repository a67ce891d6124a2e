//! Hashes of what a value says, whatever its form.

use serde_json::Value;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::json::{self, Odd, RawString, Reader, unescaped};

/// Members of an object that are sorted without room of their own.
const FEW: usize = 16;
/// Digits of a number that is written as it stands.
const DIGITS: usize = 18;
/// Lists and objects inside one another that are hashed as they stand.
const DEPTH: usize = 32;

/// The members of an item, cut apart in one pass. Odd where an item has many, has one twice, or is not plain JSON.
pub(super) struct Members<'a> {
    list: [(&'a str, Member<'a>); FEW],
    count: usize,
}

/// The value of a member.
#[derive(Clone, Copy, Debug)]
enum Member<'a> {
    Text(RawString<'a>),
    /// As it stands there.
    Other(&'a str),
}

impl Default for Members<'_> {
    fn default() -> Self {
        Members { list: [("", Member::Other("")); FEW], count: 0 }
    }
}

impl<'a> Members<'a> {
    /// Reads an item into what has none yet: it is large, and stays where it is.
    pub(super) fn read(&mut self, text: &'a str) -> Result<(), Odd> {
        let mut reader = Reader::new(text);
        let mut goes_on = reader.enter(b'{')?;
        while goes_on {
            let key = reader.key()?;
            if key.is_escaped || self.count == FEW {
                return Err(Odd);
            }
            let value = match reader.token()? {
                b'"' => Member::Text(reader.string()?),
                _ => Member::Other(reader.raw()?),
            };
            self.list[self.count] = (key.inner, value);
            self.count += 1;
            goes_on = reader.goes_on(b'{')?;
        }
        reader.finish()?;
        let members = &mut self.list[..self.count];
        members.sort_unstable_by_key(|member| member.0);
        if members.windows(2).any(|two| two[0].0 == two[1].0) { Err(Odd) } else { Ok(()) }
    }

    /// The text of a member, where it has one without escapes; None where there is no such member, or it is null.
    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, Odd> {
        match self.list[..self.count].iter().find(|member| member.0 == key) {
            None | Some((_, Member::Other("null"))) => Ok(None),
            Some((_, Member::Text(RawString { inner, is_escaped: false }))) => Ok(Some(inner)),
            Some(_) => Err(Odd),
        }
    }

    /// The hash of an item that was given to the model. Ids and states that a client adds to its own items do not count,
    /// nor does the word `message` that it may leave out.
    pub(super) fn hash(&self) -> Result<u64, Odd> {
        let mut whole = 8;
        for (key, value) in &self.list[..self.count] {
            let counts = match (*key, value) {
                ("id" | "status" | "cache_control", _) | (_, Member::Other("null")) => false,
                ("type", Member::Text(RawString { is_escaped: true, .. })) => return Err(Odd),
                ("type", Member::Text(kind)) => kind.inner != "message",
                _ => true,
            };
            // Also what does not count must be sound.
            let value = match value {
                Member::Text(string) => hash_of_string(*string)?,
                Member::Other(raw) => quick_value(&mut Reader::new(raw), 1)?,
            };
            if counts {
                whole = mix(mix(whole, xxh3_64(key.as_bytes())), value);
            }
        }
        Ok(whole)
    }
}

/// The hash of an item whose members are not to be had in one pass.
pub(super) fn canonical_item(raw: &RawValue) -> u64 {
    quick_item(raw.get()).unwrap_or_else(|Odd| slow_item(raw))
}

/// The hash of arguments; of what is no JSON that of its bytes.
pub(super) fn canonical_arguments(arguments: &str) -> u64 {
    let mut reader = Reader::new(arguments);
    let quick = quick_value(&mut reader, 0).and_then(|hash| reader.finish().map(|()| hash));
    quick.unwrap_or_else(|Odd| {
        json::from_str::<Value>(arguments).map_or_else(|_| xxh3_64(arguments.as_bytes()), |value| canonical(&value))
    })
}

fn slow_item(raw: &RawValue) -> u64 {
    let Ok(mut value) = json::from_str::<Value>(raw.get()) else { return xxh3_64(raw.get().as_bytes()) };
    if let Some(item) = value.as_object_mut() {
        item.remove("id");
        item.remove("status");
        if item.get("type").and_then(Value::as_str) == Some("message") {
            item.remove("type");
        }
    }
    canonical(&value)
}

/// The hash that an item has which holds nothing but this text of the user.
pub(super) fn user_text(text: &str) -> u64 {
    canonical(&serde_json::json!({"role": "user", "content": text}))
}

/// The hash of a value: key order, nulls, cache marks and "a string or one text block" do not matter.
pub(super) fn canonical(value: &Value) -> u64 {
    match value {
        Value::Null => 2,
        Value::Bool(b) => 3 + u64::from(*b),
        Value::Number(n) => xxh3_64_with_seed(n.to_string().as_bytes(), 5),
        Value::String(s) => xxh3_64_with_seed(s.as_bytes(), 6),
        Value::Array(list) => match list.as_slice() {
            [Value::Object(only)] if is_plain_text(only) => only.get("text").map_or(7, canonical),
            list => list.iter().fold(7, |hash, v| mix(hash, canonical(v))),
        },
        // The map is sorted by key.
        Value::Object(map) => map
            .iter()
            .filter(|(key, v)| !v.is_null() && key.as_str() != "cache_control")
            .fold(8, |hash, (key, v)| mix(mix(hash, xxh3_64(key.as_bytes())), canonical(v))),
    }
}

/// `{"type":"text","text":"…"}`, with or without a cache mark.
fn is_plain_text(map: &serde_json::Map<String, Value>) -> bool {
    map.get("text").is_some_and(Value::is_string)
        && map.iter().all(|(key, v)| match key.as_str() {
            "type" => matches!(v.as_str(), Some("text" | "input_text")),
            "text" | "cache_control" => true,
            _ => v.is_null(),
        })
}

/// The same as [`slow_item`] from the text itself. Odd is what would be written otherwise than it stands there.
fn quick_item(text: &str) -> Result<u64, Odd> {
    let mut members = Members::default();
    members.read(text)?;
    members.hash()
}

/// The hash of a string.
fn hash_of_string(string: RawString<'_>) -> Result<u64, Odd> {
    if !string.is_escaped {
        return Ok(xxh3_64_with_seed(string.inner.as_bytes(), 6));
    }
    Ok(xxh3_64_with_seed(unescaped(string.inner).ok_or(Odd)?.as_bytes(), 6))
}

/// As [`canonical`].
fn quick_value(reader: &mut Reader<'_>, depth: usize) -> Result<u64, Odd> {
    match reader.token()? {
        b'"' => hash_of_string(reader.string()?),
        b'{' => quick_object(reader, depth).map(|object| object.hash),
        b'[' => quick_list(reader, depth),
        b'n' => reader.word("null").map(|()| 2),
        b'f' => reader.word("false").map(|()| 3),
        b't' => reader.word("true").map(|()| 4),
        _ => match reader.number()? {
            (number, true) if number.len() <= DIGITS && number != "-0" => Ok(xxh3_64_with_seed(number.as_bytes(), 5)),
            _ => Err(Odd),
        },
    }
}

fn quick_list(reader: &mut Reader<'_>, depth: usize) -> Result<u64, Odd> {
    if depth == DEPTH {
        return Err(Odd);
    }
    let (mut hash, mut count, mut only_text) = (7, 0, None);
    let mut goes_on = reader.enter(b'[')?;
    while goes_on {
        let value = if reader.token()? == b'{' {
            let object = quick_object(reader, depth + 1)?;
            only_text = object.plain_text;
            object.hash
        } else {
            quick_value(reader, depth + 1)?
        };
        (hash, count) = (mix(hash, value), count + 1);
        goes_on = reader.goes_on(b'[')?;
    }
    Ok(only_text.filter(|_| count == 1).unwrap_or(hash))
}

struct QuickObject {
    hash: u64,
    /// The hash of its text, where it is nothing but that.
    plain_text: Option<u64>,
}

fn quick_object(reader: &mut Reader<'_>, depth: usize) -> Result<QuickObject, Odd> {
    if depth == DEPTH {
        return Err(Odd);
    }
    let (mut members, mut count) = ([("", 0, false); FEW], 0);
    let (mut text, mut is_plain) = (None, true);
    let mut goes_on = reader.enter(b'{')?;
    while goes_on {
        let key = reader.key()?;
        if key.is_escaped || count == FEW {
            return Err(Odd);
        }
        let first = reader.token()?;
        let mut ahead = *reader;
        let value = match key.inner {
            "type" if first == b'"' => ahead.string()?,
            _ => key,
        };
        if value.is_escaped {
            return Err(Odd);
        }
        let value = value.inner;
        let hash = quick_value(reader, depth + 1)?;
        match key.inner {
            "type" => is_plain &= matches!(value, "text" | "input_text"),
            "text" => text = (first == b'"').then_some(hash),
            "cache_control" => {}
            _ => is_plain &= first == b'n',
        }
        let counts = first != b'n' && key.inner != "cache_control";
        members[count] = (key.inner, hash, counts);
        count += 1;
        goes_on = reader.goes_on(b'{')?;
    }
    let members = &mut members[..count];
    members.sort_unstable_by_key(|member| member.0);
    if members.windows(2).any(|two| two[0].0 == two[1].0) {
        return Err(Odd);
    }
    let counted = members.iter().filter(|member| member.2);
    let hash = counted.fold(8, |hash, (key, value, _)| mix(mix(hash, xxh3_64(key.as_bytes())), *value));
    Ok(QuickObject { hash, plain_text: text.filter(|_| is_plain) })
}

pub(super) fn mix(a: u64, b: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&a.to_le_bytes());
    bytes[8..].copy_from_slice(&b.to_le_bytes());
    xxh3_64(&bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            "-?(0|[1-9][0-9]{0,20})(\\.[0-9])?",
            "\"([a-zé ]|\\\\[ntrbf\"/\\\\]|\\\\u00e9){0,6}\"",
            Just("\"text\"".to_owned()),
            Just("\"message\"".to_owned()),
            Just("true".to_owned()),
            Just("false".to_owned()),
            Just("null".to_owned()),
        ];
        leaf.prop_recursive(4, 24, 6, |inner| {
            let key = prop_oneof!["type", "text", "cache_control", "id", "status", "[a-c]", "\\\\u0061"];
            let member = (key, inner.clone()).prop_map(|(key, value)| format!("\"{key}\" : {value}"));
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(|values| format!("[{}]", values.join(" ,\n"))),
                proptest::collection::vec(member, 0..6).prop_map(|members| format!("{{ {}}}", members.join(", "))),
            ]
        })
    }

    proptest! {
        #[test]
        fn both_ways_agree(text in json()) {
            let raw: &RawValue = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(canonical_item(raw), slow_item(raw));
            let value: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(canonical_arguments(&text), canonical(&value));
        }
    }

    #[test]
    fn what_does_not_count_must_be_sound() {
        for text in [r#"{"role":"user","id":"\ud800"}"#, r#"{"role":"user","status":1e999}"#] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert_eq!(canonical_item(raw), slow_item(raw), "{text}");
            assert_eq!(slow_item(raw), xxh3_64(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn ordinary_items_are_hashed_as_they_stand() {
        for text in [
            r#"{"role":"user","content":"go\n on","id":"m"}"#,
            r#"{"type":"message","id":"m","role":"user","content":[{"type":"text","text":"go","cache_control":{"a":1}}]}"#,
            r#"{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
        ] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert_eq!(quick_item(text), Ok(slow_item(raw)), "{text}");
        }
    }
}
