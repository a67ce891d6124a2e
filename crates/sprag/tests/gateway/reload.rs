//! A new configuration for a running program.

use std::fs;

use sprag_core::wire::Dialect;
use sprag_testkit::{Provider, Reply, Script, client};

use crate::binary::{Binary, config, wait_until};
use crate::wire::{path, request};

fn replace(binary: &Binary, provider: &Provider, more: &str) {
    let new = binary.home.join("new.toml");
    fs::write(&new, config(provider, &binary.home, more)).unwrap();
    fs::rename(new, binary.home.join("sprag.toml")).unwrap();
}

async fn status_of(binary: &Binary, path: &str) -> u16 {
    client::get(binary.url(path)).fetch().await.unwrap().status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_written_after_the_start_is_taken_up() {
    let provider = Provider::start(Script::always(Reply::raw(200, "text/plain", "the new one"))).unwrap();
    let home = tempfile::tempdir().unwrap();
    let binary = Binary::start_bare(home.path());
    assert_eq!(status_of(&binary, "/second/x").await, 404);
    let text = format!("providers.second.base_url = \"{}\"\nproviders.second.dialect = \"openai\"", provider.url());
    fs::write(home.path().join("sprag.toml"), text).unwrap();
    binary.says("configuration reloaded", 1).await;
    assert_eq!(client::get(binary.url("/second/x")).fetch().await.unwrap().body, "the new one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_provider_takes_effect_and_open_streams_go_on() {
    let provider = Provider::start(Script::new()).unwrap();
    let second = Provider::start(Script::always(Reply::raw(200, "text/plain", "the second"))).unwrap();
    let home = tempfile::tempdir().unwrap();
    let binary = Binary::start(home.path(), &provider, "");
    let body = request(Dialect::Anthropic, true, "hello");
    let call = client::post_json(binary.url(path(Dialect::Anthropic, true)), &body).header("x-mock-stall", "3");
    let mut stream = call.send().await.unwrap();
    let first = stream.read_at_least(1).await.unwrap();
    assert_eq!(status_of(&binary, "/second/x").await, 404);

    // By the file alone.
    let more = format!("providers.second.base_url = \"{}\"\nproviders.second.dialect = \"openai\"", second.url());
    replace(&binary, &provider, &more);
    binary.says("configuration reloaded", 1).await;
    assert_eq!(client::get(binary.url("/second/x")).fetch().await.unwrap().body, "the second");

    // A bad file changes nothing, and the log says why.
    replace(&binary, &provider, &format!("{more}\nproxy.listn = \"x\""));
    binary.says("the old one stays in force", 1).await;
    assert!(binary.log().contains("listn"), "{}", binary.log());
    assert_eq!(status_of(&binary, "/second/x").await, 200);
    fs::remove_file(home.path().join("sprag.toml")).unwrap();
    binary.signal("HUP");
    binary.says("the old one stays in force", 2).await;
    assert_eq!(status_of(&binary, "/second/x").await, 200);

    // The provider that the stream comes from moves away.
    replace(&binary, &second, "");
    binary.signal("HUP");
    binary.says("configuration reloaded", 2).await;
    assert_eq!(status_of(&binary, "/second/x").await, 404);
    assert_eq!(client::get(binary.url("/v1/models")).fetch().await.unwrap().body, "the second");

    provider.gate().open();
    let rest = stream.whole().await;
    assert!(rest.broken.is_none());
    let whole = [first.as_ref(), rest.body.as_ref()].concat();
    assert!(crate::wire::without_metadata(&whole).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_written_in_place_is_noticed_too() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let binary = Binary::start(home.path(), &provider, "");
    for round in 1..=3 {
        let more = format!("proxy.max_body_bytes = {}", 2000 + round);
        fs::write(home.path().join("sprag.toml"), config(&provider, home.path(), &more)).unwrap();
        binary.says("configuration reloaded", round).await;
    }
    wait_until(|| !binary.log().contains("not usable"), || binary.log()).await;
    let call = client::post(binary.url("/v1/chat/completions"), "x".repeat(2004));
    assert_eq!(call.fetch().await.unwrap().status, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_pointed_elsewhere_is_noticed() {
    let provider = Provider::start(Script::new()).unwrap();
    let (home, versions) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let binary = Binary::start(home.path(), &provider, "");
    for round in 1..=3 {
        let version = versions.path().join(format!("{round}.toml"));
        let more = format!("proxy.max_body_bytes = {}", 3000 + round);
        fs::write(&version, config(&provider, home.path(), &more)).unwrap();
        let link = home.path().join("link");
        std::os::unix::fs::symlink(&version, &link).unwrap();
        fs::rename(link, home.path().join("sprag.toml")).unwrap();
        binary.says("configuration reloaded", round).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_policy_holds_from_the_next_request_on() {
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let binary = Binary::start(home.path(), &provider, "defaults.run_limits.max_steps = 1");
    let step = async |text: &str| {
        let body = request(Dialect::OpenaiChat, false, text);
        let call = client::post_json(binary.url(path(Dialect::OpenaiChat, false)), &body);
        let call = call.header("x-sprag-agent", "bot").header("x-sprag-run-id", text);
        call.fetch().await.unwrap().status.as_u16()
    };
    assert_eq!((step("one").await, step("one").await), (200, 429));
    replace(&binary, &provider, "agents.bot.run_limits.max_steps = 2");
    binary.says("configuration reloaded", 1).await;
    assert_eq!((step("two").await, step("two").await, step("two").await), (200, 200, 429));
}
