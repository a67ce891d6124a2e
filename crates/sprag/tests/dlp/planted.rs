//! Secrets of many kinds, planted wherever a call has room, through every feature: nothing of them is kept anywhere.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use sprag_core::event::Event;
use sprag_core::wire::Dialect;
use sprag_testkit::client::{self, Whole};
use sprag_testkit::{Provider, Reply, Script, When};

use crate::binary::{Binary, events_of};
use crate::planted_names;
use crate::receiver::Receiver;
use crate::wire::{STREAMING, path, request};

const TOKEN: &str = "admin-token-of-the-tests-0123456789";
pub(crate) const PLANTED: [&str; 8] = [
    "sk-proj-Zq7VxKw3TnB9mLr2HdYc5PfJ8sWg",
    "AKIAZQ7VXKW3TNB9MLR2",
    "xoxb-482910573846-5738291046573-Qw8ErTy2UiOp4AsDfGh6JkLz",
    "planted.person@zulu-motors.com",
    "4539 1488 0343 6467",
    "DE89 3704 0044 0532 0130 00",
    "hunter2-Zebra-9931-Quartz",
    "postgres://admin:Xk82mQpl93@db.zulu-motors.com/main",
];
const PIECE: usize = 10;

fn all() -> String {
    let [one, two, three, four, five, six, seven, eight] = PLANTED;
    format!("Key {one}, aws {two}, slack {three}, mail {four}, card {five}, iban {six}, password={seven} and {eight} .")
}

fn script() -> Script {
    let arguments = json!({"all": all(), PLANTED[0]: {PLANTED[3]: PLANTED[1]}});
    let answer = Reply::text(all()).and_tool("look_up", arguments.clone()).reasoning(all()).delta_chars(7);
    let stuck = Reply::tool("look_up", arguments);
    let quoting = format!("Incorrect API key provided: {}", all());
    let named = planted_names::replies().into_iter();
    named
        .fold(Script::new(), |script, (when, reply)| script.when(when, [reply]))
        .when(When::Header("x-want".into(), "error".into()), [Reply::status(401).message(quoting.clone())])
        .when(When::Header("x-want".into(), "page".into()), [Reply::raw(502, "text/html", quoting.clone())])
        .when(When::Header("x-want".into(), "garbage".into()), [Reply::raw(200, "application/json", quoting)])
        .when(When::Header("x-want".into(), "stuck".into()), [stuck])
        .when(When::Always, [answer])
}

const CONFIG: &str = r#"
log.level = "trace"
log.calls = true
admin.token = "admin-token-of-the-tests-0123456789"
[agents.strict.dlp]
profile = "strict"
[agents.logging.dlp]
profile = "log_only"
[agents.off.dlp]
profile = "off"
[agents.poor.budget]
daily_limit = 0.0001
[agents.switched.kill_switch]
enabled = true
[telemetry]
metrics_by_agent = true
"#;

/// A body with everything in every place.
fn full(dialect: Dialect, is_stream: bool) -> Value {
    let mut body = request(dialect, is_stream, &all());
    let input = json!({"all": all(), PLANTED[0]: {PLANTED[3]: PLANTED[1]}});
    match dialect {
        Dialect::OpenaiChat => {
            let function = json!({"name": "look_up", "arguments": input.to_string()});
            body["messages"] = json!([
                {"role": "system", "content": all()}, {"role": "user", "content": all()},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
                {"role": "tool", "tool_call_id": "c1", "content": input.to_string()},
            ]);
            body["user"] = json!(PLANTED[3]);
        }
        Dialect::Anthropic => {
            body["system"] = json!(all());
            body["messages"] = json!([
                {"role": "user", "content": all()},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look_up", "input": input}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": all()}]},
            ]);
        }
        _ => {}
    }
    body
}

