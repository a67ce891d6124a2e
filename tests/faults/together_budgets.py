"""Many calls at once draw on one budget through all nodes: it is never overspent, and what it has room for is allowed."""

import threading

from call import Call, make
from cluster import Cluster, Setup
from finding import Finding
from load import said
from together_policy import BUDGET_CENTS, POLICY
from trial import MORE_THAN_ALL_CENTS
from waiting import wait_until

CALLERS = 500
# What a call asks for whose answer costs one cent, where all of it is set aside.
CAUTIOUS_CENTS = 5
# One token, as it is charged: the provider keeps to what it was asked for.
PROMPT = said("[[mock:text yes]]")


def check(shared: bool) -> Finding:
    finding = Finding()
    with Cluster(Setup(redis=shared, policy=POLICY)) as cluster:
        draw(cluster, finding, "expected", "setting aside what they should cost")
        draw(cluster, finding, "cautious", f"setting aside {CAUTIOUS_CENTS} cents each", most_cents=CAUTIOUS_CENTS)
        # Last, because it lets all streams pass that stand still.
        draw(cluster, finding, "exact", "streams that all stand still", is_held=True)
    return finding


def draw(cluster: Cluster, finding: Finding, agent: str, how: str, most_cents: int = 1, is_held: bool = False) -> None:
    """Each call costs one cent. One that sets aside more may be refused for the sake of those under way: then there is room afterwards,
    for as long as such a call fits."""
    calls = crowd(cluster, agent, most_cents, is_held)
    other = [call.describe() for call in calls if not call.is_answered and call.reason != "budget_exceeded"]
    assert not other, other[:3]
    at_once, later = sum(call.is_answered for call in calls), 0
    for node in cluster.nodes:
        while call_once(cluster, agent, node.number, most_cents).is_answered:
            later += 1
    spent = sum(bill.cents for bill in cluster.provider.bills() if bill.agent == agent)
    fits = BUDGET_CENTS - most_cents + 1
    accounts = [account(cluster, agent, node.number) for node in cluster.nodes]
    measured = f"${spent / 100:.2f} in {at_once} calls and {later} later"
    if set(accounts) != {(spent, 0)}:
        measured += f"; nodes say {', '.join(f'${cents / 100:.2f} and ${aside / 100:.2f} set aside' for cents, aside in accounts)}"
    is_kept = spent == fits and (most_cents > 1 or later == 0) and set(accounts) == {(spent, 0)}
    finding.add(f"{CALLERS} calls at once, {how}", f"${fits / 100:.2f} of ${BUDGET_CENTS / 100:.2f}", measured, is_kept)


def crowd(cluster: Cluster, agent: str, most_cents: int, is_held: bool) -> list[Call]:
    """Everybody calls at the same moment. Streams that are held end when every other call has been refused."""
    calls = [Call(f"{agent}-{number}", agent, number % len(cluster.nodes), 1) for number in range(CALLERS)]
    start = threading.Barrier(CALLERS)

    def one(call: Call) -> None:
        start.wait()
        make(call, cluster.nodes[call.node].host, [PROMPT], is_held, most_cents, stall_seconds=1.0 if is_held else None)

    threads = [threading.Thread(target=one, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    if is_held:
        wait_until(lambda: sum(call.status is not None for call in calls) == CALLERS, "every call to be refused or under way")
        cluster.provider.release()
    for thread in threads:
        thread.join()
    return calls


def call_once(cluster: Cluster, agent: str, node: int, most_cents: int) -> Call:
    call = Call(f"{agent}-later", agent, node, 1)
    make(call, cluster.nodes[node].host, [PROMPT], stream=False, most_cents=most_cents)
    assert call.is_answered or call.reason == "budget_exceeded", call.describe()
    return call


def account(cluster: Cluster, agent: str, node: int) -> tuple[int, int]:
    """Cents that are spent and set aside, as a call is told that can never fit."""
    error = call_once(cluster, agent, node, MORE_THAN_ALL_CENTS).told["error"]
    return round(error["current_cost"] * 100), round(error["reserved"] * 100)
