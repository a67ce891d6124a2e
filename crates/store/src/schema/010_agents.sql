-- Agents by the minute: who led the last hour, over the same minutes as its chart. Kept for hours, not for days.
CREATE TABLE agent_minutes (
    minute    INTEGER NOT NULL,
    agent     TEXT    NOT NULL,
    steps     INTEGER NOT NULL,
    blocked   INTEGER NOT NULL,
    errors    INTEGER NOT NULL,
    cost_nano INTEGER NOT NULL,
    PRIMARY KEY (minute, agent)
) STRICT, WITHOUT ROWID;

-- The last two hours of what is on record, so that charts are not empty after an upgrade. Acts are no requests.
INSERT INTO agent_minutes
    SELECT at / 60000, agent, count(*), sum(blocked), sum(ending IN ('upstream_error', 'upstream_gone', 'timed_out')),
        CAST(min(total(cost_nano), 9223372036854774784.0) AS INTEGER)
    FROM events WHERE at >= (unixepoch() - 7200) * 1000 AND act IS NULL GROUP BY at / 60000, agent;
-- Minutes that are summed already are whole, or began before they were: then what is on record is more.
INSERT INTO minute_totals (minute, steps, blocked, errors, cost_nano)
    SELECT minute, sum(steps), sum(blocked), sum(errors), CAST(min(total(cost_nano), 9223372036854774784.0) AS INTEGER)
    FROM agent_minutes WHERE true GROUP BY minute
    ON CONFLICT (minute) DO UPDATE SET
        steps = max(steps, excluded.steps),
        blocked = max(blocked, excluded.blocked),
        errors = max(errors, excluded.errors),
        cost_nano = max(cost_nano, excluded.cost_nano);

-- Listings of agents walk this in their order. It ends in the name by itself, which is the tie-breaker of cursors.
CREATE INDEX agents_newest ON agent_totals (last_at);
