//! A key in a prompt, and a key in an answer.

use bytes::Bytes;
use serde_json::{Value, json};
use sprag_core::wire::Dialect;
use sprag_testkit::{Encoding, Fault, Reply};

use crate::scene::{HIDDEN, KEY, arguments, call, place, place_saying, sent, spoken, text};
use crate::wire::{STREAMING, request, without_metadata};

const SAID: &str = "My API key is sk-1234567890abcdef";
const SEEN: &str = "My API key is [REDACTED:OPENAI_KEY]";
/// The dialects with tools.
const TOOLED: [Dialect; 4] = [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini];

#[tokio::test]
async fn the_provider_does_not_see_the_key() {
    let place = place("").await;
    let embeddings = [Dialect::OpenaiEmbeddings].into_iter();
    for (dialect, is_stream) in STREAMING
        .into_iter()
        .flat_map(|dialect| [(dialect, false), (dialect, true)])
        .chain(embeddings.map(|d| (d, false)))
    {
        let body = request(dialect, is_stream, SAID).to_string();
        let answer = call(&place, dialect, is_stream, body.clone()).fetch().await.unwrap();
        assert_eq!(answer.status, 200, "{dialect:?}: {}", text(&answer));
        assert_eq!(sent(&place), body.replace(SAID, SEEN), "{dialect:?} {is_stream}");
    }
    let events = place.sprag.settled(STREAMING.len() * 2 + 1).await;
    for event in events {
        let written = serde_json::to_string(&event).unwrap();
        let sightings = event.dlp.unwrap();
        assert_eq!((sightings.total, sightings.list[0].entity.as_str()), (1, "OPENAI_KEY"), "{written}");
        assert_eq!((sightings.list[0].start, sightings.list[0].length), (14, KEY.len()));
        assert!(!sightings.list[0].path.is_empty() && sightings.list[0].hint == "sk-1***", "{written}");
        assert!(!written.contains("1234567890"), "{written}");
    }
}

/// Bodies with the key in every place, as a program may write them.
fn written(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenaiChat => {
            r#"{ "model":"gpt-4o",  "messages":[{"role":"system","content":"Use sk-1234567890abcdef here"},
 {"role":"user","content":[{"type":"text","text":"caf\u00e9 \"sk-1234567890abcdef\"\n"}]},
 {"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look_up","arguments":"{\"key\": \"sk-1234567890abcdef\"}"}}]},
 {"role":"tool","tool_call_id":"call_1","content":"{\"token\":\"sk-1234567890abcdef\"}"}],
 "temperature":0.10, "tools":[{"type":"function","function":{"name":"look_up","description":"Try sk-1234567890abcdef","parameters":{"type":"object","properties":{"key":{"type":"string","description":"like sk-1234567890abcdef"}}}}}]}"#
        }
        Dialect::OpenaiResponses => {
            r#"{"model":"gpt-4o", "instructions":"Use sk-1234567890abcdef here","input":[{"role":"user","content":[{"type":"input_text","text":"caf\u00e9 sk-1234567890abcdef"}]},
 {"type":"function_call","call_id":"call_1","name":"look_up","arguments":"{\"key\":\"sk-1234567890abcdef\"}"},
 {"type":"function_call_output","call_id":"call_1","output":"it is sk-1234567890abcdef."}],
 "tools":[{"type":"function","name":"look_up","description":"Try sk-1234567890abcdef","parameters":{"type":"object","properties":{"key":{"type":"string","description":"like sk-1234567890abcdef"}}}}]}"#
        }
        Dialect::Anthropic => {
            r#"{"model":"claude-sonnet-4-5","max_tokens":100 ,"system":[{"type":"text","text":"Use sk-1234567890abcdef here","cache_control":{"type":"ephemeral"}}],
 "messages":[{"role":"user","content":"caf\u00e9 sk-1234567890abcdef"},
 {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"look_up","input":{"key":"sk-1234567890abcdef"}}]},
 {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"it is sk-1234567890abcdef."}]}]}],
 "tools":[{"name":"look_up","description":"Try sk-1234567890abcdef","input_schema":{"type":"object","properties":{"key":{"type":"string","description":"like sk-1234567890abcdef"}}}}]}"#
        }
        _ => {
            r#"{"systemInstruction":{"parts":[{"text":"Use sk-1234567890abcdef here"}]},"contents":[{"role":"user","parts":[{"text":"caf\u00e9 sk-1234567890abcdef"}]},
 {"role":"model","parts":[{"functionCall":{"name":"look_up","args":{"key":"sk-1234567890abcdef"}}}]},
 {"role":"user","parts":[{"functionResponse":{"name":"look_up","response":{"result":"it is sk-1234567890abcdef."}}}]}],
 "tools":[{"functionDeclarations":[{"name":"look_up","description":"Try sk-1234567890abcdef","parameters":{"type":"object","properties":{"key":{"type":"string","description":"like sk-1234567890abcdef"}}}}]}]}"#
        }
    }
}

