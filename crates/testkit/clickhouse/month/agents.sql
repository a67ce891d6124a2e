INSERT INTO node_agent_totals (agent, node, version, steps, input_tokens, cached_tokens, output_tokens, cost_nano,
    unpriced_steps, estimated_steps, blocked, errors, first_at, last_at)
SELECT agent, node, 1, count(), sum(input), sum(cache_read), sum(output), sum(ifNull(events.cost_nano, 0)), 0, 0,
    sum(events.blocked), countIf(ending = 'upstream_error'), min(at), max(at + total_ms)
FROM events WHERE act = '' GROUP BY agent, node
