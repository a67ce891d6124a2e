//! Addresses of machines: `192.168.1.1`.

use super::edge;
use crate::dlp::catalogue::entity;
use crate::dlp::hits::Hits;
use crate::dlp::kind::{Entity, Tier};
use crate::dlp::view::View;

const PRIVATE_IP: Entity = entity("PRIVATE_IP");
const PUBLIC_IP: Entity = entity("PUBLIC_IP");

/// No address is longer, with what must be seen behind it: `255.255.255.255/24:`.
pub(super) const MOST_BYTES: usize = 19;

/// Where an address belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dlp) enum Net {
    /// Inside a network (RFC 1918).
    Private,
    /// Out in the world.
    Public,
    /// Nowhere: this machine, examples, ranges with a meaning of their own.
    Special,
}

/// Whether a private address can begin here.
#[inline]
pub(in crate::dlp) fn may_be_private(text: &[u8]) -> bool {
    text.first_chunk().is_some_and(|four| matches!(four, b"172." | b"192.") | four.starts_with(b"10."))
}

/// Whether other addresses are looked for as well.
pub(super) fn wants_public(hits: &Hits) -> bool {
    hits.wants(PUBLIC_IP)
}

/// Looks at digits that may begin an address.
pub(super) fn look(view: &View<'_>, at: usize, hits: &mut Hits) {
    if !may_be_private(&view.text[at..]) && !hits.wants(PUBLIC_IP) {
        return;
    }
    if edge::left(view, at).is_some_and(|byte| edge::is_wordly(byte) || byte == b'.') {
        return;
    }
    let Some((net, length)) = read(&view.text[at..]) else {
        // What has been read so far may be a part: the word that the text ends in is held back by the scanner.
        return;
    };
    let end = at + length;
    if view.may_go_on(end + MOST_BYTES - 15) {
        return hits.unsure(at);
    }
    if !is_whole(&view.text[end..]) {
        return;
    }
    match net {
        Net::Private => hits.found(PRIVATE_IP, Tier::Proof, at, end),
        Net::Public if hits.wants(PUBLIC_IP) => hits.found(PUBLIC_IP, Tier::Proof, at, end),
        _ => {}
    }
}

/// The address at the beginning of `text`, and its length.
pub(in crate::dlp) fn read(text: &[u8]) -> Option<(Net, usize)> {
    let (mut octets, mut place) = ([0_u8; 4], 0);
    for (count, octet) in octets.iter_mut().enumerate() {
        if count > 0 {
            if text.get(place) != Some(&b'.') {
                return None;
            }
            place += 1;
        }
        let length = text[place..].iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 || length > 1 && text[place] == b'0' {
            return None;
        }
        *octet = std::str::from_utf8(&text[place..place + length]).ok()?.parse().ok()?;
        place += length;
    }
    Some((net(octets), place))
}

/// Whether an address ends where `behind` begins, and is one machine's: not `10.0.0.0/8`, not a version of five
/// parts, not a name.
fn is_whole(behind: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
    match behind {
        [b'.', next, ..] => !next.is_ascii_alphanumeric(),
        [b'/', rest @ ..] => {
            let length = digits(rest);
            !(1..=2).contains(&length) || rest.get(length).is_some_and(|byte| edge::is_wordly(*byte))
        }
        [b'-', next, ..] => next.is_ascii_digit() || !next.is_ascii_alphanumeric(),
        [next, ..] => !edge::is_wordly(*next),
        [] => true,
    }
}

fn net(octets: [u8; 4]) -> Net {
    match octets {
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Net::Private,
        [0 | 127 | 224..=255, ..] | [169, 254, ..] | [100, 64..=127, ..] => Net::Special,
        [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [198, 18 | 19, ..] => Net::Special,
        _ => Net::Public,
    }
}
