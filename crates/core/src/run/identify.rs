//! Runs that a request names itself: declared by the caller, or by the client's own session id.

use crate::event::RunOrigin;
use crate::id::{BadName, RunId};
use crate::wire::Call;

/// What the headers of a request say about its run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signs<'a> {
    declared: Option<&'a str>,
    declared_parent: Option<&'a str>,
    claude_session: Option<&'a str>,
    claude_agent: Option<&'a str>,
    claude_parent_agent: Option<&'a str>,
    codex_session: Option<&'a str>,
    codex_thread: Option<&'a str>,
    codex_parent_thread: Option<&'a str>,
    session: Option<&'a str>,
    /// The trace id of a valid `traceparent`.
    pub trace: Option<&'a str>,
    /// How often the client has sent this request before; None when it does not say.
    pub retries: Option<u32>,
}

/// A run that the request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The run.
    pub id: RunId,
    /// The run that it is a part of.
    pub parent: Option<RunId>,
    /// Declared or session.
    pub origin: RunOrigin,
}

impl<'a> Signs<'a> {
    /// Reads the headers that matter; `header` gives a header's value when it is there and is text.
    pub fn read(header: impl Fn(&str) -> Option<&'a str>) -> Signs<'a> {
        let declared = |name: &str| header(name);
        // Nobody means an empty session to be one.
        let header = |name: &str| header(name).filter(|value| !value.is_empty());
        Signs {
            declared: declared("x-sprag-run-id").or_else(|| declared("x-agentwall-run-id")),
            declared_parent: declared("x-sprag-parent-run-id"),
            claude_session: header("x-claude-code-session-id"),
            claude_agent: header("x-claude-code-agent-id"),
            claude_parent_agent: header("x-claude-code-parent-agent-id"),
            codex_session: header("session-id").or_else(|| header("session_id")),
            codex_thread: header("thread-id"),
            codex_parent_thread: header("x-codex-parent-thread-id"),
            session: header("x-session-id"),
            trace: header("traceparent").and_then(trace_id),
            retries: header("x-stainless-retry-count").and_then(|count| count.parse().ok()),
        }
    }
}

/// The run that a request names, if it names one. Of a caller with a virtual key it is that key's run. `is_secret` tells
/// what cannot be a name, because it must not go on record.
///
/// # Errors
/// When a *declared* id is not usable. A client's own session id that is not usable is passed over: the caller did not
/// mean it for Sprag.
pub fn name_run(
    signs: &Signs<'_>,
    call: Option<&Call<'_>>,
    wanted: &[RunOrigin],
    key: Option<&str>,
    is_secret: impl Fn(&str) -> bool,
) -> Result<Option<Named>, BadName> {
    let parse = |text: &str| match is_secret(text) {
        true => Err(BadName::Secret),
        false => RunId::parse_declared(text, key),
    };
    if wanted.contains(&RunOrigin::Declared)
        && let Some(declared) = signs.declared.or_else(|| call?.own.run_id.as_deref())
    {
        let parent = signs.declared_parent.or_else(|| call?.own.parent_run_id.as_deref());
        let id = parse(declared)?;
        let parent = parent.map(parse).transpose()?.filter(|parent| *parent != id);
        return Ok(Some(Named { id, parent, origin: RunOrigin::Declared }));
    }
    if !wanted.contains(&RunOrigin::Session) {
        return Ok(None);
    }
    let (id, parent) = match session(signs, call) {
        Some(session) => session,
        None => return Ok(None),
    };
    let Ok(id) = parse(&id) else { return Ok(None) };
    let parent = parent.and_then(|p| parse(&p).ok()).filter(|parent| *parent != id);
    Ok(Some(Named { id, parent, origin: RunOrigin::Session }))
}

/// The session of the client and the part of it that calls: `(run, parent)`.
fn session(signs: &Signs<'_>, call: Option<&Call<'_>>) -> Option<(String, Option<String>)> {
    if let Some(session) = signs.claude_session {
        let Some(agent) = signs.claude_agent else { return Some((session.to_owned(), None)) };
        let parent = signs.claude_parent_agent.map_or_else(|| session.to_owned(), |p| format!("{session}:{p}"));
        return Some((format!("{session}:{agent}"), Some(parent)));
    }
    if let Some(thread) = signs.codex_thread.or(signs.codex_session) {
        let parent = signs.codex_parent_thread.or(signs.codex_session).filter(|p| *p != thread);
        return Some((thread.to_owned(), parent.map(str::to_owned)));
    }
    let named = call.and_then(|c| c.session.as_deref()).or(signs.session)?;
    Some((named.to_owned(), None))
}

/// The trace id of a `traceparent` header; None when the header is not valid.
fn trace_id(traceparent: &str) -> Option<&str> {
    let mut parts = traceparent.split('-');
    let version = parts.next()?;
    let trace = parts.next()?;
    let span = parts.next()?;
    let is_hex = |s: &str| s.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let is_valid = version.len() == 2
        && version != "ff"
        && trace.len() == 32
        && span.len() == 16
        && is_hex(trace)
        && is_hex(span)
        && trace.bytes().any(|b| b != b'0');
    is_valid.then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Dialect;

    const ALL: [RunOrigin; 2] = [RunOrigin::Declared, RunOrigin::Session];

    fn named(headers: &[(&str, &str)], body: &str) -> Result<Option<(String, Option<String>, RunOrigin)>, BadName> {
        let signs = Signs::read(|name| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value));
        let call = Call::parse(Dialect::Anthropic, "/", body.as_bytes()).unwrap();
        let named = name_run(&signs, Some(&call), &ALL, None, |name| name.contains("secret"))?;
        Ok(named.map(|n| (n.id.to_string(), n.parent.map(|p| p.to_string()), n.origin)))
    }

