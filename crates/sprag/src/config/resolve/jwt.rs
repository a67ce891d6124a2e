//! `[jwt]`: one key, read and understood before the first token comes.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use sprag_core::limits::{JWKS_BYTES, SECRET_FILE_BYTES};

use super::expand;
use crate::config::environment::Environment;
use crate::config::file::Jwt;
use crate::config::load::read_bounded;
use crate::config::problem::Problem;
use crate::config::secret::Secret;
use crate::jwt::{JwtKey, JwtSettings, Verifier};

/// Shorter secrets can be guessed by whoever has a token.
const SHORTEST_SECRET_BYTES: usize = 16;

/// The verifier, where a key is given.
pub(super) fn resolve(file: &Jwt, environment: &Environment, problems: &mut Vec<Problem>) -> Option<Arc<Verifier>> {
    let found = problems.len();
    let header = HeaderName::try_from(file.header.trim());
    let header = header.map_err(|_| {
        problems.push(Problem::value("jwt.header", format!("\"{}\" is not the name of a header", file.header)));
    });
    let (name, key) = key(file, environment, problems)?;
    let settings = JwtSettings {
        key,
        issuer: file.issuer.clone(),
        audience: file.audience.clone(),
        header: header.ok()?,
        leeway: Duration::from_secs(file.leeway_seconds),
    };
    match Verifier::new(settings) {
        Ok(verifier) if problems.len() == found => Some(Arc::new(verifier)),
        Ok(_) => None,
        Err(error) => {
            problems.push(Problem::value(format!("jwt.{name}"), error.to_string()));
            None
        }
    }
}

fn key(file: &Jwt, environment: &Environment, problems: &mut Vec<Problem>) -> Option<(&'static str, JwtKey)> {
    let given = [
        ("secret_env", &file.secret_env),
        ("secret_file", &file.secret_file),
        ("public_key_file", &file.public_key_file),
        ("jwks_file", &file.jwks_file),
    ];
    let mut given = given.into_iter().filter_map(|(name, value)| value.as_deref().map(|value| (name, value)));
    let (name, value) = given.next()?;
    if let Some((other, _)) = given.next() {
        let problem =
            Problem::name(format!("jwt.{other}"), format!("more than one key is given; {name} is one already"));
        problems.push(problem.hint("keep one of secret_env, secret_file, public_key_file, jwks_file"));
        return None;
    }
    let read = |most| read_bounded(&expand(value, environment), most);
    let key = match name {
        "secret_env" => {
            let secret = environment.get(value).ok_or_else(|| format!("the environment variable {value} is not set"));
            secret.map(str::to_owned).and_then(secret_of)
        }
        "secret_file" => read(SECRET_FILE_BYTES).and_then(secret_of),
        "public_key_file" => read(SECRET_FILE_BYTES).map(|text| JwtKey::Pem(Secret::new(text))),
        _ => read(JWKS_BYTES).map(|text| JwtKey::Jwks(Secret::new(text))),
    };
    key.map_err(|message| problems.push(Problem::value(format!("jwt.{name}"), message))).ok().map(|key| (name, key))
}

