//! Steps against steps as a drawing: what repeats shows as stripes beside the diagonal.

use std::collections::BTreeSet;
use std::fmt::Write;

use sprag_core::loops::{Picture, RecordedStep, similarity};

/// Length of a side on the page.
const SIDE: f64 = 400.0;
/// Bytes of all cells together; a picture that takes more is of fewer steps.
const CELL_BYTES: usize = 40_000;
/// Up to so many steps, cells are squares; of more, what lies along a diagonal is one stroke.
const SQUARES: usize = 40;
/// Steps that the words for a row name.
const NAMED: usize = 4;
/// Numbers along a side.
const TICKS: usize = 6;
/// Of how many steps there must be for a picture.
const FEWEST: usize = 2;

/// A picture, ready for a page. Lengths are in steps.
pub(in crate::admin::pages) struct PictureView {
    pub(in crate::admin::pages) count: usize,
    /// Of a step on the page.
    pub(in crate::admin::pages) scale: String,
    pub(in crate::admin::pages) is_fine: bool,
    /// Outlines of the cells by how alike the steps are: 1 to 3, and those of the proof.
    pub(in crate::admin::pages) similar: String,
    pub(in crate::admin::pages) same_part: String,
    pub(in crate::admin::pages) same: String,
    pub(in crate::admin::pages) proof: String,
    /// Lines between squares.
    pub(in crate::admin::pages) grid: String,
    pub(in crate::admin::pages) rows: Vec<String>,
    pub(in crate::admin::pages) ticks: Vec<Tick>,
    /// The part of the sides that the proof is about.
    pub(in crate::admin::pages) frame: Option<Frame>,
    pub(in crate::admin::pages) first: u32,
    pub(in crate::admin::pages) last: u32,
    /// In words, for those who do not see it.
    pub(in crate::admin::pages) summary: String,
}

/// A number along a side, and where it stands on the page.
pub(in crate::admin::pages) struct Tick {
    pub(in crate::admin::pages) at: String,
    pub(in crate::admin::pages) label: String,
}

/// A stretch of steps by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::admin::pages) struct Frame {
    pub(in crate::admin::pages) from: usize,
    pub(in crate::admin::pages) length: usize,
}

#[derive(Default)]
struct Cells {
    /// By level, the proof last. 0 stays empty.
    paths: [String; 5],
}

impl PictureView {
    /// Draws a run; None where there is nothing to compare.
    pub(super) fn new(recorded: &[RecordedStep], likeness: f64, proof: &BTreeSet<u32>) -> Option<PictureView> {
        let mut picture = similarity(recorded, likeness);
        let mut cells = Cells::of(&picture, proof);
        while cells.bytes() > CELL_BYTES {
            picture = last_half(&picture);
            cells = Cells::of(&picture, proof);
        }
        let count = picture.steps.len();
        if count < FEWEST {
            return None;
        }
        let places: Vec<usize> = (0..count).filter(|at| proof.contains(&picture.steps[*at])).collect();
        let frame = places.first().zip(places.last()).map(|(from, to)| Frame { from: *from, length: to - from + 1 });
        let scale = SIDE / count as f64;
        let every = count.div_ceil(TICKS);
        let tick =
            |at: usize| Tick { at: format!("{:.1}", (at as f64 + 0.5) * scale), label: picture.steps[at].to_string() };
        let grid = (1..count).filter(|_| count <= SQUARES).fold(String::new(), |mut grid, at| {
            let _ = write!(grid, "M0 {at}h{count}M{at} 0v{count}");
            grid
        });
        let [_, similar, same_part, same, proof] = cells.paths;
        Some(PictureView {
            count,
            scale: format!("{scale:.4}"),
            is_fine: count > SQUARES,
            similar,
            same_part,
            same,
            proof,
            grid,
            rows: (0..count).map(|at| row_words(&picture, at)).collect(),
            ticks: (0..count).step_by(every).map(tick).collect(),
            frame,
            first: picture.steps[0],
            last: picture.steps[count - 1],
            summary: summary(&picture),
        })
    }
}

impl Cells {
    fn of(picture: &Picture, proof: &BTreeSet<u32>) -> Cells {
        let count = picture.steps.len();
        let is_proof: Vec<bool> = picture.steps.iter().map(|step| proof.contains(step)).collect();
        let level = |a: usize, b: usize| match picture.level(a, b) {
            level @ 2.. if is_proof[a] && is_proof[b] => usize::from(level).max(4),
            level => usize::from(level),
        };
        let mut cells = Cells::default();
        if count <= SQUARES {
            for row in 1..count {
                runs(
                    row,
                    |column| level(row, column),
                    |level, from, length| {
                        let _ = write!(cells.paths[level], "M{from} {row}h{length}v1h-{length}z");
                    },
                );
            }
        } else {
            for lag in 1..count {
                runs(
                    count - lag,
                    |at| level(at + lag, at),
                    |level, from, length| {
                        let _ = write!(cells.paths[level], "M{from} {}l{length} {length}", from + lag);
                    },
                );
            }
        }
        cells
    }

