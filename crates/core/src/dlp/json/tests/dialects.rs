//! Every surface of every dialect. What must be hidden is `SECRET`; what must stay is `sk-stays…`.

use super::*;
use crate::dlp::Outcome;

/// `BYTES` are a picture. What stays is a key that would be found elsewhere.
fn check(dialect: Dialect, way: Direction, body: &str) {
    let body = &body.replace("BYTES", &format!("sk-stays1234567890abcdef{}", "QUJD".repeat(60)));
    let body = &body.replace("sk-stays-", "sk-0").replace("sk-stays", "sk-0");
    let (out, sightings) = inspected(&inspector(), way, dialect, body);
    assert_eq!(out, body.replace(SECRET, HIDDEN), "{dialect:?} {way:?}");
    assert_eq!(sightings.total as usize, body.matches(SECRET).count());
    assert!(!serde_json::to_string(&sightings).unwrap().contains(SECRET));
}

#[test]
fn openai_chat() {
    let request = r#"{"model":"sk-stays-1234567890abcdef", "user": "sk-1234567890abcdef", "stop":["sk-1234567890abcdef"],
 "metadata":{"id":"sk-1234567890abcdef","note":"My API key is sk-1234567890abcdef"},
 "messages":[ {"role":"system","content":"key sk-1234567890abcdef."},
  {"role":"user","content":[{"type":"text","text":"My API key is sk-1234567890abcdef"},
    {"type":"image_url","image_url":{"url":"data:image/png;base64,sk-stays1234567890abcdefAAAA"}},
    {"type":"image_url","image_url":{"url":"no link: sk-1234567890abcdef"}},
    {"type":"input_audio","input_audio":{"data":"BYTES","format":"wav"}},
    {"type":"file","file":{"file_data":"BYTES","filename":"sk-1234567890abcdef.txt"}}]},
  {"role":"assistant","content":null,"reasoning_content":"it is sk-1234567890abcdef","tool_calls":[{"id":"sk-stays-1234567890abcdef","type":"function",
    "function":{"name":"read","arguments":"{\"path\": \"sk-1234567890abcdef\", \"id\":\"sk-1234567890abcdef\"}"}}]},
  {"role":"assistant","content":"x","reasoning_details":[{"type":"reasoning.encrypted","data":"sk-stays-1234567890abcdef"},
    {"type":"reasoning.text","text":"sk-stays-1234567890abcdef","signature":"s"},{"type":"reasoning.summary","summary":"sk-1234567890abcdef"}]},
  {"role":"tool","tool_call_id":"sk-stays-1234567890abcdef","content":"\tsk-1234567890abcdef\n"}],
 "tools":[{"type":"function","function":{"name":"read","description":"use sk-1234567890abcdef","parameters":{"type":"object",
    "properties":{"key":{"type":"string","default":"sk-1234567890abcdef","enum":["sk-1234567890abcdef"]}}}}}],
 "response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"title":"sk-1234567890abcdef"}}},
 "prediction":{"type":"content","content":"sk-1234567890abcdef"}}"#;
    check(Dialect::OpenaiChat, Direction::Request, request);
    let answer = r#"{"id":"sk-stays-1234567890abcdef","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant",
  "content":"My API key is sk-1234567890abcdef","refusal":"sk-1234567890abcdef","reasoning":"sk-1234567890abcdef",
  "annotations":[{"type":"url_citation","url_citation":{"title":"sk-1234567890abcdef"}}],
  "tool_calls":[{"id":"call_1","function":{"name":"f","arguments":"{\"k\":\"sk-1234567890abcdef\"}"}}],
  "function_call":{"name":"f","arguments":"{\"k\":\"sk-1234567890abcdef\"}"}},"finish_reason":"stop"}],
  "error":{"message":"Incorrect key: sk-1234567890abcdef"},"system_fingerprint":"fp_1","usage":{"total_tokens":4}}"#;
    check(Dialect::OpenaiChat, Direction::Answer, answer);
}

