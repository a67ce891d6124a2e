use crate::config::sandbox::Sandbox;

/// File, and the line that the user must see of each problem.
const CASES: [(&str, &[&str]); 15] = [
    ("lisen = 1", &["`lisen`: unknown key", "did you mean `proxy.listen`?"]),
    ("[proxi]\nlisten = \"x\"", &["`proxi`: unknown key", "sprag.toml:1:2", "did you mean `proxy`?"]),
    ("[proxy]\nlisen = \"x\"", &["`proxy.lisen`: unknown key", "sprag.toml:2:1", "did you mean `listen`?"]),
    ("idle_minutes = 5", &["did you mean `runs.idle_minutes`?"]),
    ("[log]\nqqqqqqqqqq = 1", &["the nearest known key is `", "known here: calls, format, level"]),
    ("[proxy]\nlisten = 7070", &["`proxy.listen`: expected a string, found a whole number", "sprag.toml:2:10"]),
    ("[proxy]\ndrain_seconds = \"30\"", &["expected a whole number, found a string"]),
    ("[proxy]\ndrain_seconds = 1.5", &["expected a whole number, found a number with a fraction"]),
    ("[proxy]\ndrain_seconds = -1", &["-1 is out of range", "expected 0 to 3600"]),
    ("[responses]\nmetadata = 1", &["expected true or false, found a whole number"]),
    ("[responses]\ncompat = \"agentwall\"", &["expected a list, found a string"]),
    (
        "[responses]\ncompat = [\"agentwall\", \"fairwiser\"]",
        &["`responses.compat[1]`: expected \"agentwall\" or \"fairvisor\", found \"fairwiser\"", "sprag.toml:2:24"],
    ),
    ("proxy = 3", &["expected a table, found a whole number"]),
    ("[providers.openai.timeouts]\nconect_ms = 1", &["`providers.openai.timeouts.conect_ms`", "`connect_ms`"]),
    ("[[price]]\nmodel = \"m\"\ninput = true", &["`price[0].input`: expected a number or a string, found a boolean"]),
];

#[test]
fn says_what_was_expected_and_where() {
    for (text, expected) in CASES {
        let complaint = Sandbox::new(text).complaint();
        for part in expected {
            assert!(complaint.contains(part), "{text}\n---\n{complaint}");
        }
        assert_eq!(complaint.matches("error: ").count(), 1, "{complaint}");
    }
}

#[test]
fn all_problems_of_all_layers_come_at_once() {
    let text = "\
[proxy]
lisen = \"127.0.0.1:1\"
drain_seconds = \"soon\"

[admin]
listen = \"nowhere\"

[providers.gw]
base_url = 5
dialect = \"opnai\"
";
    let sandbox = Sandbox::new(text).with_env(&[("SPRAG_LOG_FORMAT", "xml"), ("SPRAG_LOG_CALS", "1")]);
    insta::assert_snapshot!(sandbox.complaint(), @r#"
    error: `log.format`: expected "auto", "pretty" or "json", found "xml"
     --> environment variable SPRAG_LOG_FORMAT

    error: `proxy.lisen`: unknown key
     --> sprag.toml:2:1
      |
    2 | lisen = ***
      | ^^^^^
      = help: did you mean `listen`?

    error: `proxy.drain_seconds`: expected a whole number, found a string
     --> sprag.toml:3:17
      |
    3 | drain_seconds = "soon"
      |                 ^^^^^^

    error: `admin.listen`: "nowhere" is not an address and a port
     --> sprag.toml:6:10
      |
    6 | listen = "nowhere"
      |          ^^^^^^^^^
      = help: expected something like 127.0.0.1:7070 or [::1]:7070

    error: `providers.gw.base_url`: expected a string, found a whole number
     --> sprag.toml:9:12
      |
    9 | base_url = 5
      |            ^

    error: `providers.gw.dialect`: expected "openai", "anthropic" or "gemini", found "opnai"
      --> sprag.toml:10:11
       |
    10 | dialect = "opnai"
       |           ^^^^^^^
       = help: did you mean "openai"?

    warning: not a variable of Sprag; it is ignored
     --> environment variable SPRAG_LOG_CALS
      = help: the nearest known name is SPRAG_LOG_CALLS
    "#);
}

#[test]
fn the_problems_are_data_too() {
    let problems = Sandbox::new("[proxy]\nlisten = 7070").load().unwrap_err();
    let json = serde_json::to_value(&problems).unwrap();
    assert_eq!(json[0]["key"], "proxy.listen");
    assert_eq!((json[0]["line"].as_u64(), json[0]["column"].as_u64()), (Some(2), Some(10)));
    assert_eq!(json[0]["level"], "error");
}
