//! House rules as a test: what a reviewer would otherwise have to notice.
//!
//! Reads the checkout, not the program. Formatting and lints are left to rustfmt and clippy.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};

const MAX_LINES: usize = 500;
const COUNTED: [&str; 7] = ["rs", "py", "sh", "js", "mjs", "css", "html"];
const TEXTS: [&str; 7] = ["toml", "md", "json", "yml", "yaml", "txt", "lua"];
/// Not written here, or not by hand.
const SKIPPED: [&str; 9] =
    ["target", "node_modules", "__pycache__", "sprag-data", "corpus", "artifacts", "fixtures", "vendor", ".git"];
const REQUIRED: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "LICENSE"];
/// Decisions are pure: they need no runtime, socket or database.
const FOREIGN_TO_CORE: [&str; 5] = ["tokio", "hyper", "rusqlite", "redis", "axum"];
// In two pieces, so that this file does not break its own rules.
const UNFINISHED: [&str; 3] = [concat!("to", "do!"), concat!("db", "g!"), concat!("unimplem", "ented!")];
const MACHINE_PATHS: [&str; 2] = [concat!("/wo", "rk/"), concat!("/tmp/", "wt")];

#[test]
fn no_source_file_is_too_long() {
    assert_none(sources().filter_map(|(path, text)| {
        let lines = text.lines().count();
        (lines > MAX_LINES).then(|| format!("{}: {lines} lines, at most {MAX_LINES}", path.display()))
    }));
}

#[test]
fn nothing_is_left_unfinished() {
    let rust = sources().filter(|(path, _)| extension(path) == "rs");
    assert_none(rust.flat_map(|(path, text)| lines_with(&path, &text, &UNFINISHED)));
}

#[test]
fn every_module_says_what_it_is() {
    let modules = sources().filter(|(path, _)| {
        let in_src = path.components().nth(2).is_some_and(|part| part.as_os_str() == "src");
        // A file of tests is described by the module that it belongs to.
        path.starts_with("crates") && in_src && extension(path) == "rs" && !path.ends_with("tests.rs")
    });
    assert_none(modules.filter(|(_, text)| !text.starts_with("//!")).map(|(path, _)| path.display().to_string()));
}

#[test]
fn nothing_names_a_place_on_somebodys_machine() {
    let texts = files().into_iter().filter(|path| is_source(path) || TEXTS.contains(&extension(path)));
    assert_none(read(texts).flat_map(|(path, text)| lines_with(&path, &text, &MACHINE_PATHS)));
}

#[test]
fn the_core_decides_and_does_nothing_else() {
    let manifest = fs::read_to_string(root().join("crates/core/Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let tables = ["dependencies", "dev-dependencies", "build-dependencies"].map(|name| manifest.get(name));
    let names = tables.into_iter().flatten().filter_map(|table| table.as_table()).flat_map(|table| table.keys());
    assert_none(names.filter(|name| FOREIGN_TO_CORE.contains(&name.as_str())).cloned());
}

#[test]
fn the_documents_are_there() {
    assert_none(REQUIRED.into_iter().filter(|name| !root().join(name).is_file()).map(str::to_owned));
}

#[test]
fn locked_packages_come_from_whatever_registry_the_machine_uses() {
    let lock = fs::read_to_string(root().join("tests/clients/node/package-lock.json")).unwrap();
    assert_none(lock.lines().filter(|line| line.contains("\"resolved\"")).map(str::to_owned));
}

fn assert_none(problems: impl Iterator<Item = String>) {
    let problems: Vec<String> = problems.collect();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

fn lines_with(path: &Path, text: &str, unwanted: &[&str]) -> Vec<String> {
    let found = text.lines().enumerate().filter(|(_, line)| unwanted.iter().any(|word| stands_in(line, word)));
    found.map(|(at, line)| format!("{}:{}: {}", path.display(), at + 1, line.trim())).collect()
}

/// Whether `word` is in the line other than as the end of a longer name or path.
fn stands_in(line: &str, word: &str) -> bool {
    let belongs = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(belongs))
}

fn sources() -> impl Iterator<Item = (PathBuf, String)> {
    read(files().into_iter().filter(|path| is_source(path)))
}

/// By its name, or because it is a script without one.
fn is_source(path: &Path) -> bool {
    COUNTED.contains(&extension(path)) || path.starts_with("scripts") || path.starts_with(".ci")
}

fn read(paths: impl Iterator<Item = PathBuf>) -> impl Iterator<Item = (PathBuf, String)> {
    paths.map(|path| {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        (path, text)
    })
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file of the project, as a path from its root.
fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().unwrap();
            let is_ours = !SKIPPED.contains(&name.as_str()) && (!name.starts_with('.') || name == ".ci");
            if kind.is_dir() && is_ours {
                folders.push(folder.join(name));
            } else if kind.is_file() {
                found.push(folder.join(name));
            }
        }
    }
    assert!(found.len() > REQUIRED.len(), "the checkout was not found");
    found
}