#[test]
fn openai_completions_and_embeddings() {
    check(
        Dialect::OpenaiCompletions,
        Direction::Request,
        r#"{"prompt":"My API key is sk-1234567890abcdef","suffix":"sk-1234567890abcdef"}"#,
    );
    check(Dialect::OpenaiCompletions, Direction::Request, r#"{"prompt":["a","sk-1234567890abcdef"]}"#);
    check(
        Dialect::OpenaiCompletions,
        Direction::Answer,
        r#"{"choices":[{"text":"My API key is sk-1234567890abcdef"}]}"#,
    );
    check(
        Dialect::OpenaiEmbeddings,
        Direction::Request,
        r#"{"input":["My API key is sk-1234567890abcdef",[1,2]],"model":"m"}"#,
    );
    check(Dialect::OpenaiEmbeddings, Direction::Request, r#"{"input":"My API key is sk-1234567890abcdef"}"#);
    check(
        Dialect::OpenaiEmbeddings,
        Direction::Answer,
        r#"{"data":[{"embedding":[0.1,4111111111111111,-2e-3]},{"embedding":"sk-stays-1234567890abcdef"}],"object":"list"}"#,
    );
}

#[test]
fn openai_responses() {
    let request = r#"{"model":"m","instructions":"sk-1234567890abcdef","previous_response_id":"sk-stays-1234567890abcdef","prompt_cache_key":"sk-stays-1234567890abcdef",
 "input":[{"role":"user","content":"My API key is sk-1234567890abcdef"},
  {"type":"message","role":"user","content":[{"type":"input_text","text":"sk-1234567890abcdef"},{"type":"input_image","image_url":"data:image/jpeg;base64,sk-stays1234567890abcdef=="}]},
  {"id":"rs_1","summary":[{"type":"summary_text","text":"sk-stays-1234567890abcdef"}],"type":"reasoning","encrypted_content":"sk-stays-1234567890abcdef"},
  {"type":"function_call","call_id":"sk-stays-1234567890abcdef","name":"f","arguments":"{\"a\":[\"sk-1234567890abcdef\"]}"},
  {"type":"custom_tool_call","input":"sk-1234567890abcdef","call_id":"c"},
  {"type":"function_call_output","call_id":"c","output":"sk-1234567890abcdef"},
  {"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"sk-1234567890abcdef"}]},
  {"type":"local_shell_call","action":{"command":["echo","sk-1234567890abcdef"],"env":{"KEY":"sk-1234567890abcdef"}}}],
 "tools":[{"type":"function","name":"f","description":"sk-1234567890abcdef","parameters":{"description":"sk-1234567890abcdef"}},
  {"type":"function","headers":{"X":"sk-1234567890abcdef"}}]}"#;
    check(Dialect::OpenaiResponses, Direction::Request, request);
    check(Dialect::OpenaiResponses, Direction::Request, r#"{"input":"My API key is sk-1234567890abcdef"}"#);
    let answer = r#"{"id":"resp_1","output":[{"type":"reasoning","id":"rs_1","summary":[{"text":"sk-stays-1234567890abcdef"},{"text":"x"}],"encrypted_content":"gAAA"},
  {"type":"reasoning","id":"rs_2","summary":[{"text":"nothing signs sk-1234567890abcdef"}],"encrypted_content":null},
  {"type":"message","id":"msg","content":[{"type":"output_text","text":"My API key is sk-1234567890abcdef","annotations":[]}]},
  {"type":"function_call","call_id":"c","name":"f","arguments":"{\"k\":\"sk-1234567890abcdef\"}"}],"instructions":"sk-1234567890abcdef"}"#;
    check(Dialect::OpenaiResponses, Direction::Answer, answer);
}

#[test]
fn anthropic() {
    let request = r#"{"model":"m","max_tokens":10,"system":[{"type":"text","text":"sk-1234567890abcdef","cache_control":{"type":"ephemeral","x":"sk-stays-1234567890abcdef"}}],
 "metadata":{"user_id":"{\"device_id\":\"sk-1234567890abcdef\"}"},
 "messages":[{"role":"user","content":"My API key is sk-1234567890abcdef"},
  {"role":"assistant","content":[{"type":"thinking","thinking":"sk-stays-1234567890abcdef","signature":"c2ln"},
    {"signature":"c2ln","thinking":"sk-stays-1234567890abcdef","type":"thinking"},
    {"type":"thinking","thinking":"unsigned sk-1234567890abcdef","signature":""},
    {"type":"redacted_thinking","data":"sk-stays-1234567890abcdef"},
    {"type":"thinking","signature":"s","ty\u0070e":"text","text":"two types: sk-1234567890abcdef"},
    {"type":"thinking","signature":"s","type":"text","text":"two types: sk-1234567890abcdef"},
    {"type":"tool_use","id":"toolu_1","name":"bash","input":{"command":"export K=sk-1234567890abcdef","id":"sk-1234567890abcdef","nested":{"name":["sk-1234567890abcdef"]}}}]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"sk-stays-1234567890abcdef","content":[{"type":"text","text":"sk-1234567890abcdef"}]},
    {"type":"tool_result","tool_use_id":"t","content":"sk-1234567890abcdef"},
    {"type":"image","source":{"type":"base64","media_type":"image/png","data":"BYTES"}},
    {"type":"document","source":{"type":"text","media_type":"text/plain","data":"words and sk-1234567890abcdef"},"title":"sk-1234567890abcdef"},
    {"type":"web_search_tool_result","content":[{"type":"web_search_result","encrypted_content":"sk-stays-1234567890abcdef","title":"sk-1234567890abcdef"}]}]}],
 "tools":[{"name":"t","description":"sk-1234567890abcdef","input_schema":{"properties":{"a":{"description":"sk-1234567890abcdef"}}}}],
 "stop_sequences":["sk-1234567890abcdef"]}"#;
    check(Dialect::Anthropic, Direction::Request, request);
    let answer = r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"sk-stays-1234567890abcdef","signature":"x"},
  {"type":"text","text":"My API key is sk-1234567890abcdef","citations":[{"cited_text":"sk-1234567890abcdef"}]},
  {"type":"tool_use","id":"t","name":"f","input":{"k":"sk-1234567890abcdef"}}],"stop_sequence":"sk-1234567890abcdef","usage":{"input_tokens":1}}"#;
    check(Dialect::Anthropic, Direction::Answer, answer);
}

