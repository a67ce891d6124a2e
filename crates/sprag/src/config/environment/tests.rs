use std::time::Duration;

use super::*;
use sprag_core::event::RunOrigin;

use crate::config::file::Compat;
use crate::config::problem::Level;
use crate::config::sandbox::Sandbox;

#[test]
fn no_two_keys_share_a_variable() {
    let keys = schema::keys();
    let mut names: Vec<_> = keys.iter().map(|key| variable_of(&key.path)).collect();
    for name in &names {
        assert!(!OTHERS.contains(&name.as_str()) && !is_from_kubernetes(name, "tcp://10.0.0.1:7070"), "{name}");
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), keys.len());

    // `SPRAG_PROVIDERS_a_b_KEY`: after the same beginning no ending may be the end of another, or the name would be open
    // to reading.
    let parts: Vec<(&str, &str)> = names.iter().filter_map(|name| name.split_once('*')).collect();
    for (beginning, ending) in &parts {
        let others = parts.iter().filter(|(other, _)| other.starts_with(beginning));
        let others = others.map(|(_, other)| other).filter(|other| *other != ending);
        assert_eq!(others.filter(|other| other.ends_with(ending)).count(), 0, "{beginning}*{ending}");
    }
}

#[test]
fn every_key_can_be_set_by_its_variable() {
    for key in schema::keys() {
        let variable = variable_of(&key.path).replace('*', "MY_GW");
        let (path, _) = find(&variable, &schema::keys(), &[]).unwrap_or_else(|| panic!("{variable}"));
        let expected: Vec<_> = key.path.iter().map(|part| part.replace('*', "my_gw")).collect();
        assert_eq!(path, expected, "{variable}");
    }
}

#[test]
fn values_take_the_type_of_their_key() {
    let loaded = Sandbox::new("[providers.my-gw]\nbase_url = \"http://a\"\ndialect = \"openai\"")
        .with_env(&[
            ("SPRAG_PROXY_LISTEN", "0.0.0.0:1"),
            ("SPRAG_PROXY_MAX_BODY_BYTES", "2048"),
            ("SPRAG_RESPONSES_METADATA", "false"),
            ("SPRAG_RESPONSES_COMPAT", "fairvisor, agentwall"),
            ("SPRAG_RUNS_SOURCES", "[\"declared\"]"),
            ("SPRAG_ADMIN_TOKEN", "secret-token"),
            ("SPRAG_PROVIDERS_OPENAI_BASE_URL", "http://mock:1"),
            ("SPRAG_PROVIDERS_MY_GW_TIMEOUTS_TOTAL_MS", "5"),
            ("SPRAG_PROVIDERS_MY_GW_HEADERS", "{ x-team = \"blue\" }"),
            ("SPRAG_PRICE", "[{ model = \"m\", input = 1.5 }]"),
            ("SPRAG_LOG_LEVEL", ""),
        ])
        .load()
        .unwrap();
    let settings = loaded.settings;
    assert_eq!(loaded.warnings, [], "no name is unknown");
    assert_eq!(settings.proxy.listen.to_string(), "0.0.0.0:1");
    assert_eq!(settings.proxy.max_body_bytes, 2048);
    assert!(!settings.responses.metadata);
    assert_eq!(settings.responses.compat, [Compat::Agentwall, Compat::Fairvisor]);
    assert_eq!(settings.runs.sources, [RunOrigin::Declared]);
    assert!(settings.admin.token.is_some_and(|token| token.matches("secret-token")));
    assert_eq!(settings.providers["openai"].base.to_string(), "http://mock:1");
    assert_eq!(settings.providers["my-gw"].timeouts.total, Some(Duration::from_millis(5)));
    assert_eq!(settings.providers["my-gw"].headers["x-team"], "blue");
    assert_eq!(settings.prices.overrides[0].input.0, 1_500_000);
    assert_eq!(settings.log.level, "info");
}

#[test]
fn wrong_values_name_the_variable() {
    for (variable, value, expected) in [
        ("SPRAG_PROXY_MAX_CONNECTIONS", "many", "`proxy.max_connections`: expected a whole number, found \"many\""),
        ("SPRAG_PROXY_DRAIN_SECONDS", "99999", "99999 is out of range"),
        ("SPRAG_RESPONSES_METADATA", "maybe", "expected true or false, found \"maybe\""),
        ("SPRAG_LOG_FORMAT", "jsno", "did you mean \"json\"?"),
        ("SPRAG_RUNS_SOURCES", "declared,sesion", "did you mean \"session\"?"),
        ("SPRAG_PROXY_LISTEN", "here", "\"here\" is not an address and a port"),
        (
            "SPRAG_PROVIDERS_OPENAI_HEADERS",
            "hush",
            "expected a table, as in { name = \"value\" }, found something else",
        ),
    ] {
        let complaint = Sandbox::new("").with_env(&[(variable, value)]).complaint();
        assert!(complaint.contains(expected), "{complaint}");
        assert!(complaint.contains(&format!("--> environment variable {variable}")), "{complaint}");
        assert!(!complaint.contains("hush"), "{complaint}");
    }
}

#[test]
fn unknown_variables_are_warned_about_and_those_of_kubernetes_are_not() {
    let loaded = Sandbox::new("")
        .with_env(&[
            ("SPRAG_PROXY_LISTN", "127.0.0.1:1"),
            ("SPRAG_PROVIDERS_OPENAI_BASE_URI", "http://h"),
            ("SPRAG_SERVICE_HOST", "10.0.0.1"),
            ("SPRAG_SERVICE_PORT_HTTP", "7070"),
            ("SPRAG_PORT", "tcp://10.0.0.1:7070"),
            ("SPRAG_PORT_7070_TCP_ADDR", "10.0.0.1"),
            ("SPRAG_ADMIN_PORT_7071_TCP", "tcp://10.0.0.1:7071"),
            ("SPRAG_ADMIN_SERVICE_HOST", "10.0.0.1"),
            ("SPRAGUE_X", "not ours"),
        ])
        .load()
        .unwrap();
    let hints: Vec<_> = loaded.warnings.iter().map(|warning| warning.hint.as_deref().unwrap()).collect();
    assert_eq!(
        hints,
        ["the nearest known name is SPRAG_PROVIDERS_OPENAI_BASE_URL", "the nearest known name is SPRAG_PROXY_LISTEN"]
    );
    assert!(loaded.warnings.iter().all(|warning| warning.level == Level::Warning));
}

#[test]
fn never_prints_values() {
    let environment: Environment = [("SPRAG_ADMIN_TOKEN", "hush")].into_iter().collect();
    assert!(!format!("{environment:?}").contains("hush"));
}
