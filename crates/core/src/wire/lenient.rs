//! Reading JSON that may not be what it should be.
//!
//! An answer passes whatever it looks like, so reading it must not fail over a field of the wrong type: such a field
//! counts as missing, and the rest (above all the usage) is still read. Leaves are kept as raw slices and decoded on
//! demand; [`Maybe`] and [`List`] do the same for objects and arrays.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::{json, limits};

/// A value not looked at yet; `null` and a missing field are both `None`.
pub(super) type Raw<'a> = Option<&'a RawValue>;

/// An object, or nothing where something else stood.
#[derive(Debug)]
pub(super) struct Maybe<T>(pub(super) Option<T>);

/// The objects of an array, up to [`limits::REPLY_LIST_ITEMS`]; empty where something else stood.
#[derive(Debug)]
pub(super) struct List<T>(pub(super) Vec<T>);

/// The string in `raw`.
pub(super) fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    let json = raw?.get();
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    Some(Cow::Owned(serde_json::from_str(json).unwrap_or_else(|_| lossy(json))))
}

/// What the inside of a string says; None when it is not sound.
pub(super) fn inside(raw: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(raw).ok()?;
    if memchr::memchr(b'\\', raw).is_none() {
        return Some(Cow::Borrowed(text));
    }
    serde_json::from_str(&format!("\"{text}\"")).ok().map(Cow::Owned)
}

/// Where the inside of the string in `raw` stands in `data`, which it was read from.
pub(super) fn place(raw: &RawValue, data: &str) -> Option<Range<usize>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    let start = (inner.as_ptr() as usize).checked_sub(data.as_ptr() as usize)?;
    (start + inner.len() <= data.len()).then(|| start..start + inner.len())
}

/// The string in `raw` if it is not empty.
pub(super) fn filled(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    text(raw).filter(|text| !text.is_empty())
}

/// The string in `raw`, or any other value as compact JSON text.
pub(super) fn text_or_json(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    text(raw).or_else(|| raw.map(|raw| Cow::Owned(compact(raw.get()))))
}

/// JSON text without the white space between its tokens; everything else as it was given.
///
/// Some providers indent a JSON body and not the same answer as a stream.
pub(super) fn compact(json: &str) -> String {
    let mut compacted = String::with_capacity(json.len());
    let (mut is_string, mut is_escaped, mut start) = (false, false, 0);
    for (at, byte) in json.bytes().enumerate() {
        if is_string {
            is_string = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
        } else if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            compacted.push_str(&json[start..at]);
            start = at + 1;
        } else {
            is_string = byte == b'"';
        }
    }
    compacted.push_str(&json[start..]);
    compacted
}

/// The whole number in `raw`; negative ones, fractions and those beyond 64 bits are no count.
pub(super) fn count(raw: Raw<'_>) -> Option<u64> {
    raw?.get().parse().ok()
}

/// The object in `raw`.
pub(super) fn object<'a, T: Deserialize<'a>>(raw: Raw<'a>) -> Option<T> {
    json::from_str::<Maybe<T>>(raw?.get()).ok()?.0
}

/// The objects of the array in `raw`.
pub(super) fn list<'a, T: Deserialize<'a>>(raw: Raw<'a>) -> Vec<T> {
    raw.and_then(|raw| json::from_str::<List<T>>(raw.get()).ok()).unwrap_or_default().0
}

/// `text` up to `bytes`, never inside a character.
pub(super) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// A string with half of a surrogate pair, as cut by a provider that counts in UTF-16.
fn lossy(json: &str) -> String {
    struct Bytes;
    impl<'de> Visitor<'de> for Bytes {
        type Value = String;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }
        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }
    serde_json::Deserializer::from_str(json).deserialize_bytes(Bytes).unwrap_or_default()
}

impl<T> Default for Maybe<T> {
    fn default() -> Maybe<T> {
        Maybe(None)
    }
}

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Shape<'de> for Object<T> {
            type Value = Maybe<T>;
            fn map<A: MapAccess<'de>>(map: A) -> Result<Maybe<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|value| Maybe(Some(value)))
            }
        }
        deserializer.deserialize_any(Any(PhantomData::<Object<T>>))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Array<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Shape<'de> for Array<T> {
            type Value = List<T>;
            fn seq<A: SeqAccess<'de>>(mut seq: A) -> Result<List<T>, A::Error> {
                let mut items = Vec::new();
                while items.len() < limits::REPLY_LIST_ITEMS {
                    match seq.next_element::<Maybe<T>>()? {
                        Some(item) => {
                            // As a rule there is one, and some are large.
                            items.reserve_exact(usize::from(items.is_empty() && item.0.is_some()));
                            items.extend(item.0);
                        }
                        None => return Ok(List(items)),
                    }
                }
                skip_seq(seq).map(|()| List(items))
            }
        }
        deserializer.deserialize_any(Any(PhantomData::<Array<T>>))
    }
}

