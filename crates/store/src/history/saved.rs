//! What stops have saved, counted only from what is proven.
//!
//! A stop whose proof names steps that repeat each other saves, for each call that it refuses, what one of those steps
//! cost on average: the loop would have gone on as it went. The call that tripped the detector is the first of them;
//! later ones count while the run is held by that stop, up to [`SAVED_CALLS`]. Steps that are merely similar, kills by
//! hand, limits and budgets save nothing here, for nobody knows what would have followed.

use rusqlite::{OptionalExtension, Transaction, params};
use sprag_core::event::{ActKind, Ending, Event, RunRecord};
use sprag_core::limits::{PAGE_ROWS, SAVED_CALLS};
use sprag_core::loops::{Action, Verdict};
use sprag_core::money::NanoUsd;

/// Fewer do not make a repetition.
const FEWEST_REPEATS: usize = 2;

/// Who acts when nobody did.
const BY_ITSELF: &str = "sprag";

/// Refusals that follow from the stop of a run.
const HELD: [&str; 2] = ["run_killed", "run_paused"];

/// Whether [`count`] has anything to look up. Most events are neither acts nor refusals.
pub(super) fn concerns(event: &Event) -> bool {
    event.run.is_some() && (event.act.is_some() || event.blocked && event.ending == Ending::Refused)
}

/// Sets what refusing the request has saved; to be called once for each event that it [`concerns`], after it was inserted
/// and before any that came later.
pub(super) fn count(transaction: &Transaction<'_>, event: &mut Event) -> rusqlite::Result<()> {
    let Some(run) = &event.run else { return Ok(()) };
    if let Some(act) = &event.act {
        // A kill by hand takes the place of the stop, and saves nothing.
        let is_by_hand = matches!(act.what, ActKind::Kill | ActKind::Pause) && act.by != BY_ITSELF;
        if is_by_hand || matches!(act.what, ActKind::Resume | ActKind::Approve | ActKind::Lift) {
            let mut release = transaction.prepare_cached("DELETE FROM repeats WHERE agent = ?1 AND run_id = ?2")?;
            release.execute(params![event.agent.as_str(), run.id.as_str()])?;
        }
        return Ok(());
    }
    if !event.blocked || event.ending != Ending::Refused {
        return Ok(());
    }
    let is_held = event.block_reason.as_deref().is_some_and(|reason| HELD.contains(&reason));
    let each = match &event.verdict {
        Some(verdict) if verdict.action.stops() => begin(transaction, event, run, verdict)?,
        _ if is_held => go_on(transaction, event, run)?,
        _ => None,
    };
    let Some(each) = each else { return Ok(()) };
    event.saved = Some(NanoUsd(each));
    transaction
        .prepare_cached("UPDATE events SET saved_nano = ?2 WHERE id = ?1")?
        .execute(params![event.id, each])
        .map(drop)
}

/// A stop: what each refused call saves from now on.
fn begin(
    transaction: &Transaction<'_>,
    event: &Event,
    run: &RunRecord,
    verdict: &Verdict,
) -> rusqlite::Result<Option<i64>> {
    let steps = verdict.finding.repeated_steps();
    let mut costs = Vec::new();
    if steps.len() >= FEWEST_REPEATS {
        let mut recent = transaction.prepare_cached(RECENT_COSTS)?;
        let found = recent.query_map(params![event.agent.as_str(), run.id.as_str(), PAGE_ROWS], |row| {
            Ok((row.get::<_, u32>(0)?, row.get::<_, i64>(1)?))
        })?;
        for row in found {
            let (step, cost) = row?;
            if steps.contains(&step) {
                costs.push(i128::from(cost));
            }
        }
    }
    if costs.len() < FEWEST_REPEATS {
        return Ok(None);
    }
    let each = i64::try_from(costs.iter().sum::<i128>() / costs.len() as i128).unwrap_or(0);
    let is_held = matches!(verdict.action, Action::KillRun | Action::Pause);
    let refused: u32 = transaction
        .prepare_cached(UPSERT)?
        .query_row(params![event.agent.as_str(), run.id.as_str(), each, is_held, event.at.0], |row| row.get(0))?;
    Ok((refused <= SAVED_CALLS).then_some(each))
}

/// A later call of a run that is held by a stop.
fn go_on(transaction: &Transaction<'_>, event: &Event, run: &RunRecord) -> rusqlite::Result<Option<i64>> {
    transaction
        .prepare_cached(COUNT)?
        .query_row(params![event.agent.as_str(), run.id.as_str(), SAVED_CALLS], |row| row.get(0))
        .optional()
}

// Proofs name late steps, so that the latest ones suffice.
const RECENT_COSTS: &str = "
SELECT step, cost_nano FROM (SELECT step, cost_nano FROM events WHERE agent = ?1 AND run_id = ?2
    ORDER BY at DESC, seq DESC LIMIT ?3)
WHERE cost_nano > 0 AND step IS NOT NULL";

const UPSERT: &str = "
INSERT INTO repeats (agent, run_id, each_nano, is_held, refused, at) VALUES (?1, ?2, ?3, ?4, 1, ?5)
ON CONFLICT (agent, run_id) DO UPDATE SET
    each_nano = excluded.each_nano, is_held = excluded.is_held, refused = refused + 1, at = excluded.at
RETURNING refused";

const COUNT: &str = "
UPDATE repeats SET refused = refused + 1 WHERE agent = ?1 AND run_id = ?2 AND is_held = 1 AND refused < ?3
RETURNING each_nano";

#[cfg(test)]
mod tests;
