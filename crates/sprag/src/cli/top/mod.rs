//! `sprag top`: what runs, what it costs and what was stopped, live in a terminal.
//!
//! A thread asks the admin API (`follow`), the loop below takes keys and draws (`screen`, `view`). Without a terminal, or with
//! `--once`, one picture is printed as text.

mod follow;
mod screen;
#[cfg(test)]
mod tests;
mod view;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use self::follow::{Follower, read};
use self::screen::{Screen, Wish};
use super::client::Asking;

#[derive(Debug, Args)]
pub(super) struct Top {
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
    /// Print one picture and end
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    asking: Asking,
}

/// How long the loop waits for a key before it looks for news.
const PATIENCE: Duration = Duration::from_millis(100);
/// Columns and rows of a picture that is printed.
const PRINTED: (u16, u16) = (110, 36);

pub(super) fn top(top: Top) -> Result<ExitCode> {
    // What goes wrong at first is said as every command says it.
    let first = read(&top.asking)?;
    let mut screen = Screen::default();
    screen.take(Ok(first));
    if top.once || !std::io::stdout().is_terminal() {
        let mut out = std::io::stdout().lock();
        for line in picture(&mut screen, PRINTED)? {
            writeln!(out, "{line}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let follower = Follower::start(top.asking, Duration::from_secs(top.every));
    let mut terminal = ratatui::try_init().context("preparing the terminal")?;
    let ended = watch(&mut terminal, &mut screen, &follower);
    ratatui::try_restore().context("giving the terminal back")?;
    ended.map(|()| ExitCode::SUCCESS)
}

fn watch(terminal: &mut ratatui::DefaultTerminal, screen: &mut Screen, follower: &Follower) -> Result<()> {
    loop {
        terminal.draw(|frame| view::draw(frame, screen))?;
        if event::poll(PATIENCE)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            match screen.press(key) {
                Wish::Nothing => {}
                Wish::Leave => return Ok(()),
                Wish::Order(order) => follower.order(order),
            }
        }
        loop {
            match follower.news.try_recv() {
                Ok(news) => screen.take(news),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => anyhow::bail!("asking Sprag ended unexpectedly"),
            }
        }
    }
}

/// The screen as lines of text.
fn picture(screen: &mut Screen, (columns, rows): (u16, u16)) -> Result<Vec<String>> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows))?;
    terminal.draw(|frame| view::draw(frame, screen))?;
    let buffer = terminal.backend().buffer();
    let line = |row: u16| (0..columns).map(|column| buffer[(column, row)].symbol()).collect::<String>();
    Ok((0..rows).map(|row| line(row).trim_end().to_owned()).collect())
}
