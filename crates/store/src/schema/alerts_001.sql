-- What was told, and to whom it is still to be told.
CREATE TABLE alerts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    rule TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX alerts_by_subject ON alerts (rule, subject, seq);

CREATE TABLE deliveries (
    seq INTEGER NOT NULL,
    channel TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL,
    error TEXT,
    done_at INTEGER,
    PRIMARY KEY (seq, channel)
) WITHOUT ROWID;
CREATE INDEX deliveries_waiting ON deliveries (seq) WHERE state = 'waiting';