#[test]
fn gemini() {
    let request = r#"{"systemInstruction":{"parts":[{"text":"sk-1234567890abcdef"}]},
 "contents":[{"role":"user","parts":[{"text":"My API key is sk-1234567890abcdef"},{"inlineData":{"mimeType":"image/png","data":"BYTES"}},
   {"inline_data":{"mime_type":"image/png","data":"BYTES"}},{"fileData":{"mimeType":"x","displayName":"sk-1234567890abcdef"}}]},
  {"role":"model","parts":[{"text":"sk-stays-1234567890abcdef","thought":true,"thoughtSignature":"s"},{"text":"sk-1234567890abcdef","thought":true},
   {"functionCall":{"name":"f","args":{"id":"sk-1234567890abcdef"}},"thoughtSignature":"sk-stays-1234567890abcdef"}]},
  {"role":"user","parts":[{"functionResponse":{"name":"f","response":{"id":"sk-1234567890abcdef","list":["sk-1234567890abcdef"]}}}]}],
 "tools":[{"functionDeclarations":[{"name":"f","description":"sk-1234567890abcdef","parameters":{"description":"sk-1234567890abcdef"}}]}],
 "generationConfig":{"stopSequences":["sk-1234567890abcdef"],"responseSchema":{"title":"sk-1234567890abcdef"}}}"#;
    check(Dialect::Gemini, Direction::Request, request);
    let answer = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"My API key is sk-1234567890abcdef"},{"functionCall":{"name":"f","args":{"k":"sk-1234567890abcdef"}}}]},
  "finishReason":"STOP"}],"modelVersion":"g","responseId":"sk-stays-1234567890abcdef"}"#;
    check(Dialect::Gemini, Direction::Answer, answer);
}

