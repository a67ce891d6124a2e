//! What can be found: the kinds of the catalogue, and their families.

use serde::{Deserialize, Serialize};

/// What a kind belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Keys and tokens of vendors.
    ApiKey,
    /// Passwords, private keys, tokens without a vendor.
    Credential,
    /// Cards and accounts.
    Financial,
    /// What tells who or where a person is.
    Pii,
    /// Addresses inside a network.
    Infra,
}

/// How sure a finding is. The order is by certainty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Only the words around it say so.
    Context,
    /// A format, and words around it.
    Format,
    /// The value alone is proof.
    Proof,
}

/// One row of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The name that placeholders carry: `OPENAI_KEY`.
    pub id: &'static str,
    /// What it belongs to.
    pub family: Family,
    /// What it is, for people: `OpenAI API key`.
    pub title: &'static str,
    /// What it looks like, for people: `sk-` and 16 or more letters and digits.
    pub form: &'static str,
    /// Looked for unless switched off; the others only when switched on.
    pub is_on: bool,
}

/// A kind, by its place in the catalogue; own patterns come behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entity(pub u16);
