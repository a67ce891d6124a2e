-- Events in which something was found, or that rules and limits in shadow would have stopped: few among very many, so that a
-- report over a month opens these alone. An event that was sent twice may stand here twice: readers drop the second one.
CREATE TABLE IF NOT EXISTS notes (
    at          Int64 CODEC(Delta, ZSTD(1)),
    id          String CODEC(ZSTD(1)),
    agent       LowCardinality(String),
    run_id      String CODEC(ZSTD(1)),
    run_hash    UInt64,
    step        UInt32 CODEC(T64, ZSTD(1)),
    cost_nano   Nullable(Int64) CODEC(ZSTD(1)),
    -- The detector in shadow that would have stopped the run; empty where none would.
    detector    LowCardinality(String),
    would_block String CODEC(ZSTD(1)),
    dlp         String CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMMDD(toDateTime(intDiv(at, 1000), 'UTC'))
ORDER BY (at, id)
SETTINGS ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS notes_of_events TO notes AS
SELECT
    at,
    id,
    agent,
    run_id,
    if(run_id = '', 0, cityHash64(agent, run_id)) AS run_hash,
    step,
    cost_nano,
    JSONExtractString(shadow, 'detector') AS detector,
    would_block,
    dlp
FROM events
WHERE shadow <> '' OR would_block <> '' OR dlp <> '';
