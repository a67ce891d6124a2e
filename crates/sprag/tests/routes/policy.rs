//! What stops calls to models stops calls on routes too, as an error: there is no assistant to speak.

use sprag_core::id::AgentName;

use crate::configured::stopped;
use crate::tools::Tools;

#[tokio::test(flavor = "multi_thread")]
async fn a_virtual_key_opens_and_stays_here() {
    let tools = Tools::start("headers = { x-server-key = \"s3cret\" }", "[proxy]\nrequire_keys = true").await;
    let denied = tools.get("/v1/tools/x", &[]).await;
    assert_eq!((denied.status.as_u16(), stopped(&denied)), (401, "authentication_error"));
    let (name, value) = tools.place.issue_key("billing").await;
    assert_eq!(tools.get("/v1/tools/x", &[(name, &value)]).await.status, 200);
    let seen = tools.server.requests().pop().unwrap();
    assert!(seen.headers.get("authorization").is_none(), "it is no credential there, and none takes its place");
    assert_eq!(seen.header("x-server-key"), "s3cret");
    let (_, other) = value.split_at("Bearer ".len());
    let in_query = tools.get(&format!("/v1/tools/x?key={other}&a=1"), &[]).await;
    assert_eq!(in_query.status, 200);
    assert_eq!(tools.server.requests().pop().unwrap().path, "/v1/tools/x?a=1");
    assert_eq!(tools.get("/agents/other/v1/tools/x", &[(name, &value)]).await.status, 401);
    let events = tools.place.sprag.settled(4).await;
    assert_eq!(events[1].agent.as_str(), "billing");
    assert!(events[1].key.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_credential_is_for_the_tool_server() {
    let tools = Tools::start("", "").await;
    tools.get("/v1/tools/x", &[("authorization", "Bearer theirs"), ("x-api-key", "too")]).await;
    let seen = tools.server.requests().pop().unwrap();
    assert_eq!((seen.header("authorization"), seen.header("x-api-key")), ("Bearer theirs", "too"));
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_of_every_scope_stop_it() {
    let tools = Tools::start("", "").await;
    let headers = [("x-agent-id", "bot"), ("x-tool-name", "search"), ("x-sprag-run-id", "r1")];
    for (scope, path) in [
        ("all", "/v1/tools/x"),
        ("agent:bot", "/v1/tools/x"),
        ("run:bot/r1", "/v1/tools/x"),
        ("header:x-tool-name=search", "/v1/tools/x"),
        ("query:tenant=acme", "/v1/tools/x?tenant=acme"),
        ("ip=127.0.0.1", "/v1/tools/x"),
        ("/v1/tools all", "/v1/tools/x"),
        ("/v1/tools/x agent:bot", "/v1/t%6fols/x"),
    ] {
        assert_eq!(tools.get(path, &headers).await.status, 200, "{scope}: before");
        let id = tools.place.kill(scope).await;
        let answer = tools.get(path, &headers).await;
        assert_eq!((answer.status.as_u16(), stopped(&answer)), (403, "run_killed"), "{scope}");
        if scope.starts_with("run:") {
            let run = sprag_store::RunKey {
                agent: AgentName::parse("bot").unwrap(),
                id: sprag_core::id::RunId::parse("r1").unwrap(),
            };
            tools.place.sprag.app.resume(run, "anna".to_owned()).await.unwrap();
        } else {
            tools.place.lift(id).await;
        }
        assert_eq!(tools.get(path, &headers).await.status, 200, "{scope}: lifted");
    }
    tools.place.kill("/v1/tools all").await;
    assert_eq!(tools.get("/v1/models", &[]).await.status, 200, "elsewhere nothing is stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_cuts_a_call_that_waits() {
    let tools = Tools::start("", "").await;
    let waiting = tokio::spawn(tools.call("GET", "/v1/tools/x", &[("x-mock-hold", "")]).fetch());
    tools.server.gate().reached(1).await;
    tools.place.kill("/v1/tools all").await;
    assert_eq!(waiting.await.unwrap().unwrap().status, 403);
    tools.server.gate().open();
}

#[tokio::test(flavor = "multi_thread")]
async fn inactive_agents_and_closed_hours_are_errors_here() {
    let rest = "[agents.night.hours]\nallowed = [\"22:00-06:00\"]\n[agents.night.models]\nallow = [\"gpt-4o\"]";
    let tools = Tools::start("", rest).await;
    let bot = AgentName::parse("bot").unwrap();
    tools.place.sprag.app.deactivate(bot, "anna".to_owned(), "too loud".to_owned()).await.unwrap();
    for (agent, reason) in [("bot", "agent_inactive"), ("night", "outside_allowed_hours")] {
        let answer = tools.get("/v1/tools/x", &[("x-agent-id", agent)]).await;
        assert_eq!((answer.status.as_u16(), stopped(&answer)), (403, reason));
        assert_eq!(answer.json()["error"]["type"], reason);
    }
    tools.place.set_time("2026-02-03T23:00:00Z");
    assert_eq!(tools.get("/v1/tools/x", &[("x-agent-id", "night")]).await.status, 200, "no model is asked here");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_the_agent_and_of_the_route_both_hold() {
    let keys = "[[routes.rate_limits]]\nname = \"route\"\nrequests = 3\nwindow_seconds = 60\nlimit_keys = [\"agent\"]";
    let rest = "[[routes]]\nname = \"twin\"\npath = \"/twin\"\nupstream = \"UPSTREAM\"\n\
                [[routes.rate_limits]]\nname = \"route\"\nrequests = 3\nwindow_seconds = 60\nlimit_keys = [\"agent\"]\n\
                [agents.bot]\nrate_limits = [{ name = \"own\", requests = 5, window_seconds = 60 }]";
    let tools = Tools::start(keys, rest).await;
    let ask = async |path: &str| {
        let answer = tools.get(path, &[("x-agent-id", "bot")]).await;
        answer.json()["error"]["exceeded_limit"].as_str().unwrap_or_default().to_owned()
    };
    for _ in 0..3 {
        assert_eq!(ask("/v1/tools/x").await, "");
    }
    assert_eq!(ask("/v1/tools/x").await, "route");
    assert_eq!(ask("/twin").await, "", "another route counts for itself, and what was refused took nothing");
    assert_eq!(ask("/twin").await, "");
    assert_eq!(ask("/twin").await, "own");
    assert_eq!(tools.reached(), 5);
    let shown = tools.get("/v1/tools/x", &[("x-agent-id", "calm")]).await;
    assert_eq!(shown.status, 200);
}
