//! What is set in the data directory while the command runs, and holds for it: kills, and agents that are switched off.
//!
//! The dashboard shows a command as it goes on, so its Kill button must end it. Files are looked at, and read only when they
//! have changed. What is taken back later is not followed: by then the command is over.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sprag_core::policy::{AgentStanding, Kill, KillScope};
use sprag_store::{Catalog, RunKey, StoreError};

use super::tally::{Stop, Tally};
use crate::app::App;

/// How often is looked.
const LOOK: Duration = Duration::from_millis(500);
/// A change is written into the second, and into the first later.
const FILES: [&str; 2] = ["catalog.db", "catalog.db-wal"];

/// Follows the catalog of a data directory for as long as the command runs.
pub(super) async fn follow_forever(app: Arc<App>, main: Arc<Path>, run: RunKey, tally: Arc<Tally>) {
    let mut every = tokio::time::interval(LOOK);
    let mut seen = None;
    loop {
        every.tick().await;
        let changed = FILES.map(|file| changed_at(&main.join(file)));
        if seen == Some(changed) {
            continue;
        }
        let (app, main, run, tally) = (app.clone(), main.clone(), run.clone(), tally.clone());
        // What cannot be read now is tried again.
        if tokio::task::spawn_blocking(move || take_over(&app, &main, &run, &tally))
            .await
            .is_ok_and(|done| done.is_ok())
        {
            seen = Some(changed);
        }
    }
}

fn changed_at(file: &Path) -> Option<(SystemTime, u64)> {
    let file = fs::metadata(file).ok()?;
    Some((file.modified().ok()?, file.len()))
}

/// Makes what is in force there be in force here.
fn take_over(app: &App, main: &Path, run: &RunKey, tally: &Tally) -> Result<(), StoreError> {
    let Some(there) = Catalog::read(main)? else { return Ok(()) };
    let here = app.catalog.snapshot();
    let now = app.clock.now();
    let is_new = |kill: &&Arc<Kill>| {
        kill.is_in_force(now) && here.kills.of_scope(&kill.scope).is_none_or(|known| known.id != kill.id)
    };
    for kill in there.kills.iter().filter(is_new) {
        let concerns = match &kill.scope {
            KillScope::Everything => true,
            KillScope::Agent(agent) => *agent == run.agent,
            KillScope::Run { agent, run: id } => *agent == run.agent && tally.knows(id),
            _ => false,
        };
        app.catalog.kill(Kill::clone(kill), &[])?;
        if concerns {
            tally.end(Stop {
                run: kill.run().map(|(_, id)| id.for_caller().to_owned()),
                reason: kill.reason.clone(),
                summary: Some(format!("killed by {} while it ran", kill.by)),
                proof: kill.proof.clone(),
            });
        }
    }
    let is_active_here = here.agent(&run.agent).is_none_or(|standing| standing.active);
    if let Some(standing) = there.agent(&run.agent).filter(|standing| is_active_here && !standing.active) {
        app.catalog.set_agent(&run.agent, |_| AgentStanding::clone(standing))?;
    }
    Ok(())
}
