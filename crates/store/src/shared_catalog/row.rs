//! One row of the catalog as nodes give it to each other: what it is called, who changed it last, and what is in it.
//!
//! In Redis a row is a short JSON list, `[format, time, node, time it left, content]`. The first four never change their place:
//! a node can compare rows whose content it does not understand. A row that left has no content.

use std::cmp::Ordering;
use std::fmt::{self, Write};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sprag_core::id::AgentName;
use sprag_core::limits::{KILL_CLUES, SHARED_ROW_BYTES};
use sprag_core::money::NanoUsd;
use sprag_core::policy::{AccountId, AgentStanding, Kill, KillScope, KillSwitchChange, VirtualKey};
use sprag_core::time::Timestamp;

use crate::catalog::{KeyEntry, Mark, SecretHash, TokenEntry};
use crate::run_key::RunKey;

/// The form of the content that this version writes and reads.
pub(super) const FORMAT: u32 = 1;

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowKind {
    /// A kill, by its scope.
    Kill,
    /// Where a run stood when it was resumed, by `run:AGENT/ID`.
    Mark,
    /// Whether an agent may call, by its name.
    Standing,
    /// What is set for an agent, by its name.
    Policy,
    /// What one node added to an account at a moment, by moment, node and account.
    Adjustment,
    /// A virtual key, by its id.
    Key,
    /// An admin token, by its id.
    Token,
    /// A channel of alerts, by its name.
    Channel,
    /// A rule of alerts, by its name.
    Rule,
}

impl RowKind {
    /// All of them.
    pub const ALL: [RowKind; 9] = [
        RowKind::Kill,
        RowKind::Mark,
        RowKind::Standing,
        RowKind::Policy,
        RowKind::Adjustment,
        RowKind::Key,
        RowKind::Token,
        RowKind::Channel,
        RowKind::Rule,
    ];

    /// Its name in SQLite and Redis.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RowKind::Kill => "kill",
            RowKind::Mark => "mark",
            RowKind::Standing => "standing",
            RowKind::Policy => "policy",
            RowKind::Adjustment => "adjustment",
            RowKind::Key => "key",
            RowKind::Token => "token",
            RowKind::Channel => "channel",
            RowKind::Rule => "rule",
        }
    }

    /// Whether it is kept with the alerts, not in the catalog.
    #[must_use]
    pub fn is_of_alerts(self) -> bool {
        matches!(self, RowKind::Channel | RowKind::Rule)
    }
}

/// What a row is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowName {
    /// What it is about.
    pub kind: RowKind,
    /// Its name among those.
    pub name: String,
}

impl RowName {
    pub(crate) fn new(kind: RowKind, name: impl Into<String>) -> RowName {
        RowName { kind, name: name.into() }
    }

    pub(crate) fn kill(scope: &KillScope) -> RowName {
        RowName::new(RowKind::Kill, scope.to_string())
    }

    pub(crate) fn mark(run: &RunKey) -> RowName {
        RowName::new(RowKind::Mark, KillScope::run(&run.agent, &run.id).to_string())
    }

    pub(crate) fn adjustment(account: &AccountId, start: Timestamp, node: &str) -> RowName {
        RowName::new(RowKind::Adjustment, format!("{} {node} {account}", start.0))
    }

    /// The run of a mark.
    #[must_use]
    pub fn run(&self) -> Option<RunKey> {
        match self.name.parse() {
            Ok(KillScope::Run { agent, run }) => Some(RunKey { agent, id: run }),
            _ => None,
        }
    }

    /// The moment, the node and the account of an adjustment.
    #[must_use]
    pub fn adjusted(&self) -> Option<(Timestamp, &str, AccountId)> {
        let mut parts = self.name.splitn(3, ' ');
        let (start, node, account) = (parts.next()?, parts.next()?, parts.next()?);
        Some((Timestamp(start.parse().ok()?), node, account.parse().ok()?))
    }

    /// The agent of a standing or a policy.
    #[must_use]
    pub fn agent(&self) -> Option<AgentName> {
        AgentName::parse(&self.name).ok()
    }
}

impl fmt::Display for RowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.name)
    }
}

/// Who changed a row last, and when. The later of two stamps wins, then the one of the node with the greater name; a row that
/// left wins over itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Milliseconds since the epoch, and always more than those of the stamp before.
    pub at: i64,
    /// The node: letters and digits.
    pub node: String,
    /// When the row left.
    pub gone_at: Option<i64>,
}

