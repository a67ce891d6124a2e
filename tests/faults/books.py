"""The two sides of the books after a fault: what clients and the provider saw, and what Sprag has on record."""

from dataclasses import dataclass, field

from call import Call
from fault import Fault
from provider import Bill

NANO_USD_OF_A_CENT = 10_000_000


@dataclass
class Times:
    """Moments of a trial, on the clock of the calls."""

    caused: float = 0.0
    ended: float = 0.0
    recovered: float = 0.0
    # Seconds after the end of the fault.
    answers_after: float = 0.0
    ready_after: float = 0.0
    kills_after: float = 0.0
    record_after: float = 0.0
    # When the run that is to be killed at each node was.
    killed: dict[int, float] = field(default_factory=dict)
    # Nodes whose `/readyz` told of the fault at its end.
    unwell: set[int] = field(default_factory=set)
    # What nodes said that did not take it.
    kills_refused: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Account:
    spent_cents: int
    reserved_cents: int


@dataclass
class Books:
    """`events` and `recordings` are those that each node gives. `accounts` is what those of an agent said at the end, at each node."""

    fault: Fault
    times: Times
    nodes: int
    calls: list[Call]
    bills: list[Bill]
    events: list[list[dict]]
    shares_events: bool
    accounts: dict[str, list[Account]]
    recordings: list[dict]

    # ---- phases ----

    def phase(self, call: Call) -> str:
        """A call belongs to the fault as soon as a moment of it does."""
        if call.ended < self.times.caused:
            return "before"
        return "after" if call.began > self.times.recovered else "during"

    def of_phase(self, phase: str) -> list[Call]:
        return [call for call in self.calls if self.phase(call) == phase]

    def tasks(self, agent: str) -> list[list[Call]]:
        """The calls of each task in their order, without those that nobody took."""
        tasks: dict[str, list[Call]] = {}
        for call in self.calls:
            if call.agent == agent and call.task is not None and not call.is_turned_away:
                tasks.setdefault(call.task, []).append(call)
        return list(tasks.values())

    def undisturbed(self, agent: str) -> list[list[Call]]:
        """Tasks that no moment of the fault fell into."""
        return [task for task in self.tasks(agent) if {self.phase(call) for call in task} in ({"before"}, {"after"})]

    @property
    def views(self) -> int:
        """How many there are of what happens meanwhile: that of all nodes together, and of each that is on its own."""
        is_split = self.fault.alone or self.fault.down or self.fault.forgets
        return self.nodes + 1 if is_split else 1

    # ---- sums ----

    def billed_cents(self, agent: str) -> int:
        return sum(bill.cents for bill in self.bills if bill.agent == agent)

    def recorded_cents(self, agent: str) -> int:
        nano_usd = sum(event.get("cost_nano_usd") or 0 for event in self.all_events() if event.get("agent") == agent)
        return nano_usd // NANO_USD_OF_A_CENT

    def all_events(self) -> list[dict]:
        """Of a history that nodes share, one copy."""
        return self.events[0] if self.shares_events else [event for events in self.events for event in events]

    def unrecorded(self) -> list[Call]:
        """Calls whose end the client has seen and of which there is no event."""
        known = {event["id"] for event in self.all_events()}
        return [call for call in self.calls if call.request_id and call.error is None and call.request_id not in known]

    def errors(self) -> list[Call]:
        return [call for call in self.calls if call.error is not None]
