//! What was found and what would have been stopped, and how this Sprag is set up, on the dashboard.

use serde_json::{Value, json};
use sprag::config::{Secret, Sources};
use sprag::reload::reload;

use crate::browser::Browser;
use crate::kills::done;
use crate::world::{TOKEN, World, is_inert, links};

fn sighting(entity: &str, outcome: &str, text: &str) -> Value {
    json!({"entity": entity, "direction": "request", "outcome": outcome, "path": text, "start": 0, "length": 9, "hint": text})
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_are_counted_and_the_latest_told() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    assert!(browser.page("/dlp").await.contains("sprag scan FILE"));
    let now = world.sprag.app.clock.now().0;
    let odd = "<script>alert(1)</script>";
    let list =
        [sighting("EMAIL", "covered", odd), sighting("OPENAI_KEY", "blocked", odd), sighting(odd, "logged", odd)];
    world.record(now - 1000, json!({"agent": "bot", "dlp": {"list": list, "total": 9}}));
    world.record(now - 5 * 86_400_000, json!({"dlp": {"list": [sighting("EMAIL", "redacted", "a***")], "total": 1}}));
    world.record(now - 500, json!({}));
    for (span, emails) in [("day", "<td>1<svg"), ("week", "<td>2<svg")] {
        let page = browser.page(&format!("/dlp?span={span}")).await;
        assert!(is_inert(&page), "{page}");
        let row = page.split("<code>EMAIL</code><span class=\"aside\">").nth(1).unwrap();
        assert!(row.split("</tr>").next().unwrap().contains(emails), "{span}: {row}");
        for expected in ["1 stopped", "1 logged", "&#60;script&#62;", "and 6 more in this call", "16 of 16"] {
            assert!(page.contains(expected), "{span} {expected}: {page}");
        }
        assert!(links(&page).iter().any(|link| link.starts_with("/run?agent=bot&id=")), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mode_is_changed_for_one_agent() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    world.call(&[("x-sprag-agent", "bot")]).await;
    let form = |kind, way, mode| [("agent", "bot"), ("kind", kind), ("way", way), ("mode", mode)];
    let to = browser.done("/dlp/mode", &form("pii", "modes", "off")).await;
    assert_eq!(to, "/dlp?agent=bot&saved=1#modes");
    browser.done("/dlp/mode", &form("OPENAI_KEY", "request_modes", "strict")).await;
    let set = world.json("/agents/bot").await["override"].clone();
    assert_eq!(set, json!({"dlp": {"modes": {"pii": "off"}, "request_modes": {"OPENAI_KEY": "strict"}}}));
    let page = browser.page("/dlp?agent=bot").await;
    assert!(page.contains("not looked for") && page.contains("stops the call: OPENAI_KEY"), "{page}");
    assert!(!browser.page("/dlp").await.contains("not looked for"), "the defaults stay");
    browser.done("/dlp/mode", &form("pii", "modes", "")).await;
    assert_eq!(world.json("/agents/bot").await["override"]["dlp"].get("modes"), None);
    for bad in [
        form("<script>", "modes", "off"),
        form("EMAIL", "both", "off"),
        form("EMAIL", "modes", "gone"),
        form("a.b", "modes", "off"),
        [("agent", "no agent"), ("kind", "pii"), ("way", "modes"), ("mode", "off")],
    ] {
        let page = browser.refused("/dlp/mode", &bad).await;
        assert!(page.contains("class=\"complaint\"") && is_inert(&page), "{bad:?}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn detectors_are_shown_and_changed() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    world.call(&[("x-sprag-agent", "bot")]).await;
    let page = browser.page("/detectors").await;
    for expected in ["5 repetitions, 6 same results", "score over 10", "kill the run", "detection.preset=observe"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let form = [("agent", "bot"), ("detector", "progress"), ("mode", "shadow"), ("action", "pause")];
    assert_eq!(browser.done("/detectors/set", &form).await, "/detectors?agent=bot&saved=1");
    let set = json!({"detection": {"progress": {"mode": "shadow", "action": "pause"}}});
    assert_eq!(world.json("/agents/bot").await["override"], set);
    // What is left alone stays as it is; what is to be as configured is taken back.
    let mode = [("agent", "bot"), ("detector", "progress"), ("mode", "off"), ("action", "")];
    browser.done("/detectors/set", &mode).await;
    let kept = json!({"detection": {"progress": {"mode": "off", "action": "pause"}}});
    assert_eq!(world.json("/agents/bot").await["override"], kept);
    let back = [("agent", "bot"), ("detector", "progress"), ("mode", "configured"), ("action", "")];
    browser.done("/detectors/set", &back).await;
    let left = json!({"detection": {"progress": {"action": "pause"}}});
    assert_eq!(world.json("/agents/bot").await["override"], left);
    browser.done("/detectors/set", &form).await;
    let page = browser.page("/detectors?agent=bot").await;
    assert!(page.contains(">shadow<") && page.contains("pause the run"), "{page}");
    for bad in [
        [("agent", "bot"), ("detector", "<script>"), ("mode", "shadow"), ("action", "")],
        [("agent", "bot"), ("detector", "exact"), ("mode", "loud"), ("action", "")],
        [("agent", ""), ("detector", "exact"), ("mode", "off"), ("action", "")],
        [("agent", "bot"), ("detector", "exact"), ("mode", ""), ("action", "")],
    ] {
        let page = browser.refused("/detectors/set", &bad).await;
        assert!(page.contains("class=\"complaint\"") && is_inert(&page), "{bad:?}: {page}");
    }
    assert_eq!(world.json("/agents/bot").await["override"], set);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_rules_in_shadow_would_have_stopped_is_told_with_how_it_ended() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    let now = world.sprag.app.clock.now().0;
    let proof = json!({"summary": "", "compared": "", "threshold": 5.0, "value": 5.0, "window": "", "steps": []});
    let shadow = json!({"detector": "progress", "mode": "shadow", "loop_type": "repeated_step", "confidence": 1.0,
        "score": 5.0, "count": 5, "proof": proof, "action": "kill_run", "strike": 1});
    let run = |id: &str, step: u32| json!({"id": id, "step": step, "origin": "declared"});
    let cost = 1_000_000_000_i64;
    world.record(
        now - 40,
        json!({"agent": "bot", "run": run("fine", 1), "cost": cost, "shadow": shadow, "tools": ["x"]}),
    );
    world.record(now - 30, json!({"agent": "bot", "run": run("fine", 2), "cost": cost, "finish": "stop"}));
    let odd = "<script>alert(1)</script>";
    world.record(
        now - 20,
        json!({"agent": "bot", "run": run(odd, 1), "cost": cost, "shadow": shadow, "finish": "tool_calls"}),
    );
    let page = browser.page("/detectors").await;
    assert!(is_inert(&page), "{page}");
    let table = page.split("The latest runs that would have been stopped").nth(1).unwrap();
    assert!(
        table.contains("ended well") && table.contains("tool calls") && table.contains("progress: repeated step"),
        "{table}"
    );
    for expected in ["<dd>2</dd>", "$3.0000", "of the 2 listed below", "<dd class=\"odd\">1</dd>"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(links(&page).contains(&"/run?agent=bot&id=fine".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn thresholds_are_tried_on_what_is_recorded() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    let page = browser.page("/detectors").await;
    assert!(page.contains("placeholder=\"5\"") && !page.contains("would have been stopped</strong>"), "{page}");
    let page = browser.page("/detectors?repeats=3&same_results=&stall=").await;
    assert!(page.contains("<strong>0 of 0 runs would have been stopped</strong>"), "{page}");
    assert!(page.contains("hx-get=\"/detectors?span=week\""), "news do not try them again: {page}");
    for (query, said) in [("repeats=1", "is a number from 2 to 24"), ("stall=%3Cscript%3E", ">a number<")] {
        let page = browser.page(&format!("/detectors?{query}")).await;
        assert!(page.contains(said) && page.contains("class=\"complaint\"") && is_inert(&page), "{query}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_show_what_is_in_force_and_no_secret() {
    let key = "sk-the-key-of-the-provider-0123456789";
    let world = World::configured(TOKEN, |settings| {
        for provider in settings.providers.values_mut() {
            let mut changed = (**provider).clone();
            changed.key = Some(Secret::new(key));
            *provider = changed.into();
        }
    })
    .await;
    let browser = Browser::open(&world).await;
    done(&world, "PATCH", "/agents/bot", &json!({"active": true})).await;
    let page = browser.page("/settings").await;
    let proxy = format!("http://{}", world.sprag.proxy);
    for expected in [
        &proxy,
        "[proxy]",
        "Providers",
        "held by Sprag",
        "OpenAI chat completions",
        "No channel is configured",
        "As it was at the start",
        "catalog.db",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(!page.contains(key) && !page.contains(TOKEN) && is_inert(&page), "{page}");

    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sprag.toml"), "[proxy]\nlisten = \"<script>\"\n").unwrap();
    reload(&world.sprag.app, &Sources { dir: dir.path().to_owned(), ..Sources::default() });
    let page = browser.page("/settings").await;
    assert!(page.contains("The last change of the file was refused") && is_inert(&page), "{page}");

    let text =
        "[proxy]\nlisten = \"127.0.0.1:1\"\n[runs]\nidle_minutes = 7\n[providers.openai]\napi_key = \"sk-planted\"\n";
    std::fs::write(dir.path().join("sprag.toml"), text).unwrap();
    reload(&world.sprag.app, &Sources { dir: dir.path().to_owned(), ..Sources::default() });
    let page = browser.page("/settings").await;
    let row = |key: &str| page.split("<tr>").find(|row| row.contains(&format!("<code>{key}</code>"))).unwrap();
    assert!(
        row("runs.idle_minutes").contains(">7<") && row("runs.idle_minutes").contains("sprag.toml, line 4"),
        "{page}"
    );
    assert!(row("proxy.listen").contains("after a restart") && !row("runs.idle_minutes").contains("restart"), "{page}");
    assert!(row("providers.openai.api_key").contains("held, not shown") && !page.contains("sk-planted"), "{page}");
    assert!(page.contains(">default</span>"), "{page}");
}
