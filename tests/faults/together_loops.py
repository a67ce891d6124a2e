"""Agents that are stuck, with each call at the next node: they are stopped at the same call as on a node of its own."""

import itertools
import json
import random
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from call import Call, make
from cluster import Cluster, Setup
from finding import Finding
from load import WORDS, said
from node import Node
from together_policy import POLICY

# Of each loop, each beginning at another node.
ROUNDS = 6
AT_ONCE = 4
# More than any loop takes on three nodes that know nothing of each other; fewer than the steps of a run by default.
MOST_CALLS = 28
ERROR = "error: the service that was asked for was not found in the region of this account"


@dataclass(frozen=True)
class Loop:
    """`next` gives the messages of the next call, from the prompt and the calls before."""

    title: str
    next: Callable[[str, list[Call]], list[dict]]
    agent: str = "stuck"
    namings: tuple[bool, ...] = (True, False)
    streamed: tuple[bool, ...] = (False, True)


@dataclass(frozen=True)
class Stop:
    """What a stuck agent was told in the end. The proof names the steps that it rests on."""

    calls: int
    reason: str | None
    loop_type: str | None
    proof: str


# ---- loops ----


def the_same_request(prompt: str, _: list[Call]) -> list[dict]:
    return [said(prompt)]


def the_same_prompt(prompt: str, calls: list[Call]) -> list[dict]:
    return conversation(calls, itertools.repeat(prompt))


def two_in_turns(prompt: str, calls: list[Call]) -> list[dict]:
    return conversation(calls, itertools.cycle([prompt, " ".join(reversed(prompt.split()))]))


def the_same_error(prompt: str, calls: list[Call]) -> list[dict]:
    return with_results(prompt, json.dumps({"city": "Paris"}), calls)


def another_call_and_the_same_error(prompt: str, calls: list[Call]) -> list[dict]:
    return with_results(prompt, '{"page": "$N"}', calls)


LOOPS = [
    # Where nobody names the run and nothing leads to it, each call is a run of its own.
    Loop("the same prompt", the_same_request, namings=(True,)),
    Loop("the same prompt in a conversation", the_same_prompt),
    Loop("two prompts in turns", two_in_turns),
    Loop("the same tool call and error", the_same_error, streamed=(False,)),
    Loop("other tool calls, the same error", another_call_and_the_same_error, streamed=(False,)),
    Loop("the same request, in no run", the_same_request, agent="again", namings=(False,)),
]


def conversation(calls: list[Call], prompts: Iterable[str]) -> list[dict]:
    messages, prompts = [], iter(prompts)
    for call in calls:
        messages += [said(next(prompts)), {"role": "assistant", "content": call.answer}]
    return [*messages, said(next(prompts))]


def with_results(prompt: str, arguments: str, calls: list[Call]) -> list[dict]:
    messages = [said(f"{prompt} [[mock:stuck tool=search args={arguments}]]")]
    for call in calls:
        answer = call.told["choices"][0]["message"]
        messages += [answer, *({"role": "tool", "tool_call_id": tool["id"], "content": ERROR} for tool in answer["tool_calls"])]
    return messages


# ---- being stuck ----


def check(shared: bool) -> Finding:
    finding = Finding()
    alone = stops_of(Setup(nodes=1, redis=False, policy=POLICY))
    others = {"three nodes": stops_of(Setup(redis=shared, policy=POLICY))}
    if shared:
        others = {"one with Redis": stops_of(Setup(nodes=1, policy=POLICY))} | others
    for title, expected in alone.items():
        assert all(stop.reason == "loop_detected" for stop in expected), f"{title} is no loop on one node: {expected}"
        measured = "; ".join(f"{where} {calls_of(stops[title])}" for where, stops in others.items())
        # Not only when, but also why.
        is_kept = all(stops[title] == expected for stops in others.values())
        finding.add(f"{title}: {len(expected)} runs", f"call {calls_of(expected)}, as on one node", measured, is_kept)
    return finding


def calls_of(stops: list[Stop]) -> str:
    return " or ".join(str(calls) for calls in sorted({stop.calls for stop in stops}))


def stops_of(setup: Setup) -> dict[str, list[Stop]]:
    """By loop. The order is the same for every setup, and so is what agents say."""
    with Cluster(setup) as cluster, ThreadPoolExecutor(AT_ONCE) as agents:
        stops = {}
        for loop in LOOPS:
            for is_named in loop.namings:
                tries = itertools.product([cluster.nodes], [loop], [is_named], loop.streamed, range(ROUNDS))
                stops[f"{loop.title}{', named' if is_named else ''}"] = list(agents.map(until_stopped, *zip(*tries, strict=True)))
        return stops


def until_stopped(nodes: list[Node], loop: Loop, is_named: bool, stream: bool, number: int) -> Stop:
    name = f"{loop.title} {is_named} {stream} {number}".replace(" ", "-")
    prompt = " ".join(random.Random(name).choices(WORDS, k=8))
    calls: list[Call] = []
    while len(calls) < MOST_CALLS:
        node = nodes[(number + len(calls)) % len(nodes)]
        call = Call(f"{name}-{len(calls)}", loop.agent, node.number, 1, run=name if is_named else None)
        make(call, node.host, loop.next(prompt, calls), stream)
        calls.append(call)
        assert call.error is None, call.describe()
        if not call.is_answered:
            break
    error = call.told.get("error") or {}
    return Stop(len(calls), call.reason, error.get("loop_type"), json.dumps(error.get("proof")))
