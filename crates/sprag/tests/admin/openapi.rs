//! The description of the API: whole, right about every route, and the form of every error.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use sprag_core::limits::ADMIN_BODY_BYTES;
use sprag_testkit::client::{self, Whole};

use crate::commands::printed;
use crate::world::{World, text};

struct Operation {
    method: String,
    path: String,
    described: Value,
}

async fn document(world: &World) -> Value {
    world.json("/openapi.json").await
}

fn operations(document: &Value) -> Vec<Operation> {
    let paths = document["paths"].as_object().unwrap().iter();
    let all = paths.flat_map(|(path, item)| {
        item.as_object().unwrap().iter().map(move |(method, described)| Operation {
            method: method.to_uppercase(),
            path: path.clone(),
            described: described.clone(),
        })
    });
    all.collect()
}

async fn ask(world: &World, method: &str, path: &str, token: Option<&str>, body: &str) -> Whole {
    let call = client::post(format!("http://{}{path}", world.sprag.admin), body.to_owned());
    let call = call.method(method.parse().unwrap()).header("content-type", "application/json");
    match token {
        Some(token) => call.header("authorization", &format!("Bearer {token}")).fetch().await.unwrap(),
        None => call.fetch().await.unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_and_the_command_describe_the_same() {
    let world = World::start().await;
    assert_eq!(world.ask("/api/v1/openapi.json").fetch().await.unwrap().status, 401, "it needs a token like the rest");
    let document = document(&world).await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."), "{}", document["openapi"]);
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document["security"], json!([{"token": []}]));
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_sprag")).arg("openapi").output().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), document);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_says_what_it_takes_and_answers() {
    let world = World::start().await;
    let document = document(&world).await;
    let operations = operations(&document);
    let mut ids = BTreeSet::new();
    for Operation { method, path, described } in &operations {
        let place = format!("{method} {path}");
        assert!(ids.insert(described["operationId"].as_str().unwrap()), "{place}: its id is taken");
        assert!(described["summary"].as_str().is_some_and(|said| said.ends_with('.')), "{place}: {described}");
        assert_eq!(described["tags"].as_array().unwrap().len(), 1, "{place}");
        let named: BTreeSet<_> = path.split('{').skip(1).map(|rest| rest.split('}').next().unwrap()).collect();
        let parameters: Vec<_> = described["parameters"].as_array().into_iter().flatten().collect();
        let in_path: BTreeSet<_> = parameters
            .iter()
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        assert_eq!(in_path, named, "{place}");

        let answers = described["responses"].as_object().unwrap();
        let form = match path.rsplit('/').next().unwrap() {
            "export" => "application/x-ndjson",
            "live" => "text/event-stream",
            _ => "application/json",
        };
        let schema = &answers["200"]["content"][form]["schema"];
        assert!(schema.is_object(), "{place} says what a good answer looks like");
        for status in ["401", "403", "429"] {
            assert!(answers.contains_key(status), "{place}: {status}");
        }
        assert_eq!(answers.contains_key("413"), described.get("requestBody").is_some(), "{place}");
        let takes_something = !parameters.is_empty() || described.get("requestBody").is_some();
        assert_eq!(answers.contains_key("400"), takes_something, "{place}");
        for (status, answer) in answers.iter().filter(|(status, _)| *status != "200") {
            let schema = &answer["content"]["application/problem+json"]["schema"]["$ref"];
            assert_eq!(schema, "#/components/schemas/Problem", "{place}: {status}");
            assert!(!answer["description"].as_str().unwrap().is_empty(), "{place}: {status}");
        }
    }
    assert!(operations.len() > 20, "{}", operations.len());
    let text = document.to_string();
    let named: BTreeSet<_> =
        text.split("#/components/schemas/").skip(1).map(|s| s.split('"').next().unwrap()).collect();
    for name in named {
        assert!(document["components"]["schemas"][name].is_object(), "{name} is described");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_described_is_there_and_needs_a_token() {
    let world = World::start().await;
    for Operation { method, path, .. } in operations(&document(&world).await) {
        let parts = path.split('/').map(|part| if part.starts_with('{') { "nobody" } else { part });
        let path = parts.collect::<Vec<_>>().join("/");
        let closed = ask(&world, &method, &path, None, "[]").await;
        assert_eq!(closed.status, 401, "{method} {path}");
        if path.ends_with("/live") {
            // It goes on for ever.
            let bearer = format!("Bearer {}", world.token);
            let open = world.ask(&path).header("authorization", &bearer).send().await.unwrap();
            assert_eq!(
                (open.status.as_u16(), open.headers["content-type"].as_bytes()),
                (200, &b"text/event-stream"[..])
            );
            continue;
        }
        let open = ask(&world, &method, &path, Some(&world.token), "[]").await;
        let said = text(&open);
        assert_ne!(open.status, 405, "{method} {path}");
        assert!(!said.contains("nothing under this path"), "{method} {path}: {said}");
        // A list is no order, and nobody is called `nobody`.
        let expected: &[u16] = if method == "GET" { &[200, 404] } else { &[400, 404] };
        assert!(expected.contains(&open.status.as_u16()), "{method} {path}: {} {said}", open.status);
    }
}

#[test]
fn there_is_no_route_that_is_not_described() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/admin/api");
    let mut files = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        files += 1;
        for way in [".route(", ".route_service(", ".nest_service("] {
            assert!(!text.contains(way), "{}: use `.routes(routes!(…))`, not `{way}`", path.display());
        }
    }
    assert!(files > 10, "{files}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_error_is_a_problem_also_those_before_a_handler() {
    let world = World::start().await;
    let too_large = format!("\"{}\"", "x".repeat(ADMIN_BODY_BYTES));
    for (method, path, body, status) in [
        ("GET", "/api/v1", "", 404),
        ("GET", "/api/v1/", "", 404),
        ("GET", "/api/v1/nothing", "", 404),
        ("GET", "/api/v2/runs", "", 404),
        ("GET", "/api/v1/agents/", "", 404),
        ("PUT", "/api/v1/runs", "{}", 405),
        ("DELETE", "/api/v1/status", "", 405),
        ("TRACE", "/api/v1/status", "", 405),
        ("GET", "/api/v1/agents/%FF", "", 400),
        ("GET", "/api/v1/runs/bot/%FF", "", 400),
        ("DELETE", "/api/v1/keys/%FF", "", 400),
        ("DELETE", "/api/v1/kills/%FF", "", 400),
        ("DELETE", "/api/v1/tokens/%FF", "", 400),
        ("GET", "/api/v1/runs?limit=many", "", 400),
        ("GET", "/api/v1/runs?limit=1&limit=2", "", 400),
        ("POST", "/api/v1/kills", "{", 400),
        ("POST", "/api/v1/kills", "\u{0}", 400),
        ("POST", "/api/v1/kills", too_large.as_str(), 413),
    ] {
        let answer = ask(&world, method, path, Some(&world.token), body).await;
        let said = text(&answer);
        assert_eq!(answer.status, status, "{method} {path}: {said}");
        assert_eq!(answer.header("content-type"), "application/problem+json", "{method} {path}: {said}");
        let problem = answer.json();
        assert_eq!((&problem["type"], &problem["status"]), (&json!("about:blank"), &json!(status)), "{method} {path}");
        assert!(!problem["detail"].as_str().unwrap().is_empty() && problem["title"].is_string(), "{method} {path}");
        assert_eq!(!answer.header("allow").is_empty(), status == 405, "{method} {path}: what it takes is said");
    }
    assert_eq!(printed(&world, &["kills", "--json"]).await.trim(), r#"{"items":[],"next":null}"#);
}
