//! The status while the command runs: calls, cost, warnings.
//!
//! The terminal is the command's. In its title nothing is in the way of anybody, also where a program has the whole screen.
//! The last line is for commands that print lines: it is taken out of the part that scrolls. Without a terminal there is none.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};
use sprag_core::money::NanoUsd;
use tokio::task::JoinHandle;

use super::asked::StatusPlace;
use super::tally::{Sums, Tally};
use crate::show;

/// How often it is looked at, and what was written handed over.
const EVERY: Duration = Duration::from_millis(500);

/// A status that is being shown.
pub(super) struct Status {
    place: StatusPlace,
    showing: JoinHandle<()>,
}

impl Status {
    /// Shows it until [`Status::end`]. To be called before the command starts: nobody else writes to the terminal yet.
    pub(super) fn show(place: StatusPlace, budget: Option<NanoUsd>, tally: Arc<Tally>) -> Status {
        let place = place.here();
        let size = rows_and_columns();
        write(&begin(place, size));
        let showing = tokio::spawn(async move {
            let mut every = tokio::time::interval(EVERY);
            let (mut shown, mut size) = (None, size);
            loop {
                every.tick().await;
                tally.hand_over();
                let sums = tally.seen().sums;
                let now = (sums, rows_and_columns());
                if shown != Some(now) && is_ours() {
                    let region = if size == now.1 { String::new() } else { resized(place, now.1) };
                    write(&(region + &update(place, &text(&sums, budget), now.1)));
                    (shown, size) = (Some(now), now.1);
                }
            }
        });
        Status { place, showing }
    }

    /// Leaves the terminal as it was.
    pub(super) async fn end(self) {
        self.showing.abort();
        let _ = self.showing.await;
        write(&end(self.place, rows_and_columns()));
    }
}

impl StatusPlace {
    /// Where it is shown on this terminal, if there is one.
    fn here(self) -> StatusPlace {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        match self {
            _ if !std::io::stderr().is_terminal() => StatusPlace::Off,
            StatusPlace::Auto if is_dumb => StatusPlace::Off,
            StatusPlace::Auto => StatusPlace::Title,
            other => other,
        }
    }
}

/// `sprag · 12 calls · $0.0123 of $1.00 · 1 warning`
fn text(sums: &Sums, budget: Option<NanoUsd>) -> String {
    let mut parts = vec!["sprag".to_owned()];
    parts.push(format!("{} {}", show::count(sums.steps), if sums.steps == 1 { "call" } else { "calls" }));
    let of = budget.map(|budget| format!(" of ${budget}")).unwrap_or_default();
    let unknown = if sums.unpriced > 0 { " + unknown" } else { "" };
    parts.push(format!("{}{unknown}{of}", show::usd_headline(sums.cost)));
    for (count, word) in [(sums.warnings, "warning"), (sums.refused, "refused"), (sums.failed, "failed")] {
        let plural = if count > 1 && word == "warning" { "s" } else { "" };
        if count > 0 {
            parts.push(format!("{count} {word}{plural}"));
        }
    }
    parts.join(" · ")
}

/// Keeps the title, or takes the last line out of what scrolls.
fn begin(place: StatusPlace, size: (u16, u16)) -> String {
    match place {
        StatusPlace::Title => "\x1b[22;2t".to_owned(),
        // The cursor must not stand on the line that is taken: what is printed there does not scroll.
        StatusPlace::Line => "\n\x1b[1A".to_owned() + &region(size),
        StatusPlace::Auto | StatusPlace::Off => String::new(),
    }
}

/// The same after the terminal got another size. The cursor stays in its column.
fn resized(place: StatusPlace, size: (u16, u16)) -> String {
    match place {
        StatusPlace::Line => "\x1b7\x1b[r\x1b8\x1bD\x1b[1A".to_owned() + &region(size),
        _ => String::new(),
    }
}

fn region((rows, _): (u16, u16)) -> String {
    if rows > 2 { format!("\x1b7\x1b[1;{}r\x1b8", rows - 1) } else { String::new() }
}

/// The whole in one piece, so that nothing of the command gets in between.
fn update(place: StatusPlace, text: &str, (rows, columns): (u16, u16)) -> String {
    match place {
        StatusPlace::Title => format!("\x1b]2;{text}\x07"),
        StatusPlace::Line if rows > 2 => {
            let fitting: String = text.chars().take(usize::from(columns)).collect();
            format!("\x1b7\x1b[{rows};1H\x1b[2K\x1b[7m{fitting}\x1b[0m\x1b8")
        }
        _ => String::new(),
    }
}

fn end(place: StatusPlace, (rows, _): (u16, u16)) -> String {
    match place {
        StatusPlace::Title => "\x1b[23;2t".to_owned(),
        StatusPlace::Line => format!("\x1b7\x1b[r\x1b[{rows};1H\x1b[2K\x1b8"),
        StatusPlace::Auto | StatusPlace::Off => String::new(),
    }
}

fn rows_and_columns() -> (u16, u16) {
    tcgetwinsize(std::io::stderr()).map_or((0, 0), |size| (size.ws_row, size.ws_col))
}

/// Whether the terminal is ours to write to: in the background it is somebody else's.
fn is_ours() -> bool {
    tcgetpgrp(std::io::stderr()).is_ok_and(|group| group == getpgrp())
}

fn write(text: &str) {
    if !text.is_empty() {
        let mut err = std::io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_there_is_to_say() {
        let nano = |dollars: &str| NanoUsd::parse_usd(dollars).unwrap();
        assert_eq!(text(&Sums::default(), None), "sprag · 0 calls · $0.00");
        let sums = Sums { steps: 1, cost: nano("0.5"), warnings: 2, refused: 1, ..Sums::default() };
        assert_eq!(text(&sums, Some(nano("1"))), "sprag · 1 call · $0.5000 of $1.00 · 2 warnings · 1 refused");
        let unknown = Sums { steps: 2, unpriced: 2, ..Sums::default() };
        assert_eq!(text(&unknown, None), "sprag · 2 calls · $0.00 + unknown");
    }

    #[test]
    fn a_line_stays_within_its_terminal() {
        let shown = update(StatusPlace::Line, "sprag · 12 calls", (24, 5));
        assert!(shown.contains("\x1b[24;1H") && shown.contains("mspra") && !shown.contains("12"));
        assert!(begin(StatusPlace::Line, (24, 5)).ends_with("\x1b7\x1b[1;23r\x1b8"));
        assert_eq!(update(StatusPlace::Line, "x", (2, 80)), "", "there is no room for it");
        assert_eq!(region((2, 80)), "");
        assert_eq!(update(StatusPlace::Off, "x", (24, 80)), "");
    }
}
