"""LangGraph's ReAct agent over LangChain's OpenAI and Anthropic models: nothing is changed but the base URL."""

import threading

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

from conftest import assert_metadata, assert_one_run

pytestmark = pytest.mark.filterwarnings("ignore:create_react_agent")

ERRANDS = 'Read all parts. [[mock:agent steps=5 tool=look_up args={"key":"part-$N"}]]'


@tool
def look_up(key: str) -> str:
    """Looks something up."""
    return f"contents of {key}"


@pytest.fixture(params=["openai", "openai_responses", "anthropic"])
def agent(request: pytest.FixtureRequest, sprag: str):
    if request.param == "anthropic":
        model = ChatAnthropic(model="claude-sonnet-5", base_url=sprag, api_key="sk-ant-test")
    else:
        model = ChatOpenAI(
            model="gpt-4o",
            base_url=f"{sprag}/v1",
            api_key="sk-test",
            use_responses_api=request.param == "openai_responses",
        )
    return create_react_agent(model, [look_up])


def asking(text: str) -> dict:
    return {"messages": [("user", text)]}


def test_openai_gives_the_headers(sprag: str, answers):
    model = ChatOpenAI(model="gpt-4o", base_url=f"{sprag}/v1", api_key="sk-test", include_response_headers=True)
    headers = model.invoke("hello").response_metadata["headers"]
    assert headers["x-sprag-run-id"] == answers[0].run_id


def test_anthropic_gives_the_metadata(sprag: str, answers):
    model = ChatAnthropic(model="claude-sonnet-5", base_url=sprag, api_key="sk-ant-test")
    assert_metadata(model.invoke("hello").response_metadata["sprag"], 1, "anthropic", answers[0])


def test_invoke_is_one_run(agent, answers):
    messages = agent.invoke(asking(ERRANDS))["messages"]
    assert messages[-1].text == "Finished after 5 steps."
    assert [message.content for message in messages if message.type == "tool"] == [
        f"contents of part-{n}" for n in range(1, 6)
    ]
    assert all(message.usage_metadata["output_tokens"] > 0 for message in messages if message.type == "ai")
    assert_one_run(answers, 6)


def test_stream_is_one_run(agent, answers):
    text = ""
    for chunk, _ in agent.stream(asking(ERRANDS), stream_mode="messages"):
        text += chunk.text if chunk.type == "AIMessageChunk" else ""
    assert text == "Finished after 5 steps."
    assert_one_run(answers, 6)


def test_parallel_agents_are_runs_of_their_own(agent, answers):
    threads = [
        threading.Thread(target=agent.invoke, args=(asking(f"Errand {number}. {ERRANDS}"),)) for number in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runs = {answer.run_id for answer in answers}
    assert len(runs) == 3
    for run in runs:
        own = sorted((answer for answer in answers if answer.run_id == run), key=lambda answer: answer.step)
        assert_one_run(own, 6)
