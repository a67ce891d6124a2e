"""One fault under load, from the first call to the last look into the books."""

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from books import Account, Books, Times
from call import Call, make
from cluster import Cluster
from fault import Fault
from load import STEPS_OF_A_RUN, TURNS_OF_A_CONVERSATION, WITH_A_BUDGET, Load, said, words
from node import Node
from waiting import wait_until

# Of a phase that says something: every agent has called so often.
CALLS_OF_A_PHASE = 5
LOOPS_OF_A_PHASE = 2
KILLED_BEFORE = "doomed-before"
STEPS_OF = {"worker": STEPS_OF_A_RUN, "talker": TURNS_OF_A_CONVERSATION}
# Of the end of a fault, looked for on record.
LAST_CALLS = timedelta(seconds=2)
# More than any limit here, so that the answer says what is spent.
MORE_THAN_ALL_CENTS = 10_000_000


class Trial:
    """`hold` does it all and gives the books."""

    def __init__(self, fault: Fault, cluster: Cluster):
        self.fault = fault
        self.cluster = cluster
        self.load = Load(cluster.nodes, fault.seconds)
        self.times = Times()

    def hold(self) -> Books:
        self.doom()
        self.load.start()
        self.open_streams()
        self.wait_for_a_phase("before the fault", 0.0)
        self.disturb()
        self.recover()
        self.wait_for_a_phase("after the fault", self.times.recovered)
        self.load.stop()
        return self.close_the_books()

    # ---- before ----

    def doom(self) -> None:
        """Runs that are known everywhere; one of them is killed, and every node knows that."""
        runs = [KILLED_BEFORE] + [doomed_run(node.number) for node in self.cluster.nodes]
        for run in runs:
            for node in self.cluster.nodes:
                first = self.probe("doomed", node.number, run=run)
                assert first.is_answered, first.describe()
        self.cluster.nodes[0].kill_run("doomed", KILLED_BEFORE)
        wait_until(lambda: self.is_refused_everywhere(KILLED_BEFORE), "a kill to hold on all nodes")
        self.load.doomed_runs.extend(runs)
        for agent in ("payer", "spender"):
            first = self.probe(agent, 0)
            assert first.is_answered, first.describe()

    def open_streams(self) -> None:
        for node in self.cluster.nodes:
            self.load.begin(self.load.listener, "listener", node.number)
            self.load.begin(self.load.listener, "payer", node.number)
        self.cluster.provider.wait_for_streams(2 * len(self.cluster.nodes))

    def wait_for_a_phase(self, what: str, since: float) -> None:
        wait_until(lambda: self.load.problems or is_a_phase(list(self.load.calls), since), f"enough calls {what}")
        assert not self.load.problems, self.load.problems

    # ---- the fault ----

    def disturb(self) -> None:
        """A newcomer comes with it. Half-way through, a run is killed at each node that lives, and streams come to their end."""
        self.times.caused = time.monotonic()
        self.fault.cause(self.cluster)
        self.load.begin(self.load.keep_on, self.load.newcomer)
        self.wait_out(self.times.caused + self.fault.seconds / 2)
        for node in self.cluster.nodes:
            if node.process.poll() is None:
                self.kill_at(node)
        self.cluster.provider.release()
        self.wait_out(self.times.caused + self.fault.seconds)
        self.times.unwell = {node.number for node in self.cluster.nodes if not node.is_well()}
        self.fault.end(self.cluster)
        self.times.ended = time.monotonic()

    def kill_at(self, node: Node) -> None:
        try:
            node.kill_run("doomed", doomed_run(node.number))
            self.times.killed[node.number] = time.monotonic()
        except OSError as refusal:
            self.times.kills_refused[node.number] = str(refusal)

    def wait_out(self, until: float) -> None:
        """A fault lasts as long as it is said to. What the provider saw is read now and then, because it forgets."""
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 5.0))
            self.cluster.provider.bills()

    # ---- after ----

    def recover(self) -> None:
        patience, times = self.fault.recovery_seconds, self.times
        waiting = {
            "answers_after": self.is_answered_everywhere,
            "ready_after": lambda: all(node.is_well() for node in self.cluster.nodes),
            "record_after": self.is_recorded(),
            "kills_after": lambda: all(self.is_refused_everywhere(doomed_run(number)) for number in times.killed),
        }

        def look() -> bool:
            for moment, holds in list(waiting.items()):
                if holds():
                    setattr(times, moment, time.monotonic() - times.ended)
                    del waiting[moment]
            return not waiting

        try:
            wait_until(look, "recovery", patience)
        except AssertionError as overdue:
            raise AssertionError(f"not recovered {patience} s after the fault: {', '.join(waiting)} is open") from overdue
        times.recovered = time.monotonic()

    def is_answered_everywhere(self) -> bool:
        """Only agents with a budget show that what is shared is back: others are answered without it."""
        since, agents = self.times.ended, ("payer", "newcomer")
        calls = [call for call in list(self.load.calls) if call.agent in agents and call.began > since and call.is_answered]
        return len({(call.agent, call.node) for call in calls}) == len(agents) * len(self.cluster.nodes)

    def is_recorded(self) -> Callable[[], bool]:
        """Whether the last calls of the fault can be read: what waited for the record has arrived there."""
        until = datetime.now(UTC)
        window = f"since={stamp(until - LAST_CALLS)}&until={stamp(until)}"
        span = self.times.ended - LAST_CALLS.total_seconds() / 2
        calls = [call for call in list(self.load.calls) if span < call.began and call.ended < self.times.ended and call.request_id]
        missing = {call.request_id for call in calls if call.error is None}

        def look() -> bool:
            try:
                for node in self.cluster.nodes:
                    missing.difference_update(event["id"] for event in node.ask(f"events?limit=500&{window}")["items"])
            except OSError:  # The record cannot be read yet.
                return False
            return not missing

        return look

    def is_refused_everywhere(self, run: str) -> bool:
        return all(self.probe("doomed", node.number, run=run).reason == "run_killed" for node in self.cluster.nodes)

    def close_the_books(self) -> Books:
        # What a node did by itself until the last moment of the fault is in no account before it is told.
        wait_until(self.is_quiet, "nodes to have told what they did alone", self.fault.recovery_seconds)
        self.use_up()
        accounts = {agent: [self.account(agent, node.number) for node in self.cluster.nodes] for agent in sorted(WITH_A_BUDGET)}
        wait_until(self.is_quiet, "all calls to be on record and told", self.fault.recovery_seconds)
        return Books(
            fault=self.fault,
            times=self.times,
            nodes=len(self.cluster.nodes),
            calls=list(self.load.calls),
            bills=self.cluster.provider.bills(),
            events=[node.events() for node in self.cluster.nodes],
            shares_events=self.cluster.setup.clickhouse,
            accounts=accounts,
            recordings=[node.status()["recording"] for node in self.cluster.nodes],
        )

    def use_up(self) -> None:
        """Whatever is left of the spender's budget is spent, so that the books say whether it was the right amount."""
        for node in self.cluster.nodes:
            while (call := self.probe("spender", node.number)).is_answered:
                pass
            assert call.reason == "budget_exceeded", call.describe()

    def account(self, agent: str, node: int) -> Account:
        """What the account says, by a call that can never fit."""
        call = self.probe(agent, node, most_cents=MORE_THAN_ALL_CENTS)
        assert call.reason == "budget_exceeded", call.describe()
        error = call.told["error"]
        return Account(round(error["current_cost"] * 100), round(error["reserved"] * 100))

    def is_quiet(self) -> bool:
        return all(node.is_quiet() for node in self.cluster.nodes)

    # ---- calls of its own ----

    def probe(self, agent: str, node: int, run: str | None = None, most_cents: int | None = None) -> Call:
        call = self.load.new(agent, node, run=run)
        make(call, self.cluster.nodes[node].host, [said(words())], stream=False, most_cents=most_cents)
        self.load.calls.append(call)
        return call


def stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def doomed_run(node: int) -> str:
    """The run that is killed at this node during the fault."""
    return f"doomed-at-{node}"


def is_a_phase(calls: list[Call], since: float) -> bool:
    """Whether enough was seen since then to say how things are."""
    calls = [call for call in calls if call.began > since and not call.is_turned_away]
    agents = Counter(call.agent for call in calls)
    if any(agents[agent] < CALLS_OF_A_PHASE for agent in ("worker", "talker", "payer", "spender", "hurried", "stuck", "doomed")):
        return False
    steps = Counter(call.task for call in calls)
    whole = {call.agent for call in calls if steps[call.task] >= STEPS_OF.get(call.agent, 1)}
    loops = sum(call.reason == "loop_detected" for call in calls)
    paces = {call.reason for call in calls if call.agent == "hurried"}
    return whole >= STEPS_OF.keys() and loops >= LOOPS_OF_A_PHASE and paces >= {None, "rate_limited"}
