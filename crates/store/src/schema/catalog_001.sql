-- What must never be lost. Times are milliseconds since the Unix epoch; records are JSON.
-- One kill of each scope at most. `seq` is their age.
CREATE TABLE kills (
    seq        INTEGER PRIMARY KEY,
    scope      TEXT    NOT NULL UNIQUE,
    is_run     INTEGER NOT NULL,
    expires_at INTEGER,
    record     TEXT    NOT NULL
) STRICT;

CREATE INDEX kills_of_runs ON kills (seq) WHERE is_run = 1;
CREATE INDEX kills_that_expire ON kills (expires_at) WHERE expires_at IS NOT NULL;

-- Hashes by which requests of a killed run are known again after a restart.
CREATE TABLE kill_clues (
    scope TEXT    NOT NULL,
    clue  INTEGER NOT NULL,
    PRIMARY KEY (scope, clue)
) STRICT, WITHOUT ROWID;

-- Where a run stood when it was resumed: what lies before does not count against its limits.
CREATE TABLE marks (
    seq    INTEGER PRIMARY KEY,
    agent  TEXT    NOT NULL,
    run_id TEXT    NOT NULL,
    steps  INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    UNIQUE (agent, run_id)
) STRICT;

CREATE TABLE agents (
    name   TEXT PRIMARY KEY,
    record TEXT NOT NULL
) STRICT, WITHOUT ROWID;
