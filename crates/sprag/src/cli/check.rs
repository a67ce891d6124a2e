//! `sprag check`: what is wrong with a configuration, all of it; and what it holds, and who says so.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use super::table;
use crate::config::{ConfigValue, Flags, Sources, load};

const COLUMNS: [table::Column; 3] = [("KEY", false), ("VALUE", false), ("FROM", false)];

pub(super) fn check(file: Option<PathBuf>, as_json: bool, with_values: bool, flags: Flags) -> Result<ExitCode> {
    let config = file.or_else(|| flags.config.clone());
    let sources = Sources::process(Flags { config, ..flags });
    let (problems, values, is_usable, file) = match load(&sources) {
        Ok(loaded) => (loaded.warnings, Some(loaded.settings.values), true, loaded.file),
        Err(problems) => (problems.0, None, false, sources.file()),
    };
    // What a configuration holds that cannot be used is of no use.
    let values = values.filter(|_| with_values);
    if let (Some(values), false) = (&values, as_json) {
        table::print(&COLUMNS, values.list().iter().map(cells))?;
    }
    let mut out = std::io::stdout().lock();
    if as_json {
        match values {
            Some(values) => serde_json::to_writer_pretty(
                &mut out,
                &serde_json::json!({ "problems": problems, "values": values.list() }),
            )?,
            None => serde_json::to_writer_pretty(&mut out, &problems)?,
        }
        writeln!(out)?;
    } else {
        if values.is_some() {
            writeln!(out)?;
        }
        for problem in &problems {
            writeln!(out, "{problem}\n")?;
        }
        let what =
            file.map_or_else(|| "no configuration file: the defaults".to_owned(), |file| file.display().to_string());
        match (is_usable, problems.len()) {
            (true, 0) => writeln!(out, "{what}: ok")?,
            (true, warnings) => writeln!(out, "{what}: ok, with warnings: {warnings}")?,
            (false, problems) => writeln!(out, "{what}: problems: {problems}")?,
        }
    }
    Ok(if is_usable { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn cells(value: &ConfigValue) -> Vec<String> {
    vec![value.path(), value.value.clone().unwrap_or_else(|| "-".to_owned()), value.origin.to_string()]
}
