//! Secrets and personal data: what was found, what is done about each kind, and changing that.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use serde_json::{Value, json};
use sprag_core::dlp::{Action, Direction, DlpRules, Entity, FAMILIES, Hiding, KINDS, Outcome, Profile};
use sprag_core::event::Event;
use sprag_core::time::Timestamp;
use sprag_store::history::{FindingCount, FindingsReport};

use super::agent::family;
use super::field::{Field, put};
use super::filled::Filled;
use super::rows::{Bar, Moment, RunRef};
use super::span::{Span, Tab};
use super::{Page, Shell, agents, html, link, news_at};
use crate::admin::Shared;
use crate::admin::api::{self, Params, desk};
use crate::admin::operator::{Operator, Visitor};
use crate::admin::problem::Problem;
use crate::show;

/// Calls in the list of the latest findings.
const CALLS: u32 = 30;
/// Findings shown of one call.
const OF_A_CALL: usize = 4;

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    span: Option<Span>,
    agent: Option<String>,
    cursor: Option<String>,
    /// Said after something was saved.
    saved: Option<String>,
}

#[derive(Template)]
#[template(path = "dlp.html")]
struct Dlp {
    shell: Shell,
    /// Where the page asks for news of itself.
    live: &'static str,
    spans: Vec<Tab>,
    span: &'static str,
    facts: Facts,
    kinds: Vec<KindLine>,
    latest: Vec<FoundLine>,
    newest: Option<String>,
    older: Option<String>,
    /// Whose modes are shown; empty for the defaults.
    agent: String,
    agents: Vec<String>,
    profile: &'static str,
    families: Vec<FamilyLine>,
    change: Vec<Field>,
    complaint: Option<String>,
    is_saved: bool,
    covered: usize,
    surfaces: usize,
}

struct Facts {
    found: String,
    calls: String,
    blocked: u64,
    hidden: String,
    logged: u64,
    is_partial: bool,
}

/// How often a kind was found.
struct KindLine {
    id: String,
    title: &'static str,
    family: &'static str,
    count: String,
    bar: Bar,
    /// What became of them: a number, a word, a colour.
    outcomes: Vec<(u64, &'static str, &'static str)>,
    ways: String,
}

/// A finding in the list of the latest.
struct FoundLine {
    at: Moment,
    kind: String,
    outcome: &'static str,
    tone: &'static str,
    way: &'static str,
    hint: String,
    path: String,
    agent: String,
    agent_href: String,
    run: Option<RunRef>,
    /// More of the same call that are not listed.
    more: u64,
}

/// What is done about a family.
struct FamilyLine {
    title: &'static str,
    name: &'static str,
    kinds: usize,
    request: String,
    answer: String,
}

const MODES: [(&str, &str); 5] = [
    ("", "as the profile says"),
    ("strict", "strict: stop the call"),
    ("redact", "redact: hide it"),
    ("log_only", "log only"),
    ("off", "off"),
];
const WAYS: [(&str, &str); 3] =
    [("modes", "both ways"), ("request_modes", "requests alone"), ("answer_modes", "answers alone")];

pub(super) async fn show(
    State(admin): State<Shared>,
    visitor: Visitor,
    wanted: Result<Params<Wanted>, Problem>,
) -> Page {
    let Params(wanted) = wanted?;
    list(&admin, visitor, wanted, Filled::nothing()).await
}

async fn list(admin: &Shared, visitor: Visitor, wanted: Wanted, mut filled: Filled) -> Page {
    let (status, now, span) = (filled.status, admin.app.clock.now(), wanted.span.unwrap_or_default());
    let agent = api::agent_name(wanted.agent.as_deref())?;
    let (since, cursor) = (span.since(now), wanted.cursor.clone());
    let read = admin
        .records
        .read(move |history| Ok((history.findings(since)?, history.calls_with_findings(cursor.as_deref(), CALLS)?)));
    let (report, page) = read.await?;
    let names = admin.agent_names().await?;
    let rules = match &agent {
        Some(agent) => admin.app.policy(agent).policy.dlp.clone(),
        None => admin.app.settings.load().policies.defaults.dlp.clone(),
    };
    let agent = agent.map(|agent| agent.to_string()).unwrap_or_default();
    let coverage = admin.app.coverage.load();
    let here = |cursor: Option<&str>| link::to("/dlp", &[("agent", Some(&agent)), ("cursor", cursor)]);
    let page = Dlp {
        shell: admin.shell("dlp", visitor),
        live: news_at(status, "/dlp"),
        spans: span.tabs("/dlp", &[("agent", Some(&agent))]),
        span: span.label(),
        facts: Facts::new(&report),
        kinds: kind_lines(&report.kinds),
        latest: page.items.iter().flat_map(|event| found_lines(event, now)).collect(),
        newest: wanted.cursor.is_some().then(|| here(None)),
        older: page.next.map(|next| here(Some(&next))),
        agents: names,
        profile: profile(rules.profile),
        families: family_lines(&rules),
        change: filled.fill(change_fields(&agent, &rules)),
        complaint: filled.rest(),
        is_saved: wanted.saved.is_some(),
        covered: coverage.iter().filter(|surface| surface.is_covered).count(),
        surfaces: coverage.len(),
        agent,
    };
    Ok(html(status, &page))
}