/// What is done with an object and with an array; everything else becomes the default.
trait Shape<'de> {
    type Value: Default;

    fn map<A: MapAccess<'de>>(mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::Value::default())
    }

    fn seq<A: SeqAccess<'de>>(seq: A) -> Result<Self::Value, A::Error> {
        skip_seq(seq).map(|()| Self::Value::default())
    }
}

fn skip_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

struct Any<S>(PhantomData<S>);

impl<'de, S: Shape<'de>> Visitor<'de> for Any<S> {
    type Value = S::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<S::Value, A::Error> {
        S::map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<S::Value, A::Error> {
        S::seq(seq)
    }

    fn visit_unit<E>(self) -> Result<S::Value, E> {
        Ok(S::Value::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<S::Value, E> {
        Ok(S::Value::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<S::Value, E> {
        Ok(S::Value::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<S::Value, E> {
        Ok(S::Value::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<S::Value, E> {
        Ok(S::Value::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<S::Value, E> {
        Ok(S::Value::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default)]
    struct Outer<'a> {
        #[serde(borrow)]
        name: Raw<'a>,
        size: Raw<'a>,
        inner: Maybe<Inner<'a>>,
        items: List<Inner<'a>>,
    }

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default)]
    struct Inner<'a> {
        #[serde(borrow)]
        name: Raw<'a>,
    }

    #[test]
    fn a_field_of_the_wrong_type_is_only_missing() {
        for odd in ["null", "true", "-1", "1.5", "\"x\"", "[]", "[1,[2]]", "{}", "{\"a\":[1]}", "18446744073709551616"]
        {
            let json = format!(r#"{{"inner":{odd},"items":{odd},"size":7,"name":"n"}}"#);
            let outer: Outer<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(count(outer.size), Some(7), "{odd}");
            assert_eq!(text(outer.name).as_deref(), Some("n"), "{odd}");
            assert!(outer.inner.0.is_none_or(|inner| inner.name.is_none()), "{odd}");
            assert!(outer.items.0.is_empty(), "{odd}");
            let json = format!(r#"{{"name":{odd},"size":{odd},"items":[{odd},{{"name":"i"}}]}}"#);
            let outer: Outer<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(count(outer.size), None, "{odd}");
            assert_eq!(text(outer.items.0.last().unwrap().name).as_deref(), Some("i"), "{odd}");
        }
    }

    #[test]
    fn strings_are_decoded_and_half_surrogates_survive() {
        let raw = |json: &'static str| Some(serde_json::from_str::<&RawValue>(json).unwrap());
        assert!(matches!(text(raw(r#""plain é""#)), Some(Cow::Borrowed("plain é"))));
        assert_eq!(text(raw(r#""a\n\u00e9\ud83d\ude00""#)).as_deref(), Some("a\né😀"));
        let half = text(raw(r#""a\ud83d b""#)).unwrap();
        assert!(half.starts_with('a') && half.ends_with(" b"), "{half}");
        assert_eq!(text(raw("12")), None);
        assert_eq!(text_or_json(raw(r#"{"a": 1}"#)).as_deref(), Some(r#"{"a":1}"#));
    }

    #[test]
    fn compact_text_keeps_strings() {
        let json = "{\n \"a b\" : [ 1,\t2 ],\r\n \"c\\\\\": \"d \\\" e\" , \"é\": \" \" } ";
        assert_eq!(compact(json), "{\"a b\":[1,2],\"c\\\\\":\"d \\\" e\",\"é\":\" \"}");
        assert_eq!(compact("{\"cut \\"), "{\"cut \\");
    }

    #[test]
    fn lists_are_read_up_to_the_limit() {
        for (items, read) in [
            (limits::REPLY_LIST_ITEMS, limits::REPLY_LIST_ITEMS),
            (limits::REPLY_LIST_ITEMS + 1, limits::REPLY_LIST_ITEMS),
        ] {
            let json = format!(r#"{{"items":[{}],"size":1}}"#, vec!["{}"; items].join(","));
            let outer: Outer<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(outer.items.0.len(), read);
            assert_eq!(count(outer.size), Some(1));
        }
    }
}
