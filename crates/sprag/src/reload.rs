//! A new configuration for a running Sprag: on SIGHUP, and when the file changes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use notify::{RecursiveMode, Watcher};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use sprag_core::time::Timestamp;

use crate::app::App;
use crate::config::{Sources, load, needs_restart};

/// How a reload went.
#[derive(Clone, Debug)]
pub struct Reloaded {
    /// When.
    pub at: Timestamp,
    /// Why the new configuration is not in force.
    pub refused: Option<String>,
    /// Keys that hold from the next start on.
    pub waiting: Vec<&'static str>,
}

/// Editors write a file in several steps; they are taken together.
const SETTLE: Duration = Duration::from_millis(200);

/// Reloads whenever asked to, for as long as the program runs. `read` is the file as it was loaded: a change before the
/// watch began counts too. A file that is not there yet counts from the moment that somebody writes it.
///
/// # Errors
/// When SIGHUP cannot be caught.
pub async fn reload_forever(app: Arc<App>, sources: Sources, read: Option<Vec<u8>>) -> std::io::Result<()> {
    let mut hangups = signal(SignalKind::hangup())?;
    let (changed, mut changes) = mpsc::channel(1);
    let file = sources.place();
    let _watcher = watch(&file, changed);
    let content = || std::fs::read(&file).ok();
    let mut loaded = content();
    if loaded != read {
        reload(&app, &sources);
    }
    loop {
        tokio::select! {
            _ = hangups.recv() => loaded = content(),
            Some(()) = changes.recv() => {
                tokio::time::sleep(SETTLE).await;
                while changes.try_recv().is_ok() {}
                let now = content();
                if now == loaded {
                    continue;
                }
                loaded = now;
            }
        }
        reload(&app, &sources);
    }
}

/// Loads the configuration again. A bad one is refused, and the old one stays in force.
pub fn reload(app: &App, sources: &Sources) {
    let (refused, waiting) = match put_in_force(app, sources) {
        Ok(waiting) => (None, waiting),
        Err(why) => {
            tracing::error!(problems = why, "the new configuration is not usable; the old one stays in force");
            (Some(why), Vec::new())
        }
    };
    app.last_reload.store(Some(Arc::new(Reloaded { at: app.clock.now(), refused, waiting })));
}

/// Gives the keys that hold from the next start on, or why nothing changes.
fn put_in_force(app: &App, sources: &Sources) -> Result<Vec<&'static str>, String> {
    let loaded = load(sources).map_err(|problems| problems.to_string())?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let old = app.settings.load_full();
    let waiting = needs_restart(&old, &loaded.settings);
    app.replace_settings(loaded.settings).map_err(|error| format!("{error:#}"))?;
    match waiting.is_empty() {
        true => tracing::info!("configuration reloaded"),
        false => tracing::warn!(keys = waiting.join(", "), "configuration reloaded; some keys need a restart"),
    }
    Ok(waiting)
}

/// Watches the folder that names the file: editors replace files rather than write into them, and a mounted
/// configuration is a link that is pointed elsewhere. What changes there need not be the file.
fn watch(file: &Path, changed: mpsc::Sender<()>) -> Option<notify::RecommendedWatcher> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let notify_of_change = move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| !event.kind.is_access()) {
            // A full channel means that the file is looked at anyway.
            let _ = changed.try_send(());
        }
    };
    let watching = notify::recommended_watcher(notify_of_change).and_then(|mut watcher| {
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    watching
        .inspect_err(|error| tracing::warn!(%error, "the configuration file is not watched; send SIGHUP to reload"))
        .ok()
}
