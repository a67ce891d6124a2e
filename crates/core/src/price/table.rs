//! The price list as text: one line a model, cells between tabs (or commas), columns named in the first line.
//!
//! Lines that start with `#` are comments; `# gathered: 2026-11` says how old the list is. Columns may stand in any
//! order. Quoting is not understood: no name needs it, and a cell with a quote is refused.

use std::collections::HashSet;
use std::str::FromStr;

use crate::limits::{MODEL_NAME_BYTES, PRICE_ROWS, PRICE_TABLE_BYTES};
use crate::money::PicoPerToken;

use super::rates::{Mode, Price, Rates, Tier};

/// A price list, read.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) rows: Vec<Price>,
    pub(super) gathered: Option<String>,
}

/// What is wrong with a price list, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}{}: {problem}", at_column(column))]
pub struct BadTable {
    /// The line, counted from one.
    pub line: usize,
    /// The column, counted from one, and its name; absent when the line as a whole is wrong.
    pub column: Option<(usize, String)>,
    /// What is wrong, and what was expected.
    pub problem: String,
}

/// A column, in the order of [`COLUMNS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Provider,
    Model,
    Mode,
    Input,
    Output,
    CacheRead,
    CacheWrite,
    CacheWrite1h,
    Reasoning,
    TierAboveTokens,
    TierInput,
    TierOutput,
    TierCacheRead,
    TierCacheWrite,
    MaxInputTokens,
    MaxOutputTokens,
    DeprecatedOn,
    AudioInput,
    AudioOutput,
}

const COLUMNS: [&str; 19] = [
    "provider",
    "model",
    "mode",
    "input",
    "output",
    "cache_read",
    "cache_write",
    "cache_write_1h",
    "reasoning",
    "tier_above_tokens",
    "tier_input",
    "tier_output",
    "tier_cache_read",
    "tier_cache_write",
    "max_input_tokens",
    "max_output_tokens",
    "deprecated_on",
    "audio_input",
    "audio_output",
];
/// To set room aside before reading.
const TYPICAL_ROW_BYTES: usize = 64;
const NEEDED: [Column; 3] = [Column::Provider, Column::Model, Column::Input];
const TIER: [Column; 4] = [Column::TierInput, Column::TierOutput, Column::TierCacheRead, Column::TierCacheWrite];

impl Table {
    pub(super) fn parse(text: &str) -> Result<Table, BadTable> {
        if text.len() > PRICE_TABLE_BYTES {
            let problem = format!("the table has {} bytes, more than {PRICE_TABLE_BYTES}", text.len());
            return Err(BadTable { line: 1, column: None, problem });
        }
        let likely_rows = (text.len() / TYPICAL_ROW_BYTES).min(PRICE_ROWS);
        let mut table = Table { rows: Vec::with_capacity(likely_rows), gathered: None };
        let mut header = None;
        let mut names = HashSet::with_capacity(likely_rows);
        for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)) {
            if let Some(comment) = line.strip_prefix('#') {
                if let Some(gathered) = comment.trim_start().strip_prefix("gathered:") {
                    table.gathered = Some(gathered.trim().to_owned());
                }
                continue;
            }
            if line.trim().is_empty() {
                continue;
            }
            let Some(header) = &header else {
                header = Some(Header::parse(number, line)?);
                continue;
            };
            let row = Line::split(number, line, header)?;
            if table.rows.len() == PRICE_ROWS {
                return Err(row.wrong(format!("more than {PRICE_ROWS} prices")));
            }
            let provider = row.name(Column::Provider)?;
            let model = row.name(Column::Model)?;
            if !names.insert((provider, model)) {
                return Err(row.wrong_at(Column::Model, format!("`{model}` of {provider} is listed twice")));
            }
            table.rows.push(row.price(provider, model)?);
        }
        if header.is_none() {
            return Err(BadTable { line: 1, column: None, problem: "there is no line of column names".to_owned() });
        }
        Ok(table)
    }
}

impl Column {
    fn name(self) -> &'static str {
        COLUMNS.get(self as usize).copied().unwrap_or("")
    }
}

/// Where each column of [`COLUMNS`] stands in the list at hand.
struct Header {
    separator: char,
    places: [Option<usize>; COLUMNS.len()],
    width: usize,
}

impl Header {
    fn parse(line: usize, text: &str) -> Result<Header, BadTable> {
        let separator = if text.contains('\t') { '\t' } else { ',' };
        let mut places = [None; COLUMNS.len()];
        let mut width = 0;
        for (index, name) in text.split(separator).map(str::trim).enumerate() {
            let wrong = |problem: String| BadTable { line, column: Some((index + 1, name.to_owned())), problem };
            let place = COLUMNS.iter().position(|known| *known == name).and_then(|at| places.get_mut(at));
            let place = place.ok_or_else(|| wrong(format!("unknown column; known are {}", COLUMNS.join(", "))))?;
            if place.replace(index).is_some() {
                return Err(wrong("the column is named twice".to_owned()));
            }
            width = index + 1;
        }
        let header = Header { separator, places, width };
        match NEEDED.into_iter().find(|&column| header.place(column).is_none()) {
            Some(column) => {
                let problem = format!("the column `{}` is missing", column.name());
                Err(BadTable { line, column: None, problem })
            }
            None => Ok(header),
        }
    }

