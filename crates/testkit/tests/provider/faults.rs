//! Faults do what they say, byte by byte.

use bytes::Bytes;
use serde_json::{Value, json};
use sprag_testkit::client::{Call, post_json, raw};
use sprag_testkit::{CutAt, CutHow, Encoding, Ending, Fault, Gate, Provider, Reply, Script, sse};
use std::io::Read;
use std::time::Duration;

const TEXT: &str = "Grüße an alle, die hier mitlesen, und noch ein paar Worte.";

#[cfg(test)]
fn start(fault: Fault) -> Provider {
    Provider::start(Script::always(Reply::text(TEXT).fault(fault))).unwrap()
}

fn chat(provider: &Provider, stream: bool) -> Call {
    let body = json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "x"}]});
    post_json(format!("{}/v1/chat/completions", provider.url()), &body)
}

fn streamed_text(body: &[u8]) -> String {
    let chunks: Vec<Value> = sse::events(body).iter().map(|event| event.json()).collect();
    chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
}

#[tokio::test]
async fn a_dribble_cuts_anywhere_and_loses_nothing() {
    let provider = start(Fault::Dribble { bytes: 7, every: Duration::ZERO });
    let whole = chat(&provider, true).fetch().await.unwrap();
    assert!(whole.pieces.iter().all(|(_, piece)| piece.len() <= 7));
    assert!(whole.pieces.iter().any(|(_, piece)| std::str::from_utf8(piece).is_err()), "no character was cut");
    assert_eq!(streamed_text(&whole.body), TEXT);
    let every = Duration::from_millis(2);
    let slow = start(Fault::Dribble { bytes: 300, every });
    let whole = chat(&slow, true).fetch().await.unwrap();
    let pauses = u32::try_from(whole.pieces.len() - 1).unwrap();
    assert!(pauses > 3 && whole.pieces.last().unwrap().0 >= every * pauses);
}

#[tokio::test]
async fn events_travel_alone() {
    let provider = Provider::start(Script::always(Reply::text(TEXT))).unwrap();
    let whole = chat(&provider, true).fetch().await.unwrap();
    assert_eq!(whole.pieces.len(), whole.events().len());
    assert_eq!(whole.header("transfer-encoding"), "chunked");
}

