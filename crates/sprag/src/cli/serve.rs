//! `sprag serve`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::clock::{Clock, Ids};
use crate::config::{Flags, Loaded, Sources, load};
use crate::core_file;
use crate::logging;
use crate::reload::reload_forever;
use crate::server::Server;

pub(super) fn serve(flags: Flags) -> Result<ExitCode> {
    let sources = Sources::process(flags);
    let Loaded { settings, warnings, file } = load(&sources)?;
    let read = file.as_deref().and_then(|file| std::fs::read(file).ok());
    logging::set_up(&settings.log)?;
    core_file::forbid();
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let app = App::new(settings, Clock::Real, Ids::Random)?;
        let server = Server::bind(app.clone()).await?;
        server.greet(&mut std::io::stdout().lock())?;
        let shutdown = CancellationToken::new();
        tokio::spawn(cancel_on_signal(shutdown.clone())?);
        tokio::spawn(reload_forever(app, sources, file, read));
        server.run(shutdown).await
    })?;
    Ok(ExitCode::SUCCESS)
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
