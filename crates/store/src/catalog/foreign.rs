//! The catalog's side of sharing: rows for other nodes, and rows of theirs.
//!
//! The later change of a row wins, whoever made it. Two things are stronger than time: a key or token that somebody took back
//! stays so, and corrections of one account add up, for each node writes its own. What cannot be written is not taken, except
//! stops: those hold in memory, as they do when they are ordered here.

use std::sync::Arc;

use rusqlite::Connection;
use sprag_core::id::AgentName;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, AgentStanding, Kill, KillScope};
use sprag_core::time::Timestamp;

use super::stamper::Stamper;
use super::writer::Writer;
use super::{Bounds, Catalog, KeyEntry, Mark, Snapshot, TokenEntry, keys, table, tokens};
use crate::error::StoreError;
use crate::run_key::RunKey;
use crate::shards::with_lock;
use crate::shared_catalog::Unshared;
use crate::shared_catalog::row::{AgentPolicy, Content, Row, RowKind, RowName, Stamp};
use crate::shared_catalog::stamps;
use crate::state::RunTotals;

/// What a row of another node has changed here.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied {
    /// Something is stopped; with the clues to the run, where it is one.
    Killed(Arc<Kill>, Vec<u64>),
    /// A kill was taken back.
    Lifted(Arc<Kill>),
    /// A run was resumed.
    Marked(RunKey),
    /// An agent was set active or inactive.
    Standing(AgentName),
    /// What is set for an agent.
    Policy(AgentName),
    /// What an account has spent was corrected, by so much.
    Adjusted {
        /// Which account.
        account: AccountId,
        /// At which moment.
        at: Timestamp,
        /// What was added.
        amount: NanoUsd,
    },
    /// A virtual key.
    Key(Arc<KeyEntry>),
    /// An admin token.
    Token(Arc<TokenEntry>),
    /// Something is no longer remembered.
    Forgotten,
}

impl Catalog {
    /// From now on `unshared` hears which rows are changed here.
    pub fn share(&self, unshared: Arc<Unshared>) {
        // A second one would be the link of another Redis, which no process has.
        let _ = self.unshared.set(unshared);
    }

    /// The stamps of all rows of a kind, those that left not long ago included.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn stamps(&self, kind: RowKind) -> Result<Vec<(String, Stamp)>, StoreError> {
        with_lock(&self.writer, |writer| {
            let mut found = stamps::of_kind(&writer.connection, kind)?;
            found.retain(|(name, _)| {
                let row = RowName::new(kind, name.as_str());
                !writer.stamper.held().any(|(held, _)| *held == row)
            });
            let held = writer.stamper.held().filter(|(row, _)| row.kind == kind);
            found.extend(held.map(|(row, stamp)| (row.name.clone(), stamp.clone())));
            Ok(found)
        })
        .map_err(StoreError::database("be read"))
    }

    /// A row for other nodes; none where there is no such row.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn row(&self, name: &RowName) -> Result<Option<Row>, StoreError> {
        with_lock(&self.writer, |writer| {
            let Some(stamp) = writer.stamper.of(&writer.connection, name)? else { return Ok(None) };
            let row = |content| Some(Row { name: name.clone(), stamp: stamp.clone(), content });
            if stamp.gone_at.is_some() {
                return Ok(row(None));
            }
            Ok(content(&writer.connection, &self.snapshot(), name)?.and_then(|content| row(Some(content))))
        })
        .map_err(StoreError::database("be read"))
    }

    /// Forgets that rows were taken away, where that is long ago.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn forget_gone(&self) -> Result<usize, StoreError> {
        with_lock(&self.writer, |writer| stamps::forget_gone(&writer.connection))
            .map_err(StoreError::database("be written"))
    }

    /// Takes rows of other nodes, as far as they are later than what is known here. Says what that has changed; nobody else
    /// is told of it. `so_far` says what a run has done, of which whoever resumed it may never have heard: all of that lies
    /// before the place from which it goes on.
    ///
    /// # Errors
    /// When they cannot be written. Then stops among them hold until the process ends, and nothing else is taken.
    pub fn apply(
        &self,
        rows: &[Row],
        so_far: impl Fn(&RunKey) -> Option<RunTotals>,
    ) -> Result<Vec<Applied>, StoreError> {
        self.change(|writer, snapshot| {
            let mut after = snapshot.clone();
            let written = writer.in_transaction(|transaction, stamper| {
                let mut applied = Vec::new();
                for row in rows {
                    let mut taking = Taking { connection: transaction, stamper, snapshot: &mut after, row };
                    applied.extend(taking.take(&self.bounds, &so_far)?);
                }
                make_room(transaction, &mut after, &self.bounds)?;
                Ok(applied)
            });
            match written {
                Ok(applied) => {
                    for done in &applied {
                        if let Applied::Killed(kill, _) | Applied::Lifted(kill) = done {
                            writer.forget(&kill.scope);
                        }
                    }
                    // A place may have been corrected, too.
                    let is_changed = !applied.is_empty() || !Arc::ptr_eq(&snapshot.marks, &after.marks);
                    *snapshot = after;
                    (Ok(applied), is_changed)
                }
                Err(error) => {
                    let held = rows.iter().filter(|row| hold(writer, snapshot, row)).count();
                    (Err(error), held > 0)
                }
            }
        })
    }
}