    fn session(id: &str, parent: Option<&str>) -> Result<Option<(String, Option<String>, RunOrigin)>, BadName> {
        Ok(Some((id.into(), parent.map(str::to_owned), RunOrigin::Session)))
    }

    #[test]
    fn a_declared_run_wins() {
        let headers = [("x-sprag-run-id", "mine"), ("x-claude-code-session-id", "s")];
        let expected = Ok(Some(("mine".into(), None, RunOrigin::Declared)));
        assert_eq!(named(&headers, r#"{"sprag_run_id":"body"}"#), expected);
        let expected = Ok(Some(("body".into(), Some("up".into()), RunOrigin::Declared)));
        assert_eq!(named(&[("x-sprag-parent-run-id", "up")], r#"{"sprag_run_id":"body"}"#), expected);
    }

    #[test]
    fn a_bad_declared_run_is_an_error_and_a_bad_session_is_not() {
        let long = "x".repeat(129);
        assert!(named(&[("x-sprag-run-id", &long)], "{}").is_err());
        assert!(named(&[], &format!(r#"{{"sprag_run_id":"{long}"}}"#)).is_err());
        assert_eq!(named(&[("x-session-id", &long)], "{}"), Ok(None));
        let secret = [("x-sprag-run-id", "a secret")];
        assert_eq!(named(&secret, "{}"), Err(BadName::Secret));
        assert_eq!(
            named(&[("x-sprag-run-id", "mine"), ("x-sprag-parent-run-id", "a secret")], "{}"),
            Err(BadName::Secret)
        );
        assert_eq!(named(&[], r#"{"sprag_run_id":"a secret"}"#), Err(BadName::Secret));
        assert_eq!(named(&[("x-session-id", "a secret")], "{}"), Ok(None));
    }

    #[test]
    fn sub_agents_are_children_of_their_session() {
        let main = [("x-claude-code-session-id", "s")];
        assert_eq!(named(&main, "{}"), session("s", None));
        let child = [("x-claude-code-session-id", "s"), ("x-claude-code-agent-id", "a")];
        assert_eq!(named(&child, "{}"), session("s:a", Some("s")));
        let grandchild = [
            ("x-claude-code-session-id", "s"),
            ("x-claude-code-agent-id", "b"),
            ("x-claude-code-parent-agent-id", "a"),
        ];
        assert_eq!(named(&grandchild, "{}"), session("s:b", Some("s:a")));
    }

    #[test]
    fn codex_threads_form_a_tree() {
        assert_eq!(named(&[("session-id", "t"), ("thread-id", "t")], "{}"), session("t", None));
        assert_eq!(named(&[("session-id", "t"), ("thread-id", "u")], "{}"), session("u", Some("t")));
        let deep = [("session-id", "t"), ("thread-id", "v"), ("x-codex-parent-thread-id", "u")];
        assert_eq!(named(&deep, "{}"), session("v", Some("u")));
    }

    #[test]
    fn sessions_in_the_body_count_too() {
        let key = "01a1de3a-be8f-7bd1-9837-04f2e6ead61f";
        assert_eq!(named(&[], &format!(r#"{{"prompt_cache_key":"{key}"}}"#)), session(key, None));
        assert_eq!(named(&[], r#"{"prompt_cache_key":"my-app"}"#), Ok(None));
        assert_eq!(named(&[("session_id", "h")], "{}"), session("h", None));
        assert_eq!(named(&[("x-claude-code-session-id", ""), ("x-session-id", "h")], "{}"), session("h", None));
        assert_eq!(named(&[("x-session-id", "h")], "{}"), session("h", None));
        assert_eq!(named(&[], "{}"), Ok(None));
    }

    #[test]
    fn a_key_has_runs_of_its_own() {
        let own = "key-4k2m9x0a";
        let named = |headers: &[(&str, &str)], key| {
            let signs = Signs::read(|name| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value));
            let named = name_run(&signs, None, &ALL, key, |_| false)?;
            Ok(named.map(|n| (n.id.to_string(), n.parent.map(|p| p.to_string()))))
        };
        let expected = |id: &str, parent: &str| Ok(Some((format!("{id}#{own}"), Some(format!("{parent}#{own}")))));
        let declared = [("x-sprag-run-id", "task"), ("x-sprag-parent-run-id", "up")];
        assert_eq!(named(&declared, Some(own)), expected("task", "up"));
        let session = [("x-claude-code-session-id", "s"), ("x-claude-code-agent-id", "a")];
        assert_eq!(named(&session, Some(own)), expected("s:a", "s"));
        let itself = [("x-sprag-run-id", "task"), ("x-sprag-parent-run-id", "task#key-4k2m9x0a")];
        assert_eq!(named(&itself, Some(own)), Ok(Some((format!("task#{own}"), None))), "no run is its own parent");
        for stranger in [None, Some("key-00000000")] {
            for headers in [
                [("x-sprag-run-id", "task#key-4k2m9x0a"), ("x", "")],
                [declared[0], ("x-sprag-parent-run-id", "up#key-4k2m9x0a")],
            ] {
                let refused: Result<Option<(String, Option<String>)>, BadName> = named(&headers, stranger);
                assert!(matches!(refused, Err(BadName::ForeignRun(_))), "{headers:?}");
            }
            assert_eq!(named(&[("x-session-id", "s#key-4k2m9x0a")], stranger), Ok(None), "a session is passed over");
        }
    }

    #[test]
    fn only_valid_traces_count() {
        let trace = "00-ad5b72550a81ce246661189fd2cedff3-78a768f2645dcecd-03";
        assert_eq!(trace_id(trace), Some("ad5b72550a81ce246661189fd2cedff3"));
        let zero = format!("00-{}-78a768f2645dcecd-03", "0".repeat(32));
        for bad in ["", "00-xyz-1-0", "00-AD5B72550A81CE246661189FD2CEDFF3-78a768f2645dcecd-03", &zero] {
            assert_eq!(trace_id(bad), None, "{bad}");
        }
    }
}
