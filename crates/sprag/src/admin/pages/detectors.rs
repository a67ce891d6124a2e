//! Loop detection: what each detector does, what those in shadow would have done, and how that would have ended.

use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect};
use serde::Deserialize;
use serde_json::{Value, json};
use sprag_core::loops::{Action, Common, Detector, Mode, Rules, RunKind};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_store::history::{ShadowReport, ShadowRun};

use super::field::{Field, Form, put};
use super::filled::Filled;
use super::rows::RunRef;
use super::span::{Span, Tab};
use super::{Page, Shell, agents, html, link, news_at};
use crate::admin::Shared;
use crate::admin::api::model::TrialSums;
use crate::admin::api::{self, Params, desk};
use crate::admin::operator::{Operator, Visitor};
use crate::admin::problem::Problem;
use crate::show;

/// Runs that thresholds are tried on.
const TRIED: u32 = 200;
/// Runs in the list of those that would have been stopped.
const RUNS: u32 = 25;

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    span: Option<Span>,
    agent: Option<String>,
    /// Said after something was saved.
    saved: Option<String>,
    /// Thresholds to try on recorded runs.
    repeats: Option<String>,
    same_results: Option<String>,
    stall: Option<String>,
}

#[derive(Template)]
#[template(path = "detectors.html")]
struct Detectors {
    shell: Shell,
    /// Where the page asks for news of itself.
    live: String,
    /// Whose rules are shown; empty for the defaults.
    agent: String,
    agents: Vec<String>,
    detectors: Vec<DetectorLine>,
    change: Vec<Field>,
    complaint: Option<String>,
    is_saved: bool,
    spans: Vec<Tab>,
    span: &'static str,
    report: Report,
    runs: Vec<RunLine>,
    /// Thresholds to try, and what came of it.
    tries: Vec<Field>,
    trial: Option<Trial>,
}

/// What other thresholds would have done.
struct Trial {
    runs: usize,
    stopped: usize,
    ended_well: usize,
    saved: String,
    is_partial: bool,
    /// The run, the step at which it would have ended, and whether it ended well in fact.
    rows: Vec<(RunRef, u32, bool)>,
}

/// A detector in the table.
struct DetectorLine {
    name: &'static str,
    title: &'static str,
    mode: &'static str,
    tone: &'static str,
    action: String,
    thresholds: String,
    watches: String,
}

/// What rules in shadow would have done.
struct Report {
    detectors: Vec<Would>,
    limits: Vec<WouldRefuse>,
    stopped: u64,
    saved: String,
    ended_well: usize,
    is_partial: bool,
}

struct Would {
    name: String,
    runs: String,
    steps: String,
    saved: String,
}

struct WouldRefuse {
    reason: String,
    limit: String,
    requests: String,
    runs: String,
    cost: String,
}

/// A run that would have been stopped.
struct RunLine {
    agent: String,
    agent_href: String,
    run: RunRef,
    step: u32,
    rule: String,
    saved_steps: String,
    saved: String,
    ended_well: bool,
    finish: String,
}

/// The word for what the configuration says.
const CONFIGURED: &str = "configured";
const MODES: [(&str, &str); 5] = [
    ("", "as it is"),
    (CONFIGURED, "as configured"),
    ("enforce", "enforce"),
    ("shadow", "shadow: only watch"),
    ("off", "off"),
];
const ACTIONS: [(&str, &str); 9] = [
    ("", "as it is"),
    (CONFIGURED, "as configured"),
    ("warn", "warn: flag the step"),
    ("nudge", "nudge: tell the model what it repeats"),
    ("throttle", "throttle: make the request wait"),
    ("reject", "reject the request"),
    ("pause", "pause the run until somebody approves"),
    ("kill_run", "kill the run"),
    ("deactivate_agent", "deactivate the agent"),
];

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
    // What happens within this millisecond is over too.
    let (since, until) = (span.since(now), Timestamp(now.0 + 1));
    let read = admin
        .records
        .read(move |history| Ok((history.shadow_report(since, until)?, history.shadow_runs((since, until), RUNS)?)));
    let (report, runs) = read.await?;
    let names = admin.agent_names().await?;
    let rules = match &agent {
        Some(agent) => admin.app.policy(agent).rules.clone(),
        None => admin.app.settings.load().policies.defaults.rules_in_force(),
    };
    let agent = agent.map(|agent| agent.to_string()).unwrap_or_default();
    let (tries, trial) = try_thresholds(admin, &wanted, &agent, &rules).await?;
    let page = Detectors {
        shell: admin.shell("detectors", visitor),
        // Nobody wants runs to be judged again every second.
        live: match wanted.tries() {
            true => span.link("/detectors", &[("agent", Some(&agent))]),
            false => news_at(status, "/detectors").to_owned(),
        },
        agents: names,
        detectors: Detector::ALL.into_iter().map(|detector| DetectorLine::new(detector, &rules)).collect(),
        change: filled.fill(change_fields(&agent)),
        complaint: filled.rest(),
        is_saved: wanted.saved.is_some(),
        spans: span.tabs("/detectors", &[("agent", Some(&agent))]),
        span: span.label(),
        report: Report::new(&report, &runs),
        runs: runs.iter().map(RunLine::new).collect(),
        tries,
        trial,
        agent,
    };
    Ok(html(status, &page))
}