/// Whether an agent may call, without what is set for it.
pub(super) fn standing_of(standing: &AgentStanding) -> AgentStanding {
    AgentStanding { kill_switch: AgentStanding::default().kill_switch, policy: None, ..standing.clone() }
}

/// What is set for an agent.
pub(super) fn policy_of(standing: &AgentStanding) -> AgentPolicy {
    AgentPolicy { kill_switch: standing.kill_switch, policy: standing.policy.clone() }
}

fn content(connection: &Connection, snapshot: &Snapshot, row: &RowName) -> rusqlite::Result<Option<Content>> {
    let standing = || row.agent().and_then(|agent| snapshot.agent(&agent).cloned());
    Ok(match row.kind {
        RowKind::Kill => {
            let scope = row.name.parse::<KillScope>().ok();
            match scope.as_ref().and_then(|scope| snapshot.kills.of_scope(scope)) {
                Some(kill) => {
                    Some(Content::Kill(Box::new(Kill::clone(kill)), table::clues_of(connection, &kill.scope)?))
                }
                None => None,
            }
        }
        RowKind::Mark => row.run().and_then(|run| snapshot.mark(&run)).map(Content::Mark),
        RowKind::Standing => standing().map(|standing| Content::Standing(Box::new(standing_of(&standing)))),
        RowKind::Policy => standing().map(|standing| Content::Policy(policy_of(&standing))),
        RowKind::Adjustment => match row.adjusted() {
            Some((at, node, account)) => Some(Content::Adjustment(table::adjustment(connection, &account, at, node)?)),
            None => None,
        },
        RowKind::Key => snapshot.key(&row.name).map(|entry| Content::Key(Box::new(KeyEntry::clone(entry)))),
        RowKind::Token => snapshot.token(&row.name).map(|entry| Content::Token(Box::new(TokenEntry::clone(entry)))),
        RowKind::Channel | RowKind::Rule => None,
    })
}

/// One foreign row on its way in.
struct Taking<'a> {
    connection: &'a Connection,
    stamper: &'a mut Stamper,
    snapshot: &'a mut Snapshot,
    row: &'a Row,
}

