use proptest::prelude::*;

use super::*;
use crate::dlp::Finding;

/// Feeds the parts; gives all text and where something was found in it.
fn read(parts: &[&[u8]]) -> (Vec<u8>, Vec<Finding>) {
    let scanner = Scanner::default();
    let mut stream = TextStream::new(b"");
    let mut pieces = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        stream.push(&scanner, part, place + 1 == parts.len(), &mut pieces);
        assert!(stream.held() <= STREAM_HELD_BYTES, "{} are held", stream.held());
    }
    assert_eq!(stream.held(), 0);
    put_together(&pieces)
}

fn put_together(pieces: &[Piece]) -> (Vec<u8>, Vec<Finding>) {
    let (mut text, mut findings) = (Vec::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Plain(plain) => text.extend_from_slice(plain),
            Piece::Found { entity, tier, value } => {
                let (start, end) = (text.len(), text.len() + value.len());
                findings.push(Finding { entity: *entity, start, end, tier: *tier });
                text.extend_from_slice(value);
            }
        }
    }
    (text, findings)
}

#[test]
fn a_stream_of_single_bytes_gives_what_the_whole_gives() {
    let text = "Mail mia@example.org, key sk-1234567890abcdef, naïve 漢字 🦀 sk-abcdef1234567890".as_bytes();
    let parts: Vec<&[u8]> = text.chunks(1).collect();
    let (read_text, findings) = read(&parts);
    assert_eq!(read_text, text);
    assert_eq!(findings, Scanner::default().scan(text, 0, true).findings);
    assert_eq!(findings.len(), 3);
}

#[test]
fn a_name_reaches_as_far_in_a_stream_as_in_the_whole() {
    let values: Vec<String> = (0..12).map(|n| format!("\"q{n}Zk83hF0sLx9Vb2Nw7R{n}\"")).collect();
    let text = format!("api_key = [{}] and so on", values.join(", "));
    let whole = read(&[text.as_bytes()]);
    let last = whole.1.last().unwrap();
    assert!(whole.1.len() > 5 && last.start > 150, "{whole:?}");
    assert_eq!(read(&text.as_bytes().chunks(1).collect::<Vec<_>>()), whole);
}

#[test]
fn prose_flows_but_for_the_open_word() {
    let scanner = Scanner::default();
    let mut stream = TextStream::new(b"");
    let mut out = Vec::new();
    stream.push(&scanner, b"the quick brown fo", false, &mut out);
    assert_eq!((stream.held(), &out[..]), (2, &[Piece::Plain(b"the quick brown ".to_vec())][..]));
    stream.push(&scanner, b"x ", false, &mut out);
    assert_eq!((stream.held(), &out[..]), (0, &[Piece::Plain(b"the quick brown fox ".to_vec())][..]));
}

#[test]
fn a_character_is_not_divided() {
    let scanner = Scanner::default();
    for character in ["ß", "漢", "🦀"] {
        let bytes = character.as_bytes();
        for cut in 1..bytes.len() {
            let mut stream = TextStream::new(b"");
            let mut out = Vec::new();
            stream.push(&scanner, &[b"so ", &bytes[..cut]].concat(), false, &mut out);
            assert_eq!((stream.held(), &out[..]), (cut, &[Piece::Plain(b"so ".to_vec())][..]), "{character} {cut}");
        }
    }
    let mut stream = TextStream::new(b"");
    let mut out = Vec::new();
    // Bytes that are no text must not stay for ever.
    stream.push(&scanner, b"\xff\xf0 \x80\x80\x80\x80 \xf0", false, &mut out);
    assert_eq!(stream.held(), 1);
    stream.push(&scanner, b" ", false, &mut out);
    assert_eq!(stream.held(), 0);
}

#[test]
fn the_context_counts_as_what_stands_before() {
    let scanner = Scanner::default();
    for (context, found) in [(&b"x "[..], 1), (b"ta", 0)] {
        let mut stream = TextStream::new(context);
        let mut out = Vec::new();
        stream.push(&scanner, b"sk-1234567890abcdef", true, &mut out);
        assert_eq!(put_together(&out).1.len(), found);
    }
}

#[test]
fn not_more_is_held_than_allowed() {
    let scanner = Scanner::default();
    for (length, is_held) in [(STREAM_HELD_BYTES, true), (STREAM_HELD_BYTES + 1, false)] {
        let mut stream = TextStream::new(b"");
        let mut out = Vec::new();
        // What hangs together for long: a key that ends inside the first line of a private key, whose end is not there.
        let mut text = [b"sk-", &b"a1b2c3d4e5f6a7b8c9-"[..].repeat(100)[..], b"-----BEGIN PRIVATE KEY-----\n"].concat();
        text.extend(b"MIIEvQIBADANBgkq".iter().cycle().take(length - text.len()));
        stream.push(&scanner, &text, false, &mut out);
        assert_eq!((stream.held() == length, out.is_empty()), (is_held, is_held), "{length}");
        assert!(stream.held() <= STREAM_HELD_BYTES);
        stream.push(&scanner, b" end", true, &mut out);
        assert_eq!(put_together(&out).0, [&text[..], b" end"].concat());
    }
}

proptest! {
    #[test]
    fn cuts_change_nothing(
        words in prop::collection::vec("sk-[a-z0-9]{10,30}|[a-z]{1,9}@[a-z]{1,5}\\.org|[a-zé漢 ]{1,40}|[!-~]{1,20}", 1..20),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        gap in "[ \n\",;]{0,2}",
    ) {
        let text = words.join(&gap).into_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let parts: Vec<&[u8]> = cuts.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect();
        let (read_text, findings) = read(&parts);
        prop_assert_eq!(&read_text, &text);
        prop_assert_eq!(findings, Scanner::default().scan(&text, 0, true).findings);
    }
}
