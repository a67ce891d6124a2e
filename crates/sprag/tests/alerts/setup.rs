//! Channels and rules made at run time, by API, page and command; and alerts that are sent again.

use std::process::Command;

use serde_json::{Value, json};
use sprag_core::event::ActKind;
use sprag_testkit::Script;
use sprag_testkit::client::{self, Whole};

use crate::binary::wait_until;
use crate::configured::Configured;
use crate::receiver::Receiver;
use crate::{REJECTING, loop_of};

const TOKEN: &str = "an-admin-token-of-the-tests";
const VIEWER: &str = "a-viewer-token-of-the-tests";

async fn place(more: &str) -> Configured {
    let text = format!("admin.token = \"{TOKEN}\"\nadmin.viewer_token = \"{VIEWER}\"\n{REJECTING}{more}");
    Configured::start_with(Script::new(), &text, false).await
}

async fn ask(place: &Configured, token: &str, method: &str, path: &str, body: Value) -> Whole {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let call = client::post(format!("http://{}/api/v1{path}", place.sprag.admin), body);
    let call = call.method(method.parse().unwrap()).header("authorization", &format!("Bearer {token}"));
    call.fetch().await.unwrap()
}

async fn api(place: &Configured, method: &str, path: &str, body: Value) -> Whole {
    ask(place, TOKEN, method, path, body).await
}

fn text(answer: &Whole) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

