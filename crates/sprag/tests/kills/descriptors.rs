//! Kills of what calls carry, and kills that hold on one path only.

use sprag_core::wire::Dialect;
use sprag_testkit::{Script, client};

use crate::scene::Scene;
use crate::wire::request;

/// `{"org_id":"org_xyz"}` and `{"org_id":"org_abc"}`, signed by nobody.
const ORG_XYZ: (&str, &str) = ("authorization", "Bearer e30.eyJvcmdfaWQiOiJvcmdfeHl6In0.x");
const ORG_ABC: (&str, &str) = ("authorization", "Bearer e30.eyJvcmdfaWQiOiJvcmdfYWJjIn0.x");

async fn status(scene: &Scene, path: &str, headers: &[(&str, &str)]) -> u16 {
    let call = client::post_json(scene.sprag.url(path), &request(Dialect::OpenaiChat, false, "hello"));
    let call = headers.iter().fold(call, |call, (name, value)| call.header(name, value));
    call.fetch().await.unwrap().status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_stopped_by_what_they_carry() {
    let scene = Scene::start().await;
    for (scope, path, headers) in [
        ("jwt:org_id=org_xyz", "/v1/chat/completions", &[ORG_XYZ][..]),
        ("query:tenant=Acme & Co", "/v1/chat/completions?a=1&tenant=Acme+%26+Co", &[]),
        ("ip=127.0.0.1", "/v1/chat/completions", &[]),
        ("header:x-tool-name=web_search", "/v1/chat/completions", &[("X-Tool-Name", "web_search")]),
    ] {
        assert_eq!(status(&scene, path, headers).await, 200, "{scope}: before");
        let kill = scene.kill(scope).await;
        assert_eq!(status(&scene, path, headers).await, 403, "{scope}");
        if !scope.starts_with("ip=") {
            assert_eq!(status(&scene, "/v1/chat/completions?tenant=Acme", &[ORG_ABC]).await, 200, "{scope}: others");
        }
        scene.sprag.app.lift(kill.id.clone(), "anna".to_owned()).await.unwrap().unwrap();
        assert_eq!(status(&scene, path, headers).await, 200, "{scope}: lifted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_on_a_path_holds_there_whichever_way_the_call_comes() {
    let scene = Scene::start().await;
    scene.kill("/v1/chat jwt:org_id=org_xyz").await;
    for path in [
        "/v1/chat/completions",
        "/openai/v1/chat/completions",
        "/agents/bot/v1/chat/completions",
        "/v1/ch%61t/completions",
        "/v1/chat/completions?x=y",
    ] {
        assert_eq!(status(&scene, path, &[ORG_XYZ]).await, 403, "{path}");
        assert_ne!(status(&scene, path, &[ORG_ABC]).await, 403, "{path}: somebody else");
    }
    for path in ["/v1/completions", "/v1/embeddings", "/v1/chats"] {
        assert_ne!(status(&scene, path, &[ORG_XYZ]).await, 403, "{path}: elsewhere");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_on_several_paths_stand_beside_each_other_and_survive() {
    let scene = Scene::start().await;
    for scope in ["/v1/chat all", "/v1/embeddings all", "/v1/chat agent:bot"] {
        scene.kill(scope).await;
    }
    let data = scene.sprag.stop().await;
    let scene = Scene::start_with(Script::new(), |settings| settings.data_dir = data.path().to_owned()).await;
    let snapshot = scene.sprag.app.catalog.snapshot();
    let mut scopes: Vec<_> = snapshot.kills.iter().map(|kill| kill.scope.to_string()).collect();
    scopes.sort();
    assert_eq!(scopes, ["/v1/chat agent:bot", "/v1/chat all", "/v1/embeddings all"]);
}
