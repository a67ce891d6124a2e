//! A command in a real terminal: the status is where it disturbs nobody, and the terminal is left as it was.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::scene::{PATIENCE, Scene};

const ROWS: u16 = 12;
const COLUMNS: u16 = 100;

/// What programs ask of the terminal beside its screen.
#[derive(Default)]
struct Asked {
    titles: Vec<String>,
}

impl vt100::Callbacks for Asked {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.titles.push(String::from_utf8_lossy(title).into_owned());
    }
}

/// A program in a terminal of its own, as its foreground job: `setsid --ctty` gives it the terminal as a login would.
struct Terminal {
    program: Child,
    keys: File,
    slave: OwnedFd,
    shown: Arc<Mutex<(vt100::Parser<Asked>, Vec<u8>)>>,
}

impl Terminal {
    /// The command is one of a scene, whose session this one takes the place of.
    fn start(command: &Command) -> Terminal {
        Terminal::start_behind(&[], command)
    }

    /// The same with a program before it that starts it.
    fn start_behind(starter: &[&str], command: &Command) -> Terminal {
        assert_eq!(command.get_program(), "setsid");
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        tcsetwinsize(&slave, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let side = || Stdio::from(slave.try_clone().unwrap());
        let mut session = Command::new("setsid");
        session.args(["--ctty", "--wait"]).args(starter).args(command.get_args()).env_clear();
        session.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm-256color");
        session.current_dir(command.get_current_dir().unwrap());
        let program = session.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        let mut output = File::from(master);
        let keys = output.try_clone().unwrap();
        let parser = vt100::Parser::new_with_callbacks(ROWS, COLUMNS, 0, Asked::default());
        let shown = Arc::new(Mutex::new((parser, Vec::new())));
        let reading = shown.clone();
        // What is drawn must be read, or the program cannot go on.
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(bytes @ 1..) = output.read(&mut piece) {
                let mut shown = reading.lock().unwrap();
                shown.0.process(&piece[..bytes]);
                shown.1.extend_from_slice(&piece[..bytes]);
            }
        });
        Terminal { program, keys, slave, shown }
    }

    fn wait_for(&self, what: &str, is_there: impl Fn(&vt100::Screen, &[String], &str) -> bool) {
        let begun = Instant::now();
        loop {
            {
                let shown = self.shown.lock().unwrap();
                let raw = String::from_utf8_lossy(&shown.1).into_owned();
                if is_there(shown.0.screen(), &shown.0.callbacks().titles, &raw) {
                    return;
                }
                assert!(begun.elapsed() < PATIENCE, "waiting for {what}: {raw:?}");
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn wait(&mut self) -> i32 {
        self.program.wait().unwrap().code().unwrap_or(-1)
    }

    fn screen(&self) -> String {
        self.shown.lock().unwrap().0.screen().contents()
    }
}

fn row(screen: &vt100::Screen, row: u16) -> String {
    screen.rows(0, COLUMNS).nth(usize::from(row)).unwrap_or_default()
}

/// Talks, then waits for a line.
fn talk_and_wait(scene: &Scene, words: &[&str]) -> Command {
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run_command/agent.py");
    let script = "python3 \"$0\" talks 2; echo ready; read line; echo \"got $line\"";
    let mut command = scene.shell(words, script);
    command.arg(agent);
    command
}

#[test]
fn the_title_shows_the_status_and_the_screen_is_the_commands() {
    let scene = Scene::new();
    let mut terminal = Terminal::start(&talk_and_wait(&scene, &["--budget", "1"]));
    terminal.wait_for("the title", |_, titles, _| {
        titles.last().is_some_and(|title| title == "sprag · 2 calls · $0.0250 of $1.00")
    });
    terminal.wait_for("the command", |screen, _, _| screen.contents().contains("ready"));
    assert_eq!(terminal.screen().trim_end(), "answer 0\nanswer 1\nready", "nothing else is on the screen");
    terminal.press("a word\n");
    assert_eq!(terminal.wait(), 0);
    // The title of before is put back, behind the last of ours.
    terminal.wait_for("the end", |screen, _, raw| {
        let (ours, back) = (raw.rfind("\x1b]2;"), raw.rfind("\x1b[23;2t"));
        raw.contains("\x1b[22;2t") && ours < back && screen.contents().contains("got a word")
    });
    terminal.wait_for("the report", |screen, _, _| screen.contents().contains("sprag: 2 calls in 2 conversations"));
}

#[test]
fn a_line_is_kept_out_of_what_scrolls() {
    let scene = Scene::new();
    let script = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo line $i; done; echo ready; read line; seq 1 30";
    let mut terminal = Terminal::start(&scene.shell(&["--status", "line"], script));
    terminal.wait_for("the status", |screen, _, _| {
        row(screen, ROWS - 1).starts_with("sprag · 0 calls") && screen.contents().contains("ready")
    });
    terminal.press("\n");
    assert_eq!(terminal.wait(), 0);
    terminal.wait_for("the report", |screen, _, _| screen.contents().contains("made no call through Sprag"));
    let screen = terminal.screen();
    assert!(!screen.contains("sprag · 0 calls"), "the line is the command's again: {screen}");
    terminal.wait_for("the whole screen", |_, _, raw| raw.contains("\x1b[r"));
}

#[test]
fn nothing_is_shown_where_nothing_is_wanted() {
    let scene = Scene::new();
    let mut terminal = Terminal::start(&talk_and_wait(&scene, &["--status", "off", "--quiet"]));
    terminal.wait_for("the command", |screen, _, _| screen.contents().contains("ready"));
    terminal.press("\n");
    assert_eq!(terminal.wait(), 0);
    terminal.wait_for("the end", |screen, _, _| screen.contents().contains("got "));
    let raw = String::from_utf8_lossy(&terminal.shown.lock().unwrap().1).into_owned();
    assert!(!raw.contains('\x1b'), "{raw:?}");
}

#[test]
fn keys_reach_the_command() {
    let scene = Scene::new();
    let script = "trap 'echo interrupted; exit 8' INT; echo ready; while :; do sleep 0.01; done";
    let mut terminal = Terminal::start(&scene.shell(&["--quiet"], script));
    terminal.wait_for("the command", |screen, _, _| screen.contents().contains("ready"));
    terminal.press("\x03");
    assert_eq!(terminal.wait(), 8, "Ctrl-C is the command's, and its exit code ours");
    terminal.wait_for("the trap", |screen, _, _| screen.contents().contains("interrupted"));
}

#[test]
fn a_terminal_that_was_left_raw_is_put_back() {
    let scene = Scene::new();
    // As a full-screen program does, and then it cannot clean up.
    let script =
        "trap '' TERM; stty raw -echo; printf '\\033[?1049h\\033[?25l'; printf ready; while :; do sleep 0.01; done";
    let mut terminal = Terminal::start(&scene.shell(&["--timeout", "2", "--grace", "0"], script));
    terminal.wait_for("the second screen", |screen, _, _| screen.alternate_screen() && screen.hide_cursor());
    let modes = || tcgetattr(&terminal.slave).unwrap().local_modes;
    assert!(!modes().contains(LocalModes::ICANON));
    terminal.wait_for("the report", |screen, _, _| screen.contents().contains("Took too long"));
    assert!(modes().contains(LocalModes::ICANON | LocalModes::ECHO), "it can be typed in again");
    let (second, hidden) = {
        let shown = terminal.shown.lock().unwrap();
        (shown.0.screen().alternate_screen(), shown.0.screen().hide_cursor())
    };
    assert_eq!((second, hidden), (false, false));
    assert_eq!(terminal.wait(), 3);
}

#[test]
fn a_command_that_reads_from_a_pipe_can_ask_on_the_terminal() {
    let scene = Scene::new();
    let command = scene.shell(&["--quiet"], "read piped; echo ready; read answer < /dev/tty; echo \"$piped, $answer\"");
    let mut terminal = Terminal::start_behind(&["sh", "-c", "echo a change | \"$0\" \"$@\""], &command);
    terminal.wait_for("the question", |screen, _, _| screen.contents().contains("ready"));
    terminal.press("yes\n");
    terminal.wait_for("the answer", |screen, _, _| screen.contents().contains("a change, yes"));
    assert_eq!(terminal.wait(), 0);
}

#[test]
fn in_the_background_the_terminal_is_left_alone() {
    let scene = Scene::new();
    let command = scene.shell(&["--timeout", "1", "--grace", "0"], "trap '' TERM; while :; do sleep 0.01; done");
    // A shell with jobs, which waits for one that it does not show.
    let mut terminal = Terminal::start_behind(&["sh", "-c", "set -m; \"$0\" \"$@\" & wait $!; echo code $?"], &command);
    terminal.wait_for("the end", |screen, _, _| screen.contents().contains("code 3"));
    assert_eq!(terminal.wait(), 0);
}
