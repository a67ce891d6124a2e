"""A stuck agent in every SDK: it is stopped once, makes no request after that, and tells its user why.

The SDKs keep their own retries: the proof is that they do not use them. A stop comes as the SDK's exception, or, where
that is configured, as an answer of the assistant that ends the loop.
"""

from pathlib import Path

import pytest

import servers
from agents import RAISED
from conftest import Answer

STOP = servers.STOP


@pytest.fixture(scope="module", params=["error", "assistant"])
def form(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def guarded(form: str, provider: str, tmp_path_factory: pytest.TempPathFactory):
    directory: Path = tmp_path_factory.mktemp("guarded")
    config = servers.stopping_config(f'[responses.reasons.{STOP}]\nform = "{form}"\n')
    with servers.sprag(provider, directory, config) as started:
        yield started.url


@pytest.mark.filterwarnings("ignore:create_react_agent")
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("agent", RAISED, ids=lambda agent: agent.__name__)
def test_a_stuck_agent_is_stopped_once(guarded: str, form: str, agent, stream: bool, answers: list[Answer]):
    # Each has a task of its own: Gemini's calls have no ids, so two agents with one task look like one.
    stuck = f'Read the notes, {stream}. [[mock:stuck tool=look_up args={{"key":"notes.txt"}}]]'
    if form == "assistant":
        assert STOP in agent(guarded, stream, stuck)
    else:
        with pytest.raises(RAISED[agent]) as raised:
            agent(guarded, stream, stuck)
        assert STOP in str(raised.value)
    assert_stopped_once(answers, 200 if form == "assistant" else None)


def assert_stopped_once(answers: list[Answer], status: int | None) -> None:
    """The last answer is the stop, and the only one."""
    *before, last = answers
    assert all("x-sprag-blocked" not in answer.headers for answer in before)
    assert last.headers["x-sprag-blocked"] == STOP
    assert last.headers["x-should-retry"] == "false"
    assert last.status == status if status else last.status >= 400
    assert len({answer.run_id for answer in answers}) == 1
    if STOP == "loop_detected":
        assert len(before) == 5, "five times the same, then the stop"
