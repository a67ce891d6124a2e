"""google-genai: nothing is changed but the base URL.

The SDK drops fields that it does not know, so the metadata in the body does no harm and cannot be reached through its
objects: what a user reads are the headers, which it keeps in `sdk_http_response`.
"""

import json

import pytest
from google import genai
from google.genai import errors, types

from conftest import assert_metadata, assert_one_run

MODEL = "gemini-2.5-flash"
ERRANDS = 'Read all parts. [[mock:agent steps=3 tool=look_up args={"key":"part-$N"}]]'


@pytest.fixture
def client(sprag: str):
    with genai.Client(api_key="test", http_options={"base_url": sprag}) as client:
        yield client


def look_up(key: str) -> str:
    """Looks something up."""
    return f"contents of {key}"


def test_plain(client: genai.Client):
    response = client.models.generate_content(
        model=MODEL, contents="Say it. [[mock:text Fine words.]][[mock:usage input=11 output=7]]"
    )
    assert response.text == "Fine words."
    assert response.candidates[0].finish_reason == types.FinishReason.STOP
    assert response.usage_metadata.prompt_token_count == 11
    assert response.usage_metadata.candidates_token_count == 7
    headers = response.sdk_http_response.headers
    assert headers["x-sprag-run-id"]
    assert headers["x-sprag-step"] == "1"
    assert float(headers["x-sprag-cost-usd"]) > 0


def test_the_metadata_is_in_the_raw_body(client: genai.Client, answers):
    response = client.models.generate_content(
        model=MODEL, contents="hello", config=types.GenerateContentConfig(should_return_http_response=True)
    )
    assert_metadata(json.loads(response.sdk_http_response.body)["sprag"], 1, "gemini", answers[0])


def test_stream(client: genai.Client):
    chunks = list(
        client.models.generate_content_stream(
            model=MODEL,
            contents="hello [[mock:text One, two, three.]][[mock:delta 4]][[mock:usage input=9 output=4]]",
        )
    )
    assert len(chunks) > 2
    assert "".join(chunk.text or "" for chunk in chunks) == "One, two, three."
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
    assert chunks[-1].usage_metadata.candidates_token_count == 4
    assert chunks[-1].sdk_http_response.headers["x-sprag-step"] == "1"


def test_parallel_tool_calls(client: genai.Client):
    order = 'Do both. [[mock:tool name=look_up args={"key":"a"}]][[mock:tool name=look_up args={"key":"b"}]]'
    config = types.GenerateContentConfig(
        tools=[look_up], automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
    )
    response = client.models.generate_content(model=MODEL, contents=order, config=config)
    assert [(call.name, call.args) for call in response.function_calls] == [
        ("look_up", {"key": "a"}),
        ("look_up", {"key": "b"}),
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_automatic_function_calling_is_one_run(client: genai.Client, answers, stream: bool):
    config = types.GenerateContentConfig(tools=[look_up])
    if stream:
        chunks = client.models.generate_content_stream(model=MODEL, contents=ERRANDS, config=config)
        text = "".join(chunk.text or "" for chunk in chunks)
    else:
        text = client.models.generate_content(model=MODEL, contents=ERRANDS, config=config).text
    assert text == "Finished after 3 steps."
    assert_one_run(answers, 4)


@pytest.mark.parametrize("stream", [False, True])
def test_chat_is_one_run(client: genai.Client, answers, stream: bool):
    chat = client.chats.create(model=MODEL)
    for question in ("Where is Lima?", "And Quito?", "How far are they apart?"):
        if stream:
            text = "".join(chunk.text or "" for chunk in chat.send_message_stream(question))
        else:
            text = chat.send_message(question).text
        assert text == f"You said: {question}"
    assert_one_run(answers, 3)


def test_parallel_chats_are_runs_of_their_own(client: genai.Client, answers):
    chats = [client.chats.create(model=MODEL) for _ in range(2)]
    for turn in range(3):
        for number, chat in enumerate(chats):
            chat.send_message(f"Let us talk. [[mock:text Answer {turn} in chat {number}.]]")
    assert_one_run(answers[0::2], 3)
    assert_one_run(answers[1::2], 3)
    assert answers[0].run_id != answers[1].run_id


def test_count_tokens_and_models(client: genai.Client, answers):
    assert client.models.count_tokens(model=MODEL, contents="How long is this?").total_tokens > 0
    assert [model.name for model in client.models.list()]
    assert all(answer.headers["x-sprag-request-id"] for answer in answers)


@pytest.mark.parametrize(("status", "expected"), [(400, errors.ClientError), (500, errors.ServerError)])
def test_errors_of_the_provider(client: genai.Client, status: int, expected: type[errors.APIError]):
    order = f"[[mock:status {status}]][[mock:message It went wrong.]]"
    with pytest.raises(expected, match="It went wrong.") as raised:
        client.models.generate_content(model=MODEL, contents=order)
    assert raised.value.code == status
    with pytest.raises(expected, match="It went wrong."):
        list(client.models.generate_content_stream(model=MODEL, contents=order))


def test_a_bad_run_id_is_said_in_the_sdks_own_way(client: genai.Client):
    options = types.HttpOptions(headers={"x-sprag-run-id": "x" * 129})
    with pytest.raises(errors.ClientError, match="run") as raised:
        client.models.generate_content(
            model=MODEL, contents="hello", config=types.GenerateContentConfig(http_options=options)
        )
    assert raised.value.code == 400
    assert raised.value.message
