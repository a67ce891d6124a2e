-- Acts stand among the events: what was done, by whom, to what, as JSON. Their rows count in no total.
ALTER TABLE events ADD COLUMN act TEXT;

-- Why a run is killed or paused. All NULL while it may go on.
ALTER TABLE runs ADD COLUMN kill_reason TEXT;
ALTER TABLE runs ADD COLUMN kill_by TEXT;
ALTER TABLE runs ADD COLUMN kill_at INTEGER;
ALTER TABLE runs ADD COLUMN kill_expires_at INTEGER;
ALTER TABLE runs ADD COLUMN kill_proof TEXT;
