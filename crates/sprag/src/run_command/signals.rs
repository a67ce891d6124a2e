//! Signals to Sprag that are meant for the command.
//!
//! What the terminal sends goes to its whole group. A command in our group has it already; one with a group of its own gets
//! it from us. They are caught before the command starts, so that none ends us and leaves it alone. What was ignored then is
//! left so: the command inherits that, as `nohup` wants it.

use anyhow::{Context, Result};
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::processes::Processes;

/// Sent by whoever ends programs; passed on whatever the group.
const FROM_OTHERS: [Signal; 4] = [Signal::TERM, Signal::HUP, Signal::USR1, Signal::USR2];
/// Sent by the terminal.
const FROM_TERMINAL: [Signal; 5] = [Signal::INT, Signal::QUIT, Signal::WINCH, Signal::TSTP, Signal::CONT];
/// Signals that wait to be passed on. One that finds no room is one of very many.
const WAITING: usize = 64;

/// Signals that arrive from now on.
pub(super) struct Caught(mpsc::Receiver<Signal>);

/// Catches what is meant for a command that will have a group of its own, or share ours.
///
/// # Errors
/// When signals cannot be caught.
pub(super) fn catch(has_own_group: bool) -> Result<Caught> {
    let (caught, to_pass) = mpsc::channel(WAITING);
    let ignored = ignored();
    for number in FROM_OTHERS.into_iter().chain(FROM_TERMINAL) {
        // Stopping and going on is the shell's business with the whole group. Ctrl-C must not end us before the command.
        let is_ours = has_own_group || FROM_OTHERS.contains(&number) || matches!(number, Signal::INT | Signal::QUIT);
        let is_ignored = ignored >> (number.as_raw() - 1) & 1 == 1;
        if is_ours && !is_ignored {
            follow(number, caught.clone())?;
        }
    }
    Ok(Caught(to_pass))
}

impl Caught {
    /// Passes them on for as long as this process lives.
    pub(super) fn pass_on(mut self, processes: Processes) {
        tokio::spawn(async move {
            while let Some(number) = self.0.recv().await {
                if processes.has_own_group || FROM_OTHERS.contains(&number) {
                    processes.pass_on(number);
                }
                if number == Signal::TSTP {
                    let _ = kill_process(getpid(), Signal::STOP);
                }
            }
        });
    }
}

fn follow(number: Signal, caught: mpsc::Sender<Signal>) -> Result<()> {
    let mut arrivals = signal(SignalKind::from_raw(number.as_raw())).context("catching signals")?;
    tokio::spawn(async move {
        while arrivals.recv().await.is_some() {
            if caught.send(number).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// The signals that this process ignores, the first in the lowest bit. Only Linux tells.
fn ignored() -> u64 {
    ignored_in(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

fn ignored_in(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_stands_in_a_mask() {
        let status = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\tffff\n";
        let mask = ignored_in(status);
        let is_ignored = |number: Signal| mask >> (number.as_raw() - 1) & 1 == 1;
        assert!(is_ignored(Signal::HUP) && is_ignored(Signal::PIPE) && !is_ignored(Signal::TERM));
        assert_eq!(ignored_in(""), 0);
    }
}
