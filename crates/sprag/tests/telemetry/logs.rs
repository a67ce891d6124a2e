//! The line of a call in the log names its trace.

use serde_json::{Value, json};
use sprag_testkit::{Provider, client};

use crate::binary::Binary;
use crate::collector::{Collector, Manner};
use crate::scene::{fetch, script};

const TRACE: &str = "ad5b72550a81ce246661189fd2cedff3";

async fn line_of_a_call(more: &str) -> Value {
    let (home, provider) = (tempfile::tempdir().unwrap(), Provider::start(script()).unwrap());
    let binary = Binary::start(home.path(), &provider, &format!("log.format = \"json\"\nlog.calls = true\n{more}"));
    let body = json!({"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]});
    let call = client::post_json(binary.url("/v1/chat/completions"), &body);
    fetch(call.header("traceparent", &format!("00-{TRACE}-78a768f2645dcecd-01"))).await;
    binary.says("\"message\":\"call\"", 1).await;
    let log = binary.log();
    let line = log.lines().find(|line| line.contains("\"message\":\"call\"")).unwrap();
    serde_json::from_str(line).unwrap()
}

#[tokio::test]
async fn a_call_in_a_trace_says_which() {
    let collector = Collector::start(Manner::Takes).await;
    let line = line_of_a_call(&collector.config()).await;
    assert_eq!((&line["trace_id"], &line["model"]), (&json!(TRACE), &json!("gpt-4o")), "{line}");
    assert_eq!(line_of_a_call("").await["trace_id"], Value::Null, "without traces nobody looks at the header");
}
