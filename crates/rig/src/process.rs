//! What the system knows of a process: its children, memory, files; and how busy the machine is.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A process and all that it started, transitively.
pub fn family(pid: i32) -> Vec<i32> {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if let Some(parent) = stat_field(pid, 1).and_then(|field| field.parse::<i32>().ok()) {
            parents.insert(pid, parent);
        }
    }
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found
}

/// A field of `/proc/PID/stat`, counted from the one after the name.
fn stat_field(pid: i32, index: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(index).map(str::to_owned)
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    pub rss_kib: u64,
    /// The share that is not counted with other processes: nginx's two have most of their pages in common.
    pub pss_kib: u64,
}

pub fn memory(pids: &[i32]) -> Memory {
    let mut sum = Memory::default();
    for pid in pids {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let of = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        sum.rss_kib += of("Rss:").unwrap_or(0);
        sum.pss_kib += of("Pss:").unwrap_or(0);
    }
    sum
}

/// Names of a process's threads, the oldest first.
pub fn thread_names(pid: i32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut ids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    ids.sort_unstable();
    let name = |id| fs::read_to_string(format!("/proc/{pid}/task/{id}/comm")).unwrap_or_default().trim().to_owned();
    ids.into_iter().map(name).collect()
}

pub fn open_files(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Files in a folder whose names pass, with all folders below it: how many, and their bytes.
pub fn files(folder: &Path, is_wanted: &dyn Fn(&str) -> bool) -> (u64, u64) {
    let (mut count, mut bytes) = (0, 0);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            let (inner, size) = files(&entry.path(), is_wanted);
            (count, bytes) = (count + inner, bytes + size);
        } else if is_wanted(&entry.path().to_string_lossy()) {
            count += 1;
            bytes += entry.metadata().map_or(0, |meta| meta.len());
        }
    }
    (count, bytes)
}

/// Seconds that all cores together were busy since the start of the machine.
pub fn machine_busy_seconds() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<f64> =
        text.lines().next().unwrap_or_default().split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    let all: f64 = fields.iter().take(8).sum();
    let idle: f64 = fields.iter().skip(3).take(2).sum();
    (all - idle) / 100.0
}

/// How the machine is called in a report.
pub fn machine() -> String {
    let model = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = model.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Pinned to one core itself, the rig asks for the list of all.
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online =
        online.trim().rsplit_once('-').and_then(|(_, last)| last.parse::<usize>().ok()).map_or(cores, |n| n + 1);
    format!("{online} cores ({}), Linux {}", model.map_or("unknown", |(_, name)| name), kernel.trim())
}
