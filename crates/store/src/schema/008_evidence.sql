-- How near a run was to the threshold of its progress, what detection saw (hashes and counts, never text), and what
-- refusing the request has saved.
ALTER TABLE events ADD COLUMN level REAL;
ALTER TABLE events ADD COLUMN evidence BLOB;
ALTER TABLE events ADD COLUMN saved_nano INTEGER;

ALTER TABLE runs ADD COLUMN saved_nano INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spend ADD COLUMN saved_nano INTEGER NOT NULL DEFAULT 0;

-- Runs that were stopped because they repeat themselves: what one repetition cost on average, whether the run is held
-- by the stop, and how many refused calls have been counted as saved.
CREATE TABLE repeats (
    agent     TEXT    NOT NULL,
    run_id    TEXT    NOT NULL,
    each_nano INTEGER NOT NULL,
    is_held   INTEGER NOT NULL,
    refused   INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (agent, run_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX repeats_oldest ON repeats (at);
