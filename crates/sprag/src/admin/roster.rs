//! The agents in pages: those on record, the latest seen first, and then by name those that are only configured or set up.
//!
//! The record knows who called, the catalog and the configuration who else there is. None of them is ever read whole for
//! one page: there may be very many.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use sprag_core::id::AgentName;
use sprag_core::limits::{AGENTS_WALKED, OFFERED_AGENTS, PAGE_ROWS};
use sprag_core::policy::DeactivatedBy;
use sprag_store::StoreError;
use sprag_store::catalog::Snapshot;
use sprag_store::history::{AgentRow, History};

use super::Admin;
use super::problem::Problem;
use crate::app::App;

/// Where an agent stands, to list only those that do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum AgentState {
    /// It may call.
    Active,
    /// It may not, whoever did that.
    Inactive,
    /// Its kill switch did that.
    Killed,
    /// Its kill switch is on.
    Armed,
}

/// Which agents are listed.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentFilter {
    /// Their name has this in it, whatever its case.
    pub(super) name_part: String,
    pub(super) state: Option<AgentState>,
}

/// An agent, and what it did if it ever called.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) name: AgentName,
    pub(super) row: Option<AgentRow>,
}

/// A page of agents.
#[derive(Debug)]
pub(super) struct AgentsPage {
    pub(super) agents: Vec<Listed>,
    /// Where the next page begins.
    pub(super) next: Option<String>,
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Among those on record, behind this place in their listing.
    Seen(Option<String>),
    /// Among the others, behind this name.
    Unseen(Option<AgentName>),
}

/// How agents are found.
struct Roster<'a> {
    history: &'a History,
    filter: &'a AgentFilter,
    /// Whether an agent stands as the filter wants.
    is_in_state: &'a dyn Fn(&AgentName) -> bool,
    /// Those that the catalog or the configuration knows and the filter lets through, by name, behind one of them.
    set_up: &'a dyn Fn(Option<&AgentName>) -> Vec<AgentName>,
    /// Rows of one question, and of all that are asked for one page.
    rows: u32,
    most_walked: usize,
}

impl Admin {
    /// A page of the agents that a filter lets through.
    pub(super) async fn agents(
        &self,
        filter: AgentFilter,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<AgentsPage, Problem> {
        let app = self.app.clone();
        let read = move |history: &History| {
            let place = Place::read(cursor.as_deref())?;
            let snapshot = app.catalog.snapshot();
            let is_in_state = |name: &AgentName| is_in_state(&app, &snapshot, filter.state, name);
            let roster = Roster {
                history,
                filter: &filter,
                is_in_state: &is_in_state,
                set_up: &|behind| set_up(&app, &snapshot, &filter, behind),
                rows: PAGE_ROWS,
                most_walked: AGENTS_WALKED,
            };
            roster.page(place, limit)
        };
        self.records.read(read).await
    }

    /// Names of agents to choose from: those that called last, and where they are few also others.
    pub(super) async fn agent_names(&self) -> Result<Vec<String>, Problem> {
        let app = self.app.clone();
        self.records.read(move |history| offered(&app, history)).await
    }
}

/// Names to choose from, the latest seen first.
pub(super) fn offered(app: &Arc<App>, history: &History) -> Result<Vec<String>, StoreError> {
    let mut names: Vec<String> = history.agent_names(OFFERED_AGENTS)?.iter().map(ToString::to_string).collect();
    let room = (OFFERED_AGENTS as usize).saturating_sub(names.len());
    let (snapshot, settings) = (app.catalog.snapshot(), app.settings.load());
    let set_up = settings.policies.agents.keys().chain(snapshot.agents().map(|(name, _)| name));
    let seen: HashSet<&str> = names.iter().map(String::as_str).collect();
    let others: BTreeSet<&AgentName> = set_up.filter(|name| !seen.contains(name.as_str())).take(room).collect();
    let others: Vec<String> = others.into_iter().map(ToString::to_string).collect();
    names.extend(others);
    Ok(names)
}

impl Roster<'_> {
    fn page(&self, place: Place, limit: u32) -> Result<AgentsPage, StoreError> {
        let size = limit.clamp(1, PAGE_ROWS) as usize;
        // One more than the page holds tells whether there is another page.
        let (mut agents, stopped_at) = self.walk(place, size + 1)?;
        let has_more = agents.len() > size;
        agents.truncate(size);
        let next = if has_more { agents.last().map(Listed::place) } else { stopped_at };
        Ok(AgentsPage { agents, next: next.map(|place| place.to_string()) })
    }

    /// So many agents from a place on. Where it was given up before, because too many had to be looked at, that place too.
    fn walk(&self, from: Place, most: usize) -> Result<(Vec<Listed>, Option<Place>), StoreError> {
        let (mut found, mut walked) = (Vec::new(), 0);
        let behind = match from {
            Place::Unseen(behind) => behind,
            Place::Seen(mut cursor) => loop {
                let rows = if self.filter.state.is_some() { self.rows } else { most as u32 };
                let page = self.history.agents(&self.filter.name_part, cursor.as_deref(), rows)?;
                walked += page.items.len();
                let listed = page.items.into_iter().filter(|row| (self.is_in_state)(&row.name));
                found.extend(listed.map(|row| Listed { name: row.name.clone(), row: Some(row) }));
                if found.len() >= most {
                    found.truncate(most);
                    return Ok((found, None));
                }
                match page.next {
                    None => break None,
                    Some(next) if walked >= self.most_walked => return Ok((found, Some(Place::Seen(Some(next))))),
                    next => cursor = next,
                }
            },
        };
        let others = (self.set_up)(behind.as_ref());
        let mut parts = others.chunks(self.rows as usize).peekable();
        while let Some(names) = parts.next() {
            let seen: HashSet<AgentName> = self.history.seen_of(names)?.into_iter().collect();
            let unseen = names.iter().filter(|name| !seen.contains(name));
            found.extend(unseen.map(|name| Listed { name: name.clone(), row: None }));
            walked += names.len();
            if found.len() >= most {
                found.truncate(most);
                return Ok((found, None));
            }
            if walked >= self.most_walked && parts.peek().is_some() {
                return Ok((found, names.last().cloned().map(|name| Place::Unseen(Some(name)))));
            }
        }
        Ok((found, None))
    }
}

