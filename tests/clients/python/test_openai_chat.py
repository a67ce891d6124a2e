"""openai-python, Chat Completions: nothing is changed but the base URL."""

import json

import openai
import pytest

from conftest import assert_metadata, assert_one_run

MODEL = "gpt-4o"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "Looks something up.",
            "parameters": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
        },
    }
    for name in ("look_up", "measure")
]


@pytest.fixture
def client(sprag: str):
    with openai.OpenAI(base_url=f"{sprag}/v1", api_key="sk-test") as client:
        yield client


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def test_plain(client: openai.OpenAI, answers):
    answer = client.chat.completions.create(
        model=MODEL, messages=[user("Say it. [[mock:text Grüße, 世界!]][[mock:usage input=11 output=7]]")]
    )
    assert answer.choices[0].message.content == "Grüße, 世界!"
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (11, 7)
    assert_metadata(answer.model_extra["sprag"], 1, "openai", answers[0])
    assert answer.sprag == answer.model_extra["sprag"]


def test_headers_through_the_raw_response(client: openai.OpenAI):
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=[user("hello")])
    metadata = raw.parse().model_extra["sprag"]
    assert raw.headers["x-sprag-run-id"] == metadata["run_id"]
    assert raw.headers["x-sprag-step"] == "1"
    assert raw.headers["x-sprag-request-id"]
    assert float(raw.headers["x-sprag-cost-usd"]) == metadata["cost_usd"]
    assert float(raw.headers["x-sprag-run-cost-usd"]) == metadata["total_run_cost"]


def test_stream(client: openai.OpenAI, answers):
    stream = client.chat.completions.create(
        model=MODEL, stream=True, messages=[user("hello [[mock:text One, two, three.]][[mock:delta 4]]")]
    )
    chunks = list(stream)
    assert len(chunks) > 4
    assert all(chunk.choices for chunk in chunks), "a usage chunk that nobody asked for"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "One, two, three."
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert_metadata(chunks[-1].model_extra["sprag"], 1, "openai", answers[0])
    assert not any("sprag" in chunk.model_extra for chunk in chunks[:-1])


def test_stream_with_usage(client: openai.OpenAI, answers):
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            stream=True,
            stream_options={"include_usage": True},
            messages=[user("hello [[mock:usage input=21 output=5]]")],
        )
    )
    assert chunks[-1].choices == []
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens) == (21, 5)
    assert_metadata(chunks[-1].model_extra["sprag"], 1, "openai", answers[0])


def test_stream_helper(client: openai.OpenAI):
    with client.chat.completions.stream(model=MODEL, messages=[user("hello [[mock:text Streamed.]]")]) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    assert final.choices[0].message.content == "Streamed."


def test_parallel_tool_calls(client: openai.OpenAI):
    order = '[[mock:tool name=look_up args={"key":"a"}]][[mock:tool name=measure args={"key":"b"}]]'
    for stream in (False, True):
        request = {"model": MODEL, "messages": [user(f"Do both. {order}")], "tools": TOOLS}
        if stream:
            with client.chat.completions.stream(**request) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(**request).choices[0].message
        calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]
        assert calls == [("look_up", {"key": "a"}), ("measure", {"key": "b"})]
        assert len({call.id for call in message.tool_calls}) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_tool_loop_is_one_run(client: openai.OpenAI, answers, stream: bool):
    messages = [user('Read all parts. [[mock:agent steps=3 tool=look_up args={"key":"part-$N"}]]')]
    results = []
    while True:
        request = {"model": MODEL, "messages": messages, "tools": TOOLS}
        if stream:
            with client.chat.completions.stream(**request) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(**request).choices[0].message
        if not message.tool_calls:
            break
        messages.append(message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
        for call in message.tool_calls:
            results.append(json.loads(call.function.arguments)["key"])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": f"contents of {results[-1]}"})
    assert message.content == "Finished after 3 steps."
    assert results == ["part-1", "part-2", "part-3"]
    assert_one_run(answers, 4)


def test_parallel_conversations_are_runs_of_their_own(client: openai.OpenAI, answers):
    conversations = [[user("Let us talk.")], [user("Let us talk.")]]
    for turn in range(3):
        for number, conversation in enumerate(conversations):
            said = f"Answer {turn} in conversation {number}."
            answer = client.chat.completions.create(
                model=MODEL, messages=conversation, extra_headers={"x-mock-text": said}
            )
            conversation.append({"role": "assistant", "content": answer.choices[0].message.content})
            conversation.append(user(f"Question {turn}."))
    first, second = answers[0::2], answers[1::2]
    assert_one_run(first, 3)
    assert_one_run(second, 3)
    assert first[0].run_id != second[0].run_id


def test_embeddings(client: openai.OpenAI, answers):
    answer = client.embeddings.create(model="text-embedding-3-small", input=["one", "two"])
    assert [item.index for item in answer.data] == [0, 1]
    assert answer.data[0].embedding
    assert_metadata(answer.model_extra["sprag"], 1, "openai", answers[0])


def test_models(client: openai.OpenAI, answers):
    assert [model.id for model in client.models.list()]
    assert answers[0].headers["x-sprag-request-id"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (404, openai.NotFoundError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ],
)
def test_errors_of_the_provider(client: openai.OpenAI, answers, status: int, expected: type[openai.APIStatusError]):
    order = f"[[mock:status {status}]][[mock:message It went wrong.]]"
    for stream in (False, True):
        with pytest.raises(expected, match="It went wrong.") as raised:
            client.with_options(max_retries=0).chat.completions.create(
                model=MODEL, messages=[user(order)], stream=stream
            )
        assert raised.value.status_code == status
        assert raised.value.response.headers["x-sprag-run-id"]
    assert len(answers) == 2


def test_a_bad_run_id_is_said_in_the_sdks_own_way(client: openai.OpenAI):
    with pytest.raises(openai.BadRequestError, match="run") as raised:
        client.chat.completions.create(
            model=MODEL, messages=[user("hello")], extra_headers={"x-sprag-run-id": "x" * 129}
        )
    assert raised.value.body["message"]


def test_a_declared_run(client: openai.OpenAI, answers):
    for text in ("What is the capital of Peru?", "Write a short poem on rain."):
        answer = client.chat.completions.create(
            model=MODEL, messages=[user(text)], extra_body={"sprag_run_id": "declared-1"}
        )
        assert answer.model_extra["sprag"]["run_id"] == "declared-1"
    assert_one_run(answers, 2)
