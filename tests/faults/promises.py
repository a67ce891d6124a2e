"""What Sprag promises whatever happens: each function gives the ways in which the books break its promise.

Where a fault allows something (a node that is down has no answers), the fault says so; everything else is held against all of them alike.
"""

from collections.abc import Callable, Iterator

from books import Books
from call import Call
from load import HURRIED_REQUESTS, HURRIED_SECONDS, SPENDER_LIMIT_CENTS, WITH_A_BUDGET
from trial import KILLED_BEFORE, doomed_run

# The same prompt right after itself, in a declared run.
LOOP_STEP = 2
# Why an agent may be refused at any time.
USUAL = {
    "spender": {"budget_exceeded"},
    "hurried": {"rate_limited"},
    "stuck": {"loop_detected", "run_killed"},
    "doomed": {"run_killed"},
}
STATE_LOST = "state_unavailable"
# Of a record that takes nothing in, nobody can say what it comes to.
UNREADABLE = "overloaded"
# What limits of rates may be passed by.
TOLERANCE = 1.01


def clients_see_no_errors(books: Books) -> Iterator[str]:
    """Connections break only with nodes that die; who ends in good order answers whoever is connected."""
    for call in books.errors():
        if not books.fault.dies or call.node not in books.fault.down or books.phase(call) != "during":
            yield call.describe()


def refusals_have_their_reason(books: Books) -> Iterator[str]:
    """Budgets fail closed where the state is away, and those that nobody has drawn on where what was spent cannot be read. Nothing else is
    refused that would not be otherwise."""
    fault = books.fault
    for call in books.calls:
        allowed = set(USUAL.get(call.agent, ()))
        is_during = books.phase(call) == "during"
        if call.agent in WITH_A_BUDGET and fault.setup.budgets == "closed" and call.node in fault.alone and is_during:
            allowed.add(STATE_LOST)
        if call.agent == "newcomer" and is_during and fault.hides_history:
            allowed.add(STATE_LOST)
        if call.agent == "newcomer" and is_during and call.node in fault.without_room:
            allowed.add(UNREADABLE)
        # Asked for on purpose, to see what is spent.
        if call.agent in ("payer", "newcomer") and call.ended > books.times.recovered:
            allowed.add("budget_exceeded")
        if call.reason is not None and call.reason not in allowed:
            yield f"{call.describe()}: {call.told.get('error')}"


def calls_are_quick(books: Books) -> Iterator[str]:
    for call in books.calls:
        # Streams that the test itself holds back take as long as it likes.
        if call.seconds > books.fault.slowest_seconds and not call.is_held:
            yield f"{call.describe()} took {call.seconds:.1f} s"


def all_answers_are_on_record(books: Books) -> Iterator[str]:
    for call in books.unrecorded():
        yield f"{call.describe()}, {call.request_id}: not on record ({books.phase(call)})"


def records_are_whole(books: Books) -> Iterator[str]:
    """Only where there is no room for more is it the money alone that is on record."""
    for number, recording in enumerate(books.recordings):
        if recording["lost"]:
            yield f"node {number} has lost {recording['lost']} events with their money"
        if number not in books.fault.without_room and (recording["money_only"] or recording["dropped"]):
            yield f"node {number} has left out details: {recording}"
        if recording.get("shared", {}).get("dropped"):
            yield f"node {number} has given up details that waited for ClickHouse: {recording['shared']}"


def nothing_is_recorded_twice(books: Books) -> Iterator[str]:
    ids = [event["id"] for event in books.all_events()]
    if len(ids) != len(set(ids)):
        yield f"{len(ids) - len(set(ids))} events are on record twice"
    if books.shares_events:
        for number, events in enumerate(books.events):
            if {event["id"] for event in events} != set(ids):
                yield f"node {number} shows other events than node 0"


def no_money_is_forgotten(books: Books) -> Iterator[str]:
    """What the provider charges is in the accounts, exactly; after a node died there may be more, never less."""
    for agent in WITH_A_BUDGET:
        billed = books.billed_cents(agent)
        sides = [("the record", books.recorded_cents(agent))]
        for number, account in enumerate(books.accounts[agent]):
            # What a node held that died stays set aside until it is booked.
            held = account.reserved_cents if books.fault.dies else 0
            sides.append((f"the account at node {number}", account.spent_cents + held))
            if account.reserved_cents != held:
                yield f"{agent}: {account.reserved_cents} cents are still set aside at node {number}"
        for side, cents in sides:
            if cents < billed or (cents > billed and not books.fault.dies):
                yield f"{agent}: the provider charges {billed} cents, {side} has {cents}"


def budgets_hold(books: Books) -> Iterator[str]:
    """Where they are open without the shared state, each node spends by itself what it believes is left."""
    billed = books.billed_cents("spender")
    limit = SPENDER_LIMIT_CENTS * (books.nodes if books.fault.setup.budgets == "open" else 1)
    if billed > limit:
        yield f"spender: {billed} cents charged, {limit} allowed"
    if billed < SPENDER_LIMIT_CENTS and not books.fault.dies:
        yield f"spender: only {billed} cents of {SPENDER_LIMIT_CENTS} could be spent"


