use crate::config::sandbox::Sandbox;

#[test]
fn marks_the_place() {
    let complaint = Sandbox::new("# é\n[proxy]\n\tlisten = \"nowhere\"  # why\n").complaint();
    insta::assert_snapshot!(complaint, @r#"
    error: `proxy.listen`: "nowhere" is not an address and a port
     --> sprag.toml:3:11
      |
    3 |  listen = "nowhere"  # why
      |           ^^^^^^^^^
      = help: expected something like 127.0.0.1:7070 or [::1]:7070
    "#);
}

#[test]
fn says_where_it_is_not_toml() {
    for (text, place) in [
        ("[proxy\nlisten = 1", "sprag.toml:1:7"),
        ("[proxy]\nlisten = ", "sprag.toml:2:10"),
        ("[log]\ncalls = true\ncalls = false", "sprag.toml:3:1"),
        ("[log]\ncalls = yes", "sprag.toml:2:9"),
        ("[proxy]\nmax_connections = 99999999999999999999", "sprag.toml:2:19"),
    ] {
        let complaint = Sandbox::new(text).complaint();
        assert!(complaint.contains("not valid TOML") && complaint.contains(place), "{text}\n---\n{complaint}");
    }
}

#[test]
fn reports_every_line_that_is_not_toml() {
    let complaint = Sandbox::new("[log]\ncalls = yes\nlevel = info\n").complaint();
    assert!(complaint.contains("sprag.toml:2:9") && complaint.contains("sprag.toml:3:9"), "{complaint}");
}

#[test]
fn shows_a_line_that_cannot_hold_a_secret() {
    let complaint = Sandbox::new("[admin]\ntoken = \"x\"\n[log]\ncalls = yes").complaint();
    assert!(complaint.contains("4 | calls = yes"), "{complaint}");
}

#[test]
fn never_shows_a_secret() {
    for text in [
        "[admin]\ntokn = \"hush\"",
        "[admin]\ntoken = [\"hush\"]",
        "[admin]\ntoken = \"hush hush\"",
        "[admin]\ntoken = \"hush",
        "[admin]\ntoken = hush",
        "[admin]\ntoken = \"\"\"\nhush",
        "[admin]\ntoken =\n\"hush\"",
        "[providers.openai]\napi_key = \"hush\", x = 1",
        "[providers.openai]\napi_key = \"hush\"\napi_key_env = \"NO\"",
        "[providers]\nopenai = { api_key = \"hush\", htp2 = \"never\", headers = { x-key = \"hush\" } }",
        "[providers.openai]\nheaders = { x-key = \"hush\\n\" }",
        "[providers.openai]\nheaders = { host = \"hush\" }",
        "[providers.openai]\nbase_url = \"http://me:hush@host\"",
        "[nowhere]\nx = { y = [\"hush\"] }\n[proxy]\nlisten = 1",
    ] {
        let sandbox = Sandbox::new(text);
        let complaint = sandbox.complaint();
        assert!(!complaint.contains("hush"), "{text}\n---\n{complaint}");
        let json = serde_json::to_string(&sandbox.load().unwrap_err()).unwrap();
        assert!(!json.contains("hush"), "{json}");
    }
}

#[test]
fn settings_never_show_a_secret() {
    let text = "[admin]\ntoken = \"hush\"\n[providers.openai]\napi_key = \"hush\"\nheaders = { x-key = \"hush\" }";
    let loaded = Sandbox::new(text).load().unwrap();
    assert_eq!(loaded.settings.providers["openai"].key.as_ref().unwrap().reveal(), "hush");
    assert_eq!(loaded.settings.providers["openai"].headers["x-key"], "hush");
    let shown = format!("{loaded:?} {loaded:#?}");
    assert!(!shown.contains("hush"), "{shown}");
}
