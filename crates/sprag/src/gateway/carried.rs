//! What a request carries, as kills name it: headers, parameters, claims of its token, its address.
//!
//! Nothing here is verified. Who is stopped by a false claim has only himself stopped.

use std::net::SocketAddr;

use http::header::AUTHORIZATION;
use http::request::Parts;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use sprag_core::policy::Descriptor;

/// All values of something that a request carries: a second one hides nothing.
pub(super) fn carried(head: &Parts, descriptor: &Descriptor) -> Vec<String> {
    match descriptor {
        Descriptor::Header(name) => headers(head, name).map(str::to_owned).collect(),
        Descriptor::Query(name) => {
            let pairs = head.uri.query().unwrap_or_default().split('&');
            let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
            pairs.filter(|(key, _)| decoded(key) == *name).map(|(_, value)| decoded(value)).collect()
        }
        Descriptor::Jwt(claim) => {
            let tokens = headers(head, AUTHORIZATION.as_str()).filter_map(bearer);
            tokens.filter_map(payload).flat_map(|payload| values(&payload[claim.as_str()])).collect()
        }
        Descriptor::Ip => {
            let peer = head.extensions.get::<SocketAddr>();
            peer.map(|peer| peer.ip().to_canonical().to_string()).into_iter().collect()
        }
    }
}

fn headers<'a>(head: &'a Parts, name: &str) -> impl Iterator<Item = &'a str> {
    head.headers.get_all(name).iter().filter_map(|value| std::str::from_utf8(value.as_bytes()).ok())
}

/// As forms write it: `+` is a space.
fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// The claims of a JSON web token.
fn payload(token: &str) -> Option<Value> {
    let payload = token.split('.').nth(1)?;
    serde_json::from_slice(&base64_url(payload)?).ok()
}

/// A claim as texts: each of several, numbers and truths as JSON writes them.
fn values(claim: &Value) -> Vec<String> {
    match claim {
        Value::String(text) => vec![text.clone()],
        Value::Number(_) | Value::Bool(_) => vec![claim.to_string()],
        Value::Array(several) => several.iter().filter(|one| !one.is_array()).flat_map(values).collect(),
        Value::Null | Value::Object(_) => Vec::new(),
    }
}

/// Base64 in the alphabet of URLs or the usual one, with or without padding.
pub(super) fn base64_url(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for symbol in text.trim_end_matches('=').bytes() {
        let value = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a' + 26,
            b'0'..=b'9' => symbol - b'0' + 52,
            b'-' | b'+' => 62,
            b'_' | b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let request =
            headers.iter().fold(http::Request::get(uri), |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    fn jwt(token: &str, claim: &str) -> Vec<String> {
        let bearer = format!("bearer {token}");
        carried(&head("/", &[("authorization", &bearer)]), &Descriptor::Jwt(claim.into()))
    }

    #[test]
    fn claims_are_read_without_a_check() {
        // {"org_id":"org_xyz","n":7,"aud":["a","b"],"deep":{"x":1},"é":"ü?>"}
        let token =
            "e30.eyJvcmdfaWQiOiJvcmdfeHl6IiwibiI6NywiYXVkIjpbImEiLCJiIl0sImRlZXAiOnsieCI6MX0sIsOpIjoiw7w_PiJ9.sig";
        assert_eq!(jwt(token, "org_id"), ["org_xyz"]);
        assert_eq!(jwt(token, "n"), ["7"]);
        assert_eq!(jwt(token, "aud"), ["a", "b"]);
        assert_eq!(jwt(token, "é"), ["ü?>"]);
        assert!(jwt(token, "deep").is_empty() && jwt(token, "none").is_empty());
        for no_token in ["sk-abc", "a.b.c", "a.!.c", "", "e30.WzFd.x"] {
            assert!(jwt(no_token, "org_id").is_empty(), "{no_token}");
        }
    }

    #[test]
    fn parameters_headers_and_addresses_are_read() {
        let mut head = head("/x?a=1&tenant=Acme+%26%20Co&%74enant=2&flag", &[("x-a", "1"), ("x-a", "2")]);
        let query = |head: &Parts, name: &str| carried(head, &Descriptor::Query(name.into()));
        assert_eq!(query(&head, "tenant"), ["Acme & Co", "2"]);
        assert_eq!((query(&head, "flag"), query(&head, "b")), (vec![String::new()], vec![]));
        assert_eq!(carried(&head, &Descriptor::Header("x-a".into())), ["1", "2"]);
        assert!(carried(&head, &Descriptor::Ip).is_empty());
        head.extensions.insert::<SocketAddr>("[::ffff:192.0.2.7]:80".parse().unwrap());
        assert_eq!(carried(&head, &Descriptor::Ip), ["192.0.2.7"]);
    }
}
