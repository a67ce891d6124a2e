//! Any bytes as a body: looking for secrets never panics, JSON stays JSON, and a cut text gives what the whole gives.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use sprag_core::dlp::{
    Direction, DlpRules, Inspector, Piece, Scanner, Sightings, TextStream, apply_edits, inspect_json,
};
use sprag_core::wire::Dialect;

static INSPECTOR: LazyLock<Inspector> = LazyLock::new(|| {
    let policy = Arc::new(DlpRules::default().resolve());
    Inspector { scanner: Arc::new(Scanner::default()), policy, vault: Some(Arc::default()) }
});

const DIALECTS: [Dialect; 4] = [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini];

fuzz_target!(|data: &[u8]| {
    let Some((choice, body)) = data.split_first() else { return };
    let dialect = DIALECTS[usize::from(*choice) % DIALECTS.len()];
    let was_json = serde_json::from_slice::<serde_json::Value>(body).is_ok();
    for direction in [Direction::Request, Direction::Answer] {
        let inspected = inspect_json(&INSPECTOR, direction, dialect, body, &[], None, &mut Sightings::default());
        let out = apply_edits(body, &inspected.edits);
        assert!(!was_json || serde_json::from_slice::<serde_json::Value>(&out).is_ok(), "no JSON any more");
    }
    let (mut stream, mut pieces) = (TextStream::default(), Vec::new());
    let piece = usize::from(*choice % 31) + 1;
    for part in body.chunks(piece) {
        stream.push(&INSPECTOR.scanner, part, false, &mut pieces);
    }
    stream.push(&INSPECTOR.scanner, b"", true, &mut pieces);
    let found = pieces.iter().filter_map(|piece| match piece {
        Piece::Found { entity, value, .. } => Some((*entity, value.to_vec())),
        Piece::Plain(_) => None,
    });
    let whole = INSPECTOR.scanner.scan(body, 0, true).findings.into_iter();
    let whole = whole.map(|one| (one.entity, body[one.start..one.end].to_vec()));
    assert!(found.eq(whole), "a cut changed what is found");
});
