//! A list of prices in the data directory, and the command that puts it there.

use std::process::{Command, Output};

use serde_json::{Value, json};
use sprag_core::usage::Usage;
use sprag_testkit::{Provider, Reply, Script, client};

use crate::sprag::Sprag;

const LIST: &str = "provider\tmodel\tmode\tinput\toutput\nopenai\tgpt-4o\tchat\t1000\t2000\n";

fn sprag(data: &std::path::Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sprag"));
    command.args(arguments).arg("--data").arg(data).current_dir(data).env_clear().output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_list_is_used_from_the_next_reload_on() {
    let usage = Usage { input: 1, output: 1, ..Usage::default() };
    let provider = Provider::start(Script::always(Reply::text("ok").usage(usage))).unwrap();
    let running = Sprag::start(&provider).await;
    let cost = async || {
        let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]});
        let answer = client::post_json(running.url("/v1/chat/completions"), &body).fetch().await.unwrap();
        serde_json::from_slice::<Value>(&answer.body).unwrap()["sprag"]["cost_usd"].clone()
    };
    assert_eq!(cost().await, json!(0.0000125));

    let file = running.data.path().join("new.tsv");
    std::fs::write(&file, LIST).unwrap();
    let updated = sprag(running.data.path(), &["prices", "update", file.to_str().unwrap()]);
    assert!(updated.status.success(), "{updated:?}");
    assert_eq!(cost().await, json!(0.0000125), "nothing changes under a running Sprag unasked");
    running.app.replace_settings((**running.app.settings.load()).clone()).unwrap();
    assert_eq!(cost().await, json!(0.003));
}

#[test]
fn prices_are_listed_with_the_list_in_force() {
    let data = tempfile::tempdir().unwrap();
    let listed = sprag(data.path(), &["prices", "list", "gpt-4o-mini", "--of", "openai", "--json"]);
    let rows: Vec<Value> = serde_json::from_slice(&listed.stdout).unwrap();
    let mini = rows.iter().find(|row| row["model"] == "gpt-4o-mini").unwrap();
    assert_eq!((&mini["input"], &mini["output"]), (&json!(0.15), &json!(0.6)));

    std::fs::write(data.path().join("prices.tsv"), LIST).unwrap();
    let listed = String::from_utf8(sprag(data.path(), &["prices", "list"]).stdout).unwrap();
    assert!(listed.contains("gpt-4o") && listed.contains("2000") && listed.contains("1 prices"), "{listed}");
}

#[test]
fn a_list_with_a_mistake_is_refused_and_changes_nothing() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("bad.tsv");
    std::fs::write(&file, LIST.replace("2000", "cheap")).unwrap();
    let refused = sprag(data.path(), &["prices", "update", file.to_str().unwrap()]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("line 2") && said.contains("output"), "{said}");
    assert!(!data.path().join("prices.tsv").exists());
}
