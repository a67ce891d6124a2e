//! A command ends as it would without Sprag: its exit code, its signals, its output.

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use sprag_core::event::ActKind;

use crate::scene::{Scene, finish, finished, is_alive, wait_for};

#[test]
fn exit_codes_are_passed_on() {
    let scene = Scene::new();
    for code in [0, 1, 3, 42, 255] {
        finish(&mut scene.shell(&["--quiet"], &format!("exit {code}"))).assert_code(code);
    }
    finish(&mut scene.shell(&["--quiet"], "kill -KILL $$")).assert_code(137);
    finish(&mut scene.shell(&["--quiet"], "kill -TERM $$")).assert_code(143);
}

#[test]
fn output_and_input_are_the_commands() {
    let scene = Scene::new();
    let ended = finish(&mut scene.shell(&["--quiet"], "echo out; echo err >&2"));
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("out\n", "err\n"));
    let mut command = scene.sprag(&["--quiet", "cat", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"through and through").unwrap();
    assert_eq!(finished(child).stdout, "through and through");
}

#[test]
fn what_cannot_be_started_is_said() {
    let scene = Scene::new();
    finish(&mut scene.sprag(&[])).assert_code(2).assert_says("sprag run --budget 1.00 -- python agent.py");
    finish(&mut scene.sprag(&["--", "no-such-program"]))
        .assert_code(127)
        .assert_says("no-such-program: there is no such command");
    let acts: Vec<_> = scene.events().iter().filter_map(|event| Some(event.act.as_ref()?.what)).collect();
    assert_eq!(acts, [ActKind::StartCommand, ActKind::EndCommand], "it is over on record too");
    std::fs::write(scene.dir.path().join("plain.txt"), "not a program").unwrap();
    finish(&mut scene.sprag(&["--", "./plain.txt"])).assert_code(126).assert_says("chmod +x");
    finish(&mut scene.sprag(&["--budget", "0", "--", "true"]))
        .assert_code(2)
        .assert_says("a number of dollars above zero");
    finish(&mut scene.sprag(&["--agent", "a b", "--", "true"])).assert_code(2).assert_says("an agent name has");
    finish(scene.sprag(&["--", "true"]).env("OPENAI_BASE_URL", "gateway"))
        .assert_code(1)
        .assert_says("OPENAI_BASE_URL is not a base URL");
    finish(&mut scene.sprag(&["--config", "missing.toml", "--", "true"])).assert_code(1).assert_says("missing.toml");
}

/// A script that waits in the background until its file says so.
fn waiting(scene: &Scene, trap: &str) -> Child {
    let script = format!("{trap}; echo $$ > pid; while :; do sleep 0.01; done");
    let child = scene.shell(&["--quiet"], &script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    scene.wait_for_file("pid");
    child
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn signals_are_passed_on() {
    for (signal, name, code) in [
        (Signal::TERM, "TERM", 143),
        (Signal::INT, "INT", 130),
        (Signal::HUP, "HUP", 129),
        (Signal::QUIT, "QUIT", 131),
        (Signal::USR1, "USR1", 138),
    ] {
        let scene = Scene::new();
        let child = waiting(&scene, ":");
        send(&child, signal);
        finished(child).assert_code(code);
        let scene = Scene::new();
        let child = waiting(&scene, &format!("trap 'echo {name} caught; exit 7' {name}"));
        send(&child, signal);
        let ended = finished(child);
        assert_eq!(ended.assert_code(7).stdout, format!("{name} caught\n"));
    }
}

#[test]
fn a_signal_that_the_command_ignores_ends_nothing() {
    let scene = Scene::new();
    let child = waiting(&scene, "trap 'echo resized > resized' WINCH; trap '' TERM; trap 'exit 5' USR1");
    send(&child, Signal::TERM);
    send(&child, Signal::WINCH);
    scene.wait_for_file("resized");
    send(&child, Signal::USR1);
    finished(child).assert_code(5);
}

#[test]
fn what_is_ignored_when_it_starts_stays_ignored() {
    let scene = Scene::new();
    let run = scene.shell(&["--quiet"], "kill -HUP $$; echo still here");
    let mut ignoring = std::process::Command::new("sh");
    ignoring.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(run.get_program()).args(run.get_args());
    ignoring.env_clear().envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = finish(ignoring.stdin(Stdio::null()).current_dir(scene.dir.path()));
    assert_eq!(ended.assert_code(0).stdout, "still here\n");
}

#[test]
fn what_goes_on_in_the_background_is_left_alone() {
    let scene = Scene::new();
    finish(&mut scene.shell(&["--quiet"], "sleep 600 >/dev/null 2>&1 & echo $! > background")).assert_code(0);
    let pid = scene.wait_for_file("background");
    assert!(is_alive(&pid), "the command ended by itself, so nothing is ended");
    kill_process(Pid::from_raw(pid.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    wait_for("its end", || (!is_alive(&pid)).then_some(()));
}

#[test]
fn what_loses_its_parent_and_ends_is_let_go() {
    let scene = Scene::new();
    let script = "sh -c 'sleep 0.1 & echo $! > orphan'; while [ ! -e go ]; do sleep 0.01; done; exit 6";
    let child = scene.shell(&["--quiet"], script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let orphan = scene.wait_for_file("orphan");
    let entry = std::path::Path::new("/proc").join(orphan.trim());
    wait_for("its end", || (!entry.exists()).then_some(()));
    std::fs::write(scene.dir.path().join("go"), "").unwrap();
    finished(child).assert_code(6);
}

#[test]
fn a_report_that_cannot_be_written_changes_no_exit_code() {
    let scene = Scene::new();
    finish(&mut scene.shell(&["--json=missing/report.json"], "exit 4"))
        .assert_code(4)
        .assert_says("cannot write the report to missing/report.json")
        .assert_says("made no call through Sprag");
}

#[test]
fn a_port_that_is_taken_leaves_nothing_behind() {
    let scene = Scene::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    finish(&mut scene.sprag(&["--port", &port, "--", "true"])).assert_code(1).assert_says("choose another port");
    assert_eq!(std::fs::read_dir(scene.data().join("commands")).unwrap().count(), 0);
}
