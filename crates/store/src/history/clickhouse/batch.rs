//! What is sent: events and the sums that they changed, as lines of JSON, read from this node's own database.
//!
//! SQLite writes the lines itself. Sums are whole numbers as they stand now, so a line may be sent twice, late, or not at all when a
//! newer one follows.

use rusqlite::{Connection, Row, params};
use sprag_core::limits::CLICKHOUSE_BATCH_BYTES;

/// Lines for one table.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) text: Vec<u8>,
    pub(super) rows: u64,
}

/// A table of sums: where it goes, what a line of it is, and which rows some events changed.
pub(super) struct SumTable {
    /// Its name in the shared history.
    pub(super) name: &'static str,
    line: &'static str,
    from: &'static str,
    /// Rows that the events between two row numbers changed.
    changed: &'static str,
    group: &'static str,
}

impl Lines {
    fn push(&mut self, row: &Row<'_>, index: usize) -> rusqlite::Result<()> {
        self.text.extend_from_slice(row.get_ref(index)?.as_str()?.as_bytes());
        self.text.push(b'\n');
        self.rows += 1;
        Ok(())
    }
}

/// Events after a row: as many as one batch holds, and the row of the last one. Those up to `sending` are one batch, whatever
/// its size.
pub(super) fn events(
    connection: &Connection,
    node: &str,
    sent: i64,
    sending: i64,
    most: u32,
) -> rusqlite::Result<(Lines, i64)> {
    let is_again = sending > sent;
    let (upto, most) = if is_again { (sending, -1) } else { (i64::MAX, i64::from(most)) };
    let mut statement = connection.prepare_cached(EVENTS)?;
    let mut found = statement.query(params![sent, upto, most, node])?;
    let (mut lines, mut last) = (Lines::default(), if is_again { sending } else { sent });
    while let Some(row) = found.next()? {
        lines.push(row, 1)?;
        last = row.get(0)?;
        if !is_again && lines.text.len() >= CLICKHOUSE_BATCH_BYTES {
            break;
        }
    }
    Ok((lines, if is_again { sending } else { last }))
}

impl SumTable {
    /// The rows that events changed, those after one row up to another.
    pub(super) fn changed(
        &self,
        connection: &Connection,
        (node, version): (&str, i64),
        (after, upto): (i64, i64),
    ) -> rusqlite::Result<Lines> {
        let sql = format!("SELECT {} FROM {} WHERE {} {}", self.line, self.from, self.changed, self.group);
        let mut statement = connection.prepare_cached(&sql)?;
        let mut found = statement.query(params![node, version, after, upto])?;
        let mut lines = Lines::default();
        while let Some(row) = found.next()? {
            lines.push(row, 0)?;
        }
        Ok(lines)
    }

    /// Every row, handed on in pieces of bounded size.
    pub(super) fn whole<E: From<rusqlite::Error>>(
        &self,
        connection: &Connection,
        (node, version): (&str, i64),
        mut each: impl FnMut(&Lines) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut statement = connection.prepare(&format!("SELECT {} FROM {} {}", self.line, self.from, self.group))?;
        let mut found = statement.query(params![node, version])?;
        let mut lines = Lines::default();
        while let Some(row) = found.next()? {
            lines.push(row, 0)?;
            if lines.text.len() >= CLICKHOUSE_BATCH_BYTES {
                each(&lines)?;
                lines = Lines::default();
            }
        }
        if lines.rows > 0 { each(&lines) } else { Ok(()) }
    }
}

/// The columns of an event that are sent, in no particular order: lines name them.
pub(super) const EVENT_COLUMNS: &str = "id, at, kind, agent, run_id, step, parent, origin, provider, dialect, path, \
    model, stream, status, ending, total_ms, first_byte_ms, overhead_us, input, cache_read, cache_write, \
    cache_write_1h, output, reasoning, audio_input, audio_output, estimated, cost_nano, unpriced, finish, tools, \
    blocked, block_reason, error, act, verdict, shadow, key, would_block, dlp, level, evidence_hex, saved_nano, node";

const EVENTS: &str = "SELECT seq, json_object('id', id, 'at', at, 'kind', kind, 'agent', agent,
    'run_id', coalesce(run_id, ''), 'step', coalesce(step, 0), 'parent', coalesce(parent, ''),
    'origin', coalesce(origin, ''), 'provider', provider, 'dialect', dialect, 'path', path, 'model', model,
    'stream', stream, 'status', status, 'ending', ending, 'total_ms', total_ms, 'first_byte_ms', first_byte_ms,
    'overhead_us', overhead_us, 'input', coalesce(input, 0), 'cache_read', coalesce(cache_read, 0),
    'cache_write', coalesce(cache_write, 0), 'cache_write_1h', coalesce(cache_write_1h, 0),
    'output', coalesce(output, 0), 'reasoning', coalesce(reasoning, 0), 'audio_input', coalesce(audio_input, 0),
    'audio_output', coalesce(audio_output, 0), 'estimated', estimated, 'cost_nano', cost_nano, 'unpriced', unpriced,
    'finish', finish, 'tools', coalesce(tools, ''), 'blocked', blocked, 'block_reason', block_reason, 'error', error,
    'act', coalesce(act, ''), 'verdict', coalesce(verdict, ''), 'shadow', coalesce(shadow, ''),
    'key', coalesce(key, ''), 'would_block', coalesce(would_block, ''), 'dlp', coalesce(dlp, ''), 'level', level,
    'evidence_hex', hex(coalesce(evidence, x'')), 'saved_nano', saved_nano, 'node', ?4)
FROM events WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3";

