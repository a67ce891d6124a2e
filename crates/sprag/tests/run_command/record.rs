//! What a command did is on record, whoever has the data directory.

use std::fs;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use sprag_core::event::ActKind;
use sprag_store::DataDir;
use sprag_store::history::RunStatus;
use sprag_testkit::client::{self, Call, Whole};

use crate::scene::{Scene, finish, finished, wait_for};

#[test]
fn without_a_server_it_is_on_record_at_once() {
    let scene = Scene::new();
    let ended = finish(&mut scene.agent(&["--json"], &["stuck"]));
    let report = ended.report();
    assert_eq!(report["record"], "kept");
    let command = report["run"].as_str().unwrap();
    let events = scene.events();
    let begun = events[0].act.as_deref().unwrap();
    assert_eq!((begun.what, begun.by.as_str()), (ActKind::StartCommand, "sprag run"));
    assert_eq!(begun.detail.as_ref().unwrap()["program"], "python3");
    assert!(!format!("{begun:?}").contains("stuck"), "arguments may hold a prompt");
    let calls = scene.calls();
    assert_eq!(calls.len(), 6);
    let run = calls[5].run.clone().unwrap();
    assert_eq!(run.parent.as_ref().map(|parent| parent.as_str()), Some(command));
    assert_eq!(scene.run(run.id.as_str()).unwrap().status, RunStatus::Killed);
    let whole = scene.run(command).unwrap();
    assert_eq!(whole.steps, 0, "its calls are those of its parts");
    assert_eq!(whole.status, RunStatus::Finished, "it is over, though only a part of it was killed");
    assert!(fs::read_dir(scene.data().join("handover")).unwrap().next().is_none(), "everything was taken");
}

#[test]
fn the_report_can_go_to_a_file() {
    let scene = Scene::new();
    let ended = finish(&mut scene.agent(&["--json=report.json"], &["talks", "2"]));
    ended.assert_code(0).assert_says("2 calls in 2 conversations");
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(scene.dir.path().join("report.json")).unwrap()).unwrap();
    assert_eq!(report["totals"]["steps"], 2);
    assert_eq!(report["totals"]["output_tokens"], 2000);
    assert_eq!(report["exit_code"], 0);
}

/// A `sprag serve` on the scene's data directory.
struct Server {
    child: Child,
    admin: String,
}

const TOKEN: &str = "a-token-for-tests-only-0123456789abcdef";

impl Server {
    fn start(scene: &Scene) -> Server {
        Server::ready(scene, Server::spawn(scene))
    }