#[tokio::test]
async fn a_stall_lasts_until_it_is_released() {
    let gate = Gate::new();
    let provider = start(Fault::Stall { after_events: 2, until: gate.clone() });
    let mut answer = chat(&provider, true).send().await.unwrap();
    gate.reached(1).await;
    let first = answer.next().await.unwrap().unwrap();
    let second = answer.next().await.unwrap().unwrap();
    assert_eq!(sse::events(&[first, second].concat()).len(), 2);
    assert_eq!(provider.open_responses(), 1);
    gate.open();
    let rest = answer.whole().await;
    assert_eq!((rest.broken.as_deref(), rest.events().last().unwrap().data.as_str()), (None, "[DONE]"));
    provider.wait_for(|log| log.open_responses == 0).await.unwrap();
    assert_eq!(provider.requests()[0].ending, Ending::Completed);
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_and_counted() {
    for http2 in [false, true] {
        let gate = Gate::new();
        let provider = start(Fault::Stall { after_events: 1, until: gate.clone() });
        let call = chat(&provider, true);
        let mut answer = if http2 { call.http2() } else { call }.send().await.unwrap();
        let first = answer.next().await.unwrap().unwrap();
        gate.reached(1).await;
        answer.abort();
        let log = provider.wait_for(|log| log.aborted == 1 && log.open_connections == 0).await.unwrap();
        assert_eq!(log.requests[0].ending, Ending::ClientLeft { at_byte: first.len() as u64 });
        assert_eq!(log.open_responses, 0);
    }
}

#[tokio::test]
async fn a_client_that_leaves_before_the_head_is_noticed() {
    let gate = Gate::new();
    let provider = start(Fault::Hold(gate.clone()));
    let call = tokio::spawn(chat(&provider, false).send());
    gate.reached(1).await;
    call.abort();
    let log = provider.wait_for(|log| log.aborted == 1).await.unwrap();
    assert_eq!(log.requests[0].ending, Ending::ClientLeft { at_byte: 0 });
    gate.open();
    assert_eq!(chat(&provider, false).fetch().await.unwrap().status, 200);
}

#[tokio::test]
async fn a_cut_ends_the_body_without_an_end() {
    for (stream, how) in [(true, CutHow::Close), (false, CutHow::Close), (true, CutHow::Reset)] {
        let provider = start(Fault::Cut { at: CutAt::Bytes(100), how });
        let whole = chat(&provider, stream).fetch().await.unwrap();
        assert_eq!(whole.body.len(), 100, "{stream} {how:?}");
        assert!(whole.broken.is_some(), "{stream} {how:?}");
        let log = provider.wait_for(|log| log.open_connections == 0).await.unwrap();
        assert_eq!((log.requests[0].ending, log.aborted), (Ending::Cut { at_byte: 100 }, 0));
    }
    let provider = start(Fault::Cut { at: CutAt::Events(3), how: CutHow::Close });
    let whole = chat(&provider, true).fetch().await.unwrap();
    assert_eq!((whole.events().len(), whole.broken.is_some()), (3, true));
    let whole = chat(&provider, true).http2().fetch().await.unwrap();
    assert_eq!((whole.events().len(), whole.broken.is_some()), (3, true));
    let provider = start(Fault::Cut { at: CutAt::Events(1000), how: CutHow::Close });
    let whole = chat(&provider, true).fetch().await.unwrap();
    assert_eq!((whole.events().last().unwrap().data.as_str(), whole.broken.is_some()), ("[DONE]", true));
    let provider = start(Fault::Cut { at: CutAt::Head, how: CutHow::Close });
    assert!(chat(&provider, true).send().await.is_err());
}

#[tokio::test]
async fn a_reset_is_seen_as_one() {
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hey"}]}"#;
    let request = |fault: &str| {
        let length = body.len();
        format!(
            "POST /v1/chat/completions?{fault}=bytes%3D10 HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    };
    let provider = Provider::start(Script::new()).unwrap();
    let error = raw(provider.address(), request("mock-reset").as_bytes()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let closed = raw(provider.address(), request("mock-cut").as_bytes()).await.unwrap();
    assert!(closed.starts_with(b"HTTP/1.1 200 OK") && !closed.ends_with(b"0\r\n\r\n"));
}

#[tokio::test]
async fn garbled_events_do_not_parse_and_the_others_do() {
    let provider = start(Fault::Garble { event: 1 });
    let events = chat(&provider, true).fetch().await.unwrap().events();
    let broken: Vec<usize> = (0..events.len() - 1).filter(|place| events[*place].json().is_null()).collect();
    assert_eq!(broken, [1]);
    let whole = chat(&provider, false).fetch().await.unwrap();
    assert!(whole.body.starts_with(b"{") && whole.json().is_null() && whole.broken.is_none());
}

#[tokio::test]
async fn every_encoding_decodes_to_the_same_answer() {
    for encoding in Encoding::ALL {
        for stream in [true, false] {
            let provider = start(Fault::Encode(encoding));
            let whole = chat(&provider, stream).fetch().await.unwrap();
            assert_eq!(whole.header("content-encoding"), encoding.name());
            let plain = decode(encoding, &whole.body);
            match stream {
                true => assert_eq!(streamed_text(&plain), TEXT, "{encoding:?}"),
                false => assert!(String::from_utf8(plain).unwrap().contains(TEXT), "{encoding:?}"),
            }
        }
    }
}

#[tokio::test]
async fn framing_and_line_endings() {
    let provider = start(Fault::ContentLength);
    let whole = chat(&provider, true).fetch().await.unwrap();
    assert_eq!(whole.header("content-length"), whole.body.len().to_string());
    assert_eq!(streamed_text(&whole.body), TEXT);
    provider.wait_for(|log| log.open_responses == 0).await.unwrap();
    assert_eq!(provider.requests()[0].ending, Ending::Completed);

    let whole = chat(&start(Fault::Chunked), false).fetch().await.unwrap();
    assert_eq!((whole.header("content-length"), whole.json().is_object()), ("", true));

    let whole = chat(&start(Fault::Crlf), true).fetch().await.unwrap();
    let text = String::from_utf8(whole.body.to_vec()).unwrap();
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    assert_eq!(streamed_text(&whole.body), TEXT);

    let whole = chat(&start(Fault::Comments), true).fetch().await.unwrap();
    assert_eq!(sse::comments(&whole.body).len(), whole.events().len());

    let reply = Reply::text(TEXT).fault(Fault::Whitespace(40)).fault(Fault::Chunked);
    let provider = Provider::start(Script::always(reply)).unwrap();
    let whole = chat(&provider, false).fetch().await.unwrap();
    assert!(whole.body.starts_with(&[b' '; 40]) && whole.json().is_object());
    assert_eq!(whole.pieces.len(), 2);
}

#[tokio::test]
async fn an_oversized_event_is_large_and_valid() {
    let provider = start(Fault::Oversized(300_000));
    let events = chat(&provider, true).fetch().await.unwrap().events();
    assert!(events[1].data.len() > 300_000);
    assert!(events[1].json().is_object());
}

#[tokio::test]
async fn trailers_come_to_those_who_take_them() {
    let provider = start(Fault::Trailers(vec![("x-end".into(), "yes".into())]));
    let whole = chat(&provider, true).header("te", "trailers").fetch().await.unwrap();
    assert_eq!(whole.trailers.unwrap()["x-end"], "yes");
    let whole = chat(&provider, true).http2().fetch().await.unwrap();
    assert_eq!(whole.trailers.unwrap()["x-end"], "yes");
}

#[cfg(test)]
fn decode(encoding: Encoding, bytes: &[u8]) -> Vec<u8> {
    let mut reader: Box<dyn Read + '_> = match encoding {
        Encoding::Gzip => Box::new(flate2::read::GzDecoder::new(bytes)),
        Encoding::Deflate => Box::new(flate2::read::ZlibDecoder::new(bytes)),
        Encoding::Zstd => Box::new(zstd::stream::read::Decoder::new(bytes).unwrap()),
        Encoding::Br => Box::new(brotli::Decompressor::new(bytes, 4096)),
    };
    let mut plain = Vec::new();
    reader.read_to_end(&mut plain).unwrap();
    plain
}

#[test]
fn bytes_that_are_no_text_pass_unharmed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let reply = Reply::raw(200, "audio/mpeg", Bytes::from_static(b"\xff\x00\xfe"));
    let provider = Provider::start(Script::always(reply)).unwrap();
    let whole = runtime.block_on(chat(&provider, false).fetch()).unwrap();
    assert_eq!(&whole.body[..], b"\xff\x00\xfe");
}
