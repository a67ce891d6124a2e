//! `sprag top`, printed and in a real terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::commands::printed;
use crate::world::{TOKEN, World};

const RUN: (&str, &str) = ("x-sprag-run-id", "task");
const ROWS: u16 = 40;
const COLUMNS: u16 = 120;

/// A program in a terminal of its own.
struct Terminal {
    program: Child,
    keys: File,
    output: File,
    screen: vt100::Parser,
}

impl Terminal {
    fn start(arguments: &[&str]) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let slave: OwnedFd = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
        tcsetwinsize(&slave, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let program = Command::new(env!("CARGO_BIN_EXE_sprag"))
            .args(arguments)
            .env("SPRAG_ADMIN_TOKEN", TOKEN)
            .env("TERM", "xterm-256color")
            .stdin(Stdio::from(slave.try_clone().unwrap()))
            .stdout(Stdio::from(slave.try_clone().unwrap()))
            .stderr(Stdio::from(slave))
            .spawn()
            .unwrap();
        let output = File::from(master);
        let screen = vt100::Parser::new(ROWS, COLUMNS, 0);
        Terminal { program, keys: output.try_clone().unwrap(), output, screen }
    }

    /// Reads until the words stand on the screen.
    fn wait_for(&mut self, words: &str) {
        let mut piece = [0; 4096];
        while !self.screen.screen().contents().contains(words) {
            let bytes = self.output.read(&mut piece).unwrap();
            self.screen.process(&piece[..bytes]);
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_picture_is_printed_where_there_is_no_terminal() {
    let world = World::start().await;
    let empty = printed(&world, &["top"]).await;
    assert!(empty.contains("Nothing has passed through yet"), "{empty}");
    world.call(&[RUN]).await;
    world.api("/runs/default/task").await;
    let text = printed(&world, &["top", "--once"]).await;
    assert!(text.contains("1 calls") && text.contains("task") && text.contains("running"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_chosen_killed_and_resumed_in_a_terminal() {
    let world = World::start().await;
    world.call(&[RUN]).await;
    let admin = world.sprag.admin.to_string();
    let played = tokio::task::spawn_blocking(move || {
        let mut terminal = Terminal::start(&["top", "--admin", &admin]);
        terminal.wait_for("task");
        terminal.press("\u{1b}[B");
        terminal.press("k");
        terminal.wait_for("any other key");
        terminal.press("y");
        terminal.wait_for("killed");
        terminal.press("r");
        terminal.wait_for("any other key");
        terminal.press("y");
        terminal.wait_for("running");
        terminal.press("q");
        // What is still drawn must be read, or the program cannot end.
        let mut rest = Vec::new();
        let _ = terminal.output.read_to_end(&mut rest);
        terminal.program.wait().unwrap()
    });
    assert!(played.await.unwrap().success());
    let acts = world.json("/events?run=task&agent=default").await;
    let text = acts.to_string();
    assert!(text.contains("by hand, in sprag top") && text.contains("\"resume\""), "{text}");
    assert_eq!(world.call(&[RUN]).await.status, 200);
}