impl Stamp {
    /// Whether a row of this stamp takes the place of one that has the other, or none.
    #[must_use]
    pub fn beats(&self, known: Option<&Stamp>) -> bool {
        known.is_none_or(|known| self.order(known) == Ordering::Greater)
    }

    pub(crate) fn order(&self, other: &Stamp) -> Ordering {
        let parts = |stamp: &Stamp| (stamp.at, stamp.node.clone(), stamp.gone_at.is_some());
        parts(self).cmp(&parts(other))
    }
}

/// A row, or what is left of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is called.
    pub name: RowName,
    /// Who changed it last.
    pub stamp: Stamp,
    /// What is in it; nothing where it left.
    pub content: Option<Content>,
}

/// What is in a row.
#[derive(Clone, PartialEq)]
pub enum Content {
    /// A kill, with the clues to its run.
    Kill(Box<Kill>, Vec<u64>),
    /// A place in a run.
    Mark(Mark),
    /// Whether an agent may call. What is set for it stands in a row of its own.
    Standing(Box<AgentStanding>),
    /// What is set for an agent.
    Policy(AgentPolicy),
    /// What was added.
    Adjustment(NanoUsd),
    /// A virtual key: hashes, never a secret.
    Key(Box<KeyEntry>),
    /// An admin token: a hash, never a secret.
    Token(Box<TokenEntry>),
    /// A channel or a rule as it would stand in the configuration. A channel's holds secrets.
    Made(Value),
}

/// What is set for an agent over its configuration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentPolicy {
    #[serde(default)]
    pub(crate) kill_switch: KillSwitchChange,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<Value>,
}

impl fmt::Debug for Content {
    /// Channels hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Kill(kill, clues) => f.debug_tuple("Kill").field(kill).field(&clues.len()).finish(),
            Content::Mark(mark) => f.debug_tuple("Mark").field(mark).finish(),
            Content::Standing(standing) => f.debug_tuple("Standing").field(standing).finish(),
            Content::Policy(policy) => f.debug_tuple("Policy").field(policy).finish(),
            Content::Adjustment(amount) => f.debug_tuple("Adjustment").field(amount).finish(),
            Content::Key(entry) => f.debug_tuple("Key").field(&entry.key).finish(),
            Content::Token(entry) => f.debug_tuple("Token").field(&entry.token).finish(),
            Content::Made(_) => f.write_str("Made"),
        }
    }
}

/// Why a row is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A newer version wrote it.
    #[error("it was written by another version of sprag (form {0}, this one knows {FORMAT})")]
    OtherFormat(u32),
    /// It is longer than any row is.
    #[error("it has more than {SHARED_ROW_BYTES} bytes")]
    TooLong,
    /// It is no row.
    #[error("it does not have the form of a row")]
    Form,
}

/// The beginning of a row, which every version understands.
pub(super) fn read_stamp(text: &[u8]) -> Result<(Stamp, Header<'_>), Unreadable> {
    if text.len() > SHARED_ROW_BYTES {
        return Err(Unreadable::TooLong);
    }
    let header: Header<'_> = serde_json::from_slice(text).map_err(|_| Unreadable::Form)?;
    let Header(_, at, node, gone_at, _) = &header;
    let is_named = !node.is_empty() && node.len() <= 32 && node.bytes().all(|b| b.is_ascii_alphanumeric());
    if !is_named || *at < 0 || *gone_at < 0 {
        return Err(Unreadable::Form);
    }
    let stamp = Stamp { at: *at, node: node.clone(), gone_at: (*gone_at > 0).then_some(*gone_at) };
    Ok((stamp, header))
}

/// Format, time, node, time it left, content.
#[derive(Serialize, Deserialize)]
pub(super) struct Header<'a>(u32, i64, String, i64, #[serde(borrow)] &'a RawValue);

/// Reads a row that Redis has.
pub(super) fn read(name: RowName, text: &[u8]) -> Result<Row, Unreadable> {
    let (stamp, Header(format, _, _, _, content)) = read_stamp(text)?;
    if format != FORMAT {
        return Err(Unreadable::OtherFormat(format));
    }
    let content = match stamp.gone_at {
        Some(_) => None,
        None => Some(read_content(&name, content.get()).ok_or(Unreadable::Form)?),
    };
    if content.is_none() && !is_sound(&name) {
        return Err(Unreadable::Form);
    }
    Ok(Row { name, stamp, content })
}

