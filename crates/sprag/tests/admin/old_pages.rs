//! Pages that were opened before somebody else changed what they show, and programs that read it before.

use serde_json::{Value, json};

use crate::browser::{Browser, field};
use crate::kills::done;
use crate::world::{World, text};

const BOT: &str = "/agent?name=bot";

/// What a browser sends of a form that nobody wrote in.
fn form_of(page: &str, action: &str) -> Vec<(String, String)> {
    let form = page.split(&format!("action=\"{action}\"")).nth(1).unwrap().split("</form>").next().unwrap();
    let attribute = |tag: &str, name: &str| {
        let value = tag.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?;
        Some(value.replace("&#34;", "\"").replace("&#60;", "<").replace("&#62;", ">").replace("&#38;", "&"))
    };
    let mut fields = Vec::new();
    for part in form.split('<').skip(1) {
        let (tag, rest) = part.split_once('>').unwrap();
        let Some(name) = attribute(tag, "name").filter(|name| name != "csrf") else {
            if tag.starts_with("option") && tag.ends_with(" selected") {
                let select: &mut (String, String) = fields.last_mut().unwrap();
                select.1 = attribute(tag, "value").unwrap();
            }
            continue;
        };
        match tag.split(' ').next().unwrap() {
            "input" if tag.contains("type=\"checkbox\"") && !tag.ends_with(" checked") => {}
            "input" if tag.contains("type=\"checkbox\"") => fields.push((name, "on".to_owned())),
            "input" => fields.push((name, attribute(tag, "value").unwrap_or_default())),
            "textarea" => fields.push((name, rest.to_owned())),
            "select" => fields.push((name, String::new())),
            _ => {}
        }
    }
    fields
}

fn write(form: &mut [(String, String)], name: &str, text: &str) {
    let place = form.iter().position(|(field, _)| field == name);
    assert!(place.is_some(), "no field {name}");
    text.clone_into(&mut form[place.unwrap()].1);
}

