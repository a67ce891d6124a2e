//! The picture and the keys, without a terminal. `tests/admin/commands_top.rs` has the rest, against a live Sprag.

use anyhow::anyhow;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

use super::follow::{Order, Reading};
use super::screen::{Screen, Wish};
use super::{PRINTED, picture};

fn reading(requests: u64, runs: &[Value], stops: &[Value]) -> Reading {
    let today = json!({
        "since": "2026-01-01T00:00:00.000Z", "requests": requests, "input_tokens": 12_000, "cached_tokens": 0,
        "output_tokens": 34, "cost_usd": "1.5", "cost_nano_usd": 1_500_000_000_u64 + requests, "unpriced": 0,
        "estimated": 0, "blocked": 2, "errors": 0, "saved_usd": "0.5", "saved_nano_usd": 500_000_000,
    });
    let recording = json!({
        "ok": true, "problems": [], "waiting_bytes": 0, "recorded": 1, "money_only": 0, "dropped": 0, "lost": 0,
        "in_database": 1,
    });
    let status = json!({
        "version": "0.1.0", "proxy": "127.0.0.1:7070", "started_at": "", "uptime_seconds": 65, "in_flight": 3,
        "runs_in_memory": 4, "kills": 1, "dlp": {"surfaces": 1, "covered": 1}, "recording": recording, "today": today,
    });
    Reading {
        status: serde_json::from_value(status).unwrap(),
        runs: serde_json::from_value(Value::from(runs.to_vec())).unwrap(),
        stops: serde_json::from_value(Value::from(stops.to_vec())).unwrap(),
    }
}

fn run(id: &str, status: &str) -> Value {
    json!({
        "agent": "bot", "id": id, "parent": null, "origin": "declared", "status": status, "provider": "openai",
        "model": "gpt-4o", "steps": 12, "input_tokens": 1, "cached_tokens": 0, "output_tokens": 1, "cost_usd": "0.25",
        "cost_nano_usd": 250_000_000, "unpriced_steps": 0, "estimated_steps": 0, "blocked": 0, "errors": 0, "saved_usd": "0", "saved_nano_usd": 0,
        "first_at": "2026-01-01T00:00:00.000Z", "last_at": "2026-01-01T10:20:30.000Z", "stopped": null,
    })
}

fn shown(screen: &mut Screen) -> String {
    picture(screen, PRINTED).unwrap().join("\n")
}

fn press(screen: &mut Screen, key: char) -> Wish {
    screen.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE))
}

#[test]
fn sums_runs_and_stops_are_on_the_screen() {
    let mut screen = Screen::default();
    let stop = json!({
        "id": "req_1", "at": "2026-01-01T10:21:00.000Z", "kind": "llm_call", "agent": "bot",
        "run": {"id": "stuck", "step": 6, "origin": "declared"}, "provider": "openai", "dialect": "openai_chat",
        "path": "/", "model": "gpt-4o", "stream": false, "status": 429, "ending": "refused", "total_ms": 1,
        "first_byte_ms": null, "overhead_us": 1, "usage": null, "cost_usd": null, "cost_nano_usd": null,
        "unpriced": false, "finish": null, "tools": [], "blocked": true, "block_reason": "loop_detected", "error": null,
        "act": null,
    });
    screen.take(Ok(reading(41, &[run("task", "running"), run("stuck", "killed")], &[stop])));
    let text = shown(&mut screen);
    for expected in [
        "41 calls",
        "$1.500000",
        "2 stopped",
        "3 in flight",
        "1 kills in force",
        "task",
        "running",
        "killed",
        "10:20:30",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(text.contains("10:21:00  loop_detected  bot  stuck step 6"), "{text}");
}

#[test]
fn a_newcomer_is_told_what_to_do() {
    let mut screen = Screen::default();
    screen.take(Ok(reading(0, &[], &[])));
    assert!(shown(&mut screen).contains("export OPENAI_BASE_URL=http://127.0.0.1:7070/v1"));
}

#[test]
fn names_cannot_command_the_terminal() {
    let mut screen = Screen::default();
    screen.take(Ok(reading(1, &[run("\u{1b}[2J\u{7}evil\u{202e}", "running")], &[])));
    screen.press(KeyEvent::from(KeyCode::Down));
    press(&mut screen, 'k');
    let text = shown(&mut screen);
    assert!(text.contains("evil") && !text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
}

#[test]
fn a_kill_is_asked_for_and_confirmed_and_goes_to_the_chosen_run() {
    let mut screen = Screen::default();
    screen.take(Ok(reading(1, &[run("a", "running"), run("b", "running")], &[])));
    assert_eq!(press(&mut screen, 'k'), Wish::Nothing, "nothing is chosen");
    assert!(screen.asked.is_none());
    screen.press(KeyEvent::from(KeyCode::Down));
    screen.press(KeyEvent::from(KeyCode::Down));
    // A new run comes in above; the mark stays with `b`.
    screen.take(Ok(reading(2, &[run("new", "running"), run("a", "running"), run("b", "running")], &[])));
    press(&mut screen, 'k');
    assert!(shown(&mut screen).contains("Kill run b of bot?"));
    assert_eq!(press(&mut screen, 'n'), Wish::Nothing);
    press(&mut screen, 'k');
    let order = Order { what: "kill", agent: "bot".into(), run: "b".into() };
    assert_eq!(press(&mut screen, 'y'), Wish::Order(order));
    press(&mut screen, 'r');
    assert!(screen.asked.is_none(), "a run that goes on cannot be resumed");
    assert_eq!(press(&mut screen, 'q'), Wish::Leave);
}

#[test]
fn a_look_that_failed_is_said_and_what_was_seen_stays() {
    let mut screen = Screen::default();
    screen.take(Ok(reading(7, &[run("task", "running")], &[])));
    screen.take(Err(anyhow!("nothing listens")));
    let text = shown(&mut screen);
    assert!(text.contains("nothing listens") && text.contains("7 calls"), "{text}");
    screen.take(Ok(reading(9, &[run("task", "expired")], &[])));
    assert!(!shown(&mut screen).contains("nothing listens"));
    assert_eq!(screen.calls, [2]);
    press(&mut screen, 'a');
    assert!(shown(&mut screen).contains("No run goes on"));
}
