"""What a fault is, and what may be expected of it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from cluster import Cluster, Setup

NONE = frozenset()


def nothing(_: Cluster) -> None:
    """Of a fault that is over by itself."""


@dataclass(frozen=True)
class Fault:
    """`cause` begins it and `end` ends it, `seconds` later. The rest is what is promised beside what always is (see `promises`)."""

    name: str
    title: str
    setup: Setup
    cause: Callable[[Cluster], None]
    end: Callable[[Cluster], None] = nothing
    seconds: float = 2.0
    # Whether it may be tried for minutes.
    may_last: bool = False
    # Whether it goes on until it is ended.
    lasts: bool = True
    # The longest time from the end of the fault until everything is as before.
    recovery_seconds: float = 10.0
    # Nodes that have no shared state meanwhile: budgets are closed there, loops and rates go by what the node itself sees.
    alone: frozenset[int] = NONE
    # Nodes that are down meanwhile: their clients see broken connections.
    down: frozenset[int] = NONE
    # They end in good order: whoever is connected is answered.
    in_good_order: bool = False
    # Nodes that have no room for the record: of calls it keeps what they cost, of acts nothing.
    without_room: frozenset[int] = NONE
    # Nodes whose record waits for a database that is away.
    behind: frozenset[int] = NONE
    # Whether what all nodes have spent cannot be read: a budget that nobody has drawn on stays closed.
    hides_history: bool = False
    # Whether what is shared may be forgotten: counters of rates begin anew.
    forgets: bool = False
    # The longest that a call may take, with a fault or without.
    slowest_seconds: float = 5.0
    # Why it cannot be tried here; None where it can.
    cannot: Callable[[], str | None] = field(default=lambda: None)

    @property
    def tells(self) -> frozenset[int]:
        """Nodes whose `/readyz` says that something is wrong."""
        return self.alone | self.without_room | self.behind | (self.down if self.dies else NONE)

    @property
    def dies(self) -> bool:
        """Whether calls under way are lost with a node."""
        return bool(self.down) and not self.in_good_order
