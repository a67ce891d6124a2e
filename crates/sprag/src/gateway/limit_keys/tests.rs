use std::collections::HashSet;
use std::time::Duration;

use http::header::AUTHORIZATION;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use sprag_core::loops::Mode;
use sprag_core::policy::RateMeasure;

use super::*;
use crate::config::Secret;
use crate::jwt::{JwtKey, JwtSettings};

const NOW: Timestamp = Timestamp(1_770_000_000_000);
const SECRET: &str = "a secret of the tests";

fn rule(id: u64, keys: &[&str]) -> RateRule {
    let limit_keys = keys.iter().map(|key| key.parse().unwrap()).collect();
    let measure = RateMeasure::Requests { limit: 1, window_ms: 1000 };
    RateRule { name: "r".into(), mode: Mode::Enforce, limit_keys, measure, id }
}

fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
    let request = headers.iter().fold(http::Request::get(uri), |request, (name, value)| request.header(*name, *value));
    request.body(()).unwrap().into_parts().0
}

fn of(rule: &RateRule, head: &Parts) -> u64 {
    bucket(rule, &Carrier::new(head, &AgentName::default(), None, None, None, NOW))
}

fn verifier() -> Verifier {
    let key = JwtKey::Secret(Secret::new(SECRET));
    let leeway = Duration::from_secs(60);
    Verifier::new(JwtSettings { key, issuer: None, audience: None, header: AUTHORIZATION, leeway }).unwrap()
}

fn bearer(claims: &Value, secret: &str) -> String {
    let key = EncodingKey::from_secret(secret.as_bytes());
    format!("Bearer {}", encode(&Header::new(Algorithm::HS256), claims, &key).unwrap())
}

fn by_claim(verifier: Option<&Verifier>, authorization: &str) -> u64 {
    let head = head("/", &[("authorization", authorization)]);
    let agent = AgentName::default();
    let carrier = Carrier::new(&head, &agent, None, None, verifier, NOW);
    bucket(&rule(1, &["jwt:org_id"]), &carrier)
}

#[test]
fn other_values_and_other_rules_are_other_counters() {
    let mut seen = HashSet::new();
    let pair = |a: &str, b: &str| head("/", &[("x-a", a), ("x-b", b)]);
    let keys = ["header:x-a", "header:x-b"];
    for (a, b) in [("1", "2"), ("12", ""), ("", "12"), ("1", "22"), ("2", "1"), ("\u{0}", "")]
        .map(|(a, b)| (a.replace('\u{0}', "\t"), b))
    {
        assert!(seen.insert(of(&rule(1, &keys), &pair(&a, b))), "{a} {b}");
    }
    assert!(seen.insert(of(&rule(2, &keys), &pair("1", "2"))));
    assert!(!seen.insert(of(&rule(1, &keys), &pair("1", "2"))));
    // Several values are joined in order.
    let several = |values: &[&str]| {
        of(&rule(3, &["header:x-a"]), &head("/", &values.iter().map(|v| ("x-a", *v)).collect::<Vec<_>>()))
    };
    let all: HashSet<u64> =
        [several(&["a", "b"]), several(&["b", "a"]), several(&["ab"]), several(&["a"]), several(&["a", "b", ""])]
            .into();
    assert_eq!(all.len(), 5);
    assert_eq!(of(&rule(4, &[]), &pair("1", "2")), of(&rule(4, &[]), &pair("3", "4")), "no keys: all together");
}

#[test]
fn what_is_missing_is_shared_and_like_no_value() {
    let by_header = rule(1, &["header:x-a"]);
    let missing = of(&by_header, &head("/", &[]));
    assert_eq!(missing, of(&by_header, &head("/other?x-a=1", &[("x-b", "1")])));
    for value in ["", "missing", "0", "null", "\t"] {
        assert_ne!(missing, of(&by_header, &head("/", &[("x-a", value)])), "{value}");
    }
    // A part that is there still tells calls apart.
    let both = rule(2, &["header:x-a", "header:x-b"]);
    let [one, two] = ["1", "2"].map(|value| of(&both, &head("/", &[("x-a", value)])));
    assert_ne!(one, two);
    assert_ne!(of(&both, &head("/", &[("x-a", "1")])), of(&both, &head("/", &[("x-b", "1")])));
}

