-- One row for each request. Times are milliseconds since the Unix epoch, money is nano-dollars.
-- A row whose path is empty came through a full spool: its money is right, its detail was dropped.
CREATE TABLE events (
    seq            INTEGER PRIMARY KEY,
    id             TEXT    NOT NULL UNIQUE,
    at             INTEGER NOT NULL,
    kind           TEXT    NOT NULL,
    agent          TEXT    NOT NULL,
    run_id         TEXT,
    step           INTEGER,
    parent         TEXT,
    origin         TEXT,
    provider       TEXT    NOT NULL,
    dialect        TEXT    NOT NULL,
    path           TEXT    NOT NULL,
    model          TEXT,
    stream         INTEGER NOT NULL,
    status         INTEGER NOT NULL,
    ending         TEXT    NOT NULL,
    total_ms       INTEGER NOT NULL,
    first_byte_ms  INTEGER,
    overhead_us    INTEGER NOT NULL,
    input          INTEGER,
    cache_read     INTEGER,
    cache_write    INTEGER,
    cache_write_1h INTEGER,
    output         INTEGER,
    reasoning      INTEGER,
    audio_input    INTEGER,
    audio_output   INTEGER,
    estimated      INTEGER,
    cost_nano      INTEGER,
    unpriced       INTEGER NOT NULL,
    finish         TEXT,
    tools          TEXT,
    blocked        INTEGER NOT NULL,
    block_reason   TEXT,
    error          TEXT
) STRICT;

-- Every index ends in the row number by itself, which is the tie-breaker of cursors.
CREATE INDEX events_newest ON events (at);
CREATE INDEX events_of_run ON events (agent, run_id, at) WHERE run_id IS NOT NULL;
CREATE INDEX events_of_agent ON events (agent, at);
CREATE INDEX events_of_model ON events (model, at) WHERE model IS NOT NULL;
CREATE INDEX events_blocked ON events (at) WHERE blocked = 1;
