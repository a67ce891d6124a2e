//! Neither logs nor files hold a key, a prompt or an answer.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sprag_core::wire::Dialect;
use sprag_testkit::client::{self, Call};
use sprag_testkit::{Provider, Reply, Script, When};

use crate::binary::{Binary, wait_until};
use crate::wire::{STREAMING, path, request};

/// Texts that must be nowhere. No ten characters of them occur by chance.
const OPENAI: &str = "sk-proj-Zq7VxKw3TnB9mLr2HdYc5PfJ";
const ANTHROPIC: &str = "sk-ant-Wp4GsQz8NvC1kXb6RtMj3LhD";
const GOOGLE: &str = "AIzaSyUe5FyKo9WqP2jZn7VcTi4BxGm";
const QUERY: &str = "querykeyRb8DwHs3MzQ6nYv1KfXp5TjC";
const PROMPT: &str = "promptGk2LtVo7ZxB4pWm9JcRy6NhQs";
const ANSWER: &str = "answerXn5CvJd1TqY8rLw3FbKz7PgMe";
const ARGUMENT: &str = "argumentHs9BzQf4WnU6tXk2VyRj8DcLp";
const ERROR: &str = "errorMw3KgPx7YvN5sCz1QbTf9JdHr";
const SYSTEM: &str = "systemTv6RnZc2LqJ8wFy4XpBk7GmSh";
const EMBEDDED: &str = "embedDj1YxWk5QmV9bNz3CtLr6HfPs";
const SECRETS: [&str; 10] = [OPENAI, ANTHROPIC, GOOGLE, QUERY, PROMPT, ANSWER, ARGUMENT, ERROR, SYSTEM, EMBEDDED];
const PIECE: usize = 10;

fn script() -> Script {
    let answer = Reply::text(ANSWER).and_tool("lookup", json!({ "query": ARGUMENT })).reasoning(ANSWER);
    let quoting = format!("Incorrect API key provided: {OPENAI}. You said {PROMPT}. {ERROR}");
    Script::new()
        .when(When::Header("x-want".into(), "error".into()), [Reply::status(401).message(quoting.clone())])
        .when(When::Header("x-want".into(), "garbage".into()), [Reply::raw(200, "application/json", quoting)])
        .when(When::Always, [answer])
}

fn with_keys(call: Call) -> Call {
    call.header("authorization", &format!("Bearer {OPENAI}"))
        .header("x-api-key", ANTHROPIC)
        .header("x-goog-api-key", GOOGLE)
        .header("cookie", &format!("session={QUERY}"))
}

