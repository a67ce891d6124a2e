//! Alerts as people and programs see them: API, page, commands. No secret is ever shown.

use std::process::Command;

use serde_json::{Value, json};
use sprag_core::event::ActKind;
use sprag_testkit::client::{self, Whole};

use crate::configured::Configured;
use crate::receiver::Receiver;

const TOKEN: &str = "an-admin-token-of-the-tests";

async fn place(receiver: &Receiver) -> Configured {
    let text = format!(
        "admin.token = \"{TOKEN}\"\n[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"{}\"\nsecret = \"sign-with-me\"\n\
         allow_private = true\n[alerts.channels.away]\ntype = \"slack\"\nurl = \"http://10.0.0.1/very-private\"\n\
         [[alerts.rules]]\nname = \"loops\"\non = \"loop_detected\"\nagents = [\"prod-*\"]\n",
        receiver.url("/very-private")
    );
    Configured::start(&text).await
}

async fn api(place: &Configured, method: &str, path: &str) -> Whole {
    let call = client::post(format!("http://{}/api/v1{path}", place.sprag.admin), "");
    let call = call.method(method.parse().unwrap()).header("authorization", &format!("Bearer {TOKEN}"));
    call.fetch().await.unwrap()
}

fn shows_no_secret(text: &str) {
    assert!(!text.contains("very-private") && !text.contains("sign-with-me"), "{text}");
}

fn text(answer: &Whole) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_lists_and_tries_channels_and_leaves_a_record() {
    let receiver = Receiver::start().await;
    let place = place(&receiver).await;
    let channels = api(&place, "GET", "/alerts/channels").await;
    shows_no_secret(&text(&channels));
    assert_eq!(channels.json()["items"][1]["name"], "ops");
    assert_eq!(
        (&channels.json()["items"][1]["type"], &channels.json()["items"][1]["signed"]),
        (&json!("webhook"), &json!(true))
    );
    let rules = api(&place, "GET", "/alerts/rules").await.json();
    assert_eq!((&rules["items"][0]["on"], &rules["items"][0]["agents"]), (&json!("loop_detected"), &json!(["prod-*"])));

    let tested = api(&place, "POST", "/alerts/channels/ops/test").await.json();
    assert_eq!((&tested["delivered"], &tested["error"]), (&json!(true), &Value::Null));
    let message = receiver.has(1).await.remove(0);
    assert_eq!(message.json(), tested["alert"]);
    assert!(
        message.header("x-sprag-signature").starts_with("t=") && message.header("x-sprag-signature").contains(",v1=")
    );
    let failed = api(&place, "POST", "/alerts/channels/away/test").await.json();
    assert!(failed["delivered"] == json!(false) && failed["error"].as_str().unwrap().contains("10.0.0.1"), "{failed}");
    assert_eq!(api(&place, "POST", "/alerts/channels/nobody/test").await.status, 404);
    let channels = api(&place, "GET", "/alerts/channels").await.json();
    assert_eq!((&channels["items"][0]["failures"], &channels["items"][1]["failures"]), (&json!(1), &json!(0)));

    let history = api(&place, "GET", "/alerts?limit=1").await;
    shows_no_secret(&text(&history));
    let history = history.json();
    assert_eq!(history["items"][0]["deliveries"][0]["state"], "given_up");
    let next = history["next"].as_str().unwrap();
    let second = api(&place, "GET", &format!("/alerts?cursor={next}")).await.json();
    assert_eq!((&second["items"][0]["deliveries"][0]["state"], &second["next"]), (&json!("delivered"), &Value::Null));
    assert_eq!(api(&place, "GET", "/alerts?cursor=x").await.status, 400);
    let acts: Vec<_> = place.sprag.events().into_iter().filter_map(|event| event.act).collect();
    assert!(acts.iter().any(|act| act.what == ActKind::TestAlert && act.by == "admin" && act.target == "channel:ops"));
    shows_no_secret(&format!("{acts:?}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_and_tries_channels() {
    let receiver = Receiver::start().await;
    let place = place(&receiver).await;
    let at = |path: &str| format!("http://{}{path}", place.sprag.admin);
    let login = client::get(at(&format!("/login?token={TOKEN}"))).fetch().await.unwrap();
    let cookie = login.header("set-cookie").split(';').next().unwrap().to_owned();
    let page = text(&client::get(at("/alerts")).header("cookie", &cookie).fetch().await.unwrap());
    shows_no_secret(&page);
    assert!(page.contains("prod-*") && page.contains("loop_detected") && page.contains("Nothing was told"), "{page}");
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    for (channel, expected) in [("ops", "was delivered"), ("away", "not a public address")] {
        let form = format!("csrf={csrf}&name={channel}");
        let answer = client::post(at("/alerts/test"), form)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("cookie", &cookie);
        let answer = answer.fetch().await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.header("location")), (303, &*format!("/alerts?tested={channel}")));
        let page = client::get(at(answer.header("location"))).header("cookie", &cookie).fetch().await.unwrap();
        shows_no_secret(&text(&page));
        assert!(text(&page).contains(expected), "{}", text(&page));
    }
    assert_eq!(receiver.messages().len(), 1);
    let page = text(&client::get(at("/alerts")).header("cookie", &cookie).fetch().await.unwrap());
    let history = page.split("id=\"history\"").nth(1).unwrap();
    assert!(history.contains("not a public address"), "why it was given up: {history}");

    // Somebody will be told: nobody is asked to set a channel up.
    crate::same_call(&place.sprag.url(""), "task").fetch().await.unwrap();
    place.sprag.settled(1).await;
    let form = format!("csrf={csrf}&name=bot&enabled=on&window_size=30&threshold=7.5");
    let armed = client::post(at("/agent/kill-switch"), form)
        .header("content-type", "application/x-www-form-urlencoded")
        .header("cookie", &cookie);
    assert_eq!(armed.fetch().await.unwrap().header("location"), "/agent?name=bot&saved=1");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_list_and_try_channels() {
    let receiver = Receiver::start().await;
    let place = place(&receiver).await;
    let run = |words: &'static [&'static str]| {
        let admin = place.sprag.admin.to_string();
        tokio::task::spawn_blocking(move || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sprag"));
            let output =
                command.args(words).args(["--admin", &admin]).env("SPRAG_ADMIN_TOKEN", TOKEN).output().unwrap();
            (output.status.code(), String::from_utf8(output.stdout).unwrap())
        })
    };
    let (code, said) = run(&["alerts", "test", "ops"]).await.unwrap();
    assert_eq!((code, said.trim()), (Some(0), "ops: delivered"));
    let (code, said) = run(&["alerts", "test"]).await.unwrap();
    assert!(code == Some(1) && said.contains("away: failed: ") && said.contains("ops: delivered"), "{said}");
    for (words, expected) in [
        (&["alerts"] as &[&str], "test of ops"),
        (&["alerts"], "away given_up: "),
        (&["alerts", "channels"], "webhook"),
        (&["alerts", "rules"], "prod-*"),
    ] {
        let (code, said) = run(words).await.unwrap();
        assert!(code == Some(0) && said.contains(expected), "{said}");
        shows_no_secret(&said);
    }
}
