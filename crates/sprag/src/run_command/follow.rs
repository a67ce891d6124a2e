//! What is set in the data directory while the command runs, and holds for it: kills, and agents that are switched off.
//!
//! The dashboard shows a command as it goes on, so its Kill button must end it. Files are looked at, and read only when they
//! have changed. Only a pause is followed when it is taken back: after a kill the command is over.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sprag_core::policy::{AgentStanding, KeptProof, Kill, KillKind, KillScope};
use sprag_store::{Catalog, RunKey, StoreError};

use super::tally::{Stop, Tally};
use crate::acts::SPRAG;
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
    let mut written = Ok(());
    for kill in there.kills.iter().filter(is_new) {
        // First the command: it ends also where the disk takes no kill.
        heed(kill, run, tally);
        written = written.and(app.catalog.kill(Kill::clone(kill), &[]).map(drop));
    }
    written?;
    // The command goes on while it is paused, so it hears when that is over. What this process has paused itself is its own.
    let is_over = |kill: &&Arc<Kill>| {
        kill.kind == KillKind::Pause && kill.by != SPRAG && there.kills.of_scope(&kill.scope).is_none()
    };
    for pause in here.kills.iter().filter(is_over) {
        app.catalog.lift(&pause.id)?;
    }
    let is_active_here = here.agent(&run.agent).is_none_or(|standing| standing.active);
    if let Some(standing) = there.agent(&run.agent).filter(|standing| is_active_here && !standing.active) {
        app.catalog.set_agent(&run.agent, |_| AgentStanding::clone(standing))?;
    }
    Ok(())
}

/// Ends the command, if it is meant. It goes on when a part of one of its conversations is killed, which the agent that started
/// it hears of, and while it is paused.
fn heed(kill: &Kill, run: &RunKey, tally: &Tally) {
    let (is_meant, is_whole) = match &kill.scope {
        KillScope::Everything => (true, true),
        KillScope::Agent(agent) => (*agent == run.agent, true),
        KillScope::Run { agent, run: id } => (*agent == run.agent && tally.knows(id), tally.ends_with(id)),
        _ => (false, false),
    };
    if !is_meant {
        return;
    }
    let done = match kill.kind {
        KillKind::Kill => "killed",
        KillKind::Pause => "paused",
    };
    let stop = Stop {
        run: kill.run().map(|(_, id)| id.for_caller().to_owned()),
        reason: kill.reason.clone(),
        summary: Some(format!("{done} by {} while it ran", kill.by)),
        proof: kill.proof.as_ref().map(KeptProof::value),
    };
    match kill.kind == KillKind::Kill && is_whole {
        true => tally.end(stop),
        false => tally.note(stop),
    }
}

#[cfg(test)]
mod tests {
    use sprag_core::event::{Event, EventKind, RunOrigin, RunRecord};
    use sprag_core::id::{AgentName, RunId};
    use sprag_core::time::Timestamp;
    use sprag_store::history::Handover;

    use super::*;

    fn id(text: &str) -> RunId {
        RunId::parse(text).unwrap()
    }

    /// Whether a command with a conversation and a sub-agent is ended, and what its report tells.
    fn heeded(scope: KillScope, kind: KillKind) -> (bool, usize) {
        let dir = tempfile::tempdir().unwrap();
        let run = RunKey { agent: AgentName::default(), id: id("cmd-00000001") };
        let tally = Tally::new(run.id.clone(), Handover::begin(dir.path(), "cmd-00000001").unwrap());
        for (part, parent) in [("a", "cmd-00000001"), ("a:sub", "a")] {
            let record = RunRecord { id: id(part), step: 1, parent: Some(id(parent)), origin: RunOrigin::Conversation };
            let call = Event::new(format!("req_{part}"), Timestamp(1), EventKind::LlmCall);
            tally.take(&Event { run: Some(record), ..call });
        }
        let kill = Kill {
            id: "kill_1".to_owned(),
            scope,
            kind,
            reason: "enough".to_owned(),
            by: "ann".to_owned(),
            at: Timestamp(2),
            expires_at: None,
            proof: None,
        };
        // A kill that cannot be written is heard again.
        heed(&kill, &run, &tally);
        heed(&kill, &run, &tally);
        (tally.stops().borrow().is_some(), tally.seen().stops.len())
    }

    #[test]
    fn a_kill_of_the_whole_ends_the_command_and_one_of_a_part_does_not() {
        let of = |run: &str| KillScope::Run { agent: AgentName::default(), run: id(run) };
        let other = AgentName::parse("other").unwrap();
        for (scope, kind, expected) in [
            (of("cmd-00000001"), KillKind::Kill, (true, 1)),
            (of("a"), KillKind::Kill, (true, 1)),
            (of("a:sub"), KillKind::Kill, (false, 1)),
            (of("somebody-elses"), KillKind::Kill, (false, 0)),
            (of("cmd-00000001"), KillKind::Pause, (false, 1)),
            (KillScope::Everything, KillKind::Kill, (true, 1)),
            (KillScope::Everything, KillKind::Pause, (false, 1)),
            (KillScope::Agent(AgentName::default()), KillKind::Kill, (true, 1)),
            (KillScope::Agent(other), KillKind::Kill, (false, 0)),
        ] {
            assert_eq!(heeded(scope.clone(), kind), expected, "{scope} {kind:?}");
        }
    }
}
