//! The page about stops names the exceptions as the suites of the SDKs find them.

use sprag_core::wire::{Form, Reason};

const STOPS: &str = include_str!("../../../../docs/stops.md");

/// What the SDKs of OpenAI and Anthropic raise at a status, in Python and in Node.
fn exceptions(status: u16) -> [&'static str; 2] {
    match status {
        401 => ["AuthenticationError"; 2],
        402 => ["APIStatusError", "APIError"],
        403 => ["PermissionDeniedError"; 2],
        429 => ["RateLimitError"; 2],
        other => panic!("no stop has {other}"),
    }
}

#[test]
fn it_names_the_exception_of_every_reason() {
    for reason in Reason::ALL.into_iter().filter(|reason| reason.is_policy()) {
        let status = reason.error_status();
        let [python, node] = exceptions(status);
        let adapted = if status == 429 { 403 } else { status };
        let mark = if reason.form() == Form::Assistant { " (embeddings)" } else { "" };
        let row = format!(
            "| `{}` | {status}{mark} | `{python}` | `ClientError` {status} | `{node}` | `AI_APICallError` {adapted} |",
            reason.as_str()
        );
        assert!(STOPS.contains(&row), "{row}");
    }
}
