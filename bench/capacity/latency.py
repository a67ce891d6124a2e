"""What a node adds to a call, with a Redis on loopback and without one, in turn, so that a busy moment meets both."""

import statistics
from dataclasses import dataclass

from .site import Plan, Site

TARGETS = ("direct", "without Redis", "with Redis")


@dataclass(frozen=True)
class Form:
    """How calls come. A rate of 0 is as fast as answers come; eight at once leave no core anything to spare then, and what is promised
    of a node is not of a queue."""

    name: str
    connections: int
    rate: int
    runs: int
    is_promised: bool = True


FORMS = (
    Form("1 connection", 1, 0, 50),
    Form("8 connections, 400 calls/s", 8, 400, 40),
    Form("8 connections, flat out", 8, 0, 100, is_promised=False),
)


def measure(rounds: int, cores: int) -> dict:
    """Medians of the rounds; `added` is what a target adds to a direct connection in the same round."""
    # The provider, the load and Redis on one core, the node that is asked on the other, as in bench/compare.
    pins = {"node_core": 1, "other_core": 0} if cores == 2 else {}
    with Site(Plan(**pins)) as shared, Site(Plan(redis=0, **pins)) as alone:
        sites = {"direct": (shared, shared.provider.host), "without Redis": (alone, alone.nodes[0].host)}
        sites["with Redis"] = (shared, shared.nodes[0].host)
        for target in TARGETS:
            load(sites[target], "warm", FORMS[2])
        return {form.name: of_form(sites, form, rounds) for form in FORMS}


def of_form(sites: dict, form: Form, rounds: int) -> dict:
    seen: dict[str, list[dict]] = {target: [] for target in TARGETS}
    for number in range(rounds):
        # Nobody is always first.
        for place in range(len(TARGETS)):
            target = TARGETS[(number + place) % len(TARGETS)]
            seen[target].append(quantiles(load(sites[target], f"{form.connections}-{form.rate}-{number}", form)))
    result: dict = {"is_promised": form.is_promised}
    for target in TARGETS:
        of_target = {name: statistics.median(one[name] for one in seen[target]) for name in seen[target][0]}
        if target != "direct":
            for name in ("p50_ms", "p99_ms"):
                added = [one[name] - direct[name] for one, direct in zip(seen[target], seen["direct"])]
                of_target[f"added_{name}"] = statistics.median(added)
        result[target] = of_target
    return result


def load(site_and_host: tuple[Site, str], name: str, form: Form) -> dict:
    site, host = site_and_host
    seen = site.load(name, form.runs, [host], connections=form.connections, rate=form.rate, long_percent=0)
    site.settle()
    return seen


def quantiles(seen: dict) -> dict[str, float]:
    latencies = sorted(seen["latencies_us"])
    at = {name: latencies[int(len(latencies) * part)] / 1000 for name, part in (("p50_ms", 0.5), ("p99_ms", 0.99))}
    return at | {"requests_per_second": seen["requests"] / seen["seconds"]}
