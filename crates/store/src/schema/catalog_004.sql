-- Admin tokens made at run time. A secret is nowhere: only its SHA-256.
CREATE TABLE tokens (
    id          TEXT PRIMARY KEY,
    secret_hash BLOB NOT NULL UNIQUE,
    record      TEXT NOT NULL
) STRICT, WITHOUT ROWID;
