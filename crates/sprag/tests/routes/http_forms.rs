//! Requests and answers of every form pass through a route as they are.

use bytes::Bytes;
use sprag_core::event::{Ending, EventKind};
use sprag_testkit::{ClosedPort, client};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::configured::{Configured, stopped};
use crate::tools::{DONE, Tools};

#[tokio::test(flavor = "multi_thread")]
async fn every_method_and_body_goes_there_unchanged() {
    let tools = Tools::start("headers = { x-team = \"blue\" }", "").await;
    let binary: Vec<u8> = (0..=255).collect();
    let gzip = [&[0x1f, 0x8b, 8][..], &binary].concat();
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "PROPFIND"] {
        for body in [&b""[..], b"not json {", &binary, &gzip] {
            let path = "/v1/tools/x%20y/z?b=2&a=1&a=%2F";
            let call = client::post(tools.url(path), body.to_vec()).method(method.parse().unwrap());
            let encoding = if body == gzip { "gzip" } else { "x-own" };
            let answer = call.header("content-encoding", encoding).header("cookie", "c=1").fetch().await.unwrap();
            let expected = if method == "HEAD" { "" } else { DONE };
            assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, expected.as_bytes()), "{method}");
            let seen = tools.server.requests().pop().unwrap();
            assert_eq!((seen.method.as_str(), seen.path.as_str(), &seen.body[..]), (method, path, body));
            let headers = ["content-encoding", "cookie", "x-team"].map(|name| seen.header(name).to_owned());
            assert_eq!(headers, [encoding, "c=1", "blue"]);
        }
    }
    let events = tools.place.sprag.settled(32).await;
    let is_told = |event: &sprag_core::event::Event| {
        event.kind == EventKind::Request && event.provider == "tools" && event.run.is_none() && event.model.is_none()
    };
    assert!(events.iter().all(is_told), "{events:?}");
    assert!(events[0].path.starts_with("GET /v1/tools/x%20y/z"), "{}", events[0].path);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_in_chunks_arrives_whole() {
    let tools = Tools::start("", "").await;
    let pieces = ["one ", "two ", "three"].map(Bytes::from);
    let call = client::post(tools.url("/v1/tools/x"), "").pieces(pieces);
    assert_eq!(call.fetch().await.unwrap().status, 200);
    assert_eq!(&tools.server.requests()[0].body[..], b"one two three");
    let call = client::post(tools.url("/v1/tools/x"), "two").http2();
    assert_eq!(call.fetch().await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_error_passes_as_it_is() {
    let tools = Tools::start("", "").await;
    for status in ["400", "401", "404", "429", "500", "503"] {
        let answer = tools.get("/v1/tools/x", &[("x-mock-status", status)]).await;
        assert_eq!(answer.status.as_str(), status);
        assert_eq!(stopped(&answer), "", "that was not Sprag");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_events_passes_as_it_comes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = listener.local_addr().unwrap();
    let (open, gate) = oneshot::channel::<()>();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut head = [0; 4096];
        assert!(socket.read(&mut head).await.unwrap() > 0);
        let first = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nd\r\ndata: first\n\n\r\n";
        socket.write_all(first).await.unwrap();
        gate.await.unwrap();
        socket.write_all(b"e\r\ndata: second\n\n\r\n0\r\n\r\n").await.unwrap();
    });
    let text = format!("[[routes]]\npath = \"/events\"\nupstream = \"http://{upstream}\"");
    let place = Configured::start(&text).await;
    let mut answer = client::get(place.sprag.url("/events")).send().await.unwrap();
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    assert_eq!(answer.read_at_least(1).await.unwrap(), "data: first\n\n", "before the second is sent");
    open.send(()).unwrap();
    assert_eq!(answer.whole().await.body, "data: second\n\n");
    server.await.unwrap();
    let event = place.sprag.settled(1).await.remove(0);
    assert_eq!((event.provider.as_str(), event.ending), ("route-1", Ending::Complete));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_is_slow_or_away_is_told_with_the_name_of_the_route() {
    let away = ClosedPort::new().unwrap();
    let keys = "timeouts = { first_byte_ms = 100 }";
    let rest = format!("[[routes]]\nname = \"gone\"\npath = \"/gone\"\nupstream = \"http://{}\"", away.address);
    let tools = Tools::start(keys, &rest).await;
    let slow = tools.get("/v1/tools/x", &[("x-mock-hold", "")]).await;
    tools.server.gate().open();
    assert_eq!(slow.status, 504);
    let gone = tools.get("/gone", &[]).await;
    assert_eq!(gone.status, 502);
    for (answer, name) in [(slow, "tools"), (gone, "gone")] {
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("the upstream of route `{name}`")), "{message}");
        assert!(message.contains("`[[routes]]`"), "{message}");
    }
    let endings: Vec<Ending> = tools.place.sprag.settled(2).await.iter().map(|event| event.ending).collect();
    assert_eq!(endings, [Ending::TimedOut, Ending::UpstreamGone]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_is_refused_in_clear_words() {
    let tools = Tools::start("", "").await;
    let upgrade = [("connection", "Upgrade"), ("upgrade", "WebSocket"), ("sec-websocket-version", "13")];
    let answer = tools.get("/v1/tools/socket", &upgrade).await;
    assert_eq!(answer.status, 400);
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("no WebSockets"));
    assert_eq!(tools.reached(), 0);
    let plain = tools.get("/v1/tools/socket", &[("connection", "Upgrade"), ("upgrade", "h2c")]).await;
    assert_eq!(plain.status, 200, "an offer that may be ignored");
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_lead_where_they_say() {
    let rest = "[[routes]]\nname = \"search\"\npath = \"/v1/tools/search\"\nmethods = [\"POST\"]\nupstream = \"UPSTREAM\"\n\
                headers = { x-route = \"search\" }\n\
                [[routes]]\nname = \"chat\"\npath = \"/v1/chat/completions\"\nmethods = [\"DELETE\"]\nupstream = \"UPSTREAM\"\n\
                [[routes]]\nname = \"posts\"\npath_prefix = \"/posts\"\nmethods = [\"post\"]\nupstream = \"UPSTREAM\"";
    let tools = Tools::start("", rest).await;
    let led_to = async |method: &str, path: &str| {
        let status = tools.call(method, path, &[]).fetch().await.unwrap().status.as_u16();
        tools.place.sprag.app.history.flush().unwrap();
        (status, tools.place.sprag.events().pop().map(|event| event.provider).unwrap_or_default())
    };
    for (method, path, status, name) in [
        ("POST", "/v1/tools/search", 200, "search"),
        ("GET", "/v1/tools/search", 200, "tools"),
        ("POST", "/v1/tools/search/", 200, "tools"),
        ("POST", "/v1/tools/se%61rch", 200, "search"),
        ("POST", "/v1/to%6Fls/x", 200, "tools"),
        ("POST", "/v1%2Ftools%2Fx", 200, "tools"),
        ("GET", "/agents/bot/v1/tools/x", 200, "tools"),
        ("POST", "/posts", 200, "posts"),
        ("DELETE", "/v1/chat/completions", 200, "chat"),
        ("GET", "/v1/tools/../x", 400, "tools"),
        ("GET", "/v1/tools/%2e%2e/x", 400, "tools"),
        ("GET", "/v1/tools/a/..%2Fx", 400, "tools"),
        ("GET", "/v1/tools/.", 400, "tools"),
        ("GET", "/v1/tools/..x", 200, "tools"),
    ] {
        assert_eq!(led_to(method, path).await, (status, name.to_owned()), "{method} {path}");
    }
    let before = tools.place.sprag.events().len();
    assert_eq!(led_to("GET", "/posts").await.0, 404, "another method leads nowhere");
    assert_eq!(led_to("POST", "/postscript").await.0, 404);
    assert_eq!(tools.place.sprag.events().len(), before);
    let to_model = tools.post("/v1/chat/completions", "{\"model\":\"gpt-4o\",\"messages\":[]}", &[]).await;
    assert_eq!(to_model.header("content-type"), "application/json", "another method falls through to the provider");
    let agents: Vec<String> = tools.place.sprag.events().iter().map(|event| event.agent.to_string()).collect();
    assert_eq!(agents.iter().filter(|agent| *agent == "bot").count(), 1);
    let seen: Vec<String> = tools.server.requests().iter().map(|seen| seen.path.clone()).collect();
    assert!(seen.contains(&"/v1/to%6Fls/x".to_owned()), "sent on as written: {seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_ends_the_call() {
    let tools = Tools::start("", "").await;
    let waiting = tokio::spawn(tools.call("GET", "/v1/tools/x", &[("x-mock-hold", "")]).fetch());
    tools.server.gate().reached(1).await;
    waiting.abort();
    let event = tools.place.sprag.settled(1).await.remove(0);
    assert_eq!(event.ending, Ending::ClientGone);
    tools.server.gate().open();
}