/// Editors end files with a new line, which is no part of the secret.
fn secret_of(text: String) -> Result<JwtKey, String> {
    let secret = text.trim_end_matches(['\r', '\n']);
    if secret.len() < SHORTEST_SECRET_BYTES {
        return Err(format!("a secret has at least {SHORTEST_SECRET_BYTES} bytes: shorter ones can be guessed"));
    }
    if secret.starts_with("-----BEGIN") {
        return Err("this is a PEM file; a public key belongs in public_key_file".to_owned());
    }
    Ok(JwtKey::Secret(Secret::new(secret)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sandbox::Sandbox;

    const SECRET: &str = "0123456789abcdef";

    #[test]
    fn without_a_key_there_is_no_verifier() {
        assert_eq!(Sandbox::new("").load().unwrap().settings.jwt, None);
        assert_eq!(Sandbox::new("[jwt]\nissuer = \"x\"").load().unwrap().settings.jwt, None);
    }

    #[test]
    fn a_secret_comes_from_the_environment_or_a_file() {
        let env = [("MY_SECRET", SECRET)];
        let text = "[jwt]\nsecret_env = \"MY_SECRET\"\nissuer = \"i\"\naudience = \"a\"\nheader = \"X-Token\"\nleeway_seconds = 5";
        let sandbox = Sandbox::new(text).with_env(&env);
        let verifier = sandbox.load().unwrap().settings.jwt.unwrap();
        let settings = verifier.settings();
        assert_eq!(settings.key, JwtKey::Secret(Secret::new(SECRET)));
        assert_eq!((settings.issuer.as_deref(), settings.audience.as_deref()), (Some("i"), Some("a")));
        assert_eq!((settings.header.as_str(), settings.leeway.as_secs()), ("x-token", 5));
        assert_eq!(sandbox.load().unwrap().settings.jwt, Some(verifier));

        let sandbox = Sandbox::new("[jwt]\nsecret_file = \"~/secret\"");
        std::fs::write(sandbox.path("secret"), format!("{SECRET}\n")).unwrap();
        let home = sandbox.dir.path().display().to_string();
        let verifier = sandbox.with_env(&[("HOME", &home)]).load().unwrap().settings.jwt.unwrap();
        assert_eq!(verifier.settings().key, JwtKey::Secret(Secret::new(SECRET)));
        assert_eq!((verifier.settings().header.as_str(), verifier.settings().leeway.as_secs()), ("authorization", 60));
    }

    #[test]
    fn says_what_cannot_be_used() {
        let long = "x".repeat(20_000);
        let env = [("SHORT", "0123456789abcde"), ("GOOD", SECRET), ("PEM", "-----BEGIN PUBLIC KEY-----")];
        for (text, expected) in [
            ("secret_env = \"NOT_SET\"", "`jwt.secret_env`: the environment variable NOT_SET is not set"),
            ("secret_env = \"SHORT\"", "a secret has at least 16 bytes"),
            ("secret_env = \"PEM\"", "a public key belongs in public_key_file"),
            ("secret_file = \"/does/not/exist\"", "`jwt.secret_file`: /does/not/exist cannot be read"),
            ("secret_env = \"GOOD\"\njwks_file = \"x\"", "more than one key is given; secret_env is one already"),
            ("secret_env = \"GOOD\"\nheader = \"a b\"", "`jwt.header`: \"a b\" is not the name of a header"),
            ("secret_env = \"GOOD\"\nleeway_seconds = 3601", "expected 0 to 3600"),
            ("public_key_file = \"BAD\"", "`jwt.public_key_file`: no public key"),
            ("public_key_file = \"LONG\"", "is larger than 16384 bytes"),
            ("jwks_file = \"BAD\"", "`jwt.jwks_file`: not a JSON web key set"),
            ("jwks_file = \"EMPTY\"", "`jwt.jwks_file`: the set has no key that can be used"),
            ("secret = \"x\"", "unknown key"),
        ] {
            let sandbox = Sandbox::new("");
            for (name, content) in [("BAD", "hello"), ("LONG", &long), ("EMPTY", "{\"keys\": []}")] {
                std::fs::write(sandbox.path(name), content).unwrap();
            }
            let dir = sandbox.dir.path().display();
            let text = ["BAD", "LONG", "EMPTY"]
                .iter()
                .fold(text.to_owned(), |text, name| text.replace(&format!("\"{name}\""), &format!("\"{dir}/{name}\"")));
            std::fs::write(sandbox.path("sprag.toml"), format!("[jwt]\n{text}")).unwrap();
            let complaint = sandbox.with_env(&env).complaint();
            assert!(complaint.contains(expected), "{text}\n---\n{complaint}");
            assert!(!complaint.contains(SECRET), "{complaint}");
        }
    }
}
