//! What is looked at from time to time, and how fast it grows.

use std::fmt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::traffic::Counts;
use crate::process;

#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub minutes: f64,
    pub rss_mib: f64,
    pub open_files: usize,
    pub spool_files: u64,
    pub spool_mib: f64,
    pub database_mib: f64,
    pub catalog_mib: f64,
    pub runs: u64,
    pub calls: u64,
}

impl Sample {
    pub fn take(at: Duration, pid: i32, data: &Path, counts: &Counts) -> Sample {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let (spool_files, spool_bytes) = process::files(data, &|path| path.contains("/spool/"));
        let (_, database_bytes) = process::files(data, &|path| path.contains("/sprag.db"));
        let (_, catalog_bytes) = process::files(data, &|path| path.contains("/catalog.db"));
        Sample {
            minutes: at.as_secs_f64() / 60.0,
            rss_mib: process::memory(&[pid]).rss_kib as f64 / 1024.0,
            open_files: process::open_files(pid),
            spool_files,
            spool_mib: mib(spool_bytes),
            database_mib: mib(database_bytes),
            catalog_mib: mib(catalog_bytes),
            runs: counts.runs.load(Ordering::Relaxed),
            calls: counts.calls.load(Ordering::Relaxed),
        }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "{:>6.2} min  {:>7} runs  {:>8} calls  {:>7.1} MiB  {:>4} files open  spool {} files, {:.1} MiB  database {:.1} MiB",
            self.minutes,
            self.runs,
            self.calls,
            self.rss_mib,
            self.open_files,
            self.spool_files,
            self.spool_mib,
            self.database_mib
        )
    }
}

/// The line through the samples: its slope per minute, by least squares.
pub fn slope(samples: &[Sample], of: fn(&Sample) -> f64) -> f64 {
    let count = samples.len() as f64;
    let mean_x = samples.iter().map(|sample| sample.minutes).sum::<f64>() / count;
    let mean_y = samples.iter().map(of).sum::<f64>() / count;
    let (mut above, mut below) = (0.0, 0.0);
    for sample in samples {
        let x = sample.minutes - mean_x;
        above += x * (of(sample) - mean_y);
        below += x * x;
    }
    if below > 0.0 { above / below } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_found_among_noise() {
        let sample = |nth: u32, per_minute: f64| Sample {
            minutes: f64::from(nth),
            rss_mib: 50.0 + per_minute * f64::from(nth) + f64::from(nth % 3),
            ..Sample::default()
        };
        let rising: Vec<Sample> = (0..60).map(|nth| sample(nth, 0.5)).collect();
        let flat: Vec<Sample> = (0..60).map(|nth| sample(nth, 0.0)).collect();
        assert!((slope(&rising, |sample| sample.rss_mib) - 0.5).abs() < 0.02);
        assert!(slope(&flat, |sample| sample.rss_mib).abs() < 0.02);
    }
}
