//! A loop is stopped, and the command is ended with everything that it started.

use std::fs;

use crate::scene::{Scene, finish, is_alive, wait_for};

#[test]
fn a_stuck_agent_is_stopped_and_told_why() {
    let scene = Scene::new();
    let ended = finish(&mut scene.agent(&[], &["stuck"]));
    ended
        .assert_code(3)
        .assert_says("stopped python3: Going in circles (loop_detected)")
        .assert_says("6 calls (1 refused)");
    assert!(ended.stdout.contains("loop_detected"), "the agent was told too, and had time to say so: {}", ended.stdout);
    let summary = ended.stderr.lines().nth(1).unwrap();
    assert!(summary.contains("look_up"), "the proof names what repeats: {summary}");
}

#[test]
fn a_healthy_agent_of_forty_steps_is_untouched() {
    let scene = Scene::new();
    let ended = finish(&mut scene.agent(&["--budget", "5"], &["steps", "40"]));
    ended.assert_code(0).assert_says("41 calls in 1 conversation");
    assert_eq!(ended.stdout, "Finished after 40 steps.\n");
    assert!(!ended.stderr.contains("stopped"), "{}", ended.stderr);
}

#[test]
fn observing_stops_nothing() {
    let scene = Scene::new();
    let ended = finish(&mut scene.agent(&["--preset", "observe", "--max-steps", "12"], &["stuck"]));
    ended.assert_code(3).assert_says("step_limit");
}

#[test]
fn one_that_does_not_care_is_ended() {
    let scene = Scene::new();
    let ended = finish(&mut scene.agent(&["--grace", "30"], &["stubborn"]));
    ended.assert_code(3).assert_says("loop_detected");
}

#[test]
fn one_that_ignores_sigterm_is_killed_after_the_grace() {
    let scene = Scene::new();
    let script = "trap '' TERM; echo $$ > pid; while :; do sleep 0.01; done";
    finish(&mut scene.shell(&["--timeout", "1", "--grace", "1"], script)).assert_code(3);
    assert!(!is_alive(&scene.wait_for_file("pid")));
}

#[test]
fn one_that_cleans_up_has_time_to() {
    let scene = Scene::new();
    let script = "trap 'echo cleaned > cleaned; exit 9' TERM; while :; do sleep 0.01; done";
    finish(&mut scene.shell(&["--timeout", "1", "--grace", "30"], script)).assert_code(3);
    assert_eq!(scene.wait_for_file("cleaned"), "cleaned\n");
}

#[test]
fn grandchildren_are_ended_too_wherever_they_went() {
    let scene = Scene::new();
    // One in the command's group, one in a session of its own, one whose parent is gone.
    let script = "sleep 600 & echo $! > child
        setsid sh -c 'echo $$ > session; exec sleep 600' &
        sh -c 'sh -c \"echo \\$\\$ > orphan; trap : TERM; while :; do sleep 0.01; done\" & ' &
        sleep 600";
    finish(&mut scene.shell(&["--timeout", "2", "--grace", "1"], script)).assert_code(3);
    for name in ["child", "session", "orphan"] {
        let pid = scene.wait_for_file(name);
        wait_for(name, || (!is_alive(&pid)).then_some(()));
    }
    assert_eq!(fs::read_dir(scene.data().join("commands")).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn one_whose_kill_cannot_be_written_is_ended_all_the_same() {
    let scene = Scene::new();
    // Whoever else writes to the catalog keeps it for as long as the command lives.
    let script = "import glob, os, sqlite3, time
catalog = sqlite3.connect(glob.glob('data/commands/*/catalog.db')[0], isolation_level=None)
catalog.execute('BEGIN IMMEDIATE')
print(os.getpid(), file=open('pid', 'w'), flush=True)
time.sleep(600)";
    let ended = finish(&mut scene.sprag(&["--timeout", "2", "--grace", "1", "--", "python3", "-c", script]));
    ended.assert_code(3).assert_says("(timeout)").assert_says("the command has had its 2 seconds");
    assert!(!is_alive(&scene.wait_for_file("pid")));
}
