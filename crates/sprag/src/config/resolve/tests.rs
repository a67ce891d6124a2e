use std::fmt::Write;

use sprag_core::limits;

use crate::config::Auth;
use crate::config::sandbox::Sandbox;

const GATEWAY: &str = "[providers.gw]\nbase_url = \"http://h\"\ndialect = \"openai\"\n";

/// File, and what the user must see.
const CASES: [(&str, &str); 34] = [
    ("[proxy]\nlisten = \":7070\"", "127.0.0.1:7070 for this machine only, 0.0.0.0:7070 for every one"),
    ("[proxy]\nlisten = \"127.0.0.1\"", "add a port"),
    ("[admin]\nlisten = \"example.com:1\"", "is not an address and a port"),
    ("[admin]\nlisten = \"127.0.0.1:7070\"", "the proxy listens there already"),
    ("[admin]\ntoken = \"\"", "a token is made of"),
    ("[admin]\nviewer_token = \"a b\"", "a token is made of"),
    ("[admin]\ntoken = \"same\"\nviewer_token = \"same\"", "this is the admin token too"),
    ("[log]\nlevel = \"inof\"", "did you mean \"info\"?"),
    ("[log]\nlevel = \"sprag=loud\"", "is not a log level"),
    ("[log]\ncalls = \"sometimes\"", "expected true, false or \"auto\", found \"sometimes\""),
    ("[log]\ncalls = 1", "expected true, false or \"auto\", found a whole number"),
    ("[routing]\ndefault_openai = \"opnai\"", "the nearest name is \"openai\""),
    ("[routing]\ndefault_openai = \"anthropic\"", "speaks the dialect anthropic, not openai"),
    ("[routing]\ndefault_openai = \"azure\"", "there is no provider \"azure\""),
    ("[providers.gw]\ndialect = \"openai\"", "no preset has this name, so it needs a URL"),
    ("[providers.gw]\nbase_url = \"http://h\"", "`providers.gw.dialect`: missing; no preset has this name"),
    ("[providers.azure]\nhttp2 = \"never\"", "https://RESOURCE.openai.azure.com"),
    ("[providers.openai]\nbase_url = \"host:1\"", "a base URL begins with http:// or https://"),
    ("[providers.openai]\nauth = \"baerer\"", "did you mean \"bearer\"?"),
    ("[providers.openai]\nauth = \"header:\"", "is not a place for a key"),
    ("[providers.openai]\nheaders = { host = \"x\" }", "belongs to the connection"),
    ("[providers.openai]\nheaders = { \"a b\" = \"x\" }", "not the name of a header"),
    ("[providers.openai]\nrewrite = { v1 = \"/x\" }", "is not a pair of paths"),
    ("[providers.openai]\napi_key_env = \"NOT_SET\"", "the environment variable NOT_SET is not set"),
    ("[providers.openai]\napi_key_file = \"/does/not/exist\"", "/does/not/exist cannot be read"),
    ("[providers.openai]\napi_key = \"a\"\napi_key_env = \"B\"", "more than one key is given"),
    ("[providers.openai]\nca_file = \"/does/not/exist\"", "`providers.openai.ca_file`: cannot be read"),
    ("[providers.OpenAI]\nbase_url = \"http://h\"\ndialect = \"openai\"", "lower-case letters"),
    ("[providers.v1]\nbase_url = \"http://h\"\ndialect = \"openai\"", "/v1/ means something else"),
    ("[events]\nclickhouse = \"tcp://h:9000/x\"", "use http or https"),
    ("[events]\nclickhouse = \"http://h/a-b\"", "`events.clickhouse`: `a-b` cannot be the name of the database"),
    ("[[price]]\ninput = 1", "a price needs the name of its model"),
    ("[[price]]\nmodel = \"m\"\ninput = 0.0000001", "at most six decimal places"),
    ("[[price]]\nmodel = \"m\"\ninput = 1\ntier_input = 2", "missing, but prices of long prompts are given"),
];

#[test]
fn says_what_cannot_be_used() {
    for (text, expected) in CASES {
        let complaint = Sandbox::new(text).complaint();
        assert!(complaint.contains(expected), "{text}\n---\n{complaint}");
        assert_eq!(complaint.matches("error: ").count(), 1, "{complaint}");
        assert!(complaint.contains("--> sprag.toml:"), "{complaint}");
    }
}

#[test]
fn names_that_look_alike_in_the_environment_are_refused() {
    let twin = GATEWAY.replace("gw", "my-gw") + &GATEWAY.replace("gw", "my_gw");
    assert!(Sandbox::new(&twin).complaint().contains("differs from \"my-gw\" only in '-' and '_'"));
}