/// Writes a row for Redis; nothing where it is too long to be shared.
pub(super) fn write(row: &Row) -> Option<String> {
    let content = row.content.as_ref().map_or_else(|| Some("null".to_owned()), write_content)?;
    let (stamp, mut text) = (&row.stamp, String::with_capacity(content.len() + 64));
    let gone_at = stamp.gone_at.unwrap_or(0);
    let _ = write!(text, "[{FORMAT},{},\"{}\",{gone_at},{content}]", stamp.at, stamp.node);
    (text.len() <= SHARED_ROW_BYTES).then_some(text)
}

#[derive(Serialize, Deserialize)]
struct KillRow {
    kill: Kill,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    clues: String,
}

#[derive(Serialize, Deserialize)]
struct MarkRow {
    steps: u32,
    cost: NanoUsd,
    at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct KeyRow {
    key: VirtualKey,
    hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous_hash: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct TokenRow {
    token: sprag_core::policy::AdminToken,
    hash: String,
}

fn write_content(content: &Content) -> Option<String> {
    let text = match content {
        Content::Kill(kill, clues) => {
            let clues = clues.iter().take(KILL_CLUES).fold(String::new(), |mut text, clue| {
                let _ = write!(text, "{clue:016x}");
                text
            });
            serde_json::to_string(&KillRow { kill: Kill::clone(kill), clues })
        }
        Content::Mark(Mark { steps, cost, at }) => {
            serde_json::to_string(&MarkRow { steps: *steps, cost: *cost, at: *at })
        }
        Content::Standing(standing) => serde_json::to_string(standing),
        Content::Policy(policy) => serde_json::to_string(policy),
        Content::Adjustment(amount) => serde_json::to_string(amount),
        Content::Key(entry) => serde_json::to_string(&KeyRow {
            key: entry.key.clone(),
            hash: hex(&entry.hash),
            previous_hash: entry.previous_hash.as_ref().map(hex),
        }),
        Content::Token(entry) => {
            serde_json::to_string(&TokenRow { token: entry.token.clone(), hash: hex(&entry.hash) })
        }
        Content::Made(written) => serde_json::to_string(written),
    };
    text.ok()
}

fn read_content(name: &RowName, text: &str) -> Option<Content> {
    let content = match name.kind {
        RowKind::Kill => {
            let row: KillRow = serde_json::from_str(text).ok()?;
            let clues = row.clues.as_bytes().chunks(16).take(KILL_CLUES).map(clue).collect::<Option<_>>()?;
            (row.kill.scope.to_string() == name.name).then(|| Content::Kill(Box::new(row.kill), clues))?
        }
        RowKind::Mark => {
            let MarkRow { steps, cost, at } = serde_json::from_str(text).ok()?;
            Content::Mark(Mark { steps, cost, at })
        }
        RowKind::Standing => Content::Standing(serde_json::from_str(text).ok()?),
        RowKind::Policy => Content::Policy(serde_json::from_str(text).ok()?),
        RowKind::Adjustment => Content::Adjustment(serde_json::from_str(text).ok()?),
        RowKind::Key => {
            let row: KeyRow = serde_json::from_str(text).ok()?;
            let previous_hash = match row.previous_hash {
                Some(previous) => Some(from_hex(&previous)?),
                None => None,
            };
            let entry = KeyEntry { key: row.key, hash: from_hex(&row.hash)?, previous_hash };
            (entry.key.id == name.name).then(|| Content::Key(Box::new(entry)))?
        }
        RowKind::Token => {
            let row: TokenRow = serde_json::from_str(text).ok()?;
            let entry = TokenEntry { hash: from_hex(&row.hash)?, token: row.token };
            (entry.token.id == name.name).then(|| Content::Token(Box::new(entry)))?
        }
        RowKind::Channel | RowKind::Rule => {
            let written: Value = serde_json::from_str(text).ok()?;
            written.is_object().then_some(Content::Made(written))?
        }
    };
    is_sound(name).then_some(content)
}

/// Whether a row can be called so.
fn is_sound(RowName { kind, name }: &RowName) -> bool {
    let row = RowName { kind: *kind, name: name.clone() };
    match kind {
        RowKind::Kill => KillScope::from_str(name).is_ok_and(|scope| scope.to_string() == *name),
        RowKind::Mark => row.run().is_some(),
        RowKind::Standing | RowKind::Policy => row.agent().is_some(),
        RowKind::Adjustment => row.adjusted().is_some(),
        RowKind::Key | RowKind::Token | RowKind::Channel | RowKind::Rule => !name.is_empty() && name.len() <= 256,
    }
}

fn hex(hash: &SecretHash) -> String {
    hash.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<SecretHash> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut hash = SecretHash::default();
    for (place, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(hash)
}

fn clue(digits: &[u8]) -> Option<u64> {
    if digits.len() != 16 {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests;
