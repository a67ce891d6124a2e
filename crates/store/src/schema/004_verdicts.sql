-- What detection found and what followed, and what rules in shadow would have done, as JSON.
ALTER TABLE events ADD COLUMN verdict TEXT;
ALTER TABLE events ADD COLUMN shadow TEXT;
CREATE INDEX events_shadow ON events (agent, run_id, step) WHERE shadow IS NOT NULL;
