//! Against a server that says, byte for byte, what it is told to.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::RootCertStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::{Http1, Http1Body};
use crate::upstream::{NoAnswer, trusting};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const LONGEST: Duration = Duration::from_secs(20);

struct Server {
    listener: TcpListener,
    client: Http1,
}

impl Server {
    async fn start() -> Server {
        Server::with(LONGEST, 8).await
    }

    async fn with(longest: Duration, most: usize) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let tls = HttpsConnectorBuilder::new().with_tls_config(trusting(RootCertStore::empty()).unwrap());
        let connector = tls.https_or_http().enable_http1().wrap_connector(HttpConnector::new());
        Server { listener, client: Http1::new(connector, base, longest, most) }
    }

    async fn accept(&self) -> Peer {
        Peer(self.listener.accept().await.unwrap().0)
    }

    async fn send(&self, body: &str) -> Result<Response<Http1Body>, NoAnswer> {
        self.ask(Method::POST, body).await
    }

    async fn ask(&self, method: Method, body: &str) -> Result<Response<Http1Body>, NoAnswer> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let request = Request::builder().method(method).uri("http://ignored/path").header("host", "here").body(body);
        self.client.send(&request.unwrap(), Instant::now()).await
    }

    /// One request over a new connection, answered with this. The connection stays with the peer.
    async fn answered(&self, answer: &str) -> (Response<Http1Body>, Peer) {
        let (answered, peer) = tokio::join!(self.send("hello"), async {
            let mut peer = self.accept().await;
            peer.hear("hello").await;
            peer.say(answer).await;
            peer
        });
        (answered.unwrap(), peer)
    }
}

impl Server {
    /// One more request, over the connection that the peer has.
    async fn goes_on(&self, peer: &mut Peer) {
        let (answer, _) = tokio::join!(self.send("next"), async {
            peer.hear("next").await;
            peer.say(OK).await;
        });
        assert_eq!(text(answer.unwrap()).await, "ok");
    }
}

struct Peer(TcpStream);

impl Peer {
    /// Reads until the request ends with this.
    async fn hear(&mut self, end: &str) -> String {
        let mut heard = Vec::new();
        while !heard.ends_with(end.as_bytes()) {
            let come = self.0.read_buf(&mut heard).await.unwrap();
            assert_ne!(come, 0, "it was closed after {}", String::from_utf8_lossy(&heard));
        }
        String::from_utf8(heard).unwrap()
    }

    async fn say(&mut self, what: &str) {
        self.0.write_all(what.as_bytes()).await.unwrap();
    }

    async fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0; 1]).await, Ok(0) | Err(_))
    }
}

async fn text(answer: Response<Http1Body>) -> String {
    String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().into()).unwrap()
}

#[tokio::test]
async fn a_request_goes_out_whole_and_its_connection_is_used_again() {
    let server = Server::start().await;
    let (answer, mut peer) = server.answered(OK).await;
    assert_eq!((answer.status().as_u16(), text(answer).await.as_str()), (200, "ok"));
    let (answer, heard) = tokio::join!(server.send("again"), async {
        let heard = peer.hear("again").await;
        peer.say("HTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n").await;
        heard
    });
    assert_eq!(heard, "POST /path HTTP/1.1\r\nhost: here\r\ncontent-length: 5\r\n\r\nagain");
    assert_eq!(text(answer.unwrap()).await, "no");
    server.goes_on(&mut peer).await;
}

#[tokio::test]
async fn a_body_is_given_as_it_comes() {
    let server = Server::start().await;
    let (mut answer, mut peer) = server.answered("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
    let body = answer.body_mut();
    for piece in ["one", "two"] {
        peer.say(&format!("3\r\n{piece}\r\n")).await;
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), piece);
    }
    assert!(!body.is_end_stream());
    peer.say("0\r\nx-sum: 2\r\n\r\n").await;
    let trailers = body.frame().await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(trailers["x-sum"], "2");
    assert!(body.is_end_stream() && body.frame().await.is_none());
}

#[tokio::test]
async fn one_of_known_length_is_over_with_its_last_byte() {
    let server = Server::start().await;
    let (mut answer, mut peer) = server.answered("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab").await;
    let body = answer.body_mut();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "ab");
    assert!(!body.is_end_stream());
    peer.say("cd").await;
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "cd");
    assert!(body.is_end_stream());
    server.goes_on(&mut peer).await;
}

