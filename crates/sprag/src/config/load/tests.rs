use std::fs;

use sprag_core::loops::Mode;
use sprag_core::policy::RateMeasure;

use super::*;
use crate::config::sandbox::Sandbox;

#[test]
fn file_then_environment_then_flags() {
    let text = "[proxy]\nlisten = \"127.0.0.1:1\"\n[admin]\nlisten = \"127.0.0.1:2\"\n[data]\ndir = \"file\"";
    let sandbox = Sandbox::new(text)
        .with_env(&[("SPRAG_PROXY_LISTEN", "127.0.0.1:3"), ("SPRAG_ADMIN_LISTEN", "127.0.0.1:4")])
        .with_flags(&["--proxy", "127.0.0.1:5"]);
    let settings = sandbox.load().unwrap().settings;
    assert_eq!(settings.proxy.listen.port(), 5);
    assert_eq!(settings.admin.listen.port(), 4);
    assert_eq!(settings.data_dir, PathBuf::from("file"));
}

#[test]
fn the_file_is_the_flag_then_the_variable_then_the_one_that_is_there() {
    let sandbox = Sandbox::new("[log]\nlevel = \"warn\"");
    assert_eq!(sandbox.load().unwrap().settings.log.level, "warn");
    fs::write(sandbox.path("b.toml"), "[log]\nlevel = \"debug\"").unwrap();
    fs::write(sandbox.path("c.toml"), "[log]\nlevel = \"trace\"").unwrap();
    let (b, c) = (sandbox.path("b.toml"), sandbox.path("c.toml"));
    let sandbox = sandbox.with_env(&[("SPRAG_CONFIG", b.to_str().unwrap())]);
    let loaded = sandbox.load().unwrap();
    assert_eq!((loaded.settings.log.level.as_str(), loaded.file), ("debug", Some(b)));
    let sandbox = sandbox.with_flags(&["--config", c.to_str().unwrap()]);
    assert_eq!(sandbox.load().unwrap().settings.log.level, "trace");
    fs::remove_file(&c).unwrap();
    assert!(sandbox.complaint().contains("c.toml cannot be read: No such file"));
    let nothing = Sandbox::new("");
    fs::remove_file(nothing.path("sprag.toml")).unwrap();
    assert_eq!(nothing.load().unwrap().file, None);
}

#[test]
fn a_flag_adds_or_moves_a_provider() {
    let text =
        "[providers.gw]\ndialect = \"gemini\"\nbase_url = \"http://a\"\n[providers.openai]\nprice_as = \"azure\"";
    let flags = ["--provider", "gw=http://b", "--provider", "new=http://c", "--provider", "openai=http://d"];
    let anthropic = ["--provider", "claude=http://e,dialect=anthropic"];
    let loaded = Sandbox::new(text).with_flags(&[&flags[..], &anthropic].concat()).load().unwrap();
    let seen = |name: &str| {
        let provider = &loaded.settings.providers[name];
        (provider.base.to_string(), provider.family, provider.price_as.to_string())
    };
    use sprag_core::wire::Family::{Anthropic, Gemini, Openai};
    assert_eq!(seen("gw"), ("http://b".into(), Gemini, "gw".into()));
    assert_eq!(seen("new"), ("http://c".into(), Openai, "new".into()));
    assert_eq!(seen("openai"), ("http://d".into(), Openai, "azure".into()));
    assert_eq!(seen("claude"), ("http://e".into(), Anthropic, "claude".into()));
    let complaint = Sandbox::new("").with_flags(&["--provider", "v1=ftp://h,dialect=opnai"]).complaint();
    for expected in
        ["/v1/ means something else", "did you mean \"openai\"?", "--> flag --provider", "http:// or https://"]
    {
        assert!(complaint.contains(expected), "{complaint}");
    }
}

#[test]
fn a_key_from_the_environment_replaces_the_one_in_the_file() {
    let text = "[providers.openai]\napi_key_file = \"/nowhere\"";
    let loaded = Sandbox::new(text).with_env(&[("SPRAG_PROVIDERS_OPENAI_API_KEY", "sk-env")]).load().unwrap();
    assert_eq!(loaded.settings.providers["openai"].key.as_ref().unwrap().reveal(), "sk-env");
}

