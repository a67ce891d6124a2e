mod rsa;

use http::HeaderValue;
use http::header::AUTHORIZATION;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::json;
use sprag_core::limits::JWKS_KEYS;

use super::*;

const NOW: Timestamp = Timestamp(1_770_000_000_000);
const NOW_S: i64 = NOW.0 / 1000;
const SECRET: &str = "a secret of the tests";

fn settings(key: JwtKey) -> JwtSettings {
    JwtSettings { key, issuer: None, audience: None, header: AUTHORIZATION, leeway: Duration::from_secs(60) }
}

fn verifier() -> Verifier {
    Verifier::new(settings(JwtKey::Secret(Secret::new(SECRET)))).unwrap()
}

fn headers(values: &[&str]) -> HeaderMap {
    values.iter().map(|value| (AUTHORIZATION, HeaderValue::from_str(value).unwrap())).collect()
}

fn signed(claims: &Value, header: &Header, key: &EncodingKey) -> String {
    encode(header, claims, key).unwrap()
}

fn token(claims: &Value) -> String {
    signed(claims, &Header::new(Algorithm::HS256), &EncodingKey::from_secret(SECRET.as_bytes()))
}

fn org(verifier: &Verifier, token: &str) -> Option<String> {
    let claims = verifier.claims(&headers(&[&format!("Bearer {token}")]), NOW)?;
    claims.texts("org").map(|texts| texts.join(","))
}

/// A pair of keys as PEM: private, public.
fn pair(algorithm: &'static rcgen::SignatureAlgorithm) -> (String, String) {
    let pair = rcgen::KeyPair::generate_for(algorithm).unwrap();
    (pair.serialize_pem(), pair.public_key_pem())
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = (0..3).fold(0_u32, |word, at| word << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let symbol = char::from(ALPHABET[(word >> (18 - 6 * at) & 63) as usize]);
            text.push(if at <= chunk.len() { symbol } else { '=' });
        }
    }
    text
}

fn base64_url(bytes: &[u8]) -> String {
    base64(bytes).replace('+', "-").replace('/', "_").trim_end_matches('=').to_owned()
}

