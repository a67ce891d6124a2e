//! Files of the dashboard, inside the binary.

use std::sync::LazyLock;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::get;
use xxhash_rust::xxh3::xxh3_64;

use super::Shared;

const STYLE: &str = include_str!("../assets/sprag.css");
const MARK: &str = include_str!("../assets/sprag.svg");
/// Their addresses change with their content.
const FOREVER: &str = "public, max-age=31536000, immutable";

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/assets/sprag.css", get(|| async { file("text/css; charset=utf-8", STYLE) }))
        .route("/assets/sprag.svg", get(|| async { file("image/svg+xml", MARK) }))
}

/// Where pages find the style sheet.
pub(super) fn style_href() -> &'static str {
    static HREF: LazyLock<String> = LazyLock::new(|| format!("/assets/sprag.css?v={:x}", xxh3_64(STYLE.as_bytes())));
    &HREF
}

fn file(content_type: &'static str, text: &'static str) -> impl IntoResponse {
    ([(CONTENT_TYPE, content_type), (CACHE_CONTROL, FOREVER)], text)
}
