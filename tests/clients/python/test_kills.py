"""Runs that an admin ends: killed between two steps or in the middle of an answer, or with their agent switched off."""

from collections.abc import Callable
from pathlib import Path

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors

import servers
from agents import RAISED
from conftest import Answer

ERRANDS = 'Read all parts, {}. [[mock:agent steps=9 tool=look_up args={{"key":"part $N"}}]]'
STALLING = "Say something. [[mock:text one two three four five six]][[mock:delta 4]][[mock:stall 5]]"


@pytest.fixture
def served(provider: str, tmp_path: Path):
    with servers.sprag(provider, tmp_path) as started:
        yield started


@pytest.mark.filterwarnings("ignore:create_react_agent")
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("agent", RAISED, ids=lambda agent: agent.__name__)
def test_killed_between_steps_it_asks_once_more(served, agent, stream: bool, answers: list[Answer], acts):
    acts[3] = lambda: served.kill(answers[0].run_id)
    with pytest.raises(RAISED[agent]) as raised:
        agent(served.url, stream, ERRANDS.format(stream))
    assert "run_killed" in str(raised.value) and servers.KILL_REASON in str(raised.value)
    assert [answer.headers.get("x-sprag-blocked") for answer in answers] == [None, None, "run_killed"]
    assert answers[2].status == 403
    assert len({answer.run_id for answer in answers}) == 1


@pytest.mark.filterwarnings("ignore:create_react_agent")
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("agent", RAISED, ids=lambda agent: agent.__name__)
def test_switched_off_it_ends_in_good_order(served, agent, stream: bool, answers: list[Answer], acts):
    acts[3] = served.deactivate
    assert "agent_inactive" in agent(served.url, stream, ERRANDS.format(stream))
    assert [answer.headers.get("x-sprag-blocked") for answer in answers] == [None, None, "agent_inactive"]
    assert answers[2].status == 200
    assert len({answer.run_id for answer in answers}) == 1


def openai_chat(url: str, said: Callable[[], None]) -> None:
    messages = [{"role": "user", "content": STALLING}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="sk-test") as client:
        for _ in client.chat.completions.create(model="gpt-4o", messages=messages, stream=True):
            said()


def openai_responses(url: str, said: Callable[[], None]) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="sk-test") as client:
        for _ in client.responses.create(model="gpt-4o", input=STALLING, stream=True):
            said()


def openai_responses_helper(url: str, said: Callable[[], None]) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="sk-test") as client:
        with client.responses.stream(model="gpt-4o", input=STALLING) as events:
            for _ in events:
                said()


def anthropic_messages(url: str, said: Callable[[], None]) -> None:
    messages = [{"role": "user", "content": STALLING}]
    with anthropic.Anthropic(base_url=url, api_key="sk-ant-test") as client:
        for _ in client.messages.create(model="claude-sonnet-5", max_tokens=100, messages=messages, stream=True):
            said()


def google_genai(url: str, said: Callable[[], None]) -> None:
    with genai.Client(api_key="test", http_options={"base_url": url}) as client:
        for _ in client.models.generate_content_stream(model="gemini-2.5-flash", contents=STALLING):
            said()


CUT = {
    openai_chat: (openai.APIError, openai.PermissionDeniedError),
    openai_responses: (openai.APIError, openai.PermissionDeniedError),
    openai_responses_helper: (openai.APIError, openai.PermissionDeniedError),
    anthropic_messages: (anthropic.APIStatusError, anthropic.PermissionDeniedError),
    google_genai: (errors.APIError, errors.ClientError),
}


@pytest.mark.parametrize("reads", CUT, ids=lambda reads: reads.__name__)
def test_killed_in_the_middle_of_an_answer_it_raises(served, reads, answers: list[Answer]):
    said = iter([lambda: served.kill(answers[0].run_id)])
    in_band, refused = CUT[reads]
    with pytest.raises(in_band) as raised:
        reads(served.url, lambda: next(said, lambda: None)())
    assert "run_killed" in str(raised.value) and servers.KILL_REASON in str(raised.value)
    assert [answer.status for answer in answers] == [200], "it does not ask again by itself"

    with pytest.raises(refused) as raised:
        reads(served.url, lambda: None)
    assert "run_killed" in str(raised.value)
    assert (answers[1].status, answers[1].headers["x-sprag-blocked"]) == (403, "run_killed")
    assert answers[1].run_id == answers[0].run_id