#[tokio::test]
async fn long_answers_come_whole() {
    let server = Server::start().await;
    let long = "0123456789".repeat(50_000);
    let (mut answer, mut peer) =
        server.answered(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", long.len())).await;
    let (read, ()) = tokio::join!(answer.body_mut().collect(), peer.say(&long));
    assert_eq!(read.unwrap().to_bytes(), long);
}

#[tokio::test]
async fn one_without_a_length_ends_with_its_connection() {
    let server = Server::start().await;
    let (answer, peer) = server.answered("HTTP/1.1 200 OK\r\n\r\nall that there is").await;
    drop(peer);
    assert_eq!(text(answer).await, "all that there is");
}

#[tokio::test]
async fn an_answer_without_a_body_leaves_the_connection_to_the_next() {
    let server = Server::start().await;
    let (answer, mut peer) = server.answered("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert!(answer.body().is_end_stream());
    let (answer, heard) = tokio::join!(server.ask(Method::HEAD, ""), async {
        let heard = peer.hear("\r\n\r\n").await;
        peer.say("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n").await;
        heard
    });
    assert!(heard.starts_with("HEAD /path HTTP/1.1\r\n") && !heard.contains("content-length"), "{heard}");
    assert!(answer.unwrap().body().is_end_stream());
    server.goes_on(&mut peer).await;
}

#[tokio::test]
async fn what_comes_before_the_answer_is_passed_over() {
    let server = Server::start().await;
    let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    let (answer, _peer) = server.answered(&format!("{early}{OK}")).await;
    assert_eq!((answer.status().as_u16(), text(answer).await.as_str()), (200, "ok"));
}

#[tokio::test]
async fn an_answer_that_comes_before_the_request_is_whole_counts() {
    let server = Server::start().await;
    // More than all buffers on the way hold.
    let long = "x".repeat(32 << 20);
    let (answer, peer) = tokio::join!(server.send(&long), async {
        let mut peer = server.accept().await;
        peer.0.read_exact(&mut [0; 64]).await.unwrap();
        peer.say("HTTP/1.1 413 Payload Too Large\r\ncontent-length: 8\r\n\r\ntoo long").await;
        peer
    });
    let answer = answer.unwrap();
    assert_eq!((answer.status().as_u16(), text(answer).await.as_str()), (413, "too long"));
    drop(peer);
    let (answer, _peer) = server.answered(OK).await;
    assert_eq!(text(answer).await, "ok", "over a connection of its own");
}

/// Everything that leaves a doubt about where the next answer would begin.
#[tokio::test]
async fn a_connection_in_doubt_is_not_used_again() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ] {
        let server = Server::start().await;
        let (answered, mut peer) = server.answered(answer).await;
        assert_eq!(text(answered).await, "ok", "{answer}");
        assert!(peer.is_closed().await, "{answer}");
    }
}

#[tokio::test]
async fn a_connection_that_ended_meanwhile_is_not_used() {
    for last_words in ["", "HTTP/1.1 408 Request Timeout\r\n\r\n"] {
        let server = Server::start().await;
        let (answer, mut peer) = server.answered(OK).await;
        assert_eq!(text(answer).await, "ok");
        peer.say(last_words).await;
        drop(peer);
        // The runtime looks at its sockets, as it has before it hands out a request.
        tokio::task::yield_now().await;
        let (answer, _peer) = server.answered(OK).await;
        assert_eq!(text(answer).await, "ok", "{last_words}");
    }
}

#[tokio::test]
async fn what_was_sent_is_not_sent_again() {
    let server = Server::start().await;
    let (answered, ()) = tokio::join!(server.send("hello"), async {
        server.accept().await.hear("hello").await;
    });
    let Err(NoAnswer::Unreachable(why)) = answered.map(drop) else { panic!("it was answered") };
    assert!(why.contains("closed") || why.contains("reset"), "{why}");
}

#[tokio::test]
async fn an_answer_that_is_cut_or_makes_no_sense_is_an_error() {
    for cut in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n0\r\nno trailer\r\n\r\n",
    ] {
        let server = Server::start().await;
        let (answer, peer) = server.answered(cut).await;
        drop(peer);
        assert!(answer.into_body().collect().await.is_err(), "{cut}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(80 << 10));
    for (nonsense, expected) in [
        ("SSH-2.0-OpenSSH\r\n", "not HTTP"),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "another protocol"),
        (&"HTTP/1.1 100 Continue\r\n\r\n".repeat(40), "before it"),
        (&endless, "too long"),
        ("HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", "no number"),
    ] {
        let server = Server::start().await;
        let (answered, ()) = tokio::join!(server.send("hello"), async {
            let mut peer = server.accept().await;
            peer.hear("hello").await;
            let _ = peer.0.write_all(nonsense.as_bytes()).await;
        });
        let Err(NoAnswer::Unreachable(why)) = answered.map(drop) else { panic!("{nonsense} was taken") };
        assert!(why.contains(expected), "{nonsense}: {why}");
    }
}

#[tokio::test]
async fn whoever_stops_reading_closes_the_connection() {
    let server = Server::start().await;
    let (answer, mut peer) = server.answered("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n").await;
    drop(answer);
    assert!(peer.is_closed().await);
}

#[tokio::test]
async fn idle_connections_are_bounded_and_the_oldest_goes() {
    let server = Server::with(LONGEST, 1).await;
    let (first, mut of_first) = server.answered("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n").await;
    let (second, mut of_second) = server.answered(OK).await;
    of_first.say("ok").await;
    assert_eq!(text(first).await, "ok");
    assert_eq!(text(second).await, "ok");
    assert!(of_first.is_closed().await);
    server.goes_on(&mut of_second).await;
}

/// With a clock that goes on when nobody has anything to do.
#[tokio::test(start_paused = true)]
async fn nobody_keeps_a_connection_that_is_not_needed() {
    let server = Server::with(Duration::from_secs(30), 8).await;
    let (answer, mut peer) = server.answered(OK).await;
    assert_eq!(text(answer).await, "ok");
    let since = Instant::now();
    assert!(peer.is_closed().await);
    assert!((30..=35).contains(&since.elapsed().as_secs()), "{:?}", since.elapsed());
}

#[tokio::test]
async fn nobody_there_is_told_in_plain_words() {
    let Server { listener, client } = Server::start().await;
    drop(listener);
    let request = Request::post("/").body(Bytes::new()).unwrap();
    let Err(NoAnswer::Unreachable(why)) = client.send(&request, Instant::now()).await.map(drop) else {
        panic!("it was answered")
    };
    assert!(why.contains("refused"), "{why}");
}
