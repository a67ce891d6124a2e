use super::*;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn quoted(length: usize) -> Box<RawValue> {
    raw(&format!("\"{}\"", "w".repeat(length)))
}

#[test]
fn text_is_kept_up_to_its_limit_and_counted_beyond() {
    let mut draft = Draft::default();
    draft.text(0, &"a".repeat(limits::REPLY_TEXT_BYTES - 1));
    draft.text(0, "b");
    assert_eq!(draft.reply.text.len(), limits::REPLY_TEXT_BYTES);
    draft.text(0, "c");
    assert_eq!(draft.reply.text.len(), limits::REPLY_TEXT_BYTES);
    assert_eq!(draft.reply.text_bytes, limits::REPLY_TEXT_BYTES as u64 + 1);
}

#[test]
fn text_is_cut_between_characters_and_has_no_hole() {
    let mut draft = Draft::default();
    draft.text(0, &"a".repeat(limits::REPLY_TEXT_BYTES - 1));
    draft.text(0, "é");
    draft.text(0, "b");
    assert_eq!(draft.reply.text.len(), limits::REPLY_TEXT_BYTES - 1);
    assert_eq!(draft.reply.text_bytes, limits::REPLY_TEXT_BYTES as u64 + 2);
}

#[test]
fn choices_share_the_limit_and_stand_in_order() {
    let mut draft = Draft::default();
    draft.text(2, "c");
    draft.text(0, "a");
    draft.text(1, "b");
    draft.text(2, "c");
    draft.settle();
    assert_eq!(draft.reply.text, "a\nb\ncc");
    let mut draft = Draft::default();
    for choice in 0..4 {
        draft.text(choice, &"x".repeat(limits::REPLY_TEXT_BYTES / 2));
    }
    draft.settle();
    assert_eq!(draft.reply.text.len(), limits::REPLY_TEXT_BYTES);
}

#[test]
fn choices_are_limited_in_number() {
    for (choices, kept) in
        [(limits::REPLY_CHOICES, limits::REPLY_CHOICES), (limits::REPLY_CHOICES + 1, limits::REPLY_CHOICES)]
    {
        let mut draft = Draft::default();
        for choice in 0..choices {
            draft.text(choice as u64, "x");
        }
        draft.settle();
        assert_eq!(draft.reply.text.lines().count(), kept);
        assert_eq!(draft.reply.text_bytes, choices as u64);
    }
}

#[test]
fn calls_are_limited_in_number_and_size() {
    let mut draft = Draft::default();
    for index in 0..=limits::REPLY_TOOL_CALLS as u64 {
        draft.call((0, index), None, Some(&raw("\"tool\"")));
        draft.arguments((0, index), "{}");
    }
    assert_eq!(draft.reply.tool_calls.len(), limits::REPLY_TOOL_CALLS);
    assert!(draft.reply.tool_calls.iter().all(|call| call.arguments == "{}"));

    draft.set_arguments((0, 0), &"a".repeat(limits::TOOL_ARGUMENT_BYTES));
    assert_eq!(draft.reply.tool_calls[0].arguments.len(), limits::TOOL_ARGUMENT_BYTES);
    draft.arguments((0, 0), "b");
    assert_eq!(draft.reply.tool_calls[0].arguments.len(), limits::TOOL_ARGUMENT_BYTES);
    draft.set_arguments((0, 0), &"é".repeat(limits::TOOL_ARGUMENT_BYTES));
    assert_eq!(draft.reply.tool_calls[0].arguments.len(), limits::TOOL_ARGUMENT_BYTES);
}

#[test]
fn words_and_errors_are_limited() {
    for (length, kept) in
        [(limits::REPLY_WORD_BYTES, limits::REPLY_WORD_BYTES), (limits::REPLY_WORD_BYTES + 1, limits::REPLY_WORD_BYTES)]
    {
        let long = quoted(length);
        let mut draft = Draft::default();
        draft.origin(Some(&long), Some(&long));
        draft.finish(0, Some(&long));
        draft.call((0, 0), Some(&long), Some(&long));
        let (reply, call) = (&draft.reply, &draft.reply.tool_calls[0]);
        for word in [
            reply.id.as_ref().unwrap(),
            reply.model.as_ref().unwrap(),
            reply.finish.as_ref().unwrap(),
            &call.id,
            &call.name,
        ] {
            assert_eq!(word.len(), kept);
        }
    }
    for (length, kept) in [
        (limits::REPLY_ERROR_BYTES, limits::REPLY_ERROR_BYTES),
        (limits::REPLY_ERROR_BYTES + 1, limits::REPLY_ERROR_BYTES),
    ] {
        let mut draft = Draft::default();
        draft.error(&quoted(length));
        assert_eq!(draft.reply.error.as_ref().unwrap().len(), kept);
    }
}

#[test]
fn errors_come_in_every_shape() {
    let cases = [
        (r#"{"message":"no","type":"t"}"#, "no"),
        (r#"{"type":"overloaded_error"}"#, "overloaded_error"),
        (r#""no""#, "no"),
        (r#"{"odd":1}"#, r#"{"odd":1}"#),
        (r#"{"message":{"detail":"x"}}"#, r#"{"message":{"detail":"x"}}"#),
    ];
    for (json, message) in cases {
        let mut draft = Draft::default();
        draft.error(&raw(json));
        draft.error_message("a later one");
        draft.close();
        assert_eq!(draft.reply.error.as_deref(), Some(message));
        assert!(!draft.reply.complete);
    }
    assert_eq!(bare_error(r#"{"object":"error","message":"bad model"}"#).as_deref(), Some("bad model"));
    assert_eq!(bare_error(r#"{"detail":[{"msg":"x"}]}"#).as_deref(), Some(r#"[{"msg":"x"}]"#));
    assert_eq!(bare_error(r#"{"data":[]}"#), None);
}

#[test]
fn a_message_is_no_error_where_the_answer_has_an_id() {
    let body = r#"{"message":"hello"}"#;
    let mut draft = Draft::default();
    draft.close_json(body);
    assert_eq!((draft.reply.error.as_deref(), draft.reply.complete), (Some("hello"), false));
    let mut draft = Draft::default();
    draft.origin(Some(&quoted(3)), None);
    draft.close_json(body);
    assert_eq!((draft.reply.error, draft.reply.complete), (None, true));
}
