"""Loads over one, two and three nodes, and what each call of them took of everything.

Loads that are compared with each other take turns on the same nodes, a slice at a time, so that a busy moment of the machine meets all of them.
"""

import time
from collections import Counter
from dataclasses import dataclass

from . import counters
from .round_trips import scripts_of_one_run
from .site import STEPS, Plan, Site

CONNECTIONS = 8
# So many that calls of one agent rarely meet.
AGENTS = 32
IDLE_SECONDS = 4


@dataclass(frozen=True)
class Stage:
    """One load over the first so many nodes. `long_percent` of its runs begin with a long history."""

    name: str
    nodes: int
    long_percent: int
    agents: int = AGENTS


SHORT = Stage("one, short", 1, 0)
ONE = Stage("one", 1, 20)
TWO = Stage("two", 2, 20)
THREE = Stage("three", 3, 40)
ONE_AGENT = Stage("two, one agent", 2, 20, agents=1)
ALONE = Stage("alone", 1, 20)
CLUSTER = Stage("two, Redis Cluster", 2, 20)


def measure(runs: int, slices: int, has_clickhouse: bool, say) -> dict[str, dict]:
    """By the names of the loads."""
    say("one, two and three nodes")
    with Site(Plan(nodes=3, clickhouse=has_clickhouse)) as site:
        warm(site, THREE)
        scripts = scripts_of_one_run(site)
        idle = idle_of(site)
        seen = in_turn(site, (SHORT, ONE, TWO, THREE), runs, slices)
        kinds = counters.redis_kinds(site.redis[0])
        runs_in_redis = int(sum(of["runs"] for of in seen.values())) + warm_runs(THREE) + 1
        warm(site, ONE_AGENT)
        seen |= in_turn(site, (ONE_AGENT,), runs, 1)
        for of in seen.values():
            of |= {"idle": idle, "alive": len(site.nodes)}
        seen[ONE.name] |= {"redis_kinds": kinds, "redis_runs": runs_in_redis, "scripts_of_one_run": scripts}
    for stage, redis in ((ALONE, 0), (CLUSTER, 3)):
        say(stage.name)
        with Site(Plan(nodes=stage.nodes, redis=redis)) as site:
            warm(site, stage)
            idle = idle_of(site)
            seen |= in_turn(site, (stage,), runs, 1)
            seen[stage.name] |= {"idle": idle, "alive": len(site.nodes)}
    return seen


def warm(site: Site, stage: Stage) -> None:
    """Accounts are opened, scripts are loaded, and Redis has made room."""
    load(site, stage, "warm", warm_runs(stage))


def warm_runs(stage: Stage) -> int:
    return max(64, stage.agents)


def in_turn(site: Site, stages: tuple[Stage, ...], runs: int, slices: int) -> dict[str, dict]:
    sums: dict[str, Counter] = {stage.name: Counter() for stage in stages}
    latencies: dict[str, list[int]] = {stage.name: [] for stage in stages}
    for number in range(slices):
        for stage in stages:
            before = disk(site) | reading(site)
            began = time.monotonic()
            seen = load(site, stage, f"{stage.name.replace(', ', '-').replace(' ', '-')}-{number}", runs // slices)
            took = time.monotonic() - began
            spent = counters.difference(reading(site) | disk(site), before)
            latencies[stage.name] += seen.pop("latencies_us")
            # Everything that grows, in one sum.
            more = {"seconds": took, "load_seconds": seen["seconds"]}
            told = {name: seen[name] for name in ("requests", "runs", "sent_bytes", "received_bytes")}
            sums[stage.name].update(spent | told | more)
    return {stage.name: of_stage(site, stage, dict(sums[stage.name]), sorted(latencies[stage.name])) for stage in stages}


def load(site: Site, stage: Stage, name: str, runs: int) -> dict:
    hosts = [node.host for node in site.nodes[: stage.nodes]]
    options = {"connections": CONNECTIONS, "long_percent": stage.long_percent, "agents": stage.agents}
    seen = site.load(name, runs, hosts, **options)
    site.settle()
    return seen


def of_stage(site: Site, stage: Stage, sums: dict[str, float], latencies: list[int]) -> dict:
    """Everything for each call, but what is named otherwise."""
    calls = sums["requests"]
    events = sums.get("clickhouse_events", calls)
    assert events == calls, f"{calls} calls and {events} events in ClickHouse"
    told = ("requests", "runs", "seconds", "load_seconds", "sent_bytes", "received_bytes")
    result = {name: value / calls for name, value in sums.items() if name not in told}
    result |= {"nodes": stage.nodes, "long_percent": stage.long_percent, "agents": stage.agents, "steps": STEPS}
    result |= {"requests": calls, "runs": sums["runs"], "seconds": sums["seconds"]}
    result["requests_per_second"] = calls / sums["load_seconds"]
    # Until everything was on record, and with ClickHouse where there is one.
    result["recorded_per_second"] = calls / sums["seconds"]
    result["body_bytes"], result["answer_bytes"] = sums["sent_bytes"] / calls, sums["received_bytes"] / calls
    result["p50_ms"], result["p99_ms"] = latencies[len(latencies) // 2] / 1000, latencies[len(latencies) * 99 // 100] / 1000
    result["node_mib"] = counters.resident_mib(site.nodes[0].process.pid)
    if site.plan.redis:
        result["redis_bytes_of_a_run"] = sums["redis_memory_bytes"] / sums["runs"]
    return result


def reading(site: Site) -> dict[str, float]:
    read = {"node_us": sum(counters.processor_us(node.process.pid) for node in site.nodes)}
    read["provider_us"] = counters.processor_us(site.provider.process.pid)
    if site.plan.redis:
        read |= counters.of_redis(site.redis)
    if site.plan.clickhouse:
        read["clickhouse_us"] = counters.processor_us(site.clickhouse.process.pid)
        read["clickhouse_sent_bytes"] = site.to_clickhouse.passed_bytes
    return read


def disk(site: Site) -> dict[str, float]:
    return counters.clickhouse_bytes(site.clickhouse.port) if site.plan.clickhouse else {}


def idle_of(site: Site) -> dict[str, float]:
    """What each node takes in a second in which nobody calls."""
    site.settle()
    before = reading(site)
    time.sleep(IDLE_SECONDS)
    spent = counters.difference(reading(site), before)
    return {name: value / IDLE_SECONDS / site.plan.nodes for name, value in spent.items()}