/// A sum that stops at the largest integer. A plain one is an error in SQLite once it passes that, and so high and low bits are
/// summed apart.
macro_rules! exact_sum {
    ($column:literal) => {
        concat!(
            "iif(total(",
            $column,
            ") < 9223372036854774784.0, sum(",
            $column,
            " >> 20) * 1048576 + sum(",
            $column,
            " & 1048575), 9223372036854775807)"
        )
    };
}

/// All sums of a node.
pub(super) const SUMS: [SumTable; 8] = [
    SumTable {
        name: "node_runs",
        line: "json_object('node', ?1, 'version', ?2, 'agent', agent, 'run_id', run_id, 'parent', coalesce(parent, ''),
            'origin', origin, 'provider', provider, 'model', model, 'steps', steps, 'input_tokens', input_tokens,
            'cached_tokens', cached_tokens, 'output_tokens', output_tokens, 'cost_nano', cost_nano,
            'unpriced_steps', unpriced_steps, 'estimated_steps', estimated_steps, 'blocked', blocked, 'errors', errors,
            'first_at', first_at, 'last_at', last_at, 'saved_nano', saved_nano)",
        from: "runs",
        changed: "(agent, run_id) IN (SELECT agent, run_id FROM events
            WHERE seq > ?3 AND seq <= ?4 AND run_id IS NOT NULL)",
        group: "",
    },
    SumTable {
        name: "node_agent_totals",
        line: "json_object('node', ?1, 'version', ?2, 'agent', agent, 'steps', steps, 'input_tokens', input_tokens,
            'cached_tokens', cached_tokens, 'output_tokens', output_tokens, 'cost_nano', cost_nano,
            'unpriced_steps', unpriced_steps, 'estimated_steps', estimated_steps, 'blocked', blocked, 'errors', errors,
            'first_at', first_at, 'last_at', last_at)",
        from: "agent_totals",
        changed: "agent IN (SELECT agent FROM events WHERE seq > ?3 AND seq <= ?4 AND act IS NULL)",
        group: "",
    },
    SumTable {
        name: "node_spend",
        line: "json_object('node', ?1, 'version', ?2, 'agent', agent, 'slot', slot, 'steps', steps,
            'input_tokens', input_tokens, 'cached_tokens', cached_tokens, 'output_tokens', output_tokens,
            'cost_nano', cost_nano, 'unpriced_steps', unpriced_steps, 'estimated_steps', estimated_steps,
            'blocked', blocked, 'errors', errors, 'saved_nano', saved_nano)",
        from: "spend",
        changed: "(slot, agent) IN (SELECT at / 900000, agent FROM events
            WHERE seq > ?3 AND seq <= ?4 AND act IS NULL)",
        group: "",
    },
    SumTable {
        name: "node_slot_totals",
        line: concat!(
            "json_object('node', ?1, 'version', ?2, 'slot', slot, 'steps', sum(steps), 'input_tokens', ",
            exact_sum!("input_tokens"),
            ", 'cached_tokens', ",
            exact_sum!("cached_tokens"),
            ", 'output_tokens', ",
            exact_sum!("output_tokens"),
            ", 'cost_nano', ",
            exact_sum!("cost_nano"),
            ", 'unpriced_steps', sum(unpriced_steps), 'estimated_steps', sum(estimated_steps),
            'blocked', sum(blocked), 'errors', sum(errors), 'saved_nano', ",
            exact_sum!("saved_nano"),
            ")"
        ),
        from: "spend",
        changed: "slot IN (SELECT at / 900000 FROM events WHERE seq > ?3 AND seq <= ?4 AND act IS NULL)",
        group: "GROUP BY slot",
    },
    SumTable {
        name: "node_key_spend",
        line: "json_object('node', ?1, 'version', ?2, 'key', key, 'slot', slot, 'steps', steps,
            'input_tokens', input_tokens, 'cached_tokens', cached_tokens, 'output_tokens', output_tokens,
            'cost_nano', cost_nano, 'unpriced_steps', unpriced_steps, 'blocked', blocked)",
        from: "key_spend",
        changed: "(key, slot) IN (SELECT key, at / 900000 FROM events
            WHERE seq > ?3 AND seq <= ?4 AND act IS NULL AND key IS NOT NULL)",
        group: "",
    },
    SumTable {
        name: "node_minute_totals",
        line: "json_object('node', ?1, 'version', ?2, 'minute', minute, 'steps', steps, 'blocked', blocked,
            'errors', errors, 'cost_nano', cost_nano)",
        from: "minute_totals",
        changed: "minute IN (SELECT at / 60000 FROM events WHERE seq > ?3 AND seq <= ?4 AND act IS NULL)",
        group: "",
    },
    SumTable {
        name: "node_agent_minutes",
        line: "json_object('node', ?1, 'version', ?2, 'minute', minute, 'agent', agent, 'steps', steps,
            'blocked', blocked, 'errors', errors, 'cost_nano', cost_nano)",
        from: "agent_minutes",
        changed: "(minute, agent) IN (SELECT at / 60000, agent FROM events
            WHERE seq > ?3 AND seq <= ?4 AND act IS NULL)",
        group: "",
    },
    SumTable {
        name: "node_agent_days",
        line: "json_object('node', ?1, 'version', ?2, 'day', day, 'agent', agent, 'steps', steps,
            'blocked', blocked, 'errors', errors, 'cost_nano', cost_nano)",
        from: "agent_days",
        changed: "(day, agent) IN (SELECT at / 86400000, agent FROM events
            WHERE seq > ?3 AND seq <= ?4 AND act IS NULL)",
        group: "",
    },
];
