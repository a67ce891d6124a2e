//! Which model a request names, in its path or in a body that is not understood otherwise.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::Dialect;
use crate::limits::FALLBACK_MODELS;

/// The model that a path names: `/models/NAME:method` and `/deployments/NAME/…`. Providers do not look for it in the
/// body then.
pub(super) fn model_in_path(dialect: Dialect, path: &str) -> Option<Cow<'_, str>> {
    // Paths are short: a search that has to be prepared takes longer than this one.
    let after = |marker: &str| {
        let at = path.as_bytes().windows(marker.len()).position(|window| window == marker.as_bytes())?;
        path.get(at + marker.len()..)
    };
    let name = match dialect {
        Dialect::Gemini => {
            let named = after("/models/").or_else(|| path.rsplit('/').next())?;
            named.rsplit_once(':')?.0
        }
        _ => after("/deployments/")?.split('/').next()?,
    };
    (!name.is_empty()).then_some(Cow::Borrowed(name))
}

/// The models that a request names which is not understood: in its path, and as `model` at the top of a JSON body.
/// Nothing where there is none to be found. A body that says it twice names both.
#[must_use]
pub fn named_models<'a>(path: &'a str, body: &[u8]) -> Vec<Cow<'a, str>> {
    let has_verb = path.rsplit('/').next().is_some_and(|last| last.contains(':')) && path.contains("/models/");
    let in_path = model_in_path(if has_verb { Dialect::Gemini } else { Dialect::Opaque }, path);
    let mut names: Vec<Cow<'a, str>> = in_path.into_iter().collect();
    // Anything else is an upload, and may be large.
    if names.is_empty() && body.trim_ascii_start().first() == Some(&b'{') {
        let _ = serde_json::Deserializer::from_slice(body).deserialize_map(Top(&mut names));
    }
    names
}

struct Top<'n, 'a>(&'n mut Vec<Cow<'a, str>>);

impl<'de> Visitor<'de> for Top<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if key != "model" {
                map.next_value::<IgnoredAny>()?;
            } else if let serde_json::Value::String(name) = map.next_value()? {
                // Past the bound the last one counts, for that is the one that parsers keep.
                self.0.truncate(FALLBACK_MODELS - 1);
                self.0.push(Cow::Owned(name));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_where_requests_name_it() {
        let images = "/v1/images/generations";
        let cases: [(&str, &str, &[&str]); 11] = [
            (images, r#"{"prompt":"a cat","model":"dall-e-3"}"#, &["dall-e-3"]),
            (images, r#" {"mod\u0065l":"a","model":"b"}"#, &["a", "b"]),
            (images, r#"{"prompt":{"model":"x"}}"#, &[]),
            (images, r#"{"model":5}"#, &[]),
            (images, r#"{"model":"a","cut"#, &["a"]),
            (images, "", &[]),
            (images, r#"["model"]"#, &[]),
            ("/v1/files", "--boundary\r\n{\"model\":\"x\"}", &[]),
            ("/v1beta/models/imagen-4:predict", r#"{"model":"x"}"#, &["imagen-4"]),
            ("/openai/deployments/dall-e/images/generations", "{}", &["dall-e"]),
            ("/v1/models/ft:gpt-4o:o1/x", r#"{"model":"b"}"#, &["b"]),
        ];
        for (path, body, names) in cases {
            assert_eq!(named_models(path, body.as_bytes()), names, "{path} {body}");
        }
        for times in [FALLBACK_MODELS - 1, FALLBACK_MODELS] {
            let many = format!("{{{}\"model\":\"last\"}}", r#""model":"m","#.repeat(times));
            let names = named_models(images, many.as_bytes());
            assert_eq!((names.len(), names.last().map(Cow::as_ref)), (FALLBACK_MODELS, Some("last")));
        }
    }
}
