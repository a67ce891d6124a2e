//! The terminal as it was before the command, for when the command cannot put it back itself.

use std::io::{IsTerminal, Write};

use rustix::process::getpgrp;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

/// Leaves the second screen, goes below what stands on the first, shows the cursor, and switches off what full-screen programs switch on: pasting in brackets,
/// reports of the mouse, colours.
const PLAIN: &str = "\x1b[?47l\x1b[?25h\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[0m\x1b[999;1H\r\n";

/// How the terminal was set.
pub(super) struct Terminal(Option<Termios>);

impl Terminal {
    /// Remembers it.
    pub(super) fn remember() -> Terminal {
        let stdin = std::io::stdin();
        Terminal(stdin.is_terminal().then(|| tcgetattr(&stdin).ok()).flatten())
    }

    /// Puts it back, after a command that was ended by force. In the background the terminal is somebody else's, and whoever
    /// sets it from there is stopped.
    pub(super) fn restore(&self) {
        let Some(settings) = &self.0 else { return };
        let stdin = std::io::stdin();
        if tcgetpgrp(&stdin).ok() != Some(getpgrp()) {
            return;
        }
        let _ = tcsetattr(stdin, OptionalActions::Now, settings);
        let mut err = std::io::stderr();
        if err.is_terminal() {
            let _ = err.write_all(PLAIN.as_bytes()).and_then(|()| err.flush());
        }
    }
}