#[tokio::test]
async fn every_place_is_looked_at_and_nothing_else_changes() {
    let place = place("").await;
    for dialect in TOOLED {
        let body = written(dialect);
        let answer = call(&place, dialect, false, body).fetch().await.unwrap();
        assert_eq!(answer.status, 200, "{dialect:?}: {}", text(&answer));
        assert_eq!(sent(&place), body.replace(KEY, HIDDEN), "{dialect:?}");
    }
    let events = place.sprag.settled(TOOLED.len()).await;
    for event in events {
        assert_eq!(event.dlp.unwrap().total, 6, "{:?}", event.dialect);
    }
}

/// An answer in pieces of each size: so each place in it is a cut once.
#[tokio::test]
async fn an_answer_cut_anywhere_hides_the_key() {
    let said = format!("Grüße, your key {KEY} is in use.");
    let seen = said.replace(KEY, HIDDEN);
    for size in 1..=said.chars().count() {
        let place = place_saying(Reply::text(said.clone()).delta_chars(size), "").await;
        for dialect in STREAMING {
            let answer =
                call(&place, dialect, true, request(dialect, true, "hello").to_string()).fetch().await.unwrap();
            assert!(!text(&answer).contains("1234567890abcdef"), "{dialect:?} {size}: {}", text(&answer));
            let told = spoken(dialect, true, &answer);
            assert_eq!(spoken(dialect, true, &answer).text, seen, "{dialect:?} {size}");
            assert_eq!(told.about["step"], 1, "{dialect:?}: {}", text(&answer));
            assert!(["stop", "completed", "end_turn", "STOP"].contains(&told.finish.as_str()), "{told:?}");
        }
    }
}

