use serde_json::json;

use super::*;

fn manners(reasons: &BTreeMap<Reason, Manner>) -> Manners<'_> {
    Manners { adapts: true, imitates_agentwall: false, reasons }
}

fn stop(reason: Reason) -> Refusal {
    Refusal::new(reason, "No more.").with("run_id", "r1").with("agent", "bot")
}

fn set(reason: Reason, manner: Manner) -> BTreeMap<Reason, Manner> {
    BTreeMap::from([(reason, manner)])
}

#[test]
fn two_reasons_are_said_by_the_assistant_and_the_others_are_errors() {
    let none = BTreeMap::new();
    for reason in Reason::ALL.into_iter().filter(|reason| reason.is_policy()) {
        let said = manners(&none).dress(stop(reason), Client::Other, Dialect::OpenaiChat);
        let is_assistant = matches!(reason, Reason::AgentInactive | Reason::OutsideAllowedHours);
        assert_eq!(said.form, if is_assistant { Form::Assistant } else { Form::Error }, "{reason:?}");
        assert_eq!(said.status, reason.status(), "{reason:?}");
    }
}

#[test]
fn where_nobody_speaks_the_inactive_agent_gets_an_error() {
    let none = BTreeMap::new();
    for dialect in [Dialect::OpenaiEmbeddings, Dialect::Opaque] {
        let said = manners(&none).dress(stop(Reason::AgentInactive), Client::Other, dialect);
        assert_eq!((said.form, said.status), (Form::Error, 403), "{dialect:?}");
    }
}

#[test]
fn the_message_says_who_stopped_what() {
    let none = BTreeMap::new();
    let said = |refusal| manners(&none).dress(refusal, Client::Other, Dialect::Anthropic).message;
    assert_eq!(said(stop(Reason::LoopDetected)), "No more. [sprag: loop_detected, run r1]");
    assert_eq!(said(Refusal::new(Reason::AuthenticationError, "Who?")), "Who? [sprag: authentication_error]");
}

#[test]
fn what_is_no_stop_is_said_as_it_is() {
    let reasons = set(Reason::UpstreamCut, Manner { status: Some(418), ..Manner::default() });
    for reason in Reason::ALL.into_iter().filter(|reason| !reason.is_policy()) {
        for client in [Client::Codex, Client::ClaudeCode] {
            let said = manners(&reasons).dress(stop(reason), client, Dialect::OpenaiResponses);
            assert_eq!(said, stop(reason));
        }
    }
}

#[test]
fn configuration_comes_before_the_client_and_the_client_before_the_table() {
    let none = BTreeMap::new();
    let status = |manners: Manners<'_>, client| {
        manners.dress(stop(Reason::LoopDetected), client, Dialect::OpenaiResponses).status
    };
    assert_eq!(status(manners(&none), Client::Codex), 400);
    assert_eq!(status(manners(&none), Client::Other), 429);
    assert_eq!(status(Manners { adapts: false, ..manners(&none) }, Client::Codex), 429);
    let chosen = set(Reason::LoopDetected, Manner { status: Some(409), ..Manner::default() });
    assert_eq!(status(manners(&chosen), Client::Codex), 409);
}

#[test]
fn form_and_text_can_be_chosen() {
    let manner = |form, text: &str| Manner { form: Some(form), status: None, text: Some(text.into()) };
    let reasons = set(Reason::LoopDetected, manner(Form::Assistant, "Sorry: {message} Ask Jo."));
    let said = manners(&reasons).dress(stop(Reason::LoopDetected), Client::Codex, Dialect::OpenaiChat);
    assert_eq!((said.form, said.status), (Form::Assistant, 200));
    assert_eq!(said.message, "Sorry: No more. Ask Jo.");
    let reasons = set(Reason::AgentInactive, manner(Form::Error, "Off."));
    let said = manners(&reasons).dress(stop(Reason::AgentInactive), Client::Other, Dialect::OpenaiChat);
    assert_eq!((said.form, said.status, said.message.as_str()), (Form::Error, 403, "Off."));
}

