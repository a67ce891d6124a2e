//! Files of the dashboard, inside the binary. Their addresses change with their content, so browsers keep them for ever.

use std::io::Write;
use std::sync::LazyLock;

use axum::Router;
use axum::body::Bytes;
use axum::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use xxhash_rust::xxh3::xxh3_64;

use super::Shared;

const FOREVER: &str = "public, max-age=31536000, immutable";
const SCRIPT_TYPE: &str = "text/javascript; charset=utf-8";
const STYLE_TYPE: &str = "text/css; charset=utf-8";

/// Where pages find the files.
#[derive(Clone, Copy)]
pub(super) struct Files {
    pub(super) style: &'static str,
    pub(super) theme: &'static str,
    pub(super) script: &'static str,
    pub(super) plot: &'static str,
    pub(super) plot_style: &'static str,
}

/// A file in both forms in which it is sent.
struct File {
    path: &'static str,
    /// The path with a mark of the content.
    href: String,
    content_type: &'static str,
    plain: Bytes,
    gzipped: Bytes,
}

/// One file: htmx begins as soon as it has run, and what it has not met by then takes no part. In files of their own the others
/// may come later.
const SCRIPTS: [&[u8]; 3] = [
    include_bytes!("../assets/vendor/htmx.min.js"),
    include_bytes!("../assets/vendor/hx-sse.min.js"),
    include_bytes!("../assets/sprag.js"),
];

static FILES: LazyLock<[File; 6]> = LazyLock::new(|| {
    [
        File::new("/assets/sprag.css", STYLE_TYPE, include_bytes!("../assets/sprag.css")),
        File::new("/assets/theme.js", SCRIPT_TYPE, include_bytes!("../assets/theme.js")),
        File::new("/assets/sprag.js", SCRIPT_TYPE, &SCRIPTS.join(&b"\n;"[..])),
        File::new("/assets/uplot.js", SCRIPT_TYPE, include_bytes!("../assets/vendor/uplot.min.js")),
        File::new("/assets/uplot.css", STYLE_TYPE, include_bytes!("../assets/vendor/uplot.min.css")),
        File::new("/assets/sprag.svg", "image/svg+xml", include_bytes!("../assets/sprag.svg")),
    ]
});

pub(super) fn routes() -> Router<Shared> {
    FILES.iter().fold(Router::new(), |router, file| {
        router.route(file.path, get(move |headers: HeaderMap| async move { file.answer(&headers) }))
    })
}

pub(super) fn files() -> Files {
    let [style, theme, script, plot, plot_style, _] = &*FILES;
    Files {
        style: &style.href,
        theme: &theme.href,
        script: &script.href,
        plot: &plot.href,
        plot_style: &plot_style.href,
    }
}

impl File {
    fn new(path: &'static str, content_type: &'static str, plain: &[u8]) -> File {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let gzipped = encoder.write_all(plain).and_then(|()| encoder.finish()).unwrap_or_default();
        let href = format!("{path}?v={:x}", xxh3_64(plain));
        File { path, href, content_type, plain: Bytes::copy_from_slice(plain), gzipped: gzipped.into() }
    }

    fn answer(&self, headers: &HeaderMap) -> Response {
        let headed = [(CONTENT_TYPE, self.content_type), (CACHE_CONTROL, FOREVER), (VARY, "accept-encoding")];
        if takes_gzip(headers) && !self.gzipped.is_empty() {
            let encoding = (CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            return (headed, [encoding], self.gzipped.clone()).into_response();
        }
        (headed, self.plain.clone()).into_response()
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|line| line.split(',')).any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        name.trim().eq_ignore_ascii_case("gzip") && !matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
    })
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn files_of_others_are_as_they_were_published() {
        let table = include_str!("../assets/vendor/VENDOR.md");
        for (name, content) in [
            ("htmx.min.js", &include_bytes!("../assets/vendor/htmx.min.js")[..]),
            ("hx-sse.min.js", include_bytes!("../assets/vendor/hx-sse.min.js")),
            ("uplot.min.js", include_bytes!("../assets/vendor/uplot.min.js")),
            ("uplot.min.css", include_bytes!("../assets/vendor/uplot.min.css")),
        ] {
            let hash: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(
                table.lines().any(|line| line.contains(&format!("`{name}`")) && line.contains(&hash)),
                "{name} {hash}"
            );
        }
    }

    #[test]
    fn all_files_together_are_small() {
        let bytes: usize = FILES.iter().map(|file| file.gzipped.len()).sum();
        assert!(bytes < 60_000, "{bytes} bytes compressed");
        assert!(FILES.iter().all(|file| !file.gzipped.is_empty()));
    }

    #[test]
    fn gzip_goes_to_who_takes_it() {
        let asks = |value: &'static str| {
            takes_gzip(&[(ACCEPT_ENCODING, HeaderValue::from_static(value))].into_iter().collect())
        };
        assert!(asks("gzip") && asks("br, GZIP;q=0.5") && !asks("br") && !asks("gzip;q=0, br") && !asks(""));
    }
}