fn sent(form: &[(String, String)]) -> Vec<(&str, &str)> {
    form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

async fn set(world: &World) -> Value {
    world.json("/agents/bot").await["override"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_page_saves_what_was_written_in_it_and_nothing_else() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    let first = json!({"policy": {
        "budget": {"daily_limit": 5},
        "models": {"allow": ["gpt-4o*", "claude-*"]},
        "rate_limits": [{"name": "a&b", "requests": 600, "window_seconds": 60, "limit_keys": ["agent"]}, {"rps": 0.5}],
    }});
    done(&world, "PATCH", "/agents/bot", &first).await;
    let mut form = form_of(&browser.page(BOT).await, "/agent/policy");
    browser.done("/agent/policy", &sent(&form)).await;
    let before = set(&world).await;
    assert_eq!(before["budget"], json!({"daily_limit": 5}), "a form that nobody wrote in changes nothing");

    let meanwhile = json!({"policy": {
        "budget": {"daily_limit": 9},
        "run_limits": {"max_steps": 7},
        "models": null,
        "rate_limits": [{"requests": 10, "window_seconds": 1}],
        "dlp": {"profile": "strict"},
    }});
    done(&world, "PATCH", "/agents/bot", &meanwhile).await;
    write(&mut form, "budget.monthly_limit", "100");
    browser.done("/agent/policy", &sent(&form)).await;
    let expected = json!({
        "budget": {"daily_limit": 9, "monthly_limit": "100"},
        "run_limits": {"max_steps": 7},
        "rate_limits": [{"requests": 10, "window_seconds": 1}],
        "dlp": {"profile": "strict"},
    });
    assert_eq!(set(&world).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_overtaken_is_told_and_loses_nothing() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    done(&world, "PATCH", "/agents/bot", &json!({"policy": {"budget": {"daily_limit": 5}}})).await;
    let page = browser.page(BOT).await;
    let mut form = form_of(&page, "/agent/policy");
    write(&mut form, "budget.daily_limit", "6");
    write(&mut form, "hours.time_zone", "Europe/Berlin");
    write(&mut form, "rate-0-amount", "77");
    let meanwhile = json!({"policy": {
        "budget": {"daily_limit": 9},
        "run_limits": {"max_steps": 7},
        "rate_limits": [{"requests": 10, "window_seconds": 1}],
    }});
    done(&world, "PATCH", "/agents/bot", &meanwhile).await;
    let theirs = set(&world).await;

    let answer = browser.send("/agent/policy", &sent(&form)).await;
    assert_eq!(answer.status, 409, "{}", text(&answer));
    let page = text(&answer);
    for said in ["Budget, A day: now 9", "Runs, Most steps: now 7", "Rate limits: other limits hold now", "save again"]
    {
        assert!(page.contains(said), "{said}: {page}");
    }
    let daily = field(&page, "budget.daily_limit");
    assert!(daily.contains("value=\"6\"") && daily.contains("somebody else has changed this: now 9"), "{daily}");
    assert!(field(&page, "hours.time_zone").contains("value=\"Europe/Berlin\""), "{page}");
    assert!(
        field(&page, "run_limits.max_steps").contains("value=\"7\""),
        "what nobody wrote in is as it holds: {page}"
    );
    assert!(page.contains("name=\"rate-0-amount\" value=\"77\""), "{page}");
    assert_eq!(set(&world).await, theirs, "nothing was saved");

    // Seen, and sent again: now it is meant.
    browser.done("/agent/policy", &sent(&form_of(&page, "/agent/policy"))).await;
    let now = set(&world).await;
    assert_eq!((&now["budget"]["daily_limit"], &now["run_limits"]["max_steps"]), (&json!("6"), &json!(7)));
    assert_eq!((&now["rate_limits"][0]["requests"], &now["hours"]["time_zone"]), (&json!(77), &json!("Europe/Berlin")));

    // A button of an old page does not take back what it did not show.
    let mut reset = form_of(&page, "/agent/policy/reset");
    reset.push(("key".to_owned(), "budget.daily_limit".to_owned()));
    assert_eq!(browser.send("/agent/policy/reset", &sent(&reset)).await.status, 409);
    assert_eq!(set(&world).await, now);
    let mut reset = form_of(&browser.page(BOT).await, "/agent/policy/reset");
    reset.push(("key".to_owned(), "budget.daily_limit".to_owned()));
    browser.done("/agent/policy/reset", &sent(&reset)).await;
    assert_eq!(set(&world).await.get("budget"), None);
    form.push(("shown".to_owned(), "no object".to_owned()));
    form.retain(|(name, value)| name != "shown" || value == "no object");
    assert_eq!(browser.send("/agent/policy", &sent(&form)).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_page_leaves_the_kill_switch_as_others_set_it() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    done(&world, "PATCH", "/agents/bot", &json!({"kill_switch": {"enabled": true, "window_size": 30}})).await;
    let old = form_of(&browser.page(BOT).await, "/agent/kill-switch");
    done(&world, "PATCH", "/agents/bot", &json!({"kill_switch": {"window_size": 40}})).await;
    let mut form = old.clone();
    write(&mut form, "threshold", "7.5");
    browser.done("/agent/kill-switch", &sent(&form)).await;
    let switch = json!({"enabled": true, "window_size": 40, "threshold": 7.5});
    assert_eq!(world.json("/agents/bot").await["kill_switch"], switch);

    let mut form = old;
    write(&mut form, "window_size", "50");
    let answer = browser.send("/agent/kill-switch", &sent(&form)).await;
    assert_eq!(answer.status, 409);
    let page = text(&answer);
    assert!(page.contains("a window of 40 and a threshold of 7.5"), "{page}");
    assert_eq!(world.json("/agents/bot").await["kill_switch"], switch);
    let again = form_of(&page, "/agent/kill-switch");
    assert!(again.contains(&("window_size".to_owned(), "50".to_owned())), "{again:?}");
    browser.done("/agent/kill-switch", &sent(&again)).await;
    let expected = json!({"enabled": true, "window_size": 50, "threshold": 7.5});
    assert_eq!(world.json("/agents/bot").await["kill_switch"], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_say_what_their_change_is_based_on() {
    let world = World::start().await;
    let patch = async |tag: Option<&str>, body: Value| {
        let url = format!("http://{}/api/v1/agents/bot", world.sprag.admin);
        let mut call = sprag_testkit::client::post_json(url, &body).method(http::Method::PATCH);
        call = call.header("authorization", &format!("Bearer {}", world.token));
        if let Some(tag) = tag {
            call = call.header("if-match", tag);
        }
        call.fetch().await.unwrap()
    };
    let policy = |limit: u32| json!({"policy": {"budget": {"daily_limit": limit}}});
    let made = patch(None, policy(5)).await;
    let first = made.header("etag").to_owned();
    assert_eq!(world.api("/agents/bot").await.header("etag"), first);
    world.call(&[("x-sprag-agent", "bot")]).await;
    assert_eq!(world.api("/agents/bot").await.header("etag"), first, "a call changes nothing that is set");

    let second = patch(Some(&first), policy(6)).await;
    assert_eq!(second.status, 200);
    assert_ne!(second.header("etag"), first);
    for body in [policy(7), json!({"kill_switch": {"enabled": true}}), json!({"active": false})] {
        let late = patch(Some(&first), body.clone()).await;
        assert_eq!((late.status.as_u16(), late.header("content-type")), (412, "application/problem+json"), "{body}");
        assert!(late.json()["detail"].as_str().unwrap().contains("read it again"));
    }
    let agent = world.json("/agents/bot").await;
    assert_eq!((&agent["override"], &agent["active"]), (&json!({"budget": {"daily_limit": 6}}), &json!(true)));

    let both = json!({"policy": {"budget": {"daily_limit": 8}}, "kill_switch": {"enabled": true}, "active": false});
    assert_eq!(patch(Some(&format!("\"x\", {}", second.header("etag"))), both).await.status, 200, "one of several");
    let agent = world.json("/agents/bot").await;
    assert_eq!((&agent["kill_switch"]["enabled"], &agent["active"]), (&json!(true), &json!(false)));
    assert_eq!(patch(Some("*"), policy(9)).await.status, 200);
    assert_eq!(patch(Some(&format!("W/{first}")), policy(9)).await.status, 412);
    assert_eq!(patch(Some("unquoted"), policy(9)).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_change_the_same_version_one_does() {
    let world = World::start().await;
    done(&world, "PATCH", "/agents/bot", &json!({"policy": {"budget": {"daily_limit": 1}}})).await;
    let tag = world.api("/agents/bot").await.header("etag").to_owned();
    let attempts = (2..12).map(|limit| {
        let url = format!("http://{}/api/v1/agents/bot", world.sprag.admin);
        let body = json!({"policy": {"budget": {"daily_limit": limit}}});
        let call = sprag_testkit::client::post_json(url, &body).method(http::Method::PATCH);
        call.header("authorization", &format!("Bearer {}", world.token)).header("if-match", &tag).fetch()
    });
    let answers = futures_util::future::join_all(attempts).await;
    let done = answers.iter().filter(|answer| answer.as_ref().unwrap().status == 200).count();
    assert_eq!(done, 1);
}
