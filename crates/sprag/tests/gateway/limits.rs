//! Requests at the bounds, and past them.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;
use sprag_core::event::Ending;
use sprag_core::wire::Dialect;
use sprag_testkit::{Provider, Script, client};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::sprag::Sprag;
use crate::wire::{STREAMING, path, request};

type Headers<'a> = &'a [(&'a str, &'a str)];

const BODY_BYTES: usize = 100_000;

async fn start(change: impl FnOnce(&mut sprag::config::Settings)) -> (Provider, Sprag) {
    let provider = Provider::start(Script::new()).unwrap();
    let sprag = Sprag::start_with(&provider, change).await;
    (provider, sprag)
}

/// A body of exactly so many bytes.
fn sized(dialect: Dialect, bytes: usize) -> String {
    let empty = request(dialect, false, "").to_string().len();
    request(dialect, false, &"x".repeat(bytes - empty)).to_string()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_at_the_bound_passes_and_one_past_it_is_a_413() {
    let (provider, sprag) = start(|settings| settings.proxy.max_body_bytes = BODY_BYTES).await;
    for dialect in STREAMING {
        for chunked in [false, true] {
            let send = |bytes: usize| {
                let body = sized(dialect, bytes);
                let call = client::post(sprag.url(path(dialect, false)), body.clone());
                if chunked { call.pieces(body.as_bytes().chunks(777).map(|c| c.to_vec().into())) } else { call }
            };
            assert_eq!(send(BODY_BYTES).fetch().await.unwrap().status, 200, "{dialect:?}");
            let answer = send(BODY_BYTES + 1).fetch().await.unwrap();
            assert_eq!(answer.status, 413);
            let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.contains("100000") && message.contains("proxy.max_body_bytes"), "{message}");
        }
    }
    assert_eq!(provider.log().view().total, STREAMING.len() as u64 * 2, "what was refused was not sent on");
    let refused = sprag.settled(STREAMING.len() * 4).await;
    assert_eq!(refused.iter().filter(|e| e.status == 413 && e.ending == Ending::Refused).count(), STREAMING.len() * 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_far_past_the_bound_reads_why() {
    let (_provider, sprag) = start(|settings| settings.proxy.max_body_bytes = BODY_BYTES).await;
    let body = sized(Dialect::OpenaiChat, 20 << 20);
    let call = client::post(sprag.url("/v1/chat/completions"), body.clone());
    assert_eq!(call.fetch().await.expect("an answer").status, 413);
    let call = client::post(sprag.url("/v1/chat/completions"), "")
        .pieces(body.as_bytes().chunks(10_000).map(|c| c.to_vec().into()));
    assert_eq!(call.fetch().await.expect("an answer").status, 413);

    // Who waits to be asked for it is not asked.
    let head =
        format!("POST /v1/files HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n", body.len());
    let answer = client::raw(sprag.proxy, head.as_bytes()).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 413"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_name_is_recorded_up_to_its_bound() {
    let (_provider, sprag) = start(|_| {}).await;
    for (bytes, kept) in [(256, 256), (257, 256), (100_000, 256)] {
        let mut body = request(Dialect::OpenaiChat, false, "hi");
        body["model"] = "m".repeat(bytes).into();
        client::post_json(sprag.url("/v1/chat/completions"), &body).fetch().await.unwrap();
        assert_eq!(sprag.events().last().unwrap().model.as_ref().unwrap().len(), kept);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bound_holds_for_what_a_compressed_body_holds() {
    let (provider, sprag) = start(|settings| settings.proxy.max_body_bytes = BODY_BYTES).await;
    for (bytes, status) in [(BODY_BYTES, 400), (BODY_BYTES + 1, 413)] {
        let body = gzip(sized(Dialect::OpenaiChat, bytes).as_bytes());
        let call = client::post(sprag.url("/v1/chat/completions"), body).header("content-encoding", "gzip");
        // The scripted provider itself does not read compressed requests: its 400 shows that the body got there.
        assert_eq!(call.fetch().await.unwrap().status, status);
    }
    assert_eq!(provider.log().view().total, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_requests_are_understood_and_go_on_as_they_came() {
    let (provider, sprag) = start(|_| {}).await;
    let plain = request(Dialect::OpenaiChat, false, "hello").to_string();
    let own = plain.replacen('{', "{\"sprag_run_id\":\"mine\",", 1);
    let mut brotli = Vec::new();
    brotli::CompressorWriter::new(&mut brotli, 4096, 4, 20).write_all(plain.as_bytes()).unwrap();
    let bodies =
        [("gzip", gzip(plain.as_bytes())), ("zstd", zstd::encode_all(plain.as_bytes(), 3).unwrap()), ("br", brotli)];
    for (encoding, body) in bodies {
        let call = client::post(sprag.url("/v1/chat/completions"), body.clone()).header("content-encoding", encoding);
        call.fetch().await.unwrap();
        let seen = provider.requests().pop().unwrap();
        assert_eq!((seen.header("content-encoding"), &seen.body[..]), (encoding, &body[..]));
    }
    let call = client::post(sprag.url("/v1/chat/completions"), gzip(own.as_bytes())).header("content-encoding", "gzip");
    let answer = call.fetch().await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.header("x-sprag-run-id")), (200, "mine"));
    let seen = provider.requests().pop().unwrap();
    assert_eq!((seen.header("content-encoding"), &seen.body[..]), ("", plain.as_bytes()), "changed, so sent decoded");
    assert!(sprag.settled(4).await.iter().all(|event| event.model.as_deref() == Some("gpt-4o")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_a_400_that_says_why() {
    let (provider, sprag) = start(|_| {}).await;
    let valid = request(Dialect::OpenaiChat, false, "hi").to_string();
    let cases: [(&str, String, Headers, &str); 9] = [
        ("not JSON", "{\"model\": nope}".into(), &[], "line 1 column"),
        ("cut", valid[..valid.len() - 4].into(), &[], "line 1 column"),
        ("a list", "[1]".into(), &[], "JSON object"),
        ("empty", String::new(), &[], "JSON object"),
        ("a key twice", valid.replacen('{', "{\"messages\":[],", 1), &[], "duplicate field `messages`"),
        ("encoding", valid.clone(), &[("content-encoding", "compress")], "compress"),
        ("not gzip", valid.clone(), &[("content-encoding", "gzip")], "cannot be decoded"),
        ("run id", valid.clone(), &[("x-sprag-run-id", &"r".repeat(129))], "128"),
        ("own field", valid.replacen('{', "{\"sprag_run_id\":7,", 1), &[], "`sprag_run_id` must be a string"),
    ];
    let count = cases.len();
    for (name, body, headers, expected) in cases {
        let call = client::post(sprag.url("/v1/chat/completions"), body);
        let call = headers.iter().fold(call, |call, (name, value)| call.header(name, value));
        let answer = call.fetch().await.unwrap();
        assert_eq!(answer.status, 400, "{name}");
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(expected), "{name}: {message}");
    }
    assert_eq!(provider.log().view().total, 0);
    assert!(sprag.settled(count).await.iter().all(|e| e.ending == Ending::Refused && !e.blocked));
    for dialect in STREAMING {
        let answer = client::post(sprag.url(path(dialect, false)), "{").fetch().await.unwrap();
        assert!(answer.status == 400 && answer.json()["error"]["message"].is_string(), "{dialect:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_id_of_128_characters_is_taken() {
    let (_provider, sprag) = start(|_| {}).await;
    let id = "r".repeat(128);
    let call = client::post_json(sprag.url("/v1/messages"), &request(Dialect::Anthropic, false, "hi"));
    assert_eq!(call.header("x-sprag-run-id", &id).fetch().await.unwrap().header("x-sprag-run-id"), id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_past_its_bound_is_refused() {
    let (_provider, sprag) = start(|settings| settings.proxy.max_header_bytes = 16 << 10).await;
    let call = |bytes: usize| client::get(sprag.url("/v1/models")).header("x-long", &"h".repeat(bytes));
    assert_eq!(call(12 << 10).fetch().await.unwrap().status, 200);
    assert_eq!(call(17 << 10).fetch().await.unwrap().status, 431);
    assert!(call(40 << 10).http2().fetch().await.map_or(true, |answer| answer.status == 431));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_finish_its_head_is_disconnected() {
    let (_provider, sprag) = start(|settings| settings.proxy.header_read_timeout = Duration::from_millis(200)).await;
    let beginnings =
        ["", "G", "GET /v1/models HTTP/1.1\r\nhost: x\r\n", "PRI * HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"];
    for beginning in beginnings {
        let begun = Instant::now();
        let mut socket = TcpStream::connect(sprag.proxy).await.unwrap();
        socket.write_all(beginning.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(10), socket.read_to_end(&mut answer)).await;
        assert!(closed.is_ok(), "{beginning:?} keeps its connection");
        assert!(begun.elapsed() >= Duration::from_millis(150), "{beginning:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_take_longer_than_a_head() {
    let provider = Provider::start(Script::new()).unwrap();
    let sprag = Sprag::start_with(&provider, |s| s.proxy.header_read_timeout = Duration::from_millis(100)).await;
    let gate = provider.gate();
    let call = client::post_json(sprag.url("/v1/messages"), &request(Dialect::Anthropic, true, "hi"));
    let waiting = tokio::spawn(call.header("x-mock-stall", "2").fetch());
    gate.reached(1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    gate.open();
    assert!(waiting.await.unwrap().unwrap().broken.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_past_the_cap_wait_for_their_turn() {
    let (_provider, sprag) = start(|settings| settings.proxy.max_connections = 2).await;
    let url = sprag.url("/v1/models");
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut session = client::Session::open(&url, false).await.unwrap();
        session.send(client::get(&url)).await.unwrap().whole().await;
        open.push(session);
    }
    let mut third = tokio::spawn(client::get(&url).fetch());
    let early = tokio::time::timeout(Duration::from_millis(200), &mut third).await;
    assert!(early.is_err(), "the third connection is not served while two are open");
    open.pop();
    assert_eq!(third.await.unwrap().unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_agent_past_its_bound_are_refused() {
    let (provider, sprag) = start(|settings| settings.proxy.max_requests_per_agent = 1).await;
    let call = || client::post_json(sprag.url("/v1/chat/completions"), &request(Dialect::OpenaiChat, false, "hi"));
    let first = tokio::spawn(call().header("x-mock-hold", "").header("x-sprag-agent", "busy").fetch());
    provider.gate().reached(1).await;
    let second = call().header("x-sprag-agent", "busy").fetch().await.unwrap();
    assert_eq!(second.status, 429);
    let outside_runs = client::get(sprag.url("/v1/models")).header("x-sprag-agent", "busy").fetch().await.unwrap();
    assert_eq!(outside_runs.status, 429, "what is no call to a model counts too");
    assert_eq!(call().header("x-sprag-agent", "other").fetch().await.unwrap().status, 200);
    provider.gate().open();
    assert_eq!(first.await.unwrap().unwrap().status, 200);
    assert_eq!(call().header("x-sprag-agent", "busy").fetch().await.unwrap().status, 200);
    sprag.settled(5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_that_lead_nowhere_say_where_to_go() {
    let (_provider, sprag) = start(|_| {}).await;
    let answer = client::post_json(sprag.url("/v2/chat"), &json!({})).fetch().await.unwrap();
    assert_eq!(answer.status, 404);
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("/v1/"));
}
