//! Nothing that a caller writes makes a series, and nothing that names one of them stands on the page.

use sprag_testkit::client;

use crate::scene::{TOKEN, VIEWER, chat, fetch, metrics, place, traffic};

#[tokio::test]
async fn models_are_called_as_the_list_of_prices_calls_them() {
    let place = place("[[price]]\nmodel = \"own-*\"\ninput = 1\noutput = 2\n").await;
    let asked = ["gpt-4o", "openai/gpt-4o", "nobody-sells-this", "own-small", "own-large"];
    for model in asked {
        fetch(chat(&place, "plain", model, "hello")).await;
    }
    place.sprag.settled(asked.len()).await;
    let page = metrics(&place).await;
    let models: Vec<String> = page.values_of("model").into_iter().collect();
    assert_eq!(models, ["gpt-4o", "other", "own-*"], "{}", page.text);
    assert!(!page.text.contains("nobody-sells"));
}

#[tokio::test]
async fn agents_are_counted_only_where_that_is_wanted() {
    let plain = place("").await;
    traffic(&plain).await;
    assert!(metrics(&plain).await.values_of("agent").is_empty());

    let place = place("[telemetry]\nmetrics_by_agent = true\n").await;
    let calls = traffic(&place).await;
    let page = metrics(&place).await;
    assert_eq!(page.value("sprag_agent_requests_total", &[("agent", "picky")]), 1.0);
    assert_eq!(page.value("sprag_agent_stops_total", &[("agent", "picky")]), 1.0);
    assert_eq!(page.sum("sprag_agent_requests_total", &[]), calls as f64);
    assert_eq!(page.sum("sprag_agent_tokens_total", &[]), page.sum("sprag_tokens_total", &[]));
    assert!((page.sum("sprag_agent_cost_usd_total", &[]) - page.sum("sprag_cost_usd_total", &[])).abs() < 1e-12);
}

#[tokio::test]
async fn every_label_is_one_of_a_few_words() {
    let place = place("").await;
    fetch(chat(&place, "plain", "gpt-4o", "hello").header("x-sprag-run-id", "a-run-of-mine")).await;
    let path = client::get(place.sprag.url("/v1/files/a-path-of-mine"));
    fetch(path.header("x-sprag-agent", "an-agent-of-mine")).await;
    traffic_of_strangers(&place).await;
    let page = metrics(&place).await;
    let mut names: Vec<&String> =
        page.families.values().flat_map(|f| &f.samples).flat_map(|(_, l, _)| l.keys()).collect();
    names.sort();
    names.dedup();
    let known = [
        "action",
        "as",
        "detector",
        "dialect",
        "direction",
        "kind",
        "le",
        "link",
        "listener",
        "model",
        "outcome",
        "provider",
        "reason",
        "result",
        "version",
        "why",
    ];
    assert!(names.iter().all(|name| known.contains(&name.as_str())), "{names:?}");
    for mine in ["of-mine", "stranger", TOKEN, VIEWER, "127.0.0.1"] {
        assert!(!page.text.contains(mine), "{mine}");
    }
}

async fn traffic_of_strangers(place: &crate::configured::Configured) {
    for number in 0..50 {
        fetch(chat(place, &format!("stranger-{number}"), &format!("stranger-model-{number}"), "hello")).await;
    }
    place.sprag.settled(52).await;
}
