//! What every request to the admin listener must be like, and what every answer carries.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::problem::Problem;

/// Everything comes from here, nothing inline: a text that slips through escaping stays a text.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; script-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (HeaderName::from_static("content-security-policy"), POLICY),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Adds what keeps browsers strict. Nothing is cached unless the answer says otherwise.
pub(super) async fn add_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Refuses names that are not this machine's while only this machine can connect: a foreign page could otherwise let
/// its own name point here and read the dashboard through the user's browser.
pub(super) async fn check_host(State(admin): State<Shared>, request: Request, next: Next) -> Response {
    let own = admin.addresses.admin.ip();
    if own.is_loopback() && !host_of(request.uri(), request.headers()).is_some_and(|host| is_local(host, own)) {
        let detail = format!("the admin listener is local; open it as http://{}/", admin.addresses.admin);
        return Problem::forbidden(detail).into_response();
    }
    next.run(request).await
}

/// Refuses changes that another site asks for in the user's name.
pub(super) async fn check_origin(request: Request, next: Next) -> Response {
    if !is_reading(request.method()) && is_foreign(request.uri(), request.headers()) {
        return Problem::forbidden("this request comes from another site").into_response();
    }
    next.run(request).await
}

/// Whether a request of this method changes nothing.
pub(super) fn is_reading(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// The host that the client asked for, without its port.
pub(super) fn host_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    authority_of(uri, headers).map(without_port)
}

fn authority_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    // HTTP/2 names the host in the target.
    uri.authority().map(|authority| authority.as_str()).or_else(|| headers.get(HOST)?.to_str().ok())
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    }
}

fn is_local(host: &str, own: IpAddr) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip == own || is_usual_loopback(ip))
}

fn is_usual_loopback(ip: IpAddr) -> bool {
    ip == IpAddr::from([127, 0, 0, 1]) || ip == IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1_u16])
}

fn is_foreign(uri: &Uri, headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text(HeaderName::from_static("sec-fetch-site")) {
        return !matches!(site, "same-origin" | "none");
    }
    // Under `no-referrer` browsers send `null` for our own forms too. Programs send none.
    match text(ORIGIN) {
        None | Some("null") => false,
        Some(origin) => origin.split_once("://").map(|(_, host)| host) != authority_of(uri, headers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_names_of_this_machine_are_local() {
        let own = IpAddr::from([127, 0, 0, 5]);
        for (host, expected) in [
            ("localhost:7071", true),
            ("LOCALHOST", true),
            ("127.0.0.1:7071", true),
            ("127.0.0.5", true),
            ("[::1]:7071", true),
            ("[::1]", true),
            ("evil.example:7071", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("10.0.0.1:7071", false),
            ("", false),
        ] {
            let headers = headers(&[("host", host)]);
            let uri = Uri::from_static("/");
            assert_eq!(host_of(&uri, &headers).is_some_and(|host| is_local(host, own)), expected, "{host}");
        }
    }

    #[test]
    fn a_change_asked_for_by_another_site_is_foreign() {
        let uri = Uri::from_static("/logout");
        for (pairs, expected) in [
            (&[("host", "localhost:1")][..], false),
            (&[("host", "localhost:1"), ("origin", "http://localhost:1")], false),
            (&[("host", "localhost:1"), ("origin", "http://localhost:2")], true),
            (&[("host", "localhost:1"), ("origin", "null")], false),
            (&[("host", "localhost:1"), ("origin", "null"), ("sec-fetch-site", "same-origin")], false),
            (&[("host", "localhost:1"), ("origin", "null"), ("sec-fetch-site", "same-site")], true),
            (&[("host", "localhost:1"), ("sec-fetch-site", "cross-site")], true),
        ] {
            assert_eq!(is_foreign(&uri, &headers(pairs)), expected, "{pairs:?}");
        }
    }
}