#[test]
fn every_kind_of_key_is_read() {
    let agents = ["a", "b"].map(|name| AgentName::parse(name).unwrap());
    let mut head = head("/x?tenant=1&tenant=2", &[]);
    head.extensions.insert::<SocketAddr>("[::ffff:192.0.2.7]:80".parse().unwrap());
    let with = |keys: &[&str], agent: usize, key: Option<&str>, model: Option<&str>| {
        bucket(&rule(1, keys), &Carrier::new(&head, &agents[agent], key, model, None, NOW))
    };
    assert_ne!(with(&["agent"], 0, None, None), with(&["agent"], 1, None, None));
    assert_ne!(with(&["key"], 0, Some("k1"), None), with(&["key"], 0, Some("k2"), None));
    assert_ne!(with(&["key"], 0, Some(""), None), with(&["key"], 0, None, None));
    let model = |name: &str| with(&["model"], 0, None, Some(name));
    assert_eq!(model("gpt-4o"), model("openai/GPT-4o"));
    assert_ne!(model("gpt-4o"), model("gpt-4o-mini"));
    assert_eq!(model(&"x".repeat(1000)), with(&["model"], 0, None, None), "too long to be a model");
    let at = |address: &str| {
        let mut head = head.clone();
        head.extensions.insert::<SocketAddr>(address.parse().unwrap());
        of(&rule(1, &["ip"]), &head)
    };
    assert_eq!(at("192.0.2.7:1"), of(&rule(1, &["ip"]), &head), "another port, another form");
    assert_ne!(at("192.0.2.8:1"), at("192.0.2.7:1"));
    assert_ne!(of(&rule(1, &["query:tenant"]), &head), of(&rule(1, &["query:other"]), &head));
}

#[test]
fn only_verified_claims_tell_callers_apart() {
    let verifier = verifier();
    let none = by_claim(Some(&verifier), "Bearer nothing");
    let org = |name: &str| by_claim(Some(&verifier), &bearer(&json!({"org_id": name}), SECRET));
    assert_ne!(org("acme"), none);
    assert_ne!(org("acme"), org("umbrella"));
    assert_eq!(org("acme"), by_claim(Some(&verifier), &bearer(&json!({"org_id": "acme", "x": 1}), SECRET)));
    // A number is its text.
    assert_eq!(org("42"), by_claim(Some(&verifier), &bearer(&json!({"org_id": 42}), SECRET)));

    let unsigned = "Bearer eyJhbGciOiJub25lIn0.eyJvcmdfaWQiOiJhY21lIn0.";
    let expired = bearer(&json!({"org_id": "acme", "exp": NOW.0 / 1000 - 61}), SECRET);
    for bad in [unsigned, &bearer(&json!({"org_id": "acme"}), "another secret"), &expired, &bearer(&json!({}), SECRET)]
    {
        assert_eq!(by_claim(Some(&verifier), bad), none, "{bad}");
    }
    // Without a key nothing is verified.
    assert_eq!(by_claim(None, &bearer(&json!({"org_id": "acme"}), SECRET)), none);
    assert_eq!(by_claim(None, &bearer(&json!({"org_id": "umbrella"}), SECRET)), none);
}

#[test]
fn descriptors_name_each_key_once_and_tell_absence() {
    let rules = [rule(1, &["header:x-b", "agent"]), rule(2, &["header:x-a", "header:x-b"])];
    let of = |head: &Parts| {
        let agent = AgentName::default();
        descriptors(rules.iter(), &Carrier::new(head, &agent, None, None, None, NOW))
    };
    let both = of(&head("/", &[("x-a", "1"), ("x-b", "2")]));
    let names: Vec<&str> = both.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["agent", "header:x-a", "header:x-b"]);
    let absent = of(&head("/", &[("x-a", "1")]));
    assert_eq!(both[..2], absent[..2]);
    assert_ne!(both[2], absent[2]);
    assert_ne!(absent[2], of(&head("/", &[("x-a", "1"), ("x-b", "")]))[2], "empty is not absent");
}