#[tokio::test]
async fn bytes_of_a_stream_cut_anywhere_hide_the_key() {
    let said = format!("A key: {KEY}.");
    for bytes in [1, 2, 3, 7, 64] {
        for more in [Fault::Crlf, Fault::Comments, Fault::Encode(Encoding::Gzip), Fault::ContentLength] {
            let dribble = Fault::Dribble { bytes, every: std::time::Duration::ZERO };
            let reply = Reply::text(said.clone()).delta_chars(5).fault(dribble).fault(more.clone());
            let place = place_saying(reply, "").await;
            for dialect in STREAMING {
                let body = request(dialect, true, "hello").to_string();
                let answer = call(&place, dialect, true, body).fetch().await.unwrap();
                assert_eq!(answer.broken, None, "{dialect:?} {more:?}");
                assert_eq!(
                    spoken(dialect, true, &answer).text,
                    said.replace(KEY, HIDDEN),
                    "{dialect:?} {bytes} {more:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn arguments_cut_anywhere_hide_the_key() {
    let asked = json!({"path": "a\"b\\c", "key": KEY, KEY: {KEY: 1}});
    let seen: Value = serde_json::from_str(&asked.to_string().replace(KEY, HIDDEN)).unwrap();
    for size in 1..=asked.to_string().len() {
        let place = place_saying(Reply::tool("look_up", asked.clone()).delta_chars(size), "").await;
        for dialect in TOOLED {
            for is_stream in [true, false] {
                let body = request(dialect, is_stream, "hello").to_string();
                let answer = call(&place, dialect, is_stream, body).fetch().await.unwrap();
                assert_eq!(arguments(dialect, is_stream, &answer), seen, "{dialect:?} {size} {}", text(&answer));
                assert!(!text(&answer).contains("1234567890abcdef"));
            }
        }
    }
}

#[tokio::test]
async fn a_whole_answer_changes_only_where_the_key_is() {
    for (dialect, is_stream, body) in [
        (
            Dialect::OpenaiChat,
            false,
            format!(
                r#"{{"id":"c1", "object":"chat.completion","model":"gpt-4o","choices":[ {{"index":0,"message":{{"role":"assistant","content":"é\u00e9 {KEY}\n"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}}}"#
            ),
        ),
        (
            Dialect::Anthropic,
            false,
            format!(
                r#"{{"id":"m1","type":"message" ,"role":"assistant","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"{KEY}"}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{{"input_tokens":7,"output_tokens":3}}}}"#
            ),
        ),
        (
            Dialect::Gemini,
            false,
            format!(
                r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"text":"{KEY}"}}]}},"finishReason":"STOP","index":0}}],"usageMetadata":{{"promptTokenCount":7,"candidatesTokenCount":3,"totalTokenCount":10}},"modelVersion":"gemini-2.5-flash"}}"#
            ),
        ),
        (
            Dialect::OpenaiCompletions,
            false,
            format!(
                r#"{{"id":"c1","object":"text_completion","model":"gpt-3.5-turbo-instruct","choices":[{{"index":0,"text":"{KEY}","finish_reason":"stop"}}],"usage":{{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}}}"#
            ),
        ),
        (
            Dialect::OpenaiResponses,
            false,
            format!(
                r#"{{"id":"r1","object":"response","status":"completed","model":"gpt-4o","output":[{{"type":"message","id":"m","role":"assistant","status":"completed","content":[{{"type":"output_text","text":"{KEY}","annotations":[]}}]}}],"usage":{{"input_tokens":7,"output_tokens":3,"total_tokens":10}}}}"#
            ),
        ),
    ] {
        for fault in [
            None,
            Some(Fault::Chunked),
            Some(Fault::Encode(Encoding::Gzip)),
            Some(Fault::Encode(Encoding::Zstd)),
            Some(Fault::Encode(Encoding::Br)),
        ] {
            let reply = Reply::raw(200, "application/json", Bytes::from(body.clone()));
            let reply = fault.iter().fold(reply, |reply, fault| reply.fault(fault.clone()));
            let place = place_saying(reply, "").await;
            let answer = call(&place, dialect, is_stream, request(dialect, is_stream, "hello").to_string())
                .fetch()
                .await
                .unwrap();
            let plain =
                without_metadata(&answer.body).unwrap_or_else(|| panic!("{dialect:?} {fault:?} {}", text(&answer)));
            assert_eq!(String::from_utf8(plain).unwrap(), body.replace(KEY, HIDDEN), "{fault:?}");
            assert_eq!(answer.header("content-encoding"), "", "{fault:?}");
            let event = &place.sprag.settled(1).await[0];
            assert_eq!((event.usage.unwrap().input, event.usage.unwrap().output), (7, 3), "{dialect:?}");
            assert!(
                event.cost.is_some_and(|cost| cost.0 > 0) && !answer.header("x-sprag-cost-usd").is_empty(),
                "{event:?}"
            );
        }
    }
}

/// Gemini streams a JSON array to those who do not ask for events.
#[tokio::test]
async fn an_array_of_pieces_hides_the_key() {
    let said = format!("A key: {KEY}.");
    for size in 1..=said.len() {
        let place = place_saying(Reply::text(said.clone()).delta_chars(size), "").await;
        let url = place.sprag.url("/v1beta/models/gemini-2.5-flash:streamGenerateContent");
        let body = request(Dialect::Gemini, true, SAID);
        let answer = sprag_testkit::client::post_json(url, &body).fetch().await.unwrap();
        assert!(sent(&place).contains(SEEN));
        let pieces = answer.json();
        let texts = pieces
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|piece| piece.pointer("/candidates/0/content/parts/0/text").and_then(Value::as_str));
        assert_eq!(texts.collect::<String>(), said.replace(KEY, HIDDEN), "{size}: {}", text(&answer));
    }
}
