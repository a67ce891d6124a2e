//! `sprag serve`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sprag_store::StoreError;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::clock::{Clock, Ids};
use crate::config::{Flags, Loaded, Settings, Sources, load};
use crate::core_file;
use crate::logging;
use crate::reload::reload_forever;
use crate::run_command::are_at_work;
use crate::server::Server;

/// How long a command may take to put on record what it did.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often is looked whether it has.
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn serve(flags: Flags) -> Result<ExitCode> {
    let sources = Sources::process(flags);
    let Loaded { settings, warnings, .. } = load(&sources)?;
    let read = std::fs::read(sources.place()).ok();
    logging::set_up(&settings.log)?;
    core_file::forbid();
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let app = open(settings).await?;
        let server = Server::bind(app.clone()).await?;
        server.greet(&mut std::io::stdout().lock())?;
        let shutdown = CancellationToken::new();
        tokio::spawn(cancel_on_signal(shutdown.clone())?);
        tokio::spawn(reload_forever(app, sources, read));
        server.run(shutdown).await
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the data directory. A command that ends has it for a moment, and is waited for.
async fn open(settings: Settings) -> Result<Arc<App>> {
    let patience = Instant::now() + PATIENCE;
    let mut is_told = false;
    loop {
        let opened = App::new(settings.clone(), Clock::Real, Ids::Random);
        let is_in_use = |error: &anyhow::Error| matches!(error.downcast_ref(), Some(StoreError::InUse { .. }));
        let may_pass = opened.as_ref().is_err_and(is_in_use) && Instant::now() < patience;
        if !may_pass || !are_at_work(&settings.data_dir) {
            return opened;
        }
        if !std::mem::replace(&mut is_told, true) {
            tracing::info!("the data directory is in use; waiting for a command that ends");
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The first SIGTERM or Ctrl-C drains; the second one ends the program at once.
pub(super) fn cancel_on_signal(shutdown: CancellationToken) -> Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("catching SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("catching SIGINT")?;
    Ok(async move {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        tracing::info!("draining: no new requests, answers under way finish");
        shutdown.cancel();
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        tracing::warn!("stopped before everything had finished");
        std::process::exit(130);
    })
}
