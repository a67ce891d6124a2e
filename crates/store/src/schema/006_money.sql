-- The virtual key that a request came with, and why limits in shadow would have refused it, as JSON.
ALTER TABLE events ADD COLUMN key TEXT;
ALTER TABLE events ADD COLUMN would_block TEXT;
CREATE INDEX events_of_key ON events (key, at) WHERE key IS NOT NULL;
CREATE INDEX events_would_block ON events (at) WHERE would_block IS NOT NULL;

-- What one agent spent, without a walk over the others.
CREATE INDEX spend_of_agent ON spend (agent, slot);

-- What each virtual key spent, in the slots of `spend`.
CREATE TABLE key_spend (
    key            TEXT    NOT NULL,
    slot           INTEGER NOT NULL,
    steps          INTEGER NOT NULL,
    input_tokens   INTEGER NOT NULL,
    cached_tokens  INTEGER NOT NULL,
    output_tokens  INTEGER NOT NULL,
    cost_nano      INTEGER NOT NULL,
    unpriced_steps INTEGER NOT NULL,
    blocked        INTEGER NOT NULL,
    PRIMARY KEY (key, slot)
) STRICT, WITHOUT ROWID;

CREATE INDEX key_spend_oldest ON key_spend (slot);

-- Calls under way that money is set aside for. The event of the same id takes a row out again; what is left when a
-- process starts belongs to one that died.
CREATE TABLE open_calls (
    id            TEXT    PRIMARY KEY,
    reserved_nano INTEGER NOT NULL,
    record        TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
