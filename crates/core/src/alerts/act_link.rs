//! Links in messages that do something about the run that a message is about. Which are offered, and whether one that is
//! followed later still fits how the run stands. How they are signed and used once is not decided here.

use serde::{Deserialize, Serialize};

use super::alert::{Alert, AlertState};
use crate::policy::{Kill, KillKind};

/// What a link does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkAct {
    /// Lets a paused run go on.
    Approve,
    /// Stops a run for good.
    Kill,
    /// Lets a killed run go on.
    Resume,
}

impl LinkAct {
    /// What a button says.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            LinkAct::Approve => "Approve run",
            LinkAct::Kill => "Kill run",
            LinkAct::Resume => "Resume run",
        }
    }
}

/// A link in a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ActLink {
    /// What it does.
    pub act: LinkAct,
    /// Where it leads. Whoever has it may do it, once.
    pub url: String,
}

/// How the run stands that a link is about.
#[derive(Clone, Copy, Debug)]
pub struct RunStanding<'a> {
    /// What stops it now.
    pub stopped: Option<&'a Kill>,
    /// It has made no call for so long that it counts as ended, or nothing is on record of it.
    pub is_over: bool,
}

/// Why a link does nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moot {
    /// The run is killed already.
    Killed,
    /// Nothing stops the run any more.
    Free,
    /// It was stopped again since, for another reason.
    StoppedAnew,
    /// It has ended.
    Over,
}

/// What an alert offers, by what stops its run when it is sent.
#[must_use]
pub fn offered(alert: &Alert, stopped: Option<&Kill>) -> &'static [LinkAct] {
    if alert.occurrence.run.is_none() || matches!(alert.state, AlertState::Recovered | AlertState::Test) {
        return &[];
    }
    match stopped.map(|kill| kill.kind) {
        Some(KillKind::Pause) => &[LinkAct::Approve, LinkAct::Kill],
        Some(KillKind::Kill) => &[LinkAct::Resume],
        None => &[LinkAct::Kill],
    }
}

/// Whether a link still fits. `kill` is what stopped the run when the link was made: nobody lets a run go on from a stop
/// that the message did not tell of.
///
/// # Errors
/// Says why it does not.
pub fn fits(act: LinkAct, kill: Option<&str>, standing: RunStanding<'_>) -> Result<(), Moot> {
    let kind = standing.stopped.map(|kill| kill.kind);
    match (act, kind) {
        (LinkAct::Kill, Some(KillKind::Kill)) => Err(Moot::Killed),
        (LinkAct::Kill, None) if standing.is_over => Err(Moot::Over),
        (LinkAct::Kill, _) => Ok(()),
        (LinkAct::Approve | LinkAct::Resume, None) => Err(Moot::Free),
        (LinkAct::Approve, Some(KillKind::Kill)) => Err(Moot::Killed),
        (LinkAct::Approve | LinkAct::Resume, Some(_)) => {
            let is_same = standing.stopped.map(|kill| kill.id.as_str()) == kill;
            if is_same { Ok(()) } else { Err(Moot::StoppedAnew) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::{AlertKind, Occurrence};
    use crate::time::Timestamp;

    fn kill(id: &str, kind: KillKind) -> Kill {
        Kill {
            id: id.to_owned(),
            scope: "run:bot/task".parse().unwrap(),
            kind,
            reason: "loop_detected".to_owned(),
            by: "sprag".to_owned(),
            at: Timestamp(0),
            expires_at: None,
            proof: None,
        }
    }

    fn alert(run: Option<&str>, state: AlertState) -> Alert {
        let occurrence = Occurrence { run: run.map(str::to_owned), ..Occurrence::default() };
        Alert::new(("r", AlertKind::RunKilled), "bot", state, Timestamp(0), 0, occurrence)
    }

    #[test]
    fn an_alert_offers_what_fits_its_run() {
        let (paused, killed) = (kill("k1", KillKind::Pause), kill("k2", KillKind::Kill));
        let firing = alert(Some("task"), AlertState::Firing);
        assert_eq!(offered(&firing, Some(&paused)), [LinkAct::Approve, LinkAct::Kill]);
        assert_eq!(offered(&firing, Some(&killed)), [LinkAct::Resume]);
        assert_eq!(offered(&firing, None), [LinkAct::Kill]);
        assert_eq!(offered(&alert(None, AlertState::Firing), Some(&paused)), []);
        assert_eq!(offered(&alert(Some("task"), AlertState::Recovered), None), []);
        assert_eq!(offered(&alert(Some("task"), AlertState::Test), None), []);
    }

    #[test]
    fn a_link_fits_only_the_stop_that_its_message_told_of() {
        let (paused, killed) = (kill("k1", KillKind::Pause), kill("k2", KillKind::Kill));
        let live = RunStanding { stopped: None, is_over: false };
        let over = RunStanding { stopped: None, is_over: true };
        let at = |kill| RunStanding { stopped: Some(kill), is_over: false };
        for (act, told, standing, expected) in [
            (LinkAct::Kill, None, live, Ok(())),
            (LinkAct::Kill, Some("k1"), at(&paused), Ok(())),
            (LinkAct::Kill, None, at(&killed), Err(Moot::Killed)),
            (LinkAct::Kill, None, over, Err(Moot::Over)),
            (LinkAct::Approve, Some("k1"), at(&paused), Ok(())),
            (LinkAct::Approve, Some("k0"), at(&paused), Err(Moot::StoppedAnew)),
            (LinkAct::Approve, Some("k1"), at(&killed), Err(Moot::Killed)),
            (LinkAct::Approve, Some("k1"), live, Err(Moot::Free)),
            (LinkAct::Resume, Some("k2"), at(&killed), Ok(())),
            (LinkAct::Resume, Some("k1"), at(&killed), Err(Moot::StoppedAnew)),
            (LinkAct::Resume, Some("k2"), at(&paused), Err(Moot::StoppedAnew)),
            (LinkAct::Resume, Some("k2"), over, Err(Moot::Free)),
        ] {
            assert_eq!(fits(act, told, standing), expected, "{act:?} {told:?} {standing:?}");
        }
    }
}
