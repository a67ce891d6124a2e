//! Text that nobody has said before: random words, so that loop detection and caches see ordinary traffic.
//!
//! The words are made of syllables, and many enough that two texts have few in common.

const ONSETS: [&str; 16] = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "pl"];
const NUCLEI: [&str; 6] = ["a", "e", "i", "o", "u", "ai"];
const COUNT: usize = 8192;

/// A source of random text.
pub struct Words {
    words: Vec<Box<str>>,
    random: fastrand::Rng,
}

impl Words {
    pub fn new(seed: u64) -> Words {
        let mut random = fastrand::Rng::with_seed(seed);
        let words = (0..COUNT).map(|_| {
            let syllables = random.usize(2..=4);
            let mut word = String::new();
            for _ in 0..syllables {
                word.push_str(ONSETS[random.usize(..ONSETS.len())]);
                word.push_str(NUCLEI[random.usize(..NUCLEI.len())]);
            }
            word.into_boxed_str()
        });
        Words { words: words.collect(), random: fastrand::Rng::with_seed(seed.rotate_left(17) ^ 1) }
    }

    pub fn word(&mut self) -> &str {
        &self.words[self.random.usize(..COUNT)]
    }

    /// Fills all of `slot` with words.
    pub fn fill(&mut self, slot: &mut [u8]) {
        let mut at = 0;
        while at < slot.len() {
            let word = self.words[self.random.usize(..COUNT)].as_bytes();
            let take = word.len().min(slot.len() - at);
            slot[at..at + take].copy_from_slice(&word[..take]);
            at += take;
            if at < slot.len() {
                slot[at] = b' ';
                at += 1;
            }
        }
    }

    /// A text of so many bytes.
    pub fn text(&mut self, bytes: usize) -> String {
        let mut slot = vec![b' '; bytes];
        self.fill(&mut slot);
        String::from_utf8(slot).unwrap_or_default()
    }

    pub fn number(&mut self, below: u64) -> u64 {
        self.random.u64(..below)
    }
}
