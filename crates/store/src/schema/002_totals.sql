-- Sums over events, kept up in the same transaction that inserts them. They outlive the events.
CREATE TABLE runs (
    seq             INTEGER PRIMARY KEY,
    agent           TEXT    NOT NULL,
    run_id          TEXT    NOT NULL,
    parent          TEXT,
    origin          TEXT    NOT NULL,
    status          TEXT    NOT NULL DEFAULT 'running',
    provider        TEXT    NOT NULL,
    model           TEXT,
    steps           INTEGER NOT NULL,
    input_tokens    INTEGER NOT NULL,
    cached_tokens   INTEGER NOT NULL,
    output_tokens   INTEGER NOT NULL,
    cost_nano       INTEGER NOT NULL,
    unpriced_steps  INTEGER NOT NULL,
    estimated_steps INTEGER NOT NULL,
    blocked         INTEGER NOT NULL,
    errors          INTEGER NOT NULL,
    first_at        INTEGER NOT NULL,
    last_at         INTEGER NOT NULL,
    UNIQUE (agent, run_id)
) STRICT;

CREATE INDEX runs_newest ON runs (last_at);
CREATE INDEX runs_of_agent ON runs (agent, last_at);
CREATE INDEX runs_of_parent ON runs (agent, parent) WHERE parent IS NOT NULL;

CREATE TABLE agent_totals (
    agent           TEXT    PRIMARY KEY,
    runs            INTEGER NOT NULL,
    steps           INTEGER NOT NULL,
    input_tokens    INTEGER NOT NULL,
    cached_tokens   INTEGER NOT NULL,
    output_tokens   INTEGER NOT NULL,
    cost_nano       INTEGER NOT NULL,
    unpriced_steps  INTEGER NOT NULL,
    estimated_steps INTEGER NOT NULL,
    blocked         INTEGER NOT NULL,
    errors          INTEGER NOT NULL,
    first_at        INTEGER NOT NULL,
    last_at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Quarters of an hour since the Unix epoch: the offset of every time zone is a multiple of them.
CREATE TABLE spend (
    slot            INTEGER NOT NULL,
    agent           TEXT    NOT NULL,
    steps           INTEGER NOT NULL,
    input_tokens    INTEGER NOT NULL,
    cached_tokens   INTEGER NOT NULL,
    output_tokens   INTEGER NOT NULL,
    cost_nano       INTEGER NOT NULL,
    unpriced_steps  INTEGER NOT NULL,
    estimated_steps INTEGER NOT NULL,
    blocked         INTEGER NOT NULL,
    errors          INTEGER NOT NULL,
    PRIMARY KEY (slot, agent)
) STRICT, WITHOUT ROWID;