#[test]
fn a_provider_of_ones_own_takes_a_few_lines() {
    let sandbox = Sandbox::new(
        "[providers.gw]
         base_url = \"https://llm.example.com/anthropic\"
         dialect = \"anthropic\"
         api_key_env = \"GW_KEY\"
         headers = { X-Team = \"blue\" }
         [providers.plain]
         base_url = \"http://h\"
         dialect = \"openai\"
         auth = \"header: X-Own\"
         stream_usage = true
         price_as = \"openai\"",
    );
    let settings = sandbox.with_env(&[("GW_KEY", " sk-1\n")]).load().unwrap().settings;
    let gateway = &settings.providers["gw"];
    assert_eq!(gateway.url("/v1/messages").unwrap(), "https://llm.example.com/anthropic/v1/messages");
    assert_eq!(gateway.auth, Auth::Header("x-api-key".parse().unwrap()));
    assert_eq!(gateway.key.as_ref().unwrap().reveal(), "sk-1");
    assert_eq!((gateway.stream_usage, &*gateway.price_as), (false, "gw"));
    let plain = &settings.providers["plain"];
    assert_eq!(plain.auth, Auth::Header("x-own".parse().unwrap()));
    assert_eq!((plain.stream_usage, &*plain.price_as), (true, "openai"));
}

#[test]
fn a_key_file_is_read() {
    let sandbox = Sandbox::new("");
    std::fs::write(sandbox.path("key"), "sk-file\n").unwrap();
    let flags = ["--config", sandbox.path("own.toml").to_str().unwrap()].map(str::to_owned);
    let text = format!("[providers.openai]\napi_key_file = {:?}", sandbox.path("key"));
    std::fs::write(sandbox.path("own.toml"), text).unwrap();
    let sandbox = sandbox.with_flags(&flags.each_ref().map(String::as_str));
    let settings = sandbox.load().unwrap().settings;
    assert_eq!(settings.providers["openai"].key.as_ref().unwrap().reveal(), "sk-file");
}

#[test]
fn prices_are_exact() {
    let text = "[[price]]
        model = \"m\"
        provider = \"vllm\"
        input = 0.1
        output = \"0.2\"
        tier_above_tokens = 200000
        tier_input = 1
        [[price]]
        model = \"m\"
        input = 0
        [prices]
        unpriced = \"block\"";
    let prices = Sandbox::new(text).load().unwrap().settings.prices;
    let first = &prices.overrides[0];
    assert_eq!((first.input.0, first.output.0), (100_000, 200_000));
    assert_eq!(first.tier_above_tokens, Some(200_000));
    assert_eq!((first.tier_input.unwrap().0, first.tier_output), (1_000_000, None));
    assert_eq!(prices.unpriced, crate::config::file::Unpriced::Block);
    let twice = "[[price]]\nmodel = \"m\"\ninput = 1\n".repeat(2);
    assert!(Sandbox::new(&twice).complaint().contains("`price[1].model`: \"m\" has a price already"));
}

#[test]
fn localhost_is_loopback() {
    let settings = Sandbox::new("[proxy]\nlisten = \"localhost:9\"").load().unwrap().settings;
    assert_eq!(settings.proxy.listen.to_string(), "127.0.0.1:9");
}

#[test]
fn both_listeners_may_ask_for_any_port() {
    let text = "[proxy]\nlisten = \"127.0.0.1:0\"\n[admin]\nlisten = \"127.0.0.1:0\"";
    assert!(Sandbox::new(text).load().is_ok());
}

#[test]
fn what_grows_has_a_bound() {
    let at_and_past = |make: &dyn Fn(usize) -> String, bound: usize, message: &str| {
        assert!(Sandbox::new(&make(bound)).load().is_ok(), "{message}");
        let complaint = Sandbox::new(&make(bound + 1)).complaint();
        assert!(complaint.contains(message), "{complaint}");
    };
    let providers = |count: usize| {
        (0..count - 19).fold(String::new(), |mut text, index| {
            let _ = write!(text, "{}", GATEWAY.replace("gw", &format!("gw{index}")));
            text
        })
    };
    at_and_past(&providers, limits::PROVIDERS, "more than 256 providers");
    let name = |length: usize| GATEWAY.replace("gw", &"n".repeat(length));
    at_and_past(&name, limits::PROVIDER_NAME_BYTES, "a provider's name is 1 to 64");
    let lines = |head: &str, count: usize| {
        (0..count).fold(format!("[providers.openai.{head}]\n"), |mut text, index| {
            let _ = writeln!(text, "\"/x{index}\" = \"/y\"");
            text
        })
    };
    at_and_past(&|n| lines("headers", n).replace('/', ""), limits::PROVIDER_HEADERS, "more than 64 headers");
    at_and_past(&|n| lines("rewrite", n), limits::PROVIDER_REWRITES, "more than 64 rewrites");
    let prices = |count: usize| {
        (0..count).fold(String::from("price = ["), |mut text, index| {
            let _ = write!(text, "{{model=\"m{index}\",input=1}},");
            text
        }) + "]"
    };
    at_and_past(&prices, limits::PRICE_OVERRIDES, "more than 256 prices");
}

#[test]
fn a_line_for_each_call_is_a_switch_or_left_to_the_terminal() {
    use crate::config::file::LogCalls;
    for (text, expected) in [
        ("", LogCalls::Auto),
        ("[log]\ncalls = \"auto\"", LogCalls::Auto),
        ("[log]\ncalls = true", LogCalls::On),
        ("[log]\ncalls = false", LogCalls::Off),
    ] {
        assert_eq!(Sandbox::new(text).load().unwrap().settings.log.calls, expected, "{text}");
    }
    for (value, expected) in [("auto", LogCalls::Auto), ("1", LogCalls::On), ("false", LogCalls::Off)] {
        let loaded = Sandbox::new("").with_env(&[("SPRAG_LOG_CALLS", value)]).load().unwrap();
        assert_eq!(loaded.settings.log.calls, expected, "{value}");
    }
}
