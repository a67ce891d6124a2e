//! The runs above and below one: bounded, whatever agents do.

use sprag_core::limits::RUN_TREE_DEPTH;
use sprag_core::time::Timestamp;
use sprag_store::history::{History, RunRow};
use sprag_store::{RunKey, StoreError};

use super::super::rows::RunLine;

/// Runs below that are listed.
const LISTED: usize = 100;
/// Direct parts whose own parts are listed.
const OPENED: usize = 20;
/// Places that the page can move a line in.
const DEEPEST: usize = 6;

/// The relatives of a run as they stand on record.
pub(super) struct Family {
    /// From the top down.
    pub(super) above: Vec<RunRow>,
    /// Each part, and behind it its own parts, with how deep they lie.
    pub(super) below: Vec<(usize, RunRow)>,
    /// There are more.
    pub(super) is_cut: bool,
}

/// One line of the tree.
pub(in crate::admin::pages) struct TreeLine {
    pub(in crate::admin::pages) depth: usize,
    pub(in crate::admin::pages) is_here: bool,
    pub(in crate::admin::pages) run: RunLine,
}

impl Family {
    pub(super) fn read(history: &History, run: &RunRow) -> Result<Family, StoreError> {
        let key = |run: &RunRow| RunKey { agent: run.agent.clone(), id: run.id.clone() };
        let mut above: Vec<RunRow> = Vec::new();
        let mut next = run.parent.clone();
        while let Some(id) = next.take().filter(|_| above.len() < RUN_TREE_DEPTH) {
            // A run may name any parent, itself included.
            if id == run.id || above.iter().any(|known| known.id == id) {
                break;
            }
            if let Some(parent) = history.run(&RunKey { agent: run.agent.clone(), id })? {
                next.clone_from(&parent.parent);
                above.push(parent);
            }
        }
        above.reverse();
        let mut below = Vec::new();
        let parts = history.children(&key(run))?;
        let is_cut = parts.len() > LISTED;
        for (at, part) in parts.into_iter().take(LISTED).enumerate() {
            let own = if at < OPENED { history.children(&key(&part))? } else { Vec::new() };
            below.push((1, part));
            below.extend(own.into_iter().map(|part| (2, part)));
        }
        let is_cut = is_cut || below.len() > LISTED;
        below.truncate(LISTED);
        Ok(Family { above, below, is_cut })
    }

    /// All runs of it, to be brought up to date.
    pub(super) fn runs(&mut self) -> impl Iterator<Item = &mut RunRow> {
        self.above.iter_mut().chain(self.below.iter_mut().map(|(_, run)| run))
    }

    /// The lines of the tree; none for a run that stands alone.
    pub(super) fn lines(&self, run: &RunRow, now: Timestamp) -> Vec<TreeLine> {
        if self.above.is_empty() && self.below.is_empty() {
            return Vec::new();
        }
        let line = |depth: usize, run: &RunRow, is_here| {
            let depth = depth.min(DEEPEST);
            TreeLine { depth, is_here, run: RunLine::new(run, now) }
        };
        let here = self.above.len();
        let above = self.above.iter().enumerate().map(|(depth, run)| line(depth, run, false));
        let below = self.below.iter().map(|(depth, run)| line(here + depth, run, false));
        above.chain([line(here, run, true)]).chain(below).collect()
    }
}
