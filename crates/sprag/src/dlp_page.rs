//! `docs/dlp.md` is true: its catalogue is that of the code, and its recipes load.

use sprag_core::dlp::{FAMILIES, KINDS, Kind};

use crate::config::{Sources, load};

const PAGE: &str = include_str!("../../../docs/dlp.md");
const README: &str = include_str!("../../../README.md");
/// Stands before and behind the table of kinds.
const MARK: &str = "<!-- catalogue -->";

#[test]
fn every_kind_has_its_row_and_no_other_is_there() {
    let parts: Vec<&str> = PAGE.split(MARK).collect();
    assert_eq!(parts.len(), 3, "the table stands between two of {MARK}");
    let shown: Vec<&str> = parts[1].lines().filter(|line| line.starts_with("| `")).collect();
    let expected: Vec<String> = KINDS.iter().map(row).collect();
    let missing: Vec<&String> = expected.iter().filter(|row| !shown.contains(&row.as_str())).collect();
    assert!(missing.is_empty(), "not in docs/dlp.md: {missing:#?}");
    let others: Vec<&&str> = shown.iter().filter(|row| !expected.iter().any(|known| known == *row)).collect();
    assert!(others.is_empty(), "in docs/dlp.md and of no kind: {others:#?}");
    assert_eq!(shown, expected, "the order is that of the catalogue");
}

#[test]
fn the_number_of_kinds_is_right() {
    let optional = KINDS.iter().filter(|kind| !kind.is_on).count();
    let sentence = format!("{} kinds, {optional} of them opt-in", KINDS.len());
    assert!(PAGE.contains(&sentence), "{sentence}");
    let row = format!("| secrets | {} kinds found", KINDS.len());
    assert!(README.contains(&row), "{row}");
}

#[test]
fn the_recipes_load() {
    let recipes: Vec<&str> = PAGE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(recipes.len(), 4);
    for recipe in recipes {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("sprag.toml"), recipe).unwrap();
        let sources = Sources { dir: dir.path().to_owned(), ..Sources::default() };
        let loaded = load(&sources).unwrap_or_else(|problems| panic!("{recipe}\n{problems}"));
        assert_eq!(loaded.warnings, Vec::new(), "{recipe}");
    }
}

/// A kind as the page shows it.
fn row(kind: &Kind) -> String {
    let family = FAMILIES.iter().find(|(_, family)| *family == kind.family).map_or("", |(name, _)| name);
    let opt_in = if kind.is_on { "" } else { ", opt-in" };
    let [title, form] = [kind.title, kind.form].map(|text| text.replace('|', "\\|"));
    format!("| `{}`{opt_in} | {family} | {title} | {form} |", kind.id)
}