#[test]
fn in_what_is_not_known_every_text_is_looked_at() {
    let body = r#"{"id":"sk-1234567890abcdef","model":"sk-1234567890abcdef","type":"other","signature":"sk-1234567890abcdef",
 "data":"sk-1234567890abcdef","input":["sk-1234567890abcdef"],"picture":"data:image/png;base64,sk-stays1234567890abcdef"}"#;
    check(Dialect::Opaque, Direction::Request, body);
    check(Dialect::Opaque, Direction::Answer, body);
    check(Dialect::Opaque, Direction::Answer, r#""sk-1234567890abcdef""#);
    check(Dialect::Opaque, Direction::Answer, r#" [ "sk-1234567890abcdef" ] "#);
}

#[test]
fn only_what_is_long_and_no_text_counts_as_bytes() {
    let long = format!("{SECRET}/{}", "QUJD".repeat(300));
    for (dialect, data, key) in [
        (Dialect::Anthropic, SECRET, "type"),
        (Dialect::Anthropic, &long, "type"),
        (Dialect::Anthropic, &long, r"ty\u0070e"),
        (Dialect::Opaque, &long, "type"),
    ] {
        for source in [
            format!(r#"{{"{key}":"text","media_type":"text/plain","data":"{data}"}}"#),
            format!(r#"{{"data":"{data}","media_type":"text/plain","{key}":"text"}}"#),
            format!(r#"{{"type":"base64","data":"{data}","type":"text"}}"#),
        ] {
            let body = format!(r#"{{"messages":[{{"content":[{{"type":"document","source":{source}}}]}}]}}"#);
            let (out, sightings) = inspected(&inspector(), Direction::Request, dialect, &body);
            assert_eq!(out, body.replace(SECRET, HIDDEN), "{dialect:?}");
            assert_eq!(sightings.list[0].path, "messages[0].content[0].source.data");
        }
        let cut = format!(r#"{{"source":{{"data":"{SECRET}""#);
        assert_eq!(request(dialect, &cut), cut.replace(SECRET, HIDDEN));
        let picture = format!(r#"{{"source":{{"data":"{long}","type":"base64"}}}}"#);
        assert_eq!(request(dialect, &picture), picture);
    }
}

#[test]
fn what_is_signed_stays_in_bodies_of_any_kind() {
    let body = r#"{"requests":[{"custom_id":"a","params":{"messages":[{"role":"user","content":"sk-1234567890abcdef"},
  {"role":"assistant","content":[{"type":"thinking","thinking":"sk-stays-1234567890abcdef","signature":"c2ln"},
   {"signature":"c2ln","thinking":"sk-stays-1234567890abcdef","type":"thinking"},
   {"type":"redacted_thinking","data":"sk-stays-1234567890abcdef"},
   {"type":"thinking","thinking":"unsigned sk-1234567890abcdef","signature":""},
   {"type":"tool_use","id":"t","name":"f","input":{"type":"thinking","thinking":"sk-1234567890abcdef","signature":"s","encrypted_content":"sk-1234567890abcdef"}}]}]}}],
 "input":[{"type":"reasoning","summary":[{"text":"sk-stays-1234567890abcdef"}],"encrypted_content":"sk-stays-1234567890abcdef"},
  {"type":"function_call","arguments":"{\"type\":\"thinking\",\"signature\":\"s\",\"x\":\"sk-1234567890abcdef\"}"}],
 "contents":[{"parts":[{"text":"sk-stays-1234567890abcdef","thought":true,"thoughtSignature":"s"},
  {"functionCall":{"args":{"thoughtSignature":"sk-1234567890abcdef"}},"thoughtSignature":"sk-stays-1234567890abcdef"},
  {"functionResponse":{"response":{"encrypted_content":"sk-1234567890abcdef"}}}]}]}"#;
    check(Dialect::Opaque, Direction::Request, body);
}

/// What the provider itself is to use: it stays, and is on record.
#[test]
fn what_is_meant_for_the_provider_stays() {
    let link = "https://files.example.com/a?key=sk-1234567890abcdef";
    for (dialect, body) in [
        (
            Dialect::Anthropic,
            r#"{"mcp_servers":[{"type":"url","url":"LINK","name":"n","authorization_token":"sk-1234567890abcdef"}]}"#,
        ),
        (
            Dialect::OpenaiResponses,
            r#"{"tools":[{"headers":{"X-Key":"sk-1234567890abcdef","Y":"{\"a\":\"sk-1234567890abcdef\"}"},"type":"mcp"}]}"#,
        ),
        (
            Dialect::OpenaiResponses,
            r#"{"tools":[{"type":"mcp","server_url":"LINK","authorization":"sk-1234567890abcdef"}]}"#,
        ),
        (
            Dialect::OpenaiResponses,
            r#"{"input":[{"content":[{"type":"input_image","image_url":"LINK"},{"file_url":"LINK"}]}]}"#,
        ),
        (Dialect::OpenaiChat, r#"{"messages":[{"content":[{"type":"image_url","image_url":{"url":"LINK"}}]}]}"#),
        (Dialect::Anthropic, r#"{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"LINK"}}]}]}"#),
        (
            Dialect::Gemini,
            r#"{"contents":[{"parts":[{"fileData":{"fileUri":"LINK"}},{"file_data":{"file_uri":"LINK"}}]}]}"#,
        ),
    ] {
        for body in [body.replace("LINK", link), body.replace("LINK", &link.replace('/', r"\/"))] {
            let (mut strict, mut policy) = (inspector(), DlpPolicy::default());
            policy.set(OPENAI_KEY, Direction::Request, Action::Stop);
            strict.policy = Arc::new(policy);
            for inspector in [inspector(), strict] {
                let (out, sightings) = inspected(&inspector, Direction::Request, dialect, &body);
                assert_eq!(out, body);
                assert_eq!(sightings.total as usize, body.matches(SECRET).count(), "{body}");
                assert!(sightings.list.iter().all(|one| one.outcome == Outcome::Logged));
            }
            let tools = body.find("\"tools\":").map(|at| at + 8..body.len() - 1);
            let (items, seen) = (Vec::from_iter(tools), Seen::new(1));
            let mut sightings = Sightings::default();
            let way = Direction::Request;
            let done = inspect_json(&inspector(), way, dialect, body.as_bytes(), &items, Some(&seen), &mut sightings);
            assert!(done.edits.is_empty() && sightings.total > 0, "known by its bytes it is the same");
        }
    }
    for body in [
        r#"{"tools":[{"type":"function","headers":{"X":"sk-1234567890abcdef"},"url":"LINK"}]}"#,
        r#"{"tools":[{"type":"mcp","headers":{"X":"sk-1234567890abcdef"},"type":"function"}]}"#,
        r#"{"messages":[{"headers":{"X":"sk-1234567890abcdef"},"url":"LINK","content":"LINK"}]}"#,
        r#"{"messages":[{"content":[{"image_url":{"url":"the key in LINK"}}]}]}"#,
        r#"{"messages":[{"tool_calls":[{"function":{"arguments":"{\"image_url\":{\"url\":\"LINK\"}}"}}]}]}"#,
    ] {
        let body = body.replace("LINK", link);
        assert_eq!(request(Dialect::OpenaiChat, &body), body.replace(SECRET, HIDDEN));
    }
}

#[test]
fn what_is_hidden_does_not_come_back_token_by_token() {
    let answer = r#"{"choices":[{"message":{"content":"It is sk-1234567890abcdef"},"logprobs":{"content":[{"token":"sk-12345","bytes":[1]}]}},
 {"message":{"content":[{"type":"output_text","text":"sk-1234567890abcdef","logprobs":[{"token":"sk"}]}]}}]}"#;
    let (out, _) = inspected(&inspector(), Direction::Answer, Dialect::OpenaiChat, answer);
    let expected = answer
        .replace(SECRET, HIDDEN)
        .replace(r#"{"content":[{"token":"sk-12345","bytes":[1]}]}"#, "null")
        .replace(r#"[{"token":"sk"}]"#, "[]");
    assert_eq!(out, expected);
    let clean = answer.replace(SECRET, "nothing");
    assert_eq!(inspected(&inspector(), Direction::Answer, Dialect::OpenaiChat, &clean).0, clean);
}
