//! The picture. Everything that agents or providers chose is shown without control characters.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Flex, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Clear, Paragraph, Row, Sparkline, Table, Wrap};
use sprag_store::history::RunStatus;

use super::follow::Reading;
use super::screen::Screen;
use crate::admin::api::model::{EventRecord, RunSummary};
use crate::show;

/// Rows of stops that are shown.
const STOPS: u16 = 7;

pub(super) fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let [head, charts, runs, stops, foot] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(5),
        Constraint::Min(6),
        Constraint::Length(STOPS + 2),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    if let Some(reading) = &screen.reading {
        draw_head(frame, head, reading);
    }
    draw_charts(frame, charts, screen);
    draw_runs(frame, runs, screen);
    draw_stops(frame, stops, screen);
    draw_foot(frame, foot, screen);
    draw_question(frame, screen);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, reading: &Reading) {
    let (status, today) = (&reading.status, &reading.status.today);
    let first = Line::from(vec![
        "Sprag ".bold().cyan(),
        format!(
            "{} · up {} · proxy {}",
            status.version,
            show::seconds(status.uptime_seconds),
            show::plain(&status.proxy)
        )
        .dim(),
    ]);
    let number = |text: String| Span::from(text).bold();
    let mut second = vec![
        "today  ".dim(),
        number(show::count(today.requests)),
        " calls  ".into(),
        number(show::usd_known(today.cost_usd.0, today.unpriced)),
        "  ".into(),
        number(show::short_count(today.input_tokens)),
        " in  ".into(),
        number(show::short_count(today.output_tokens)),
        " out  ".into(),
        Span::styled(show::count(today.blocked), tone(today.blocked > 0, Color::Red)),
        " stopped  ".into(),
        Span::styled(show::count(today.errors), tone(today.errors > 0, Color::Yellow)),
        " failed".into(),
    ];
    if status.kills > 0 {
        second.push(format!("  {} kills in force", show::count(status.kills)).red());
    }
    let third = match (status.recording.ok, status.detection_failures) {
        (false, _) => {
            Line::from(format!("recording is in trouble: {}", plain(&status.recording.problems.join("; ")))).red()
        }
        (_, 1..) => Line::from(format!("loop detection failed on {} requests", status.detection_failures)).red(),
        _ => Line::from(vec![
            "now    ".dim(),
            number(show::count(status.in_flight)),
            " in flight  ".into(),
            number(show::count(status.runs_in_memory)),
            " runs in memory".into(),
        ]),
    };
    frame.render_widget(Paragraph::new(vec![first, Line::from(second), third]), area);
}

fn draw_charts(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
    for (area, title, values, colour) in
        [(left, " calls ", &screen.calls, Color::Cyan), (right, " spend ", &screen.spent, Color::Green)]
    {
        let block = Block::new().borders(Borders::TOP).border_style(Style::new().dim()).title(title);
        let room = usize::from(block.inner(area).width);
        let latest = values.iter().skip(values.len().saturating_sub(room)).copied();
        frame.render_widget(Sparkline::default().block(block).data(latest).style(Style::new().fg(colour)), area);
    }
}

fn draw_runs(frame: &mut Frame<'_>, area: Rect, screen: &mut Screen) {
    let title = if screen.only_running { " runs that go on " } else { " runs " };
    let block = Block::new().borders(Borders::TOP).border_style(Style::new().dim()).title(title);
    let runs = screen.runs();
    if runs.is_empty() {
        let (proxy, nothing) = match &screen.reading {
            Some(reading) if reading.runs.is_empty() => (show::plain(&reading.status.proxy), true),
            _ => (String::new(), false),
        };
        let text = match nothing {
            true => format!(
                "Nothing has passed through yet. Point an agent at it:\n\n  export OPENAI_BASE_URL=http://{proxy}/v1"
            ),
            false => "No run goes on. Press a for all.".to_owned(),
        };
        frame.render_widget(Paragraph::new(text).block(block), area);
        return;
    }
    let rows: Vec<Row<'_>> = runs.into_iter().map(row).collect();
    let widths = [
        Constraint::Fill(3),
        Constraint::Fill(2),
        Constraint::Length(9),
        Constraint::Fill(2),
        Constraint::Length(6),
        Constraint::Length(12),
        Constraint::Length(9),
    ];
    let head = Row::new(["run", "agent", "status", "model", "steps", "cost", "last call"]).dim();
    let table = Table::new(rows, widths)
        .header(head)
        .block(block)
        .column_spacing(2)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, &mut screen.table);
}

