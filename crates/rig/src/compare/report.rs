//! The result as a page: the goals first, then every number.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::goals::GOALS;
use super::scenarios::Scenario;
use super::{Rows, added, median};
use crate::process;

const TARGETS: [&str; 4] = ["direct", "nginx", "sprag", super::WITH_REDIS];
/// More than this much of a core taken by others, and the figures are not to be trusted.
const NOISE_CORES: f64 = 0.1;

pub struct Report<'a> {
    rows: &'a Rows,
    chosen: &'a [&'static Scenario],
    rounds: usize,
    program_bytes: u64,
}

impl<'a> Report<'a> {
    pub fn new(rows: &'a Rows, chosen: &'a [&'static Scenario], rounds: usize, program: &Path) -> Report<'a> {
        Report { rows, chosen, rounds, program_bytes: program.metadata().map_or(0, |meta| meta.len()) }
    }

    /// Whether every goal was measured and met.
    pub fn is_met(&self) -> bool {
        GOALS.iter().all(|goal| goal.value(self.rows).is_some_and(|value| goal.is_met(value)))
    }

    pub fn goals_table(&self) -> String {
        let mut text = "| | Sprag | goal | |\n|---|---:|---:|---|\n".to_owned();
        for goal in &GOALS {
            let (value, verdict) = match goal.value(self.rows) {
                Some(value) if goal.is_met(value) => (format!("{value:.2}{}", goal.unit), "met"),
                Some(value) => (format!("{value:.2}{}", goal.unit), "**not met**"),
                None => ("–".to_owned(), "not measured"),
            };
            text.push_str(&format!("| {} | {value} | {} | {verdict} |\n", goal.title, goal.bound()));
        }
        text
    }

    pub fn markdown(&self) -> String {
        let mut text = format!(
            "# Benchmark: Sprag beside nginx\n\n{}; {} rounds; program of {:.1} MiB. {}\n\n{}\n",
            process::machine(),
            self.rounds,
            self.program_bytes as f64 / f64::from(1 << 20),
            self.noise(),
            self.goals_table()
        );
        text.push_str(
            "`×` is to nginx in the same run. Figures are medians of all rounds; `added` is beyond the direct way.\n",
        );
        for scenario in self.chosen {
            text.push_str(&self.table(scenario));
        }
        text
    }

    fn noise(&self) -> String {
        let mut values: Vec<f64> =
            self.rows.values().flatten().filter_map(|row| row.get("other_cores").copied()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let middle = values.get(values.len() / 2).copied().unwrap_or(0.0);
        let trust =
            if middle > NOISE_CORES { "The machine was not quiet: ratios say more than absolute figures." } else { "" };
        format!("Others kept {middle:.2} cores busy, at the median. {trust}").trim_end().to_owned()
    }

    fn table(&self, scenario: &Scenario) -> String {
        let names: Vec<&'static str> = {
            let rows = TARGETS.iter().filter_map(|target| self.rows.get(&(scenario.name, *target))).flatten();
            let names: BTreeMap<&'static str, ()> = rows.flat_map(|row| row.keys().map(|name| (*name, ()))).collect();
            names.into_keys().collect()
        };
        let is_added = |name: &str| name.contains("p50") || name.contains("p99");
        let mut head = "| |".to_owned();
        for name in &names {
            head.push_str(&format!(" {name} |"));
            if is_added(name) {
                head.push_str(" added | × nginx |");
            }
        }
        let columns = head.matches('|').count() - 2;
        let mut text =
            format!("\n## {} (`{}`)\n\n{head}\n|---|{}\n", scenario.title, scenario.name, "---:|".repeat(columns));
        for target in TARGETS {
            if !self.rows.contains_key(&(scenario.name, target)) {
                continue;
            }
            text.push_str(&format!("| {target} |"));
            for name in &names {
                text.push_str(&format!(" {} |", shown(median(self.rows, scenario.name, target, name))));
                if is_added(name) {
                    let of = |target| added(self.rows, scenario.name, target, name);
                    let times =
                        of(target).zip(of("nginx")).map(|(own, nginx)| own / nginx).filter(|_| target == "sprag");
                    text.push_str(&format!(
                        " {} | {} |",
                        shown(of(target).filter(|_| target != "direct")),
                        shown(times)
                    ));
                }
            }
            text.push('\n');
        }
        text
    }

    pub fn json(&self) -> Result<String> {
        let goals: Vec<_> = GOALS
            .iter()
            .map(|goal| {
                let value = goal.value(self.rows);
                json!({"goal": goal.title, "bound": goal.bound(), "value": value, "met": value.map(|v| goal.is_met(v))})
            })
            .collect();
        let rows: BTreeMap<String, _> =
            self.rows.iter().map(|((scenario, target), rows)| (format!("{scenario}.{target}"), rows)).collect();
        Ok(serde_json::to_string_pretty(&json!({"machine": process::machine(), "goals": goals, "rows": rows}))?)
    }
}

fn shown(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value.abs() >= 1000.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 100.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}
