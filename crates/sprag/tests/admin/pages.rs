//! What people read.

use serde_json::json;

use crate::world::{World, is_inert, links, text};

/// Names that would break out of markup, paths or queries if they could.
const NAMES: [&str; 8] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "a/b/../c",
    "..",
    "50%25 off?x=1&y=2#z",
    "+ plus and space",
    "é – 漢字",
    "'; DROP TABLE runs; --",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_is_told_how_to_begin() {
    let world = World::start().await;
    let page = text(&world.page("/").await);
    let proxy = format!("http://{}", world.sprag.proxy);
    assert!(page.contains(&format!("curl {proxy}/v1/chat/completions")), "{page}");
    assert!(page.contains(&format!("export OPENAI_BASE_URL={proxy}/v1")));
    assert!(
        page.contains("hx-sse:connect=\"/live?seen=") && page.contains("hx-trigger=\"changed from:body\""),
        "{page}"
    );

    world.call(&[("x-sprag-run-id", "first")]).await;
    let page = text(&world.page("/").await);
    assert!(!page.contains("curl"), "{page}");
    assert!(page.contains("gpt-4o") && page.contains(">first<"));
}

#[tokio::test(flavor = "multi_thread")]
async fn any_name_is_shown_as_text_and_its_link_leads_to_it() {
    let world = World::start().await;
    for (at, name) in NAMES.into_iter().enumerate() {
        let run = json!({"id": name, "step": 1, "origin": "declared"});
        world.record(1 + at as i64, json!({"run": run, "model": name, "error": name, "tools": [name], "finish": name}));
    }
    for path in ["/", "/runs", "/events"] {
        let page = text(&world.page(path).await);
        assert!(is_inert(&page), "{path}: {page}");
        assert!(page.contains("&#60;script&#62;alert(1)&#60;/script&#62;"), "{path}: {page}");
        let runs: Vec<_> = links(&page).into_iter().filter(|link| link.starts_with("/run?")).collect();
        assert_eq!(runs.len(), NAMES.len(), "{path}");
        for link in runs {
            let answer = world.page(&link).await;
            assert_eq!(answer.status, 200, "{link}: {}", text(&answer));
            assert!(is_inert(&text(&answer)), "{link}");
        }
    }
    let search = text(&world.page("/events?model=%22%3E%3Cscript%3E").await);
    assert!(is_inert(&search) && search.contains("&#34;&#62;&#60;script&#62;"), "{search}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_told_step_by_step() {
    let world = World::start().await;
    let step = |number: u32| json!({"id": "task", "step": number, "origin": "conversation"});
    let usage = json!({"input": 1000, "cache_read": 234, "output": 56});
    world.record(1_000, json!({"run": step(1), "usage": usage, "cost": 3_120_000, "tools": ["web_search"]}));
    let failed = json!({"run": step(2), "status": 502, "ending": "upstream_gone", "error": "connection refused"});
    world.record(2_000, failed);
    world.record(
        3_000,
        json!({"run": step(3), "usage": {"input": 5, "output": 7, "estimated": true}, "unpriced": true}),
    );
    let part = json!({"id": "part", "step": 1, "origin": "session", "parent": "task"});
    world.record(4_000, json!({"run": part}));

    let page = text(&world.page("/run?agent=default&id=task").await);
    for expected in [
        "Known by its conversation",
        "1,234",
        "$0.0031",
        "web_search",
        "upstream gone",
        "connection refused",
        "no price",
        "1 without a price",
        "1 failed",
        "counted by Sprag",
        "Runs that are a part of this one",
        "<rect x=\"0\"",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    let part = text(&world.page("/run?agent=default&id=part").await);
    assert!(links(&part).contains(&"/run?agent=default&id=task".to_owned()), "{part}");
    assert_eq!(world.page("/run?agent=default&id=none").await.status, 404);
    assert_eq!(world.page("/run?agent=default").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_come_in_pages_and_keep_their_filter() {
    let world = World::start().await;
    for at in 1..=120 {
        world.record(at, json!({"agent": if at % 10 == 0 { "rare" } else { "common" }}));
    }
    for (first, rows) in
        [("/runs?agent=common", 108), ("/events?agent=common&model=gpt-4o", 108), ("/runs?agent=", 120)]
    {
        let (mut path, mut found) = (first.to_owned(), Vec::new());
        loop {
            let page = text(&world.page(&path).await);
            found.extend(links(&page).into_iter().filter(|link| link.starts_with("/run?")));
            let next = page.split("Older").next().filter(|_| page.contains("Older →")).map(links);
            match next.and_then(|links| links.last().cloned()) {
                Some(older) => path = older,
                None => break,
            }
        }
        assert_eq!(found.len(), rows, "{first}");
        found.sort();
        found.dedup();
        assert_eq!(found.len(), rows, "{first}");
        assert!(path.contains("cursor="), "{path}");
        let last = text(&world.page(&path).await);
        assert!(last.contains("← Newest"), "{last}");
    }
    assert_eq!(world.page("/runs?cursor=x").await.status, 400);
    assert_eq!(world.page("/runs?agent=no%20agent").await.status, 400);
}
