//! The runs of one file that are followed at once.

use sprag_core::limits::REPLAY_OPEN_RUNS;

/// Runs under way by name, the one heard of last at the end.
pub(super) struct OpenRuns<T> {
    runs: Vec<(String, T)>,
}

impl<T> OpenRuns<T> {
    pub(super) fn new() -> OpenRuns<T> {
        OpenRuns { runs: Vec::new() }
    }

    /// The run of a name, begun where there is none; also the one that had to leave for it.
    pub(super) fn get(&mut self, name: &str, begin: impl FnOnce() -> T) -> (&mut T, Option<(String, T)>) {
        let mut left = None;
        let entry = match self.runs.iter().rposition(|(known, _)| known == name) {
            Some(at) => self.runs.remove(at),
            None => {
                if self.runs.len() >= REPLAY_OPEN_RUNS {
                    left = Some(self.runs.remove(0));
                }
                (name.to_owned(), begin())
            }
        };
        self.runs.push(entry);
        let last = self.runs.len() - 1;
        (&mut self.runs[last].1, left)
    }

    /// The runs, the one heard of last first.
    pub(super) fn latest(&self) -> impl Iterator<Item = (&str, &T)> {
        self.runs.iter().rev().map(|(name, run)| (name.as_str(), run))
    }

    /// All of them, as the file is over.
    pub(super) fn take(&mut self) -> Vec<(String, T)> {
        std::mem::take(&mut self.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_quiet_run_leaves_for_a_new_one_past_the_bound() {
        let mut runs = OpenRuns::new();
        for number in 0..REPLAY_OPEN_RUNS {
            assert_eq!(runs.get(&number.to_string(), || number).1, None);
        }
        assert_eq!(runs.get("0", || 99), (&mut 0, None), "at the bound all are known");
        assert_eq!(runs.get("new", || 7), (&mut 7, Some(("1".to_owned(), 1))), "past it the longest quiet leaves");
        assert_eq!(runs.latest().next(), Some(("new", &7)));
        assert_eq!(runs.take().len(), REPLAY_OPEN_RUNS);
    }
}