/// Sets what is done about a kind or a family, for one agent.
pub(super) async fn set_mode(
    State(admin): State<Shared>,
    visitor: Visitor,
    operator: Operator,
    filled: Filled,
) -> Page {
    let again = |filled| list(&admin, visitor, Wanted::default(), filled);
    let agent = match agents::agent(filled.text("agent")) {
        Ok(agent) => agent,
        Err(problem) => return again(filled.but("agent", problem.detail)).await,
    };
    let (kind, way) = (filled.text("kind"), filled.text("way"));
    if kind.is_empty() || kind.contains('.') || !WAYS.iter().any(|(name, _)| *name == way) {
        return again(filled.but("kind", "choose a kind or a family, and a way")).await;
    }
    let mut patch = json!({});
    put(&mut patch, &format!("dlp.{way}.{kind}"), filled.given("mode").map_or(Value::Null, Value::from));
    match desk::change_agent(&admin, operator, &agent, json!({ "policy": patch })).await {
        Ok(()) => {
            let back = link::to("/dlp", &[("agent", Some(agent.as_str())), ("saved", Some("1"))]);
            Ok(Redirect::to(&format!("{back}#modes")).into_response())
        }
        Err(problem) => {
            let field_of = |key: &str, _: &str| if key.starts_with("dlp.") { "kind" } else { key }.to_owned();
            again(filled.refused(problem, field_of)?).await
        }
    }
}

fn change_fields(agent: &str, rules: &DlpRules) -> Vec<Field> {
    let families = FAMILIES.iter().map(|(name, _)| (*name, family(name)));
    let kinds = KINDS.iter().map(|kind| (kind.id, kind.id));
    let own = rules.own.iter().map(|id| (id.as_str(), id.as_str()));
    vec![
        Field::agent("agent").hint("one agent; for all of them see below").holding(agent),
        Field::new("kind", "Kind or family").choices(families.chain(kinds).chain(own)),
        Field::new("way", "Which way").choices(WAYS),
        Field::new("mode", "Mode").choices(MODES),
    ]
}

impl Facts {
    fn new(report: &FindingsReport) -> Facts {
        let sum = |is_meant: fn(Outcome) -> bool| -> u64 {
            report.kinds.iter().filter(|kind| is_meant(kind.outcome)).map(|kind| kind.count).sum()
        };
        Facts {
            found: show::count(sum(|_| true)),
            calls: show::counted(report.calls, "call"),
            blocked: sum(|outcome| outcome == Outcome::Blocked),
            hidden: show::count(sum(|outcome| matches!(outcome, Outcome::Redacted | Outcome::Covered))),
            logged: sum(|outcome| outcome == Outcome::Logged),
            is_partial: report.is_partial,
        }
    }
}

fn kind_lines(found: &[FindingCount]) -> Vec<KindLine> {
    let mut by_kind: BTreeMap<&str, Vec<&FindingCount>> = BTreeMap::new();
    found.iter().for_each(|count| by_kind.entry(&count.entity).or_default().push(count));
    let total = |counts: &[&FindingCount]| counts.iter().map(|count| count.count).sum::<u64>();
    let mut kinds: Vec<_> = by_kind.into_iter().collect();
    kinds.sort_by_key(|(id, counts)| (std::cmp::Reverse(total(counts)), *id));
    let most = kinds.first().map_or(1, |(_, counts)| total(counts)).max(1);
    let line = |(id, counts): (&str, Vec<&FindingCount>)| {
        let known = KINDS.iter().find(|kind| kind.id == id);
        let mut outcomes: BTreeMap<Outcome, u64> = BTreeMap::new();
        counts.iter().for_each(|count| *outcomes.entry(count.outcome).or_default() += count.count);
        let goes = |way: Direction| counts.iter().any(|count| count.direction == way);
        KindLine {
            id: id.to_owned(),
            title: known.map_or("own pattern", |kind| kind.title),
            family: known.map_or("", |kind| family_of(kind.family)),
            count: show::count(total(&counts)),
            bar: Bar { start: 0, length: (total(&counts) * Bar::LINE / most).max(8) },
            outcomes: outcomes.into_iter().rev().map(|(what, count)| (count, word(what), tone(what))).collect(),
            ways: match (goes(Direction::Request), goes(Direction::Answer)) {
                (true, true) => "both".to_owned(),
                (false, true) => "answers".to_owned(),
                _ => "requests".to_owned(),
            },
        }
    };
    kinds.into_iter().map(line).collect()
}

