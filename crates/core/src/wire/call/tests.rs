use super::*;

fn parse<'a>(dialect: Dialect, body: &'a str) -> Call<'a> {
    Call::parse(dialect, "/v1/x", body.as_bytes()).unwrap()
}

#[test]
fn reads_what_matters_of_a_chat_request() {
    let call = parse(
        Dialect::OpenaiChat,
        r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}, {"role":"assistant"}],
            "stream":true,"stream_options":{"include_usage": true},"max_completion_tokens":7,"max_tokens":9}"#,
    );
    assert_eq!(call.model.as_deref(), Some("gpt-4o"));
    assert_eq!(call.items.len(), 2);
    assert_eq!(call.items[0].get(), r#"{"role":"user","content":"hi"}"#);
    assert!(call.is_stream && call.stream_options.asks_for_usage());
    assert_eq!((call.max_output_tokens, call.choices), (Some(9), 1));
}

#[test]
fn the_path_names_the_model_where_the_body_does_not() {
    let body = br#"{"contents":[],"generationConfig":{"maxOutputTokens":5}}"#;
    let path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent";
    let call = Call::parse(Dialect::Gemini, path, body).unwrap();
    assert_eq!(call.model.as_deref(), Some("gemini-2.5-pro"));
    assert!(call.is_stream);
    assert_eq!(call.max_output_tokens, Some(5));

    let path = "/openai/deployments/prod-4o/chat/completions";
    let call = Call::parse(Dialect::OpenaiChat, path, br#"{"messages":[]}"#).unwrap();
    assert_eq!(call.model.as_deref(), Some("prod-4o"));
}

#[test]
fn a_prompt_that_is_one_string_is_kept() {
    let call = parse(Dialect::OpenaiResponses, r#"{"model":"m","input":"hello"}"#);
    assert!(call.items.is_empty());
    assert_eq!(call.prompt.map(RawValue::get), Some("\"hello\""));
}

#[test]
fn previous_ids_are_found_in_both_dialects_that_have_them() {
    let call = parse(Dialect::OpenaiResponses, r#"{"previous_response_id":"resp_1","input":[]}"#);
    assert_eq!(call.previous_id.as_deref(), Some("resp_1"));
    let body = r#"{"thread":{"type":"continue","previous_message_id":"msg_1"},"messages":[]}"#;
    assert_eq!(parse(Dialect::Anthropic, body).previous_id.as_deref(), Some("msg_1"));
    let body = r#"{"thread":{"type":"create"},"previous_response_id":null,"messages":[]}"#;
    assert_eq!(parse(Dialect::Anthropic, body).previous_id, None);
}

#[test]
fn sessions_hide_in_metadata_and_cache_keys() {
    let body = r#"{"metadata":{"user_id":"{\"device_id\":\"d\",\"session_id\":\"s-1\"}"}}"#;
    assert_eq!(parse(Dialect::Anthropic, body).session.as_deref(), Some("s-1"));
    let body = r#"{"metadata":{"user_id":"user_ab_account_cd_session_ef-9"}}"#;
    assert_eq!(parse(Dialect::Anthropic, body).session.as_deref(), Some("ef-9"));
    assert_eq!(parse(Dialect::Anthropic, r#"{"metadata":{"user_id":"alice"}}"#).session, None);
    let session = |body: &str| parse(Dialect::OpenaiResponses, body).session.map(Cow::into_owned);
    let unique = "01a1de3a-be8f-7bd1-9837-04f2e6ead61f";
    assert_eq!(session(&format!(r#"{{"prompt_cache_key":"{unique}"}}"#)).as_deref(), Some(unique));
    assert_eq!(session(r#"{"prompt_cache_key":"my-app"}"#), None);
    assert_eq!(session(r#"{"conversation":"conv_1"}"#).as_deref(), Some("conv_1"));
    assert_eq!(session(r#"{"conversation":{"id":"conv_1"}}"#).as_deref(), Some("conv_1"));
}

#[test]
fn own_fields_are_found_in_the_order_of_the_body() {
    let call =
        parse(Dialect::OpenaiChat, r#"{"agentwall_agent_id":"a","x":1,"sprag_run_id":"r","agentwall_run_id":null}"#);
    assert_eq!(call.own.run_id.as_deref(), Some("r"));
    assert_eq!(call.own.agent.as_deref(), Some("a"));
    let values: Vec<_> = call.own.values.iter().map(|v| v.get()).collect();
    assert_eq!(values, ["\"a\"", "\"r\"", "null"]);
}

#[test]
fn doubtful_bodies_are_refused() {
    let doubtful = [
        "",
        "[]",
        "\"text\"",
        "{\"messages\":[]} x",
        r#"{"messages":[],"messages":[1]}"#,
        r#"{"messages":[],"mess\u0061ges":[1]}"#,
        r#"{"stream":true,"stream":false}"#,
        r#"{"system":"a","messages":[],"system":"b"}"#,
        r#"{"tools":[],"tools":[1]}"#,
        r#"{"instructions":"a","instructions":"b"}"#,
        r#"{"systemInstruction":{},"system_instruction":{}}"#,
        r#"{"sprag_run_id":5}"#,
        "{\"messages\":[\"\u{7}\"]}",
    ];
    for body in doubtful {
        assert!(Call::parse(Dialect::OpenaiChat, "/v1/x", body.as_bytes()).is_err(), "{body}");
    }
    assert!(Call::parse(Dialect::OpenaiChat, "/v1/x", b"{\"model\":\"\xff\"}").is_err());
}

#[test]
fn limits_of_the_answer_are_read_where_the_dialect_has_them() {
    use Dialect::{Anthropic, Gemini, OpenaiChat, OpenaiCompletions, OpenaiResponses};
    for (dialect, body, limit, choices) in [
        (OpenaiChat, r#"{"max_tokens":10,"n":3}"#, Some(10), 3),
        (OpenaiChat, r#"{"max_tokens":10,"max_completion_tokens":500}"#, Some(500), 1),
        (OpenaiChat, r#"{"max_output_tokens":10,"n":0}"#, None, 1),
        (OpenaiCompletions, r#"{"max_tokens":10,"n":2,"best_of":5}"#, Some(10), 5),
        (OpenaiResponses, r#"{"max_tokens":1,"max_output_tokens":900}"#, Some(900), 1),
        (OpenaiResponses, r#"{"max_tokens":1}"#, None, 1),
        (Anthropic, r#"{"max_tokens":64,"n":9}"#, Some(64), 1),
        (Gemini, r#"{"max_tokens":1,"generationConfig":{"maxOutputTokens":7,"candidateCount":4}}"#, Some(7), 4),
        (Gemini, r#"{"generation_config":{"max_output_tokens":8,"candidate_count":2}}"#, Some(8), 2),
        (Gemini, r#"{}"#, None, 1),
        // What can be read in two ways sets no limit.
        (OpenaiChat, r#"{"max_tokens":1,"max_completion_tokens":1e5}"#, None, 1),
        (OpenaiChat, r#"{"max_tokens":"1","n":"7"}"#, None, 7),
        (OpenaiChat, r#"{"max_tokens":1.0,"n":6.5}"#, None, 7),
        (OpenaiChat, r#"{"max_tokens":-1,"n":-3}"#, None, 1),
        (OpenaiChat, r#"{"max_tokens":null,"max_completion_tokens":4,"n":null}"#, Some(4), 1),
        (OpenaiChat, r#"{"max_tokens":0,"n":1e99}"#, None, u32::MAX),
        (OpenaiChat, r#"{"max_tokens":99999999999999999999}"#, None, 1),
        (OpenaiChat, r#"{"max_tokens":18446744073709551615}"#, Some(u64::MAX), 1),
        (OpenaiCompletions, r#"{"max_tokens":0}"#, Some(0), 1),
        (Gemini, r#"{"generationConfig":{"maxOutputTokens":0,"candidateCount":"3"}}"#, None, 3),
        (Gemini, r#"{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":9,"candidate_count":2}}"#, Some(9), 2),
        (Gemini, r#"{"generationConfig":{"candidateCount":1,"candidateCount":8}}"#, None, 8),
        (Gemini, r#"{"generationConfig":null}"#, None, 1),
    ] {
        let call = Call::parse(dialect, "/x", body.as_bytes()).unwrap();
        assert_eq!((call.max_output_tokens, call.choices), (limit, choices), "{dialect:?} {body}");
    }
}

#[test]
fn a_model_in_the_path_wins_over_the_body() {
    let path = "/openai/deployments/prod-4o/chat/completions";
    let call = Call::parse(Dialect::OpenaiChat, path, br#"{"model":"cheap","messages":[]}"#).unwrap();
    assert_eq!((call.model.as_deref(), call.model_in_body.as_deref()), (Some("prod-4o"), Some("cheap")));
    for path in ["/v1beta/models/dear:generateContent", "/v1/tunedModels/dear:generateContent"] {
        let call = Call::parse(Dialect::Gemini, path, br#"{"model":"cheap","contents":[]}"#).unwrap();
        assert_eq!(call.model.as_deref(), Some("dear"), "{path}");
    }
    // These name none.
    for path in ["/models/chat/completions", "/models/org/name/v1/chat/completions"] {
        let call = Call::parse(Dialect::OpenaiChat, path, br#"{"model":"m"}"#).unwrap();
        assert_eq!((call.model.as_deref(), call.model_in_body), (Some("m"), None), "{path}");
    }
}

#[test]
fn models_to_ask_instead_are_read_up_to_a_bound() {
    let models = |body: &str| {
        let call = parse(Dialect::OpenaiChat, body);
        let others = call.fallback_models.iter().map(|name| name.to_string()).collect::<Vec<_>>().join(" ");
        (call.model.unwrap_or_default().into_owned(), others)
    };
    let is = |model: &str, others: &str| (model.to_owned(), others.to_owned());
    assert_eq!(models(r#"{"model":"a","models":["b","c"]}"#), is("a", "b c"));
    assert_eq!(models(r#"{"models":["a","b", 5]}"#), is("a", "b"));
    assert_eq!(models(r#"{"model":"a","models":null}"#), is("a", ""));
    assert_eq!(models(r#"{"model":"a","models":{"b":1}}"#), is("a", ""));
    let listed = |number: usize| format!(r#"{{"model":"a","models":[{}"b"]}}"#, r#""b","#.repeat(number - 1));
    let parse =
        |body: &str| Call::parse(Dialect::OpenaiChat, "/", body.as_bytes()).map(|call| call.fallback_models.len());
    assert_eq!(parse(&listed(FALLBACK_MODELS)).unwrap(), FALLBACK_MODELS);
    assert!(matches!(parse(&listed(FALLBACK_MODELS + 1)), Err(BadBody::TooManyModels)));
    assert!(parse(r#"{"models":["a"],"models":["b"]}"#).is_err());
}

#[test]
fn what_a_provider_adds_of_its_own_is_noticed() {
    for body in [
        r#"{"previous_response_id":"resp_1"}"#,
        r#"{"conversation":"conv_1"}"#,
        r#"{"conversation":{"id":"conv_1"}}"#,
        r#"{"prompt":{"id":"pmpt_1"}}"#,
        r#"{"thread":{"previous_message_id":"msg_1"}}"#,
    ] {
        assert!(parse(Dialect::OpenaiResponses, body).is_continued, "{body}");
    }
    for body in [r#"{"input":"x"}"#, r#"{"previous_response_id":null,"conversation":null,"prompt":null}"#] {
        assert!(!parse(Dialect::OpenaiResponses, body).is_continued, "{body}");
    }
    assert!(!parse(Dialect::OpenaiCompletions, r#"{"prompt":"x"}"#).is_continued);
}
