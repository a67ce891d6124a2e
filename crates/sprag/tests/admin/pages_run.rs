//! The page of a run: why it was stopped, drawn and in words.

use serde_json::json;
use sprag_core::loops::Mode;

use crate::evidence::{healthy, stuck, watched, work};
use crate::kills::done;
use crate::world::{TOKEN, World, is_inert, links, text};

const TASK: &str = "/run?agent=default&id=task";

/// The piece of a page between two texts.
fn part<'p>(page: &'p str, from: &str, to: &str) -> &'p str {
    let found = page.split_once(from).and_then(|(_, rest)| rest.split_once(to));
    assert!(found.is_some(), "no {from} with {to} behind it: {page}");
    let (before, _) = page.split_once(from).unwrap();
    let (piece, _) = page[before.len() + from.len()..].split_once(to).unwrap();
    &page[before.len()..before.len() + from.len() + piece.len()]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_explained_by_drawings_and_words() {
    let world = watched().await;
    work(&world, "task", 9, |round| if round < 2 { healthy(round) } else { stuck(round) }).await;
    let page = text(&world.page(TASK).await);
    assert!(is_inert(&page) && !page.contains("style=\""), "{page}");
    assert!(page.contains("Step 3 to 8: `read` was called 6 times") || page.contains("step 3 to 8: `read` was called"));

    let picture = part(&page, "<svg class=\"alike\"", "</svg>");
    assert!(picture.contains("<rect class=\"frame\" x=\"2\" y=\"2\" width=\"6\" height=\"6\"/>"), "{picture}");
    assert!(picture.contains("<path class=\"a4\" d=\"M2 3h1v1h-1zM2 4h2v1h-2z"), "{picture}");
    assert!(
        picture.contains("<title>Step 3: the same call with the same result as steps 4, 5, 6, 7 and 1 more</title>")
    );
    assert!(picture.contains("<title>Step 1: like no other</title>"));
    assert!(picture.contains("aria-label=\"5 of 8 steps made a call that an earlier step had made"), "{picture}");

    let level = part(&page, "How near to a stop", "</section>");
    assert!(level.contains("class=\"limit\"") && level.contains("<circle class=\"hit\""), "{level}");
    assert!(level.contains("<title>Step 9: 100 % of the threshold</title>"), "{level}");
    let cost = part(&page, "Cost so far", "</section>");
    assert!(cost.contains("class=\"line\"") && !cost.contains("class=\"limit\""), "{cost}");

    let run = world.json("/runs/default/task").await["run"].clone();
    assert!(run["saved_nano_usd"].as_i64().unwrap() > 0);
    assert!(part(&page, "<dt>Saved</dt>", "</div>").contains("<dd class=\"good\">$0."), "{page}");
    let stopped = part(&page, "id=\"step-9\"", "</tr>");
    assert!(stopped.contains("run killed (progress: repeated_step)") && stopped.contains(" saved</span>"), "{stopped}");
    let repeated = part(&page, "id=\"step-5\"", "</tr>");
    assert!(repeated.contains("class=\"proven\"") && repeated.contains(">the same error<"), "{repeated}");
    assert!(part(&page, "id=\"step-1\"", "</tr>").contains(">something new<"));
    assert!(page.contains(">Resume<") && !page.contains("Kill run"));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_thresholds_are_tried_on_the_page() {
    let world = watched().await;
    work(&world, "task", 7, stuck).await;
    let page = text(&world.page(TASK).await);
    let form = part(&page, "<form class=\"trial\"", "</form>");
    for expected in [
        "method=\"get\"",
        "hx-get=\"/run\"",
        "hx-target=\"#try\"",
        "name=\"repeats\" value=\"\" placeholder=\"5\"",
        "in force: 0.85",
    ] {
        assert!(form.contains(expected), "{expected}: {form}");
    }
    let tried = |query: &str| {
        let path = format!("{TASK}&{query}");
        let world = &world;
        async move {
            let answer = world.page(&path).await;
            assert_eq!(answer.status, 200, "{path}");
            part(&text(&answer), "id=\"try\"", "</section>").to_owned()
        }
    };
    // What a browser sends of a form in which one field was written.
    let whole =
        tried("repeats=3&same_results=&stall=&likeness=&window=&window_seconds=&asked_again=&compactions=").await;
    assert!(whole.contains("Stopped at step 5"), "{whole}");
    assert!(whole.contains("name=\"repeats\" value=\"3\"") && whole.contains("name=\"stall\" value=\"\""), "{whole}");
    let sooner = tried("repeats=3").await;
    assert!(sooner.contains("Stopped at step 5: 2 steps sooner than it was"), "{sooner}");
    assert!(sooner.contains("Step 1 to 4: `read` was called 4 times") && sooner.contains("2 calls less, $0."));
    assert!(sooner.contains("name=\"repeats\" value=\"3\"") && sooner.contains("class=\"plot\""), "{sooner}");
    assert!(tried("repeats=5").await.contains("Stopped at step 7: the step at which it was refused in fact"));
    let never = tried("repeats=20&same_results=20&stall=90").await;
    assert!(never.contains("Not stopped up to step 7"), "{never}");
    let wrong = tried("repeats=1").await;
    assert!(wrong.contains("`repeats` is a number from 2 to 24") && wrong.contains("role=\"alert\""), "{wrong}");
    let odd = tried("stall=%22%3E%3Cscript%3E").await;
    assert!(odd.contains("`stall` is a number") && is_inert(&odd), "{odd}");
    assert!(!tried("repeats=&stall=").await.contains("role=\"status\""), "nothing was given");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_which_nothing_was_seen_says_why() {
    let world = watched().await;
    work(&world, "task", 0, healthy).await;
    world.record(1_000, json!({"run": {"id": "old", "step": 1, "origin": "declared"}}));
    world.record(1_001, json!({"run": {"id": "old", "step": 2, "origin": "declared"}}));
    let page = text(&world.page(TASK).await);
    assert!(page.contains("This run has made one so far") && !page.contains("class=\"alike\""), "{page}");
    assert!(!page.contains("id=\"try\""), "nothing to try anything on: {page}");
    let page = text(&world.page("/run?agent=default&id=old").await);
    assert!(page.contains("recorded by an older version") && page.contains("No call of this run has a known price"));

    let world = World::configured(TOKEN, |settings| {
        settings.policies.change_rules(|rules| rules.progress.common.mode = Mode::Off);
    })
    .await;
    work(&world, "task", 3, healthy).await;
    let page = text(&world.page(TASK).await);
    assert!(page.contains("The progress detector is off for this agent"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_run_can_be_killed_and_is_asked_about_first() {
    let world = watched().await;
    work(&world, "task", 3, healthy).await;
    let page = text(&world.page(TASK).await);
    let form = part(&page, "action=\"/run/kill\"", "</form>");
    assert!(form.contains("data-confirm=\"Kill this run?"), "{form}");
    assert!(page.contains("0 of 3 steps made a call") && !page.contains("class=\"frame\""), "{page}");
    assert!(!page.contains("<dt>Saved</dt>") && !page.contains("class=\"hit\""));
    assert!(page.contains("hx-trigger=\"changed from:body\""), "the page is live");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runs_above_and_below_are_one_tree() {
    let world = watched().await;
    let part_of =
        |id: &str, parent: &str| json!({"run": {"id": id, "step": 1, "origin": "declared", "parent": parent}});
    world.record(1, json!({"run": {"id": "top", "step": 1, "origin": "declared"}}));
    for (at, (id, parent)) in
        [("task", "top"), ("part", "task"), ("leaf", "part"), ("other", "task")].into_iter().enumerate()
    {
        world.record(2 + at as i64, part_of(id, parent));
    }
    world.record(9, part_of("itself", "itself"));
    let page = text(&world.page(TASK).await);
    let tree = part(&page, "<table class=\"tree\"", "</table>");
    let places: Vec<&str> = tree.split("class=\"id ").skip(1).map(|line| &line[..5]).collect();
    assert_eq!(places, ["deep0", "deep1", "deep2", "deep3", "deep2"], "{tree}");
    let named: Vec<String> =
        links(tree).iter().filter_map(|link| link.split("id=").nth(1).map(str::to_owned)).collect();
    assert_eq!(named, ["top", "part", "leaf", "other"], "the run itself is no link");
    assert!(tree.contains("aria-current=\"true\""));
    assert!(text(&world.page("/run?agent=default&id=leaf").await).contains("The runs that this one is a part of"));
    assert_eq!(world.page("/run?agent=default&id=itself").await.status, 200);

    for at in 0..101 {
        world.record(100 + at, part_of(&format!("many-{at}"), "other"));
    }
    let page = text(&world.page("/run?agent=default&id=other").await);
    let tree = part(&page, "<table class=\"tree\"", "</table>");
    assert_eq!(tree.matches("<bdi>many-").count(), 100, "as many as are listed");
    assert!(page.contains("There are more parts than are listed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_shows_what_its_parts_did() {
    let world = watched().await;
    let command = json!({"id": "cmd-1", "step": 0, "origin": "declared"});
    let act = |what: &str| json!({"kind": "admin", "run": command, "act": {"what": what, "by": "sprag run", "target": "run:default/cmd-1", "reason": ""}});
    world.record(1_000, act("start_command"));
    for step in 1..=3 {
        let run = json!({"id": "part", "step": step, "origin": "declared", "parent": "cmd-1"});
        world.record(1_000 + 1_000 * step, json!({"run": run, "cost": 2_000_000}));
    }
    world.record(5_000, act("end_command"));
    let reason = "went in circles";
    done(&world, "POST", "/runs/default/part/kill", &json!({"reason": reason})).await;
    let page = text(&world.page("/run?agent=default&id=cmd-1").await);
    let cards = part(&page, "<dl class=\"cards\"", "</dl>");
    assert!(cards.contains("<dd>3</dd>") && cards.contains("$0.006") && cards.contains("all in its parts"), "{cards}");
    assert!(!cards.contains("all went well") && !cards.contains("0 ms"), "{cards}");
    let stopped = part(&page, "A part of it was", "</p>");
    assert!(stopped.contains("killed") && stopped.contains("id=part") && stopped.contains(reason), "{stopped}");
    for untrue in ["no longer on record", "has a known price", "What detection saw"] {
        assert!(!page.contains(untrue), "{untrue}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_run_comes_in_pages_and_its_drawings_stay_small() {
    let world = World::configured(TOKEN, |settings| {
        settings.policies.change_rules(|rules| {
            for common in rules.every_common() {
                common.mode = Mode::Off;
            }
            rules.progress.common.mode = Mode::Shadow;
        });
        settings.policies.defaults.run_limits.max_steps = 0;
    })
    .await;
    work(&world, "task", 230, |round| if round % 3 == 0 { stuck(round) } else { healthy(round) }).await;
    let page = text(&world.page(TASK).await);
    assert!(page.contains("id=\"step-100\"") && !page.contains("id=\"step-101\""));
    let later = links(&page).into_iter().find(|link| link.contains("cursor=")).unwrap();
    let next = text(&world.page(&later).await);
    assert!(next.contains("id=\"step-101\"") && next.contains("← First steps"));
    let picture = part(&page, "<svg class=\"alike\"", "</svg>");
    assert!(picture.contains("stroke-width=\".76\"") && picture.len() < 60_000, "{}", picture.len());
    assert!(picture.contains("<title>Step 230:") && !picture.contains("<title>Step 30:"), "the last 200");
    assert!(part(&page, "How near to a stop", "</section>").len() < 30_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_exported_from_its_page() {
    let world = watched().await;
    work(&world, "task", 2, healthy).await;
    let page = text(&world.page(TASK).await);
    let link = links(&page).into_iter().find(|link| link.starts_with("/run/export")).unwrap();
    let answer = world.page(&link).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/x-ndjson"));
    assert_eq!(text(&answer).lines().count(), 3);
    assert_ne!(world.ask(&link).fetch().await.unwrap().status, 200, "only for who is signed in");
    assert_eq!(world.page("/run/export?agent=default&id=none").await.status, 404);
}
