"""Runs that are killed at one node while their streams are under way at the others: the streams end there."""

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


def check(shared: bool) -> Finding:
    finding = Finding()
    took: list[float] = []
    with Cluster(Setup(redis=shared, policy=POLICY)) as cluster:
        for number in range(ROUNDS):
            cut = seconds_until_cut(cluster, f"run-{number}")
            took += [seconds for seconds in cut if seconds is not None]
            if None in cut:
                # What is late once is late: no need to wait for the others.
                finding.broken.append(f"of {len(cut)} streams of a run that was killed, {cut.count(None)} went on")
                break
    measured = f"median {milliseconds(statistics.median(took))}, worst {milliseconds(max(took))}" if took else "not within that"
    is_kept = not finding.broken and max(took) <= PROMISED_SECONDS
    finding.add(f"{number + 1} runs killed at one node, {STREAMS} streams at each other", "1 s", measured, is_kept)
    return finding


def seconds_until_cut(cluster: Cluster, run: str) -> list[float | None]:
    """Of each stream, from the order to its end at the client. None if it goes on."""
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
        wait_until(lambda: all(stream.ended for stream in streams), "streams to be cut", 2 * PROMISED_SECONDS)
    except Overdue:
        cluster.provider.release()
    for thread in threads:
        thread.join()
    assert all(stream.status == 200 and stream.error is None for stream in streams), [stream.describe() for stream in streams]
    # Nobody reads on from the provider either, where every token costs.
    wait_until(lambda: cluster.provider.ask("GET", "__health")["open_responses"] == 0, "the provider to be left")
    return [stream.ended - ordered if stream.reason == "run_killed" else None for stream in streams]


def listen(cluster: Cluster, stream: Call) -> None:
    make(stream, cluster.nodes[stream.node].host, [said(words())], stream=True, stall_seconds=PROMISED_SECONDS)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
