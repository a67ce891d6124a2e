//! HTTP in its less usual forms: methods, framing, versions, headers.

use bytes::Bytes;
use http::{Method, Version};
use serde_json::json;
use sprag_core::event::Ending;
use sprag_core::wire::Dialect;
use sprag_testkit::{Fault, Provider, Reply, Script, When, client};

use crate::sprag::Sprag;
use crate::wire::{path, request};

fn script() -> Script {
    let file = Reply::raw(200, "application/octet-stream", vec![0, 159, 146, 150, 13, 10]);
    Script::new()
        .when(When::Path("/v1/files".into()), [file])
        .when(When::Path("/v1/empty".into()), [Reply::raw(200, "application/json", "")])
        .when(When::Path("/v1/nothing".into()), [Reply::raw(204, "text/plain", "")])
}

async fn start(script: Script) -> (Provider, Sprag) {
    let provider = Provider::start(script).unwrap();
    let sprag = Sprag::start(&provider).await;
    (provider, sprag)
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_every_framing_are_recorded_as_complete() {
    let (_provider, sprag) = start(script()).await;
    let cases = [
        (Method::GET, "/v1/files/f?a=%2F&b=c%20d&&", 6),
        (Method::HEAD, "/v1/models", 0),
        (Method::GET, "/v1/models", 1),
        (Method::OPTIONS, "/v1/files", 6),
        (Method::GET, "/v1/empty", 0),
        (Method::DELETE, "/v1/nothing", 0),
        (Method::PUT, "/v1/files/x", 6),
    ];
    for (method, path, least) in &cases {
        for framing in ["x-mock-chunked", "x-mock-content-length"] {
            let call = client::get(sprag.url(path)).method(method.clone()).header(framing, "");
            let answer = call.fetch().await.unwrap();
            assert!(answer.status.is_success(), "{method} {path}: {:?}", answer.body);
            assert!(answer.body.len() >= *least && answer.broken.is_none(), "{method} {path}");
            assert!(answer.header("x-sprag-request-id").starts_with("req_"));
        }
    }
    for event in sprag.settled(cases.len() * 2).await {
        assert_eq!(event.ending, Ending::Complete, "{}", event.path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_request_learns_the_length() {
    let (provider, sprag) = start(script()).await;
    let direct = client::get(format!("{}/v1/models", provider.url())).fetch().await.unwrap();
    let answer = client::get(sprag.url("/v1/models")).method(Method::HEAD).fetch().await.unwrap();
    assert_eq!(answer.header("content-length"), direct.body.len().to_string());
    assert_eq!(answer.body, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn query_and_headers_arrive_as_they_were() {
    let (provider, sprag) = start(script()).await;
    let odd = "a;b=\"c\\\"d\", e=%F0%9F%98%80 \t=;,";
    let call = client::get(sprag.url("/openai/v1/files?key=a%20b&x=[1]&empty=&&q=a?b/c"))
        .header("x-odd", odd)
        .header("cookie", "a=1; b=2")
        .header("x-twice", "1")
        .header("x-twice", "2")
        .header("authorization", "Bearer sk-test")
        .header("connection", "x-private, keep-alive")
        .header("x-private", "no")
        .header("x-sprag-agent", "bot");
    assert_eq!(call.fetch().await.unwrap().status, 200);
    let seen = &provider.requests()[0];
    assert_eq!(seen.path, "/v1/files?key=a%20b&x=[1]&empty=&&q=a?b/c");
    assert_eq!((seen.header("x-odd"), seen.header("cookie")), (odd, "a=1; b=2"));
    assert_eq!(seen.headers.get_all("x-twice").iter().count(), 2);
    assert_eq!(seen.header("authorization"), "Bearer sk-test");
    assert_eq!((seen.header("x-private"), seen.header("x-sprag-agent")), ("", ""));
    assert_eq!(seen.header("host"), provider.address().to_string());
    let bare = client::get(sprag.url("/openai?x=1")).fetch().await.unwrap();
    assert_eq!(bare.status, 404);
    assert_eq!(provider.requests()[1].path, "/?x=1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_header_replaces_the_one_of_the_client() {
    let provider = Provider::start(script()).unwrap();
    let sprag = Sprag::start_with(&provider, |settings| {
        for provider in settings.providers.values_mut() {
            std::sync::Arc::make_mut(provider).headers.insert("x-team", "ours".parse().unwrap());
        }
    })
    .await;
    client::get(sprag.url("/v1/models")).header("x-team", "theirs").fetch().await.unwrap();
    let seen = provider.requests().pop().unwrap();
    assert_eq!(seen.headers.get_all("x-team").iter().collect::<Vec<_>>(), ["ours"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_answer_headers_pass() {
    let reply = Reply::echo()
        .header("x-ratelimit-remaining-requests", "7")
        .header("set-cookie", "a=1; Path=/")
        .header("set-cookie", "b=2")
        .header("openai-processing-ms", "12")
        .header("keep-alive", "timeout=5");
    let (_provider, sprag) = start(Script::always(reply)).await;
    let body = request(Dialect::OpenaiChat, false, "hi");
    let answer = client::post_json(sprag.url("/v1/chat/completions"), &body).fetch().await.unwrap();
    assert_eq!(answer.header("x-ratelimit-remaining-requests"), "7");
    assert_eq!(answer.header("openai-processing-ms"), "12");
    assert_eq!(answer.headers.get_all("set-cookie").iter().count(), 2);
    assert_eq!(answer.header("keep-alive"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_clients_are_served_in_every_dialect() {
    let (provider, sprag) = start(script()).await;
    let mut session = client::Session::open(&sprag.url("/"), true).await.unwrap();
    let mut count = 0;
    for dialect in crate::wire::STREAMING {
        for is_stream in [false, true] {
            let call = client::post_json(sprag.url(path(dialect, is_stream)), &request(dialect, is_stream, "hi"));
            let answer = session.send(call.http2()).await.unwrap();
            assert_eq!((answer.status.as_u16(), answer.version), (200, Version::HTTP_2));
            let whole = answer.whole().await;
            assert!(whole.broken.is_none() && crate::wire::without_metadata(&whole.body).is_some(), "{dialect:?}");
            count += 1;
        }
    }
    assert!(sprag.settled(count).await.iter().all(|event| event.ending == Ending::Complete));
    assert!(provider.requests().iter().all(|seen| seen.version == Version::HTTP_11));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http2_upstream_is_spoken_to_by_prior_knowledge() {
    let provider = Provider::start(script()).unwrap();
    let sprag = Sprag::start_with(&provider, |settings| {
        for provider in settings.providers.values_mut() {
            std::sync::Arc::make_mut(provider).http2 = sprag::config::file::Http2::PriorKnowledge;
        }
    })
    .await;
    let body = request(Dialect::Anthropic, true, "hi");
    let answer = client::post_json(sprag.url("/v1/messages"), &body).fetch().await.unwrap();
    assert!(crate::wire::without_metadata(&answer.body).is_some());
    let head = client::get(sprag.url("/v1/models")).method(Method::HEAD).fetch().await.unwrap();
    assert_eq!(head.status, 200);
    assert!(sprag.settled(2).await.iter().all(|event| event.ending == Ending::Complete));
    assert!(provider.requests().iter().all(|seen| seen.version == Version::HTTP_2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_for_100_continue_is_told_to_go_on() {
    let (provider, sprag) = start(script()).await;
    let body = request(Dialect::OpenaiChat, false, "hi").to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\
         content-type: application/json\r\nconnection: close\r\n\r\n",
        body.len()
    );
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut socket = tokio::net::TcpStream::connect(sprag.proxy).await.unwrap();
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    socket.read_exact(&mut interim).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    socket.write_all(body.as_bytes()).await.unwrap();
    let mut rest = String::new();
    socket.read_to_string(&mut rest).await.unwrap();
    assert!(rest.starts_with("HTTP/1.1 200 OK"), "{rest}");
    assert_eq!(provider.requests()[0].header("expect"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_reach_a_client_that_takes_them() {
    let reply = Reply::raw(200, "application/grpc", "abc").fault(Fault::Chunked);
    let reply = reply.fault(Fault::Trailers(vec![("x-sum".into(), "42".into())]));
    let (_provider, sprag) = start(Script::new().when(When::Path("/v1/files".into()), [reply])).await;
    for http2 in [false, true] {
        let call = client::get(sprag.url("/v1/files")).header("te", "trailers");
        let answer = if http2 { call.http2() } else { call }.fetch().await.unwrap();
        assert_eq!(answer.body, "abc");
        assert_eq!(answer.trailers.expect("trailers")["x-sum"], "42", "http2: {http2}");
    }
    let plain = client::get(sprag.url("/v1/files")).fetch().await.unwrap();
    assert_eq!((plain.body, plain.trailers), (Bytes::from("abc"), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn white_space_that_keeps_a_connection_alive_passes() {
    for framing in [Fault::Chunked, Fault::ContentLength] {
        let reply = Reply::echo().fault(Fault::Whitespace(3000)).fault(framing);
        let (_provider, sprag) = start(Script::always(reply)).await;
        let body = request(Dialect::OpenaiChat, false, "hi");
        let answer = client::post_json(sprag.url("/v1/chat/completions"), &body).fetch().await.unwrap();
        assert!(answer.body.starts_with(&[b' '; 3000]));
        assert_eq!(answer.json()["sprag"]["step"], 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_carries_many_calls() {
    let (provider, sprag) = start(script()).await;
    let mut session = client::Session::open(&sprag.url("/"), false).await.unwrap();
    for at in 0..20 {
        let is_stream = at % 2 == 0;
        let body = request(Dialect::OpenaiChat, is_stream, &format!("call {at}"));
        let call = client::post_json(sprag.url("/v1/chat/completions"), &body);
        assert!(session.send(call).await.unwrap().whole().await.broken.is_none());
    }
    assert_eq!(sprag.settled(20).await.len(), 20);
    // The end of a stream may arrive after the next call has begun.
    assert!(provider.log().view().connections <= 4, "upstream connections are kept as well");
    let refused = client::post_json(sprag.url("/v1/chat/completions"), &json!([])).fetch().await.unwrap();
    assert_eq!(refused.status, 400);
    drop(session);
    sprag.stop().await;
    provider.wait_for(|log| log.open_connections == 0).await.expect("nothing stays open after the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_to_a_provider_is_refused_before_it_is_one() {
    let (provider, sprag) = start(Script::new()).await;
    let asked = client::get(sprag.url("/v1/responses")).header("connection", "Upgrade").header("upgrade", "websocket");
    let answer = asked.fetch().await.unwrap();
    assert_eq!(answer.status, 426, "the status at which Codex goes on with HTTP");
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("no WebSockets"));
    assert!(provider.requests().is_empty() && sprag.events().is_empty());
}
