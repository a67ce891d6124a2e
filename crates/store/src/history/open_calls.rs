//! Calls under way that money is set aside for, so that the end of the process loses none of it.
//!
//! A call is put down before it is forwarded, and its event takes it out again. What is left when a process starts was
//! under way when an earlier one died: nobody knows what it cost, so it is charged what was set aside for it.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use serde::{Deserialize, Serialize};
use sprag_core::event::{Ending, Event, EventKind, RunRecord};
use sprag_core::id::AgentName;
use sprag_core::json::{put_number, put_text};
use sprag_core::money::NanoUsd;
use sprag_core::time::Timestamp;
use sprag_core::wire::Dialect;
use xxhash_rust::xxh3::xxh3_128;

use super::rows;
use super::tally::Tally;

/// What is remembered of a call while it is under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenCall {
    /// The request id: that of the event to come.
    pub id: String,
    /// When the request arrived.
    pub at: Timestamp,
    /// Who calls.
    pub agent: AgentName,
    /// The virtual key that it came with, by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunRecord>,
    /// The provider that it is for.
    pub provider: String,
    /// The wire format.
    pub dialect: Dialect,
    /// Method and path, without the query.
    pub path: String,
    /// The model that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What is set aside for it.
    pub reserved: NanoUsd,
}

impl OpenCall {
    /// Appends the call to `out`, as serde would write it: every call with a budget writes one, and most of it is names of fields.
    pub(super) fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let put_field = |out: &mut Vec<u8>, name: &str, text: &str| {
            out.extend_from_slice(name.as_bytes());
            put_text(out, text);
        };
        put_field(out, "{\"id\":", &self.id);
        out.extend_from_slice(b",\"at\":");
        put_number(out, self.at.0);
        put_field(out, ",\"agent\":", self.agent.as_str());
        if let Some(key) = &self.key {
            put_field(out, ",\"key\":", key);
        }
        if let Some(run) = &self.run {
            out.extend_from_slice(b",\"run\":");
            run.write_json(out)?;
        }
        put_field(out, ",\"provider\":", &self.provider);
        out.extend_from_slice(b",\"dialect\":");
        serde_json::to_writer(&mut *out, &self.dialect)?;
        put_field(out, ",\"path\":", &self.path);
        if let Some(model) = &self.model {
            put_field(out, ",\"model\":", model);
        }
        out.extend_from_slice(b",\"reserved\":");
        put_number(out, self.reserved.0);
        out.push(b'}');
        Ok(())
    }
}

/// What one batch of lines says about calls under way.
pub(super) struct Journal {
    /// Ids in the table.
    stored: HashSet<String>,
    /// By a hash of their ids: most are over before the batch is, and are put nowhere.
    opened: HashMap<u128, Box<OpenCall>, RandomState>,
    /// Ids in the table whose calls are over.
    closed: Vec<String>,
}

impl Journal {
    pub(super) fn begin(connection: &Connection) -> rusqlite::Result<Journal> {
        let mut ids = connection.prepare_cached("SELECT id FROM open_calls")?;
        let stored = ids.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        Ok(Journal { stored, opened: HashMap::default(), closed: Vec::new() })
    }

    pub(super) fn open(&mut self, call: Box<OpenCall>) {
        self.opened.insert(xxh3_128(call.id.as_bytes()), call);
    }

    pub(super) fn close(&mut self, id: &str) {
        if !self.opened.is_empty() {
            self.opened.remove(&xxh3_128(id.as_bytes()));
        }
        if !self.stored.is_empty()
            && let Some(id) = self.stored.take(id)
        {
            self.closed.push(id);
        }
    }

    /// Brings the table up to date. The batch's events are in the database already.
    pub(super) fn apply(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut delete = connection.prepare_cached("DELETE FROM open_calls WHERE id = ?1")?;
        for id in &self.closed {
            delete.execute([id])?;
        }
        let mut is_over = connection.prepare_cached("SELECT 1 FROM events WHERE id = ?1")?;
        let mut upsert = connection.prepare_cached(UPSERT)?;
        // In the order of their ids, so that the same lines always make the same rows.
        let mut opened: Vec<&OpenCall> = self.opened.values().map(Box::as_ref).collect();
        opened.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        for call in opened {
            let id = &call.id;
            // A line may come after its event: when a file is read a second time.
            if is_over.query_row([id], |_| Ok(())).optional()?.is_none() {
                upsert.execute((id, call.reserved.0, rows::json(Some(call))))?;
            }
        }
        Ok(())
    }
}

/// Charges every call in the table what was set aside for it, once, and says how many there were. To be called when all
/// lines of earlier processes are in the database, and none of this one.
pub(super) fn settle_lost(connection: &mut Connection) -> rusqlite::Result<u64> {
    // On a full disk a look succeeds where a transaction does not.
    if connection.query_row("SELECT 1 FROM open_calls LIMIT 1", [], |_| Ok(())).optional()?.is_none() {
        return Ok(0);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut lost = 0;
    let mut tally = Tally::default();
    let records: Vec<String> = transaction
        .prepare("SELECT record FROM open_calls ORDER BY id")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for record in &records {
        let Ok(call) = serde_json::from_str::<OpenCall>(record) else {
            tracing::warn!("a call that was under way cannot be read, and is charged nothing");
            continue;
        };
        let event = call.into_lost();
        if rows::insert(&transaction, &event)? {
            tally.add(&event);
            lost += 1;
        }
    }
    tally.apply(&transaction)?;
    transaction.execute("DELETE FROM open_calls", [])?;
    transaction.commit()?;
    Ok(lost)
}

impl OpenCall {
    /// The event of a call whose end nobody saw.
    fn into_lost(self) -> Event {
        Event {
            agent: self.agent,
            key: self.key,
            run: self.run,
            provider: self.provider,
            dialect: self.dialect,
            path: self.path,
            model: self.model,
            ending: Ending::Lost,
            cost: Some(self.reserved),
            error: Some("Sprag ended before the call did".to_owned()),
            ..Event::new(self.id, self.at, EventKind::LlmCall)
        }
    }
}

// What is set aside only grows while a call is under way, so of two lines the larger is the newer.
const UPSERT: &str = "
INSERT INTO open_calls (id, reserved_nano, record) VALUES (?1, ?2, ?3)
ON CONFLICT (id) DO UPDATE SET
    record = iif(excluded.reserved_nano >= reserved_nano, excluded.record, record),
    reserved_nano = max(reserved_nano, excluded.reserved_nano)";

#[cfg(test)]
mod tests {
    use sprag_core::event::RunOrigin;
    use sprag_core::id::RunId;

    use super::*;

    #[test]
    fn a_call_is_written_as_serde_writes_it() {
        let id = |id| RunId::parse(id).unwrap();
        let run = RunRecord { id: id("r \"1\""), step: 7, parent: Some(id("p")), origin: RunOrigin::Declared };
        let bare = OpenCall {
            id: "req_1".into(),
            at: Timestamp(1_770_000_000_000),
            agent: AgentName::default(),
            key: None,
            run: None,
            provider: "openai".into(),
            dialect: Dialect::OpenaiChat,
            path: "POST /v1/\u{1}é\\".into(),
            model: None,
            reserved: NanoUsd(-5),
        };
        let full = OpenCall { key: Some("key-1".into()), run: Some(run), model: Some("m".into()), ..bare.clone() };
        for call in [bare, full] {
            let mut written = Vec::new();
            call.write_json(&mut written).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), serde_json::to_string(&call).unwrap());
        }
    }
}
