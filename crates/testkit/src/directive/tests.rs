use super::*;
use http::HeaderMap;

fn applied(said: &str, last: &str, turns: usize, query: &str) -> Result<Reply, String> {
    let mut reply = Reply::echo();
    let tools = ["search".to_owned()];
    let headers = HeaderMap::new();
    let heard = Heard { path: "/", headers: &headers, model: "m", last, said, turns, tools: &tools };
    apply(&mut reply, &heard, query, &Gate::new()).map(|()| reply)
}

#[test]
fn brackets_in_arguments_do_not_end_a_directive() {
    let text = r#"a [[mock:tool name=get args={"list":[[1,2]],"s":"]]"}]] b [[mock:tool name=put]] c"#;
    let reply = applied("", text, 0, "").unwrap();
    let calls: Vec<(&str, &str)> = reply.tool_calls.iter().map(|c| (c.name.as_str(), c.arguments.as_str())).collect();
    assert_eq!(calls, [("get", r#"{"list":[[1,2]],"s":"]]"}"#), ("put", "{}")]);
    assert_eq!(strip(text), "a  b  c");
}

#[test]
fn errors_usage_and_faults() {
    let reply = applied("", "[[mock:status 503]][[mock:retry-after 2]][[mock:cut events=3]]", 0, "").unwrap();
    let failure = reply.failure.unwrap();
    assert_eq!((failure.status, failure.retry_after), (503, Some(2)));
    assert!(matches!(reply.faults[..], [Fault::Cut { at: CutAt::Events(3), how: CutHow::Close }]));

    let reply = applied("", "[[mock:usage input=7 cached=3 write1h=2 output=5]]", 0, "").unwrap();
    let expected = Usage { input: 7, cache_read: 3, cache_write_1h: 2, output: 5, ..Usage::default() };
    assert_eq!(reply.usage, Reported::Given(expected));
}

#[test]
fn a_query_is_unescaped() {
    assert_eq!(applied("", "", 0, "alt=sse&mock-text=a%20b+c%C3%A9").unwrap().text.unwrap(), "a b cé");
}

#[test]
fn a_course_follows_the_conversation() {
    let said = r#"fix it [[mock:agent steps=2 args={"q":"part $N"}]]"#;
    let reply = applied(said, "result", 1, "").unwrap();
    assert_eq!(reply.tool_calls[0], ToolCall { name: "search".into(), arguments: r#"{"q":"part 2"}"#.into() });
    let reply = applied(said, "result", 2, "").unwrap();
    assert!(reply.tool_calls.is_empty());
    assert_eq!(reply.text.unwrap(), "Finished after 2 steps.");
    let reply = applied("[[mock:stuck tool=ls]]", "result", 40, "").unwrap();
    assert_eq!(reply.tool_calls[0].name, "ls");
}

#[test]
fn what_is_not_understood_is_named() {
    assert!(applied("", "[[mock:dance]]", 0, "").unwrap_err().contains("dance"));
    assert!(applied("", "[[mock:status soon]]", 0, "").unwrap_err().contains("soon"));
    assert!(applied("", "[[mock:encode rot13]]", 0, "").unwrap_err().contains("rot13"));
}
