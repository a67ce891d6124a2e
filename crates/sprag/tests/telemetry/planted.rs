//! Secrets planted wherever a call has room: nothing of them is in metrics or spans.

use serde_json::json;
use sprag_testkit::{Reply, Script, When, client};

use crate::collector::{Collector, Manner};
use crate::configured::Configured;
use crate::scene::{CONFIG, VIEWER, fetch, metrics};

const PLANTED: [&str; 5] = [
    "sk-proj-Zq7VxKw3TnB9mLr2HdYc5PfJ8sWg",
    "AKIAZQ7VXKW3TNB9MLR2",
    "xoxb-482910573846-5738291046573-Qw8ErTy2UiOp4AsDfGh6JkLz",
    "planted.person@zulu-motors.com",
    "postgres://admin:Xk82mQpl93@db.zulu-motors.com/main",
];
const PROMPT: &str = "an-ordinary-sentence-of-the-prompt";
const ANSWER: &str = "an-ordinary-sentence-of-the-answer";
const COLLECTORS: &str = "secret-of-the-collector-0123456789";
const PIECE: usize = 10;

#[tokio::test]
async fn nothing_planted_is_told_to_anybody() {
    let all = PLANTED.join(" , ");
    let text = Reply::text(format!("{ANSWER} {all}"));
    let answer = text.and_tool(PLANTED[0], json!({"all": all})).finish(PLANTED[1]);
    let quoting = Reply::status(401).message(format!("Incorrect API key provided: {all}"));
    let script =
        Script::new().when(When::Header("x-want".into(), "error".into()), [quoting]).when(When::Always, [answer]);
    let collector = Collector::start(Manner::Takes).await;
    let config = format!(
        "{CONFIG}{}otlp_headers = {{ x-key = \"{COLLECTORS}\" }}\nmetrics_by_agent = true\n",
        collector.config()
    );
    let place = Configured::start_with(script, &config, true).await;
    let mut calls = 0;
    for model in ["gpt-4o", PLANTED[0], PLANTED[3]] {
        for (want, is_stream) in [("", false), ("", true), ("error", false)] {
            for agent in ["plain", "strict", PLANTED[0]] {
                let body = json!({"model": model, "stream": is_stream, "user": PLANTED[3],
                    "messages": [{"role": "user", "content": format!("{PROMPT} {all}")}]});
                let call = client::post_json(place.sprag.url("/v1/chat/completions"), &body)
                    .header("x-sprag-agent", agent)
                    .header("authorization", &format!("Bearer {}", PLANTED[2]))
                    .header("traceparent", "00-ad5b72550a81ce246661189fd2cedff3-78a768f2645dcecd-01")
                    .header("tracestate", &format!("vendor={}", PLANTED[1]))
                    .header("baggage", &format!("key={}", PLANTED[0]))
                    .header("x-want", want);
                fetch(call).await;
                calls += 1;
            }
        }
    }
    for planted in [PLANTED[0], PLANTED[1]] {
        fetch(client::get(place.sprag.url(&format!("/v1/files/{planted}?key={planted}")))).await;
        calls += 1;
    }
    collector.has_calls(calls).await;
    let mut told: Vec<String> =
        collector.batches().iter().map(|batch| String::from_utf8_lossy(&batch.bytes).into_owned()).collect();
    told.push(metrics(&place).await.text);
    let app = &place.sprag.app;
    told.push(format!("{:?}", app.settings.load().telemetry));
    told.push(serde_json::to_string(app.settings.load().values.list()).unwrap());
    for text in &told {
        for planted in PLANTED.iter().chain([&PROMPT, &ANSWER, &COLLECTORS, &VIEWER]) {
            let pieces = (0..=planted.len() - PIECE).map(|at| &planted[at..at + PIECE]);
            // Words that everybody uses are no secret.
            let found: Vec<&str> = pieces.filter(|piece| text.contains(piece)).collect();
            assert!(found.is_empty(), "{found:?} of {planted}");
        }
    }
    assert!(told.iter().any(|text| text.contains("[REDACTED:OPENAI_KEY]")), "the names were there, and were hidden");
}
