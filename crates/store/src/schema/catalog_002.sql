-- What the run and its parts had cost when it was resumed.
ALTER TABLE marks ADD COLUMN cost_nano INTEGER NOT NULL DEFAULT 0;

-- What was added by hand to what an account has spent in the time that begins at `start`.
CREATE TABLE adjustments (
    account     TEXT    NOT NULL,
    start       INTEGER NOT NULL,
    amount_nano INTEGER NOT NULL,
    PRIMARY KEY (account, start)
) STRICT, WITHOUT ROWID;

CREATE INDEX adjustments_oldest ON adjustments (start);