/// Judges the latest runs on record by other thresholds, where some are given.
async fn try_thresholds(
    admin: &Shared,
    wanted: &Wanted,
    agent: &str,
    rules: &Rules,
) -> Result<(Vec<Field>, Option<Trial>), Problem> {
    let rule = &rules.progress;
    let given = [
        ("repeats", "Repetitions", &wanted.repeats, rule.repeats),
        ("same_results", "Same results in a row", &wanted.same_results, rule.same_results),
        ("stall", "Stall", &wanted.stall, rule.stall),
    ];
    let mut order = json!({ "agent": agent, "runs": TRIED });
    let mut complaints = Vec::new();
    let mut is_tried = false;
    for (name, _, text, _) in given {
        let text = text.as_deref().map(str::trim).filter(|text| !text.is_empty());
        match text.map(str::parse::<f64>) {
            Some(Ok(number)) if number.is_finite() => {
                order[name] = Value::from(number);
                is_tried = true;
            }
            Some(_) => complaints.push((name.to_owned(), "a number".to_owned())),
            None => {}
        }
    }
    let trial = match is_tried && complaints.is_empty() {
        true => match desk::try_thresholds(admin, order).await {
            Ok(sums) => Some(Trial::new(sums)),
            Err(problem) if problem.status == StatusCode::BAD_REQUEST => {
                complaints = problem.slips();
                None
            }
            Err(problem) => return Err(problem),
        },
        false => None,
    };
    let field = |(name, label, text, now): (&str, &str, &Option<String>, f64)| {
        let held = text.clone().unwrap_or_default();
        let field = Field::new(name, label).placeholder(&show::number(now)).decimal().holding(&held);
        field.brought(&Form::new(), &mut complaints)
    };
    Ok((given.into_iter().map(field).collect(), trial))
}

/// Sets the mode or the action of a detector, for one agent.
pub(super) async fn set(State(admin): State<Shared>, visitor: Visitor, operator: Operator, filled: Filled) -> Page {
    let again = |filled| list(&admin, visitor, Wanted::default(), filled);
    let agent = match agents::agent(filled.text("agent")) {
        Ok(agent) => agent,
        Err(problem) => return again(filled.but("agent", problem.detail)).await,
    };
    let detector = filled.text("detector");
    if !Detector::ALL.iter().any(|known| known.as_str() == detector) {
        return again(filled.but("detector", "choose one of the list")).await;
    }
    let mut patch = json!({});
    for key in ["mode", "action"] {
        let value = match filled.text(key) {
            "" => continue,
            CONFIGURED => Value::Null,
            other => Value::from(other),
        };
        put(&mut patch, &format!("detection.{detector}.{key}"), value);
    }
    if patch == json!({}) {
        return again(filled.but("mode", "choose a mode, or what follows")).await;
    }
    match desk::change_agent(&admin, operator, &agent, json!({ "policy": patch })).await {
        Ok(()) => {
            let back = link::to("/detectors", &[("agent", Some(agent.as_str())), ("saved", Some("1"))]);
            Ok(Redirect::to(&back).into_response())
        }
        Err(problem) => {
            let field_of = |key: &str, _: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
            again(filled.refused(problem, field_of)?).await
        }
    }
}

fn change_fields(agent: &str) -> Vec<Field> {
    vec![
        Field::agent("agent").holding(agent),
        Field::new("detector", "Detector").choices(Detector::ALL.iter().map(|known| (known.as_str(), known.as_str()))),
        Field::new("mode", "Mode").choices(MODES),
        Field::new("action", "What follows").choices(ACTIONS),
    ]
}

impl Wanted {
    /// Thresholds are to be tried.
    fn tries(&self) -> bool {
        [&self.repeats, &self.same_results, &self.stall].into_iter().flatten().any(|text| !text.trim().is_empty())
    }
}

impl DetectorLine {
    fn new(detector: Detector, rules: &Rules) -> DetectorLine {
        let common = rules.common(detector);
        let (mode, tone) = match common.mode {
            Mode::Off => ("off", ""),
            Mode::Shadow => ("shadow", "odd"),
            Mode::Enforce => ("enforce", "good"),
        };
        DetectorLine {
            name: detector.as_str(),
            title: title(detector),
            mode,
            tone,
            action: match common.ladder.as_slice() {
                [] => act(common.action).to_owned(),
                ladder => ladder.iter().map(|action| act(*action)).collect::<Vec<_>>().join(", then "),
            },
            thresholds: thresholds(detector, rules),
            watches: watches(common),
        }
    }
}

fn title(detector: Detector) -> &'static str {
    match detector {
        Detector::Progress => "Repeated work without new information",
        Detector::Exact => "The same prompt or answer again",
        Detector::Similar => "Nearly the same prompt again",
        Detector::Oscillation => "A few prompts in turns",
        Detector::Score => "Similar prompts, answers and calls of an agent, weighted: the Kill Switch",
        Detector::Repeat => "The same request, byte for byte",
        Detector::Chant => "One answer that repeats itself while it streams",
        Detector::Velocity => "Money or tokens per minute far above the usual",
    }
}

