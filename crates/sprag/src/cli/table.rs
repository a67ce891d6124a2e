//! Aligned tables without frames.

use std::io::Write;

use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use sprag_core::event::Act;

use crate::admin::api::model::{EventRecord, RunSummary, Usd};
use crate::show;

/// A column: its title, and whether it holds numbers.
pub(super) type Column = (&'static str, bool);

const CALL_COLUMNS: [Column; 11] = [
    ("TIME", false),
    ("AGENT", false),
    ("RUN", false),
    ("STEP", true),
    ("MODEL", false),
    ("STATUS", true),
    ("IN", true),
    ("OUT", true),
    ("COST", true),
    ("TOOK", true),
    ("ENDING", false),
];

/// Prints rows under titles; numbers stand to the right.
///
/// # Errors
/// When standard output is closed.
pub(super) fn print(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for line in text(columns, rows).lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

pub(super) fn print_runs(runs: &[RunSummary]) -> Result<()> {
    const COLUMNS: [Column; 9] = [
        ("RUN", false),
        ("AGENT", false),
        ("STATUS", false),
        ("MODEL", false),
        ("STEPS", true),
        ("IN", true),
        ("OUT", true),
        ("COST", true),
        ("LAST CALL", false),
    ];
    print(
        &COLUMNS,
        runs.iter().map(|run| {
            vec![
                run.id.clone(),
                run.agent.clone(),
                word(&run.status),
                run.model.clone().unwrap_or_default(),
                show::count(run.steps),
                show::count(run.input_tokens),
                show::count(run.output_tokens),
                show::usd_known(run.cost_usd.0, run.unpriced_steps),
                run.last_at.clone(),
            ]
        }),
    )
}

pub(super) fn print_events(events: &[EventRecord], with_run: bool) -> Result<()> {
    let is_shown = |title: &str| with_run || !matches!(title, "AGENT" | "RUN");
    let shown: Vec<Column> = CALL_COLUMNS.into_iter().filter(|(title, _)| is_shown(title)).collect();
    print(
        &shown,
        events.iter().map(|event| {
            let cells = event_cells(event);
            CALL_COLUMNS.iter().zip(cells).filter(|((title, _), _)| is_shown(title)).map(|(_, cell)| cell).collect()
        }),
    )
}

pub(super) fn money(amount: Usd) -> String {
    show::usd(amount.0)
}

/// The word that the API uses for a value.
pub(super) fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// An act has no model, no tokens and no status: it is told in one sentence, and the cells of calls stay empty.
fn act_cells(event: &EventRecord, act: &Act) -> Vec<String> {
    let is_of_agent = ["agent:", "run:", "key:"].iter().any(|kind| act.target.starts_with(kind));
    let agent = if is_of_agent { event.agent.clone() } else { String::new() };
    let run = event.run.as_ref().map(|run| run.id.to_string()).unwrap_or_default();
    let mut cells = vec![event.at.clone(), agent, run];
    cells.resize(CALL_COLUMNS.len() - 1, String::new());
    cells.push(show::act_told(act));
    cells
}

fn event_cells(event: &EventRecord) -> Vec<String> {
    if let Some(act) = &event.act {
        return act_cells(event, act);
    }
    let about = if event.usage.is_some_and(|usage| usage.estimated) { "~" } else { "" };
    let tokens = |count: Option<u64>| count.map_or("-".to_owned(), |count| format!("{about}{}", show::count(count)));
    let cost = match event.cost_usd {
        Some(cost) => money(cost),
        None if event.unpriced => "no price".to_owned(),
        None => "-".to_owned(),
    };
    let mut ending = word(&event.ending);
    if !event.tools.is_empty() {
        ending = format!("{ending}, calls {}", event.tools.join(", "));
    }
    if let Some(why) = event.block_reason.as_ref().or(event.error.as_ref()) {
        ending = format!("{ending}: {why}");
    }
    let marks = [event.verdict.as_ref().map(show::verdict), event.shadow.as_ref().map(show::shadow)];
    let found = event.dlp.iter().flat_map(show::sightings);
    let limits = event.would_block.iter().map(show::would_block);
    for mark in marks.into_iter().flatten().chain(limits).chain(found) {
        ending = format!("{ending}; {mark}");
    }
    vec![
        event.at.clone(),
        event.agent.clone(),
        event.run.as_ref().map_or("-".to_owned(), |run| run.id.to_string()),
        event.run.as_ref().map_or("-".to_owned(), |run| run.step.to_string()),
        event.model.clone().unwrap_or_else(|| event.path.clone()),
        if event.status == 0 { "-".to_owned() } else { event.status.to_string() },
        tokens(event.usage.map(|usage| usage.prompt_tokens())),
        tokens(event.usage.map(|usage| usage.output)),
        cost,
        show::duration_ms(u64::from(event.total_ms)),
        ending,
    ]
}

fn text(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(columns.iter().map(|(title, _)| *title));
    for row in rows {
        // Names come from agents: a terminal must not obey them.
        table.add_row(row.iter().map(|cell| show::plain(cell)));
    }
    for (column, (_, is_number)) in table.column_iter_mut().zip(columns) {
        column.set_padding((0, 2));
        if *is_number {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_terminals_obey_nothing() {
        let rows = [["a", "1,000"], ["long\u{1b}[2Jname", "7"]].map(|row| row.map(str::to_owned).to_vec());
        let shown = text(&[("NAME", false), ("COUNT", true)], rows);
        let lines: Vec<_> = shown.lines().map(str::trim_end).collect();
        assert_eq!(lines, ["NAME          COUNT", "a             1,000", "long\u{fffd}[2Jname      7"]);
    }
}
