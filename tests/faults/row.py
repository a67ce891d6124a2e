"""What a fault came to, in words: a row of the table in `docs/failure-modes.md`."""

from collections import Counter
from dataclasses import dataclass

from books import Books
from load import WITH_A_BUDGET
from promises import STATE_LOST, UNREADABLE


@dataclass(frozen=True)
class Row:
    title: str
    lasted: str
    clients: str
    lost: str
    recovered: str

    def as_line(self) -> str:
        return f"| {self.title} | {self.lasted} | {self.clients} | {self.lost} | {self.recovered} |"


def row(books: Books) -> Row:
    times = books.times
    return Row(
        title=books.fault.title,
        lasted=f"{times.ended - times.caused:.1f} s" if books.fault.lasts else "a moment",
        clients=clients(books),
        lost=lost(books),
        recovered=recovered(books),
    )


def clients(books: Books) -> str:
    calls = books.of_phase("during")
    taken = [call for call in calls if not call.is_turned_away]
    usual = [call for call in taken if call.reason not in (None, STATE_LOST, UNREADABLE)]
    said = [f"{sum(call.is_answered for call in taken)} answers", f"{len(usual)} refused as always"]
    closed = Counter(call.agent == "newcomer" and not books.fault.alone for call in taken if call.reason in (STATE_LOST, UNREADABLE))
    if closed[False]:
        said.append(f"{closed[False]} refused because budgets are closed (503)")
    if closed[True]:
        said.append(f"{closed[True]} refused (503) of an agent whose budget nobody had drawn on before")
    broken = sum(call.error is not None for call in taken)
    said.append(f"{counted(broken, 'connection')} broke" if broken else "no errors")
    if turned := len(calls) - len(taken):
        said.append(f"{turned} found nobody there and went to another node" if books.nodes > 1 else f"{turned} found nobody there")
    slowest = max((call.seconds for call in taken if not call.is_held), default=0.0)
    said.append(f"slowest {milliseconds(slowest)}")
    said.append(f"loops caught at call {caught(books)}")
    if refused := len(books.times.kills_refused):
        said.append(f"{counted(refused, 'kill')} refused that could not be kept")
    return "; ".join(said)


def caught(books: Books) -> str:
    """At which call of a run, during the fault."""
    undisturbed = {task[0].task for task in books.undisturbed("stuck")}
    disturbed = [task for task in books.tasks("stuck") if task[0].task not in undisturbed]
    at = [place for task in disturbed for place, call in enumerate(task, 1) if call.reason == "loop_detected"]
    if not at:
        return "—"
    return str(min(at)) if min(at) == max(at) else f"{min(at)} to {max(at)}"


def lost(books: Books) -> str:
    events, said = len(books.unrecorded()), []
    if events:
        said.append(counted(events, "event"))
    more = {agent: difference(books, agent) for agent in WITH_A_BUDGET}
    less = sum(-cents for cents in more.values() if cents < 0)
    if less:
        said.append(f"${less / 100:.2f}")
    details = sum(recording["money_only"] + recording["dropped"] for recording in books.recordings)
    if details:
        said.append(f"details of {counted(details, 'event')}, not what they cost")
    surplus = sum(cents for cents in more.values() if cents > 0)
    if surplus:
        said.append(f"${surplus / 100:.2f} too much is charged")
    whole = f"of {len(books.calls)} calls, ${sum(bill.cents for bill in books.bills) / 100:.2f}"
    return f"{', '.join(said) or 'nothing'} ({whole})"


def difference(books: Books, agent: str) -> int:
    """What the accounts have beyond what the provider charges, in cents; less than nothing where something is forgotten."""
    held = [account.spent_cents + account.reserved_cents for account in books.accounts[agent]]
    return min(held) - books.billed_cents(agent)


def recovered(books: Books) -> str:
    times = books.times
    parts = [("answers", times.answers_after), ("`/readyz`", times.ready_after), ("kills", times.kills_after), ("record", times.record_after)]
    said = [f"{what} {milliseconds(seconds)}" for what, seconds in parts]
    return "; ".join(said)


def counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