fn act(action: Action) -> &'static str {
    match action {
        Action::Warn => "warn",
        Action::Nudge => "nudge the model",
        Action::Throttle => "make it wait",
        Action::Reject => "reject the request",
        Action::Pause => "pause the run",
        Action::KillRun => "kill the run",
        Action::DeactivateAgent => "deactivate the agent",
    }
}

fn thresholds(detector: Detector, rules: &Rules) -> String {
    match detector {
        Detector::Progress => {
            let rule = &rules.progress;
            format!(
                "{} repetitions, {} same results in a row, stall {}",
                show::number(rule.repeats),
                show::number(rule.same_results),
                show::number(rule.stall)
            )
        }
        Detector::Exact => format!("prompt {} times, answer {} times", rules.exact.prompts, rules.exact.answers),
        Detector::Similar => {
            let second = if rules.similar.needs_second_signal { " and a second signal" } else { "" };
            format!("over {} % common words{second}", show::number(rules.similar.threshold * 100.0))
        }
        Detector::Oscillation => {
            let rule = &rules.oscillation;
            format!("{} laps of up to {} prompts, {} with tools", rule.laps, rule.longest_period, rule.result_laps)
        }
        Detector::Score => format!("score over {}", show::number(rules.score.threshold)),
        Detector::Repeat => format!("{} identical requests", rules.repeat.threshold),
        Detector::Chant => format!("a passage {} times, over {} bytes", rules.chant.repeats, rules.chant.bytes),
        Detector::Velocity => {
            let rule = &rules.velocity;
            let usual = (rule.factor > 0.0).then(|| format!("{} times the usual", show::number(rule.factor)));
            let tokens = (rule.max_tokens_per_minute > 0)
                .then(|| format!("{} tokens a minute", show::count(rule.max_tokens_per_minute)));
            let money = i64::try_from(rule.max_nano_usd_per_minute).ok().filter(|nano| *nano > 0);
            let money = money.map(|nano| format!("{} a minute", show::usd_headline(NanoUsd(nano))));
            [usual, tokens, money].into_iter().flatten().collect::<Vec<_>>().join(", or ")
        }
    }
}

/// How far back it looks, and at which runs.
fn watches(common: &Common) -> String {
    let requests = (common.window.requests > 0).then(|| format!("last {} requests", common.window.requests));
    let seconds = (common.window.seconds > 0).then(|| format!("last {} s", common.window.seconds));
    let runs = (common.runs == RunKind::Declared).then(|| "runs that the caller names".to_owned());
    [requests, seconds, runs].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

impl Report {
    fn new(report: &ShadowReport, runs: &[ShadowRun]) -> Report {
        let saved: i64 = report.detectors.iter().fold(0, |sum, detector| detector.saved.0.saturating_add(sum));
        Report {
            detectors: report
                .detectors
                .iter()
                .map(|of| Would {
                    name: of.detector.clone(),
                    runs: show::count(of.runs),
                    steps: show::count(of.saved_steps),
                    saved: show::usd_cell(of.saved),
                })
                .collect(),
            limits: report
                .limits
                .iter()
                .map(|of| WouldRefuse {
                    reason: of.reason.replace('_', " "),
                    limit: of.exceeded_limit.clone().unwrap_or_default(),
                    requests: show::count(of.requests),
                    runs: show::count(of.runs),
                    cost: show::usd_cell(of.cost),
                })
                .collect(),
            stopped: report.detectors.iter().map(|detector| detector.runs).sum(),
            saved: show::usd_headline(NanoUsd(saved)),
            ended_well: runs.iter().filter(|run| run.ended_well).count(),
            is_partial: report.is_partial,
        }
    }
}

impl Trial {
    fn new(sums: TrialSums) -> Trial {
        let rows = sums.items.iter().take(RUNS as usize).map(|run| {
            let href = link::to_run(&run.agent, &run.id);
            (RunRef { id: run.id.clone(), href }, run.stopped.step, run.ended_well)
        });
        Trial {
            runs: sums.runs,
            stopped: sums.stopped,
            ended_well: sums.ended_well,
            saved: show::usd_headline(sums.saved_usd.0),
            is_partial: sums.partial,
            rows: rows.collect(),
        }
    }
}

impl RunLine {
    fn new(of: &ShadowRun) -> RunLine {
        let (agent, finding) = (of.run.agent.as_str(), &of.would.verdict.finding);
        RunLine {
            agent: agent.to_owned(),
            agent_href: link::to("/agent", &[("name", Some(agent))]),
            run: RunRef { id: of.run.id.to_string(), href: link::to_run(agent, of.run.id.as_str()) },
            step: of.would.step,
            rule: format!("{}: {}", finding.detector.as_str(), finding.loop_type.replace('_', " ")),
            saved_steps: show::count(of.would.saved_steps),
            saved: show::usd_cell(of.would.saved),
            ended_well: of.ended_well,
            finish: of.finish.clone().unwrap_or_default().replace('_', " "),
        }
    }
}