    fn bytes(&self) -> usize {
        self.paths.iter().map(String::len).sum()
    }
}

/// Calls `draw` for each stretch of one level, but for level 0.
fn runs(count: usize, level: impl Fn(usize) -> usize, mut draw: impl FnMut(usize, usize, usize)) {
    let mut from = 0;
    for at in 1..=count {
        if at == count || level(at) != level(from) {
            if level(from) > 0 {
                draw(level(from), from, at - from);
            }
            from = at;
        }
    }
}

fn last_half(picture: &Picture) -> Picture {
    let gone = picture.steps.len().div_ceil(2);
    Picture {
        steps: picture.steps[gone..].to_vec(),
        rows: picture.rows[gone..].iter().map(|row| row[gone..].to_vec()).collect(),
    }
}

fn row_words(picture: &Picture, row: usize) -> String {
    let step = picture.steps[row];
    let words =
        [(3, "the same call with the same result as"), (2, "the same call or the same result as"), (1, "similar to")];
    let found = words.iter().find_map(|(level, words)| {
        let others = (0..picture.steps.len()).filter(|at| *at != row && picture.level(row, *at) == *level);
        let others: Vec<String> = others.map(|at| picture.steps[at].to_string()).collect();
        let named = others.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = match others.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let steps = if others.len() == 1 { "step" } else { "steps" };
        (!others.is_empty()).then(|| format!("Step {step}: {words} {steps} {named}{more}"))
    });
    found.unwrap_or_else(|| format!("Step {step}: like no other"))
}

fn summary(picture: &Picture) -> String {
    let count = picture.steps.len();
    let repeats = |at: &usize| (0..*at).any(|earlier| picture.level(*at, earlier) == 3);
    let repeated = (1..count).filter(repeats).count();
    format!("{repeated} of {count} steps made a call that an earlier step had made, and got the same result")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(count: usize, level: impl Fn(usize, usize) -> u8) -> Picture {
        let row = |at: usize| (0..=at).map(|earlier| if at == earlier { 3 } else { level(at, earlier) }).collect();
        Picture { steps: (1..=count as u32).collect(), rows: (0..count).map(row).collect() }
    }

    #[test]
    fn rows_of_squares_are_merged_and_those_of_the_proof_stand_apart() {
        let all = picture(5, |_, _| 3);
        let proof = BTreeSet::from([3, 4, 5]);
        let cells = Cells::of(&all, &proof);
        assert_eq!(cells.paths[3], "M0 1h1v1h-1zM0 2h2v1h-2zM0 3h2v1h-2zM0 4h2v1h-2z");
        assert_eq!(cells.paths[4], "M2 3h1v1h-1zM2 4h2v1h-2z");
    }

    #[test]
    fn stripes_are_one_stroke_each() {
        let cycle = picture(200, |a, b| if (a - b) % 2 == 0 { 3 } else { 0 });
        let cells = Cells::of(&cycle, &BTreeSet::new());
        assert!(cells.paths[3].starts_with("M0 2l198 198M0 4l196 196"), "{}", cells.paths[3]);
        assert!(cells.bytes() < 1500, "{}", cells.bytes());
    }

    #[test]
    fn a_picture_without_any_order_stays_small() {
        let scattered = |a: usize, b: usize| ((a * 7919 + b * 104_729) ^ (a * b)) as u8 % 4;
        let mut wild = picture(200, scattered);
        assert!(Cells::of(&wild, &BTreeSet::new()).bytes() > CELL_BYTES, "all of it would be too much");
        wild = last_half(&wild);
        assert_eq!((wild.steps[0], wild.steps.len(), wild.level(99, 98)), (101, 100, scattered(199, 198)));
        wild = last_half(&wild);
        assert!(Cells::of(&wild, &BTreeSet::new()).bytes() <= CELL_BYTES);
    }

    #[test]
    fn a_row_says_what_it_is_like() {
        let some = picture(7, |a, b| match (a, b) {
            (1, 0) => 1,
            (6, 2..) => 3,
            (6, 1) => 2,
            _ => 0,
        });
        assert_eq!(row_words(&some, 6), "Step 7: the same call with the same result as steps 3, 4, 5, 6");
        assert_eq!(row_words(&some, 1), "Step 2: the same call or the same result as step 7");
        assert_eq!(row_words(&some, 0), "Step 1: similar to step 2");
        let all = picture(7, |_, _| 3);
        assert_eq!(row_words(&all, 0), "Step 1: the same call with the same result as steps 2, 3, 4, 5 and 2 more");
        assert_eq!(row_words(&picture(2, |_, _| 0), 1), "Step 2: like no other");
        assert_eq!(summary(&some), "1 of 7 steps made a call that an earlier step had made, and got the same result");
    }
}
