//! What the log shows, that nothing is left behind, and the program around the provider.

use bytes::Bytes;
use serde_json::{Value, json};
use sprag_core::limits::MOCK_BODY_BYTES;
use sprag_testkit::client::{Session, get, post, post_json, raw};
use sprag_testkit::{Ending, Fault, Gate, HeldPort, Provider, Reply, Script};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const BODY: &str = r#"{ "model":"m",  "messages":[{"role":"user","content":"h\u00e9"}] }"#;

#[cfg(test)]
fn url(provider: &Provider) -> String {
    format!("{}/v1/chat/completions?q=1", provider.url())
}

#[tokio::test]
async fn requests_are_kept_as_they_came() {
    let provider = Provider::start(Script::new()).unwrap();
    let mut session = Session::open(&provider.url(), false).await.unwrap();
    let call = post(url(&provider), BODY).header("x-one", "1").header("x-one", "2");
    for _ in 0..2 {
        session.send(call.clone()).await.unwrap().whole().await;
    }
    let pieces = BODY.as_bytes().chunks(5).map(Bytes::copy_from_slice);
    post(url(&provider), "").pieces(pieces).http2().fetch().await.unwrap();
    let requests = provider.requests();
    let seen: Vec<(u64, u64)> = requests.iter().map(|request| (request.seq, request.connection)).collect();
    assert_eq!(seen, [(1, 1), (2, 1), (3, 2)]);
    assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("POST", "/v1/chat/completions?q=1"));
    assert_eq!(requests[0].headers.get_all("x-one").iter().count(), 2);
    assert!(requests.iter().all(|request| request.body == BODY.as_bytes()));
    assert_eq!(requests[0].json()["messages"][0]["content"], "hé");
    assert_eq!(requests[2].version, http::Version::HTTP_2);
    drop(session);
    provider.wait_for(|log| log.open_connections == 0 && log.open_responses == 0).await.unwrap();
}

#[tokio::test]
async fn an_upload_that_breaks_off_is_kept_as_such() {
    let provider = Provider::start(Script::new()).unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\n{\"model\"";
    let stream = std::net::TcpStream::connect(provider.address()).unwrap();
    std::io::Write::write_all(&mut &stream, head.as_bytes()).unwrap();
    drop(stream);
    let log = provider.wait_for(|log| log.total == 1).await.unwrap();
    assert_eq!((log.requests[0].ending, log.open_responses), (Ending::UploadBroken, 0));
}

#[tokio::test]
async fn the_body_is_bounded() {
    let provider = Provider::start(Script::always(Reply::raw(200, "text/plain", "ok"))).unwrap();
    let send = |bytes: usize| post(format!("{}/other", provider.url()), vec![b'x'; bytes]).send();
    assert_eq!(send(MOCK_BODY_BYTES).await.unwrap().status, 200);
    // The refusal may overtake the upload, which then breaks.
    if let Ok(answer) = send(MOCK_BODY_BYTES + 1).await {
        assert_eq!(answer.status, 413);
    }
    let log = provider.wait_for(|log| log.total == 2).await.unwrap();
    assert_eq!(log.requests[1].body.len(), 0);
}

#[tokio::test]
async fn a_body_is_awaited_with_100_continue_or_refused_before_it() {
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\nexpect: 100-continue\r\n\
         content-length: {}\r\n\r\n",
        BODY.len()
    );
    let provider = Provider::start(Script::new()).unwrap();
    let answer = raw(provider.address(), format!("{request}{BODY}").as_bytes()).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), "{answer}");

    let provider = Provider::start(Script::new().refuse_expect(417)).unwrap();
    let answer = raw(provider.address(), request.as_bytes()).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 417"));
}

#[tokio::test]
async fn dropping_the_provider_ends_everything() {
    let gate = Gate::new();
    let reply = Reply::text("words").fault(Fault::Stall { after_events: 1, until: gate.clone() });
    // So that nobody else listens there afterwards.
    let held = HeldPort::new().unwrap();
    let provider = Provider::start_on(held.address(), Script::always(reply)).unwrap();
    let log = provider.log();
    let body = json!({"model": "m", "stream": true, "messages": []});
    let one = post_json(url(&provider), &body).send().await.unwrap();
    let two = post_json(url(&provider), &body).http2().send().await.unwrap();
    gate.reached(2).await;
    assert!(std::net::TcpStream::connect(held.address()).is_ok());
    provider.shutdown().await;
    assert_eq!((log.view().open_connections, log.view().open_responses), (0, 0));
    assert!(std::net::TcpStream::connect(held.address()).is_err());
    assert!(one.whole().await.broken.is_some());
    assert!(two.whole().await.broken.is_some());
}

#[tokio::test(start_paused = true)]
async fn waiting_does_not_depend_on_the_clock_of_the_test() {
    let provider = Provider::start(Script::new()).unwrap();
    let call = post(url(&provider), BODY).fetch();
    let (view, whole) = tokio::join!(provider.wait_for(|log| log.total == 1), call);
    assert_eq!((view.unwrap().total, whole.unwrap().status.as_u16()), (1, 200));
}

#[tokio::test]
async fn a_head_request_has_no_body_and_counts_as_complete() {
    let provider = Provider::start(Script::new()).unwrap();
    let whole = get(format!("{}/v1/models", provider.url())).method(http::Method::HEAD).fetch().await.unwrap();
    assert_eq!((whole.status.as_u16(), whole.body.len()), (200, 0));
    provider.wait_for(|log| log.open_responses == 0).await.unwrap();
    assert_eq!(provider.requests()[0].ending, Ending::Completed);
}

#[tokio::test]
async fn the_program_serves_and_is_watched_from_outside() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sprag-mock"))
        .args(["--listen", "127.0.0.1:0", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let base = format!("http://{}", line.trim());
    post(format!("{base}/v1/chat/completions"), BODY).fetch().await.unwrap();
    let listed = get(format!("{base}/__requests")).fetch().await.unwrap().json();
    assert_eq!((&listed[0]["body"], &listed[0]["ending"]), (&json!(BODY), &json!("completed")));

    let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "[[mock:stall 1]]"}]});
    let mut stalled = post_json(format!("{base}/v1/chat/completions"), &body).send().await.unwrap();
    stalled.next().await.unwrap();
    post(format!("{base}/__release"), "").fetch().await.unwrap();
    assert_eq!(stalled.whole().await.broken, None);

    post(format!("{base}/__reset"), "").fetch().await.unwrap();
    assert_eq!(get(format!("{base}/__requests")).fetch().await.unwrap().json(), Value::Array(Vec::new()));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let refused = Command::new(env!("CARGO_BIN_EXE_sprag-mock")).arg("--dance").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}
