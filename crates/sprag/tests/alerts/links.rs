//! Links in messages that approve, kill or resume a run: for whoever has the message, once, and never by being opened.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use futures_util::future::join_all;
use sprag::acts::KillOrder;
use sprag::clock::Clock;
use sprag_core::event::{Act, ActKind};
use sprag_core::id::{AgentName, RunId};
use sprag_core::policy::{Kill, KillKind};
use sprag_testkit::client::{self, Whole};
use sprag_testkit::{Provider, Script};

use crate::binary::Binary;
use crate::configured::{Configured, START, millis};
use crate::receiver::Receiver;
use crate::sprag::Sprag;
use crate::{REJECTING, loop_until_refused, same_call};

const BASE: &str = "https://sprag.example.com";

fn config(receiver: &Receiver, more: &str) -> String {
    format!(
        "{more}[[alerts.rules]]\non = \"run_killed\"\ncooldown_minutes = 0\n[[alerts.rules]]\non = \"loop_detected\"\n\
         [alerts.channels.ops]\ntype = \"webhook\"\nurl = \"{}\"\nallow_private = true\n",
        receiver.url("/")
    )
}

async fn place(receiver: &Receiver) -> Configured {
    Configured::start(&config(receiver, &format!("alerts.dashboard_url = \"{BASE}\"\n"))).await
}

/// Makes a call and pauses its run; gives the tokens of the links in the message about it, by what they do.
async fn pause(place: &Configured, receiver: &Receiver) -> BTreeMap<String, String> {
    same_call(&place.sprag.url(""), "task").fetch().await.unwrap();
    stop(place, receiver, KillKind::Pause).await
}

async fn stop(place: &Configured, receiver: &Receiver, kind: KillKind) -> BTreeMap<String, String> {
    let before = receiver.messages().len();
    place.pass_seconds(1);
    let order = KillOrder {
        kind,
        scope: "run:bot/task".parse().unwrap(),
        reason: "wants to <delete> the database".to_owned(),
        by: "anna".to_owned(),
        expires_at: None,
        proof: None,
    };
    place.sprag.app.kill(order).await.unwrap();
    tokens(receiver, before + 1).await
}

/// The tokens in the message of this number.
async fn tokens(receiver: &Receiver, number: usize) -> BTreeMap<String, String> {
    let message = receiver.has(number).await[number - 1].json();
    let links = message["actions"].as_array().cloned().unwrap_or_default();
    let token = |url: &str| url.strip_prefix(&format!("{BASE}/act?t=")).unwrap().to_owned();
    links.iter().map(|link| (link["act"].as_str().unwrap().to_owned(), token(link["url"].as_str().unwrap()))).collect()
}

async fn open(sprag: &Sprag, token: &str) -> Whole {
    client::get(format!("http://{}/act?t={token}", sprag.admin)).fetch().await.unwrap()
}

async fn press(sprag: &Sprag, token: &str) -> Whole {
    let call = client::post(format!("http://{}/act", sprag.admin), format!("t={token}"));
    call.header("content-type", "application/x-www-form-urlencoded").fetch().await.unwrap()
}

fn text(answer: &Whole) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// Both ways of using a link say this.
async fn says(sprag: &Sprag, token: &str, status: u16, title: &str) {
    for answer in [open(sprag, token).await, press(sprag, token).await] {
        assert_eq!(answer.status, status, "{}", text(&answer));
        assert!(text(&answer).contains(&format!("<h1>{title}</h1>")), "{}", text(&answer));
        assert!(!text(&answer).contains("<button"), "{}", text(&answer));
    }
}

fn kill_in_force(sprag: &Sprag) -> Option<Arc<Kill>> {
    let (agent, run) = (AgentName::parse("bot").unwrap(), RunId::parse("task").unwrap());
    sprag.app.catalog.snapshot().kills.of_run(&agent, &run).cloned()
}

