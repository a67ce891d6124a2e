//! What comes in goes out: every answer on file, however it is cut, compressed and framed, and every request.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sprag_core::policy::RunLimits;
use sprag_core::wire::Dialect;
use sprag_testkit::{Encoding, Provider, Reply, Script, When, client};
use tokio::runtime::Runtime;

use crate::sprag::{Sprag, without_detection, without_dlp};
use crate::wire::{Fixture, fixtures, path, request, without_metadata, without_usage_chunks};

/// One way of delivering one answer.
#[derive(Clone, Debug)]
struct Delivery {
    fixture: usize,
    pieces: usize,
    encoding: Option<Encoding>,
    framing: Option<&'static str>,
    accepts: Option<&'static str>,
}

fn deliveries(count: usize) -> impl Strategy<Value = Delivery> {
    let encoding = prop_oneof![2 => Just(None), 3 => prop::sample::select(&Encoding::ALL[..]).prop_map(Some)];
    let framing = prop::sample::select(vec![None, Some("x-mock-chunked"), Some("x-mock-content-length")]);
    let accepts = prop::sample::select(vec![None, Some("gzip, br"), Some("zstd;q=0.5, deflate")]);
    let pieces = prop_oneof![1 => Just(1usize), 4 => 1usize..300, 1 => Just(1 << 20)];
    (0..count, pieces, encoding, framing, accepts).prop_map(|(fixture, pieces, encoding, framing, accepts)| Delivery {
        fixture,
        pieces,
        encoding,
        framing,
        accepts,
    })
}

struct World {
    runtime: Runtime,
    provider: Provider,
    sprag: Sprag,
    fixtures: Vec<Fixture>,
}

impl World {
    fn new(metadata: bool) -> World {
        // A stream that breaks off gains an error event; that has tests of its own.
        let fixtures: Vec<Fixture> = fixtures().into_iter().filter(|fixture| !fixture.name.contains("cut")).collect();
        let mut script = Script::new();
        for (at, fixture) in fixtures.iter().enumerate() {
            let content_type = if fixture.is_stream { "text/event-stream" } else { "application/json" };
            let reply = Reply::raw(200, content_type, fixture.bytes.clone());
            script = script.when(When::Header("x-case".into(), at.to_string()), [reply]);
        }
        let provider = Provider::start(script).unwrap();
        let runtime = Runtime::new().unwrap();
        let sprag = runtime.block_on(Sprag::start_with(&provider, |s| {
            s.responses.metadata = metadata;
            without_dlp(s);
        }));
        World { runtime, provider, sprag, fixtures }
    }

    fn fetch(&self, base: &str, delivery: &Delivery) -> client::Whole {
        let fixture = &self.fixtures[delivery.fixture];
        let url = format!("{base}{}", path(fixture.dialect, fixture.is_stream));
        let mut call = client::post_json(url, &request(fixture.dialect, fixture.is_stream, "hello"))
            .header("x-case", &delivery.fixture.to_string())
            .header("x-mock-dribble", &delivery.pieces.to_string());
        if let Some(encoding) = delivery.encoding {
            call = call.header("x-mock-encode", encoding.name());
        }
        if let Some(framing) = delivery.framing {
            call = call.header(framing, "");
        }
        if let Some(accepts) = delivery.accepts {
            call = call.header("accept-encoding", accepts);
        }
        let answer = self.runtime.block_on(call.fetch()).unwrap();
        assert_eq!(answer.broken, None);
        answer
    }

    fn check(&self, cases: u32, check: impl Fn(&Fixture, &Delivery, client::Whole, client::Whole)) {
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let strategy = deliveries(self.fixtures.len());
        let url = self.sprag.url("");
        TestRunner::new(config)
            .run(&strategy, |delivery| {
                let (direct, through) = (self.fetch(&self.provider.url(), &delivery), self.fetch(&url, &delivery));
                check(&self.fixtures[delivery.fixture], &delivery, direct, through);
                Ok(())
            })
            .unwrap();
        self.runtime.block_on(self.sprag.settled(cases as usize));
    }
}

#[test]
fn without_metadata_an_answer_passes_byte_for_byte() {
    let world = World::new(false);
    world.check(300, |fixture, _, direct, through| {
        assert!(direct.body == through.body, "{}", fixture.name);
        for name in ["content-encoding", "content-type", "content-length"] {
            assert_eq!(direct.header(name), through.header(name), "{} {name}", fixture.name);
        }
    });
}

#[test]
fn with_metadata_an_answer_gains_one_field() {
    let world = World::new(true);
    world.check(300, |fixture, delivery, direct, through| {
        if through.header("content-encoding") == direct.header("content-encoding") && delivery.encoding.is_some() {
            // Nothing was put in, so it stayed compressed.
            assert!(direct.body == through.body, "{}", fixture.name);
            return;
        }
        assert_eq!(through.header("content-encoding"), "");
        let passed = match without_metadata(&through.body) {
            Some(passed) => passed,
            None => {
                let is_whole = !["error", "cut", "array", "failed"].iter().any(|word| fixture.name.contains(word));
                assert!(!is_whole, "no metadata in {}", fixture.name);
                through.body.to_vec()
            }
        };
        assert_eq!(String::from_utf8_lossy(&passed), String::from_utf8_lossy(&fixture.bytes), "{}", fixture.name);
    });
}