    fn spawn(scene: &Scene) -> Child {
        let file = |name| fs::File::create(scene.dir.path().join(name)).unwrap();
        Command::new(env!("CARGO_BIN_EXE_sprag"))
            .args(["serve", "--proxy", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data"])
            .arg(scene.data())
            .env("SPRAG_ADMIN_TOKEN", TOKEN)
            .stdout(file("serve.out"))
            .stderr(file("serve.log"))
            .spawn()
            .unwrap()
    }

    /// Waits until it says where it listens.
    fn ready(scene: &Scene, child: Child) -> Server {
        let admin = wait_for("the server", || {
            let text = fs::read_to_string(scene.dir.path().join("serve.out")).ok()?;
            let line = text.split_inclusive('\n').find(|line| line.contains("dashboard") && line.ends_with('\n'))?;
            line.trim().rsplit("http://").next().map(|address| address.trim_end_matches('/').to_owned())
        });
        Server { child, admin }
    }

    fn get(&self, path: &str) -> serde_json::Value {
        self.ask(client::get(self.url(path))).json()
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/api/v1{path}", self.admin)
    }

    fn ask(&self, call: Call) -> Whole {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(call.header("authorization", &format!("Bearer {TOKEN}")).fetch()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_that_runs_shows_it_while_it_goes_on() {
    let scene = Scene::new();
    let server = Server::start(&scene);
    let script = "python3 \"$0\" talks 2; echo talked > talked; while [ ! -e go ]; do sleep 0.01; done";
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run_command/agent.py");
    let mut command = scene.shell(&["--json"], script);
    let child = command.arg(agent).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    scene.wait_for_file("talked");
    let seen = wait_for("the calls", || {
        let listed = server.get("/events?kind=llm_call");
        (listed["items"].as_array()?.len() == 2).then_some(listed)
    });
    let command = seen["items"][0]["run"]["parent"].as_str().unwrap().to_owned();
    assert_eq!(server.get(&format!("/runs/default/{command}"))["run"]["status"], "running");
    fs::write(scene.dir.path().join("go"), "").unwrap();
    let ended = finished(child);
    ended.assert_code(0);
    assert_eq!((&ended.report()["record"], &ended.report()["run"]), (&"handed_over".into(), &command.as_str().into()));
    wait_for("its end", || {
        (server.get(&format!("/runs/default/{command}"))["run"]["status"] == "finished").then_some(())
    });
    let detail = server.get(&format!("/runs/default/{command}"));
    assert_eq!((&detail["tree_steps"], detail["children"].as_array().unwrap().len()), (&2.into(), 2), "{detail:#}");
}

#[test]
fn a_kill_on_the_dashboard_ends_it() {
    for scope in ["run", "agent"] {
        let scene = Scene::new();
        let server = Server::start(&scene);
        let script = "echo $SPRAG_RUN > begun; while :; do sleep 0.01; done";
        let child = scene.shell(&[], script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let command = scene.wait_for_file("begun").trim().to_owned();
        wait_for("the run", || {
            (server.get(&format!("/runs/default/{command}"))["run"]["status"] == "running").then_some(())
        });
        let path = if scope == "run" { format!("/runs/default/{command}/kill") } else { "/kills".to_owned() };
        let order = if scope == "run" {
            json!({ "reason": "enough" })
        } else {
            json!({ "scope": "agent:default", "reason": "enough" })
        };
        let answer = server.ask(client::post_json(server.url(&path), &order));
        assert!((200..300).contains(&answer.status.as_u16()), "{scope}: {}", answer.json());
        finished(child).assert_code(3).assert_says("(enough)").assert_says("while it ran");
    }
}

#[test]
fn a_pause_on_the_dashboard_holds_it_until_it_is_taken_back() {
    let scene = Scene::new();
    let server = Server::start(&scene);
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run_command/agent.py");
    let script = "echo $SPRAG_RUN > begun
        while python3 \"$0\" ask Hello. 2> /dev/null; do :; done; echo refused > refused
        until python3 \"$0\" ask Hello. 2> /dev/null; do :; done; exit 6";
    let mut command = scene.shell(&["--preset", "observe"], script);
    let child = command.arg(agent).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let run = scene.wait_for_file("begun").trim().to_owned();
    let order = json!({ "scope": format!("run:default/{run}"), "reason": "a look first", "pause": true });
    let answer = server.ask(client::post_json(server.url("/kills"), &order));
    assert!(answer.status.is_success(), "{}", answer.json());
    scene.wait_for_file("refused");
    let answer = server.ask(client::post_json(server.url(&format!("/runs/default/{run}/resume")), &json!({})));
    assert!(answer.status.is_success(), "{}", answer.json());
    finished(child).assert_code(6).assert_says("(a look first): paused by");
}

#[test]
fn an_agent_that_is_stopped_on_the_dashboard_is_stopped_in_a_command() {
    let scene = Scene::new();
    {
        let server = Server::start(&scene);
        let order = client::post_json(server.url("/agents/default"), &json!({ "active": false }));
        assert_eq!(server.ask(order.method(http::Method::PATCH)).status, 200);
        let ended = finish(&mut scene.agent(&["--json"], &["ask", "Hello."]));
        assert_eq!(ended.report()["refusals"]["agent_inactive"], 1, "{}", ended.stderr);
    }
    let ended = finish(&mut scene.agent(&["--json"], &["ask", "Hello."]));
    assert_eq!(ended.report()["refusals"]["agent_inactive"], 1, "also once the server is gone: {}", ended.stderr);
}

#[test]
fn a_server_waits_for_a_command_that_ends() {
    let scene = Scene::new();
    // As it is while a command puts on record what it did.
    let held = DataDir::open(&scene.data()).unwrap();
    fs::create_dir_all(scene.data().join("commands/cmd-00000001")).unwrap();
    let child = Server::spawn(&scene);
    wait_for("the server to wait", || {
        fs::read_to_string(scene.dir.path().join("serve.log")).ok()?.contains("waiting for a command").then_some(())
    });
    drop(held);
    Server::ready(&scene, child);
}

#[test]
fn commands_side_by_side_are_all_on_record() {
    let scene = Scene::new();
    let start =
        || scene.agent(&["--quiet"], &["talks", "3"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let children = [start(), start(), start()];
    for child in children {
        finished(child).assert_code(0);
    }
    finish(&mut scene.sprag(&["--quiet", "--", "true"])).assert_code(0);
    let calls = scene.calls();
    let commands: std::collections::BTreeSet<_> =
        calls.iter().map(|call| call.run.as_ref().unwrap().parent.clone()).collect();
    assert_eq!((calls.len(), commands.len()), (9, 3));
}

#[test]
fn what_a_command_did_that_was_cut_short_is_not_lost() {
    let scene = Scene::new();
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run_command/agent.py");
    let script = "python3 \"$0\" talks 2; echo $$ > talked; exec sleep 600";
    let mut child = scene.shell(&[], script).arg(agent).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let left = scene.wait_for_file("talked");
    child.kill().unwrap();
    child.wait().unwrap();
    kill_process(Pid::from_raw(left.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    finish(&mut scene.sprag(&["--quiet", "--", "true"])).assert_code(0);
    assert_eq!(scene.calls().len(), 2);
}
