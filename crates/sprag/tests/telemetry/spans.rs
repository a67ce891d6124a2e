//! What a collector is told of calls: decoded from what arrives there.

use serde_json::{Value, json};
use sprag_core::wire::Dialect;
use sprag_testkit::client;

use crate::collector::{CLIENT, Collector, INTERNAL, Manner, SERVER, Span};
use crate::scene::{chat, fetch, place};
use crate::wire::{path, request};

fn own(spans: &[Span]) -> Vec<&Span> {
    spans.iter().filter(|span| span.kind == SERVER).collect()
}

#[tokio::test]
async fn a_call_is_told_in_the_words_of_the_conventions() {
    let collector = Collector::start(Manner::Takes).await;
    let more = format!(
        "{}otlp_headers = {{ authorization = \"Bearer of-the-collector\" }}\nservice_name = \"the-gateway\"\n",
        collector.config()
    );
    let place = place(&more).await;
    let call = chat(&place, "funded", "gpt-4o", "what is the answer?").header("x-sprag-run-id", "task-7");
    assert_eq!(fetch(call).await.status, 200);
    let spans = collector.has_calls(1).await;
    let batch = &collector.batches()[0];
    assert_eq!(batch.headers["authorization"], "Bearer of-the-collector");
    assert_eq!(batch.resource["service.name"], "the-gateway");
    assert_eq!(batch.resource["service.version"], env!("CARGO_PKG_VERSION"));

    let [call] = own(&spans)[..] else { panic!("{spans:?}") };
    let event = &place.sprag.settled(1).await[0];
    assert_eq!((call.name.as_str(), call.parent.as_str(), call.is_error), ("chat gpt-4o", "", false));
    let usage = event.usage.unwrap();
    let told = [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.provider.name", json!("openai")),
        ("gen_ai.request.model", json!("gpt-4o")),
        ("gen_ai.response.model", json!("gpt-4o")),
        ("gen_ai.usage.input_tokens", json!(usage.prompt_tokens())),
        ("gen_ai.usage.output_tokens", json!(usage.output)),
        ("gen_ai.response.finish_reasons", json!(["stop"])),
        ("gen_ai.agent.name", json!("funded")),
        ("gen_ai.conversation.id", json!("task-7")),
        ("http.request.method", json!("POST")),
        ("http.response.status_code", json!(200)),
        ("url.path", json!("/v1/chat/completions")),
        ("error.type", Value::Null),
        ("sprag.agent", json!("funded")),
        ("sprag.run", json!("task-7")),
        ("sprag.step", json!(1)),
        ("sprag.verdict", json!("allow")),
        ("sprag.blocked", json!(false)),
        ("sprag.request_id", json!(event.id)),
        ("sprag.cost_usd", json!(event.cost.unwrap().0 as f64 / 1e9)),
    ];
    for (key, value) in told {
        assert_eq!(call.get(key), value, "{key}");
    }
    assert!(call.get("sprag.overhead_seconds").as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn parts_of_a_call_are_its_children() {
    let collector = Collector::start(Manner::Takes).await;
    let place = place(&collector.config()).await;
    fetch(chat(&place, "plain", "gpt-4o", "my key is sk-1234567890abcdef")).await;
    let spans = collector.has_calls(1).await;
    let find = |name: &str| spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {spans:?}"));
    let (call, judge, upstream) = (find("chat gpt-4o"), find("judge"), find("openai upstream"));
    assert_eq!((judge.kind, &judge.parent), (INTERNAL, &call.id));
    assert_eq!((upstream.kind, &upstream.parent), (CLIENT, &call.id));
    assert_eq!((&find("inspect request").parent, &find("inspect answer").parent), (&judge.id, &call.id));
    assert_eq!(upstream.get("server.address"), "127.0.0.1");
    assert_eq!(upstream.get("http.response.status_code"), 200);
    for part in &spans {
        assert_eq!(part.trace, call.trace);
        assert!(part.from >= call.from && part.to <= call.to && part.from <= part.to, "{part:?} in {call:?}");
    }
    assert!(upstream.from >= judge.to, "the call goes out when it is judged");
    assert_eq!(call.get("sprag.dlp_findings"), 1);
}

#[tokio::test]
async fn every_dialect_has_its_operation() {
    let collector = Collector::start(Manner::Takes).await;
    let place = place(&collector.config()).await;
    let dialects = [
        (Dialect::OpenaiResponses, false, "chat", "openai"),
        (Dialect::OpenaiCompletions, true, "text_completion", "openai"),
        (Dialect::OpenaiEmbeddings, false, "embeddings", "openai"),
        (Dialect::Anthropic, true, "chat", "anthropic"),
        (Dialect::Gemini, true, "generate_content", "gcp.gemini"),
    ];
    for (number, (dialect, is_stream, operation, provider)) in dialects.into_iter().enumerate() {
        let url = place.sprag.url(path(dialect, is_stream));
        assert_eq!(fetch(client::post_json(url, &request(dialect, is_stream, "hello"))).await.status, 200);
        let spans = collector.has_calls(number + 1).await;
        let call = own(&spans)[number];
        assert_eq!(call.get("gen_ai.operation.name"), operation, "{dialect:?}");
        assert_eq!(call.get("gen_ai.provider.name"), provider);
        assert_eq!(call.get("sprag.stream"), is_stream);
        assert!(call.get("gen_ai.usage.input_tokens").as_u64().unwrap() > 0);
    }
    fetch(client::get(place.sprag.url("/v1/models"))).await;
    let spans = collector.has_calls(dialects.len() + 1).await;
    let list = own(&spans)[dialects.len()];
    assert_eq!((list.name.as_str(), list.get("gen_ai.operation.name")), ("GET openai", Value::Null));
}

#[tokio::test]
async fn what_was_stopped_or_failed_says_why() {
    let collector = Collector::start(Manner::Takes).await;
    let place = place(&collector.config()).await;
    fetch(chat(&place, "picky", "gpt-4o", "hello")).await;
    fetch(chat(&place, "plain", "gpt-4o", "hello").header("x-want", "error")).await;
    fetch(client::post(place.sprag.url("/v1/chat/completions"), "{\"model\": ")).await;
    let spans = collector.has_calls(3).await;
    let [stopped, failed, senseless] = own(&spans)[..] else { panic!("{spans:?}") };
    assert!(stopped.is_error && failed.is_error && senseless.is_error);
    assert_eq!(stopped.get("error.type"), "model_not_allowed");
    assert_eq!(
        (stopped.get("sprag.block_reason"), stopped.get("sprag.verdict")),
        (json!("model_not_allowed"), json!("reject"))
    );
    assert!(!spans.iter().any(|span| span.kind == CLIENT && span.parent == stopped.id), "it was not sent");
    assert_eq!((failed.get("error.type"), failed.get("http.response.status_code")), (json!("500"), json!(500)));
    let upstream = spans.iter().find(|span| span.kind == CLIENT && span.parent == failed.id).unwrap();
    assert!(upstream.is_error);
    assert_eq!(senseless.get("error.type"), "invalid_request");
}

#[tokio::test]
async fn only_a_share_is_recorded_where_that_is_wanted() {
    let collector = Collector::start(Manner::Takes).await;
    let place = place(&format!("{}sample_ratio = 0\n", collector.config())).await;
    fetch(chat(&place, "plain", "gpt-4o", "hello")).await;
    let trace = "ad5b72550a81ce246661189fd2cedff3";
    let asked = chat(&place, "plain", "gpt-4o", "hello again");
    fetch(asked.header("traceparent", &format!("00-{trace}-78a768f2645dcecd-01"))).await;
    let spans = collector.has_calls(1).await;
    assert_eq!(own(&spans).len(), 1, "the one that its caller records");
    assert_eq!(own(&spans)[0].trace, trace);
}
