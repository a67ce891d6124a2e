//! A [`Reader`] as serde asks for values.

use std::fmt::Display;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::reader::{Odd, RawString, Reader};
use super::string::unescaped;

/// By this name `serde_json` asks for a value as it stands in the text. A test holds that it still does.
const RAW_VALUE: &str = "$serde_json::private::RawValue";
/// Lists and objects inside one another that are read into values. `serde_json` takes some more.
const DEPTH: u8 = 64;

impl std::error::Error for Odd {}

impl Display for Odd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not to be read quickly")
    }
}

impl serde::de::Error for Odd {
    fn custom<T: Display>(_: T) -> Odd {
        Odd
    }
}

impl<'de> Reader<'de> {
    fn object<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Odd> {
        let is_over = !self.enter(b'{')?;
        self.within(b'{', is_over, |members| visitor.visit_map(members))
    }

    fn list<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Odd> {
        let is_over = !self.enter(b'[')?;
        self.within(b'[', is_over, |elements| visitor.visit_seq(elements))
    }

    /// Lets somebody read what is inside; all of it, or it is odd.
    #[inline]
    fn within<T>(
        &mut self,
        open: u8,
        is_over: bool,
        read: impl FnOnce(&mut Inside<'_, 'de>) -> Result<T, Odd>,
    ) -> Result<T, Odd> {
        if self.depth == DEPTH {
            return Err(Odd);
        }
        self.depth += 1;
        let mut inside = Inside { reader: self, open, is_first: true, is_over };
        let value = read(&mut inside)?;
        if !inside.is_over {
            return Err(Odd);
        }
        self.depth -= 1;
        Ok(value)
    }

    fn text<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Odd> {
        let RawString { inner, is_escaped } = self.string()?;
        if !is_escaped {
            return visitor.visit_borrowed_str(inner);
        }
        let slowly = || serde_json::from_str(&format!("\"{inner}\"")).ok();
        visitor.visit_string(unescaped(inner).or_else(slowly).ok_or(Odd)?)
    }

    fn whole_number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Odd> {
        match self.number()? {
            ("-0", _) | (_, false) => Err(Odd),
            (number, true) if number.starts_with('-') => visitor.visit_i64(number.parse().map_err(|_| Odd)?),
            (number, true) => visitor.visit_u64(number.parse().map_err(|_| Odd)?),
        }
    }
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Odd;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        match self.token()? {
            b'"' => self.text(visitor),
            b'{' => self.object(visitor),
            b'[' => self.list(visitor),
            b'n' => self.word("null").and_then(|()| visitor.visit_unit()),
            b't' => self.word("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.word("false").and_then(|()| visitor.visit_bool(false)),
            _ => self.whole_number(visitor),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        match self.token()? {
            b'n' => self.word("null").and_then(|()| visitor.visit_none()),
            _ => visitor.visit_some(self),
        }
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Odd> {
        match name {
            RAW_VALUE => visitor.visit_map(RawMember(Some(self.raw()?))),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Odd> {
        self.object(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        self.object(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        self.list(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        self.text(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        self.text(visitor)
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        self.raw()?;
        visitor.visit_unit()
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Odd> {
        Err(Odd)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Odd> {
        Err(Odd)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Odd> {
        Err(Odd)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char unit unit_struct tuple tuple_struct identifier
    }
}

/// The inside of an object or a list.
struct Inside<'r, 'de> {
    reader: &'r mut Reader<'de>,
    open: u8,
    is_first: bool,
    is_over: bool,
}

impl Inside<'_, '_> {
    /// Whether one more follows.
    #[inline]
    fn goes_on(&mut self) -> Result<bool, Odd> {
        if !self.is_over && !std::mem::take(&mut self.is_first) {
            self.is_over = !self.reader.goes_on(self.open)?;
        }
        Ok(!self.is_over)
    }
}

impl<'de> MapAccess<'de> for &mut Inside<'_, 'de> {
    type Error = Odd;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Odd> {
        if !self.goes_on()? {
            return Ok(None);
        }
        match self.reader.key()? {
            RawString { inner, is_escaped: false } => seed.deserialize(Key(inner)).map(Some),
            _ => Err(Odd),
        }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Odd> {
        seed.deserialize(&mut *self.reader)
    }
}

impl<'de> SeqAccess<'de> for &mut Inside<'_, 'de> {
    type Error = Odd;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Odd> {
        if !self.goes_on()? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

/// A text that is there already: the key of a member, or a value as it stands in the text.
struct Key<'de>(&'de str);

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Odd;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        visitor.visit_borrowed_str(self.0)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// A value as it stands in the text, in the form in which `serde_json` wants it.
struct RawMember<'de>(Option<&'de str>);

impl<'de> MapAccess<'de> for RawMember<'de> {
    type Error = Odd;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Odd> {
        match self.0 {
            Some(_) => seed.deserialize(Key(RAW_VALUE)).map(Some),
            None => Ok(None),
        }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Odd> {
        seed.deserialize(Key(self.0.take().ok_or(Odd)?))
    }
}
