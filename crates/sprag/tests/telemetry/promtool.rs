//! The page and the rules as Prometheus' own checker sees them, where it is installed; and the rules that it checks,
//! wherever it is not.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::page::Page;
use crate::scene::{metrics, place, traffic};

const HOW: &str = "SKIPPED: promtool is not installed; `apt-get install prometheus` brings it";

fn packaged(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana").join(name)
}

/// What promtool says, and whether it is content; nothing where it is not installed.
fn promtool(arguments: &[&str], input: &str) -> Option<(bool, String)> {
    let child = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.ok()?;
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

#[tokio::test]
async fn the_page_is_clean() {
    let place = place("[telemetry]\nmetrics_by_agent = true\notlp = \"http://127.0.0.1:1\"\n").await;
    traffic(&place).await;
    let page = metrics(&place).await;
    lint(&page);
    match promtool(&["check", "metrics"], &page.text) {
        Some((is_content, said)) => assert!(is_content && said.trim().is_empty(), "{said}"),
        None => println!("{HOW}"),
    }
}

#[test]
fn the_rules_and_the_configuration_are_right() {
    let (rules, config) = (packaged("sprag-rules.yml"), packaged("prometheus.yml"));
    // The token that the configuration names is everybody's own.
    let config = ["check", "config", "--syntax-only", config.to_str().unwrap()];
    for arguments in [&["check", "rules", rules.to_str().unwrap()][..], &config] {
        match promtool(arguments, "") {
            Some((is_content, said)) => assert!(is_content, "{said}"),
            None => println!("{HOW}"),
        }
    }
}

/// What promtool looks for, as far as it concerns us.
fn lint(page: &Page) {
    for (name, family) in &page.families {
        assert!(name.starts_with("sprag_") || name.starts_with("process_"), "{name}");
        assert!(family.help.ends_with('.') && family.help.len() > 10, "{name}: {}", family.help);
        assert_eq!(name.ends_with("_total"), family.kind == "counter", "{name} is a {}", family.kind);
        let parts: Vec<&str> = name.split('_').collect();
        for unit in ["ms", "us", "milliseconds", "microseconds", "kb", "mb", "percent", "counter", "gauge", "histogram"]
        {
            assert!(!parts.contains(&unit), "{name}: {unit}");
        }
        if family.kind == "histogram" {
            assert!(name.ends_with("_seconds"), "{name}");
            buckets_add_up(name, &family.samples);
        }
    }
}

fn buckets_add_up(name: &str, samples: &[(String, std::collections::BTreeMap<String, String>, f64)]) {
    let mut last = (f64::NEG_INFINITY, 0.0);
    for (sample, labels, value) in samples {
        if sample.ends_with("_count") {
            last = (f64::NEG_INFINITY, 0.0);
            let mut with_end = labels.clone();
            with_end.insert("le".to_owned(), "+Inf".to_owned());
            let whole = samples.iter().find(|(of, labels, _)| of.ends_with("_bucket") && *labels == with_end);
            assert_eq!(whole.unwrap().2, *value, "{name}");
        }
        if sample.ends_with("_bucket") {
            let end = labels["le"].replace("+Inf", "inf").parse::<f64>().unwrap();
            assert!(end > last.0 && *value >= last.1, "{name} {labels:?}");
            last = (end, *value);
        }
    }
}
