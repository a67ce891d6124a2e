"""Every reason of a stop in every SDK: the class of its exception, what the exception holds, and one request only.

The SDKs keep their own retries: the proof is that they do not use them.
"""

import json
import re
import urllib.request
from pathlib import Path

import anthropic
import openai
import pytest

import servers
from conftest import Answer
from reasons import CALLS, CASES, RAISED, SHARED, Caller, Case, config, kill, openai_chat

STOPS = SHARED.parents[2] / "docs" / "stops.md"
WITHOUT_ASSISTANT = "openai_embeddings"


@pytest.fixture(scope="module")
def sprags(provider: str, tmp_path_factory: pytest.TempPathFactory):
    """One that lets everybody in, and one that wants a virtual key."""
    places: list[Path] = [tmp_path_factory.mktemp("open"), tmp_path_factory.mktemp("keys")]
    with servers.sprag(provider, places[0], config(False)) as is_open:
        with servers.sprag(provider, places[1], config(True)) as wants_keys:
            yield {False: is_open, True: wants_keys}


@pytest.fixture(scope="module")
def begun() -> set[str]:
    """Agents that have had the one call that passes."""
    return set()


@pytest.fixture
def forwarded(provider: str):
    """How many requests with a text the provider has got."""

    def count(text: str) -> int:
        with urllib.request.urlopen(f"{provider}/__requests") as response:
            return sum(text in request["body"] for request in json.load(response))

    return count


def rows():
    for case in CASES:
        for call, dialect, stream in CALLS:
            if dialect not in case.not_for:
                name = f"{case.case}-{call.__name__}-{'stream' if stream else 'plain'}"
                yield pytest.param(case, call, dialect, stream, id=name)


def test_no_reason_is_missing():
    """Against the page about stops, which a test in Rust holds against the program."""
    listed = set(re.findall(r"^\| `(\w+)` \| (?:error|assistant) \|", STOPS.read_text(), re.MULTILINE))
    assert {case.reason for case in CASES} == listed
    assert len(listed) > 10


@pytest.mark.parametrize(("case", "call", "dialect", "stream"), list(rows()))
def test_a_stop(
    case: Case, call, dialect: str, stream: bool, sprags, begun: set[str], answers: list[Answer], forwarded
):
    sprag = sprags[case.require_keys]
    caller = Caller(sprag.url, case, f"{case.case}-{call.__name__}-{stream}")
    provoke(sprag, caller, call, stream, begun)
    answers.clear()

    if case.status == 200 and dialect != WITHOUT_ASSISTANT:
        status = 200
        assert call(caller, stream).endswith(signature(caller))
    else:
        status = 403 if case.status == 200 else case.status
        expected = RAISED[dialect.split("_")[0]][status]
        with pytest.raises(expected) as raised:
            call(caller, stream)
        assert type(raised.value) is expected
        check_exception(caller, raised.value, status)

    assert [answer.status for answer in answers] == [status], "one request, and no other"
    assert answers[0].headers["x-sprag-blocked"] == case.reason
    assert answers[0].headers["x-should-retry"] == "false"
    assert forwarded(caller.prompt) == (1 if case.before == "call" else 0), "the stop was not sent on"


def provoke(sprag: servers.Sprag, caller: Caller, call, stream: bool, begun: set[str]) -> None:
    case = caller.case
    if case.before == "call":
        assert "[sprag: " not in call(caller, stream)
    elif case.before == "call of the agent" and case.case not in begun:
        begun.add(case.case)
        first = f"{case.case}-first-of-the-agent"
        assert "[sprag: " not in openai_chat(Caller(caller.url, case, first), False)
    match case.act:
        case "kill" | "pause" as act:
            kill(sprag, case, caller.run, act == "pause")
        case "deactivate":
            sprag.order("PATCH", f"agents/{case.case}", {"active": False})


def check_exception(caller: Caller, raised: Exception, status: int) -> None:
    """All that a program can act on is in the exception."""
    case = caller.case
    if isinstance(raised, (openai.APIStatusError, anthropic.APIStatusError)):
        assert raised.response.headers["x-sprag-blocked"] == case.reason
    if isinstance(raised, openai.APIStatusError):
        assert (raised.status_code, raised.type, raised.code) == (status, case.reason, case.code)
        error, beside = raised.body, raised.response.json()
        assert beside["error"] == error
    elif isinstance(raised, anthropic.APIStatusError):
        assert raised.status_code == status
        beside = raised.body
        assert beside["type"] == "error"
        error = beside["error"]
        assert error["code"] == case.code
    else:
        assert raised.code == status
        beside = raised.details
        error = beside["error"]
        assert error["details"][0]["metadata"]["code"] == case.code
    assert error["type"] == beside["block_reason"] == case.reason
    assert error["message"].endswith(signature(caller))
    assert signature(caller) in str(raised), "whoever prints the exception reads why"
    if case.says:
        assert case.says not in str(raised) + json.dumps(beside), "what was stopped is not quoted"
    for name, value in case.fields.items():
        assert error[name] is not None if value == "*" else error[name] == value, name
    if case.has_run:
        assert (error["run_id"], error["agent"]) == (caller.run, case.case)
    assert (beside.get("retry_after_seconds", 0) > 0) == case.waits


def signature(caller: Caller) -> str:
    reason = caller.case.reason
    return f"[sprag: {reason}, run {caller.run}]" if caller.case.has_run else f"[sprag: {reason}]"
