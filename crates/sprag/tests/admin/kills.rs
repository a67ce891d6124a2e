//! Stopping and letting go through the API and the pages.

use serde_json::{Value, json};
use sprag_testkit::client::{self, Whole};

use crate::browser::Browser;
use crate::world::{TOKEN, World, text};

const RUN: (&str, &str) = ("x-sprag-run-id", "a/b");
const PATH: &str = "/runs/default/a%2Fb";

pub(crate) async fn order(world: &World, method: &str, path: &str, body: &Value) -> Whole {
    let url = format!("http://{}/api/v1{path}", world.sprag.admin);
    let call = client::post_json(url, body).method(method.parse().unwrap());
    call.header("authorization", &format!("Bearer {}", world.token)).fetch().await.unwrap()
}

pub(crate) async fn done(world: &World, method: &str, path: &str, body: &Value) -> Value {
    let answer = order(world, method, path, body).await;
    assert_eq!(answer.status, 200, "{method} {path}: {}", text(&answer));
    answer.json()
}

pub(crate) async fn refused(world: &World, method: &str, path: &str, body: &Value) -> (u16, String) {
    let answer = order(world, method, path, body).await;
    assert_eq!(answer.header("content-type"), "application/problem+json", "{method} {path}: {}", text(&answer));
    (answer.status.as_u16(), answer.json()["detail"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_killed_shown_so_and_resumed() {
    let world = World::start().await;
    world.call(&[RUN]).await;
    let kill = done(&world, "POST", &format!("{PATH}/kill"), &json!({"reason": "too much", "by": "anna"})).await;
    assert_eq!(
        (&kill["scope"], &kill["kind"], &kill["by"]),
        (&"run:default/a/b".into(), &"kill".into(), &"admin (anna)".into())
    );
    assert_eq!(world.call(&[RUN]).await.status, 403);
    let run = world.json(PATH).await;
    assert_eq!((&run["run"]["status"], &run["run"]["stopped"]["reason"]), (&"killed".into(), &"too much".into()));
    assert_eq!(run["steps"]["items"].as_array().unwrap().len(), 2, "the kill is no step");
    assert_eq!(world.json("/runs?status=killed").await["items"][0]["id"], "a/b");
    assert_eq!(world.json("/kills").await["items"], json!([kill]));

    let (status, why) = refused(&world, "POST", &format!("{PATH}/approve"), &json!({})).await;
    assert_eq!(status, 409);
    assert!(why.contains("resume it"), "{why}");
    assert_eq!(done(&world, "POST", &format!("{PATH}/resume"), &json!({})).await["id"], kill["id"]);
    assert_eq!(world.call(&[RUN]).await.status, 200);
    assert_eq!(world.json(PATH).await["run"]["stopped"], Value::Null);
    assert_eq!(refused(&world, "POST", &format!("{PATH}/resume"), &json!({})).await.0, 409);

    done(&world, "POST", &format!("{PATH}/kill"), &json!({"pause": true})).await;
    assert_eq!(world.call(&[RUN]).await.header("x-sprag-blocked"), "run_paused");
    assert_eq!(world.json("/runs?status=paused").await["items"][0]["stopped"]["reason"], "manual");
    done(&world, "POST", &format!("{PATH}/approve"), &json!({})).await;

    let events = world.json("/events?run=a%2Fb").await;
    let acts: Vec<_> = events["items"].as_array().unwrap().iter().filter(|event| event["kind"] == "admin").collect();
    let told: Vec<_> = acts.iter().rev().map(|e| (e["act"]["what"].clone(), e["act"]["by"].clone())).collect();
    let expected = [("kill", "admin (anna)"), ("resume", "admin"), ("pause", "admin"), ("approve", "admin")];
    assert_eq!(told, expected.map(|(what, by)| (what.into(), by.into())));
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_killed_runs_are_remembered_as_the_configuration_says() {
    let world = World::configured(TOKEN, |settings| settings.runs.max_killed = 2).await;
    for run in ["first", "second", "third"] {
        done(&world, "POST", &format!("/runs/default/{run}/kill"), &json!({})).await;
    }
    let kills = world.json("/kills").await;
    let mut scopes: Vec<_> =
        kills["items"].as_array().unwrap().iter().map(|kill| kill["scope"].as_str().unwrap()).collect();
    scopes.sort_unstable();
    assert_eq!(scopes, ["run:default/second", "run:default/third"], "the oldest left");
}

#[tokio::test(flavor = "multi_thread")]
async fn wider_kills_are_listed_and_lifted() {
    let world = World::start().await;
    let wide = json!({"scope": "header:x-tool-name=web_search", "expires_in_seconds": 3600});
    let kill = done(&world, "POST", "/kills", &wide).await;
    assert!(kill["expires_at"].as_str().unwrap() > kill["at"].as_str().unwrap());
    assert_eq!(world.call(&[("x-tool-name", "web_search")]).await.status, 403);
    let all = done(&world, "POST", "/kills", &json!({"scope": "all", "reason": "panic"})).await;
    assert_eq!(world.call(&[]).await.status, 403);
    let first = world.json("/kills?limit=1").await;
    assert_eq!(first["items"], json!([all]));
    let second = world.json(&format!("/kills?limit=1&cursor={}", first["next"].as_str().unwrap())).await;
    assert_eq!((&second["items"], &second["next"]), (&json!([kill]), &Value::Null));
    for kill in [&all, &kill] {
        done(&world, "DELETE", &format!("/kills/{}", kill["id"].as_str().unwrap()), &Value::Null).await;
    }
    assert_eq!(world.call(&[("x-tool-name", "web_search")]).await.status, 200);
    let id = all["id"].as_str().unwrap();
    assert_eq!(refused(&world, "DELETE", &format!("/kills/{id}"), &Value::Null).await.0, 404);
    let bot = done(&world, "POST", &format!("{PATH}/kill"), &json!({})).await;
    done(&world, "DELETE", &format!("/kills/{}", bot["id"].as_str().unwrap()), &Value::Null).await;
    assert_eq!(world.call(&[RUN]).await.status, 200, "a run's kill can be lifted by its id too");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_makes_no_sense_is_a_problem() {
    let world = World::start().await;
    for (method, path, body, status, said) in [
        ("POST", "/kills", json!({}), 400, "say what to stop in `scope`"),
        ("POST", "/kills", json!({"scope": "tool:x"}), 400, "`scope`: a scope is `all`, `agent:NAME`"),
        ("POST", "/kills", json!({"scope": "jwt:org_id"}), 400, "`scope`: a value is missing: write `jwt:NAME=VALUE`"),
        ("POST", "/kills", json!({"scope": "ip=x"}), 400, "`scope`: `ip=` is followed by an address"),
        ("POST", "/kills", json!({"scope": "all", "route": "v1/x"}), 400, "`route`: a route is a path that begins"),
        ("POST", "/kills", json!({"scope": "run:bot/x", "route": "/v1"}), 400, "`route`: a run is stopped as a whole"),
        ("POST", "/kills", json!({"scope": "all", "expires_at": "2126-02-03 14:00:00"}), 400, "of RFC 3339 such as"),
        ("POST", "/kills", json!({"scope": "all", "resaon": "x"}), 400, "unknown field `resaon`"),
        ("POST", "/kills", json!({"scope": "all", "expires_in_seconds": 0}), 400, "ends in the future"),
        ("POST", "/kills", json!({"scope": "all", "expires_at": "soon"}), 400, "`expires_at` is a moment"),
        ("POST", "/kills", json!({"scope": "all", "by": "sprag"}), 400, "`by` is a name"),
        ("POST", "/runs/no%20agent/x/kill", json!({}), 400, "an agent name has"),
        ("POST", "/runs/default/x/kill", json!({"scope": "all"}), 400, "leave `scope` and `route` out"),
        ("POST", "/runs/default/x/kill", json!({"route": "/v1"}), 400, "leave `scope` and `route` out"),
        ("POST", "/runs/default/x/resume", json!({}), 409, "was not killed itself"),
        ("GET", "/runs/default/x/kill", json!({}), 405, "does not take this method"),
        ("GET", "/agents/nobody", json!({}), 404, "no agent of this name"),
        ("PATCH", "/agents/b%20t", json!({"active": true}), 400, "an agent name has"),
        ("PATCH", "/agents/bot", json!({"activ": true}), 400, "unknown field `activ`"),
        ("PATCH", "/agents/bot", json!({"kill_switch": {"window_size": 4}}), 400, "from 5 to 100"),
        ("PATCH", "/agents/bot", json!({"kill_switch": {"threshold": 50.5}}), 400, "from 1 to 50"),
        ("PATCH", "/agents/bot", json!({"kill_switch": {"size": 5}}), 400, "unknown field `size`"),
        ("PATCH", "/agents/bot", json!({"kill_switch": [true, 20, 10]}), 400, "expected an object"),
        ("POST", "/keys", json!({"agent": "bot", "budget": [1, 2, 3]}), 400, "expected an object"),
        ("POST", "/kills", json!(["all", null, "x", false, null, null, null]), 400, "expected an object"),
        ("POST", "/kills", json!("all"), 400, "expected an object"),
    ] {
        let (found, detail) = refused(&world, method, path, &body).await;
        assert_eq!(found, status, "{method} {path} {body}: {detail}");
        assert!(detail.contains(said), "{method} {path} {body}: {detail}");
    }
    assert_eq!(world.json("/kills").await["items"], json!([]));
    assert_eq!(world.json("/agents").await["items"], json!([]), "nothing was half done");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_and_strangers_can_stop_nothing() {
    let world = World::start().await;
    for base in [world.sprag.url("/api/v1"), format!("http://{}/api/v1", world.sprag.admin)] {
        let answer = client::post_json(format!("{base}/kills"), &json!({"scope": "all"})).fetch().await.unwrap();
        assert!([401, 404].contains(&answer.status.as_u16()), "{base}: {}", answer.status);
    }
    assert_eq!(world.submit("/run/kill", "agent=default&id=x", &[]).await.header("location"), "/login");
    let cookie = world.sign_in().await;
    let foreign = [("cookie", cookie.as_str()), ("origin", "http://evil.example")];
    assert_eq!(world.submit("/run/kill", "agent=default&id=x", &foreign).await.status, 403);
    assert_eq!(world.json("/kills").await["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_switched_off_and_on() {
    let world = World::start().await;
    let bot = [("x-sprag-agent", "bot")];
    world.call(&bot).await;
    let body = json!({"active": false, "reason": "holiday", "kill_switch": {"enabled": true, "threshold": 12.5}});
    let agent = done(&world, "PATCH", "/agents/bot", &body).await;
    assert_eq!(
        (&agent["active"], &agent["deactivated_by"], &agent["reason"]),
        (&false.into(), &"manual".into(), &"holiday".into())
    );
    let switch = json!({"enabled": true, "window_size": 20, "threshold": 12.5});
    assert_eq!((&agent["kill_switch"], &agent["steps"]), (&switch, &1.into()));
    assert!(agent["cost_usd"].is_number(), "{agent}");
    assert_eq!(
        agent["run_limits"],
        json!({"mode": "enforce", "max_steps": 30, "timeout_seconds": 120, "applies_to": "declared"})
    );
    assert_eq!(world.call(&bot).await.header("x-sprag-blocked"), "agent_inactive");
    let agent = done(&world, "PATCH", "/agents/bot", &json!({"active": true})).await;
    assert_eq!(
        (&agent["active"], &agent["deactivated_by"], &agent["kill_switch"]),
        (&true.into(), &Value::Null, &switch)
    );
    assert_eq!(world.call(&bot).await.status, 200);
    let ahead = done(&world, "PATCH", "/agents/new", &json!({"active": false})).await;
    assert_eq!((&ahead["steps"], &ahead["last_at"]), (&0.into(), &Value::Null));
    let names: Vec<_> =
        world.json("/agents").await["items"].as_array().unwrap().iter().map(|a| a["name"].clone()).collect();
    assert_eq!(names, ["bot", "new"]);
    assert_eq!(world.json("/agents/new").await["active"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn approving_on_a_page_does_not_undo_a_kill_that_came_meanwhile() {
    let world = World::start().await;
    let browser = Browser::open(&world).await;
    world.call(&[("x-sprag-run-id", "task")]).await;
    let run = [("agent", "default"), ("id", "task")];
    let paused = json!({"scope": "run:default/task", "pause": true});
    done(&world, "POST", "/kills", &paused).await;
    let page = browser.page("/run?agent=default&id=task").await;
    assert!(page.contains("action=\"/run/approve\"") && page.contains(">Approve<"), "{page}");
    done(&world, "POST", "/runs/default/task/kill", &json!({"reason": "no"})).await;
    assert_eq!(browser.send("/run/approve", &run).await.status, 409);
    assert_eq!(world.call(&[("x-sprag-run-id", "task")]).await.status, 403);
    browser.done("/run/resume", &run).await;
    assert_eq!(world.call(&[("x-sprag-run-id", "task")]).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_have_buttons_for_it() {
    let world = World::start().await;
    world.call(&[RUN]).await;
    let cookie = world.sign_in().await;
    let csrf = world.csrf(&cookie).await;
    let from_here = [("origin", "null"), ("sec-fetch-site", "same-origin"), ("x-csrf-token", csrf.as_str())];
    let headers = [&[("cookie", cookie.as_str())], &from_here[..]].concat();
    let page = text(&world.page("/run?agent=default&id=a%2Fb").await);
    assert!(page.contains("Kill run") && !page.contains("Resume"), "{page}");
    let answer = world.submit("/run/kill", "agent=default&id=a%2Fb&reason=%3Cb%3Estop", &headers).await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/run?agent=default&id=a%2Fb"));
    let page = text(&world.page("/run?agent=default&id=a%2Fb").await);
    assert!(page.contains("<strong>Killed by admin</strong>") && page.contains("&#60;b&#62;stop"), "{page}");
    assert!(page.contains("Resume") && !page.contains("Kill run"), "{page}");
    assert_eq!(world.call(&[RUN]).await.status, 403);
    world.submit("/run/resume", "agent=default&id=a%2Fb", &headers).await;
    assert_eq!(world.call(&[RUN]).await.status, 200);

    let page = text(&world.page("/agents").await);
    assert!(page.contains(">Active</span>") && page.contains("Deactivate</button>"), "{page}");
    assert_eq!(world.submit("/agents/deactivate", "name=default", &headers).await.header("location"), "/agents");
    let page = text(&world.page("/agents").await);
    assert!(page.contains(">Inactive</span>") && page.contains("Activate</button>"), "{page}");
    world.submit("/agents/activate", "name=default", &headers).await;
    let page = text(&world.page("/agents").await);
    assert!(page.contains(">Active</span>"), "{page}");
}
