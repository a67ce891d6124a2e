//! Whether anything grew.

use std::sync::atomic::Ordering;

use super::samples::{Sample, slope};
use super::traffic::Counts;
use crate::process;

/// Of the time; until then tables, pools and caches fill.
const WARM_UP: f64 = 0.4;
/// Runs after which what is bounded (clues, marks, items that were looked at) is full. With fewer before the end of the
/// warm-up, memory grows because it may.
const FILLED_BY_RUNS: u64 = 100_000;
/// What memory may grow after that, by the line through its samples: a share of it, and not less than so much.
const GROWTH: f64 = 0.05;
const GROWTH_MIB: f64 = 4.0;
/// What `events.max_db_mib` is set to, with room for the journal beside it.
const DATABASE_MIB: f64 = 64.0 + 32.0;
/// A thousand killed runs, each with its proof and its clues, and the journal.
const CATALOG_MIB: f64 = 16.0;
const SPOOL_MIB: f64 = 64.0;
/// More than at the beginning, when the load is over: connections to the provider that are kept.
const LEFT_OPEN: usize = 300;
const ROWS: usize = 30;

pub struct Report<'a> {
    samples: &'a [Sample],
    last: &'a Sample,
    counts: &'a Counts,
    minutes: f64,
    verdicts: Vec<(bool, String)>,
}

impl<'a> Report<'a> {
    pub fn new(samples: &'a [Sample], last: &'a Sample, counts: &'a Counts, minutes: f64) -> Report<'a> {
        let warm: Vec<Sample> = samples.iter().filter(|sample| sample.minutes > minutes * WARM_UP).copied().collect();
        let per_minute = slope(&warm, |sample| sample.rss_mib);
        let span = warm.last().map_or(0.0, |last| last.minutes) - warm.first().map_or(0.0, |first| first.minutes);
        let filling = match warm.first() {
            Some(first) if first.runs < FILLED_BY_RUNS => {
                "; too few runs before that to fill what is bounded, take more"
            }
            _ => "",
        };
        let mean = warm.iter().map(|sample| sample.rss_mib).sum::<f64>() / warm.len().max(1) as f64;
        let most = |of: fn(&Sample) -> f64| samples.iter().map(of).fold(0.0, f64::max);
        let (database, spool) = (most(|sample| sample.database_mib), most(|sample| sample.spool_mib));
        let catalog = most(|sample| sample.catalog_mib);
        let refused = counts.refused.load(Ordering::Relaxed);
        let files = most(|sample| sample.open_files as f64);
        let begun = samples.first().map_or(0, |first| first.open_files);
        let failed = counts.broken.load(Ordering::Relaxed);
        let verdicts = vec![
            (
                per_minute * span <= (mean * GROWTH).max(GROWTH_MIB) && !warm.is_empty(),
                format!(
                    "memory: {mean:.1} MiB at the mean after {:.1} minutes of warm-up, and {:+.2} MiB from there to the end ({:+.2} MiB an hour){filling}",
                    minutes * WARM_UP,
                    per_minute * span,
                    per_minute * 60.0
                ),
            ),
            (
                last.open_files <= begun + LEFT_OPEN,
                format!("open files: {files:.0} at most, {} at the end", last.open_files),
            ),
            (spool <= SPOOL_MIB, format!("spool: {spool:.1} MiB at most, {:.1} MiB at the end", last.spool_mib)),
            (database <= DATABASE_MIB, format!("database with its journals: {database:.1} MiB at most, of 64 MiB set")),
            (
                catalog <= CATALOG_MIB,
                format!("catalog with its journal: {catalog:.1} MiB at most; {refused} calls were refused"),
            ),
            (failed == 0, format!("calls that broke without a reason: {failed}")),
        ];
        Report { samples, last, counts, minutes, verdicts }
    }

    pub fn is_flat(&self) -> bool {
        self.verdicts.iter().all(|(holds, _)| *holds)
    }

    pub fn verdicts(&self) -> String {
        let line =
            |(holds, text): &(bool, String)| format!("- {} {text}\n", if *holds { "holds:" } else { "**broken**:" });
        self.verdicts.iter().map(line).collect()
    }

    pub fn markdown(&self) -> String {
        let of = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        let counts = self.counts;
        let mut text = format!(
            "# Soak\n\n{}; {:.0} minutes of mixed traffic.\n\n{}\n\
             {} runs, {} calls: {} answered, {} refused by Sprag, {} failed by the provider as it was told, {} streams cut by it, {} left by \
             the client.\n\nRuns end after a minute without calls here, a thousand killed ones are remembered and the database has 64 MiB, so that everything comes and goes.\n\n\
             | minutes | runs | calls | RSS MiB | open files | spool files | spool MiB | database MiB | catalog MiB |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
            process::machine(),
            self.minutes,
            self.verdicts(),
            of(&counts.runs),
            of(&counts.calls),
            of(&counts.answered),
            of(&counts.refused),
            of(&counts.failed_upstream),
            of(&counts.cut),
            of(&counts.abandoned),
        );
        let every = self.samples.len().div_ceil(ROWS).max(1);
        for sample in self.samples.iter().step_by(every).chain([self.last]) {
            text.push_str(&format!(
                "| {:.1} | {} | {} | {:.1} | {} | {} | {:.1} | {:.1} | {:.1} |\n",
                sample.minutes,
                sample.runs,
                sample.calls,
                sample.rss_mib,
                sample.open_files,
                sample.spool_files,
                sample.spool_mib,
                sample.database_mib,
                sample.catalog_mib
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soaked(grows_mib_per_minute: f64) -> bool {
        let sample = |nth: u32| Sample {
            minutes: f64::from(nth) / 4.0,
            rss_mib: 60.0 + grows_mib_per_minute * f64::from(nth) / 4.0,
            open_files: 40,
            ..Sample::default()
        };
        let samples: Vec<Sample> = (1..=120).map(sample).collect();
        let counts = Counts::default();
        Report::new(&samples, &sample(120), &counts, 30.0).is_flat()
    }

    #[test]
    fn what_grows_is_seen() {
        assert!(soaked(0.05));
        assert!(!soaked(0.5));
    }
}
