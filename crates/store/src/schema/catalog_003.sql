-- Virtual keys. A secret is nowhere: only its SHA-256, and that of the one before the last rotation.
CREATE TABLE keys (
    id            TEXT PRIMARY KEY,
    secret_hash   BLOB NOT NULL UNIQUE,
    previous_hash BLOB,
    record        TEXT NOT NULL
) STRICT, WITHOUT ROWID;