fn row(run: &RunSummary) -> Row<'static> {
    let (word, style) = match run.status {
        RunStatus::Running => ("running", Style::new().green()),
        RunStatus::Killed => ("killed", Style::new().red()),
        RunStatus::Paused => ("paused", Style::new().yellow()),
        _ => ("over", Style::new().dim()),
    };
    let number = |text: String| Cell::from(Line::from(text).alignment(Alignment::Right));
    Row::new([
        Cell::from(plain(&run.id)),
        Cell::from(plain(&run.agent)),
        Cell::from(word).style(style),
        Cell::from(plain(run.model.as_deref().unwrap_or("–"))),
        number(show::count(run.steps)),
        number(show::usd_known(run.cost_usd.0, run.unpriced_steps)),
        Cell::from(clock(&run.last_at)),
    ])
}

fn draw_stops(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let block = Block::new().borders(Borders::TOP).border_style(Style::new().dim()).title(" stops ");
    let stops = screen.reading.iter().flat_map(|reading| &reading.stops);
    let lines: Vec<Line<'_>> = stops.take(usize::from(STOPS)).map(stop).collect();
    let text = if lines.is_empty() { vec![Line::from("Nothing was stopped.").dim()] } else { lines };
    frame.render_widget(Paragraph::new(text).block(block), area);
}

fn stop(event: &EventRecord) -> Line<'static> {
    let why = event.verdict.as_ref().map(|verdict| plain(&verdict.finding.proof.summary));
    let run =
        event.run.as_ref().map_or_else(String::new, |run| format!("{} step {}", plain(run.id.as_str()), run.step));
    Line::from(vec![
        format!("{}  ", clock(&event.at)).dim(),
        plain(event.block_reason.as_deref().unwrap_or("stopped")).red(),
        format!("  {}  {run}  ", plain(&event.agent)).into(),
        why.unwrap_or_default().dim(),
    ])
}

fn draw_foot(frame: &mut Frame<'_>, area: Rect, screen: &Screen) {
    let line = match &screen.complaint {
        Some(complaint) => Line::from(complaint.clone()).red(),
        None => Line::from(" ↑↓ choose   k kill   r resume   a all or only those that go on   q leave").dim(),
    };
    frame.render_widget(Paragraph::new(line), area);
}

fn draw_question(frame: &mut Frame<'_>, screen: &Screen) {
    let Some(order) = &screen.asked else { return };
    let text = format!(
        "{} run {} of {}?\n\ny yes   any other key no",
        word(order.what),
        plain(&order.run),
        plain(&order.agent)
    );
    let [area] = Layout::horizontal([Constraint::Max(64)]).flex(Flex::Center).areas(frame.area());
    let [area] = Layout::vertical([Constraint::Max(6)]).flex(Flex::Center).areas(area);
    frame.render_widget(Clear, area);
    let block = Block::bordered().border_style(Style::new().red());
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }).block(block), area);
}

fn word(what: &str) -> &'static str {
    if what == "kill" { "Kill" } else { "Resume" }
}

fn tone(is_bad: bool, colour: Color) -> Style {
    if is_bad { Style::new().fg(colour).bold() } else { Style::new().bold() }
}

fn plain(text: &str) -> String {
    show::plain(text)
}

/// The time of a moment in RFC 3339.
fn clock(at: &str) -> String {
    at.get(11..19).unwrap_or(at).to_owned()
}