async fn traffic(binary: &Binary, provider: &Provider) {
    for dialect in STREAMING {
        for is_stream in [false, true] {
            let url = binary.url(path(dialect, is_stream));
            let joint = if url.contains('?') { '&' } else { '?' };
            let url = format!("{url}{joint}key={QUERY}");
            let body = request(dialect, is_stream, PROMPT);
            let call = || with_keys(client::post_json(&url, &body));
            let mut all = vec![
                call(),
                call().http2(),
                call().header("x-want", "error"),
                call().header("x-want", "garbage"),
                call().header("x-mock-cut", "events=2"),
                call().header("x-mock-cut", "head"),
                call().header("x-mock-encode", "gzip"),
                call().header("x-mock-no-usage", ""),
                call().header("content-encoding", "gzip"),
            ];
            let mut broken = body.to_string();
            broken.truncate(broken.len() - 3);
            all.push(with_keys(client::post(&url, broken)));
            for call in all {
                let _ = call.fetch().await;
            }
            let mut left = call().header("x-mock-stall", "1").send().await;
            if let Ok(answer) = &mut left {
                let _ = answer.read_at_least(1).await;
            }
        }
    }
    let mut system = request(Dialect::OpenaiChat, false, PROMPT);
    system["messages"] = json!([{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]);
    let embed = request(Dialect::OpenaiEmbeddings, false, EMBEDDED);
    let twice = format!("{{\"messages\":[{{\"content\":\"{PROMPT}\"}}],\"messages\":\"{PROMPT}\"}}");
    let calls = [
        client::post_json(binary.url("/v1/chat/completions"), &system),
        client::post_json(binary.url("/v1/embeddings"), &embed),
        client::post(binary.url("/v1/chat/completions"), twice),
        client::get(binary.url(&format!("/v1/files?key={QUERY}"))),
        client::get(binary.url(&format!("/nowhere?key={QUERY}"))),
        client::get(binary.url(&format!("/v1beta/models?key={QUERY}"))),
        client::post(binary.url("/v1/files"), PROMPT),
    ];
    for call in calls {
        let _ = with_keys(call).fetch().await;
    }
    provider.wait_for(|log| log.open_responses == 0).await.unwrap();
}

/// All forms of a secret that a search must look for.
fn traces(secret: &str) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = secret.as_bytes().windows(PIECE).map(<[u8]>::to_vec).collect();
    for skip in 0..3 {
        let encoded = base64(&secret.as_bytes()[skip..]);
        // The last characters depend on what follows.
        all.push(encoded.as_bytes()[..encoded.len() - 4].to_vec());
    }
    all
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks_exact(3) {
        let bits = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
        text.extend([18, 12, 6, 0].map(|shift| char::from(ALPHABET[(bits >> shift) as usize & 63])));
    }
    text
}

fn assert_clean(path: &Path) {
    if path.is_dir() {
        return fs::read_dir(path).unwrap().for_each(|entry| assert_clean(&entry.unwrap().path()));
    }
    let bytes = fs::read(path).unwrap();
    for secret in SECRETS {
        for trace in traces(secret) {
            if let Some(at) = memchr::memmem::find(&bytes, &trace) {
                let around = &bytes[at.saturating_sub(200)..(at + 60).min(bytes.len())];
                panic!("{secret} in {}: …{}…", path.display(), String::from_utf8_lossy(around));
            }
        }
    }
}

#[test]
fn the_search_finds_what_is_there() {
    let home = tempfile::tempdir().unwrap();
    let hidden = [PROMPT[5..16].to_owned(), base64(format!("ab{PROMPT}").as_bytes())];
    for text in hidden {
        fs::write(home.path().join("file"), format!("…{text}…")).unwrap();
        assert!(std::panic::catch_unwind(|| assert_clean(home.path())).is_err(), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_secret_is_written_anywhere() {
    for format in ["json", "pretty"] {
        let provider = Provider::start(script()).unwrap();
        let home = tempfile::tempdir().unwrap();
        let more = format!(
            "log.format = \"{format}\"\nlog.level = \"trace\"\nlog.calls = true\n\
             providers.openai.api_key = \"{OPENAI}\"\nproviders.openai.headers = {{ x-extra = \"{ANTHROPIC}\" }}\n\
             providers.openai.timeouts.idle_ms = 1000"
        );
        let mut binary = Binary::start(home.path(), &provider, &more);
        traffic(&binary, &provider).await;
        // A bad configuration is complained about without its values.
        let bad = format!(
            "{}\nproviders.openai.api_keyy = \"{GOOGLE}\"",
            crate::binary::config(&provider, home.path(), &more)
        );
        fs::write(home.path().join("sprag.toml"), bad).unwrap();
        binary.signal("HUP");
        binary.says("the old one stays in force", 1).await;
        wait_until(|| fs::metadata(home.path().join("data")).is_ok(), String::new).await;
        binary.signal("TERM");
        assert_eq!(binary.exit_code().await, Some(0), "{}", binary.log());
        assert!(binary.log().lines().count() > 200, "there is a log to search");
        if format == "json" {
            assert!(binary.log().lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
        }
        fs::remove_file(home.path().join("sprag.toml")).unwrap();
        assert_clean(home.path());
    }
}
