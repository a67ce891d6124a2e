//! What the provider sees: its own key for a virtual one, and never a secret of Sprag's.

use std::sync::Arc;

use http::HeaderName;
use sprag::config::{Auth, Secret};
use sprag::jwt::{JwtKey, JwtSettings, Verifier};
use sprag_core::wire::Dialect;
use sprag_testkit::{Recorded, client};

use crate::place::{HELD, Place, bearer, unauthorized};

const CREDENTIALS: [&str; 4] = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];

/// The credentials of a request as the provider saw it.
fn credentials(seen: &Recorded) -> Vec<(String, String)> {
    let all = CREDENTIALS.iter().flat_map(|name| seen.headers.get_all(*name).iter().map(move |value| (name, value)));
    all.map(|(name, value)| ((*name).to_owned(), value.to_str().unwrap().to_owned())).collect()
}

fn assert_no_secret(seen: &Recorded) {
    assert!(!seen.path.contains("sk-sprag-") && !seen.path.contains("sprag"), "{}", seen.path);
    for (name, value) in &seen.headers {
        assert!(!String::from_utf8_lossy(value.as_bytes()).contains("sk-sprag-"), "{name}: {value:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_providers_key_takes_the_place_of_the_virtual_one() {
    let place = Place::start().await;
    let issued = place.issue("bot", None).await;
    let secret = issued.secret.reveal();
    let expected = [
        (Dialect::OpenaiChat, "authorization", format!("Bearer {}", HELD[0].1)),
        (Dialect::Anthropic, "x-api-key", HELD[1].1.to_owned()),
        (Dialect::Gemini, "x-goog-api-key", HELD[2].1.to_owned()),
    ];
    for (dialect, name, value) in expected {
        for place_of_key in CREDENTIALS {
            let answer = place.ask_in(dialect, false, &[(place_of_key, secret)]).await;
            assert_eq!(answer.status, 200, "{dialect:?} {place_of_key}");
            let seen = place.provider.requests().pop().unwrap();
            assert_eq!(credentials(&seen), [(name.to_owned(), value.clone())], "{dialect:?} {place_of_key}");
            assert_no_secret(&seen);
            assert!(!format!("{:?} {:?}", answer.headers, answer.body).contains(&value));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_the_query_is_taken_out_of_it() {
    let place = Place::start().await;
    let issued = place.issue("bot", None).await;
    let secret = issued.secret.reveal();
    let models = "/v1beta/models/gemini-2.5-flash:streamGenerateContent";
    let body = crate::wire::request(Dialect::Gemini, true, "hello");
    let encoded = secret.replacen('-', "%2D", 1);
    for (query, left) in [
        (format!("?key={secret}&alt=sse"), "?alt=sse"),
        (format!("?alt=sse&k%65y={encoded}"), "?alt=sse"),
        (format!("?alt=sse&key=AIzaTheirs&key={secret}&note={secret}"), "?alt=sse"),
    ] {
        let answer = client::post_json(place.sprag.url(&format!("{models}{query}")), &body).fetch().await.unwrap();
        assert_eq!(answer.status, 200, "{query}");
        let seen = place.provider.requests().pop().unwrap();
        assert_eq!(seen.path, format!("{models}{left}"));
        assert_eq!(seen.header("x-goog-api-key"), HELD[2].1);
    }
    let list = client::get(place.sprag.url(&format!("/v1beta/models?key={secret}"))).fetch().await.unwrap();
    assert_eq!((list.status.as_u16(), place.provider.requests().pop().unwrap().path.as_str()), (200, "/v1beta/models"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_credential_beside_a_virtual_key_goes_nowhere() {
    let place = Place::start().await;
    let issued = place.issue("bot", None).await;
    let secret = issued.secret.reveal();
    let cookie = format!("session=theirs; k={secret}");
    let headers = [
        ("x-api-key", secret),
        ("authorization", "Bearer sk-proj-theirs"),
        ("api-key", "theirs"),
        ("cookie", cookie.as_str()),
        ("proxy-authorization", secret),
        ("x-note", secret),
        ("x-kept", "yes"),
    ];
    assert_eq!(place.ask(&headers).await.status, 200);
    let seen = place.provider.requests().pop().unwrap();
    assert_eq!(credentials(&seen), [("authorization".to_owned(), format!("Bearer {}", HELD[0].1))]);
    assert_no_secret(&seen);
    assert!(!seen.headers.contains_key("cookie") && seen.header("x-kept") == "yes");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_without_a_virtual_key_keep_their_own() {
    let place = Place::start().await;
    let issued = place.issue("bot", None).await;
    let headers = [("authorization", "Bearer sk-proj-theirs"), ("cookie", "a=b"), ("x-note", issued.secret.reveal())];
    let call = place.call("/v1/chat/completions?key=AIzaTheirs&x=1", &headers);
    assert_eq!(call.fetch().await.unwrap().status, 200);
    let seen = place.provider.requests().pop().unwrap();
    assert_eq!(credentials(&seen), [("authorization".to_owned(), "Bearer sk-proj-theirs".to_owned())]);
    assert_eq!((seen.path.as_str(), seen.header("cookie")), ("/v1/chat/completions?key=AIzaTheirs&x=1", "a=b"));
    assert_no_secret(&seen);
    assert_eq!(place.ask(&[]).await.status, 200);
    assert!(credentials(&place.provider.requests().pop().unwrap()).is_empty(), "nobody else gets Sprag's key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_without_a_key_is_told_of_before_anything_is_sent() {
    let place = Place::start_with(|settings| {
        let change = |name: &str, settings: &mut sprag::config::Settings, auth: Option<Auth>| {
            let provider = Arc::make_mut(settings.providers.get_mut(name).unwrap());
            provider.key = None;
            provider.auth = auth.unwrap_or(provider.auth.clone());
        };
        change("openai", settings, None);
        change("anthropic", settings, Some(Auth::None));
        let mistral = Arc::make_mut(settings.providers.get_mut("mistral").unwrap());
        mistral.auth = Auth::Header(HeaderName::from_static("x-company-key"));
        mistral.key = Some(Secret::new("held-by-sprag"));
        let gemini = Arc::make_mut(settings.providers.get_mut("gemini").unwrap());
        gemini.key = None;
        gemini.headers.insert("x-goog-api-key", "from-the-headers".parse().unwrap());
    })
    .await;
    let issued = place.issue("bot", None).await;
    let (name, value) = bearer(&issued);
    let key = [(name, value.as_str())];
    let message = unauthorized(&place.ask(&key).await);
    assert!(message.starts_with("provider `openai` has no key: set api_key_env in [providers.openai]"), "{message}");
    assert!(place.provider.requests().is_empty());
    assert_eq!(place.ask_in(Dialect::Anthropic, false, &key).await.status, 200);
    assert!(credentials(&place.provider.requests().pop().unwrap()).is_empty(), "it takes none");
    assert_eq!(place.call("/mistral/v1/chat/completions", &key).fetch().await.unwrap().status, 200);
    let seen = place.provider.requests().pop().unwrap();
    assert_eq!((seen.header("x-company-key"), credentials(&seen).len()), ("held-by-sprag", 0));
    assert_eq!(place.ask_in(Dialect::Gemini, false, &key).await.status, 200);
    assert_eq!(place.provider.requests().pop().unwrap().header("x-goog-api-key"), "from-the-headers");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_for_sprag_goes_no_further_with_a_virtual_key() {
    let place = Place::start_with(|settings| {
        let jwt = JwtSettings {
            key: JwtKey::Secret(Secret::new("a secret of the tests, long enough")),
            issuer: None,
            audience: None,
            header: HeaderName::from_static("x-user-token"),
            leeway: std::time::Duration::ZERO,
        };
        settings.jwt = Some(Arc::new(Verifier::new(jwt).unwrap()));
    })
    .await;
    let issued = place.issue("bot", None).await;
    let (name, value) = bearer(&issued);
    let token = ("x-user-token", "Bearer e30.e30.e30");
    assert_eq!(place.ask(&[(name, &value), token]).await.status, 200);
    assert!(!place.provider.requests().pop().unwrap().headers.contains_key("x-user-token"));
    assert_eq!(place.ask(&[token]).await.status, 200);
    assert_eq!(place.provider.requests().pop().unwrap().header("x-user-token"), token.1, "their own business");
}
