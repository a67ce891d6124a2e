"""A steady load of several agents over all nodes, one after the other, as behind a load balancer that knows nothing.

| agent | does |
|---|---|
| worker | declared runs of a few steps, plain and streamed |
| talker | conversations that nobody names: each turn goes to another node, and Sprag has to see that they belong together |
| payer | spends from a budget that it never uses up |
| spender | spends from a budget that is soon used up |
| hurried | asks more often than it may |
| stuck | says the same again and again, run after run |
| doomed | goes on with runs that were killed |
| listener | streams that are under way when the fault comes |
| newcomer | spends from a budget that nobody has drawn on before the fault |
"""

import itertools
import random
import threading
import time
from collections.abc import Callable

from call import Call, make
from node import Node

# How long an agent waits before its next call, in seconds.
PACE = {"worker": 0.06, "talker": 0.1, "payer": 0.1, "spender": 0.1, "hurried": 0.03, "stuck": 0.08, "doomed": 0.1, "newcomer": 0.1}
STEPS_OF_A_RUN = 6
TURNS_OF_A_CONVERSATION = 4
WORDS = "amber birch cedar delta ember fjord grove heath inlet jetty knoll ledge marsh north oasis plain quarry ridge shoal tarn".split()

WITH_A_BUDGET = {"payer", "spender", "newcomer"}
PAYER_LIMIT_USD = 1000
SPENDER_LIMIT_CENTS = 100
# So few that a slow machine passes them too.
HURRIED_REQUESTS = 4
HURRIED_SECONDS = 2

# A token of an answer costs a cent, so that a call costs what it asks the provider for.
PRICES = """
prices.unpriced = "block"
[[price]]
model = "gpt-4o"
input = 0
output = 10000
"""

POLICY = f"""{PRICES}[agents.payer.budget]
monthly_limit = {PAYER_LIMIT_USD}
reserve = "worst_case"
[agents.newcomer.budget]
monthly_limit = {PAYER_LIMIT_USD}
reserve = "worst_case"
[agents.spender.budget]
monthly_limit = "{SPENDER_LIMIT_CENTS / 100:.2f}"
reserve = "worst_case"
[[agents.hurried.rate_limits]]
name = "pace"
limit_keys = ["agent"]
requests = {HURRIED_REQUESTS}
window_seconds = {HURRIED_SECONDS}
[agents.doomed.run_limits]
max_steps = 0
timeout_seconds = 0
"""


class Load:
    """`calls` grows while it runs; readers take a copy. Streams that stand still do so for about `stall_seconds`."""

    def __init__(self, nodes: list[Node], stall_seconds: float):
        self.nodes = nodes
        self.stall_seconds = stall_seconds
        self.calls: list[Call] = []
        self.problems: list[str] = []
        self.numbers = itertools.count(1)
        # Each agent goes round by itself, so that its runs do not stay at one node by chance.
        self.turns = {agent: itertools.count() for agent in PACE}
        self.over = threading.Event()
        self.doomed_runs: list[str] = []
        self.threads: list[threading.Thread] = []

    def start(self) -> None:
        for agent in (self.worker, self.talker, self.payer, self.spender, self.hurried, self.stuck, self.doomed):
            self.begin(self.keep_on, agent)

    def stop(self) -> None:
        """No call begins after this, and all have ended."""
        self.over.set()
        for thread in self.threads:
            thread.join()

    def begin(self, action: Callable, *arguments) -> None:
        thread = threading.Thread(target=action, args=arguments, daemon=True)
        thread.start()
        self.threads.append(thread)

    def keep_on(self, agent: Callable[[], None]) -> None:
        try:
            while not self.over.is_set():
                agent()
        except Exception as problem:  # A thread that dies alone would only make the load smaller.
            self.problems.append(f"{agent.__name__}: {type(problem).__name__}: {problem}")

    # ---- agents ----

    def worker(self) -> None:
        run = f"task-{next(self.numbers)}"
        for step in range(STEPS_OF_A_RUN):
            self.call("worker", [said(f"Step {step}: {words()}")], run=run, stream=step % 2 == 1)

    def talker(self) -> None:
        task, messages = f"talk-{next(self.numbers)}", []
        for _ in range(TURNS_OF_A_CONVERSATION):
            messages.append(said(words()))
            call = self.call("talker", messages, task=task)
            if not call.is_answered:
                return
            messages.append({"role": "assistant", "content": call.answer})

    def payer(self) -> None:
        number = next(self.numbers)
        self.call("payer", [said(words())], cents=1 + number % 5, stream=number % 2 == 0)

    def newcomer(self) -> None:
        self.call("newcomer", [said(words())], cents=1 + next(self.numbers) % 5)

    def spender(self) -> None:
        cents = random.randint(1, 5)
        self.call("spender", [said(words())], cents=cents)

    def hurried(self) -> None:
        self.call("hurried", [said(words())])

    def stuck(self) -> None:
        run, prompt = f"stuck-{next(self.numbers)}", words()
        # More than it takes when every node is on its own.
        for _ in range(len(self.nodes) + 4):
            call = self.call("stuck", [said(prompt)], run=run)
            if call.reason == "loop_detected" or self.over.is_set():
                return

    def doomed(self) -> None:
        for run in list(self.doomed_runs):
            self.call("doomed", [said(words())], run=run)
        if not self.doomed_runs:
            self.over.wait(PACE["doomed"])

    def listener(self, agent: str, node: int) -> None:
        """A stream that stands still after two events until the provider lets it go on."""
        self.add(self.new(agent, node, cents=3), [said(words())], stream=True, stall_seconds=self.stall_seconds)

    # ---- calls ----

    def call(
        self, agent: str, messages: list[dict], cents: int = 1, run: str | None = None, task: str | None = None, stream: bool = False
    ) -> Call:
        """To the next node, or the one after it where nobody listens."""
        began = time.monotonic()
        for _ in self.nodes:
            node = next(self.turns[agent]) % len(self.nodes)
            call = self.add(self.new(agent, node, cents, run, task), messages, stream)
            if not call.is_turned_away:
                break
        self.over.wait(max(0.0, PACE[agent] - (time.monotonic() - began)))
        return call

    def new(self, agent: str, node: int, cents: int = 1, run: str | None = None, task: str | None = None) -> Call:
        return Call(f"{agent}-{next(self.numbers)}", agent, node, cents, run, task or run)

    def add(self, call: Call, messages: list[dict], stream: bool = False, stall_seconds: float | None = None) -> Call:
        make(call, self.nodes[call.node].host, messages, stream, stall_seconds=stall_seconds)
        self.calls.append(call)
        return call


def said(text: str) -> dict:
    return {"role": "user", "content": text}


def words() -> str:
    return " ".join(random.choices(WORDS, k=8))
