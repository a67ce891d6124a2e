"""What was measured, and what the model makes of it, as tables."""

from . import model
from .model import BUSY, CORES_OF_A_NODE, GOAL_P99_MS, Constants

RATES = (1_000, 10_000, 100_000)
# How what is predicted is called, with the factor to the unit.
NAMES = {
    "node_us": ("processor time of nodes, µs", 1),
    "redis_us": ("processor time of Redis, µs", 1),
    "redis_calls": ("round trips to Redis", 1),
    "redis_commands": ("commands inside of scripts", 1),
    "redis_in_bytes": ("bytes to Redis", 1),
    "redis_out_bytes": ("bytes from Redis", 1),
    "redis_bytes_of_a_run": ("bytes in Redis of a run", 1),
    "clickhouse_disk_bytes": ("bytes on disk of ClickHouse", 1),
    "clickhouse_sent_bytes": ("bytes to and from ClickHouse", 1),
}
# What keys in Redis are for, by the word in their name.
KINDS = {
    "c": "clues to runs", "o": "offers to later calls", "run": "runs", "watch": "what detection keeps", "money": "money", "rate": "rates",
    "agent": "agents", "state": "kills, keys and policies", "habits": "what calls usually cost", "call": "calls under way",
}


def constants_of(results: dict) -> Constants:
    stages = results["stages"]
    return model.constants(stages["one, short"], stages["one"])


def several_of(results: dict) -> Constants:
    return model.on_several_nodes(constants_of(results), results["stages"]["two"])


def constants_table(results: dict) -> str:
    """One node beside several."""
    stages, both = results["stages"], (constants_of(results), several_of(results))
    kb = stages["one"]["body_bytes"] / 1000
    node = [of.node_us + of.node_us_of_a_kb * kb for of in both]

    def row(title: str, cell) -> tuple[str, ...]:
        return (title, *(cell(of) for of in both))

    rows = [
        row("a node, processor time of a call, a + b × KB of its body", lambda of: f"{of.node_us:.0f} + {of.node_us_of_a_kb:.2f} × KB µs"),
        (f"for the mixed load, {kb:.0f} KB", *(f"{us:.0f} µs" for us in node)),
        ("calls a second on one core", *(number(1e6 / us) for us in node)),
        row("a node at rest, each second", lambda of: f"{of.idle['node_us'] / 1000:.1f} ms, {of.idle['redis_calls']:.1f} calls to Redis"),
        ("memory of a node after this load", *(f"{stages[name]['node_mib']:.0f} MiB" for name in ("one", "two"))),
        row("round trips to Redis of a call", lambda of: f"{of.each['redis_calls']:.2f}"),
        ("scripts of one run, as Redis tells it (MONITOR)", scripts_of(stages["one"]), ""),
        row("Redis, processor time of a call", lambda of: f"{of.each['redis_us']:.0f} µs"),
        row("commands inside of its scripts", lambda of: f"{of.each['redis_commands']:.0f}"),
        row("Redis, bytes in / out of a call", lambda of: f"{number(of.each['redis_in_bytes'])} / {number(of.each['redis_out_bytes'])}"),
        row(f"Redis, memory of a run of {both[0].steps} calls", lambda of: f"{of.each['redis_bytes_of_a_run'] / 1000:.1f} KB"),
    ]
    if "clickhouse_disk_bytes" in both[1].each:
        rows += [
            row("ClickHouse, disk of an event", lambda of: f"{of.each['clickhouse_disk_bytes']:.0f} bytes"),
            row("ClickHouse, network of an event", lambda of: f"{number(of.each['clickhouse_sent_bytes'])} bytes"),
        ]
    return table(["", "one node", "several nodes"], rows)


def scripts_of(seen: dict) -> str:
    begun, ended, *others = seen["scripts_of_one_run"]
    rest = f", {sum(others)} of nodes that look for news" if others else ""
    return f"{begun} to begin, {ended} to end{rest}"


def kinds_table(results: dict) -> str:
    one = results["stages"]["one"]
    kinds = sorted(one["redis_kinds"].items(), key=lambda kind: -kind[1][1])
    rows = [(KINDS.get(name, name), number(keys), f"{size / one['redis_runs'] / 1000:.2f} KB") for name, (keys, size) in kinds]
    return table(["in Redis", f"keys after {one['redis_runs']} runs", "of a run"], rows)


