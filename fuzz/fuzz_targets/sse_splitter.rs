//! Any bytes in any chunks: they pass unchanged, and chunk borders do not move the ends of events.
//!
//! `cargo fuzz run --dev --sanitizer none sse_splitter -- -max_total_time=20`
#![no_main]

use arbitrary::Arbitrary;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use sprag_core::wire::sse::{self, Splitter};

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    sizes: Vec<u8>,
    stream: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let whole = split([input.stream].into_iter());
    let mut left = input.stream;
    let mut sizes = input.sizes.iter().cycle();
    let chunks = std::iter::from_fn(|| {
        let size = usize::from(*sizes.next().unwrap_or(&1)).clamp(1, left.len().max(1)).min(left.len());
        let (chunk, rest) = left.split_at(size);
        left = rest;
        (!chunk.is_empty()).then_some(chunk)
    });
    assert_eq!(split(chunks), whole);
    assert_eq!([whole.0.concat(), whole.1].concat(), input.stream);
});

/// The events, each read once, and what is left.
fn split<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut splitter = Splitter::new();
    let mut events = Vec::new();
    for chunk in chunks {
        let block = splitter.push(Bytes::copy_from_slice(chunk));
        let mut start = 0;
        for end in block.ends {
            let event = &block.bytes[start..end];
            let view = sse::parse(event);
            if let Some(range) = sse::data_range(event) {
                assert_eq!(&event[range], &*view.data);
            }
            events.push(event.to_vec());
            start = end;
        }
        assert_eq!(start, block.bytes.len());
    }
    (events, splitter.rest().to_vec())
}