    fn place(&self, column: Column) -> Option<usize> {
        self.places.get(column as usize).copied().flatten()
    }
}

/// One line of the list, cut into cells.
struct Line<'t, 'h> {
    number: usize,
    cells: Vec<&'t str>,
    header: &'h Header,
}

impl<'t, 'h> Line<'t, 'h> {
    fn split(number: usize, text: &'t str, header: &'h Header) -> Result<Line<'t, 'h>, BadTable> {
        let mut cells = Vec::with_capacity(header.width);
        cells.extend(text.split(header.separator).map(str::trim));
        let line = Line { number, cells, header };
        if line.cells.len() > header.width {
            let problem = format!("{} cells, but only {} columns have a name", line.cells.len(), header.width);
            return Err(line.wrong(problem));
        }
        Ok(line)
    }

    fn price(&self, provider: &str, model: &str) -> Result<Price, BadTable> {
        let mode = match self.cell(Column::Mode) {
            "" => Mode::Chat,
            name => Mode::named(name).ok_or_else(|| {
                self.wrong_at(Column::Mode, format!("`{name}` is not one of chat, completion, responses, embedding"))
            })?,
        };
        let input =
            self.rate(Column::Input)?.ok_or_else(|| self.wrong_at(Column::Input, "a price is needed".to_owned()))?;
        let output = match self.rate(Column::Output)? {
            Some(output) => output,
            None if mode == Mode::Embedding => PicoPerToken(0),
            None => return Err(self.wrong_at(Column::Output, "a price is needed, except for embeddings".to_owned())),
        };
        Ok(Price {
            provider: provider.into(),
            model: model.into(),
            mode,
            rates: Rates {
                input,
                output,
                cache_read: self.rate(Column::CacheRead)?,
                cache_write: self.rate(Column::CacheWrite)?,
                cache_write_1h: self.rate(Column::CacheWrite1h)?,
                reasoning: self.rate(Column::Reasoning)?,
                audio_input: self.rate(Column::AudioInput)?,
                audio_output: self.rate(Column::AudioOutput)?,
            },
            tier: self.tier()?,
            max_input_tokens: self.parsed(Column::MaxInputTokens, "a whole number")?,
            max_output_tokens: self.parsed(Column::MaxOutputTokens, "a whole number")?,
            deprecated_on: self.parsed(Column::DeprecatedOn, "a day such as 2026-11-30")?,
        })
    }

    fn tier(&self) -> Result<Option<Tier>, BadTable> {
        let Some(above_tokens) = self.parsed(Column::TierAboveTokens, "a whole number")? else {
            return match TIER.into_iter().find(|&column| !self.cell(column).is_empty()) {
                Some(column) => Err(self.wrong_at(column, "a tier price without `tier_above_tokens`".to_owned())),
                None => Ok(None),
            };
        };
        let [input, output, cache_read, cache_write] = TIER.map(|column| self.rate(column));
        Ok(Some(Tier {
            above_tokens,
            input: input?,
            output: output?,
            cache_read: cache_read?,
            cache_write: cache_write?,
        }))
    }

    fn name(&self, column: Column) -> Result<&'t str, BadTable> {
        let name = self.cell(column);
        let is_plain = name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
        if name.is_empty() || name.len() > MODEL_NAME_BYTES || !is_plain {
            let problem = format!("a name of 1 to {MODEL_NAME_BYTES} plain characters without quotes is needed");
            return Err(self.wrong_at(column, problem));
        }
        Ok(name)
    }

    fn rate(&self, column: Column) -> Result<Option<PicoPerToken>, BadTable> {
        match self.cell(column) {
            "" => Ok(None),
            cell => match PicoPerToken::parse_usd_per_million(cell) {
                Ok(rate) => Ok(Some(rate)),
                Err(error) => Err(self.wrong_at(column, error.to_string())),
            },
        }
    }

    fn parsed<T: FromStr>(&self, column: Column, expected: &str) -> Result<Option<T>, BadTable> {
        match self.cell(column) {
            "" => Ok(None),
            cell => match cell.parse() {
                Ok(value) => Ok(Some(value)),
                Err(_) => Err(self.wrong_at(column, format!("`{cell}` is not {expected}"))),
            },
        }
    }

    /// The cell of a column; empty when the column or the end of the line is missing.
    fn cell(&self, column: Column) -> &'t str {
        self.header.place(column).and_then(|place| self.cells.get(place)).copied().unwrap_or("")
    }

    fn wrong(&self, problem: String) -> BadTable {
        BadTable { line: self.number, column: None, problem }
    }

    fn wrong_at(&self, column: Column, problem: String) -> BadTable {
        let place = self.header.place(column).map_or(self.cells.len(), |place| place + 1);
        BadTable { line: self.number, column: Some((place, column.name().to_owned())), problem }
    }
}

fn at_column(column: &Option<(usize, String)>) -> String {
    column.as_ref().map_or_else(String::new, |(number, name)| format!(", column {number} (`{name}`)"))
}
