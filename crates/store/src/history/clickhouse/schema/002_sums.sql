-- Sums, as each node has counted them so far: whole numbers that replace the ones before, never amounts to add. So a batch that is
-- sent twice, in part or out of order counts once, however much later that is. The tables of nodes hold them; the views without
-- `node_` show the latest of each node, to be summed over nodes with GROUP BY. Sums there are Int128, for sum() of Int64 wraps.
CREATE TABLE IF NOT EXISTS node_runs (
    agent           LowCardinality(String),
    run_hash        UInt64 MATERIALIZED cityHash64(agent, run_id),
    run_id          String CODEC(ZSTD(1)),
    node            LowCardinality(String),
    version         UInt64 CODEC(T64, ZSTD(1)),
    parent          String DEFAULT '' CODEC(ZSTD(1)),
    origin          LowCardinality(String),
    provider        LowCardinality(String),
    model           LowCardinality(Nullable(String)),
    steps           UInt64 CODEC(T64, ZSTD(1)),
    input_tokens    Int64 CODEC(T64, ZSTD(1)),
    cached_tokens   Int64 CODEC(T64, ZSTD(1)),
    output_tokens   Int64 CODEC(T64, ZSTD(1)),
    cost_nano       Int64 CODEC(T64, ZSTD(1)),
    unpriced_steps  UInt64 CODEC(T64, ZSTD(1)),
    estimated_steps UInt64 CODEC(T64, ZSTD(1)),
    blocked         UInt64 CODEC(T64, ZSTD(1)),
    errors          UInt64 CODEC(T64, ZSTD(1)),
    first_at        Int64 CODEC(T64, ZSTD(1)),
    last_at         Int64 CODEC(T64, ZSTD(1)),
    saved_nano      Int64 CODEC(T64, ZSTD(1)),
    -- A run whose agent is not named.
    INDEX of_id run_id TYPE bloom_filter(0.01) GRANULARITY 16
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (agent, run_hash, run_id, node)
SETTINGS index_granularity = 256;

CREATE VIEW IF NOT EXISTS runs AS
SELECT agent, run_hash, run_id, node, parent, origin, provider, model, steps,
    toInt128(input_tokens) AS input_tokens, toInt128(cached_tokens) AS cached_tokens,
    toInt128(output_tokens) AS output_tokens, toInt128(cost_nano) AS cost_nano,
    unpriced_steps, estimated_steps, blocked, errors, first_at, last_at, toInt128(saved_nano) AS saved_nano
FROM node_runs FINAL;

CREATE TABLE IF NOT EXISTS node_agent_totals (
    agent           LowCardinality(String),
    node            LowCardinality(String),
    version         UInt64,
    steps           UInt64,
    input_tokens    Int64,
    cached_tokens   Int64,
    output_tokens   Int64,
    cost_nano       Int64,
    unpriced_steps  UInt64,
    estimated_steps UInt64,
    blocked         UInt64,
    errors          UInt64,
    first_at        Int64,
    last_at         Int64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (agent, node);

CREATE VIEW IF NOT EXISTS agent_totals AS
SELECT agent, node, steps, toInt128(input_tokens) AS input_tokens, toInt128(cached_tokens) AS cached_tokens,
    toInt128(output_tokens) AS output_tokens, toInt128(cost_nano) AS cost_nano,
    unpriced_steps, estimated_steps, blocked, errors, first_at, last_at
FROM node_agent_totals FINAL;

-- Quarters of an hour since the Unix epoch: the offset of every time zone is a multiple of them.
CREATE TABLE IF NOT EXISTS node_spend (
    agent           LowCardinality(String),
    slot            Int64 CODEC(Delta, ZSTD(1)),
    node            LowCardinality(String),
    version         UInt64 CODEC(T64, ZSTD(1)),
    steps           UInt64 CODEC(T64, ZSTD(1)),
    input_tokens    Int64 CODEC(T64, ZSTD(1)),
    cached_tokens   Int64 CODEC(T64, ZSTD(1)),
    output_tokens   Int64 CODEC(T64, ZSTD(1)),
    cost_nano       Int64 CODEC(T64, ZSTD(1)),
    unpriced_steps  UInt64 CODEC(T64, ZSTD(1)),
    estimated_steps UInt64 CODEC(T64, ZSTD(1)),
    blocked         UInt64 CODEC(T64, ZSTD(1)),
    errors          UInt64 CODEC(T64, ZSTD(1)),
    saved_nano      Int64 CODEC(T64, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(toDateTime(slot * 900, 'UTC'))
ORDER BY (agent, slot, node)
SETTINGS ttl_only_drop_parts = 1;

CREATE VIEW IF NOT EXISTS spend AS
SELECT agent, slot, node, steps, toInt128(input_tokens) AS input_tokens, toInt128(cached_tokens) AS cached_tokens,
    toInt128(output_tokens) AS output_tokens, toInt128(cost_nano) AS cost_nano,
    unpriced_steps, estimated_steps, blocked, errors, toInt128(saved_nano) AS saved_nano
FROM node_spend FINAL;

-- All agents together, in the same slots.
CREATE TABLE IF NOT EXISTS node_slot_totals (
    slot            Int64 CODEC(Delta, ZSTD(1)),
    node            LowCardinality(String),
    version         UInt64 CODEC(T64, ZSTD(1)),
    steps           UInt64 CODEC(T64, ZSTD(1)),
    input_tokens    Int64 CODEC(T64, ZSTD(1)),
    cached_tokens   Int64 CODEC(T64, ZSTD(1)),
    output_tokens   Int64 CODEC(T64, ZSTD(1)),
    cost_nano       Int64 CODEC(T64, ZSTD(1)),
    unpriced_steps  UInt64 CODEC(T64, ZSTD(1)),
    estimated_steps UInt64 CODEC(T64, ZSTD(1)),
    blocked         UInt64 CODEC(T64, ZSTD(1)),
    errors          UInt64 CODEC(T64, ZSTD(1)),
    saved_nano      Int64 CODEC(T64, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(toDateTime(slot * 900, 'UTC'))
ORDER BY (slot, node)
SETTINGS ttl_only_drop_parts = 1;

CREATE VIEW IF NOT EXISTS slot_totals AS
SELECT slot, node, steps, toInt128(input_tokens) AS input_tokens, toInt128(cached_tokens) AS cached_tokens,
    toInt128(output_tokens) AS output_tokens, toInt128(cost_nano) AS cost_nano,
    unpriced_steps, estimated_steps, blocked, errors, toInt128(saved_nano) AS saved_nano
FROM node_slot_totals FINAL;

CREATE TABLE IF NOT EXISTS node_key_spend (
    key            String CODEC(ZSTD(1)),
    slot           Int64 CODEC(Delta, ZSTD(1)),
    node           LowCardinality(String),
    version        UInt64 CODEC(T64, ZSTD(1)),
    steps          UInt64 CODEC(T64, ZSTD(1)),
    input_tokens   Int64 CODEC(T64, ZSTD(1)),
    cached_tokens  Int64 CODEC(T64, ZSTD(1)),
    output_tokens  Int64 CODEC(T64, ZSTD(1)),
    cost_nano      Int64 CODEC(T64, ZSTD(1)),
    unpriced_steps UInt64 CODEC(T64, ZSTD(1)),
    blocked        UInt64 CODEC(T64, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(toDateTime(slot * 900, 'UTC'))
ORDER BY (key, slot, node)
SETTINGS ttl_only_drop_parts = 1;

CREATE VIEW IF NOT EXISTS key_spend AS
SELECT key, slot, node, steps, toInt128(input_tokens) AS input_tokens, toInt128(cached_tokens) AS cached_tokens,
    toInt128(output_tokens) AS output_tokens, toInt128(cost_nano) AS cost_nano, unpriced_steps, blocked
FROM node_key_spend FINAL;

-- For charts: all agents by the minute, each agent by the minute and by the day in UTC.
CREATE TABLE IF NOT EXISTS node_minute_totals (
    minute    Int64 CODEC(Delta, ZSTD(1)),
    node      LowCardinality(String),
    version   UInt64,
    steps     UInt64,
    blocked   UInt64,
    errors    UInt64,
    cost_nano Int64
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMMDD(toDateTime(minute * 60, 'UTC'))
ORDER BY (minute, node)
SETTINGS ttl_only_drop_parts = 1;

CREATE VIEW IF NOT EXISTS minute_totals AS
SELECT minute, node, steps, blocked, errors, toInt128(cost_nano) AS cost_nano FROM node_minute_totals FINAL;

CREATE TABLE IF NOT EXISTS node_agent_minutes (
    minute    Int64 CODEC(Delta, ZSTD(1)),
    agent     LowCardinality(String),
    node      LowCardinality(String),
    version   UInt64,
    steps     UInt64,
    blocked   UInt64,
    errors    UInt64,
    cost_nano Int64
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMMDD(toDateTime(minute * 60, 'UTC'))
ORDER BY (minute, agent, node)
SETTINGS ttl_only_drop_parts = 1;

CREATE VIEW IF NOT EXISTS agent_minutes AS
SELECT minute, agent, node, steps, blocked, errors, toInt128(cost_nano) AS cost_nano FROM node_agent_minutes FINAL;

CREATE TABLE IF NOT EXISTS node_agent_days (
    day       Int64 CODEC(Delta, ZSTD(1)),
    agent     LowCardinality(String),
    node      LowCardinality(String),
    version   UInt64,
    steps     UInt64,
    blocked   UInt64,
    errors    UInt64,
    cost_nano Int64
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toYYYYMM(toDateTime(day * 86400, 'UTC'))
ORDER BY (day, agent, node)
SETTINGS ttl_only_drop_parts = 1;

CREATE VIEW IF NOT EXISTS agent_days AS
SELECT day, agent, node, steps, blocked, errors, toInt128(cost_nano) AS cost_nano FROM node_agent_days FINAL;

-- Who has written here. A node that does not find itself sends all it has.
CREATE TABLE IF NOT EXISTS nodes (
    node       String,
    started_at Int64,
    build      String
)
ENGINE = ReplacingMergeTree(started_at)
ORDER BY node;
