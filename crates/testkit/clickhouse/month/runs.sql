INSERT INTO node_runs (agent, run_id, node, version, origin, provider, model, steps, input_tokens, cached_tokens,
    output_tokens, cost_nano, unpriced_steps, estimated_steps, blocked, errors, first_at, last_at, saved_nano)
SELECT agent, run_id, node, 1, any(events.origin), any(events.provider), any(events.model), countIf(act = ''), sum(input), sum(cache_read),
    sum(output), sum(ifNull(events.cost_nano, 0)), 0, 0, sum(events.blocked), countIf(ending = 'upstream_error'), min(at), max(at + total_ms), 0
FROM events WHERE at >= {from} AND at < {until} GROUP BY agent, run_id, node
