-- One row for each event, in the order of listings. Times are milliseconds since the Unix epoch, money is nano-dollars.
-- Empty text stands for nothing in `run_id`, `parent`, `origin`, `key` and all JSON; where nothing and an empty text differ, NULL does.
-- An event that was sent twice stands here twice until parts are merged: readers drop the second one.
CREATE TABLE IF NOT EXISTS events (
    id             String CODEC(ZSTD(1)),
    at             Int64 CODEC(Delta, ZSTD(1)),
    kind           LowCardinality(String),
    agent          LowCardinality(String),
    run_id         String DEFAULT '' CODEC(ZSTD(1)),
    run_hash       UInt64 MATERIALIZED if(run_id = '', 0, cityHash64(agent, run_id)) CODEC(ZSTD(1)),
    step           UInt32 DEFAULT 0 CODEC(T64, ZSTD(1)),
    parent         String DEFAULT '' CODEC(ZSTD(1)),
    origin         LowCardinality(String) DEFAULT '',
    provider       LowCardinality(String),
    dialect        LowCardinality(String),
    path           LowCardinality(String),
    model          LowCardinality(Nullable(String)),
    stream         Bool,
    status         UInt16 CODEC(T64, ZSTD(1)),
    ending         LowCardinality(String),
    total_ms       UInt32 CODEC(T64, ZSTD(1)),
    first_byte_ms  Nullable(UInt32) CODEC(ZSTD(1)),
    overhead_us    UInt32 CODEC(T64, ZSTD(1)),
    -- Tokens are all zero where `estimated` is NULL: nothing was used.
    input          Int64 DEFAULT 0 CODEC(T64, ZSTD(1)),
    cache_read     Int64 DEFAULT 0 CODEC(T64, ZSTD(1)),
    cache_write    Int64 DEFAULT 0 CODEC(T64, ZSTD(1)),
    cache_write_1h Int64 DEFAULT 0 CODEC(T64, ZSTD(1)),
    output         Int64 DEFAULT 0 CODEC(T64, ZSTD(1)),
    reasoning      Int64 DEFAULT 0 CODEC(T64, ZSTD(1)),
    audio_input    Int64 DEFAULT 0 CODEC(T64, ZSTD(1)),
    audio_output   Int64 DEFAULT 0 CODEC(T64, ZSTD(1)),
    estimated      Nullable(Bool) CODEC(ZSTD(1)),
    cost_nano      Nullable(Int64) CODEC(ZSTD(1)),
    unpriced       Bool,
    finish         LowCardinality(Nullable(String)),
    tools          String DEFAULT '' CODEC(ZSTD(1)),
    blocked        Bool,
    block_reason   LowCardinality(Nullable(String)),
    error          Nullable(String) CODEC(ZSTD(1)),
    act            String DEFAULT '' CODEC(ZSTD(1)),
    verdict        String DEFAULT '' CODEC(ZSTD(1)),
    shadow         String DEFAULT '' CODEC(ZSTD(1)),
    key            LowCardinality(String) DEFAULT '',
    would_block    String DEFAULT '' CODEC(ZSTD(1)),
    dlp            String DEFAULT '' CODEC(ZSTD(1)),
    level          Nullable(Float32) CODEC(ZSTD(1)),
    -- Bytes cannot travel in JSON.
    evidence_hex   String EPHEMERAL,
    evidence       String DEFAULT unhex(evidence_hex) CODEC(ZSTD(1)),
    saved_nano     Nullable(Int64) CODEC(ZSTD(1)),
    node           LowCardinality(String),
    is_act          UInt8 MATERIALIZED act <> '',
    has_shadow      UInt8 MATERIALIZED shadow <> '',
    has_would_block UInt8 MATERIALIZED would_block <> '',
    has_dlp         UInt8 MATERIALIZED dlp <> '',
    -- For people who ask the database themselves.
    time           DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(at, 'UTC'),
    cost_usd       Nullable(Float64) ALIAS cost_nano / 1e9,
    INDEX of_run run_hash TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX of_agent agent TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX of_key key TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX of_model model TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX of_reason block_reason TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX of_kind kind TYPE set(16) GRANULARITY 4,
    INDEX refused blocked TYPE minmax GRANULARITY 1,
    INDEX shadowed has_shadow TYPE minmax GRANULARITY 1,
    INDEX would_refuse has_would_block TYPE minmax GRANULARITY 1,
    INDEX found has_dlp TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMMDD(toDateTime(intDiv(at, 1000), 'UTC'))
ORDER BY (at, id)
SETTINGS non_replicated_deduplication_window = 1000, ttl_only_drop_parts = 1;

-- Which runs were active in which hour, and when: a listing of runs walks back from the latest one. Said twice it is still the same.
CREATE TABLE IF NOT EXISTS run_hours (
    hour     Int64 CODEC(Delta, ZSTD(1)),
    agent    LowCardinality(String),
    run_hash UInt64,
    -- The end of the last call, the smallest number where there were only acts.
    last_at  SimpleAggregateFunction(max, Int64) CODEC(ZSTD(1)),
    -- The first act, the largest number where there was none.
    act_at   SimpleAggregateFunction(min, Int64) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(toDateTime(hour * 3600, 'UTC'))
ORDER BY (hour, agent, run_hash)
SETTINGS ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS run_hours_of_events TO run_hours AS
SELECT
    intDiv(if(act = '', at + total_ms, at), 3600000) AS hour,
    agent,
    cityHash64(agent, run_id) AS run_hash,
    max(if(act = '', at + total_ms, -9223372036854775808)) AS last_at,
    min(if(act = '', 9223372036854775807, at)) AS act_at
FROM events WHERE run_id <> '' GROUP BY hour, agent, run_hash;

-- What was last done about a run. Said twice it is still the same.
CREATE TABLE IF NOT EXISTS run_acts (
    agent      LowCardinality(String),
    run_hash   UInt64,
    run_id     String CODEC(ZSTD(1)),
    at         Int64,
    id         String,
    what       LowCardinality(String),
    status     LowCardinality(String),
    reason     String CODEC(ZSTD(1)),
    by         String CODEC(ZSTD(1)),
    expires_at Nullable(Int64),
    proof      String CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(toDateTime(intDiv(at, 1000), 'UTC'))
ORDER BY (agent, run_hash, run_id, at, id)
SETTINGS ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS run_acts_of_events TO run_acts AS
SELECT
    agent,
    cityHash64(agent, run_id) AS run_hash,
    run_id,
    at,
    id,
    JSONExtractString(act, 'what') AS what,
    multiIf(what = 'kill', 'killed', what = 'pause', 'paused', what = 'end_command', 'finished', 'running') AS status,
    if(what IN ('kill', 'pause'), JSONExtractString(act, 'reason'), '') AS reason,
    if(what IN ('kill', 'pause'), JSONExtractString(act, 'by'), '') AS by,
    if(what IN ('kill', 'pause'), JSONExtract(act, 'expires_at', 'Nullable(Int64)'), NULL) AS expires_at,
    if(what IN ('kill', 'pause'), JSONExtractRaw(act, 'proof'), '') AS proof
FROM events
WHERE run_id <> '' AND act <> ''
    AND JSONExtractString(act, 'what') IN ('kill', 'pause', 'resume', 'approve', 'lift', 'start_command', 'end_command');