#[test]
fn usage_that_nobody_asked_for_is_all_that_is_missing() {
    let world = World::new(false);
    for (at, fixture) in world.fixtures.iter().enumerate() {
        if !fixture.is_stream || fixture.dialect != Dialect::OpenaiChat || fixture.bytes.contains(&b'\r') {
            continue;
        }
        let mut body = request(fixture.dialect, true, "hello");
        body.as_object_mut().unwrap().remove("stream_options");
        for pieces in ["1", "37", "100000"] {
            let call = client::post_json(world.sprag.url(path(fixture.dialect, true)), &body)
                .header("x-case", &at.to_string())
                .header("x-mock-dribble", pieces);
            let answer = world.runtime.block_on(call.fetch()).unwrap();
            let expected = without_usage_chunks(&fixture.bytes);
            assert_eq!(String::from_utf8_lossy(&answer.body), String::from_utf8_lossy(&expected), "{}", fixture.name);
        }
    }
}

/// Fields with all that JSON allows, and that a careless proxy would change.
const FIELDS: [&str; 10] = [
    r#""temperature" : 1.0"#,
    r#""seed":9007199254740993"#,
    r#""top_p":1E-2"#,
    r#""user":"caf\u00e9 \ud83d\ude00 \/""#,
    r#""stop" : [ "\n" , "a,b" ]"#,
    r#""logit_bias":{ "50256" : -100 }"#,
    r#""tools":[]"#,
    r#""n":1"#,
    r#""metadata":{"sprag_run_id":"not ours"}"#,
    r#""response_format":{"type":"text"}"#,
];
const OWN: [&str; 4] = [
    r#""sprag_run_id":"r-1""#,
    r#""sprag_agent" : "bot""#,
    r#""agentwall_run_id": "r-1""#,
    r#""agentwall_agent_id":"bot""#,
];

#[derive(Clone, Debug)]
struct Sent {
    fields: Vec<&'static str>,
    own: Vec<(usize, &'static str)>,
    is_stream: bool,
    space: &'static str,
    cuts: Vec<prop::sample::Index>,
    chunked: bool,
}

fn requests() -> impl Strategy<Value = Sent> {
    let fields = prop::sample::subsequence(FIELDS.to_vec(), 0..=FIELDS.len()).prop_shuffle();
    let own = prop::collection::vec((0usize..12, prop::sample::select(&OWN[..])), 0..3);
    let space = prop::sample::select(vec!["", " ", "\n  ", "\r\n\t"]);
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..5);
    (fields, own, any::<bool>(), space, cuts, any::<bool>()).prop_map(
        |(fields, mut own, is_stream, space, cuts, chunked)| {
            own.dedup_by_key(|(_, text)| *text);
            if own.len() == 2 && own[0].1 == own[1].1 {
                own.pop();
            }
            Sent { fields, own, is_stream, space, cuts, chunked }
        },
    )
}

impl Sent {
    fn body(&self, with_own: bool) -> String {
        let mut fields = vec![r#""model":"gpt-4o""#, r#""messages":[{"role":"user","content":"hi"}]"#];
        fields.extend(&self.fields);
        if self.is_stream {
            fields.push(r#""stream" : true"#);
        }
        if with_own {
            for (at, own) in &self.own {
                fields.insert((*at).min(fields.len()), own);
            }
        }
        let comma = format!("{0},{0}", self.space);
        format!("{0}{{{0}{1}{0}}}{0}", self.space, fields.join(&comma))
    }
}

#[test]
fn a_request_passes_byte_for_byte_but_for_what_is_ours() {
    let provider = Provider::start(Script::new().lenient()).unwrap();
    let runtime = Runtime::new().unwrap();
    let unlimited = |settings: &mut sprag::config::Settings| {
        settings.policies.defaults.run_limits = RunLimits::NONE;
        without_detection(settings);
    };
    let sprag = runtime.block_on(Sprag::start_with(&provider, unlimited));
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let asked = r#""stream_options":{"include_usage":true},"#;
    TestRunner::new(config)
        .run(&requests(), |sent| {
            let body = sent.body(true);
            let mut cuts: Vec<usize> = sent.cuts.iter().map(|cut| cut.index(body.len())).collect();
            cuts.sort_unstable();
            let mut call = client::post(sprag.url("/v1/chat/completions"), body.clone());
            if sent.chunked {
                let ends: Vec<usize> = cuts.into_iter().chain([body.len()]).collect();
                let mut start = 0;
                call = call.pieces(
                    ends.into_iter().map(|end| body[std::mem::replace(&mut start, end)..end].to_owned().into()),
                );
            }
            let answer = runtime.block_on(call.fetch()).unwrap();
            assert_eq!(answer.status, 200, "{:?}", answer.body);
            let received = String::from_utf8(provider.requests().last().unwrap().body.to_vec()).unwrap();
            let received = match sent.is_stream {
                true => {
                    assert!(received.contains(asked), "{received}");
                    received.replacen(asked, "", 1)
                }
                false => received,
            };
            let expected = sent.body(false);
            if sent.own.is_empty() {
                assert_eq!(received, expected);
            }
            // White space around a field that was ours may go with it.
            let squeeze = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(squeeze(&received), squeeze(&expected));
            assert!(sent.fields.iter().all(|field| received.contains(field)), "{received}");
            Ok(())
        })
        .unwrap();
}
