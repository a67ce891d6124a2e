//! Where a command keeps its state while it runs, and how it gets into the record.
//!
//! The data directory belongs to one process, and that may be a `sprag serve` or nobody. So a command has a directory of its
//! own inside it, with a copy of what it must respect: kills, where agents stand, virtual keys, prices. What it does is
//! handed over as it happens: a `sprag serve` takes it within seconds. Where nobody has the directory, the command puts it
//! on record itself in the end.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use sprag_core::id::RunId;
use sprag_store::history::{Handover, HistoryElsewhere};
use sprag_store::{Catalog, DataDir, Outbox, StoreError};

use crate::app::{App, PRICE_FILE};
use crate::clock::{Clock, Ids};
use crate::config::Settings;
use crate::spent::spender;

const FOLDER: &str = "commands";
/// How long a command may take to lock its directory.
const SETTLING: Duration = Duration::from_secs(60);
/// How long the end of a command waits for alerts that are on their way.
const ALERTS: Duration = Duration::from_secs(5);

/// The directory of one command. It goes with it.
pub(super) struct Home {
    main: PathBuf,
    path: PathBuf,
    name: String,
}

/// Where the record of a command is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    /// In the data directory.
    Kept,
    /// With the process that has the data directory, which takes it within seconds.
    HandedOver,
    /// It waits for the next process that has the data directory.
    Waiting(String),
}

impl Home {
    /// Makes the directory, and takes away what commands left that were cut short.
    pub(super) fn make(main: &Path, command: &RunId) -> Result<Home> {
        let folder = main.join(FOLDER);
        clear(&folder);
        let path = folder.join(command.as_str());
        // Made, private, and locked for a moment: the process that keeps it is this one.
        let data = Arc::new(DataDir::open(&path)?);
        let outbox = Outbox::open(data)?;
        for made in Outbox::read_made(main).context("copying channels and rules of alerts")? {
            outbox.make(&made)?;
        }
        drop(outbox);
        let home = Home { main: main.to_owned(), path, name: command.to_string() };
        Catalog::copy(main, &home.path).context("copying kills and policies")?;
        let prices = main.join(PRICE_FILE);
        if prices.exists() {
            fs::copy(&prices, home.path.join(PRICE_FILE)).with_context(|| format!("copying {}", prices.display()))?;
        }
        Ok(home)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where events go.
    pub(super) fn handover(&self) -> Result<Handover> {
        Ok(Handover::begin(&self.main, &self.name)?)
    }

    /// Lets budgets of a day and a month begin with what is on record. Each is read once: later the command's own calls
    /// would be counted twice, here and there.
    pub(super) fn look_at_main(&self, app: &App) {
        let history = match HistoryElsewhere::open(&self.main) {
            Ok(Some(history)) => history,
            Ok(None) => return,
            Err(error) => return super::say(&format!("what was spent before is not counted in budgets: {error}")),
        };
        let read = Mutex::new(HashMap::new());
        let elsewhere = move |holder: &sprag_core::policy::Holder, since| {
            let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = read.get(&(holder.clone(), since)) {
                return Ok(*known);
            }
            let spent = spender(holder).map_or(Ok(Default::default()), |of| history.spent(of, since))?;
            read.insert((holder.clone(), since), spent);
            Ok(spent)
        };
        let _ = app.elsewhere.set(Box::new(elsewhere));
    }

    /// Waits a little for alerts that are on their way: nobody sends them later.
    pub(super) async fn deliver_alerts(&self, app: &App) {
        if app.alerts.in_force().channels.is_empty() {
            return;
        }
        let delivered = async {
            while app.alerts.outbox.waiting_channels().is_ok_and(|waiting| !waiting.is_empty()) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let _ = tokio::time::timeout(ALERTS, delivered).await;
    }

    /// Puts what was handed over on record where nobody else will. The directory stays until that is done: it tells others
    /// that a command is at work (`are_at_work`).
    pub(super) fn leave(self, main: &Settings) -> Record {
        let kept = App::new(main.clone(), Clock::Real, Ids::Random).and_then(|app| {
            app.adopt_waiting()?;
            Ok(app.history.settle()?)
        });
        match kept {
            Ok(()) => Record::Kept,
            Err(error) if matches!(error.downcast_ref(), Some(StoreError::InUse { .. })) => Record::HandedOver,
            Err(error) => Record::Waiting(format!("{error:#}")),
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Whether commands run in a data directory, or end. One that ends may have the directory for a moment.
pub(crate) fn are_at_work(main: &Path) -> bool {
    fs::read_dir(main.join(FOLDER)).is_ok_and(|mut homes| homes.next().is_some())
}

/// Takes away directories whose command is gone.
fn clear(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // One that was made just now is not locked yet.
        let is_old = entry.metadata().and_then(|file| file.modified()).ok().and_then(|at| at.elapsed().ok());
        if is_old.is_some_and(|age| age > SETTLING)
            && let Ok(left) = DataDir::open(&entry.path())
        {
            let _ = fs::remove_dir_all(left.path());
        }
    }
}
