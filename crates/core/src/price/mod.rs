//! What a call costs: the list prices, which of them belongs to a model's name, and the sum.
//!
//! A model that is not found has no price, and the caller records it as unpriced. No name is matched by its beginning:
//! `gpt-4o-mini` never gets the price of `gpt-4o`. `docs/prices.md` describes the rules for users.
//!
//! Not here: service tiers (batch, flex, priority) and fees per search, image or song. They are not token prices.
//!
//! - `rates`: a price and its parts
//! - `cost`: tokens times rates
//! - `table`: the text form of the list
//! - `names`: the spellings of a model's name
//! - `index`: from a spelling to a row
//! - `overrides`: prices set in the configuration

mod cost;
mod index;
mod names;
mod overrides;
mod rates;
mod table;

#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

pub use cost::cost;
pub use names::plain_model_name;
pub use overrides::{BadOverride, PriceOverride};
pub use rates::{Mode, Price, Rates, Tier};
pub use table::BadTable;

use index::Index;
use names::Spellings;
pub(crate) use names::{is_plain as is_plain_name, names_without_prefixes, spelled as spelled_name};
use overrides::Overrides;
use table::Table;

static EMBEDDED: LazyLock<Prices> =
    LazyLock::new(|| Prices::load(include_str!("../../data/prices.tsv")).unwrap_or_default());

/// The prices in force: a table, and what the configuration says instead. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    table: Arc<Table>,
    index: Arc<Index>,
    overrides: Arc<Overrides>,
}

impl Prices {
    /// The table that Sprag was built with, read on first use.
    #[must_use]
    pub fn embedded() -> Prices {
        EMBEDDED.clone()
    }

    /// Reads a table in the form of `crates/core/data/prices.tsv`; it stands in for the embedded one.
    ///
    /// # Errors
    /// Names the line and the column of the first thing that is wrong.
    pub fn load(text: &str) -> Result<Prices, BadTable> {
        let table = Table::parse(text)?;
        let index = Index::new(&table.rows);

        Ok(Prices { table: Arc::new(table), index: Arc::new(index), overrides: Arc::default() })
    }

    /// The same table under other overrides; those set before are forgotten.
    ///
    /// # Errors
    /// Names the override that cannot be used and says why.
    pub fn with_overrides(&self, overrides: &[PriceOverride]) -> Result<Prices, BadOverride> {
        let bare = Prices { overrides: Arc::default(), ..self.clone() };
        let overrides = Overrides::new(overrides, |provider, model| bare.find(provider, model))?;
        Ok(Prices { overrides: Arc::new(overrides), ..bare })
    }

    /// The price of `model` at `provider`, or nothing when it is not known.
    ///
    /// An override wins over the table. In the table the provider's own row comes first, then the row of the provider
    /// that the name points at (`anthropic/…`), then a model's maker, then anyone who sells it.
    #[must_use]
    pub fn find(&self, provider: &str, model: &str) -> Option<&Price> {
        if self.overrides.is_empty()
            && let Some(row) = self.index.exact(provider, model)
        {
            return self.table.rows.get(row);
        }
        let spellings = Spellings::of(provider, model)?;
        if let Some(price) = self.overrides.find(provider, &spellings) {
            return Some(price);
        }
        let row = self.index.exact(provider, model).or_else(|| self.index.find(provider, &spellings))?;
        self.table.rows.get(row)
    }

    /// The rows of the table, in its order, without the overrides.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &Price> {
        self.table.rows.iter()
    }

    /// The prices set in the configuration, in its order; `model` is the pattern.
    pub fn overrides(&self) -> impl ExactSizeIterator<Item = &Price> {
        self.overrides.prices()
    }

    /// When the table was gathered, as it says itself: `2026-11`.
    #[must_use]
    pub fn gathered(&self) -> Option<&str> {
        self.table.gathered.as_deref()
    }
}
