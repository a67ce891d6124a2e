//! The example of the document that routes come from, translated as `docs/routes.md` says, before a real upstream.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::configured::{JWT_SECRET, stopped, token};
use crate::tools::Tools;

/// The last JSON block of the document; None where it does not lie beside the checkout.
fn example() -> Option<Value> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("SPRAG_SHARED").map_or_else(beside, PathBuf::from).join("spec");
    let mut files = std::fs::read_dir(&folder).ok()?.filter_map(|file| Some(file.ok()?.path()));
    let file = files.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("001")))?;
    let text = std::fs::read_to_string(file).unwrap();
    let blocks = text.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    let found: Vec<Value> = blocks.filter_map(|block| serde_json::from_str(block).ok()).collect();
    found.into_iter().find(|block| block["spec"]["selector"].is_object())
}

/// The keys of a route, by the table in `docs/routes.md`; `path_prefix`, `name` and `upstream` apart.
fn translated(policy: &Value) -> (String, String) {
    let spec = &policy["spec"];
    let mut keys = String::new();
    if let Some(methods) = spec["selector"].get("methods") {
        keys += &format!("methods = {methods}\n");
    }
    let is_shadow = spec["mode"] == "shadow";
    let in_force = if is_shadow { "shadow" } else { "enforce" };
    if let Some(detection) = spec.get("loop_detection") {
        let mode = if detection["enabled"] == true { in_force } else { "off" };
        keys += &format!("[routes.repeat]\nmode = \"{mode}\"\n");
        for key in ["window_seconds", "threshold_identical_requests", "action"] {
            if let Some(value) = detection.get(key) {
                keys += &format!("{key} = {value}\n");
            }
        }
    }
    for rule in spec["rules"].as_array().into_iter().flatten() {
        assert_eq!(rule["algorithm"], "token_bucket");
        let config = &rule["algorithm_config"];
        let rps = config.get("rps").unwrap_or(&config["tokens_per_second"]);
        keys += &format!(
            "[[routes.rate_limits]]\nname = {}\nlimit_keys = {}\nrps = {rps}\nburst = {}\nmode = \"{in_force}\"\n",
            rule["name"], rule["limit_keys"], config["burst"]
        );
    }
    (spec["selector"]["pathPrefix"].as_str().unwrap().to_owned(), keys)
}

async fn start(rest: &str) -> Option<Tools> {
    let Some(policy) = example() else {
        println!("skipped: the document does not lie beside the checkout");
        return None;
    };
    let (prefix, keys) = translated(&policy);
    assert_eq!(prefix, "/v1/tools/", "where the tool server of this suite stands");
    Some(Tools::start(&keys, rest).await)
}

const JWT: &str = "[jwt]\nsecret_file = SECRET_FILE";

#[tokio::test(flavor = "multi_thread")]
async fn repeated_tool_calls_are_slowed_progressively() {
    let Some(tools) = start(JWT).await else { return };
    let acme = token(&json!({"org_id": "acme"}), JWT_SECRET);
    let headers = [("authorization", acme.as_str()), ("x-tool-name", "search")];
    let mut delays = Vec::new();
    for at in 0..6 {
        let answer = tools.post("/v1/tools/search", "{\"q\":\"weather\"}", &headers).await;
        assert_eq!(answer.status, 200);
        delays.push(answer.header("x-sprag-loop-delay").to_owned());
        let other = tools.post("/v1/tools/search", &format!("{{\"q\":{at}}}"), &headers).await;
        assert_eq!(other.header("x-sprag-loop-delay"), "", "normal traffic is not slowed");
    }
    assert_eq!(delays, ["", "", "", "400", "500", "600"]);
    tools.place.pass_seconds(46);
    let answer = tools.post("/v1/tools/search", "{\"q\":\"weather\"}", &headers).await;
    assert_eq!(answer.header("x-sprag-loop-delay"), "", "the counter is gone after a quiet window");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_organisation_and_tool_has_its_own_bucket() {
    let Some(tools) = start(JWT).await else { return };
    let mut number = 0;
    let mut passed = async |org: &str, tool: &str, requests: usize| {
        let mut passed = 0;
        for _ in 0..requests {
            number += 1;
            let body = format!("{{\"n\":{number}}}");
            let answer = tools.post("/v1/tools/x", &body, &[("authorization", org), ("x-tool-name", tool)]).await;
            match stopped(&answer) {
                "" => passed += 1,
                reason => assert_eq!((reason, answer.status.as_u16()), ("rate_limited", 429)),
            }
        }
        passed
    };
    let [acme, umbrella] = ["acme", "umbrella"].map(|org| token(&json!({"org_id": org}), JWT_SECRET));
    assert_eq!(passed(&acme, "search", 45).await, 40, "the burst");
    assert_eq!(passed(&acme, "read", 45).await, 40, "another tool");
    assert_eq!(passed(&umbrella, "search", 45).await, 40, "another organisation");
    tools.place.pass_seconds(1);
    assert_eq!(passed(&acme, "search", 30).await, 20, "what fills in a second");

    // Claims that nobody signed are no claims: all of them share one bucket.
    let mut rotated = 0;
    for at in 0..60 {
        let forged = token(&json!({"org_id": format!("org-{at}")}), "another secret than ours");
        rotated += passed(&forged, "search", 1).await;
    }
    assert_eq!(rotated, 40, "rotating claims grants nothing");
    assert_eq!(passed("Basic x", "search", 1).await, 0, "without a token it is the same bucket");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_all_claims_share_one_bucket() {
    let Some(tools) = start("").await else { return };
    let mut passed = 0;
    for at in 0..60 {
        let claimed = token(&json!({"org_id": format!("org-{at}")}), JWT_SECRET);
        let headers = [("authorization", claimed.as_str()), ("x-tool-name", "search")];
        passed += usize::from(tools.post("/v1/tools/x", &format!("{{\"n\":{at}}}"), &headers).await.status == 200);
    }
    assert_eq!(passed, 40);
}
