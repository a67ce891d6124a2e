//! "What would have happened with these thresholds": a small form, and the answer to it.

use sprag_core::limits::PROGRESS_STEPS;
use sprag_core::loops::ProgressRule;
use sprag_store::history::StepRow;

use super::chart::{Chart, Point};
use super::levels;
use crate::admin::trial::{Thresholds, Tried};
use crate::show;

/// The thresholds as a browser sends them: an empty field is none.
#[derive(Clone, Debug, Default)]
pub(super) struct Given {
    pub(super) repeats: Option<String>,
    pub(super) same_results: Option<String>,
    pub(super) stall: Option<String>,
    pub(super) likeness: Option<String>,
    pub(super) window: Option<String>,
    pub(super) window_seconds: Option<String>,
    pub(super) asked_again: Option<String>,
    pub(super) compactions: Option<String>,
}

/// The form with its answer.
pub(in crate::admin::pages) struct TrialView {
    pub(in crate::admin::pages) fields: Vec<Field>,
    /// What is wrong with what was given.
    pub(in crate::admin::pages) complaint: Option<String>,
    pub(in crate::admin::pages) answer: Option<Answer>,
}

/// One threshold.
pub(in crate::admin::pages) struct Field {
    pub(in crate::admin::pages) name: &'static str,
    pub(in crate::admin::pages) label: &'static str,
    /// What was given; empty where nothing was.
    pub(in crate::admin::pages) value: String,
    /// What holds while it is empty.
    pub(in crate::admin::pages) in_force: String,
    pub(in crate::admin::pages) least: &'static str,
    pub(in crate::admin::pages) most: &'static str,
    pub(in crate::admin::pages) step: &'static str,
}

/// What would have happened.
pub(in crate::admin::pages) struct Answer {
    /// `good`, `bad`, `odd`: how the answer is coloured.
    pub(in crate::admin::pages) tone: &'static str,
    pub(in crate::admin::pages) headline: String,
    pub(in crate::admin::pages) detail: String,
    pub(in crate::admin::pages) chart: Option<Chart>,
}

impl Given {
    fn is_empty(&self) -> bool {
        self.texts().iter().all(|text| text.is_none_or(|text| text.trim().is_empty()))
    }

    fn texts(&self) -> [Option<&String>; 8] {
        [
            self.repeats.as_ref(),
            self.same_results.as_ref(),
            self.stall.as_ref(),
            self.likeness.as_ref(),
            self.window.as_ref(),
            self.window_seconds.as_ref(),
            self.asked_again.as_ref(),
            self.compactions.as_ref(),
        ]
    }

    fn thresholds(&self) -> Result<Thresholds, String> {
        Ok(Thresholds {
            repeats: number("repeats", self.repeats.as_deref())?,
            same_results: number("same_results", self.same_results.as_deref())?,
            stall: number("stall", self.stall.as_deref())?,
            likeness: number("likeness", self.likeness.as_deref())?,
            asked_again: number("asked_again", self.asked_again.as_deref())?,
            compactions: number("compactions", self.compactions.as_deref())?,
            window: number("window", self.window.as_deref())?,
            window_seconds: number("window_seconds", self.window_seconds.as_deref())?,
        })
    }
}

fn number<T: std::str::FromStr>(name: &str, text: Option<&str>) -> Result<Option<T>, String> {
    match text.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => text.parse().map(Some).map_err(|_| format!("`{name}` is a number")),
        None => Ok(None),
    }
}

impl TrialView {
    /// The form; with the answer where something was given.
    pub(super) fn new(given: &Given, in_force: &ProgressRule, rows: &[StepRow]) -> TrialView {
        let fields = fields(given, in_force);
        let empty = TrialView { fields, complaint: None, answer: None };
        if given.is_empty() {
            return empty;
        }
        let rule = given
            .thresholds()
            .and_then(|thresholds| thresholds.rule(in_force).map_err(|problem| problem.detail.into_owned()));
        match rule {
            Ok(rule) => TrialView { answer: Some(Answer::new(&Tried::new(rows, &rule))), ..empty },
            Err(complaint) => TrialView { complaint: Some(complaint), ..empty },
        }
    }
}

impl Answer {
    fn new(tried: &Tried) -> Answer {
        let points: Vec<Point> = levels(tried.trial.levels.iter().copied());
        let chart = Chart::new(&points, Some(1.0));
        let Some(stop) = &tried.trial.stop else {
            let headline = match tried.refused_at {
                Some(step) => format!("Not stopped up to step {step}, where it was refused in fact"),
                None => "Not stopped".to_owned(),
            };
            let highest = tried.trial.levels.iter().map(|(_, level)| *level).fold(0.0, f32::max);
            let detail = format!(
                "It would have come to {} of a threshold. What it would have done after its last step nobody knows.",
                percent(highest)
            );
            return Answer { tone: "good", headline, detail, chart };
        };
        let when = match tried.refused_at {
            Some(refused) if refused == stop.step => "the step at which it was refused in fact".to_owned(),
            Some(refused) if refused > stop.step => match refused - stop.step {
                1 => "one step sooner than it was".to_owned(),
                steps => format!("{steps} steps sooner than it was"),
            },
            Some(refused) => format!("after step {refused}, where it was refused in fact"),
            None => "in fact nothing was refused".to_owned(),
        };
        let saved = match tried.spared {
            0 => String::new(),
            1 => format!(" One call less, {} saved.", show::usd_headline(tried.spared_cost)),
            steps => format!(" {steps} calls less, {} saved.", show::usd_headline(tried.spared_cost)),
        };
        Answer {
            tone: if tried.refused_at.is_none() && tried.is_answered { "odd" } else { "bad" },
            headline: format!("Stopped at step {}: {when}", stop.step),
            detail: format!("{}.{saved}", capital(&stop.finding.proof.summary)),
            chart,
        }
    }
}

/// A share of a threshold.
pub(super) fn percent(level: f32) -> String {
    format!("{:.0} %", level * 100.0)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn fields(given: &Given, rule: &ProgressRule) -> Vec<Field> {
    let shown = [
        show::number(rule.repeats),
        show::number(rule.same_results),
        show::number(rule.stall),
        show::number(rule.likeness),
        match rule.common.window.requests {
            0 => PROGRESS_STEPS.to_string(),
            steps => steps.to_string(),
        },
        match rule.common.window.seconds {
            0 => "no bound".to_owned(),
            seconds => seconds.to_string(),
        },
        rule.asked_again.to_string(),
        rule.compactions.to_string(),
    ];
    let plain = [
        ("repeats", "Repeats in a row", "2", "24", "any"),
        ("same_results", "Same results", "2", "24", "any"),
        ("stall", "Nothing new", "2", "100", "any"),
        ("likeness", "Words in common", "0.5", "1", "0.01"),
        ("window", "Steps looked at", "0", "100", "1"),
        ("window_seconds", "Seconds looked back", "0", "86400", "1"),
        ("asked_again", "Asked again", "2", "1000", "1"),
        ("compactions", "History rewritten", "2", "100", "1"),
    ];
    let field = |(((name, label, least, most, step), in_force), given): ((_, String), Option<&String>)| Field {
        name,
        label,
        value: given.map(|text| text.trim().to_owned()).unwrap_or_default(),
        in_force,
        least,
        most,
        step,
    };
    plain.into_iter().zip(shown).zip(given.texts()).map(field).collect()
}