def kills_hold(books: Books) -> Iterator[str]:
    """At once where they were made, and everywhere when the fault is over. What was killed before stays so."""
    begun = min(call.ended for call in books.calls if call.run == KILLED_BEFORE and call.reason == "run_killed")
    runs = {doomed_run(node): node for node in range(books.nodes)}
    for call in books.calls:
        if call.agent != "doomed" or not call.is_answered:
            continue
        if call.run == KILLED_BEFORE and call.began > begun and books.phase(call) != "before":
            yield f"{call.describe()}: a killed run went on"
        node = runs.get(call.run)
        killed = books.times.killed.get(node)
        if killed is not None and call.began > killed and (call.node == node or books.phase(call) == "after"):
            yield f"{call.describe()}: a run that was killed at node {node} during the fault went on"


def kills_are_taken(books: Books) -> Iterator[str]:
    """A node that cannot keep a kill says so; every other one takes it, with the shared state or without."""
    for node, why in books.times.kills_refused.items():
        if node not in books.fault.without_room:
            yield f"node {node} did not take a kill: {why}"


def loops_are_caught(books: Books) -> Iterator[str]:
    """At the same step on many nodes as on one. Who sees only a part of a run catches it the second time that they see the same."""
    undisturbed = {task[0].task for task in books.undisturbed("stuck")}
    if not undisturbed:
        yield "no loop was seen without the fault"
    for task in books.tasks("stuck"):
        caught = next((at for at, call in enumerate(task, 1) if call.reason == "loop_detected"), None)
        # Nodes lose the others and find them again, each at a moment of its own: what they saw in between falls apart twice.
        views = 1 if task[0].task in undisturbed else books.views + bool(books.fault.alone)
        bound = (LOOP_STEP - 1) * views + 1
        # The load ended, or a node took the call with it.
        is_cut_off = len(task) < bound or any(call.error for call in task)
        if caught is None and not is_cut_off or caught is not None and caught > bound:
            yield f"{task[0].task}: caught at call {caught}, expected at {bound} at the latest ({[call.reason for call in task]})"


def runs_hold_together(books: Books) -> Iterator[str]:
    """Steps are counted over all nodes, and a conversation is one run wherever its turns go."""
    for task in books.undisturbed("worker"):
        steps = [call.step for call in task]
        if steps != list(range(1, len(steps) + 1)):
            yield f"{task[0].task}: steps {steps}"
    for task in books.undisturbed("talker"):
        runs = {call.run_id for call in task}
        if len(runs) != 1:
            yield f"{task[0].task}: {len(task)} turns are {len(runs)} runs"


def rates_hold(books: Books) -> Iterator[str]:
    """Calls that began and ended within the window were judged within it. Each view has a window of its own."""
    for phase in ("before", "during", "after"):
        answered = [call for call in books.of_phase(phase) if call.agent == "hurried" and call.is_answered]
        views = books.views if phase == "during" else 1
        most = most_within(answered, HURRIED_SECONDS)
        if most > HURRIED_REQUESTS * views * TOLERANCE:
            yield f"hurried: {most} calls passed within {HURRIED_SECONDS} s {phase} the fault, {HURRIED_REQUESTS * views} allowed"


def health_is_told(books: Books) -> Iterator[str]:
    """`/readyz` says what is wrong where it is. A fault that nobody notices would prove nothing."""
    if books.times.unwell != books.fault.tells:
        yield f"/readyz told of the fault at nodes {sorted(books.times.unwell)}, expected at {sorted(books.fault.tells)}"


def streams_go_on(books: Books) -> Iterator[str]:
    held = [call for call in books.calls if call.is_held]
    if len(held) != 2 * books.nodes:
        yield f"{len(held)} streams were under way, expected {2 * books.nodes}"
    for call in held:
        if not call.is_answered and not (books.fault.dies and call.node in books.fault.down):
            yield f"{call.describe()}: a stream under way did not reach its end"


ALL: list[Callable[[Books], Iterator[str]]] = [
    clients_see_no_errors,
    refusals_have_their_reason,
    calls_are_quick,
    all_answers_are_on_record,
    records_are_whole,
    nothing_is_recorded_twice,
    no_money_is_forgotten,
    budgets_hold,
    kills_hold,
    kills_are_taken,
    loops_are_caught,
    runs_hold_together,
    rates_hold,
    health_is_told,
    streams_go_on,
]


def broken(books: Books) -> list[str]:
    """Every broken promise, with the first few ways in which it is."""
    found = []
    for promise in ALL:
        ways = list(promise(books))
        more = [f"… and {len(ways) - 3} more"] if len(ways) > 3 else []
        found += [f"{promise.__name__}: {way}" for way in ways[:3] + more]
    return found


def most_within(calls: list[Call], seconds: float) -> int:
    calls = sorted(calls, key=lambda call: call.began)
    return max((sum(first.began <= call.began and call.ended <= first.began + seconds for call in calls) for first in calls), default=0)
