//! Who may see the page, and in which form.

use sprag_testkit::client::{self, Call};

use crate::page::Page;
use crate::scene::{TOKEN, VIEWER, fetch, place};

fn ask(place: &crate::configured::Configured) -> Call {
    client::get(format!("http://{}/metrics", place.sprag.admin))
}

#[tokio::test]
async fn a_token_that_lets_one_look_is_enough_and_needed() {
    let place = place("").await;
    assert_eq!(fetch(ask(&place)).await.status, 401);
    assert_eq!(fetch(ask(&place).header("authorization", "Bearer wrong")).await.status, 401);
    for token in [TOKEN, VIEWER] {
        let answer = fetch(ask(&place).header("authorization", &format!("Bearer {token}"))).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    let proxied = fetch(client::get(place.sprag.url("/metrics"))).await;
    assert_eq!(proxied.status, 404, "agents do not see it");
}

#[tokio::test]
async fn it_can_be_left_open_for_this_machine() {
    let place = place("[telemetry]\nmetrics_open = true\n").await;
    assert_eq!(fetch(ask(&place)).await.status, 200);
    let foreign = fetch(ask(&place).header("host", "evil.example")).await;
    assert_eq!(foreign.status, 403, "a page of somebody else cannot read it through a browser");
    let api = client::get(format!("http://{}/api/v1/status", place.sprag.admin));
    assert_eq!(fetch(api).await.status, 401, "nothing else is open");
}

#[tokio::test]
async fn prometheus_gets_the_format_that_it_asks_for() {
    let place = place("[telemetry]\nmetrics_open = true\n").await;
    let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                      text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
    let answer = fetch(ask(&place).header("accept", prometheus)).await;
    assert_eq!(answer.header("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(text.ends_with("\n# EOF\n") && text.contains("# TYPE sprag_stops counter\nsprag_stops_total{"), "{text}");
    let plain = fetch(ask(&place)).await;
    let page = Page::read(std::str::from_utf8(&plain.body).unwrap());
    assert_eq!(page.families["sprag_stops_total"].kind, "counter");
}
