//! The head of a request in one small piece of memory, for as long as its answer takes.
//!
//! A head as it was read is a part of the buffer of its connection, and holds all of it. Only kills ask for it again, and
//! they seldom do: it is read anew then. The method is not kept, for no kill names it.

use std::net::SocketAddr;

use http::request::Parts;
use http::{HeaderName, HeaderValue, Request};

/// What a kill may name of a head.
pub(crate) struct PackedHead {
    /// The address, then a header a line.
    text: Box<[u8]>,
    peer: Option<SocketAddr>,
}

impl PackedHead {
    pub(crate) fn of(head: &Parts) -> PackedHead {
        let uri = head.uri.to_string();
        let headers: usize = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 2).sum();
        let mut text = Vec::with_capacity(uri.len() + headers);
        text.extend_from_slice(uri.as_bytes());
        for (name, value) in &head.headers {
            text.push(b'\n');
            text.extend_from_slice(name.as_str().as_bytes());
            text.push(b':');
            text.extend_from_slice(value.as_bytes());
        }
        PackedHead { text: text.into(), peer: head.extensions.get().copied() }
    }

    pub(crate) fn unpack(&self) -> Parts {
        let (mut head, ()) = Request::new(()).into_parts();
        let mut lines = self.text.split(|byte| *byte == b'\n');
        head.uri = lines.next().and_then(|uri| uri.try_into().ok()).unwrap_or_default();
        for line in lines {
            let Some(colon) = memchr::memchr(b':', line) else { continue };
            let (name, value) = (HeaderName::from_bytes(&line[..colon]), HeaderValue::from_bytes(&line[colon + 1..]));
            if let (Ok(name), Ok(value)) = (name, value) {
                head.headers.append(name, value);
            }
        }
        if let Some(peer) = self.peer {
            head.extensions.insert(peer);
        }
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_kill_may_name_is_lost() {
        let peer: SocketAddr = "10.0.0.1:99".parse().unwrap();
        let request =
            Request::get("/v1/x%20y?a=1&b=:2").header("x-team", "a: b").header("x-team", "second").extension(peer);
        let request =
            request.header("x-odd", HeaderValue::from_bytes(b"\tcaf\xc3\xa9 ").unwrap()).header("x-empty", "");
        let (head, ()) = request.body(()).unwrap().into_parts();
        let unpacked = PackedHead::of(&head).unpack();
        assert_eq!(unpacked.uri, head.uri);
        assert_eq!(unpacked.headers, head.headers);
        assert_eq!(unpacked.extensions.get::<SocketAddr>(), Some(&peer));
        let (whole, ()) = Request::get("https://sprag.test:1/p?q").body(()).unwrap().into_parts();
        assert_eq!(PackedHead::of(&whole).unpack().uri, whole.uri);
    }
}
