"""Puts the tables into docs/scaling.md between their marks, and everything that was seen into bench/results."""

import json
from pathlib import Path

from . import model, tables

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "scaling.md"
RESULTS = ROOT / "bench" / "results"
TABLES = {
    "constants": tables.constants_table,
    "kinds": tables.kinds_table,
    "needs": tables.needs_table,
    "check": tables.check_table,
    "latency": tables.latency_table,
    "one-redis": lambda results: one_redis(results),
    "one-agent": lambda results: one_agent(results),
    "everybody": lambda results: everybody(results),
    "reached": lambda results: reached(results),
    "alone": lambda results: alone(results),
    "machine": lambda results: machine(results),
}


def write(results: dict) -> None:
    PAGE.write_text(filled(PAGE.read_text(), results))
    (RESULTS / "cluster.md").write_text(report(results))


def filled(page: str, results: dict) -> str:
    """The page with every table as the results give it. A table that cannot be made is left as it is."""
    for name, make in TABLES.items():
        begin, end = f"<!-- {name}: written by bench/cluster -->", f"<!-- {name}: end -->"
        before, found, rest = page.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{PAGE.name} has no place for a table: {begin} … {end}")
        if is_known(name, results):
            page = f"{before}{begin}\n{make(results)}\n{end}{after}"
    return page


def is_known(name: str, results: dict) -> bool:
    return "latency" in results if name == "latency" else "stages" in results or name == "machine"


def one_redis(results: dict) -> str:
    of = tables.several_of(results)
    most = model.most_of_one_redis(of)
    sizes = (results["stages"]["two, one agent"]["redis_bytes_of_a_run"], of.each["redis_bytes_of_a_run"])
    least, largest = model.kept_gib(of, most, *sizes)
    return (
        f"One Redis is at {model.BUSY:.0%} of its core with **{round(most, -2):,.0f} calls a second**, and holds {least:.1f} to {largest:.1f} GiB then."
    )


def one_agent(results: dict) -> str:
    """What calls at once of one agent cost, beside those of many."""
    stages = results["stages"]
    many, one = (stages[name]["redis_calls"] for name in ("two", "two, one agent"))
    sizes = [stages[name]["redis_bytes_of_a_run"] / 1000 for name in ("two", "two, one agent")]
    return (
        f"With eight calls under way on two nodes: {many:.2f} round trips of a call and {sizes[0]:.1f} KB of a run with "
        f"{stages['two']['agents']} agents, {one:.2f} and {sizes[1]:.1f} KB where all of them are one agent."
    )


def everybody(results: dict) -> str:
    """What a budget of all agents costs in a cluster, and how many calls the server takes that has it."""
    stages = results["stages"]
    single, spread = stages["two"], stages["two, Redis Cluster"]
    more_us = spread["redis_us"] - single["redis_us"]
    text = f"Measured with three servers and one budget of all: {spread['redis_calls']:.2f} script calls instead of {single['redis_calls']:.2f}"
    if more_us <= 0:
        return f"{text}; the processor time of it was too small to be seen."
    most = round(model.BUSY * 1e6 / more_us, -2)
    return f"{text}, and {more_us:.0f} µs more of Redis for each call: its server is at {model.BUSY:.0%} with **{most:,.0f} calls a second** of all agents."


def reached(results: dict) -> str:
    """What rates were run, and which of the table were not."""
    one, two, three = (results["stages"][name]["requests_per_second"] for name in ("one", "two", "three"))
    others = " and ClickHouse" if "clickhouse_us" in results["stages"]["two"] else ""
    text = f"With Redis{others}, all of it flat out on this machine: one node reached {one:,.0f} calls a second, two nodes {two:,.0f}, three nodes {three:,.0f}."
    missed = [f"{rate:,}" for rate in tables.RATES if rate > max(two, three)]
    if not missed:
        return text
    *first, last = missed
    rates = f"{', '.join(first)} and {last}" if first else last
    return f"{text} **Not run on several nodes: {rates} calls a second.** What the table says of them is the sum of the model."


def alone(results: dict) -> str:
    us = results["stages"]["alone"]["node_us"]
    return f"A node on its own, without Redis and ClickHouse, takes {us:.0f} µs for a call of the mixed load: {1e6 / us:,.0f} calls a second on one core."


def machine(results: dict) -> str:
    said = results["machine"]
    return f"{said['cores']} cores ({said['model']}), Linux {said['kernel']}, load {said['load']} when it began; Redis {said['redis']}."


def report(results: dict) -> str:
    parts = ["# Benchmark: cluster", machine(results), "Written by `bench/cluster`; what it means is in [docs/scaling.md](../../docs/scaling.md)."]
    if "stages" in results:
        parts += [
            "## Loads", "Everything is for one call, but what is named otherwise.", tables.loads_table(results),
            "## Constants", tables.constants_table(results), tables.kinds_table(results),
            "## Predicted and seen", tables.check_table(results),
            "## What rates need", tables.needs_table(results),
        ]
    if "latency" in results:
        parts += ["## Added latency", tables.latency_table(results)]
    parts += [f"Skipped: {reason}" for reason in results.get("skipped", [])]
    return "\n\n".join(parts) + "\n"


def read() -> dict:
    """What was measured last; nothing where that never happened."""
    file = RESULTS / "cluster.json"
    return json.loads(file.read_text()) if file.exists() else {}


def keep(results: dict) -> None:
    (RESULTS / "cluster.json").write_text(json.dumps(results, indent=1) + "\n")
