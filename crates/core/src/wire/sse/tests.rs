use proptest::prelude::*;

use super::*;

/// Every event of `input`, handed over in chunks of `size` bytes, and what is left.
fn split(input: &[u8], size: usize) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut splitter = Splitter::new();
    let mut events = Vec::new();
    for chunk in input.chunks(size) {
        let block = splitter.push(Bytes::copy_from_slice(chunk));
        let mut start = 0;
        for end in block.ends {
            events.push(block.bytes[start..end].to_vec());
            start = end;
        }
        assert_eq!(start, block.bytes.len(), "a block holds whole events only");
    }
    (events, splitter.rest().to_vec())
}

#[test]
fn events_end_at_blank_lines_of_every_kind() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("data: a\n\ndata: b\n\n", &["data: a\n\n", "data: b\n\n"], ""),
        ("data: a\r\n\r\ndata: b\r\n\r\n", &["data: a\r\n\r\n", "data: b\r\n\r\n"], ""),
        ("data: a\r\rdata: b\r\r", &["data: a\r\r", "data: b\r\r"], ""),
        ("data: a\n\r\ndata: b\r\n\ndata: c\r\n\r", &["data: a\n\r\n", "data: b\r\n\n"], "data: c\r\n\r"),
        ("data: a\r\r\ndata: b\n\n", &["data: a\r\r", "\ndata: b\n\n"], ""),
        (": hi\n\ndata: a\n: note\ndata: b\n\n", &[": hi\n\n", "data: a\n: note\ndata: b\n\n"], ""),
        ("\u{feff}data: a\n\n", &["\u{feff}data: a\n\n"], ""),
        ("\n\r\ndata: a\n\n\n", &["\n", "\r\n", "data: a\n\n", "\n"], ""),
        ("data: a\n\ndata: cut", &["data: a\n\n"], "data: cut"),
        ("data: a\r\n", &[], "data: a\r\n"),
        ("", &[], ""),
    ];
    for (input, events, rest) in cases {
        for size in 1..=input.len().max(1) {
            let (got, left) = split(input.as_bytes(), size);
            let expected: Vec<Vec<u8>> = events.iter().map(|event| event.as_bytes().to_vec()).collect();
            assert_eq!(got, expected, "{input:?} in chunks of {size}");
            assert_eq!(left, rest.as_bytes(), "{input:?} in chunks of {size}");
        }
    }
}

#[test]
fn whole_chunks_are_not_copied() {
    let chunk = Bytes::from_static(b"data: a\n\ndata: b");
    let block = Splitter::new().push(chunk.clone());
    assert_eq!(block.bytes.as_ptr(), chunk.as_ptr());
    assert_eq!(block.ends, [9]);
}

#[test]
fn an_event_at_the_limit_is_read_and_one_past_it_is_not() {
    for (size, oversized) in [(limits::SSE_EVENT_BYTES, false), (limits::SSE_EVENT_BYTES + 1, true)] {
        let mut stream = b": first\n\n".to_vec();
        let start = stream.len();
        stream.extend(std::iter::repeat_n(b'x', size - 2));
        stream.extend(b"\n\n");
        let after = stream.len();
        stream.extend(b"data: b\n\n");
        for chunk_bytes in [stream.len(), limits::SSE_EVENT_BYTES - 1, 1 << 20] {
            let mut splitter = Splitter::new();
            let (mut out, mut ends) = (Vec::new(), Vec::new());
            for chunk in stream.chunks(chunk_bytes) {
                let block = splitter.push(Bytes::copy_from_slice(chunk));
                ends.extend(block.ends.iter().map(|end| end + out.len()));
                out.extend_from_slice(&block.bytes);
            }
            out.extend_from_slice(&splitter.rest());
            assert!(out == stream, "bytes pass unchanged");
            assert_eq!(splitter.is_oversized(), oversized, "{size} in chunks of {chunk_bytes}");
            let all = [start, after, stream.len()];
            assert_eq!(ends, if oversized { &all[..1] } else { &all[..] });
        }
    }
}

#[test]
fn no_more_than_the_limit_is_kept_back() {
    let mut splitter = Splitter::new();
    assert!(splitter.push(vec![b'x'; limits::SSE_EVENT_BYTES].into()).bytes.is_empty());
    assert!(!splitter.is_oversized());
    let block = splitter.push(Bytes::from_static(b"x"));
    assert!(splitter.is_oversized());
    assert_eq!((block.bytes.len(), block.ends.len()), (limits::SSE_EVENT_BYTES + 1, 0));
    assert_eq!(splitter.push(Bytes::from_static(b"y\n\n")).bytes, "y\n\n");
    assert!(splitter.rest().is_empty());
}

#[test]
fn many_short_events_in_a_long_chunk_are_not_oversized() {
    let stream = b"data: x\n\n".repeat(limits::SSE_EVENT_BYTES / 9 + 2);
    let mut splitter = Splitter::new();
    let block = splitter.push(Bytes::from(stream.clone()));
    assert!(!splitter.is_oversized());
    assert_eq!(block.bytes.len(), stream.len());
}

#[test]
fn fields_are_read_as_the_standard_says() {
    let cases: &[(&str, Option<&str>, &str)] = &[
        ("data: a\n\n", None, "a"),
        ("data:a\n\n", None, "a"),
        ("data:  a \n\n", None, " a "),
        ("event: ping\ndata: {}\n\n", Some("ping"), "{}"),
        ("event:ping\r\ndata: {}\r\n\r\n", Some("ping"), "{}"),
        ("data: a\ndata:\ndata: b\n\n", None, "a\n\nb"),
        ("data\n\n", None, ""),
        (": comment: data\n\n", None, ""),
        ("\u{feff}data: a\n\n", None, "a"),
        ("id: 7\nretry: 10\nxdata: no\ndata: a: b", None, "a: b"),
        ("\n\n", None, ""),
    ];
    for (event, name, data) in cases {
        let view = parse(event.as_bytes());
        assert_eq!(view.name, *name, "{event:?}");
        assert_eq!(view.data, data.as_bytes(), "{event:?}");
    }
}

#[test]
fn the_place_of_the_data_is_known_when_it_is_one_line() {
    let event = b"event: x\r\ndata: {\"a\":1}\r\n\r\n";
    assert_eq!(&event[data_range(event).unwrap()], b"{\"a\":1}");
    assert_eq!(data_range(b"data: a\ndata: b\n\n"), None);
    assert_eq!(data_range(b": comment\n\n"), None);
    assert_eq!(data_range(b"\xEF\xBB\xBFdata\n\n"), Some(7..7));
}

proptest! {
    #[test]
    fn chunk_borders_change_nothing(input in "[a\r\n:]{0,40}", sizes in prop::collection::vec(1usize..6, 1..40)) {
        let (whole, rest) = split(input.as_bytes(), input.len().max(1));
        let mut splitter = Splitter::new();
        let (mut events, mut left, mut sizes) = (Vec::new(), input.as_bytes(), sizes.iter().cycle());
        while !left.is_empty() {
            let size = (*sizes.next().unwrap()).min(left.len());
            let block = splitter.push(Bytes::copy_from_slice(&left[..size]));
            left = &left[size..];
            let mut start = 0;
            for end in block.ends {
                events.push(block.bytes[start..end].to_vec());
                start = end;
            }
        }
        prop_assert_eq!(&events, &whole);
        prop_assert_eq!(&splitter.rest()[..], &rest[..]);
        prop_assert_eq!([events.concat(), rest].concat(), input.as_bytes());
    }
}
