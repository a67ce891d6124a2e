-- Links in alerts that were used: each works once.
CREATE TABLE used (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX used_by_end ON used (expires_at);
