-- Who changed each channel and rule last, and when, as in the catalog.
CREATE TABLE stamps (
    kind    TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    node    TEXT    NOT NULL,
    gone_at INTEGER,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX stamps_of_gone ON stamps (gone_at) WHERE gone_at IS NOT NULL;

INSERT INTO stamps SELECT kind, name, 1, lower(hex(randomblob(8))), NULL FROM made;