fn shows_no_secret(text: &str) {
    assert!(!text.contains("very-private") && !text.contains("sign-with-me"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_makes_changes_and_deletes_channels_and_rules() {
    let (receiver, second) = (Receiver::start().await, Receiver::start().await);
    let place = place("").await;
    let channel = json!({"type": "webhook", "url": receiver.url("/very-private"), "allow_private": true,
        "secret": "sign-with-me"});
    let made = api(&place, "POST", "/alerts/channels", json!({"name": "ops", "channel": channel})).await;
    assert_eq!(made.status, 200, "{}", text(&made));
    shows_no_secret(&text(&made));
    assert_eq!((&made.json()["configured"], &made.json()["written"]["secret"]), (&json!(false), &json!("***")));
    let rule = json!({"on": "loop_detected", "cooldown_minutes": 1000});
    assert_eq!(api(&place, "POST", "/alerts/rules", json!({"name": "loops", "rule": rule})).await.status, 200);
    loop_of(&place.sprag.url(""), "anna", "task").await;
    let message = receiver.has(1).await.remove(0);
    assert_eq!(message.json()["rule"], "loops");
    assert!(message.header("x-sprag-signature").contains(",v1="), "{message:?}");

    // Another address; the secret stays, also where its mask comes back.
    let change = json!({"channel": {"url": second.url("/very-private"), "secret": "***"}});
    let changed = api(&place, "PATCH", "/alerts/channels/ops", change).await;
    assert_eq!(changed.status, 200, "{}", text(&changed));
    let patched = api(&place, "PATCH", "/alerts/rules/loops", json!({"rule": {"agents": ["b*"]}})).await;
    assert_eq!(patched.json()["agents"], json!(["b*"]));
    assert_eq!(patched.json()["cooldown_minutes"], 1000);
    loop_of(&place.sprag.url(""), "carl", "task").await;
    loop_of(&place.sprag.url(""), "ben", "task").await;
    let message = second.has(1).await.remove(0);
    assert_eq!(message.json()["agent"], "ben", "carl is no longer told of");
    assert!(message.header("x-sprag-signature").contains(",v1="), "{message:?}");

    let named = json!({"name": "named", "rule": {"on": "dlp", "channels": ["ops"]}});
    assert_eq!(api(&place, "POST", "/alerts/rules", named).await.status, 200);
    let refused = api(&place, "DELETE", "/alerts/channels/ops", Value::Null).await;
    assert!(refused.status == 409 && text(&refused).contains("named"), "{}", text(&refused));
    for (path, status) in [
        ("/alerts/rules/named", 200),
        ("/alerts/rules/loops", 200),
        ("/alerts/channels/ops", 200),
        ("/alerts/channels/ops", 404),
    ] {
        let deleted = api(&place, "DELETE", path, Value::Null).await;
        assert_eq!(deleted.status, status, "{path}: {}", text(&deleted));
        shows_no_secret(&text(&deleted));
    }
    let acts: Vec<_> = place.sprag.events().into_iter().filter_map(|event| event.act).collect();
    let set: Vec<String> = (acts.iter().filter(|act| act.what == ActKind::SetAlerts))
        .map(|act| format!("{} {} by {}", act.target, act.reason, act.by))
        .collect();
    assert_eq!(
        set,
        [
            "channel:ops created by admin",
            "rule:loops created by admin",
            "channel:ops changed by admin",
            "rule:loops changed by admin",
            "rule:named created by admin",
            "rule:named deleted by admin",
            "rule:loops deleted by admin",
            "channel:ops deleted by admin"
        ]
    );
    shows_no_secret(&format!("{acts:?}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused_with_its_place_and_viewers_change_nothing() {
    let place = place(
        "[alerts.channels.filed]\ntype = \"slack\"\nurl = \"https://example.com/very-private\"\n\
         [[alerts.rules]]\nname = \"filed\"\non = \"dlp\"\n",
    )
    .await;
    let slack = json!({"type": "slack", "url": "https://example.com/very-private"});
    for (method, path, body, status, said) in [
        ("POST", "/alerts/channels", json!({}), 400, "`name`"),
        ("POST", "/alerts/channels", json!({"name": "x"}), 400, "`channel`"),
        ("POST", "/alerts/channels", json!({"name": "X Y", "channel": slack}), 400, "lower-case"),
        ("POST", "/alerts/channels", json!({"name": "x", "channel": {"type": "slack"}}), 400, "\"key\":\"url\""),
        ("POST", "/alerts/channels", json!({"name": "x", "channel": {"type": "owl"}}), 400, "\"key\":\"type\""),
        ("POST", "/alerts/channels", json!({"name": "filed", "channel": slack}), 409, "configuration"),
        ("PATCH", "/alerts/channels/filed", json!({"channel": {"url": "https://x/"}}), 409, "configuration"),
        ("DELETE", "/alerts/channels/filed", Value::Null, 409, "configuration"),
        ("PATCH", "/alerts/channels/none", json!({"channel": slack}), 404, "no channel"),
        ("POST", "/alerts/rules", json!({"rule": {}}), 400, "`on`"),
        ("POST", "/alerts/rules", json!({"rule": {"on": "budget", "thresholds": [0]}}), 400, "thresholds[0]"),
        ("POST", "/alerts/rules", json!({"rule": {"on": "budget", "channels": ["nobody"]}}), 400, "channels[0]"),
        ("POST", "/alerts/rules", json!({"name": "filed", "rule": {"on": "dlp"}}), 409, "configuration"),
        ("PATCH", "/alerts/rules/filed", json!({"rule": {"on": "dlp"}}), 409, "configuration"),
        ("DELETE", "/alerts/rules/filed", Value::Null, 409, "configuration"),
        ("DELETE", "/alerts/rules/none", Value::Null, 404, "no rule"),
        ("POST", "/alerts/alert_0/resend", json!({}), 404, "no alert"),
    ] {
        let seen = ask(&place, VIEWER, method, path, body.clone()).await;
        assert_eq!(seen.status, 403, "{method} {path}");
        let refused = api(&place, method, path, body.clone()).await;
        assert!(refused.status == status && text(&refused).contains(said), "{path} {body}: {}", text(&refused));
        shows_no_secret(&text(&refused));
    }
    let channels = api(&place, "GET", "/alerts/channels", Value::Null).await.json();
    assert_eq!((channels["items"].as_array().unwrap().len(), &channels["items"][0]["configured"]), (1, &json!(true)));
    let twice = json!({"name": "x", "channel": slack});
    assert_eq!(api(&place, "POST", "/alerts/channels", twice.clone()).await.status, 200);
    assert_eq!(api(&place, "POST", "/alerts/channels", twice).await.status, 409);
    for number in 2..64 {
        let body = json!({"name": format!("x{number}"), "channel": slack});
        assert_eq!(api(&place, "POST", "/alerts/channels", body).await.status, 200, "{number}");
    }
    let many = api(&place, "POST", "/alerts/channels", json!({"name": "y", "channel": slack})).await;
    assert!(many.status == 409 && text(&many).contains("64"), "{}", text(&many));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_given_up_is_sent_again_with_the_same_id() {
    let receiver = Receiver::judging_in_turn(&["422 Unprocessable", "200 OK"]).await;
    let place = place(&format!(
        "[alerts.channels.ops]\ntype = \"webhook\"\nurl = \"{}\"\nallow_private = true\n\
         [[alerts.rules]]\non = \"loop_detected\"\n",
        receiver.url("/")
    ))
    .await;
    loop_of(&place.sprag.url(""), "anna", "task").await;
    let backlog = || place.sprag.app.alerts.outbox.backlog().unwrap();
    wait_until(|| backlog().given_up == 1, || format!("{:?}", backlog())).await;
    let counts = api(&place, "GET", "/alerts/counts", Value::Null).await.json();
    assert_eq!((&counts["given_up"], &counts["given_up_since_start"]), (&json!(1), &json!(1)));
    let id = receiver.messages()[0].header("x-sprag-id");
    let path = format!("/alerts/{id}/resend");
    let other = api(&place, "POST", &path, json!({"channel": "other"})).await;
    assert!(other.status == 409 && text(&other).contains("given up"), "{}", text(&other));
    let again = api(&place, "POST", &path, json!({})).await;
    assert_eq!((again.status.as_u16(), &again.json()["messages"]), (200, &json!(1)));
    let messages = receiver.has(2).await;
    assert_eq!(messages[1].header("x-sprag-id"), id);
    wait_until(|| backlog().given_up == 0 && backlog().waiting == 0, || format!("{:?}", backlog())).await;
    assert_eq!(api(&place, "POST", &path, json!({})).await.status, 409);
    let acts: Vec<_> = place.sprag.events().into_iter().filter_map(|event| event.act).collect();
    assert!(acts.iter().any(|act| act.what == ActKind::ResendAlert && act.target == format!("alert:{id}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_makes_changes_and_deletes_and_sends_again() {
    let receiver = Receiver::judging_in_turn(&["400 Bad Request", "200 OK"]).await;
    let place = place("").await;
    let at = |path: &str| format!("http://{}{path}", place.sprag.admin);
    let login = client::get(at(&format!("/login?token={TOKEN}"))).fetch().await.unwrap();
    let cookie = login.header("set-cookie").split(';').next().unwrap().to_owned();
    let page = async |path: &str| text(&client::get(at(path)).header("cookie", &cookie).fetch().await.unwrap());
    let csrf = {
        let page = page("/alerts").await;
        page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    let post = async |path: &str, fields: &[(&str, &str)]| {
        let encode =
            |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
        let mut form = format!("csrf={csrf}");
        fields.iter().for_each(|(name, value)| form.push_str(&format!("&{name}={}", encode(value))));
        let call = client::post(at(path), form).header("content-type", "application/x-www-form-urlencoded");
        call.header("cookie", &cookie).fetch().await.unwrap()
    };
    let url = receiver.url("/very-private");
    let wrong = post(
        "/alerts/channels",
        &[("channel-name", "ops"), ("channel-type", "webhook"), ("channel-secret", "sign-with-me")],
    )
    .await;
    assert!(wrong.status == 400 && text(&wrong).contains("a channel of this type needs it"), "{}", text(&wrong));
    shows_no_secret(&text(&wrong));
    let fields = [
        ("channel-name", "ops"),
        ("channel-type", "webhook"),
        ("channel-url", url.as_str()),
        ("channel-allow_private", "true"),
    ];
    let made = post("/alerts/channels", &fields).await;
    assert_eq!(made.status, 303, "{}", text(&made));
    assert_eq!(
        post("/alerts/rules", &[("rule-on", "loop_detected"), ("rule-cooldown_minutes", "1000")]).await.status,
        303
    );
    // The address is left empty: it stays.
    let changed = post(
        "/alerts/channels",
        &[("channel-name", "ops"), ("channel-type", "webhook"), ("channel-allow_private", "true")],
    )
    .await;
    assert_eq!(changed.status, 303, "{}", text(&changed));
    let shown = page("/alerts?channel=ops").await;
    shows_no_secret(&shown);
    assert!(
        shown.contains("value=\"ops\"") && shown.contains("stays as it is") && shown.contains("loop_detected"),
        "{shown}"
    );

    loop_of(&place.sprag.url(""), "anna", "task").await;
    let backlog = || place.sprag.app.alerts.outbox.backlog().unwrap();
    wait_until(|| backlog().given_up == 1, || format!("{:?}", backlog())).await;
    assert!(page("/alerts").await.contains("Send again"));
    let id = receiver.messages()[0].header("x-sprag-id");
    assert_eq!(post("/alerts/send-again", &[("id", &id), ("channel", "ops")]).await.status, 303);
    receiver.has(2).await;
    assert_eq!(post("/alerts/rules/delete", &[("name", "loop_detected")]).await.status, 303);
    assert_eq!(post("/alerts/channels/delete", &[("name", "ops")]).await.status, 303);
    assert!(place.sprag.app.alerts.in_force().channels.is_empty());
    // Viewers see no forms.
    let login = client::get(at(&format!("/login?token={VIEWER}"))).fetch().await.unwrap();
    let viewer = login.header("set-cookie").split(';').next().unwrap().to_owned();
    let seen = text(&client::get(at("/alerts")).header("cookie", &viewer).fetch().await.unwrap());
    assert!(!seen.contains("Save channel") && !seen.contains("Save rule"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_make_change_and_delete_and_page() {
    let receiver = Receiver::judging_in_turn(&["200 OK", "200 OK", "422 Unprocessable", "200 OK"]).await;
    let place = place("").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("url");
    std::fs::write(&file, receiver.url("/very-private")).unwrap();
    let run = async |words: &[&str]| {
        let (admin, words) =
            (place.sprag.admin.to_string(), words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let ran = tokio::task::spawn_blocking(move || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sprag"));
            let output =
                command.args(words).args(["--admin", &admin]).env("SPRAG_ADMIN_TOKEN", TOKEN).output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            (output.status.code(), String::from_utf8(said).unwrap())
        });
        let (code, said) = ran.await.unwrap();
        shows_no_secret(&said);
        (code, said)
    };
    let url = format!("url=@{}", file.display());
    let made = run(&["alerts", "add-channel", "ops", "type=webhook", &url, "allow_private=true"]).await;
    assert_eq!(made, (Some(0), "channel ops is made\n".to_owned()));
    let made = run(&["alerts", "add-rule", "loops", "on=loop_detected", "agents=a*,b*", "cooldown_minutes=1000"]).await;
    assert_eq!(made, (Some(0), "rule loops is made\n".to_owned()));
    assert_eq!(run(&["alerts", "set-rule", "loops", "agents="]).await.0, Some(0));
    let (_, rules) = run(&["alerts", "rules"]).await;
    assert!(rules.contains("made here") && !rules.contains("a*"), "{rules}");
    let (code, said) = run(&["alerts", "set-channel", "ops", "type=pigeon"]).await;
    assert!(code == Some(1) && said.contains("`type`"), "{said}");
    for agent in ["anna", "ben", "carl"] {
        let before = receiver.arrived();
        loop_of(&place.sprag.url(""), agent, "task").await;
        wait_until(|| receiver.arrived() > before, || "it never came".to_owned()).await;
    }
    let backlog = || place.sprag.app.alerts.outbox.backlog().unwrap();
    wait_until(|| backlog().given_up == 1, || format!("{:?}", backlog())).await;
    let (_, first) = run(&["alerts", "--limit", "2"]).await;
    let cursor = first.split("--cursor ").nth(1).unwrap().trim().to_owned();
    let (_, second) = run(&["alerts", "--cursor", &cursor]).await;
    let of = |agent: &str| {
        (first.contains(&format!("{agent} is in a loop")), second.contains(&format!("{agent} is in a loop")))
    };
    assert_eq!((of("carl"), of("anna")), ((true, false), (false, true)), "{first}\n{second}");
    let id = receiver.messages().iter().find(|message| message.json()["agent"] == "carl").unwrap().header("x-sprag-id");
    let again = run(&["alerts", "send-again", &id]).await;
    assert_eq!(again, (Some(0), format!("{id} is sent again to 1 channel\n")));
    receiver.has(4).await;
    assert_eq!(run(&["alerts", "remove-rule", "loops"]).await.0, Some(0));
    assert_eq!(run(&["alerts", "remove-channel", "ops"]).await, (Some(0), "channel ops is deleted\n".to_owned()));
}
