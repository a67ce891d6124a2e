-- Sums of all agents together, so that a chart or a headline costs as many rows as it has points, however many agents there are.
CREATE TABLE minute_totals (
    minute    INTEGER PRIMARY KEY,
    steps     INTEGER NOT NULL,
    blocked   INTEGER NOT NULL,
    errors    INTEGER NOT NULL,
    cost_nano INTEGER NOT NULL
) STRICT;

-- The same in the slots of `spend`.
CREATE TABLE slot_totals (
    slot      INTEGER PRIMARY KEY,
    steps     INTEGER NOT NULL,
    blocked   INTEGER NOT NULL,
    errors    INTEGER NOT NULL,
    cost_nano INTEGER NOT NULL
) STRICT;

-- Agents by day in UTC: who led a month, without a walk over its 2880 slots.
CREATE TABLE agent_days (
    day       INTEGER NOT NULL,
    agent     TEXT    NOT NULL,
    steps     INTEGER NOT NULL,
    blocked   INTEGER NOT NULL,
    errors    INTEGER NOT NULL,
    cost_nano INTEGER NOT NULL,
    PRIMARY KEY (day, agent)
) STRICT, WITHOUT ROWID;

-- What was summed before. `total` because `sum` is an error past the largest integer; minutes begin empty.
INSERT INTO slot_totals
    SELECT slot, sum(steps), sum(blocked), sum(errors), CAST(min(total(cost_nano), 9223372036854774784.0) AS INTEGER)
    FROM spend GROUP BY slot;
INSERT INTO agent_days
    SELECT slot / 96, agent, sum(steps), sum(blocked), sum(errors),
        CAST(min(total(cost_nano), 9223372036854774784.0) AS INTEGER)
    FROM spend GROUP BY slot / 96, agent;

-- Listings of runs walk these two in their order, with or without an agent. They carry what else a listing can be narrowed by,
-- so that a rare combination costs a walk over the index alone, never a look at every row.
DROP INDEX runs_newest;
DROP INDEX runs_of_agent;
CREATE INDEX runs_newest ON runs (last_at, seq, status, cost_nano, model, run_id);
CREATE INDEX runs_of_agent ON runs (agent, last_at, seq, status, cost_nano, model);
-- The latest stops, without a walk over runs that go on.
CREATE INDEX runs_stopped ON runs (kill_at) WHERE kill_at IS NOT NULL;

-- What was done, and requests that were no call of a model: few among very many calls.
CREATE INDEX events_of_kind ON events (kind, at) WHERE kind <> 'llm_call';
-- Refusals for one reason: a rare one does not hide behind a storm of another.
CREATE INDEX events_of_reason ON events (block_reason, at) WHERE block_reason IS NOT NULL;
-- An agent's calls of one model: the one pair of filters that is common, and whose parts are each large.
CREATE INDEX events_of_agent_model ON events (agent, model, at) WHERE model IS NOT NULL;
