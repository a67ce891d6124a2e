//! Long base64: pictures, sound, files. No text, so nothing in it is what it looks like.

use super::BASE64_RUN;

/// So many bytes are judged at once.
const LANE: usize = 32;

/// Remembers where the run of base64 began that was last asked about, so that asking is linear over all.
#[derive(Debug)]
pub(super) struct Base64Run {
    start: usize,
    known_to: usize,
}

impl Base64Run {
    /// For questions about `begin` and what follows.
    pub(super) fn new(begin: usize) -> Base64Run {
        let start = begin.saturating_sub(BASE64_RUN);
        Base64Run { start, known_to: start }
    }

    /// Whether the [`BASE64_RUN`] bytes before `at` are all base64. To ask about places in their order is linear.
    #[inline]
    pub(super) fn is_inside(&mut self, text: &[u8], at: usize) -> bool {
        if at < self.known_to {
            let far = at.saturating_sub(BASE64_RUN);
            return at - far == BASE64_RUN && text[far..at].iter().rev().all(|byte| is_base64(*byte));
        }
        // Further back it does not matter where the run began.
        let far = self.known_to.max(at.saturating_sub(BASE64_RUN));
        match text[far..at].iter().rposition(|byte| !is_base64(*byte)) {
            Some(gap) => self.start = far + gap + 1,
            None if far > self.known_to => self.start = far,
            None => {}
        }
        self.known_to = at;
        at - self.start >= BASE64_RUN
    }
}

/// Whether this would be said of every place in `start..end`.
#[inline]
pub(super) fn is_deep_inside(text: &[u8], start: usize, end: usize) -> bool {
    start >= BASE64_RUN && is_all_base64(&text[start..end]) && is_all_base64(&text[start - BASE64_RUN..start])
}

/// Gives up at the first bytes that are something else.
#[inline]
fn is_all_base64(bytes: &[u8]) -> bool {
    // Lanes, not bytes: without a branch for each, they are judged all at once.
    let (lanes, rest) = bytes.as_chunks::<LANE>();
    let is_lane = |lane: &[u8; LANE]| lane.iter().fold(true, |all, byte| all & is_base64(*byte));
    lanes.iter().all(is_lane) && rest.iter().all(|byte| is_base64(*byte))
}

#[inline]
fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_long_from_its_bound_on() {
        let text = [b" ".as_slice(), &[b'A'; BASE64_RUN + 40], b"- ", &[b'B'; 40]].concat();
        for begin in [0, 1, 300, BASE64_RUN] {
            let mut run = Base64Run::new(begin);
            let inside: Vec<usize> = (begin..text.len()).filter(|at| run.is_inside(&text, *at)).collect();
            assert_eq!(inside, Vec::from_iter(1 + BASE64_RUN..=1 + BASE64_RUN + 40), "{begin}");
            let again: Vec<usize> = (begin..text.len()).filter(|at| run.is_inside(&text, *at)).collect();
            assert_eq!(again, inside, "{begin}");
        }
        assert!(!is_deep_inside(&text, BASE64_RUN, BASE64_RUN + 20));
        assert!(is_deep_inside(&text, BASE64_RUN + 1, BASE64_RUN + 41));
        assert!(!is_deep_inside(&text, BASE64_RUN + 1, BASE64_RUN + 42));
    }
}
