-- How far this node has sent its record to a history that many share. `node` is the name that it goes by there, for good. Sums carry a
-- `version` that only grows. Events up to `sent` have arrived; those up to `sending` are on their way, and go in the same batch
-- when they go again. While `is_whole_due`, all sums are sent, not only those that new events changed.
CREATE TABLE forwarding (
    only_row     INTEGER PRIMARY KEY CHECK (only_row = 1),
    node         TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    sent         INTEGER NOT NULL,
    sending      INTEGER NOT NULL,
    is_whole_due INTEGER NOT NULL,
    -- Events whose detail was given up before it was sent.
    dropped      INTEGER NOT NULL
) STRICT;

INSERT INTO forwarding VALUES (1, lower(hex(randomblob(8))), 0, 0, 0, 1, 0);