/// What was done by links.
fn acts(sprag: &Sprag) -> Vec<Act> {
    let acts = sprag.events().into_iter().filter_map(|event| event.act.map(|act| *act));
    acts.filter(|act| act.by.starts_with("link")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_shows_what_it_will_do_and_does_it_once() {
    let receiver = Receiver::start().await;
    let place = place(&receiver).await;
    let links = pause(&place, &receiver).await;
    assert_eq!(links.keys().collect::<Vec<_>>(), ["approve", "kill"]);
    let alert = receiver.messages()[0].json()["id"].as_str().unwrap().to_owned();

    for _ in 0..3 {
        let page = open(&place.sprag, &links["approve"]).await;
        assert_eq!(page.status, 200);
        let shown = text(&page);
        for expected in ["Approve this run?", "bot", "task", "wants to &#60;delete&#62;", "by anna", "Cost so far", "$"]
        {
            assert!(shown.contains(expected), "{expected}: {shown}");
        }
        assert!(page.header("content-security-policy").contains("default-src 'none'"));
        assert_eq!(page.header("referrer-policy"), "no-referrer");
        assert_eq!((page.header("cache-control"), page.header("set-cookie")), ("no-store", ""));
    }
    assert_eq!(kill_in_force(&place.sprag).unwrap().kind, KillKind::Pause, "opening does nothing");

    let answer = press(&place.sprag, &links["approve"]).await;
    assert!(answer.status == 200 && text(&answer).contains("<h1>Approved</h1>"), "{}", text(&answer));
    assert_eq!(kill_in_force(&place.sprag), None);
    assert_eq!(same_call(&place.sprag.url(""), "task").fetch().await.unwrap().status, 200);
    says(&place.sprag, &links["approve"], 410, "This link was used before").await;
    let acts = acts(&place.sprag);
    assert_eq!(acts.len(), 1, "{acts:?}");
    assert_eq!((acts[0].what, &acts[0].by), (ActKind::Approve, &format!("link ({alert})")));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_killed_and_resumed_by_links() {
    let receiver = Receiver::start().await;
    let place = place(&receiver).await;
    let links = pause(&place, &receiver).await;
    place.pass_seconds(1);
    let answer = press(&place.sprag, &links["kill"]).await;
    assert!(text(&answer).contains("<h1>Killed</h1>"), "{}", text(&answer));
    assert_eq!(kill_in_force(&place.sprag).unwrap().kind, KillKind::Kill);
    assert_ne!(same_call(&place.sprag.url(""), "task").fetch().await.unwrap().status, 200);
    says(&place.sprag, &links["approve"], 409, "The run is killed already").await;

    let links = tokens(&receiver, 2).await;
    assert_eq!(links.keys().collect::<Vec<_>>(), ["resume"]);
    let answer = press(&place.sprag, &links["resume"]).await;
    assert!(text(&answer).contains("<h1>Resumed</h1>"), "{}", text(&answer));
    assert_eq!(kill_in_force(&place.sprag), None);
    let done: Vec<ActKind> = acts(&place.sprag).iter().map(|act| act.what).collect();
    assert_eq!(done, [ActKind::Kill, ActKind::Resume]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_loops_is_killed_by_a_link() {
    let receiver = Receiver::start().await;
    let text_of = config(&receiver, &format!("{REJECTING}alerts.dashboard_url = \"{BASE}\"\n"));
    let place = Configured::start_with(Script::new(), &text_of, false).await;
    loop_until_refused(&place.sprag.url(""), "task").await;
    let links = tokens(&receiver, 1).await;
    assert_eq!(links.keys().collect::<Vec<_>>(), ["kill"]);
    assert_eq!(press(&place.sprag, &links["kill"]).await.status, 200);
    assert_eq!(kill_in_force(&place.sprag).unwrap().kind, KillKind::Kill);
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_at_once_do_it_once() {
    let receiver = Receiver::start().await;
    let place = place(&receiver).await;
    let links = pause(&place, &receiver).await;
    let answers = join_all((0..20).map(|_| press(&place.sprag, &links["kill"]))).await;
    let mut by_status: BTreeMap<u16, usize> = BTreeMap::new();
    answers.iter().for_each(|answer| *by_status.entry(answer.status.as_u16()).or_default() += 1);
    // Who reads the run after it was killed, and before the link counts as used to him, is told that.
    let refused: usize = by_status.iter().filter(|(status, _)| [410, 409].contains(*status)).map(|(_, n)| n).sum();
    assert_eq!((by_status.get(&200), refused), (Some(&1), 19), "{by_status:?}");
    assert_eq!(acts(&place.sprag).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_nobody_made_are_refused_and_their_guessers_slowed_down() {
    let receiver = Receiver::start().await;
    let place = place(&receiver).await;
    let links = pause(&place, &receiver).await;
    let (payload, tag) = links["approve"].split_once('.').unwrap();
    let (_, other_tag) = links["kill"].split_once('.').unwrap();
    for bad in [format!("{payload}.{other_tag}"), format!("{payload}x.{tag}"), payload.to_owned(), String::new()] {
        says(&place.sprag, &bad, 403, "This link is not valid").await;
    }
    let mut last = 403;
    for _ in 0..3 {
        last = press(&place.sprag, "guess").await.status.as_u16();
    }
    assert_eq!(last, 429);
    assert_eq!(open(&place.sprag, "guess").await.header("retry-after"), "60");
    assert_eq!(kill_in_force(&place.sprag).unwrap().kind, KillKind::Pause);
    assert_eq!(press(&place.sprag, &links["approve"]).await.status, 200, "a guesser locks nobody out");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_end() {
    let receiver = Receiver::start().await;
    let place = place(&receiver).await;
    let links = pause(&place, &receiver).await;
    place.pass_seconds(24 * 3600 - 1);
    assert_eq!(open(&place.sprag, &links["approve"]).await.status, 200);
    place.pass_seconds(1);
    says(&place.sprag, &links["approve"], 410, "This link has expired").await;
    assert_eq!(kill_in_force(&place.sprag).unwrap().kind, KillKind::Pause);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_does_nothing_once_its_message_is_out_of_date() {
    let receiver = Receiver::start().await;
    let place = place(&receiver).await;
    let first = pause(&place, &receiver).await;
    place.lift(kill_in_force(&place.sprag).unwrap().id.clone()).await;
    says(&place.sprag, &first["approve"], 409, "The run is not stopped any more").await;
    let second = stop(&place, &receiver, KillKind::Pause).await;
    says(&place.sprag, &first["approve"], 409, "The run was stopped again since").await;
    assert_eq!(open(&place.sprag, &second["approve"]).await.status, 200);
    place.lift(kill_in_force(&place.sprag).unwrap().id.clone()).await;
    // Without a call for an hour it counts as ended.
    place.pass_seconds(2 * 3600);
    says(&place.sprag, &second["kill"], 409, "The run has ended").await;
    assert_eq!(acts(&place.sprag).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_outlive_a_restart_and_so_does_their_use() {
    let receiver = Receiver::start().await;
    let place = place(&receiver).await;
    let links = pause(&place, &receiver).await;
    place.pass_seconds(1);
    assert_eq!(press(&place.sprag, &links["kill"]).await.status, 200);
    let resume = tokens(&receiver, 2).await["resume"].clone();
    let settings = (*place.sprag.app.settings.load_full()).clone();
    let data = place.sprag.stop().await;

    let provider = Provider::start(Script::new()).unwrap();
    let clock = Clock::Scripted(Arc::new(AtomicI64::new(millis(START))));
    let again = Sprag::start_at(&provider, clock, |fresh| {
        *fresh = settings;
        fresh.data_dir = data.path().to_owned();
    })
    .await;
    says(&again, &links["kill"], 410, "This link was used before").await;
    assert_eq!(press(&again, &resume).await.status, 200);
    assert_eq!(kill_in_force(&again), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_need_an_address_and_stand_in_no_record() {
    let receiver = Receiver::start().await;
    let place = place(&receiver).await;
    assert_eq!(pause(&place, &receiver).await.len(), 2);
    let kept = place.sprag.app.alerts.outbox.list(None, 10).unwrap();
    assert!(!kept.is_empty() && !format!("{kept:?}").contains("/act?t="), "{kept:?}");
    for file in std::fs::read_dir(place.sprag.data.path()).unwrap() {
        let file = file.unwrap().path();
        if file.is_file() {
            let bytes = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
            assert!(!bytes.contains("/act?t="), "{}", file.display());
        }
    }
    for more in ["", "alerts.link_hours = 0\nalerts.dashboard_url = \"https://sprag.example.com\"\n"] {
        let receiver = Receiver::start().await;
        let place = Configured::start(&config(&receiver, more)).await;
        assert_eq!(pause(&place, &receiver).await.len(), 0, "{more}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_link_is_written_to_the_log() {
    let receiver = Receiver::start().await;
    let provider = Provider::start(Script::new()).unwrap();
    let home = tempfile::tempdir().unwrap();
    let more = format!("log.level = \"trace\"\n{REJECTING}alerts.dashboard_url = \"{BASE}\"\n");
    let mut binary = Binary::start(home.path(), &provider, &config(&receiver, &more));
    loop_until_refused(&binary.url(""), "task").await;
    let token = tokens(&receiver, 1).await["kill"].clone();
    let greeting = std::fs::read_to_string(home.path().join("stdout")).unwrap();
    let admin = greeting.split_whitespace().skip_while(|word| *word != "dashboard").nth(1).unwrap();
    let admin = admin.split('/').nth(2).unwrap();
    let opened = client::get(format!("http://{admin}/act?t={token}")).fetch().await.unwrap();
    assert_eq!(opened.status, 200, "{}", text(&opened));
    let call = client::post(format!("http://{admin}/act"), format!("t={token}"));
    let pressed = call.header("content-type", "application/x-www-form-urlencoded").fetch().await.unwrap();
    assert_eq!(pressed.status, 200, "{}", text(&pressed));
    client::get(format!("http://{admin}/act?t={token}x")).fetch().await.unwrap();
    binary.signal("TERM");
    assert_eq!(binary.exit_code().await, Some(0), "{}", binary.log());
    let (payload, tag) = token.split_once('.').unwrap();
    let log = binary.log();
    assert!(!log.is_empty() && !log.contains(payload) && !log.contains(tag), "{log}");
}