#[test]
fn a_signed_token_is_believed_and_no_other() {
    let verifier = verifier();
    let good = token(&json!({"org": "acme"}));
    assert_eq!(org(&verifier, &good).as_deref(), Some("acme"));
    let (body, signature) = good.rsplit_once('.').unwrap();
    let forged = good.replace(body.split('.').nth(1).unwrap(), &base64_url(br#"{"org":"umbrella"}"#));
    let none = format!("{}.{}.", base64_url(br#"{"alg":"none"}"#), base64_url(br#"{"org":"acme"}"#));
    let none_signed = format!("{none}{signature}");
    let other = signed(&json!({"org": "acme"}), &Header::default(), &EncodingKey::from_secret(b"another"));
    for bad in [&forged, &none, &none_signed, &other, body, "", "a.b.c", "sk-1234", &format!("{good}x")] {
        assert_eq!(org(&verifier, bad), None, "{bad}");
        assert_eq!(org(&verifier, bad), None, "{bad}, remembered");
    }
    assert_eq!(org(&verifier, &good).as_deref(), Some("acme"), "remembered");
}

#[test]
fn the_token_is_found_in_its_header_and_there_is_only_one() {
    let good = token(&json!({"org": "acme"}));
    let bearer = format!("bearer  {good}");
    let verifier = verifier();
    assert!(verifier.claims(&headers(&[&bearer]), NOW).is_some());
    assert!(verifier.claims(&headers(&[&good]), NOW).is_some());
    assert!(verifier.claims(&headers(&[&bearer, &bearer]), NOW).is_none());
    assert!(verifier.claims(&headers(&[]), NOW).is_none());
    let mut settings = settings(JwtKey::Secret(Secret::new(SECRET)));
    settings.header = HeaderName::from_static("x-token");
    let verifier = Verifier::new(settings).unwrap();
    assert!(verifier.claims(&headers(&[&bearer]), NOW).is_none());
    let mut headers = headers(&["Bearer sk-provider"]);
    headers.insert("x-token", HeaderValue::from_str(&good).unwrap());
    assert!(verifier.claims(&headers, NOW).is_some());
}

#[test]
fn times_are_checked_also_for_what_is_remembered() {
    let verifier = verifier();
    let text = token(&json!({"org": "acme", "nbf": NOW_S - 100, "exp": NOW_S + 100}));
    let headers = headers(&[&text]);
    let at = |seconds: i64| verifier.claims(&headers, Timestamp(NOW.0 + seconds * 1000)).is_some();
    let expected = [(0, true), (159, true), (160, false), (-160, true), (-161, false), (0, true)];
    for (seconds, is_believed) in expected {
        assert_eq!(at(seconds), is_believed, "{seconds}");
    }
    for bad in [json!({"org": 1, "exp": "9999999999"}), json!({"org": 1, "exp": null}), json!({"org": 1, "nbf": [0]})] {
        assert_eq!(org(&verifier, &token(&bad)), None, "{bad}");
    }
    assert!(org(&verifier, &token(&json!({"org": 1, "exp": NOW_S as f64 + 0.5}))).is_some());
}

#[test]
fn issuer_and_audience_must_fit_where_they_are_set() {
    let mut settings = settings(JwtKey::Secret(Secret::new(SECRET)));
    (settings.issuer, settings.audience) = (Some("us".into()), Some("sprag".into()));
    let strict = Verifier::new(settings).unwrap();
    for (claims, is_believed) in [
        (json!({"org": 1, "iss": "us", "aud": "sprag"}), true),
        (json!({"org": 1, "iss": "us", "aud": ["x", "sprag"]}), true),
        (json!({"org": 1, "iss": "us", "aud": "x"}), false),
        (json!({"org": 1, "iss": "us"}), false),
        (json!({"org": 1, "iss": "them", "aud": "sprag"}), false),
        (json!({"org": 1, "aud": "sprag"}), false),
        (json!({"org": 1, "iss": {"us": 1}, "aud": "sprag"}), false),
    ] {
        assert_eq!(org(&strict, &token(&claims)).is_some(), is_believed, "{claims}");
        assert!(org(&verifier(), &token(&claims)).is_some(), "{claims}");
    }
}

#[test]
fn public_keys_verify_and_are_never_secrets() {
    let (p256, p384, ed) = (&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519);
    for (kind, algorithm) in [(p256, Algorithm::ES256), (p384, Algorithm::ES384), (ed, Algorithm::EdDSA)] {
        let (private, public) = pair(kind);
        let key = match algorithm {
            Algorithm::EdDSA => EncodingKey::from_ed_pem(private.as_bytes()),
            _ => EncodingKey::from_ec_pem(private.as_bytes()),
        };
        let verifier = Verifier::new(settings(JwtKey::Pem(Secret::new(&*public)))).unwrap();
        let claims = json!({"org": "acme"});
        let good = signed(&claims, &Header::new(algorithm), &key.unwrap());
        assert_eq!(org(&verifier, &good).as_deref(), Some("acme"), "{algorithm:?}");
        // The public key, known to everybody, taken for a secret.
        for secret in [public.as_bytes(), public.trim().as_bytes()] {
            let forged = signed(&claims, &Header::new(Algorithm::HS256), &EncodingKey::from_secret(secret));
            assert_eq!(org(&verifier, &forged), None, "{algorithm:?}");
        }
        let private = Verifier::new(settings(JwtKey::Pem(Secret::new(private))));
        assert_eq!(private.unwrap_err(), BadKey::Private);
    }
    assert_eq!(Verifier::new(settings(JwtKey::Pem(Secret::new("x")))).unwrap_err(), BadKey::Pem);
}

#[test]
fn a_set_is_asked_by_key_id() {
    let secret = |text: &str| base64_url(text.as_bytes());
    let set = json!({"keys": [
        {"kty": "oct", "kid": "a", "alg": "HS256", "k": secret("secret a")},
        {"kty": "oct", "kid": "b", "k": secret("secret b")},
        {"kty": "oct", "k": secret("secret c")},
        {"kty": "oct", "use": "enc", "k": secret("secret d")},
        {"kty": "of the future", "kid": "e"},
    ]});
    let verifier = Verifier::new(settings(JwtKey::Jwks(Secret::new(set.to_string())))).unwrap();
    let try_key = |kid: Option<&str>, name: &str, algorithm| {
        let header = Header { kid: kid.map(str::to_owned), ..Header::new(algorithm) };
        let key = EncodingKey::from_secret(format!("secret {name}").as_bytes());
        org(&verifier, &signed(&json!({"org": 1}), &header, &key)).is_some()
    };
    for (kid, name, algorithm, is_believed) in [
        (Some("a"), "a", Algorithm::HS256, true),
        (Some("a"), "a", Algorithm::HS512, false),
        (Some("b"), "b", Algorithm::HS512, true),
        (Some("a"), "b", Algorithm::HS256, false),
        (Some("unknown"), "c", Algorithm::HS256, true),
        (Some("unknown"), "a", Algorithm::HS256, false),
        (None, "b", Algorithm::HS256, true),
        (None, "d", Algorithm::HS256, false),
    ] {
        assert_eq!(try_key(kid, name, algorithm), is_believed, "{kid:?} {name} {algorithm:?}");
    }
}

#[test]
fn sets_tokens_and_what_is_remembered_are_bounded() {
    let set = |keys: usize| {
        let keys = vec![json!({"kty": "oct", "k": base64_url(b"secret")}); keys];
        Verifier::new(settings(JwtKey::Jwks(Secret::new(json!({"keys": keys}).to_string()))))
    };
    assert!(set(JWKS_KEYS).is_ok());
    assert_eq!(set(JWKS_KEYS + 1).unwrap_err(), BadKey::LargeJwks);

    let verifier = verifier();
    let sized = |bytes: usize| {
        let empty = token(&json!({"org": 1, "x": ""})).len();
        token(&json!({"org": 1, "x": "x".repeat((bytes - empty) / 4 * 3)}))
    };
    let (fits, long) = (sized(JWT_BYTES - 8), sized(JWT_BYTES + 64));
    assert!(fits.len() <= JWT_BYTES && long.len() > JWT_BYTES, "{} {}", fits.len(), long.len());
    assert!(org(&verifier, &fits).is_some() && org(&verifier, &long).is_none());

    let good = token(&json!({"org": "acme"}));
    org(&verifier, &good);
    for n in 0..JWT_CACHE * 2 {
        assert!(verifier.claims(&headers(&[&format!("bad {n}")]), NOW).is_none());
        assert!(verifier.with_seen(|seen| seen.len()) <= JWT_CACHE);
    }
    let digest: [u8; 32] = Sha256::digest(good.as_bytes()).into();
    assert!(verifier.with_seen(|seen| seen.contains_key(&digest)), "bad ones leave first");
}

#[test]
fn a_verifier_prints_no_key() {
    let shown = format!("{:?}", verifier());
    assert!(!shown.contains("secret of"), "{shown}");
}

/// Prints what a look costs, the first time and later.
#[test]
fn what_is_remembered_is_cheap() {
    let verifier = verifier();
    let tokens: Vec<HeaderMap> = (0..500).map(|n| headers(&[&token(&json!({"org": n, "exp": NOW_S + 60}))])).collect();
    for what in ["first", "again"] {
        let before = std::time::Instant::now();
        assert!(tokens.iter().all(|headers| verifier.claims(headers, NOW).is_some()));
        println!("{what}: {} ns", before.elapsed().as_nanos() / 500);
    }
}
