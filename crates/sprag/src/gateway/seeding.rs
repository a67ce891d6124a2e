//! What accounts have spent that a call is the first to draw on, and those that it should have drawn on.

use std::sync::Arc;

use sprag_core::event::Event;
use sprag_core::id::RunId;
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, Draw, Epoch, Holder, Seed, Span, Window};
use sprag_store::state::RunPlace;
use sprag_store::{RunKey, StoreError};

use crate::app::App;

/// Places of draws whose accounts must be opened, with the epoch for what is read now.
pub(crate) type Unseeded = Vec<(usize, Epoch)>;

/// Accounts that a call counts in though it did not draw on them, because no limit was set when it began.
#[derive(Debug, Default)]
pub(crate) struct Late {
    ids: Vec<AccountId>,
    is_begun: bool,
}

/// An account of which only this Sprag's own spending is known: the history that it shares with others is away.
#[derive(Debug)]
pub(crate) struct Unknown {
    /// Which of the draws.
    pub(crate) place: usize,
    /// What is on record here.
    pub(crate) spent_here: NanoUsd,
}

/// An account that must be opened from the record.
struct Asked {
    place: usize,
    epoch: Epoch,
    id: AccountId,
    span: Span,
}

/// Looks up what accounts have spent. `tree` are the runs of the call, as they stood when it was opened. Gives the accounts that
/// cannot be opened because what others have spent is not known.
///
/// # Errors
/// When what is on record here cannot be read.
pub(crate) async fn seed(
    app: &Arc<App>,
    draws: &mut [Draw],
    places: Unseeded,
    tree: &[RunPlace],
) -> Result<Vec<Unknown>, StoreError> {
    let mut on_record = Vec::new();
    for (place, epoch) in places {
        let Some(draw) = draws.get_mut(place) else { continue };
        match &draw.id.holder {
            Holder::Run(agent, id) => {
                // The run itself knows what it has spent.
                let run = RunKey { agent: agent.clone(), id: id.clone() };
                let at_opening = || tree.iter().find(|place| place.id == *id).map(|place| place.tree_cost);
                let tree_cost = app.state.totals(&run).map(|totals| totals.tree_cost).or_else(at_opening);
                let spent = app.spent_by_run(&draw.id, &run, tree_cost.unwrap_or_default());
                draw.seed = Some(Seed { spent, epoch });
            }
            Holder::Key(_) | Holder::Agent(_) | Holder::Everything => {
                on_record.push(Asked { place, epoch, id: draw.id.clone(), span: draw.span });
            }
        }
    }
    if on_record.is_empty() {
        return Ok(Vec::new());
    }
    let app = app.clone();
    let read = move || on_record.into_iter().map(|asked| asked.read(&app)).collect::<Result<Vec<_>, StoreError>>();
    let mut unknown = Vec::new();
    for found in tokio::task::spawn_blocking(read).await.unwrap_or(Err(StoreError::WriterGone))? {
        match found {
            Ok((place, seed)) => draws[place].seed = Some(seed),
            Err(account) => unknown.push(account),
        }
    }
    Ok(unknown)
}

impl Asked {
    /// Reads what was spent: by all, or where the shared history is away by this Sprag, if that is all there can be.
    fn read(self, app: &App) -> Result<Result<(usize, Seed), Unknown>, StoreError> {
        let Asked { place, epoch, id, span } = self;
        let error = match app.spent(&id, span) {
            Ok(spent) => return Ok(Ok((place, Seed { spent, epoch }))),
            Err(error) if app.history.is_shared() => error,
            Err(error) => return Err(error),
        };
        let spent_here = app.spent_here(&id, span)?;
        // Where the account was open until its time was over, whoever spent anything since has opened it anew.
        let goes_on = app.state.account(&id).is_some_and(|account| account.span.end == span.start);
        if goes_on {
            return Ok(Ok((place, Seed { spent: spent_here, epoch })));
        }
        tracing::warn!(%error, account = %id, "what all nodes have spent cannot be read");
        Ok(Err(Unknown { place, spent_here }))
    }
}

impl Late {
    /// The accounts.
    pub(crate) fn ids(&self) -> &[AccountId] {
        &self.ids
    }

    /// What a call is about to put on record. `draws` are the accounts that it drew on, `runs` its runs.
    pub(crate) fn begin(app: &App, event: &Event, runs: &[RunId], draws: [&[Draw]; 2]) -> Late {
        if event.cost.unwrap_or_default() == NanoUsd::ZERO || !app.state.is_limited() {
            return Late::default();
        }
        let ids = undrawn(event, runs, draws);
        app.state.begin_change(in_force(&ids));
        Late { ids, is_begun: true }
    }

    /// It could not be put on record: nothing is charged.
    pub(crate) fn give_up(self, app: &App) {
        if self.is_begun {
            app.state.end_change(in_force(&self.ids));
        }
    }

    /// It is on record: accounts that are open meanwhile are charged, and what they reach is put on record too.
    pub(crate) fn end(self, app: &App, event: &Event, runs: &[RunId], draws: [&[Draw]; 2]) {
        let Late { mut ids, is_begun } = self;
        let cost = event.cost.unwrap_or_default();
        if !is_begun {
            // Where the first budget was set this very moment.
            if cost == NanoUsd::ZERO || !app.state.is_limited() {
                return;
            }
            ids = undrawn(event, runs, draws);
        }
        let charged = app.state.charge_late(ids.iter(), event.at, cost);
        if is_begun {
            app.state.end_change(in_force(&ids));
        }
        for (place, before) in charged {
            for crossed in app.crossed(&ids[place], before, before + cost) {
                app.record_reached(&crossed, &event.agent);
            }
        }
    }
}

/// An account in shadow changes with the one in force.
fn in_force(ids: &[AccountId]) -> impl Iterator<Item = &AccountId> {
    ids.iter().filter(|id| !id.is_shadow)
}

/// Every account that a call would have drawn on, if there had been a limit.
fn undrawn(event: &Event, runs: &[RunId], draws: [&[Draw]; 2]) -> Vec<AccountId> {
    let runs = runs.iter().map(|run| (Holder::Run(event.agent.clone(), run.clone()), Window::Run));
    let key = event.key.as_deref().map(|key| Holder::Key(key.into()));
    let others = key.into_iter().chain([Holder::Agent(event.agent.clone()), Holder::Everything]);
    let others = others.flat_map(|holder| [Window::Day, Window::Month].map(|window| (holder.clone(), window)));
    let ids = |(holder, window): (Holder, Window)| {
        [false, true].map(|is_shadow| AccountId { holder: holder.clone(), window, is_shadow })
    };
    let is_drawn = |id: &AccountId| draws.iter().any(|of| of.iter().any(|draw| draw.id == *id));
    runs.chain(others).flat_map(ids).filter(|id| !is_drawn(id)).collect()
}
