//! `sprag check`: what a configuration holds, and who says so.

use std::process::Command;

use serde_json::Value;

#[test]
fn every_value_is_listed_with_where_it_comes_from() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sprag.toml"), "[proxy]\nmax_connections = 7\n[log]\nlevel = \"warn\"\n").unwrap();
    let printed = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sprag"))
            .arg("check")
            .args(arguments)
            .env("SPRAG_LOG_LEVEL", "info")
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let shown = printed(&["--values", "--proxy", "127.0.0.1:1"]);
    let row = |key: &str| shown.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    let words = |key: &str| row(key).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words("proxy.max_connections"), "proxy.max_connections 7 sprag.toml:2");
    assert_eq!(words("proxy.listen"), "proxy.listen 127.0.0.1:1 flag --proxy");
    assert_eq!(words("log.level"), "log.level info environment variable SPRAG_LOG_LEVEL");
    assert_eq!(words("runs.idle_minutes"), "runs.idle_minutes 60 default");
    assert!(shown.ends_with("sprag.toml: ok\n"), "{shown}");

    let told: Value = serde_json::from_str(&printed(&["--values", "--json"])).unwrap();
    let is_level = |value: &&Value| value["section"] == "log" && value["key"] == "level";
    let level = told["values"].as_array().unwrap().iter().find(is_level).unwrap();
    assert_eq!((&level["from"], &level["variable"]), (&"environment".into(), &"SPRAG_LOG_LEVEL".into()));
    assert_eq!(printed(&["--json"]).trim(), "[]", "without it only the problems are told");
}
