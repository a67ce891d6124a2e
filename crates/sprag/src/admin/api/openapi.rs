//! `GET /openapi.json`: what the API takes and answers, made from the routes themselves.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use axum::Json;
use serde_json::{Map, Value, json};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use super::described;
use crate::admin::Shared;
use crate::admin::problem::Details;

const PROBLEM: &str = "application/problem+json";

/// What any operation may answer: the gate is the same for all.
const ALWAYS: [(&str, &str); 3] = [
    ("401", "No token, or one that does not open"),
    (
        "403",
        "The token may only look, the name of the host is not a local one, or a browser did not send what its page gave it",
    ),
    ("429", "Too many wrong tokens came from this address"),
];

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Sprag admin API",
        description = "See what agents do, and stop them. Listings come in pages: give `next` back as `cursor`. Errors are problems of RFC 9457.",
        license(name = "Apache-2.0"),
    ),
    components(schemas(Details))
)]
struct Base;

/// The description of the whole API: OpenAPI 3.1. It never changes while the program runs.
pub(crate) fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(describe);
    &DOCUMENT
}

fn describe() -> Value {
    let router: OpenApiRouter<Shared> = OpenApiRouter::with_openapi(Base::openapi()).nest("/api/v1", described());
    let mut document = serde_json::to_value(router.into_openapi()).unwrap_or_default();
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    document["components"]["securitySchemes"] = json!({
        "token": {"type": "http", "scheme": "bearer", "description": "The admin token, or one that `sprag tokens` made"},
    });
    document["security"] = json!([{"token": []}]);
    let schemas = document["components"]["schemas"].as_object().into_iter().flatten();
    let demanding: BTreeSet<String> = schemas
        .filter(|(_, schema)| schema.get("required").is_some())
        .map(|(name, _)| format!("#/components/schemas/{name}"))
        .collect();
    let paths = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    for operation in paths.filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        complete(operation);
        // An empty body is an empty object.
        if let Some(body) = operation.get_mut("requestBody") {
            let schema = body["content"]["application/json"]["schema"]["$ref"].as_str().unwrap_or_default();
            body["required"] = demanding.contains(schema).into();
        }
    }
    document
}

/// What the API takes and answers, as OpenAPI 3.1.
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "get_openapi",
    tag = "status",
    responses((status = 200, description = "This document", body = Value))
)]
pub(super) async fn show() -> Json<&'static Value> {
    Json(document())
}

/// Adds what follows from the form of an operation, and gives every error its form.
fn complete(operation: &mut Value) {
    let has_body = operation.get("requestBody").is_some();
    let takes_something = has_body || operation.get("parameters").is_some();
    let Some(answers) = operation["responses"].as_object_mut() else { return };
    let mut may_answer = |status: &str, description: &str| {
        answers.entry(status).or_insert_with(|| json!({"description": description}));
    };
    ALWAYS.iter().for_each(|(status, description)| may_answer(status, description));
    if takes_something {
        may_answer("400", "What was sent makes no sense; the problem says what and where");
    }
    if has_body {
        may_answer("413", "The body is too large");
    }
    for (_, answer) in answers.iter_mut().filter(|(status, _)| status.starts_with(['4', '5'])) {
        answer["content"] = json!({PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}});
    }
}