impl Taking<'_> {
    fn take(
        &mut self,
        bounds: &Bounds,
        so_far: &dyn Fn(&RunKey) -> Option<RunTotals>,
    ) -> rusqlite::Result<Option<Applied>> {
        let row = self.row;
        let is_later = self.stamper.lets_in(self.connection, &row.name, &row.stamp)?;
        match &row.content {
            Some(Content::Key(theirs)) => return self.take_key(theirs, is_later, bounds.keys),
            Some(Content::Token(theirs)) => return self.take_token(theirs, is_later, bounds.tokens),
            _ if !is_later => return Ok(None),
            _ => {}
        }
        let applied = match &row.content {
            Some(Content::Kill(kill, clues)) => {
                let is_new = self.snapshot.kills.of_scope(&kill.scope).is_none();
                if kill.run().is_none() && is_new && self.snapshot.kills.wide().count() >= bounds.wide_kills {
                    return Ok(self.refuse("there are too many kills of agents, keys and descriptors"));
                }
                let kill = Arc::new(Kill::clone(kill));
                table::insert_kill(self.connection, &kill, clues)?;
                self.snapshot.kills.insert(kill.clone());
                Some(Applied::Killed(kill, clues.clone()))
            }
            Some(Content::Mark(theirs)) => return self.take_mark(*theirs, so_far),
            Some(Content::Standing(theirs)) => {
                let change = |known: &AgentStanding| AgentStanding {
                    kill_switch: known.kill_switch,
                    policy: known.policy.clone(),
                    ..AgentStanding::clone(theirs)
                };
                match self.set_agent(bounds.agents, change)? {
                    Some(agent) => Some(Applied::Standing(agent)),
                    None => return Ok(None),
                }
            }
            Some(Content::Policy(AgentPolicy { kill_switch, policy })) => {
                let change = |known: &AgentStanding| AgentStanding {
                    kill_switch: *kill_switch,
                    policy: policy.clone(),
                    ..known.clone()
                };
                match self.set_agent(bounds.agents, change)? {
                    Some(agent) => Some(Applied::Policy(agent)),
                    None => return Ok(None),
                }
            }
            Some(Content::Adjustment(amount)) => self.adjust(Some(*amount))?,
            Some(Content::Key(_) | Content::Token(_) | Content::Made(_)) => return Ok(None),
            None => self.remove()?,
        };
        self.stamper.adopt(self.connection, row.name.clone(), &row.stamp)?;
        Ok(applied)
    }

    /// The row left elsewhere.
    fn remove(&mut self) -> rusqlite::Result<Option<Applied>> {
        let name = &self.row.name;
        Ok(match name.kind {
            RowKind::Kill => {
                let Ok(scope) = name.name.parse::<KillScope>() else { return Ok(None) };
                table::delete_kill(self.connection, &scope)?;
                self.snapshot.kills.remove(&scope).map(Applied::Lifted)
            }
            RowKind::Mark => {
                let Some(run) = name.run() else { return Ok(None) };
                table::delete_mark(self.connection, &run)?;
                Arc::make_mut(&mut self.snapshot.marks).remove(&run).map(|_| Applied::Forgotten)
            }
            RowKind::Adjustment => self.adjust(None)?,
            RowKind::Key => {
                keys::delete(self.connection, &name.name)?;
                let is_known = self.snapshot.key(&name.name).is_some();
                Arc::make_mut(&mut self.snapshot.keys).remove(&name.name);
                is_known.then_some(Applied::Forgotten)
            }
            RowKind::Token => {
                tokens::delete(self.connection, &name.name)?;
                let hash = self.snapshot.token(&name.name).map(|entry| entry.hash);
                let known = hash.and_then(|hash| Arc::make_mut(&mut self.snapshot.tokens).remove(&hash));
                known.map(|_| Applied::Forgotten)
            }
            // Agents are never taken away.
            RowKind::Standing | RowKind::Policy | RowKind::Channel | RowKind::Rule => None,
        })
    }

    fn set_agent(
        &mut self,
        most: usize,
        change: impl FnOnce(&AgentStanding) -> AgentStanding,
    ) -> rusqlite::Result<Option<AgentName>> {
        let Some(agent) = self.row.name.agent() else { return Ok(None) };
        let known = self.snapshot.agents.get(&agent).map(|known| (**known).clone());
        let standing = change(&known.clone().unwrap_or_default());
        if standing.active && known.is_none() && self.snapshot.agents.len() >= most {
            self.refuse("there are too many agents");
            return Ok(None);
        }
        table::insert_agent(self.connection, &agent, &standing)?;
        Arc::make_mut(&mut self.snapshot.agents).insert(agent.clone(), Arc::new(standing));
        Ok(Some(agent))
    }

    fn adjust(&mut self, amount: Option<NanoUsd>) -> rusqlite::Result<Option<Applied>> {
        let Some((at, node, account)) = self.row.name.adjusted() else { return Ok(None) };
        let before = table::adjustment(self.connection, &account, at, node)?;
        match amount {
            Some(amount) => table::insert_adjustment(self.connection, &account, at, node, amount)?,
            None => table::delete_adjustment(self.connection, &account, at, node)?,
        }
        let added = NanoUsd(amount.unwrap_or_default().0.saturating_sub(before.0));
        self.snapshot.add_adjustment(&account, at, added);
        Ok((added != NanoUsd::ZERO).then_some(Applied::Adjusted { account, at, amount: added }))
    }

    /// Of one resume the furthest place holds that any node knows of. A node adds what it knows once, when it hears of the
    /// resume: what the run does later counts.
    fn take_mark(
        &mut self,
        theirs: Mark,
        so_far: &dyn Fn(&RunKey) -> Option<RunTotals>,
    ) -> rusqlite::Result<Option<Applied>> {
        let Some(run) = self.row.name.run() else { return Ok(None) };
        let same = self.snapshot.mark(&run).filter(|mine| mine.at == theirs.at);
        let is_new = same.is_none();
        let of_totals =
            |totals: RunTotals| Mark { steps: totals.counted_steps(), cost: totals.tree_cost, at: theirs.at };
        let mine = same.or_else(|| so_far(&run).map(of_totals));
        let mark = mine.map_or(theirs, |mine| theirs.furthest(mine));
        table::insert_mark(self.connection, &run, mark)?;
        Arc::make_mut(&mut self.snapshot.marks).insert(run.clone(), mark);
        self.stamp(mark == theirs)?;
        Ok(is_new.then_some(Applied::Marked(run)))
    }

    fn take_key(&mut self, theirs: &KeyEntry, is_later: bool, most: usize) -> rusqlite::Result<Option<Applied>> {
        let mine = self.snapshot.key(&theirs.key.id).cloned();
        let revoked_at = theirs.key.revoked_at.or(mine.as_ref().and_then(|mine| mine.key.revoked_at));
        let mut entry = match (is_later, &mine) {
            (true, _) => theirs.clone(),
            (false, Some(mine)) if mine.key.revoked_at.is_none() && revoked_at.is_some() => KeyEntry::clone(mine),
            (false, _) => return Ok(None),
        };
        // Taken back is taken back, also where another node gave it a new secret meanwhile.
        let is_theirs = is_later && entry.key.revoked_at == revoked_at;
        entry.key.revoked_at = revoked_at;
        let holder = self.snapshot.key_of_secret(&entry.hash).map(|(holder, _)| holder.key.id.clone());
        if holder.is_some_and(|holder| holder != entry.key.id) {
            return Ok(self.refuse("its secret belongs to another key"));
        }
        if mine.is_none() && self.snapshot.keys.count >= most {
            return Ok(self.refuse("there are too many virtual keys"));
        }
        keys::insert(self.connection, &entry, keys::OR_CHANGE)?;
        self.stamp(is_theirs)?;
        let entry = Arc::new(entry);
        Arc::make_mut(&mut self.snapshot.keys).insert(&entry);
        Ok(Some(Applied::Key(entry)))
    }

    fn take_token(&mut self, theirs: &TokenEntry, is_later: bool, most: usize) -> rusqlite::Result<Option<Applied>> {
        let mine = self.snapshot.token(&theirs.token.id).cloned();
        let revoked_at = theirs.token.revoked_at.or(mine.as_ref().and_then(|mine| mine.token.revoked_at));
        let mut entry = match (is_later, &mine) {
            (true, _) => theirs.clone(),
            (false, Some(mine)) if mine.token.revoked_at.is_none() && revoked_at.is_some() => TokenEntry::clone(mine),
            (false, _) => return Ok(None),
        };
        let is_theirs = is_later && entry.token.revoked_at == revoked_at;
        entry.token.revoked_at = revoked_at;
        let holder = self.snapshot.token_of_secret(&entry.hash).map(|holder| holder.token.id.clone());
        let is_other = mine.as_ref().is_some_and(|mine| mine.hash != entry.hash);
        if is_other || holder.is_some_and(|holder| holder != entry.token.id) {
            return Ok(self.refuse("its secret is not the one that the token has here"));
        }
        if mine.is_none() && self.snapshot.tokens.len() >= most {
            return Ok(self.refuse("there are too many admin tokens"));
        }
        tokens::insert(self.connection, &entry, tokens::OR_CHANGE)?;
        self.stamp(is_theirs)?;
        let entry = Arc::new(entry);
        Arc::make_mut(&mut self.snapshot.tokens).insert(entry.hash, entry.clone());
        Ok(Some(Applied::Token(entry)))
    }

    /// With their stamp where the row is theirs; with a new one where it was put together here.
    fn stamp(&mut self, is_theirs: bool) -> rusqlite::Result<()> {
        let name = self.row.name.clone();
        match is_theirs {
            true => self.stamper.adopt(self.connection, name, &self.row.stamp),
            false => self.stamper.renew(self.connection, name, false),
        }
    }

    fn refuse(&self, why: &str) -> Option<Applied> {
        tracing::warn!(row = %self.row.name, why, "a row of another node is left out");
        None
    }
}

