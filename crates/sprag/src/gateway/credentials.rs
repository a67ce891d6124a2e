//! Credentials in a request: where clients put them, and which of them go on to the provider.
//!
//! A request without a virtual key keeps its own. One with a virtual key loses every credential it came with, a foreign
//! one too: who speaks with a key of Sprag's calls the provider on Sprag's account and on no other. A secret of
//! Sprag's own never goes on, wherever it stands.

use std::borrow::Cow;
use std::sync::LazyLock;

use http::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use memchr::memmem;
use percent_encoding::percent_decode_str;
use sprag_core::policy::KEY_PREFIX;
use sprag_core::wire::{Family, Reason, Refusal};

use super::carried::base64_url;
use super::route::Route;
use crate::config::{Auth, Provider};

/// Headers in which clients put their credential.
pub(super) static CREDENTIALS: [HeaderName; 4] = [
    AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-goog-api-key"),
    HeaderName::from_static("api-key"),
];
/// Parameters that providers take for one.
const PARAMETERS: [&str; 4] = ["key", "api_key", "api-key", "access_token"];

/// Secrets of virtual keys in the places where clients put a credential, all of them.
pub(super) fn virtual_keys(head: &Parts) -> Vec<Cow<'_, [u8]>> {
    if !may_have_virtual_key(head) {
        return Vec::new();
    }
    let is_secret = |word: &&[u8]| word.starts_with(KEY_PREFIX.as_bytes());
    let values = CREDENTIALS.iter().flat_map(|name| head.headers.get_all(name)).map(HeaderValue::as_bytes);
    // After any scheme, and each of several that somebody put into one line.
    let words = values.flat_map(|value| value.split(|b| *b == b',' || b.is_ascii_whitespace()));
    let in_headers = words.filter(is_secret).map(Cow::Borrowed);
    let in_basic = basic_words(head).into_iter().filter(|word| is_secret(&word.as_slice())).map(Cow::Owned);
    let in_query = parameters(head.uri.query()).filter(|(name, _)| decoded(name) == "key".as_bytes());
    let in_query = in_query.map(|(_, value)| decoded(value)).filter(|value| is_secret(&value.as_ref()));
    in_headers.chain(in_basic).chain(in_query).collect()
}

/// Whether it is worth looking for one. Mostly it is not, and one look at the headers tells.
fn may_have_virtual_key(head: &Parts) -> bool {
    let is_basic = |value: &[u8]| value.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"basic "));
    let is_worth_it = |value: &[u8]| holds_secret(value) || is_basic(value);
    head.uri.query().is_some()
        || head.headers.iter().any(|(name, value)| CREDENTIALS.contains(name) && is_worth_it(value.as_bytes()))
}

/// Takes out of a request's headers what the provider must not see, and puts in the key that Sprag holds for it.
/// `token` is the header in which callers bring a token that is for Sprag.
///
/// # Errors
/// When Sprag holds no key that the provider would take.
pub(super) fn replace(
    headers: &mut HeaderMap,
    provider: &Provider,
    has_key: bool,
    token: Option<&HeaderName>,
) -> Result<(), Refusal> {
    remove_secrets(headers);
    if !has_key {
        return Ok(());
    }
    for name in CREDENTIALS.iter().chain(token) {
        headers.remove(name);
    }
    headers.remove(COOKIE);
    if let Some((name, value)) = held(provider)? {
        headers.insert(name, value);
    }
    Ok(())
}

/// The header with the key that Sprag holds for a provider; none where the provider takes none, or where the
/// configuration sets that header anyway.
///
/// # Errors
/// When there is no such key.
pub(super) fn held(provider: &Provider) -> Result<Option<(HeaderName, HeaderValue)>, Refusal> {
    let name = match &provider.auth {
        Auth::Bearer => AUTHORIZATION,
        Auth::Header(name) => name.clone(),
        Auth::None => return Ok(None),
    };
    if provider.headers.contains_key(&name) {
        return Ok(None);
    }
    let refused = |what: &str| {
        let message = format!(
            "provider `{0}` {what}: set api_key_env in [providers.{0}] of Sprag's configuration",
            provider.name
        );
        Refusal::new(Reason::AuthenticationError, message)
    };
    let key = provider.key.as_ref().ok_or_else(|| refused("has no key"))?;
    let text = match provider.auth {
        Auth::Bearer => format!("Bearer {}", key.reveal()),
        _ => key.reveal().to_owned(),
    };
    let mut value = HeaderValue::from_str(&text).map_err(|_| refused("has a key that no header can carry"))?;
    value.set_sensitive(true);
    Ok(Some((name, value)))
}

/// The query as the provider may see it; the rest of it stays as it came.
pub(super) fn query_for_provider(query: &str, has_key: bool) -> Cow<'_, str> {
    let is_credential = |name: &str| has_key && PARAMETERS.iter().any(|known| decoded(name) == known.as_bytes());
    let is_kept = |pair: &&str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        !is_credential(name) && !holds_secret(&decoded(name)) && !holds_secret(&decoded(value))
    };
    if query.split('&').all(|pair| is_kept(&pair)) {
        return Cow::Borrowed(query);
    }
    Cow::Owned(query.split('&').filter(is_kept).collect::<Vec<_>>().join("&"))
}

/// The values of a parameter `key`.
pub(super) fn query_keys(head: &Parts) -> impl Iterator<Item = Cow<'_, [u8]>> {
    parameters(head.uri.query()).filter(|(name, _)| decoded(name) == "key".as_bytes()).map(|(_, value)| decoded(value))
}

