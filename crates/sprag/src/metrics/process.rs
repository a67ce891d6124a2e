//! The process, as Linux tells it, under the names that every exporter uses. Elsewhere only when it started.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use super::sheet::Sheet;

/// Ticks of a second in `/proc`: the same on every machine that Linux runs on.
const TICKS: f64 = 100.0;

pub(super) fn write(sheet: &mut Sheet<'_>, started: SystemTime) -> fmt::Result {
    let started = started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    sheet.gauge("process_start_time_seconds", "When the process started, since the beginning of 1970.", started)?;
    if let Some(cpu) = std::fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(cpu_seconds) {
        sheet.fractional_counter("process_cpu_seconds", "Time that the process spent on processors.", cpu)?;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(bytes) = memory(&status, "VmRSS:") {
        sheet.gauge("process_resident_memory_bytes", "Memory of the process that is in use.", bytes)?;
    }
    if let Some(bytes) = memory(&status, "VmSize:") {
        sheet.gauge("process_virtual_memory_bytes", "Addresses that the process has.", bytes)?;
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        sheet.gauge("process_open_fds", "Files and connections that are open.", open.count())?;
    }
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    if let Some(most) = most_files(&limits) {
        sheet.gauge("process_max_fds", "Files and connections that may be open.", most)?;
    }
    if let Some(threads) = field(&status, "Threads:") {
        sheet.gauge("process_threads", "Threads of the process.", threads)?;
    }
    Ok(())
}

/// Time in the program and in the system, of a line of `/proc/self/stat`. The second field is a name, which may hold anything.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS)
}

fn memory(status: &str, name: &str) -> Option<u64> {
    field(status, name).map(|kib| kib.saturating_mul(1024))
}

fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn most_files(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_writes() {
        let stat = "4242 (sp) rag) S 1 1 1 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0 1000 1 2 3";
        assert_eq!(cpu_seconds(stat), Some(3.0));
        assert_eq!(cpu_seconds("4242 (sprag) S 1"), None);
        let status = "Name:\tsprag\nVmSize:\t  2048 kB\nVmRSS:\t     12 kB\nThreads:\t9\n";
        assert_eq!((memory(status, "VmRSS:"), field(status, "Threads:")), (Some(12 << 10), Some(9)));
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max open files            1024                 4096                 files     \n";
        assert_eq!((most_files(limits), most_files("Max open files  unlimited  unlimited")), (Some(1024), None));
    }
}
