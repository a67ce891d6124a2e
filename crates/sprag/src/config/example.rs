//! `sprag.example.toml` holds every key, with its description and its default, and nothing else. The guide's recipes
//! and table of presets are true.

use std::collections::BTreeMap;

use serde_json::Value as Schema;
use sprag_core::wire::{Form, Reason};

use super::check::check_table;
use super::presets::PRESETS;
use super::sandbox::Sandbox;
use super::schema;

const GUIDE: &str = include_str!("../../../../docs/configuration.md");
const OBSERVABILITY: &str = include_str!("../../../../docs/observability.md");
const POLICY: &str = include_str!("../../../../docs/policy.md");
const ROUTES: &str = include_str!("../../../../docs/routes.md");
const STOPS: &str = include_str!("../../../../docs/stops.md");
const EXAMPLE: &str = include_str!("../../../../sprag.example.toml");

#[test]
fn as_it_stands_it_changes_nothing() {
    let default = Sandbox::new("").load().unwrap().settings;
    let loaded = Sandbox::new(EXAMPLE).load().unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.settings, default);
}

#[test]
fn the_values_it_shows_are_the_defaults() {
    let default = Sandbox::new("").load().unwrap().settings;
    let loaded = Sandbox::new(&uncomment("#")).load().unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.settings, default);
    let table: toml::Table = uncomment("#").parse().unwrap();
    let mut shown = 0;
    for key in schema::keys() {
        let Some(default) = key.node.get("default").filter(|_| !is_shown_in_parts(key.node)) else { continue };
        let path = key.path.iter().map(|part| if part == "*" { "openai" } else { part });
        let mut values = path.scan(Some(&table), |table, name| {
            let value = table.and_then(|table| table.get(name));
            *table = value.and_then(toml::Value::as_table);
            Some(value)
        });
        let value = values.by_ref().last().flatten().unwrap_or_else(|| panic!("{} is not shown", key.path.join(".")));
        assert_eq!(&serde_json::to_value(value).unwrap(), default, "{}", key.path.join("."));
        shown += 1;
    }
    assert!(shown > 25, "{shown}");
}

#[test]
fn the_rules_it_shows_are_those_of_the_default_preset() {
    let from = EXAMPLE.find("[detection]").unwrap();
    let text = &EXAMPLE[from..from + EXAMPLE[from..].find("[defaults]").unwrap()];
    let live: Vec<&str> = text
        .lines()
        .map(|line| line.strip_prefix("##").unwrap_or(line))
        // Ladders take the place of actions.
        .filter(|line| !line.starts_with("ladder"))
        .collect();
    let rules = |text: &str| Sandbox::new(text).load().unwrap().settings.policies.defaults.rules;
    let (shown, default) = (rules(&live.join("\n")), rules(""));
    assert!(live.iter().filter(|line| line.contains(" = ")).count() > 60);
    assert_eq!(shown, default);
}

#[test]
fn the_examples_have_the_right_types() {
    let table: toml::Table = uncomment("##").parse().unwrap();
    let mut problems = Vec::new();
    check_table(&table, schema::root(), "", &mut problems);
    assert_eq!(problems, []);
}

#[test]
fn every_key_is_there_with_its_description() {
    let mut expected = BTreeMap::new();
    describe(schema::root(), "", &mut expected);
    assert_eq!(comments(), expected);
}

#[test]
fn the_recipes_of_the_guide_are_right() {
    let recipes: Vec<_> = GUIDE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(recipes.len(), 6);
    for recipe in recipes {
        let sandbox = Sandbox::new("");
        let home = sandbox.dir.path().display().to_string();
        std::fs::create_dir(sandbox.path(".config")).unwrap();
        std::fs::write(sandbox.path(".config/corp-llm-key"), "sk-1").unwrap();
        std::fs::write(sandbox.path("ca.pem"), "").unwrap();
        let recipe = recipe.replace("/etc/ssl/corp-ca.pem", sandbox.path("ca.pem").to_str().unwrap());
        std::fs::write(sandbox.path("sprag.toml"), recipe).unwrap();
        let sandbox = sandbox.with_env(&[("HOME", &home)]);
        sandbox.load().unwrap_or_else(|problems| panic!("{problems}"));
    }
}

#[test]
fn the_page_about_routes_is_right() {
    let recipe = ROUTES.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let loaded = Sandbox::new(recipe).with_env(&[("JWT_SECRET", "a secret of the tests")]).load();
    let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!((loaded.settings.routes.len(), loaded.warnings), (1, Vec::new()));
}