/// Those that the catalog or the configuration knows and the filter lets through, by name, behind one of them.
fn set_up(app: &App, snapshot: &Snapshot, filter: &AgentFilter, behind: Option<&AgentName>) -> Vec<AgentName> {
    let settings = app.settings.load();
    let part = filter.name_part.to_ascii_lowercase();
    let all = snapshot.agents().map(|(name, _)| name).chain(settings.policies.agents.keys());
    let is_listed = |name: &&AgentName| {
        behind.is_none_or(|behind| *name > behind)
            && name.as_str().to_ascii_lowercase().contains(&part)
            && is_in_state(app, snapshot, filter.state, name)
    };
    let mut names: Vec<AgentName> = all.filter(is_listed).cloned().collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn is_in_state(app: &App, snapshot: &Snapshot, state: Option<AgentState>, name: &AgentName) -> bool {
    let standing = snapshot.agent(name);
    match state {
        None => true,
        Some(AgentState::Active) => standing.is_none_or(|standing| standing.active),
        Some(AgentState::Inactive) => standing.is_some_and(|standing| !standing.active),
        Some(AgentState::Killed) => {
            standing.is_some_and(|standing| standing.deactivated_by == Some(DeactivatedBy::KillSwitch))
        }
        Some(AgentState::Armed) => app.kill_switch(name).enabled,
    }
}

impl Listed {
    fn place(&self) -> Place {
        match &self.row {
            Some(row) => Place::Seen(Some(row.cursor())),
            None => Place::Unseen(Some(self.name.clone())),
        }
    }
}

impl Place {
    fn read(cursor: Option<&str>) -> Result<Place, StoreError> {
        let Some(cursor) = cursor else { return Ok(Place::Seen(None)) };
        let bad = || StoreError::BadCursor(cursor.chars().take(64).collect());
        match cursor.split_once('.').ok_or_else(bad)? {
            ("seen", rest) => Ok(Place::Seen(Some(rest.to_owned()))),
            ("name", rest) => AgentName::parse(rest).map(|name| Place::Unseen(Some(name))).map_err(|_| bad()),
            _ => Err(bad()),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Seen(behind) => write!(f, "seen.{}", behind.as_deref().unwrap_or_default()),
            Place::Unseen(behind) => write!(f, "name.{}", behind.as_ref().map_or("", |name| name.as_str())),
        }
    }
}

#[cfg(test)]
mod tests {
    use sprag_core::event::{Event, EventKind};
    use sprag_core::time::Timestamp;
    use sprag_store::DataDir;
    use sprag_store::history::HistorySettings;

    use super::*;

    #[test]
    fn so_many_are_looked_at_for_a_page_and_the_next_one_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let data = Arc::new(DataDir::open(dir.path()).unwrap());
        let history = History::open_embedded(data, HistorySettings::default()).unwrap();
        let name = |text: &str| AgentName::parse(text).unwrap();
        for (at, agent) in (1..).zip(["rare-1", "b", "c", "d", "rare-2", "f"]) {
            history
                .record(&Event { agent: name(agent), ..Event::new(agent.into(), Timestamp(at), EventKind::LlmCall) });
        }
        history.flush().unwrap();
        let all = ["c", "d", "rare-1", "rare-3", "rare-4"].map(name);
        let is_rare = |name: &AgentName| name.as_str().starts_with("rare");
        let set_up = |behind: Option<&AgentName>| -> Vec<AgentName> {
            all.iter().filter(|name| is_rare(name) && behind.is_none_or(|behind| *name > behind)).cloned().collect()
        };
        let filter = AgentFilter { name_part: String::new(), state: Some(AgentState::Inactive) };
        let pages = |most_walked: usize, limit: u32| {
            let roster = Roster {
                history: &history,
                filter: &filter,
                is_in_state: &is_rare,
                set_up: &set_up,
                rows: 2,
                most_walked,
            };
            let (mut pages, mut cursor) = (Vec::new(), None);
            loop {
                let page = roster.page(Place::read(cursor.as_deref()).unwrap(), limit).unwrap();
                pages.push(page.agents.iter().map(|agent| agent.name.to_string()).collect::<Vec<_>>().join(" "));
                cursor = page.next;
                if cursor.is_none() {
                    return pages;
                }
            }
        };
        assert_eq!(pages(100, 9), ["rare-2 rare-1 rare-3 rare-4"], "far below the bound");
        assert_eq!(pages(9, 9), ["rare-2 rare-1 rare-3 rare-4"], "at the bound: six on record and three others");
        assert_eq!(pages(8, 9), ["rare-2 rare-1 rare-3", "rare-4"], "past it");
        assert_eq!(pages(2, 9), ["rare-2", "", "rare-1 rare-3", "rare-4"], "what is rare among many comes later");
        assert_eq!(pages(2, 1), ["rare-2", "", "rare-1", "rare-3", "rare-4"]);
    }
}
