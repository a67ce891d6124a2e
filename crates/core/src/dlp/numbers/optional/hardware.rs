//! Hardware addresses, and private addresses of IPv6. Each is looked at from its first digit; one without any digit is
//! not found.

use std::net::Ipv6Addr;

use super::{IPV6_ULA, MAC_ADDRESS};
use crate::dlp::hits::Hits;
use crate::dlp::kind::Tier;
use crate::dlp::numbers::edge;
use crate::dlp::view::View;

/// `00:1a:2b:3c:4d:5e`.
const MAC_BYTES: usize = 17;
/// Longest way to write an address of IPv6, without one of IPv4 in it.
const IPV6_BYTES: usize = 39;

pub(super) fn look_for_mac(view: &View<'_>, at: usize, hits: &mut Hits) {
    let Some(start) = start(view, at, MAC_BYTES, |byte| byte.is_ascii_hexdigit() || b":-".contains(&byte)) else {
        return;
    };
    let end = start + MAC_BYTES;
    if view.may_go_on(end + 1) {
        return hits.unsure(start);
    }
    let Some(address) = view.text.get(start..end) else { return };
    let is_mac = address.iter().enumerate().all(|(place, byte)| match place % 3 {
        2 => *byte == address[2] && b":-".contains(byte),
        _ => byte.is_ascii_hexdigit(),
    });
    let is_longer = view.text.get(end).is_some_and(|byte| edge::is_wordly(*byte) || b":-".contains(byte));
    if is_mac && !is_longer {
        hits.found(MAC_ADDRESS, Tier::Proof, start, end);
    }
}

pub(super) fn look_for_ula(view: &View<'_>, at: usize, hits: &mut Hits) {
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
    let Some(start) = start(view, at, IPV6_BYTES, is_part) else { return };
    let is_private = |first: &[u8]| matches!(first, [b'f' | b'F', b'c' | b'C' | b'd' | b'D', ..]);
    if !is_private(&view.text[start..]) {
        return;
    }
    let most = view.text.len().min(start + IPV6_BYTES + 1);
    let length = view.text[start..most].iter().take_while(|byte| is_part(**byte)).count();
    if view.may_go_on(start + length) && length <= IPV6_BYTES {
        return hits.unsure(start);
    }
    let text = &view.text[start..start + length];
    let text = if text.ends_with(b":") && !text.ends_with(b"::") { &text[..length - 1] } else { text };
    let address = std::str::from_utf8(text).ok().and_then(|text| text.parse::<Ipv6Addr>().ok());
    let is_longer = view.text.get(start + length).is_some_and(|byte| edge::is_wordly(*byte));
    if address.is_some_and(|address| address.segments()[0] & 0xfe00 == 0xfc00) && !is_longer {
        hits.found(IPV6_ULA, Tier::Proof, start, start + text.len());
    }
}

/// Where the run begins in which `at` is the first digit. None when another digit comes first, or a word.
fn start(view: &View<'_>, at: usize, most: usize, is_part: impl Fn(u8) -> bool) -> Option<usize> {
    let before = &view.text[at.saturating_sub(most)..at];
    let length = before.iter().rev().take_while(|byte| is_part(**byte)).count();
    let run = &before[before.len() - length..];
    let is_first = length < most && !run.iter().any(u8::is_ascii_digit);
    let start = at - length;
    (is_first && !edge::left(view, start).is_some_and(edge::is_wordly)).then_some(start)
}
