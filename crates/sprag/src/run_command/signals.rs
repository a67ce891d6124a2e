//! Signals to Sprag that are meant for the command.
//!
//! What the terminal sends goes to its whole group. A command in our group has it already; one with a group of its own gets
//! it from us.

use anyhow::{Context, Result};
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::processes::Processes;

/// Sent by whoever ends programs; passed on whatever the group.
const FROM_OTHERS: [Signal; 4] = [Signal::TERM, Signal::HUP, Signal::USR1, Signal::USR2];
/// Sent by the terminal.
const FROM_TERMINAL: [Signal; 5] = [Signal::INT, Signal::QUIT, Signal::WINCH, Signal::TSTP, Signal::CONT];

/// Passes signals on for as long as this process lives. To be called after the command was started: it must inherit what
/// is ignored, as `nohup` wants it.
///
/// # Errors
/// When signals cannot be caught.
pub(super) fn pass_on(processes: Processes) -> Result<()> {
    let (caught, mut to_pass) = mpsc::channel(16);
    for number in FROM_OTHERS {
        catch(number, caught.clone())?;
    }
    for number in FROM_TERMINAL {
        // Stopping and going on is the shell's business with the whole group. Ctrl-C must not end us before the command.
        if processes.has_own_group || matches!(number, Signal::INT | Signal::QUIT) {
            catch(number, caught.clone())?;
        }
    }
    tokio::spawn(async move {
        while let Some(number) = to_pass.recv().await {
            if processes.has_own_group || FROM_OTHERS.contains(&number) {
                processes.pass_on(number);
            }
            if number == Signal::TSTP {
                let _ = kill_process(getpid(), Signal::STOP);
            }
        }
    });
    Ok(())
}

fn catch(number: Signal, caught: mpsc::Sender<Signal>) -> Result<()> {
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
