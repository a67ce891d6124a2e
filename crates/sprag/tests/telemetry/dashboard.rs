//! The dashboard for Grafana and the rules for Prometheus: well formed, and about metrics that exist.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use sprag_testkit::{ClickHouseServer, RedisServer};

use crate::collector::{Collector, Manner};
use crate::page::Page;
use crate::scene::{chat, fetch, looping, metrics, place, traffic};

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn dashboard() -> Value {
    serde_json::from_str(&read("sprag.json")).unwrap()
}

/// Every panel, those inside rows too.
fn panels(dashboard: &Value) -> Vec<Value> {
    let all = dashboard["panels"].as_array().unwrap().iter();
    all.flat_map(|panel| [panel.clone()].into_iter().chain(panel["panels"].as_array().cloned().unwrap_or_default()))
        .collect()
}

fn expressions(dashboard: &Value) -> Vec<String> {
    let targets =
        panels(dashboard).into_iter().flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// The metrics that an expression names.
fn named(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("sprag_") || word.starts_with("process_")).map(str::to_owned).collect()
}

/// The names under which samples stand on a page.
fn there(page: &Page) -> BTreeSet<String> {
    page.families.values().flat_map(|family| &family.samples).map(|(name, _, _)| name.clone()).collect()
}

#[test]
fn the_dashboard_can_be_imported_anywhere() {
    let dashboard = dashboard();
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 39);
    assert_eq!(
        (&dashboard["id"], dashboard["uid"].as_str(), dashboard["title"].as_str()),
        (&Value::Null, Some("sprag"), Some("Sprag"))
    );
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert!(variables.iter().any(|variable| variable["type"] == "datasource" && variable["name"] == "datasource"));
    let panels = panels(&dashboard);
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "every id is there once");
    let rows: Vec<&str> =
        panels.iter().filter(|panel| panel["type"] == "row").filter_map(|row| row["title"].as_str()).collect();
    assert_eq!(rows, ["Traffic", "Stops", "Money", "Latency", "Health", "Shared"]);
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let title = panel["title"].as_str().unwrap();
        assert!(!panel["targets"].as_array().unwrap().is_empty() && !title.is_empty(), "{title}");
        assert!(panel["description"].as_str().is_some_and(|text| text.ends_with('.')), "{title}");
        let place = &panel["gridPos"];
        assert!(place["x"].as_u64().unwrap() + place["w"].as_u64().unwrap() <= 24, "{title}");
    }
    for source in sources(&dashboard) {
        assert_eq!(source, "${datasource}", "no data source of somebody's own");
    }
}

fn sources(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => {
            let own = map.get("datasource").map(|source| source["uid"].as_str().unwrap_or_default().to_owned());
            own.into_iter().chain(map.values().flat_map(sources)).collect()
        }
        Value::Array(list) => list.iter().flat_map(sources).collect(),
        _ => Vec::new(),
    }
}

/// Tables by which nodes share what they know, with a server for each that is installed here; a word about each that is not.
struct Neighbours {
    config: String,
    _redis: Option<RedisServer>,
    absent: Vec<&'static str>,
}

fn neighbours(database: &str) -> Neighbours {
    let (redis, clickhouse) = (RedisServer::start(), ClickHouseServer::shared());
    let (mut config, mut absent) = (String::new(), Vec::new());
    match &redis {
        Some(redis) => config += &format!("[state]\nredis = \"{}\"\ntimeout_ms = 2000\n", redis.url()),
        None => absent.extend(["sprag_shared_state", "sprag_shared_catalog"]),
    }
    match clickhouse {
        Some(server) => config += &format!("[events]\nclickhouse = \"{}\"\n", server.url(database)),
        None => absent.push("sprag_shared_history"),
    }
    Neighbours { config, _redis: redis, absent }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_that_is_named_exists() {
    let collector = Collector::start(Manner::Takes).await;
    let neighbours = neighbours("named");
    let place = looping(&format!("{}{}", collector.config(), neighbours.config)).await;
    traffic(&place).await;
    for _ in 0..2 {
        fetch(chat(&place, "plain", "gpt-4o", "the same").header("x-sprag-run-id", "circle")).await;
    }
    let page = metrics(&place).await;
    let (rules, dashboard) = (read("sprag-rules.yml"), dashboard());
    let expressions = expressions(&dashboard);
    let of_dashboard: BTreeSet<String> = expressions.iter().flat_map(|expression| named(expression)).collect();
    let of_rules: BTreeSet<String> =
        rules.lines().filter(|line| !line.trim().starts_with('#')).flat_map(named).collect();
    assert!(of_dashboard.len() > 30 && of_rules.len() > 8, "{of_dashboard:?} {of_rules:?}");
    let there = there(&page);
    let is_absent = |name: &str| neighbours.absent.iter().any(|absent| name.starts_with(absent));
    let missing = of_dashboard.union(&of_rules).filter(|name| !there.contains(*name) && !is_absent(name));
    let missing: Vec<&String> = missing.collect();
    assert!(missing.is_empty(), "{missing:?} are not among {there:?}");
    let is_shown = |name: &&String| page.families[*name].samples.iter().any(|(name, _, _)| of_dashboard.contains(name));
    let unseen: Vec<&String> =
        page.families.keys().filter(|name| name.starts_with("sprag_shared_") && !is_shown(name)).collect();
    assert!(unseen.is_empty(), "no panel shows {unseen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_is_explained() {
    let telemetry = "[telemetry]\nmetrics_by_agent = true\notlp = \"http://127.0.0.1:1\"\n";
    let neighbours = neighbours("explained");
    let place = place(&format!("{telemetry}{}", neighbours.config)).await;
    traffic(&place).await;
    let guide =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/observability.md")).unwrap();
    let page = metrics(&place).await;
    let missing: Vec<&String> = page.families.keys().filter(|name| !guide.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/observability.md says nothing of {missing:?}");
}
