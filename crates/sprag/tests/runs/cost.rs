//! What a call costs, to the billionth of a dollar, wherever it is told.

use serde_json::{Value, json};
use sprag::config::file::Unpriced;
use sprag_core::money::{NanoUsd, PicoPerToken};
use sprag_core::price::PriceOverride;
use sprag_core::usage::Usage;

use crate::say;
use crate::stage::{Play, Stage};

/// One usage in its dialect, and what it must come to.
struct Case {
    path: &'static str,
    body: Value,
    whole: Play,
    streamed: Play,
    cost: i64,
    usage: Usage,
}

fn with(play: &Play, changes: &[(&str, &str)]) -> Play {
    let mut text = String::from_utf8(play.body.to_vec()).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not in {text}");
        text = text.replace(from, to);
    }
    Play { body: text.into(), ..play.clone() }
}

fn chat(model: &str, answered: &str, usage: &str, cost: i64, expected: Usage) -> Case {
    let message = say::chat_message("ok", &[]);
    let changes = [
        (r#"{"completion_tokens":10,"prompt_tokens":100,"total_tokens":110}"#, usage),
        ("gpt-4o-2024-08-06", answered),
    ];
    Case {
        path: "/v1/chat/completions",
        body: json!({"model": model, "messages": [say::user("x")]}),
        whole: with(&say::chat(&message), &changes),
        streamed: with(&say::chat_stream(&message), &changes),
        cost,
        usage: expected,
    }
}

fn anthropic() -> Case {
    let input = r#""input_tokens":10,"cache_read_input_tokens":1000,"cache_creation_input_tokens":500,
        "cache_creation":{"ephemeral_5m_input_tokens":200,"ephemeral_1h_input_tokens":300}"#
        .replace("\n        ", "");
    let (whole, start) = (format!(r#"{{{input},"output_tokens":50}}"#), format!(r#"{{{input},"output_tokens":1}}"#));
    let model = ("claude-haiku-4-5-20251001", "claude-sonnet-4-5-20250929");
    let stream = say::anthropic_stream("msg_1", &[]);
    let changes = [
        (r#"{"input_tokens":100,"output_tokens":1}"#, start.as_str()),
        (r#""usage":{"output_tokens":10}"#, r#""usage":{"output_tokens":50}"#),
        model,
    ];
    Case {
        path: "/v1/messages",
        body: json!({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [say::user("x")]}),
        whole: with(&say::anthropic("msg_1", &[]), &[(r#"{"input_tokens":100,"output_tokens":10}"#, &whole), model]),
        streamed: with(&stream, &changes),
        // 10 × 3 + 1000 × 0.3 + 200 × 3.75 + 300 × 6 + 50 × 15 dollars per million
        cost: 3_630_000,
        usage: Usage {
            input: 10,
            cache_read: 1000,
            cache_write: 200,
            cache_write_1h: 300,
            output: 50,
            ..Usage::default()
        },
    }
}

fn responses() -> Case {
    let usage = r#"{"input_tokens":2000,"input_tokens_details":{"cached_tokens":500},"output_tokens":300,"output_tokens_details":{"reasoning_tokens":256},"total_tokens":2300}"#;
    let changes = [
        (r#"{"input_tokens":100,"output_tokens":10,"total_tokens":110}"#, usage),
        ("gpt-4.1-2025-04-14", "o3-2025-04-16"),
    ];
    Case {
        path: "/v1/responses",
        body: json!({"model": "o3", "input": "x"}),
        whole: with(&say::responses("resp_1", &[]), &changes),
        streamed: with(&say::responses_stream("resp_1", &[]), &changes),
        // 1500 × 2 + 500 × 0.5 + 300 × 8
        cost: 5_650_000,
        usage: Usage { input: 1500, cache_read: 500, output: 300, reasoning: 256, ..Usage::default() },
    }
}

fn gemini(prompt: u64, cost: i64) -> Case {
    let usage = format!(
        r#"{{"promptTokenCount":{prompt},"cachedContentTokenCount":1,"candidatesTokenCount":10,"thoughtsTokenCount":5,"totalTokenCount":{}}}"#,
        prompt + 15
    );
    let parts = [json!({"text": "ok"})];
    let changes = [
        (r#"{"candidatesTokenCount":10,"promptTokenCount":100,"totalTokenCount":110}"#, usage.as_str()),
        ("gemini-2.5-flash", "gemini-2.5-pro"),
    ];
    Case {
        path: "/v1beta/models/gemini-2.5-pro:",
        body: json!({"contents": [{"role": "user", "parts": [{"text": "x"}]}]}),
        whole: with(&say::gemini(&parts), &changes),
        streamed: with(&say::gemini_stream(&parts), &changes),
        cost,
        usage: Usage { input: prompt - 1, cache_read: 1, output: 15, reasoning: 5, ..Usage::default() },
    }
}

fn completions() -> Case {
    let changes = [(
        r#"{"completion_tokens":10,"prompt_tokens":100,"total_tokens":110}"#,
        r#"{"completion_tokens":3,"prompt_tokens":7,"total_tokens":10}"#,
    )];
    let chunk = r#"{"id":"cmpl-1","object":"text_completion","model":"gpt-3.5-turbo-instruct","choices":[{"index":0,"text":"ok","finish_reason":"stop"}]}"#;
    let usage = r#"{"id":"cmpl-1","object":"text_completion","model":"gpt-3.5-turbo-instruct","choices":[],"usage":{"completion_tokens":3,"prompt_tokens":7,"total_tokens":10}}"#;
    Case {
        path: "/v1/completions",
        body: json!({"model": "gpt-3.5-turbo-instruct", "prompt": "x"}),
        whole: with(&say::completion("ok"), &changes),
        streamed: Play::sse(format!("data: {chunk}\n\ndata: {usage}\n\ndata: [DONE]\n\n")),
        // 7 × 1.5 + 3 × 2
        cost: 16_500,
        usage: Usage { input: 7, output: 3, ..Usage::default() },
    }
}

fn cases() -> Vec<Case> {
    let chat_usage = r#"{"prompt_tokens":1001,"completion_tokens":100,"total_tokens":1101,"prompt_tokens_details":{"cached_tokens":7},"completion_tokens_details":{"reasoning_tokens":30}}"#;
    let audio = r#"{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,"prompt_tokens_details":{"audio_tokens":60},"completion_tokens_details":{"audio_tokens":40}}"#;
    let chat_tokens = Usage { input: 994, cache_read: 7, output: 100, reasoning: 30, ..Usage::default() };
    let audio_tokens = Usage { input: 100, audio_input: 60, output: 50, audio_output: 40, ..Usage::default() };
    vec![
        // 994 × 2.5 + 7 × 1.25 + 100 × 10
        chat("gpt-4o", "gpt-4o-2024-08-06", chat_usage, 3_493_750, chat_tokens),
        // The model that answered is charged, not the one that was asked for: 994 × 0.15 + 7 × 0.075 + 100 × 0.6
        chat("gpt-4o", "gpt-4o-mini-2024-07-18", chat_usage, 209_625, chat_tokens),
        // An alias that no list knows, and a prefix: the answer says what it was.
        chat("my-deployment", "openai/gpt-4o", chat_usage, 3_493_750, chat_tokens),
        // The answer's own name is unknown: the one that was asked for counts.
        chat("gpt-4o-2024-08-06", "deployment-7", chat_usage, 3_493_750, chat_tokens),
        // 40 × 2.5 + 60 × 40 + 10 × 10 + 40 × 80
        chat("speaks", "speaks", audio, 5_800_000, audio_tokens),
        anthropic(),
        responses(),
        // 199999 × 1.25 + 0.125 + 15 × 10
        gemini(200_000, 250_148_875),
        // One token more, and all of it is dearer: 200000 × 2.5 + 0.25 + 15 × 15
        gemini(200_001, 500_225_250),
        completions(),
    ]
}

fn speaking() -> PriceOverride {
    let dollars = |n: u64| PicoPerToken(n * 1_000_000);
    PriceOverride {
        model: "speaks".into(),
        input: PicoPerToken(2_500_000),
        output: dollars(10),
        audio_input: Some(dollars(40)),
        audio_output: Some(dollars(80)),
        ..PriceOverride::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_costs_the_same_streamed_or_not() {
    let stage = Stage::start_with(|settings| settings.prices.overrides = vec![speaking()]).await;
    stage.sprag.app.replace_settings((*stage.sprag.app.settings.load_full()).clone()).unwrap();
    for (number, case) in cases().into_iter().enumerate() {
        let run = format!("case-{number}");
        let (cost, total) = (NanoUsd(case.cost), NanoUsd(2 * case.cost));
        let (mut path, mut stream_path) = (case.path.to_owned(), case.path.to_owned());
        let mut stream_body = case.body.clone();
        if case.path.ends_with(':') {
            path += "generateContent";
            stream_path += "streamGenerateContent?alt=sse";
        } else {
            stream_body["stream"] = true.into();
        }
        let headers = [("x-sprag-run-id", run.as_str())];
        let whole = stage.ask_with(&path, &headers, &case.body, case.whole).await;
        assert_eq!(whole.headers["x-sprag-cost-usd"], cost.to_string(), "{run}");
        assert_eq!(whole.headers["x-sprag-run-cost-usd"], cost.to_string(), "{run}");
        told(&whole.bytes, cost, cost);
        let streamed = stage.ask_with(&stream_path, &headers, &stream_body, case.streamed.piece(7)).await;
        told(&streamed.bytes, cost, total);

        let events = stage.sprag.events();
        for event in &events[events.len() - 2..] {
            assert_eq!((event.cost, event.usage, event.unpriced), (Some(cost), Some(case.usage), false), "{run}");
        }
        let key = sprag_store::RunKey { agent: Default::default(), id: sprag_core::id::RunId::parse(&run).unwrap() };
        assert_eq!(stage.sprag.app.state.totals(&key).unwrap().cost, total, "{run}");
        assert_eq!(stage.sprag.app.history.run_totals(&key).unwrap().unwrap().cost, total, "{run}");
    }
}

/// The metadata names exactly these amounts.
fn told(answer: &[u8], cost: NanoUsd, total: NanoUsd) {
    let answer = String::from_utf8_lossy(answer);
    let expected = format!(r#""cost_usd":{cost},"total_run_cost":{total},"#);
    assert!(answer.contains(&expected), "{expected} is not in {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_a_price_is_shown_as_such() {
    let stage = Stage::start().await;
    let case = chat(
        "brand-new",
        "brand-new-2027",
        r#"{"prompt_tokens":5,"completion_tokens":5,"total_tokens":10}"#,
        0,
        Usage::default(),
    );
    let said = stage.ask_with(case.path, &[("x-sprag-run-id", "r")], &case.body, case.whole).await;
    let meta = &said.json()["sprag"];
    assert_eq!((&meta["cost_usd"], &meta["total_run_cost"]), (&Value::Null, &Value::Null));
    assert!(!said.headers.contains_key("x-sprag-run-cost-usd"));
    assert!(meta["warning"].as_str().unwrap().contains("brand-new"));
    assert!(!said.headers.contains_key("x-sprag-cost-usd"));
    let event = &stage.sprag.events()[0];
    assert_eq!((event.cost, event.unpriced), (None, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_a_price_may_be_refused() {
    let stage = Stage::start_with(|settings| settings.prices.unpriced = Unpriced::Block).await;
    let ask = async |model: &str| {
        let case =
            chat(model, model, r#"{"prompt_tokens":5,"completion_tokens":5,"total_tokens":10}"#, 0, Usage::default());
        stage.ask(case.path, &case.body, case.whole).await.status
    };
    assert_eq!(ask("gpt-4o").await, 200);
    assert_eq!(ask("openai/gpt-4o-2024-08-06").await, 200);
    assert_eq!(ask("brand-new").await, 403);
    let event = stage.sprag.events().pop().unwrap();
    assert!(event.blocked && event.cost.is_none());
}
