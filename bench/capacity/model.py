"""The capacity model: constants that were measured, and what follows from them. Nothing here measures or writes.

A node's processor time grows with the bytes of a call, everything else with the number of calls; and each node takes a little
even when nobody calls.
"""

import math
from dataclasses import dataclass

# How busy what is planned may be: the rest is for peaks, and for a node that is lost.
BUSY = 0.6
CORES_OF_A_NODE = 4
# Until what is kept of a run goes by itself, after its last call (docs/shared-state.md).
KEPT_SECONDS = 2 * 60 * 60
DAY_SECONDS = 24 * 60 * 60
# What a node with a Redis on loopback may add to a call.
GOAL_P99_MS = 1.0
# What the model says about a load, and what it is held against.
PREDICTED = (
    "node_us", "redis_us", "redis_calls", "redis_commands", "redis_in_bytes", "redis_out_bytes", "redis_bytes_of_a_run",
    "clickhouse_disk_bytes", "clickhouse_sent_bytes",
)


@dataclass(frozen=True)
class Constants:
    """Of each call, but for `idle`: of each node in each second. KB are those of a call's body."""

    node_us: float
    node_us_of_a_kb: float
    steps: int
    each: dict[str, float]
    idle: dict[str, float]


@dataclass(frozen=True)
class Load:
    """What is planned for, or was seen."""

    rate: float
    # That run, whether they get calls or not.
    nodes: int
    body_kb: float


def constants(short: dict, mixed: dict) -> Constants:
    """Of two loads on one node that differ in the length of histories."""
    idle = {name: (short["idle"][name] + mixed["idle"][name]) / 2 for name in mixed["idle"]}
    bare = [of_calls_alone(seen, idle) for seen in (short, mixed)]
    kb = [seen["body_bytes"] / 1000 for seen in (short, mixed)]
    # On a busy machine chance may outweigh it; longer bodies are never cheaper.
    of_a_kb = max(0.0, (bare[1]["node_us"] - bare[0]["node_us"]) / (kb[1] - kb[0]))
    each = {name: (bare[0][name] + bare[1][name]) / 2 for name in PREDICTED if name != "node_us" and name in bare[1]}
    return Constants(bare[1]["node_us"] - of_a_kb * kb[1], of_a_kb, mixed["steps"], each, idle)


def on_several_nodes(of: Constants, two: dict) -> Constants:
    """The same where calls of a run go round: what detection keeps of the run goes along each time, which one node cannot show."""
    bare = of_calls_alone(two, two["idle"])
    node_us = bare["node_us"] - of.node_us_of_a_kb * two["body_bytes"] / 1000
    each = {name: bare[name] for name in of.each}
    return Constants(node_us, of.node_us_of_a_kb, of.steps, each, two["idle"])


def of_calls_alone(seen: dict, idle: dict[str, float]) -> dict[str, float]:
    """What was seen, without what its nodes would have taken anyway."""
    seconds_of_a_call = seen["seconds"] * seen["alive"] / seen["requests"]
    return {name: seen[name] - idle.get(name, 0.0) * seconds_of_a_call for name in PREDICTED if name in seen}


def predict(of: Constants, load: Load) -> dict[str, float]:
    """What each call should take of everything."""
    each = {"node_us": of.node_us + of.node_us_of_a_kb * load.body_kb} | of.each
    return {name: value + of.idle.get(name, 0.0) * load.nodes / load.rate for name, value in each.items()}


def errors(of: Constants, seen: dict) -> dict[str, dict[str, float]]:
    """The prediction for a load beside what was seen of it."""
    load = Load(seen["requests"] / seen["seconds"], seen["alive"], seen["body_bytes"] / 1000)
    predicted = predict(of, load)
    return {
        name: {"predicted": value, "seen": seen[name], "error": value / seen[name] - 1}
        for name, value in predicted.items()
        if seen.get(name)
    }


@dataclass(frozen=True)
class Need:
    """What a rate of calls needs."""

    rate: float
    nodes: int
    node_cores: float
    redis_calls: float
    redis_cores: float
    redis_servers: int
    # The least and the most: calls of many agents take more or less of it than calls of one.
    redis_gib: tuple[float, float]
    redis_mbit: float
    agents_mbit: float
    clickhouse_events: float
    clickhouse_gb_a_day: float | None
    clickhouse_mbit: float | None


def need(of: Constants, rate: float, body_kb: float, answer_kb: float, bytes_of_a_run_of_one_agent: float) -> Need:
    """For calls of this size. Idle nodes are a part of it, so the number of nodes is found first."""
    busy = (of.node_us + of.node_us_of_a_kb * body_kb) * rate / 1e6
    # One more, so that a node can be lost or replaced.
    nodes = math.ceil(busy / BUSY / CORES_OF_A_NODE) + 1
    each = predict(of, Load(rate, nodes, body_kb))
    disk, sent = each.get("clickhouse_disk_bytes"), each.get("clickhouse_sent_bytes")
    return Need(
        rate=rate,
        nodes=nodes,
        node_cores=each["node_us"] * rate / 1e6,
        redis_calls=each["redis_calls"] * rate,
        redis_cores=each["redis_us"] * rate / 1e6,
        redis_servers=math.ceil(each["redis_us"] * rate / 1e6 / BUSY),
        redis_gib=kept_gib(of, rate, bytes_of_a_run_of_one_agent, each["redis_bytes_of_a_run"]),
        redis_mbit=(each["redis_in_bytes"] + each["redis_out_bytes"]) * rate * 8 / 1e6,
        # In and out again, on the side of the agents and on that of the provider.
        agents_mbit=2 * (body_kb + answer_kb) * 1000 * rate * 8 / 1e6,
        clickhouse_events=rate * DAY_SECONDS,
        clickhouse_gb_a_day=None if disk is None else disk * rate * DAY_SECONDS / 1e9,
        clickhouse_mbit=None if sent is None else sent * rate * 8 / 1e6,
    )


def kept_gib(of: Constants, rate: float, *bytes_of_a_run: float) -> tuple[float, float]:
    """What Redis holds when as many runs go as come: with the smallest of these runs, and with the largest."""
    least, most = (rate / of.steps * KEPT_SECONDS * size / 2**30 for size in (min(bytes_of_a_run), max(bytes_of_a_run)))
    return least, most


def most_of_one_redis(of: Constants) -> float:
    """Calls a second at which one Redis is as busy as planned: it works on one core."""
    return BUSY * 1e6 / of.each["redis_us"]