async fn traffic(binary: &Binary) -> Vec<Whole> {
    let mut answers = Vec::new();
    for agent in ["plain", "strict", "logging", "off", "poor", "switched"] {
        for dialect in STREAMING {
            for is_stream in [false, true] {
                let url = binary.url(&format!("/agents/{agent}{}", path(dialect, is_stream)));
                for want in ["", "error", "page", "garbage"] {
                    let call = client::post_json(&url, &full(dialect, is_stream));
                    answers.extend(call.header("x-want", want).fetch().await);
                }
                let call = client::post_json(&url, &full(dialect, is_stream)).header("x-mock-stall", "3");
                if is_stream && let Ok(mut answer) = call.send().await {
                    let _ = answer.read_at_least(1).await;
                }
                let broken = full(dialect, is_stream).to_string();
                let half = broken[..broken.len() / 2].to_owned();
                answers.extend(client::post(&url, half).fetch().await);
            }
        }
    }
    for agent in ["plain", "switched"] {
        let mut messages = vec![json!({"role": "user", "content": all()})];
        for step in 0..10 {
            let mut body = request(Dialect::OpenaiChat, false, "");
            body["messages"] = json!(messages);
            let url = binary.url(&format!("/agents/{agent}/v1/chat/completions"));
            let call = client::post_json(url, &body).header("x-want", "stuck").header("x-sprag-run-id", "circle");
            answers.extend(call.fetch().await);
            let function = json!({"name": "look_up", "arguments": json!({"all": all()}).to_string()});
            let id = format!("call_{step}");
            messages.push(json!({"role": "assistant", "content": null,
                "tool_calls": [{"id": id, "type": "function", "function": function}]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": all()}));
        }
    }
    answers
}

fn admin_of(binary: &Binary) -> String {
    let greeting = fs::read_to_string(binary.home.join("stdout")).unwrap();
    let line = greeting.lines().find(|line| line.contains("dashboard")).unwrap();
    line.split_whitespace().last().unwrap().trim_end_matches('/').to_owned()
}

/// Everything that the admin side shows.
async fn shown(binary: &Binary) -> Vec<(String, String)> {
    let admin = admin_of(binary);
    let mut shown = Vec::new();
    let pages = [
        "/",
        "/runs",
        "/run?agent=plain&id=circle",
        "/run?agent=circling&id=named",
        "/agents",
        "/budgets",
        "/events",
        "/events?agent=strict",
        "/events?show=findings",
        "/events/export?format=csv",
        "/events/export?format=jsonl",
        "/run/export?agent=plain&id=circle",
        "/agent?name=plain",
        "/agent?name=strict",
        "/dlp",
        "/dlp?agent=strict",
        "/detectors",
        "/alerts",
        "/keys",
        "/panic",
        "/settings",
        "/metrics",
    ];
    let api = [
        "status",
        "runs?limit=500",
        "runs/plain/circle",
        "runs/circling/named",
        "kills",
        "keys",
        "budgets",
        "events?limit=500",
        "events?agent=strict&limit=500",
        "events/export?format=csv",
        "events/export?format=jsonl",
        "detectors/shadow",
        "detectors/try",
        "runs/plain/circle/picture",
        "runs/plain/circle/try",
        "runs/plain/circle/export",
        "alerts?limit=500",
        "alerts/channels",
        "openapi.json",
        "agents",
        "agents/plain",
        "agents/strict",
    ];
    let login = client::get(format!("{admin}/login?token={TOKEN}")).fetch().await.unwrap();
    let cookie = login.header("set-cookie").split(';').next().unwrap().to_owned();
    for page in pages {
        let answer = client::get(format!("{admin}{page}")).header("cookie", &cookie).fetch().await.unwrap();
        assert_eq!(answer.status, 200, "{page}");
        shown.push((page.to_owned(), String::from_utf8(answer.body.to_vec()).unwrap()));
    }
    for path in api {
        let call = client::get(format!("{admin}/api/v1/{path}")).header("authorization", &format!("Bearer {TOKEN}"));
        let answer = call.fetch().await.unwrap();
        assert_eq!(answer.status, 200, "{path}: {:?}", answer.body);
        shown.push((path.to_owned(), String::from_utf8(answer.body.to_vec()).unwrap()));
    }
    let address = admin.trim_start_matches("http://");
    for arguments in [
        &["status"][..],
        &["runs"],
        &["runs", "circle", "--agent", "plain"],
        &["events"],
        &["events", "--json"],
        &["agents"],
        &["alerts"],
        &["top", "--once"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sprag"));
        command.args(arguments).args(["--admin", address]).env("SPRAG_ADMIN_TOKEN", TOKEN).current_dir(&binary.home);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        shown.push((arguments.join(" "), String::from_utf8(output.stdout).unwrap()));
    }
    shown
}

async fn kill(binary: &Binary) {
    let url = format!("{}/api/v1/runs/plain/circle/kill", admin_of(binary));
    let order = client::post_json(url, &json!({"reason": "enough"}));
    let answer = order.header("authorization", &format!("Bearer {TOKEN}")).fetch().await.unwrap();
    assert!(answer.status.is_success() || answer.status == 409, "{:?}", answer.body);
}

fn assert_clean(name: &str, bytes: &[u8]) {
    for planted in PLANTED {
        for piece in planted.as_bytes().windows(PIECE) {
            if let Some(at) = memchr::memmem::find(bytes, piece) {
                let around = &bytes[at.saturating_sub(300)..(at + 80).min(bytes.len())];
                panic!("{planted} in {name}: …{}…", String::from_utf8_lossy(around));
            }
        }
    }
}

fn assert_clean_files(path: &Path) {
    if path.is_dir() {
        return fs::read_dir(path).unwrap().for_each(|entry| assert_clean_files(&entry.unwrap().path()));
    }
    assert_clean(&path.display().to_string(), &fs::read(path).unwrap());
}

#[test]
fn the_search_finds_what_is_there() {
    for planted in PLANTED {
        let text = format!("…{}…", &planted[3..3 + PIECE]);
        assert!(std::panic::catch_unwind(|| assert_clean("text", text.as_bytes())).is_err(), "{planted}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_planted_is_found_anywhere() {
    let provider = Provider::start(script()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let receiver = Receiver::start().await;
    let alerts = ["dlp", "loop_detected", "run_killed", "budget", "error_rate"]
        .map(|on| format!("[[alerts.rules]]\non = \"{on}\"\n"))
        .concat();
    let channel = format!(
        "[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"{}\"\nallow_private = true\n",
        receiver.url("/hook")
    );
    let config = format!("{CONFIG}{}{channel}{alerts}", planted_names::CONFIG);
    let mut binary = Binary::start(home.path(), &provider, &config);
    let limits = fs::read_to_string(format!("/proc/{}/limits", binary.child.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "no core file is left");
    let mut answers = traffic(&binary).await;
    answers.extend(planted_names::traffic(&binary).await);
    let count = |wanted: &str| answers.iter().filter(|answer| answer.header("x-sprag-blocked") == wanted).count();
    for reason in ["", "dlp_blocked", "loop_detected", "budget_exceeded"] {
        assert!(
            count(reason) > 0,
            "no call with {reason:?}: {:?}",
            answers.iter().map(|a| a.header("x-sprag-blocked")).collect::<std::collections::BTreeSet<_>>()
        );
    }
    kill(&binary).await;
    // Each of them for one agent or more.
    for message in receiver.has(4).await {
        assert_clean("an alert", message.body.as_bytes());
    }
    for (name, text) in shown(&binary).await {
        assert_clean(&name, text.as_bytes());
    }
    // What Sprag itself says of a stop must not quote either.
    for answer in answers.iter().filter(|answer| answer.header("x-sprag-blocked") == "dlp_blocked") {
        assert_clean("a refusal", &answer.body);
    }
    binary.signal("KILL");
    assert_eq!(binary.exit_code().await, None);
    fs::copy(home.path().join("stderr"), home.path().join("stderr-before")).unwrap();
    assert_clean_files(&home.path().join("data"));
    let mut binary = Binary::start(home.path(), &provider, &config);
    for (name, text) in shown(&binary).await {
        assert_clean(&name, text.as_bytes());
    }
    binary.signal("TERM");
    assert_eq!(binary.exit_code().await, Some(0), "{}", binary.log());
    assert!(fs::read_to_string(home.path().join("stderr-before")).unwrap().lines().count() > 200, "there is a log");
    assert_clean_files(home.path());
    let events = events_of(&home.path().join("data"));
    let kinds: std::collections::BTreeSet<String> = events
        .iter()
        .filter_map(|event| event.dlp.as_ref())
        .flat_map(|seen| &seen.list)
        .map(|seen| seen.entity.clone())
        .collect();
    let names =
        |of: fn(&Event) -> Vec<String>| events.iter().flat_map(of).filter(|name| name.contains("[REDACTED:")).count();
    assert!(names(|event| event.model.clone().into_iter().collect()) > 0, "models are on record");
    assert!(names(|event| event.tools.clone()) > 0, "tools are on record");
    assert!(names(|event| event.finish.clone().into_iter().collect()) > 0, "so are reasons to finish");
    assert!(names(|event| vec![event.path.clone()]) > 0, "so are paths");
    assert!(names(|event| event.would_block.iter().map(|stop| stop.message.clone()).collect()) > 0, "so are limits");
    let proof = |event: &Event| event.verdict.iter().map(|verdict| format!("{:?}", verdict.finding.proof)).collect();
    assert!(names(proof) > 0, "so are proofs");
    assert!(kinds.len() >= PLANTED.len(), "all kinds were seen: {kinds:?}");
}
