//! What the screen shows, and what keys do to it.

use std::collections::VecDeque;

use anyhow::Result;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::widgets::TableState;
use sprag_store::history::RunStatus;

use super::follow::{Order, Reading};
use crate::admin::api::model::RunSummary;
use crate::show;

/// Looks that the small charts go back.
const LOOKS: usize = 240;

#[derive(Default)]
pub(super) struct Screen {
    pub(super) reading: Option<Reading>,
    /// Calls, and nano-dollars, between looks.
    pub(super) calls: VecDeque<u64>,
    pub(super) spent: VecDeque<u64>,
    pub(super) table: TableState,
    /// Only runs that go on.
    pub(super) only_running: bool,
    /// What waits for a yes.
    pub(super) asked: Option<Order>,
    /// What went wrong at the last look, or with the last order.
    pub(super) complaint: Option<String>,
    chosen: Option<(String, String)>,
}

/// What a key asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Leave,
    Order(Order),
}

impl Screen {
    /// Takes what a look saw, or why it saw nothing.
    pub(super) fn take(&mut self, news: Result<Reading>) {
        let reading = match news {
            Ok(reading) => reading,
            Err(error) => {
                self.complaint = Some(show::plain(&format!("{error:#}")));
                return;
            }
        };
        self.complaint = None;
        if let Some(before) = &self.reading {
            let (then, now) = (&before.status.today, &reading.status.today);
            // A new day begins at nothing.
            let calls = now.requests.checked_sub(then.requests).unwrap_or(now.requests);
            let spent = (now.cost_nano_usd.0 - then.cost_nano_usd.0).max(0);
            push(&mut self.calls, calls);
            push(&mut self.spent, u64::try_from(spent).unwrap_or(0));
        }
        self.reading = Some(reading);
        self.keep_chosen();
    }

    /// The runs in the table.
    pub(super) fn runs(&self) -> Vec<&RunSummary> {
        let all = self.reading.iter().flat_map(|reading| &reading.runs);
        all.filter(|run| !self.only_running || run.status == RunStatus::Running).collect()
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> Wish {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Wish::Leave;
        }
        if let Some(order) = self.asked.take() {
            return if key.code == KeyCode::Char('y') { Wish::Order(order) } else { Wish::Nothing };
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Wish::Leave,
            KeyCode::Down | KeyCode::Char('j') => self.go(1),
            KeyCode::Up => self.go(-1),
            KeyCode::PageDown => self.go(10),
            KeyCode::PageUp => self.go(-10),
            KeyCode::Home => self.go(-i64::MAX),
            KeyCode::Char('a') => {
                self.only_running = !self.only_running;
                self.keep_chosen();
            }
            KeyCode::Char('k') => self.asked = self.order("kill", |status| status != RunStatus::Killed),
            KeyCode::Char('r') => {
                let is_stopped = |status| matches!(status, RunStatus::Killed | RunStatus::Paused);
                self.asked = self.order("resume", is_stopped);
            }
            _ => {}
        }
        Wish::Nothing
    }

    fn order(&self, what: &'static str, fits: impl Fn(RunStatus) -> bool) -> Option<Order> {
        let (agent, run) = self.chosen.clone()?;
        let status = self.runs().into_iter().find(|one| one.agent == agent && one.id == run)?.status;
        fits(status).then_some(Order { what, agent, run })
    }

    fn go(&mut self, by: i64) {
        let runs = self.runs();
        let Some(last) = runs.len().checked_sub(1) else { return };
        let at = self.table.selected().map_or(0, |at| (at as i64).saturating_add(by).clamp(0, last as i64) as usize);
        let chosen = (runs[at].agent.clone(), runs[at].id.clone());
        self.table.select(Some(at));
        self.chosen = Some(chosen);
    }

    /// Rows move as runs come; the mark stays with its run.
    fn keep_chosen(&mut self) {
        let Some((agent, id)) = &self.chosen else { return };
        let at = self.runs().iter().position(|run| run.agent == *agent && run.id == *id);
        self.table.select(at);
        if at.is_none() {
            self.chosen = None;
        }
    }
}

fn push(looks: &mut VecDeque<u64>, value: u64) {
    if looks.len() == LOOKS {
        looks.pop_front();
    }
    looks.push_back(value);
}
