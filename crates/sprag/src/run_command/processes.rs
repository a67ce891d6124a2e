//! Everything that the command started, so that it can be ended as a whole.
//!
//! On Linux that is the tree of processes below us: what loses its parent becomes our child (`keep_orphans`), so nothing gets
//! out of it, not by a group or a session of its own either. Elsewhere it is the command's group, or the command alone where
//! it shares ours.

#[cfg(target_os = "linux")]
use anyhow::Context;
use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
#[cfg(target_os = "linux")]
use rustix::process::{WaitOptions, waitpid};

/// The command, and what it started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Processes {
    pub(super) command: Pid,
    pub(super) has_own_group: bool,
}

impl Processes {
    /// Passes a signal on, as the terminal or a parent would.
    pub(super) fn pass_on(self, signal: Signal) {
        // It may be gone; then there is nobody to tell.
        let _ = match self.has_own_group {
            true => kill_process_group(self.command, signal),
            false => kill_process(self.command, signal),
        };
    }

    /// Sends a signal to all of them.
    pub(super) fn signal_all(self, signal: Signal) {
        if self.has_own_group {
            let _ = kill_process_group(self.command, signal);
        }
        for process in self.alive() {
            // In a group of its own the command has it already; a second one of the same kind changes nothing.
            let _ = kill_process(process, signal);
        }
    }

    /// Lets go of processes that came to us when they lost their parent and have ended, for as long as this process lives.
    ///
    /// # Errors
    /// When the ends of processes cannot be heard of.
    pub(super) fn reap_orphans(self) -> Result<()> {
        #[cfg(target_os = "linux")]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let mut ends = signal(SignalKind::child()).context("catching SIGCHLD")?;
            tokio::spawn(async move {
                while ends.recv().await.is_some() {
                    // The command is waited for elsewhere, so not simply whichever child has ended.
                    for orphan in linux::ended_children(rustix::process::getpid()) {
                        if orphan != self.command {
                            let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
                        }
                    }
                }
            });
        }
        Ok(())
    }

    /// Those that still run.
    pub(super) fn alive(self) -> Vec<Pid> {
        #[cfg(target_os = "linux")]
        return linux::descendants(rustix::process::getpid());
        #[cfg(not(target_os = "linux"))]
        {
            let is_alive = match self.has_own_group {
                true => rustix::process::test_kill_process_group(self.command).is_ok(),
                false => rustix::process::test_kill_process(self.command).is_ok(),
            };
            if is_alive { vec![self.command] } else { Vec::new() }
        }
    }
}

/// Lets processes whose parent ends become children of this one, so that they are found.
pub(super) fn keep_orphans() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::fs;

    use rustix::process::Pid;

    /// The processes below one, without those that have ended and wait to be noticed.
    pub(super) fn descendants(of: Pid) -> Vec<Pid> {
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for (pid, stat) in all() {
            if let Some(Stat { parent, has_ended: false }) = read(&stat) {
                children.entry(parent).or_default().push(pid);
            }
        }
        let mut found = Vec::new();
        let mut next = vec![of.as_raw_nonzero().get()];
        while let Some(process) = next.pop() {
            let below = children.remove(&process).unwrap_or_default();
            found.extend(below.iter().filter_map(|pid| Pid::from_raw(*pid)));
            next.extend(below);
        }
        found
    }

    /// The children of a process that have ended and wait to be noticed.
    pub(super) fn ended_children(of: Pid) -> Vec<Pid> {
        let of = of.as_raw_nonzero().get();
        let is_one = |stat: &str| read(stat).is_some_and(|stat| stat.parent == of && stat.has_ended);
        all().filter(|(_, stat)| is_one(stat)).filter_map(|(pid, _)| Pid::from_raw(pid)).collect()
    }

    /// Every process, and what the system says of it.
    fn all() -> impl Iterator<Item = (i32, String)> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, fs::read_to_string(entry.path().join("stat")).ok()?))
        })
    }

    #[derive(Debug, PartialEq)]
    struct Stat {
        parent: i32,
        has_ended: bool,
    }

    /// Reads what the system says of a process. Its name stands in brackets and may hold anything.
    fn read(stat: &str) -> Option<Stat> {
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        Some(Stat { parent, has_ended: state == "Z" || state == "X" })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_parent_stands_behind_the_name() {
            assert_eq!(read("12 (sh) S 7 12 12 0 -1"), Some(Stat { parent: 7, has_ended: false }));
            assert_eq!(read("12 (a) Z 9) R 7 12"), Some(Stat { parent: 7, has_ended: false }));
            assert_eq!(read("12 (sh) Z 7 12"), Some(Stat { parent: 7, has_ended: true }));
            assert_eq!(read(""), None);
        }
    }
}
