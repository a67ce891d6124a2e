-- What rules hold back, so that a kill loses none of it.
CREATE TABLE standings (
    rule TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (rule, subject)
) WITHOUT ROWID;

-- Channels and rules that were made at run time, as they would stand in the configuration.
CREATE TABLE made (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

-- Since when it is tried, and what it is about: alerts about the same go out in their order.
ALTER TABLE deliveries ADD COLUMN queued_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE deliveries ADD COLUMN about INTEGER NOT NULL DEFAULT 0;
UPDATE deliveries SET queued_at = coalesce((SELECT at FROM alerts WHERE alerts.seq = deliveries.seq), 0);
CREATE INDEX deliveries_of_channel ON deliveries (channel, seq) WHERE state = 'waiting';
CREATE INDEX deliveries_about ON deliveries (channel, about, seq) WHERE state = 'waiting';