fn found_lines(event: &Event, now: Timestamp) -> Vec<FoundLine> {
    let Some(sightings) = &event.dlp else { return Vec::new() };
    let listed = sightings.list.len().min(OF_A_CALL);
    let line = |(place, seen): (usize, &sprag_core::dlp::Sighting)| FoundLine {
        at: Moment::new(event.at, now),
        kind: seen.entity.clone(),
        outcome: word(seen.outcome),
        tone: tone(seen.outcome),
        way: if seen.direction == Direction::Request { "request" } else { "answer" },
        hint: seen.hint.clone(),
        path: seen.path.clone(),
        agent: event.agent.to_string(),
        agent_href: link::to("/agent", &[("name", Some(event.agent.as_str()))]),
        run: event
            .run
            .as_ref()
            .map(|run| RunRef { id: run.id.to_string(), href: link::to_run(event.agent.as_str(), run.id.as_str()) }),
        more: if place + 1 == listed { sightings.total.saturating_sub(listed as u64) } else { 0 },
    };
    sightings.list.iter().take(OF_A_CALL).enumerate().map(line).collect()
}

fn family_lines(rules: &DlpRules) -> Vec<FamilyLine> {
    let policy = rules.resolve();
    let line = |(name, family_kind): &(&'static str, sprag_core::dlp::Family)| {
        let kinds: Vec<(Entity, &str)> = (0_u16..)
            .zip(KINDS)
            .filter(|(_, kind)| kind.family == *family_kind)
            .map(|(place, kind)| (Entity(place), kind.id))
            .collect();
        let told = |way: Direction| {
            let mut by_action: Vec<(String, Vec<&str>)> = Vec::new();
            for (entity, id) in &kinds {
                let done = done(policy.action(*entity, way));
                match by_action.iter_mut().find(|(known, _)| *known == done) {
                    Some((_, ids)) => ids.push(id),
                    None => by_action.push((done, vec![id])),
                }
            }
            // What is done about most of them first; of the others by name.
            by_action.sort_by_key(|(_, ids)| std::cmp::Reverse(ids.len()));
            let part = |(place, (done, ids)): (usize, (String, Vec<&str>))| match place {
                0 => done,
                _ => format!("{done}: {}", ids.join(", ")),
            };
            by_action.into_iter().enumerate().map(part).collect::<Vec<_>>().join("; ")
        };
        FamilyLine {
            title: family(name),
            name,
            kinds: kinds.len(),
            request: told(Direction::Request),
            answer: told(Direction::Answer),
        }
    };
    FAMILIES.iter().map(line).collect()
}

fn family_of(of: sprag_core::dlp::Family) -> &'static str {
    FAMILIES.iter().find(|(_, known)| *known == of).map_or("", |(name, _)| family(name))
}

fn done(action: Action) -> String {
    match action {
        Action::Stop => "stops the call",
        Action::StopIfSure => "stops the call where it is sure, or is hidden",
        Action::Hide(Hiding::ForGood) => "hidden for good",
        Action::Hide(Hiding::Reversible) => "hidden, and given back",
        Action::Note => "on record only",
        Action::Pass => "not looked for",
    }
    .to_owned()
}

fn profile(profile: Profile) -> &'static str {
    match profile {
        Profile::Default => "default",
        Profile::SecretsOnly => "secrets_only",
        Profile::Strict => "strict",
        Profile::LogOnly => "log_only",
        Profile::Off => "off",
    }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Logged => "logged",
        Outcome::Covered => "hidden and given back",
        Outcome::Redacted => "hidden",
        Outcome::Blocked => "stopped",
    }
}

fn tone(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Blocked => "bad",
        Outcome::Logged => "odd",
        Outcome::Covered | Outcome::Redacted => "good",
    }
}
