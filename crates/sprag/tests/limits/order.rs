//! Of two checks that fail at once the earlier one answers: key, kills, active, hours, model, rate, run limits, loop,
//! budget.

use serde_json::{Value, json};
use sprag_core::id::AgentName;
use sprag_testkit::{Script, client};

use crate::configured::{Configured, stopped};

/// How a check is made to stop a call.
#[derive(Clone, Copy, Debug)]
enum Cause {
    /// By configuration that lets one call pass.
    File(&'static str),
    /// By a change of the agent's policy.
    Policy(&'static str),
    Key,
    Kill,
    Deactivated,
}

/// Everything that stops a call, in the order of judgement.
const CHECKS: [(&str, Cause); 9] = [
    ("authentication_error", Cause::Key),
    ("run_killed", Cause::Kill),
    ("agent_inactive", Cause::Deactivated),
    ("outside_allowed_hours", Cause::Policy(r#"{"hours": {"allowed": ["22:00-23:00"]}}"#)),
    ("model_not_allowed", Cause::Policy(r#"{"models": {"allow": ["another"]}}"#)),
    ("rate_limited", Cause::File("[[defaults.rate_limits]]\nrequests = 1\nwindow_seconds = 60\n")),
    ("run_limit_exceeded", Cause::File("[defaults.run_limits]\nmax_steps = 1\n")),
    (
        "loop_detected",
        Cause::File("[detection.repeat]\nmode = \"enforce\"\naction = \"reject\"\nthreshold_identical_requests = 2\n"),
    ),
    ("budget_exceeded", Cause::Policy(r#"{"budget": {"daily_limit": "0.000001", "reserve": "worst_case"}}"#)),
];

/// Lets a first call pass, makes all these checks fail, and asks again.
async fn first_stop(checks: &[(&str, Cause)]) -> String {
    let mut text = "[detection.exact]\nmode = \"off\"\n[detection.progress]\nmode = \"off\"\n".to_owned();
    for (_, cause) in checks {
        if let Cause::File(more) = cause {
            text += more;
        }
    }
    let place = Configured::start_with(Script::new(), &text, false).await;
    let app = &place.sprag.app;
    let ask = async || {
        let message = json!({"role": "user", "content": "tell me something new about budgets"});
        let body = json!({"model": "gpt-4o", "max_tokens": 1000, "messages": [message]});
        let call = client::post_json(place.sprag.url("/v1/chat/completions"), &body);
        stopped(&call.header("x-sprag-run-id", "r1").fetch().await.unwrap()).to_owned()
    };
    assert_eq!(ask().await, "", "{checks:?}");
    let (agent, anna) = (AgentName::default(), || "anna".to_owned());
    for (_, cause) in checks {
        match cause {
            Cause::File(_) => {}
            Cause::Policy(patch) => {
                let patch: Value = serde_json::from_str(patch).unwrap();
                app.set_policy(agent.clone(), patch, anna()).await.unwrap();
            }
            Cause::Key => {
                let mut settings = (**app.settings.load()).clone();
                settings.proxy.require_keys = true;
                app.replace_settings(settings).unwrap();
            }
            Cause::Kill => drop(place.kill("agent:default").await),
            Cause::Deactivated => drop(app.deactivate(agent.clone(), anna(), "loud".to_owned()).await.unwrap()),
        }
    }
    ask().await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_check_stops_by_itself() {
    for check in CHECKS {
        assert_eq!(first_stop(&[check]).await, check.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_the_earlier_one_answers() {
    for pair in CHECKS.windows(2) {
        assert_eq!(first_stop(pair).await, pair[0].0, "{pair:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_all_the_first_one_answers() {
    for at in 0..CHECKS.len() {
        assert_eq!(first_stop(&CHECKS[at..]).await, CHECKS[at].0);
    }
}
