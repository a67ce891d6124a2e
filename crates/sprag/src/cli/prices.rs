//! `sprag prices`: what calls cost, and a newer list in the place of the built-in one.

use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use sprag_core::money::PicoPerToken;
use sprag_core::price::{Price, Prices};

use super::table::{Column, print};
use crate::admin::api::model::PriceRecord;
use crate::app::{PRICE_FILE, prices};
use crate::config::{Flags, Sources, load};

const COLUMNS: [Column; 7] = [
    ("PROVIDER", false),
    ("MODEL", false),
    ("INPUT", true),
    ("OUTPUT", true),
    ("CACHE READ", true),
    ("CACHE WRITE", true),
    ("LONG PROMPTS", false),
];

/// Lists prices; `filter` is a part of the model's name.
pub(super) fn list(filter: Option<&str>, provider: Option<&str>, as_json: bool, flags: Flags) -> Result<ExitCode> {
    let settings = load(&Sources::process(flags))?.settings;
    let prices = prices(&settings)?;
    let is_wanted = |price: &&Price| {
        filter.is_none_or(|filter| price.model.contains(filter)) && provider.is_none_or(|name| *price.provider == *name)
    };
    let rows: Vec<&Price> = prices.overrides().chain(prices.rows()).filter(is_wanted).collect();
    if as_json {
        let rows: Vec<PriceRecord> = rows.into_iter().map(PriceRecord::from).collect();
        let mut out = std::io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, &rows)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&COLUMNS, rows.iter().map(|price| columns(price)))?;
    let gathered = prices.gathered().unwrap_or("unknown");
    writeln!(std::io::stdout(), "\n{} prices, dollars per million tokens, gathered {gathered}", rows.len())?;
    Ok(ExitCode::SUCCESS)
}

/// Checks a list and puts it into the data directory, where the next start or SIGHUP finds it.
pub(super) fn update(file: &Path, flags: Flags) -> Result<ExitCode> {
    let settings = load(&Sources::process(flags))?.settings;
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let list = Prices::load(&text).with_context(|| format!("{} is not a list of prices", file.display()))?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&settings.data_dir)?;
    let (place, draft) = (settings.data_dir.join(PRICE_FILE), settings.data_dir.join(format!("{PRICE_FILE}.new")));
    // Beside and renamed: a reader finds the old list or the new one.
    fs::write(&draft, text)
        .and_then(|()| fs::rename(&draft, &place))
        .with_context(|| format!("writing {}", place.display()))?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} prices, now in {}", list.rows().len(), place.display())?;
    writeln!(out, "A running Sprag takes them at its next start, or on SIGHUP.")?;
    Ok(ExitCode::SUCCESS)
}

fn columns(price: &Price) -> Vec<String> {
    let usd = |rate: PicoPerToken| rate.as_usd_per_million().to_string();
    let optional = |rate: Option<PicoPerToken>| rate.map_or_else(|| "-".to_owned(), usd);
    let rates = price.rates;
    vec![
        price.provider.to_string(),
        price.model.to_string(),
        usd(rates.input),
        usd(rates.output),
        optional(rates.cache_read),
        optional(rates.cache_write),
        price.tier.map_or_else(String::new, |tier| format!("other prices above {} tokens", tier.above_tokens)),
    ]
}
