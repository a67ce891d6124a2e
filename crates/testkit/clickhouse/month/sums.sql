INSERT INTO node_spend (agent, slot, node, version, steps, input_tokens, cached_tokens, output_tokens, cost_nano,
    unpriced_steps, estimated_steps, blocked, errors, saved_nano)
SELECT agent, intDiv(at, 900000) AS slot, node, 1, count(), sum(input), sum(cache_read), sum(output),
    sum(ifNull(events.cost_nano, 0)), 0, 0, sum(events.blocked), countIf(ending = 'upstream_error'), 0
FROM events WHERE act = '' AND at >= {from} AND at < {until} GROUP BY agent, slot, node;
INSERT INTO node_slot_totals (slot, node, version, steps, input_tokens, cached_tokens, output_tokens, cost_nano,
    unpriced_steps, estimated_steps, blocked, errors, saved_nano)
SELECT intDiv(at, 900000) AS slot, node, 1, count(), sum(input), sum(cache_read), sum(output),
    sum(ifNull(events.cost_nano, 0)), 0, 0, sum(events.blocked), countIf(ending = 'upstream_error'), 0
FROM events WHERE act = '' AND at >= {from} AND at < {until} GROUP BY slot, node;
INSERT INTO node_key_spend (key, slot, node, version, steps, input_tokens, cached_tokens, output_tokens, cost_nano,
    unpriced_steps, blocked)
SELECT key, intDiv(at, 900000) AS slot, node, 1, count(), sum(input), sum(cache_read), sum(output),
    sum(ifNull(events.cost_nano, 0)), 0, sum(events.blocked)
FROM events WHERE act = '' AND at >= {from} AND at < {until} GROUP BY key, slot, node;
INSERT INTO node_minute_totals (minute, node, version, steps, blocked, errors, cost_nano)
SELECT intDiv(at, 60000) AS minute, node, 1, count(), sum(events.blocked), countIf(ending = 'upstream_error'),
    sum(ifNull(events.cost_nano, 0))
FROM events WHERE act = '' AND at >= {from} AND at < {until} GROUP BY minute, node;
INSERT INTO node_agent_minutes (minute, agent, node, version, steps, blocked, errors, cost_nano)
SELECT intDiv(at, 60000) AS minute, agent, node, 1, count(), sum(events.blocked), countIf(ending = 'upstream_error'),
    sum(ifNull(events.cost_nano, 0))
FROM events WHERE act = '' AND at >= {from} AND at < {until} GROUP BY minute, agent, node;
INSERT INTO node_agent_days (day, agent, node, version, steps, blocked, errors, cost_nano)
SELECT intDiv(at, 86400000) AS day, agent, node, 1, count(), sum(events.blocked), countIf(ending = 'upstream_error'),
    sum(ifNull(events.cost_nano, 0))
FROM events WHERE act = '' AND at >= {from} AND at < {until} GROUP BY day, agent, node
