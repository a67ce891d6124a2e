-- Who changed each row last, and when: nodes that share a catalog compare this. Rows that are gone keep their stamp for a
-- while, with the moment they left, so that no other node brings them back.
CREATE TABLE stamps (
    kind    TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    node    TEXT    NOT NULL,
    gone_at INTEGER,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX stamps_of_gone ON stamps (gone_at) WHERE gone_at IS NOT NULL;

-- Nodes add their corrections up: each has a row of its own.
ALTER TABLE adjustments RENAME TO adjustments_of_one;
CREATE TABLE adjustments (
    account     TEXT    NOT NULL,
    start       INTEGER NOT NULL,
    node        TEXT    NOT NULL,
    amount_nano INTEGER NOT NULL,
    PRIMARY KEY (account, start, node)
) STRICT, WITHOUT ROWID;
INSERT INTO adjustments SELECT account, start, lower(hex(randomblob(8))), amount_nano FROM adjustments_of_one;
DROP TABLE adjustments_of_one;
CREATE INDEX adjustments_oldest ON adjustments (start);

-- What was there before has no time of its own. Where two nodes differ one of them wins, and an agent that is inactive
-- stays so.
INSERT INTO stamps SELECT 'kill', scope, max(1, json_extract(record, '$.at')), lower(hex(randomblob(8))), NULL FROM kills;
INSERT INTO stamps SELECT 'mark', 'run:' || agent || '/' || run_id, 1, lower(hex(randomblob(8))), NULL FROM marks;
INSERT INTO stamps
    SELECT 'standing', name, CASE WHEN json_extract(record, '$.active') THEN 1 ELSE 2 END, lower(hex(randomblob(8))), NULL
    FROM agents;
INSERT INTO stamps SELECT 'policy', name, 1, lower(hex(randomblob(8))), NULL FROM agents;
INSERT INTO stamps SELECT 'adjustment', start || ' ' || node || ' ' || account, 1, node, NULL FROM adjustments;
INSERT INTO stamps SELECT 'key', id, 1, lower(hex(randomblob(8))), NULL FROM keys;
INSERT INTO stamps SELECT 'token', id, 1, lower(hex(randomblob(8))), NULL FROM tokens;

-- A row that leaves for want of room, or because it is over, takes nothing newer with it: its stamp stays the same.
CREATE TRIGGER kills_leave AFTER DELETE ON kills BEGIN
    UPDATE stamps SET gone_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE kind = 'kill' AND name = OLD.scope;
END;
CREATE TRIGGER marks_leave AFTER DELETE ON marks BEGIN
    UPDATE stamps SET gone_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
    WHERE kind = 'mark' AND name = 'run:' || OLD.agent || '/' || OLD.run_id;
END;
CREATE TRIGGER adjustments_leave AFTER DELETE ON adjustments BEGIN
    UPDATE stamps SET gone_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
    WHERE kind = 'adjustment' AND name = OLD.start || ' ' || OLD.node || ' ' || OLD.account;
END;
CREATE TRIGGER keys_leave AFTER DELETE ON keys BEGIN
    UPDATE stamps SET gone_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE kind = 'key' AND name = OLD.id;
END;
CREATE TRIGGER tokens_leave AFTER DELETE ON tokens BEGIN
    UPDATE stamps SET gone_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE kind = 'token' AND name = OLD.id;
END;
