//! Keys: those of providers, put in for virtual ones, and the one that opens the admin side.

use std::sync::Arc;

use serde_json::json;
use sprag::acts::KeyOrder;
use sprag::config::Secret;
use sprag_core::id::AgentName;
use sprag_core::policy::Budget;
use sprag_testkit::client;

use crate::place::Place;
use crate::{Case, Outcome};

/// What they do for every caller is done here for callers with a virtual key.
pub(crate) async fn are_put_in(case: &Case) -> Outcome {
    let place = Place::start(|settings| {
        for (name, key) in case.input["provider_keys"].as_object().unwrap() {
            let provider = Arc::make_mut(settings.providers.get_mut(name.as_str()).unwrap());
            provider.key = Some(Secret::new(key.as_str().unwrap()));
        }
    })
    .await;
    let order = KeyOrder {
        agent: AgentName::default(),
        name: String::new(),
        expires_at: None,
        budget: Budget::default(),
        by: "anna".to_owned(),
    };
    let issued = place.sprag.app.create_key(order).await.unwrap();
    let mut headers = vec![("api-key", issued.secret.reveal())];
    if let Some(theirs) = case.input["client_authorization"].as_str() {
        headers.push(("authorization", theirs));
    }
    let is_anthropic = case.input["provider_keys"].get("anthropic").is_some();
    let path = if is_anthropic { "/v1/messages" } else { "/v1/chat/completions" };
    let body = json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hello"}]});
    assert_eq!(place.call(path, &body, &headers).fetch().await.unwrap().status, 200, "{}", case.title());
    let seen = place.provider.requests().pop().unwrap();
    for (name, value) in case.expected["upstream_header"].as_object().unwrap() {
        assert_eq!(seen.header(name), value.as_str().unwrap(), "{}", case.title());
    }
    assert!(!seen.headers.contains_key("api-key"), "{}", case.title());
    Outcome::Held
}

/// Who may ask the admin side.
pub(crate) async fn open_the_admin_side(case: &Case) -> Outcome {
    let token = match case.name.as_str() {
        "auth_bearer_ok" => Some("Bearer a-token-that-nobody-will-ever-guess-0123"),
        "auth_missing" => None,
        "auth_wrong" => Some("Bearer wrong"),
        "health_public" => None,
        "auth_x_api_key_ok" => return Outcome::Left("the admin API takes its token in `authorization` only"),
        _ => return Outcome::Left("nothing only verifies a token; any path of the API does"),
    };
    let place = Place::start(|_| {}).await;
    let path = if case.name == "health_public" { "/healthz" } else { "/api/v1/agents" };
    let call = client::get(format!("http://{}{path}", place.sprag.admin));
    let call = token.into_iter().fold(call, |call, token| call.header("authorization", token));
    let status = call.fetch().await.unwrap().status.as_u16();
    assert_eq!(json!(status), case.expected["status"], "{}", case.title());
    Outcome::Held
}
