"""Causes every fault that there is a way to cause, under load, and holds the books against each other afterwards.

    python tests/faults/faults.py                             all of them, two at a time: about a minute
    python tests/faults/faults.py --only redis-killed,disk-full
    python tests/faults/faults.py --jobs 1 --minutes 3 --state-timeout-ms 250 --write-docs      what docs/failure-modes.md shows

Needs the built programs (SPRAG_BIN, SPRAG_MOCK_BIN, or those under `target`) and redis-server. What cannot be tried here is SKIPPED, with the reason.
"""

import argparse
import dataclasses
import signal
import socket
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat

import doctored
import page
import promises
from catalogue import FAULTS
from cluster import Cluster, Setup
from row import Row, row
from trial import Trial


# Of one answer, and of a trial beside its fault.
PATIENCE_SECONDS = 30
LONGEST_SECONDS = 240


@dataclass(frozen=True)
class Outcome:
    """What became of one fault. `broken` are promises."""

    name: str
    seconds: float = 0.0
    row: Row | None = None
    skipped: str | None = None
    broken: list[str] = field(default_factory=list)

    def tell(self) -> None:
        word = f"SKIPPED: {self.skipped}" if self.skipped else "FAILED" if self.broken else "held"
        print(f"{self.name:18} {self.seconds:5.1f} s  {word}", flush=True)
        if self.row is not None:
            print(f"    clients: {self.row.clients}\n    lost: {self.row.lost}\n    back: {self.row.recovered}", flush=True)
        self.tell_broken()

    def tell_broken(self) -> None:
        for promise in self.broken:
            print(f"    BROKEN {self.name}: {promise}", flush=True)


def attempt(name: str, minutes: float | None, state_timeout_ms: int) -> Outcome:
    """In a process of its own: what is measured must not wait for another fault's load."""
    fault = next(fault for fault in FAULTS if fault.name == name)
    if reason := fault.cannot():
        return Outcome(name, skipped=reason)
    if minutes is not None and fault.may_last:
        # What has waited for longer takes longer to arrive.
        fault = dataclasses.replace(fault, seconds=60 * minutes, recovery_seconds=fault.recovery_seconds + 30 * minutes)
    fault = dataclasses.replace(fault, setup=dataclasses.replace(fault.setup, state_timeout_ms=state_timeout_ms))
    began = time.monotonic()
    end_after(fault.seconds + LONGEST_SECONDS)
    cluster = Cluster(fault.setup)
    try:
        with cluster:
            books = Trial(fault, cluster).hold()
    except Exception:
        where = f"{cluster.what_nodes_say()}\nall that nodes and servers said is in {cluster.folder}"
        return Outcome(name, time.monotonic() - began, broken=[f"{traceback.format_exc()}{where}"])
    broken = promises.broken(books) or doctored.unnoticed(books)
    return Outcome(name, time.monotonic() - began, row(books), broken=broken)


def end_after(seconds: float) -> None:
    """Whatever hangs, the servers are ended and the suite goes on."""

    def overdue(*_) -> None:
        raise TimeoutError(f"not done after {seconds:.0f} s")

    socket.setdefaulttimeout(PATIENCE_SECONDS)
    signal.signal(signal.SIGALRM, overdue)
    signal.alarm(round(seconds))


def main() -> int:
    known = [fault.name for fault in FAULTS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME,…", default=",".join(known), help=f"which faults: {', '.join(known)}")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--minutes", type=float, help="how long faults last that may be long")
    parser.add_argument("--state-timeout-ms", type=int, default=Setup.state_timeout_ms, help="how long nodes wait for Redis")
    parser.add_argument("--write-docs", action="store_true", help="write the table of docs/failure-modes.md")
    asked = parser.parse_args()
    names = asked.only.split(",")
    if unknown := set(names) - set(known):
        parser.error(f"there is no fault {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    outcomes = []
    with ProcessPoolExecutor(asked.jobs) as workers:
        for outcome in workers.map(attempt, names, repeat(asked.minutes), repeat(asked.state_timeout_ms)):
            outcome.tell()
            outcomes.append(outcome)
    if asked.write_docs:
        rows = {outcome.name: outcome.row for outcome in outcomes if outcome.row is not None and not outcome.broken}
        page.write(rows, {outcome.name: outcome.skipped for outcome in outcomes if outcome.skipped})
    wrong = page.problems()
    print("\n".join(wrong), end="\n" if wrong else "")
    failed = sum(bool(outcome.broken) for outcome in outcomes)
    print(f"{len(outcomes)} faults, {failed} broke a promise, {sum(bool(outcome.skipped) for outcome in outcomes)} skipped")
    # Once more, because a long record is read from its end.
    for outcome in outcomes:
        outcome.tell_broken()
    return 1 if failed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