/// What is too much leaves, the oldest first.
fn make_room(connection: &Connection, snapshot: &mut Snapshot, bounds: &Bounds) -> rusqlite::Result<()> {
    let excess = snapshot.kills.run_count().saturating_sub(bounds.killed_runs);
    for scope in table::delete_oldest_runs(connection, excess)? {
        snapshot.kills.remove(&scope);
    }
    let excess = snapshot.marks.len().saturating_sub(bounds.marks);
    if excess > 0 {
        let gone = table::delete_oldest_marks(connection, excess)?;
        Arc::make_mut(&mut snapshot.marks).retain(|run, _| !gone.contains(run));
    }
    snapshot.remove_adjustments(table::delete_oldest_adjustments(connection, bounds.adjustments, None)?);
    Ok(())
}

/// Lets a stop hold that the disk refuses. False for all else.
fn hold(writer: &mut Writer, snapshot: &mut Snapshot, row: &Row) -> bool {
    let is_later = writer.stamper.lets_in(&writer.connection, &row.name, &row.stamp).unwrap_or(true);
    if !is_later {
        return false;
    }
    match &row.content {
        Some(Content::Kill(kill, clues)) => {
            snapshot.kills.insert(Arc::new(Kill::clone(kill)));
            writer.remember(&kill.scope, clues);
        }
        Some(Content::Standing(theirs)) if !theirs.active => {
            let Some(agent) = row.name.agent() else { return false };
            let known = snapshot.agents.get(&agent).map(|known| (**known).clone()).unwrap_or_default();
            let standing =
                AgentStanding { kill_switch: known.kill_switch, policy: known.policy, ..AgentStanding::clone(theirs) };
            Arc::make_mut(&mut snapshot.agents).insert(agent, Arc::new(standing));
        }
        Some(Content::Key(theirs)) if theirs.key.revoked_at.is_some() && snapshot.key(&theirs.key.id).is_some() => {
            Arc::make_mut(&mut snapshot.keys).insert(&Arc::new(KeyEntry::clone(theirs)));
        }
        Some(Content::Token(theirs)) if theirs.token.revoked_at.is_some() => {
            Arc::make_mut(&mut snapshot.tokens).insert(theirs.hash, Arc::new(TokenEntry::clone(theirs)));
        }
        _ => return false,
    }
    writer.stamper.hold_foreign(row.name.clone(), row.stamp.clone());
    true
}
