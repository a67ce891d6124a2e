//! How this Sprag is set up: addresses, files, the configuration in force without its secrets, the self-test, and who
//! may enter.

mod sections;
mod tokens;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use askama::Template;
use axum::extract::State;
use sprag_core::dlp::{Direction, Surface};
use sprag_core::wire::Dialect;

use self::sections::{ProviderLine, Section, ValueLine, providers, sections};
use self::tokens::{TokenLine, fields as token_fields};
pub(super) use self::tokens::{create as create_token, revoke as revoke_token};
use super::field::Field;
use super::filled::Filled;
use super::rows::Moment;
use super::{Page, Shell, html};
use crate::admin::Shared;
use crate::admin::api::desk;
use crate::admin::api::model::{SharedCatalog, SharedState};
use crate::admin::operator::Visitor;
use crate::show;

/// Files of the data directory that are counted; there are fewer, unless somebody put them there.
const FILES: usize = 10_000;
/// Tokens on the page. More of them are for the API.
const TOKENS: u32 = 100;

#[derive(Template)]
#[template(path = "settings.html")]
struct Settings {
    shell: Shell,
    facts: Vec<(&'static str, String)>,
    reload: Reload,
    files: Vec<(String, String)>,
    surfaces: Vec<SurfaceLine>,
    /// What somebody set, and what not.
    set: Vec<ValueLine>,
    sections: Vec<Section>,
    /// Those that somebody set up, and the presets as they come.
    providers: Vec<ProviderLine>,
    presets: Vec<ProviderLine>,
    tokens: Vec<TokenLine>,
    token_fields: Vec<Field>,
    complaint: Option<String>,
    has_alerts: bool,
}

/// How the last reload went.
struct Reload {
    at: Option<Moment>,
    refused: Option<String>,
    waiting: String,
}

/// A dialect, and whether a canary is hidden each way.
struct SurfaceLine {
    dialect: &'static str,
    /// Request, answer, stream; none where there is no such way.
    ways: [Option<bool>; 3],
}

pub(super) async fn show(State(admin): State<Shared>, visitor: Visitor) -> Page {
    page(&admin, visitor, Filled::nothing()).await
}

async fn page(admin: &Shared, visitor: Visitor, mut filled: Filled) -> Page {
    let settings = admin.app.settings.load_full();
    let now = admin.app.clock.now();
    let dir = settings.data_dir.clone();
    let files = admin.records.read(move |_| Ok(sizes(&dir))).await?;
    let tokens = desk::tokens(admin, serde_json::json!({ "limit": TOKENS })).await?;
    let last = admin.app.last_reload.load_full();
    let prices = admin.app.prices.load();
    let mut facts = vec![
        ("Version", env!("CARGO_PKG_VERSION").to_owned()),
        ("Up for", show::seconds(now.since_ms(admin.started) / 1000)),
        ("Proxy", format!("http://{}", admin.addresses.proxy)),
        ("Dashboard and API", format!("http://{}", admin.addresses.admin)),
        ("Data directory", settings.data_dir.display().to_string()),
        (
            "Prices",
            format!(
                "gathered {}, {} models",
                prices.gathered().unwrap_or("at an unknown time"),
                show::count(prices.rows().count() as u64)
            ),
        ),
        (
            "Events are kept",
            show::duration_ms(u64::try_from(settings.events.retention.as_millis()).unwrap_or(u64::MAX)),
        ),
        (
            "Runs are kept",
            show::duration_ms(u64::try_from(settings.events.run_retention.as_millis()).unwrap_or(u64::MAX)),
        ),
    ];
    if let Some(link) = &admin.app.link {
        facts.push(("Shared state", shared_state(&SharedState::new(link))));
    }
    if let Some(shared) = SharedCatalog::of(&admin.app) {
        facts.push(("Kills, keys and policies", shared_catalog(&shared)));
    }
    let waiting = last.as_ref().map(|last| last.waiting.as_slice()).unwrap_or_default();
    let sections = sections(&settings, waiting);
    let (own, presets) = providers(&settings).into_iter().partition(|provider| provider.is_set);
    let status = filled.status;
    let page = Settings {
        shell: admin.shell("settings", visitor),
        facts,
        reload: Reload {
            at: last.as_ref().map(|last| Moment::new(last.at, now)),
            refused: last.as_ref().and_then(|last| last.refused.clone()),
            waiting: last.as_ref().map(|last| last.waiting.join(", ")).unwrap_or_default(),
        },
        files,
        surfaces: surfaces(&admin.app.coverage.load()),
        set: sections.iter().flat_map(|section| &section.rows).filter(|row| row.is_set).cloned().collect(),
        sections,
        providers: own,
        presets,
        tokens: tokens.items.iter().map(|token| TokenLine::new(token, now)).collect(),
        token_fields: filled.fill(token_fields()),
        complaint: filled.rest(),
        has_alerts: admin.has_alert_channel(),
    };
    Ok(html(status, &page))
}

fn shared_state(state: &SharedState) -> String {
    let since = show::seconds(state.since_seconds);
    match state.connected {
        true => format!("{}, connected for {since}", state.redis),
        false => format!("{}, away for {since}", state.redis),
    }
}

fn shared_catalog(shared: &SharedCatalog) -> String {
    let since = show::seconds(shared.since_seconds);
    let stands = match (shared.connected, shared.listening) {
        (true, true) => format!("shared with the other nodes for {since}"),
        (true, false) => {
            format!("shared with the other nodes for {since}; changes of theirs are heard of a little later")
        }
        (false, _) => {
            format!("not shared for {since}: what is changed here holds here, and goes out when Redis is back")
        }
    };
    match shared.unreadable_rows {
        0 => stands,
        rows => format!("{stands}; {} of theirs cannot be read by this version", show::count(rows)),
    }
}

/// What the data directory holds, by its first level.
fn sizes(dir: &Path) -> Vec<(String, String)> {
    let mut left = FILES;
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(FILES);
    let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        // What a database keeps beside its file is a part of it.
        let name = ["-wal", "-shm"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name).to_owned();
        *by_name.entry(name).or_default() += size(&entry.path(), &mut left);
    }
    let mut sizes: Vec<(String, u64)> = by_name.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
    sizes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let total: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
    let shown = sizes.into_iter().take(8).chain([("all together".to_owned(), total)]);
    shown.map(|(name, bytes)| (name, show_bytes(bytes))).collect()
}

