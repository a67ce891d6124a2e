"""Runs that are killed at one node while their streams are under way at the others: the streams end there."""

import math
import statistics
import threading
import time

from call import Call, make
from cluster import Cluster, Setup
from finding import Finding
from load import said, words
from together_policy import POLICY
from waiting import Overdue, wait_until

ROUNDS = 20
# Of a run, at each node but the one where it is killed.
STREAMS = 2
PROMISED_SECONDS = 1.0
# How long the provider keeps a stream open that nobody cuts.
STALL_SECONDS = 10.0


def check(shared: bool) -> Finding:
    finding = Finding()
    with Cluster(Setup(redis=shared, policy=POLICY)) as cluster:
        took: list[float | None] = []
        for number in range(1, ROUNDS + 1):
            took += seconds_until_cut(cluster, f"run-{number}")
            if None in took:
                # What is late once is late: no need to wait for the others.
                break
    finding.add(f"{number} runs killed, with {len(took)} streams elsewhere", "cut within 1 s", told(took), None not in took)
    return finding


def told(took: list[float | None]) -> str:
    cut = [1000 * seconds for seconds in took if seconds is not None]
    if len(cut) < len(took):
        return f"{len(took) - len(cut)} of {len(took)} went on for longer"
    return f"median {statistics.median(cut):.0f} ms, worst {max(cut):.0f} ms"


def seconds_until_cut(cluster: Cluster, run: str) -> list[float | None]:
    """Of each stream, from the order to its end at the client. None if it goes on for longer."""
    first, *others = cluster.nodes
    # The node where the run is killed knows that there is such a run.
    make(Call(f"first-of-{run}-0", "killed", first.number, 1, run), first.host, [said(words())], stream=False)
    streams = [Call(f"killed-{run}-{number}", "killed", node.number, 3, run) for node in others for number in range(STREAMS)]
    threads = [threading.Thread(target=listen, args=(cluster, stream)) for stream in streams]
    for thread in threads:
        thread.start()
    # A client that has the head of an answer waits for the rest of it.
    wait_until(lambda: all(stream.status for stream in streams), "streams to be under way")
    ordered = time.monotonic()
    first.kill_run("killed", run)
    try:
        wait_until(lambda: all(stream.ended for stream in streams), "streams to be cut", PROMISED_SECONDS)
    except Overdue:
        cluster.provider.release()
    for thread in threads:
        thread.join()
    assert all(stream.status == 200 and stream.error is None for stream in streams), [stream.describe() for stream in streams]
    # Nobody reads on from the provider either, where every token costs.
    wait_until(lambda: cluster.provider.ask("GET", "__health")["open_responses"] == 0, "the provider to be left")
    took = [stream.ended - ordered if stream.reason == "run_killed" else math.inf for stream in streams]
    return [seconds if seconds <= PROMISED_SECONDS else None for seconds in took]


def listen(cluster: Cluster, stream: Call) -> None:
    make(stream, cluster.nodes[stream.node].host, [said(words())], stream=True, stall_seconds=STALL_SECONDS)
