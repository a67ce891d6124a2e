//! `sprag demo`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use tokio_util::sync::CancellationToken;

use super::serve::cancel_on_signal;
use crate::demo::{Wish, demo, provider_port, settings};
use crate::{core_file, logging};

pub(super) fn play(wish: &Wish) -> Result<ExitCode> {
    core_file::forbid();
    // Goes with everything in it when this function ends.
    let dir = tempfile::Builder::new().prefix("sprag-demo-").tempdir().context("making a folder for the demo")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let provider = provider_port().await?;
        let settings = settings(wish, dir.path(), provider.local_addr()?).await?;
        logging::set_up(&settings.log)?;
        let shutdown = CancellationToken::new();
        tokio::spawn(cancel_on_signal(shutdown.clone())?);
        demo(wish, settings, provider, &mut std::io::stdout(), shutdown).await
    })?;
    Ok(ExitCode::SUCCESS)
}
