//! Everything that the command started, so that it can be ended as a whole.
//!
//! On Linux that is the tree of processes below us: what loses its parent becomes our child (`keep_orphans`), so nothing gets
//! out of it, not by a group or a session of its own either. Elsewhere it is the command's group, or the command alone where
//! it shares ours.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

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
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        for entry in entries {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some((pid, parent)) = pid.zip(parent(&stat)) {
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

    /// The parent of a process that runs. Its name stands in brackets and may hold anything.
    fn parent(stat: &str) -> Option<i32> {
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        (state != "Z" && state != "X").then_some(parent)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_parent_stands_behind_the_name() {
            assert_eq!(parent("12 (sh) S 7 12 12 0 -1"), Some(7));
            assert_eq!(parent("12 (a) Z 9) R 7 12"), Some(7));
            assert_eq!(parent("12 (sh) Z 7 12"), None, "it has ended");
            assert_eq!(parent(""), None);
        }
    }
}