/// The size of a file, or of the files right in a folder.
fn size(path: &Path, left: &mut usize) -> u64 {
    let Ok(meta) = fs::symlink_metadata(path) else { return 0 };
    if !meta.is_dir() {
        return if meta.is_file() { meta.len() } else { 0 };
    }
    let files = fs::read_dir(path).into_iter().flatten().flatten().take(*left);
    let mut sum = 0;
    for file in files {
        *left = left.saturating_sub(1);
        sum += file.metadata().map_or(0, |meta| if meta.is_file() { meta.len() } else { 0 });
    }
    sum
}

fn show_bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.2} GB", bytes as f64 / 1_073_741_824.0),
    }
}

fn dialect(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenaiChat => "OpenAI chat completions",
        Dialect::OpenaiCompletions => "OpenAI completions",
        Dialect::OpenaiResponses => "OpenAI responses",
        Dialect::OpenaiEmbeddings => "OpenAI embeddings",
        Dialect::Anthropic => "Anthropic messages",
        Dialect::Gemini => "Gemini",
        Dialect::Opaque => "Others",
    }
}

fn surfaces(tried: &[Surface]) -> Vec<SurfaceLine> {
    let mut lines: Vec<SurfaceLine> = Vec::new();
    for surface in tried {
        let dialect = dialect(surface.dialect);
        if lines.last().is_none_or(|line| line.dialect != dialect) {
            lines.push(SurfaceLine { dialect, ways: [None; 3] });
        }
        let Some(line) = lines.last_mut() else { continue };
        let way = match (surface.direction, surface.is_stream) {
            (Direction::Request, _) => 0,
            (Direction::Answer, false) => 1,
            (Direction::Answer, true) => 2,
        };
        line.ways[way] = Some(surface.is_covered);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_by_the_first_level_and_in_all() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.db"), vec![0; 1000]).unwrap();
        fs::write(dir.path().join("a.db-wal"), vec![0; 2000]).unwrap();
        fs::create_dir(dir.path().join("spool")).unwrap();
        fs::write(dir.path().join("spool/1"), vec![0; 500]).unwrap();
        fs::write(dir.path().join("spool/2"), vec![0; 500]).unwrap();
        let told: Vec<String> = sizes(dir.path()).into_iter().map(|(name, size)| format!("{name} {size}")).collect();
        assert_eq!(told, ["a.db 2.9 KB", "spool 1000 B", "all together 3.9 KB"]);
        assert_eq!(size(&dir.path().join("spool"), &mut 1), 500, "no more files than there is room for");
    }
}
