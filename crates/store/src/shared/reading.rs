//! Reads what scripts answer. An answer of another form is an error, never a wrong number.

use std::fmt;

use redis::Value;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use sprag_core::event::RunOrigin;
use sprag_core::id::RunId;

use super::{Away, Watch};

/// Parts of a list for which room is made before they are read.
const MOST_AHEAD: usize = 32;

/// The parts of an answer, one after the other.
pub(super) struct Parts(std::vec::IntoIter<Value>);

impl Parts {
    pub(super) fn of(value: Value) -> Result<Parts, Away> {
        match value {
            Value::Array(parts) => Ok(Parts(parts.into_iter())),
            _ => Err(odd("a list")),
        }
    }

    /// Those of an answer that is one packed value after the other, so many.
    pub(super) fn unpacked(value: Value, count: usize) -> Result<Parts, Away> {
        let bytes = bytes(value)?;
        let mut packed = rmp_serde::Deserializer::from_read_ref(&bytes);
        let parts = (0..count).map(|_| Unpacked::deserialize(&mut packed).map(|part| part.0));
        let parts: Vec<Value> = parts.collect::<Result<_, _>>().map_err(|_| odd("packed values"))?;
        Ok(Parts(parts.into_iter()))
    }

    pub(super) fn value(&mut self) -> Result<Value, Away> {
        self.0.next().ok_or_else(|| odd("more parts"))
    }

    pub(super) fn number(&mut self) -> Result<i64, Away> {
        number(self.value()?)
    }

    /// A number of things.
    pub(super) fn count(&mut self) -> Result<u32, Away> {
        Ok(u32::try_from(self.number()?.max(0)).unwrap_or(u32::MAX))
    }

    pub(super) fn real(&mut self) -> Result<f64, Away> {
        self.text()?.parse().map_err(|_| odd("a number"))
    }

    pub(super) fn text(&mut self) -> Result<String, Away> {
        String::from_utf8(bytes(self.value()?)?).map_err(|_| odd("a text"))
    }

    pub(super) fn optional_bytes(&mut self) -> Result<Option<Vec<u8>>, Away> {
        match self.value()? {
            Value::Nil => Ok(None),
            value => bytes(value).map(Some),
        }
    }

    pub(super) fn optional_text(&mut self) -> Result<Option<String>, Away> {
        let bytes = self.optional_bytes()?;
        bytes.map(|bytes| String::from_utf8(bytes).map_err(|_| odd("a text"))).transpose()
    }

    pub(super) fn run_id(&mut self) -> Result<RunId, Away> {
        RunId::parse(&self.text()?).map_err(|_| odd("the id of a run"))
    }

    pub(super) fn origin(&mut self) -> Result<RunOrigin, Away> {
        let text = self.text()?;
        serde_json::from_value(serde_json::Value::String(text)).map_err(|_| odd("how a run was recognised"))
    }

    pub(super) fn parts(&mut self) -> Result<Parts, Away> {
        Parts::of(self.value()?)
    }

    /// The parts of each part.
    pub(super) fn each<T>(&mut self, read: impl Fn(Parts) -> Result<T, Away>) -> Result<Vec<T>, Away> {
        self.parts()?.0.map(|value| read(Parts::of(value)?)).collect()
    }

    pub(super) fn totals(&mut self) -> Result<[i64; 11], Away> {
        totals(self.value()?)
    }

    pub(super) fn watch(&mut self) -> Result<Option<Watch>, Away> {
        self.optional_bytes()?.map(watch).transpose()
    }
}

/// A value as Redis would answer it: nothing for false, and whole numbers.
struct Unpacked(Value);

impl<'de> Deserialize<'de> for Unpacked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unpacked, D::Error> {
        deserializer.deserialize_any(Unpacking).map(Unpacked)
    }
}

struct Unpacking;

impl<'de> Visitor<'de> for Unpacking {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, bytes, a list or nothing")
    }

    fn visit_bool<E: Error>(self, is_there: bool) -> Result<Value, E> {
        Ok(if is_there { Value::Int(1) } else { Value::Nil })
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Int(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Int(number as i64))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::BulkString(text.as_bytes().to_vec()))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Value, E> {
        Ok(Value::BulkString(bytes.to_vec()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Value, A::Error> {
        let mut list = Vec::with_capacity(parts.size_hint().unwrap_or_default().min(MOST_AHEAD));
        while let Some(part) = parts.next_element::<Unpacked>()? {
            list.push(part.0);
        }
        Ok(Value::Array(list))
    }
}

pub(super) fn watch(value: Vec<u8>) -> Result<Watch, Away> {
    let (version, bytes) = value.split_at_checked(16).ok_or_else(|| odd("a version"))?;
    let version = str::from_utf8(version).ok().and_then(|hex| u64::from_str_radix(hex, 16).ok());
    Ok(Watch { version: version.ok_or_else(|| odd("a version"))?, bytes: bytes.to_vec() })
}

pub(super) fn totals(value: Value) -> Result<[i64; 11], Away> {
    let numbers: Vec<i64> = Parts::of(value)?.0.map(number).collect::<Result<_, _>>()?;
    numbers.try_into().map_err(|_| odd("eleven numbers"))
}

pub(super) fn bytes(value: Value) -> Result<Vec<u8>, Away> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.into_bytes()),
        _ => Err(odd("bytes")),
    }
}

fn number(value: Value) -> Result<i64, Away> {
    match value {
        Value::Int(number) => Ok(number),
        _ => Err(odd("a number")),
    }
}

fn odd(expected: &str) -> Away {
    Away::Failed(format!("its answer has another form than this version of Sprag reads: expected {expected}"))
}