#[test]
fn the_guide_shows_every_key_of_a_route() {
    let routes = &GUIDE[GUIDE.find("## Routes").unwrap()..GUIDE.find("## Agents").unwrap()];
    let route = &schema::root()["properties"]["routes"]["items"]["properties"];
    for (name, key) in route.as_object().unwrap() {
        assert!(routes.contains(name.as_str()), "{name}");
        for inner in key["properties"].as_object().into_iter().flatten().map(|(inner, _)| inner) {
            assert!(routes.contains(&format!("{inner} = ")), "{name}.{inner}");
        }
    }
}

#[test]
fn the_page_about_metrics_and_traces_is_right() {
    let recipes: Vec<_> =
        OBSERVABILITY.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(recipes.len(), 2);
    for recipe in recipes {
        Sandbox::new(recipe).load().unwrap_or_else(|problems| panic!("{problems}"));
    }
}

#[test]
fn the_page_about_stops_is_right() {
    let recipe = STOPS.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    Sandbox::new(recipe).load().unwrap_or_else(|problems| panic!("{problems}"));
    for reason in Reason::ALL.into_iter().filter(|reason| reason.is_policy()) {
        let form = if reason.form() == Form::Assistant { "assistant" } else { "error" };
        let row = format!("| `{}` | {form} | {} |", reason.as_str(), reason.status());
        assert!(STOPS.contains(&row), "{row}");
    }
}

#[test]
fn the_page_about_policy_is_right() {
    let recipe = POLICY.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    Sandbox::new(recipe).load().unwrap_or_else(|problems| panic!("{problems}"));
    let reasons = [
        "run_limit_exceeded",
        "agent_inactive",
        "outside_allowed_hours",
        "model_not_allowed",
        "rate_limited",
        "budget_exceeded",
        "loop_detected",
        "dlp_blocked",
    ];
    for reason in reasons {
        let status = Reason::ALL.into_iter().find(|known| known.as_str() == reason).unwrap().status();
        assert!(POLICY.contains(&format!("{status} `{reason}`")), "{status} {reason}");
    }
}

#[test]
fn the_guide_lists_the_presets() {
    for preset in PRESETS {
        let base_url = preset.base_url.map_or("your own".to_owned(), |url| format!("`{url}`"));
        let rewrite: Vec<_> = preset.rewrite.iter().map(|(from, to)| format!("`{from}` → `{to}` ")).collect();
        let asks = if preset.stream_usage { " yes" } else { "" };
        let row = format!("| `{}` | {base_url} | {}|{asks} |", preset.name, rewrite.concat());
        assert!(GUIDE.contains(&row), "{row}");
    }
}

/// The example with every line of one kind of comment made live: `#key = default` or `##key = example`.
fn uncomment(mark: &str) -> String {
    let live = |line: &str| {
        let rest =
            line.strip_prefix(mark).filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '['));
        rest.unwrap_or(line).to_owned()
    };
    EXAMPLE.lines().map(live).collect::<Vec<_>>().join("\n")
}

/// Path and description of every key that takes a value, `price` entries included.
fn describe(node: &Schema, path: &str, found: &mut BTreeMap<String, String>) {
    for (name, child) in node["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let entry = child.get("items").or_else(|| schema::map_values(child)).unwrap_or(child);
        if path == "agents.detection" {
            // The keys of [detection] once more: shown there, with one example here.
            assert_eq!(entry["properties"], schema::root()["properties"]["detection"]["properties"]);
            continue;
        }
        if child.get("items").map_or(entry.get("properties").is_some(), |_| is_shown_in_parts(child)) {
            describe(entry, &path, found);
        } else {
            found.insert(path, child["description"].as_str().unwrap_or_default().to_owned());
        }
    }
}

/// A list of tables is shown as tables, unless there is a value to show.
fn is_shown_in_parts(node: &Schema) -> bool {
    let is_empty = node.get("default").is_none_or(|default| *default == serde_json::json!([]));
    node["items"].get("properties").is_some() && is_empty && node.get("examples").is_none()
}

/// Path and comment of every key in the example, live or not.
fn comments() -> BTreeMap<String, String> {
    let (mut section, mut comment, mut found) = (String::new(), Vec::new(), BTreeMap::new());
    for line in EXAMPLE.lines() {
        let bare = line.trim_start_matches('#');
        if let Some(text) = line.strip_prefix("# ") {
            comment.push(text);
            continue;
        }
        if bare.starts_with('[') {
            let examples = [".openai", ".loop_detected", ".billing", ".ops"];
            section = bare.trim_matches(['[', ']']).to_owned();
            section = examples.iter().fold(section, |section, name| section.replace(name, ""));
        } else if section.starts_with("agents.detection") {
            continue;
        } else if let Some((key, _)) = bare.split_once(" = ") {
            found.insert(format!("{section}.{key}"), comment.join(" "));
        }
        comment.clear();
    }
    found
}