/// The credential that whoever is asked will look at. None where there is none, or where one stands beside another: a
/// caller that could choose would be somebody else with every call.
pub(super) fn credential_for<'a>(head: &'a Parts, route: &Route<'_>) -> Option<Cow<'a, [u8]>> {
    let provider = route.provider;
    let header = match &provider.auth {
        Auth::Bearer => Some(AUTHORIZATION.as_str()),
        Auth::Header(name) => Some(name.as_str()),
        Auth::None => None,
    };
    let places: Vec<&str> = match (route.rule, header, provider.family) {
        // Nobody knows where another API looks.
        (Some(_), ..) => CREDENTIALS.iter().map(HeaderName::as_str).collect(),
        // What the configuration sets stands in for it.
        (None, Some(name), _) if provider.headers.contains_key(name) => return None,
        (None, Some(name), Family::Anthropic | Family::Gemini) if name != AUTHORIZATION => vec![name, "authorization"],
        (None, name, _) => name.into_iter().collect(),
    };
    let in_query = query_keys(head).filter(|_| route.rule.is_some() || provider.family == Family::Gemini);
    let in_headers = places.iter().flat_map(|name| head.headers.get_all(*name)).map(|value| value.as_bytes().into());
    let mut found = in_headers.chain(in_query);
    match (found.next(), found.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// Names and passwords of basic authentication: encoded, a secret would pass for somebody else's.
fn basic_words(head: &Parts) -> Vec<Vec<u8>> {
    let values = head.headers.get_all(AUTHORIZATION).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.filter_map(|value| value.split_once(' '));
    let encoded = pairs.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic")).map(|(_, encoded)| encoded.trim());
    let plain = encoded.filter_map(base64_url);
    plain.flat_map(|plain| plain.split(|b| *b == b':').map(<[u8]>::to_vec).collect::<Vec<_>>()).collect()
}

fn remove_secrets(headers: &mut HeaderMap) {
    let names: Vec<HeaderName> =
        headers.iter().filter(|(_, value)| holds_secret(value.as_bytes())).map(|(name, _)| name.clone()).collect();
    for name in names {
        headers.remove(name);
    }
}

fn holds_secret(text: &[u8]) -> bool {
    // Made once: that takes longer than to look through a header.
    static PREFIX: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(KEY_PREFIX));
    PREFIX.find(text).is_some()
}

fn parameters(query: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
    query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='))
}

fn decoded(text: &str) -> Cow<'_, [u8]> {
    percent_decode_str(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let request =
            headers.iter().fold(http::Request::get(uri), |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    fn found(uri: &str, headers: &[(&str, &str)]) -> Vec<String> {
        let head = head(uri, headers);
        virtual_keys(&head).iter().map(|secret| String::from_utf8(secret.to_vec()).unwrap()).collect()
    }

    #[test]
    fn a_key_is_found_wherever_clients_put_one() {
        let one = ["sk-sprag-a"];
        for (name, value) in [
            ("authorization", "Bearer sk-sprag-a"),
            ("authorization", "bearer  sk-sprag-a "),
            ("authorization", "sk-sprag-a"),
            ("authorization", "Token sk-sprag-a"),
            ("authorization", "Bearer sk-other, Bearer sk-sprag-a"),
            ("authorization", "Basic OnNrLXNwcmFnLWE="),
            ("x-api-key", "sk-sprag-a"),
            ("x-goog-api-key", "sk-sprag-a"),
            ("api-key", "sk-other,sk-sprag-a"),
        ] {
            assert_eq!(found("/", &[(name, value)]), one, "{name}: {value}");
        }
        assert_eq!(found("/?alt=sse&key=sk-sprag-a", &[]), one);
        assert_eq!(found("/?k%65y=sk%2Dsprag-a", &[]), one);
        assert_eq!(
            found("/?key=sk-sprag-a", &[("x-api-key", "x"), ("x-api-key", "sk-sprag-b")]),
            ["sk-sprag-b", "sk-sprag-a"]
        );
        for other in [("authorization", "Bearer sk-proj-x"), ("x-note", "sk-sprag-a"), ("api-key", "xsk-sprag-a")] {
            assert!(found("/?q=sk-sprag-a", &[other]).is_empty(), "{other:?}");
        }
    }

    #[test]
    fn a_parameter_is_found_in_every_spelling() {
        let head = head("/?k%65y=a%62c&key=d&keys=e&x", &[]);
        assert_eq!(query_keys(&head).collect::<Vec<_>>(), [&b"abc"[..], b"d"]);
    }

    #[test]
    fn a_query_loses_what_is_secret_and_nothing_else() {
        let cases = [
            ("a=1&key=sk-sprag-a&b=%20", "a=1&b=%20", "a=1&b=%20"),
            ("key=AIza", "key=AIza", ""),
            ("k%65y=AIza&alt=sse", "k%65y=AIza&alt=sse", "alt=sse"),
            ("q=sk%2Dsprag-a&x", "x", "x"),
            ("access_token=t&a", "access_token=t&a", "a"),
            ("a=1&&b", "a=1&&b", "a=1&&b"),
        ];
        for (query, without_key, with_key) in cases {
            assert_eq!(query_for_provider(query, false), without_key, "{query}");
            assert_eq!(query_for_provider(query, true), with_key, "{query}");
        }
    }
}
