//! From a spelling of a model's name to its row in the list.
//!
//! Each row is found under its own name, under its other spellings, and without its date. Where two rows of a provider
//! claim the same other spelling at different prices, neither gets it.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::names::{Ending, Spellings};
use super::rates::Price;

/// The rows of a list by every spelling of their names.
#[derive(Debug, Default)]
pub(super) struct Index {
    heads: HashMap<Box<str>, usize, RandomState>,
    links: Vec<Link>,
    providers: HashMap<Box<str>, usize, RandomState>,
}

/// One provider's claim to a spelling. Claims to the same spelling form a chain.
#[derive(Clone, Copy, Debug)]
struct Link {
    provider: usize,
    claim: Claim,
    /// Absent when rows of this provider disagree about the spelling.
    row: Option<usize>,
    /// Whether the row may price a call to another provider. What one gives away the next may sell.
    is_lent: bool,
    next: Option<usize>,
}

/// How good a claim is; a better one is made earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    OwnName,
    Spelling,
    WithoutDate,
}

/// Those who make models, before those who only sell them: the order in which a name without a provider is looked up.
const MAKERS: [&str; 11] = [
    "openai",
    "anthropic",
    "gemini",
    "mistral",
    "deepseek",
    "xai",
    "cohere",
    "moonshot",
    "zai",
    "minimax",
    "dashscope",
];
const SELLERS: [&str; 10] =
    ["vertex", "azure", "bedrock", "groq", "cerebras", "together", "fireworks", "deepinfra", "sambanova", "perplexity"];
/// They run on the user's own machine: nobody's list price holds there.
const LOCAL: [&str; 3] = ["ollama", "vllm", "lmstudio"];

impl Index {
    pub(super) fn new(rows: &[Price]) -> Index {
        let mut index = Index::default();
        for provider in MAKERS.into_iter().chain(SELLERS) {
            index.provider_number(provider);
        }
        index.heads.reserve(rows.len() * 3);
        index.links.reserve(rows.len() * 3);
        let providers: Vec<usize> = rows.iter().map(|price| index.provider_number(&price.provider)).collect();
        let numbered = || rows.iter().zip(&providers).enumerate();
        for (row, (price, &provider)) in numbered() {
            index.claim(&price.model, Claim::OwnName, provider, row, rows);
        }
        let spellings: Vec<_> = rows.iter().map(|price| Spellings::of(&price.provider, &price.model)).collect();
        for (claim, wanted) in [(Claim::Spelling, Ending::Named), (Claim::WithoutDate, Ending::Undated)] {
            for ((row, (price, &provider)), spellings) in numbered().zip(&spellings) {
                let Some(spellings) = spellings else { continue };
                let others = spellings.of_row().filter(|(name, ending)| *ending == wanted && *name != &*price.model);
                for (name, _) in others {
                    index.claim(name, claim, provider, row, rows);
                }
            }
        }
        index
    }

    /// The row of a provider under exactly the name that the list has.
    pub(super) fn exact(&self, provider: &str, model: &str) -> Option<usize> {
        let provider = *self.providers.get(provider)?;
        self.chain(model).find(|link| link.provider == provider && link.claim == Claim::OwnName)?.row
    }

    /// The row that prices a call to `provider`.
    pub(super) fn find(&self, provider: &str, spellings: &Spellings) -> Option<usize> {
        let own = self.providers.get(provider).and_then(|&own| self.first(spellings, |link| link.provider == own));
        if own.is_some() || LOCAL.contains(&provider) {
            return own;
        }
        let implied = spellings.implied().and_then(|implied| self.providers.get(implied));
        implied
            .and_then(|&implied| self.first(spellings, |link| link.is_lent && link.provider == implied))
            .or_else(|| self.first(spellings, |link| link.is_lent && link.provider < MAKERS.len()))
            .or_else(|| self.first(spellings, |link| link.is_lent))
    }

    /// The row of the most specific spelling that has one, at the provider that comes first.
    fn first(&self, spellings: &Spellings, is_wanted: impl Fn(&Link) -> bool) -> Option<usize> {
        spellings.iter().find_map(|(name, _)| {
            let rows = self.chain(name).filter(|link| link.row.is_some() && is_wanted(link));
            rows.min_by_key(|link| link.provider)?.row
        })
    }

    fn chain(&self, name: &str) -> impl Iterator<Item = &Link> {
        let head = self.heads.get(name).and_then(|&head| self.links.get(head));
        std::iter::successors(head, |link| link.next.and_then(|next| self.links.get(next)))
    }

    fn claim(&mut self, name: &str, claim: Claim, provider: usize, row: usize, rows: &[Price]) {
        let head = self.heads.get(name).copied();
        let mut at = head;
        while let Some(link) = at.and_then(|at| self.links.get_mut(at)) {
            if link.provider == provider {
                let has_same_price = link.row.is_some_and(|held| is_same_price(rows.get(held), rows.get(row)));
                if link.claim == claim && !has_same_price {
                    link.row = None;
                }
                return;
            }
            at = link.next;
        }
        let is_lent = rows.get(row).is_some_and(|price| !price.is_free());
        // A later claim goes behind the first, so that the map is touched once for each name.
        let link = self.links.len();
        let next = head.and_then(|head| self.links.get_mut(head)).and_then(|head| head.next.replace(link));
        self.links.push(Link { provider, claim, row: Some(row), is_lent, next });
        if head.is_none() {
            self.heads.insert(name.into(), link);
        }
    }

    fn provider_number(&mut self, provider: &str) -> usize {
        let next = self.providers.len();
        match self.providers.get(provider) {
            Some(&number) => number,
            None => *self.providers.entry(provider.into()).or_insert(next),
        }
    }
}

fn is_same_price(one: Option<&Price>, other: Option<&Price>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one.rates == other.rates && one.tier == other.tier)
}