def needs_table(results: dict) -> str:
    of, one = several_of(results), results["stages"]["one"]
    sizes = (one["body_bytes"] / 1000, one["answer_bytes"] / 1000, results["stages"]["two, one agent"]["redis_bytes_of_a_run"])
    needs = [model.need(of, rate, *sizes) for rate in RATES]

    def row(title: str, cell) -> tuple[str, ...]:
        return (title, *(cell(need) for need in needs))

    rows = [
        row("cores busy with calls, all nodes", lambda need: f"{need.node_cores:.1f}"),
        row(f"nodes of {CORES_OF_A_NODE} cores at {BUSY:.0%}, and one more", lambda need: str(need.nodes)),
        row("script calls in Redis, a second", lambda need: number(need.redis_calls)),
        row("cores of Redis that are busy", lambda need: f"{need.redis_cores:.2f}"),
        row(f"Redis servers (one core each, {BUSY:.0%})", lambda need: str(need.redis_servers)),
        row("memory of Redis, all servers", lambda need: f"{figure(need.redis_gib[0])} to {figure(need.redis_gib[1])} GiB"),
        row("network of Redis", lambda need: megabits(need.redis_mbit)),
        row("network of agents and providers", lambda need: megabits(need.agents_mbit)),
        row("events a day", lambda need: millions(need.clickhouse_events)),
    ]
    if needs[0].clickhouse_gb_a_day is not None:
        rows += [
            row("ClickHouse, disk of a day", lambda need: gigabytes(need.clickhouse_gb_a_day, "GB")),
            row("ClickHouse, disk of 30 days", lambda need: gigabytes(30 * need.clickhouse_gb_a_day, "GB")),
            row("network of ClickHouse", lambda need: megabits(need.clickhouse_mbit)),
        ]
    return table(["calls a second", *(number(rate) for rate in RATES)], rows)


def check_table(results: dict) -> str:
    stages = results["stages"]
    predicted = {"two": model.errors(constants_of(results), stages["two"]), "three": model.errors(several_of(results), stages["three"])}
    rows = []
    for name, (title, factor) in NAMES.items():
        if name in predicted["two"] and name in predicted["three"]:
            cells = []
            for one in (predicted["two"][name], predicted["three"][name]):
                cells += [figure(one["predicted"] * factor), figure(one["seen"] * factor), percent(one["error"])]
            rows.append((title, *cells))
    heads = []
    for name in ("two", "three"):
        stage = stages[name]
        heads += [f"{name} nodes, {stage['body_bytes'] / 1000:.0f} KB: predicted", "seen", "error"]
    return table(["of a call", *heads], rows)


def latency_table(results: dict) -> str:
    rows = []
    for form, targets in results["latency"].items():
        for target in ("without Redis", "with Redis"):
            one, direct = targets[target], targets["direct"]
            rows.append((
                form, target, f"{direct['p50_ms']:.2f} / {direct['p99_ms']:.2f}", f"{one['p50_ms']:.2f} / {one['p99_ms']:.2f}",
                f"{one['added_p50_ms']:.2f}", f"{one['added_p99_ms']:.2f}", number(one["requests_per_second"]), verdict(target, one, targets["is_promised"]),
            ))
    heads = ["", "node", "direct p50 / p99 ms", "p50 / p99 ms", "added p50", "added p99", "calls/s", f"p99 ≤ {GOAL_P99_MS:.0f} ms"]
    return table(heads, rows)


def verdict(target: str, seen: dict, is_promised: bool) -> str:
    if target != "with Redis" or not is_promised:
        return ""
    return "met" if seen["added_p99_ms"] <= GOAL_P99_MS else "not met"


def loads_table(results: dict) -> str:
    """Everything that was seen, load by load."""
    shown = (
        ("calls", "requests", 0), ("calls/s", "requests_per_second", 0), ("p50 ms", "p50_ms", 2), ("p99 ms", "p99_ms", 2),
        ("body bytes", "body_bytes", 0), ("node µs", "node_us", 0), ("provider µs", "provider_us", 0), ("Redis µs", "redis_us", 1),
        ("round trips", "redis_calls", 3), ("bytes of a run", "redis_bytes_of_a_run", 0), ("ClickHouse µs", "clickhouse_us", 0),
        ("ClickHouse bytes", "clickhouse_disk_bytes", 0), ("recorded/s", "recorded_per_second", 0), ("node MiB", "node_mib", 0),
    )
    rows = [
        (name, str(seen["nodes"]), f"{seen['long_percent']} %", *(f"{seen[key]:,.{places}f}" if key in seen else "–" for _, key, places in shown))
        for name, seen in results["stages"].items()
    ]
    return table(["load", "nodes", "long", *(title for title, _, _ in shown)], rows)


def table(heads: list[str], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1) if len(heads) > 2 else ["---", "---"], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float) -> str:
    return f"{value:,.0f}"


def figure(value: float) -> str:
    return f"{value:.2f}" if value < 10 else number(value)


def percent(value: float) -> str:
    rounded = round(100 * value)
    return f"{rounded:+d} %" if rounded else "0 %"


def gigabytes(value: float, unit: str) -> str:
    return f"{value:.1f} {unit}" if value < 100 else f"{number(value)} {unit}"


def megabits(value: float) -> str:
    return f"{value:.0f} Mbit/s" if value < 1000 else f"{value / 1000:.1f} Gbit/s"


def millions(value: float) -> str:
    return f"{value / 1e6:.0f} million" if value < 1e9 else f"{value / 1e9:.2f} billion"
