"""Which scripts the calls of one run made Redis run, as Redis tells it while it happens (MONITOR)."""

import re
import socket
import threading
from collections import Counter

from .site import Site

# A script that a client calls; what scripts do themselves is marked `lua`.
SCRIPT = re.compile(rb'^\+[\d.]+ \[\d+ (?!lua)[^\]]*\] "(?:evalsha|EVALSHA)" "([0-9a-f]{40})"')
PATIENCE_SECONDS = 10


def scripts_of_one_run(site: Site) -> list[int]:
    """How often each script was called, the most frequent first: one for each beginning of a call, one for each end, and the few with
    which nodes look for news."""
    counts: Counter[bytes] = Counter()
    with socket.create_connection(("127.0.0.1", site.redis[0].port), timeout=PATIENCE_SECONDS) as watching:
        watching.sendall(b"MONITOR\r\n")
        told = watching.makefile("rb")
        assert told.readline() == b"+OK\r\n", "Redis does not tell what it does"
        reader = threading.Thread(target=count, args=(told, counts))
        reader.start()
        site.load("watched", 1, connections=1, long_percent=0)
        site.settle()
        # Redis tells in order, so that all before this line was told, too.
        site.redis[0].command("ECHO", "that was all")
        reader.join(PATIENCE_SECONDS)
    assert counts, "Redis told of no script"
    return sorted(counts.values(), reverse=True)


def count(told, counts: Counter) -> None:
    for line in told:
        if b'"that was all"' in line:
            return
        if script := SCRIPT.match(line):
            counts[script[1]] += 1