fn imitated(refusal: Refusal) -> Refusal {
    let none = BTreeMap::new();
    let manners = Manners { imitates_agentwall: true, ..manners(&none) };
    manners.dress(refusal, Client::Other, Dialect::OpenaiChat)
}

#[test]
fn agentwall_has_its_own_words_and_codes() {
    let cases = [
        (
            stop(Reason::LoopDetected).with("loop_type", "exact_prompt"),
            "Loop detected: Exact prompt repetition detected",
        ),
        (stop(Reason::LoopDetected).with("loop_type", "oscillation"), "Loop detected: Oscillation pattern detected"),
        (stop(Reason::LoopDetected).with("loop_type", "cycle"), "No more."),
        (
            stop(Reason::RunKilled).with("kill_reason", "loop_detected:exact_prompt"),
            "Run killed: loop_detected:exact_prompt",
        ),
        (stop(Reason::RunKilled), "No more."),
        (
            stop(Reason::BudgetExceeded).with("exceeded_limit", "run").with("limit", 1.0),
            "Budget exceeded: Run cost limit ($1.00)",
        ),
        (
            stop(Reason::BudgetExceeded).with("exceeded_limit", "daily").with("limit", 0.0025),
            "Budget exceeded: Daily limit ($0.0025)",
        ),
    ];
    for (refusal, message) in cases {
        assert_eq!(imitated(refusal).message, message);
    }
    let codes = [
        (Reason::LoopDetected, "agentwall_loop", 429),
        (Reason::RunKilled, "agentwall_killed", 429),
        (Reason::RunLimitExceeded, "agentwall_limit", 429),
        (Reason::BudgetExceeded, "agentwall_budget", 429),
        (Reason::ModelNotAllowed, "agentwall_model", 403),
    ];
    for (reason, code, status) in codes {
        let said = imitated(stop(reason));
        assert_eq!((said.code, said.status), (code, status), "{reason:?}");
    }
}

#[test]
fn agentwalls_error_has_its_fields_and_no_more() {
    let refusal = stop(Reason::LoopDetected)
        .with("loop_type", "exact_prompt")
        .with("confidence", 1.0)
        .with("proof", json!({"summary": "s"}));
    let body = super::super::refusal::body(super::super::Family::Openai, &imitated(refusal));
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&body).unwrap(),
        json!({
            "error": {
                "message": "Loop detected: Exact prompt repetition detected", "type": "loop_detected",
                "code": "agentwall_loop", "run_id": "r1", "loop_type": "exact_prompt", "confidence": 1.0,
            },
            "block_reason": "loop_detected", "agent": "bot", "proof": {"summary": "s"},
        })
    );
}

#[test]
fn agentwalls_budget_error_is_as_documented() {
    let refusal = stop(Reason::BudgetExceeded)
        .with("exceeded_limit", "run")
        .with("level", "agent")
        .with("current_cost", 0.7)
        .with("limit", 1.0)
        .with("requested", 0.5)
        .with("kill_reason", "budget_exceeded")
        .with("step", 3);
    let body = super::super::refusal::body(super::super::Family::Openai, &imitated(refusal));
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        body["error"],
        json!({
            "message": "Budget exceeded: Run cost limit ($1.00)", "type": "budget_exceeded", "code": "agentwall_budget",
            "run_id": "r1", "exceeded_limit": "run", "current_cost": 0.70, "limit": 1.00,
        })
    );
    assert_eq!(body["kill_reason"], "budget_exceeded");
}

#[test]
fn a_client_that_would_repeat_a_429_does_not_get_agentwalls() {
    let none = BTreeMap::new();
    let manners = Manners { imitates_agentwall: true, ..manners(&none) };
    let status =
        |manners: Manners<'_>| manners.dress(stop(Reason::RunKilled), Client::VercelAi, Dialect::OpenaiChat).status;
    assert_eq!(status(manners), 403);
    assert_eq!(status(Manners { adapts: false, ..manners }), 429);
}
