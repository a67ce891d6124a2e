"""openai-python, Responses: nothing is changed but the base URL."""

import json

import openai
import pytest

from conftest import assert_metadata, assert_one_run

MODEL = "gpt-4.1"
TOOLS = [
    {
        "type": "function",
        "name": "look_up",
        "description": "Looks something up.",
        "parameters": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
        "strict": False,
    }
]
ERRANDS = 'Read all parts. [[mock:agent steps=3 tool=look_up args={"key":"part-$N"}]]'


@pytest.fixture
def client(sprag: str):
    with openai.OpenAI(base_url=f"{sprag}/v1", api_key="sk-test") as client:
        yield client


def results(response) -> list[dict]:
    """What the tool says to the calls of a response."""
    return [
        {
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": f"contents of {json.loads(item.arguments)['key']}",
        }
        for item in response.output
        if item.type == "function_call"
    ]


def ask(client: openai.OpenAI, stream: bool, **request):
    if not stream:
        return client.responses.create(**request)
    with client.responses.stream(**request) as events:
        return events.get_final_response()


def test_plain(client: openai.OpenAI, answers):
    response = client.responses.create(
        model=MODEL, input="Say it. [[mock:text Fine words.]][[mock:usage input=11 output=7]]"
    )
    assert response.output_text == "Fine words."
    assert response.status == "completed"
    assert (response.usage.input_tokens, response.usage.output_tokens) == (11, 7)
    assert_metadata(response.model_extra["sprag"], 1, "openai", answers[0])


def test_headers_through_the_raw_response(client: openai.OpenAI):
    raw = client.responses.with_raw_response.create(model=MODEL, input="hello")
    metadata = raw.parse().model_extra["sprag"]
    assert raw.headers["x-sprag-run-id"] == metadata["run_id"]
    assert float(raw.headers["x-sprag-cost-usd"]) == metadata["cost_usd"]


def test_stream(client: openai.OpenAI, answers):
    events = list(
        client.responses.create(
            model=MODEL,
            stream=True,
            input="hello [[mock:text One, two, three.]][[mock:delta 4]][[mock:usage input=9 output=4]]",
        )
    )
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == "One, two, three."
    numbers = [event.sequence_number for event in events]
    assert numbers == sorted(set(numbers))
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == "One, two, three."
    assert last.response.usage.output_tokens == 4
    assert_metadata(last.model_extra["sprag"], 1, "openai", answers[0])


@pytest.mark.parametrize("stream", [False, True])
def test_tool_loop_with_the_whole_input_is_one_run(client: openai.OpenAI, answers, stream: bool):
    conversation: list = [{"role": "user", "content": ERRANDS}]
    response = ask(client, stream, model=MODEL, input=conversation, tools=TOOLS)
    while found := results(response):
        calls = [item for item in response.output if item.type == "function_call"]
        conversation += [call.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for call in calls] + found
        response = ask(client, stream, model=MODEL, input=conversation, tools=TOOLS)
    assert response.output_text == "Finished after 3 steps."
    assert_one_run(answers, 4)


@pytest.mark.parametrize("stream", [False, True])
def test_tool_loop_by_previous_response_is_one_run(client: openai.OpenAI, answers, stream: bool):
    response = ask(client, stream, model=MODEL, input=ERRANDS, tools=TOOLS)
    while found := results(response):
        response = ask(
            client, stream, model=MODEL, input=found, tools=TOOLS, previous_response_id=response.id
        )
    assert response.output_text == "Finished after 3 steps."
    assert_one_run(answers, 4)


def test_parallel_chains_are_runs_of_their_own(client: openai.OpenAI, answers):
    last = [None, None]
    for _ in range(3):
        for chain in range(2):
            previous = {"previous_response_id": last[chain]} if last[chain] else {}
            last[chain] = client.responses.create(model=MODEL, input="And then?", **previous).id
    assert_one_run(answers[0::2], 3)
    assert_one_run(answers[1::2], 3)
    assert answers[0].run_id != answers[1].run_id


def test_an_unknown_previous_response(client: openai.OpenAI):
    with pytest.raises(openai.BadRequestError, match="not found"):
        client.responses.create(model=MODEL, input="hello", previous_response_id="resp_nobody")


def test_errors_of_the_provider(client: openai.OpenAI):
    with pytest.raises(openai.RateLimitError, match="Too fast."):
        client.with_options(max_retries=0).responses.create(
            model=MODEL, input="[[mock:status 429]][[mock:message Too fast.]]"
        )
