//! Outside its hours an agent hears an assistant that says when they begin.

use sprag_core::wire::Dialect;
use sprag_testkit::client;

use crate::ask;
use crate::configured::{Configured, stopped};
use crate::wire::{STREAMING, path, request};

#[tokio::test(flavor = "multi_thread")]
async fn an_assistant_says_so_in_every_dialect() {
    let place = Configured::start("[defaults.hours]\nallowed = [\"mon-fri 10:00-18:00\"]").await;
    for dialect in STREAMING {
        for is_stream in [false, true] {
            let call = client::post_json(place.sprag.url(path(dialect, is_stream)), &request(dialect, is_stream, "hi"));
            let answer = call.fetch().await.unwrap();
            assert_eq!((answer.status.as_u16(), stopped(&answer)), (200, "outside_allowed_hours"), "{dialect:?}");
            let text = String::from_utf8_lossy(&answer.body);
            assert!(text.contains("at 10:00") && text.contains("February 2026"), "{dialect:?}: {text}");
        }
    }
    let embedding =
        client::post_json(place.sprag.url("/v1/embeddings"), &request(Dialect::OpenaiEmbeddings, false, "x"));
    let answer = embedding.fetch().await.unwrap();
    assert_eq!((answer.status.as_u16(), stopped(&answer)), (403, "outside_allowed_hours"), "nobody speaks there");
    assert_eq!(answer.json()["retry_after_seconds"], 3600);
    assert_eq!(place.provider.log().view().total, 0);
    place.set_time("2026-02-03T10:00:00Z");
    assert_eq!(stopped(&ask(&place, &[]).await), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_go_over_midnight_and_over_changes_of_the_clocks() {
    let place = Configured::start(
        "[agents.night.hours]\nallowed = [\"sat 22:00-06:00\"]\ntime_zone = \"Europe/Berlin\"\n\
         [agents.gap.hours]\nallowed = [\"02:30-03:30\"]\ntime_zone = \"Europe/Berlin\"",
    )
    .await;
    // On 29 March 2026 the clocks of Berlin go from 02:00 to 03:00, on 25 October from 03:00 back to 02:00.
    for (agent, moment, is_open) in [
        ("night", "2026-03-28T20:59:59Z", false),
        ("night", "2026-03-28T21:00:00Z", true),
        ("night", "2026-03-29T03:59:59Z", true),
        ("night", "2026-03-29T04:00:00Z", false),
        ("night", "2026-10-25T04:59:59Z", true),
        ("night", "2026-10-25T05:00:00Z", false),
        ("night", "2026-10-24T03:00:00Z", false),
        ("gap", "2026-03-29T00:59:59Z", false),
        ("gap", "2026-03-29T01:00:00Z", true),
        ("gap", "2026-03-29T01:30:00Z", false),
        ("gap", "2026-10-25T00:30:00Z", true),
        ("gap", "2026-10-25T01:30:00Z", true),
    ] {
        place.set_time(moment);
        let answer = ask(&place, &[("x-agent-id", agent)]).await;
        assert_eq!(stopped(&answer).is_empty(), is_open, "{agent} at {moment}");
        if !is_open {
            assert!(answer.json()["choices"][0]["message"]["content"].as_str().unwrap().contains("begin again on"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shadow_tells_and_stops_nothing() {
    let place = Configured::start("[defaults.hours]\nallowed = [\"22:00-23:00\"]\nmode = \"shadow\"").await;
    assert_eq!(stopped(&ask(&place, &[]).await), "");
    let event = place.sprag.settled(1).await.remove(0);
    let told: Vec<&str> = event.would_block.iter().map(|would| would.reason.as_str()).collect();
    assert_eq!((told, event.blocked), (vec!["outside_allowed_hours"], false));
}