#[test]
fn the_data_directory_is_where_it_belongs() {
    for (variables, expected) in [
        (&[("XDG_DATA_HOME", "/x"), ("HOME", "/h")][..], "/x/sprag"),
        (&[("XDG_DATA_HOME", "relative"), ("HOME", "/h")], "/h/.local/share/sprag"),
        (&[("HOME", "")], "sprag-data"),
        (&[("SPRAG_DATA_DIR", "~/d"), ("HOME", "/h")], "/h/d"),
    ] {
        assert_eq!(Sandbox::new("").with_env(variables).load().unwrap().settings.data_dir, PathBuf::from(expected));
    }
}

#[test]
fn says_what_needs_a_restart() {
    let old = Sandbox::new("").load().unwrap().settings;
    let new = Sandbox::new("[proxy]\nlisten = \"127.0.0.1:1\"\ndrain_seconds = 1\n[data]\ndir = \"x\"").load().unwrap();
    assert_eq!(needs_restart(&old, &new.settings), ["proxy.listen", "proxy.drain_seconds", "data.dir"]);
    assert_eq!(needs_restart(&old, &old.clone()), [""; 0]);
}

#[test]
fn a_file_may_be_as_large_as_the_bound_and_no_larger() {
    let max = usize::try_from(limits::CONFIG_BYTES).unwrap();
    assert!(Sandbox::new(&"#".repeat(max)).load().is_ok());
    assert!(Sandbox::new(&"#".repeat(max + 1)).complaint().contains("is larger than 1048576 bytes"));
}

#[test]
fn a_byte_order_mark_is_no_error() {
    assert_eq!(Sandbox::new("\u{feff}[log]\nlevel = \"warn\"").load().unwrap().settings.log.level, "warn");
}

#[test]
fn a_key_of_a_provider_and_required_keys_are_taken_without_a_word() {
    let loaded = Sandbox::new("[proxy]\nrequire_keys = true\n[providers.openai]\napi_key = \"k\"").load().unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    assert!(loaded.settings.proxy.require_keys);
    assert_eq!(loaded.settings.providers["openai"].key.as_ref().map(|key| key.reveal()), Some("k"));
}

#[test]
fn a_rate_limit_by_claims_needs_a_key() {
    let mut settings = Sandbox::new("[agents.bot.kill_switch]\nenabled = true").load().unwrap().settings;
    let rule = |id: u64, key: &str| RateRule {
        name: format!("limit {id}").into(),
        mode: Mode::Enforce,
        limit_keys: vec![key.parse().unwrap()],
        measure: RateMeasure::Bucket { rps: 1.0, burst: 1.0 },
        id,
    };
    settings.policies.defaults.rate_limits = [rule(1, "agent"), rule(2, "jwt:org_id")].into();
    let bot = settings.policies.agents.values_mut().next().unwrap();
    bot.rate_limits = [rule(2, "jwt:org_id"), rule(3, "jwt:sub")].into();
    let warnings = unverified_claims(&settings);
    let told: Vec<&str> = warnings.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(told, ["defaults.rate_limits", "agents.bot.rate_limits"]);
    assert!(warnings.iter().all(|problem| problem.level == Level::Warning));
    assert!(warnings[0].message.starts_with("\"limit 2\" is kept by claims"), "{}", warnings[0]);

    let route = "[[routes]]\nname = \"tools\"\npath = \"/x\"\nupstream = \"http://a\"\n\
                 [[routes.rate_limits]]\nrps = 1\nlimit_keys = [\"jwt:org_id\"]";
    let warnings = Sandbox::new(route).load().unwrap().warnings;
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].key, "routes.tools.rate_limits");

    let env = [("KEY", "0123456789abcdef")];
    settings.jwt = Sandbox::new("[jwt]\nsecret_env = \"KEY\"").with_env(&env).load().unwrap().settings.jwt;
    assert_eq!(unverified_claims(&settings), []);
}
