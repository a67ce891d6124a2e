"""Agents that ask more often than they may, at all nodes at once: as many calls pass as one node would let pass."""

import itertools
import threading

from call import Call, make
from cluster import Cluster, Setup
from finding import Finding
from load import said, words
from node import Node
from together_policy import BUCKET_BURST, BUCKET_RPS, POLICY, WINDOW_REQUESTS, WINDOW_SECONDS

# Room for a window to begin four times, at 0, 2, 4 and 6 s. It ends in steps of a thirty-first, so that it may be a little longer.
SECONDS = 7.5
WINDOWS = 4
THREADS_OF_A_NODE = 2
TOLERANCE = 0.01


def check(shared: bool) -> Finding:
    with Cluster(Setup(redis=shared, policy=POLICY)) as cluster:
        calls = drive(cluster.nodes)
    finding = Finding()
    of_window(finding, [call for call in calls if call.agent == "window"])
    of_bucket(finding, [call for call in calls if call.agent == "bucket"])
    return finding


def drive(nodes: list[Node]) -> list[Call]:
    """Every thread asks again as soon as it is answered."""
    calls: list[Call] = []
    numbers = itertools.count()
    askers = list(itertools.product(("window", "bucket"), nodes)) * THREADS_OF_A_NODE
    start, end = threading.Barrier(len(askers)), threading.Event()

    def ask(agent: str, node: Node) -> None:
        start.wait()
        while not end.is_set():
            call = Call(f"{agent}-{next(numbers)}", agent, node.number, 1)
            calls.append(make(call, node.host, [said(words())], stream=False))

    threads = [threading.Thread(target=ask, args=asker) for asker in askers]
    for thread in threads:
        thread.start()
    end.wait(SECONDS)
    end.set()
    for thread in threads:
        thread.join()
    wrong = [call.describe() for call in calls if call.error or call.reason not in (None, "rate_limited")]
    assert not wrong, wrong[:3]
    return calls


def of_window(finding: Finding, calls: list[Call]) -> None:
    passed = [call for call in calls if call.is_answered]
    # A call is counted at some moment while it is under way. Those are surely in one span that lie in it as a whole.
    most = max(sum(first.began <= call.began and call.ended <= first.began + WINDOW_SECONDS for call in passed) for first in passed)
    expected = WINDOWS * WINDOW_REQUESTS
    finding.add(
        f"{WINDOW_REQUESTS} requests in any {WINDOW_SECONDS} s, for {SECONDS} s",
        f"{WINDOW_REQUESTS} and {expected} in all, ± 1 %",
        f"{most} and {len(passed)} in all, of {len(calls)} calls",
        most <= (1 + TOLERANCE) * WINDOW_REQUESTS and abs(len(passed) - expected) <= TOLERANCE * expected,
    )


def of_bucket(finding: Finding, calls: list[Call]) -> None:
    passed = sum(call.is_answered for call in calls)
    # From the first call that is counted to the last one that asks, each of which happens at some moment while it is under way.
    longest = max(call.ended for call in calls) - min(call.began for call in calls)
    shortest = max(call.began for call in calls) - min(call.ended for call in calls)
    most, least = (BUCKET_BURST + BUCKET_RPS * seconds for seconds in (longest, shortest))
    finding.add(
        f"{BUCKET_RPS} a second after a burst of {BUCKET_BURST}, for {SECONDS} s",
        f"{least:.0f} to {most:.0f}, ± 1 %",
        f"{passed}, of {len(calls)} calls",
        (1 - TOLERANCE) * least - 1 <= passed <= (1 + TOLERANCE) * most,
    )
