//! However a stream is cut into chunks, the same bytes pass and the same is read.

use proptest::prelude::*;

use crate::fixture;

/// `bytes` cut at the given places.
fn cut_at<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let mut chunks = Vec::new();
    let mut start = 0;
    for cut in cuts.into_iter().chain([bytes.len()]) {
        chunks.push(&bytes[start..cut]);
        start = cut;
    }
    chunks
}

#[test]
fn a_stream_byte_by_byte_reads_the_same() {
    for fixture in fixture::all().into_iter().filter(|fixture| fixture.is_stream()) {
        let whole = fixture::stream(fixture.dialect, &[&fixture.bytes]);
        let bytes: Vec<&[u8]> = fixture.bytes.chunks(1).collect();
        assert!(whole == fixture::stream(fixture.dialect, &bytes), "{}", fixture.path.display());
        assert!(whole.0 == fixture.bytes, "{}", fixture.path.display());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chunks_change_nothing(places in prop::collection::vec(any::<prop::sample::Index>(), 0..30)) {
        for fixture in fixture::all().into_iter().filter(|fixture| fixture.is_stream()) {
            let (passed, events, reply) = fixture::stream(fixture.dialect, &[&fixture.bytes]);
            let chunks = cut_at(&fixture.bytes, &places);
            let (passed_in_chunks, events_in_chunks, reply_in_chunks) = fixture::stream(fixture.dialect, &chunks);
            prop_assert_eq!(&passed, &fixture.bytes);
            prop_assert_eq!(&passed_in_chunks, &fixture.bytes);
            prop_assert_eq!(&events_in_chunks, &events, "{}", fixture.path.display());
            prop_assert_eq!(&reply_in_chunks, &reply, "{}", fixture.path.display());
        }
    }
}
