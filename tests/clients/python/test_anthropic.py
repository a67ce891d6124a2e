"""anthropic-python: nothing is changed but the base URL."""

import anthropic
import pytest
from anthropic import beta_tool

from conftest import assert_metadata, assert_one_run

MODEL = "claude-sonnet-5"
TOOLS = [
    {
        "name": name,
        "description": "Looks something up.",
        "input_schema": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]},
    }
    for name in ("look_up", "measure")
]
ERRANDS = 'Read all parts. [[mock:agent steps=3 tool=look_up args={"key":"part-$N"}]]'


@pytest.fixture
def client(sprag: str):
    with anthropic.Anthropic(base_url=sprag, api_key="sk-ant-test") as client:
        yield client


def request(text: str, **more) -> dict:
    return {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": text}], **more}


@beta_tool
def look_up(key: str) -> str:
    """Looks something up.

    Args:
        key: What to look up.
    """
    return f"contents of {key}"


def test_plain(client: anthropic.Anthropic, answers):
    message = client.messages.create(
        **request("Say it. [[mock:text Fine words.]][[mock:usage input=11 output=7 cached=5]]")
    )
    assert [block.text for block in message.content] == ["Fine words."]
    assert message.stop_reason == "end_turn"
    assert message.usage.output_tokens == 7
    assert message.usage.cache_read_input_tokens == 5
    assert_metadata(message.model_extra["sprag"], 1, "anthropic", answers[0])


def test_headers_through_the_raw_response(client: anthropic.Anthropic):
    raw = client.messages.with_raw_response.create(**request("hello"))
    metadata = raw.parse().model_extra["sprag"]
    assert raw.headers["x-sprag-run-id"] == metadata["run_id"]
    assert raw.headers["x-sprag-step"] == "1"
    assert float(raw.headers["x-sprag-cost-usd"]) == metadata["cost_usd"]


def test_stream_helper(client: anthropic.Anthropic, answers):
    order = "hello [[mock:text One, two, three.]][[mock:delta 4]][[mock:usage input=9 output=4]]"
    with client.messages.stream(**request(order)) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == "One, two, three."
    assert final.content[0].text == text
    assert final.usage.output_tokens == 4
    assert answers[0].step == 1


def test_raw_stream_ends_with_the_metadata(client: anthropic.Anthropic, answers):
    events = list(client.messages.create(**request("hello"), stream=True))
    assert events[0].type == "message_start"
    assert events[-1].type == "message_stop"
    assert_metadata(events[-1].model_extra["sprag"], 1, "anthropic", answers[0])


def test_parallel_tool_calls(client: anthropic.Anthropic):
    order = 'Do both. [[mock:tool name=look_up args={"key":"a"}]][[mock:tool name=measure args={"key":"b"}]]'
    plain = client.messages.create(**request(order, tools=TOOLS))
    with client.messages.stream(**request(order, tools=TOOLS)) as stream:
        streamed = stream.get_final_message()
    for message in (plain, streamed):
        calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
        assert calls == [("look_up", {"key": "a"}), ("measure", {"key": "b"})]
        assert message.stop_reason == "tool_use"


@pytest.mark.parametrize("stream", [False, True])
def test_tool_loop_is_one_run(client: anthropic.Anthropic, answers, stream: bool):
    sent = request(ERRANDS, tools=TOOLS)
    while True:
        if stream:
            with client.messages.stream(**sent) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**sent)
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": f"contents of {block.input['key']}"}
            for block in message.content
            if block.type == "tool_use"
        ]
        if not results:
            break
        sent["messages"] += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
    assert message.content[0].text == "Finished after 3 steps."
    assert_one_run(answers, 4)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("threads", [True, False])
def test_tool_runner_is_one_run(client: anthropic.Anthropic, answers, provider_requests, threads: bool, stream: bool):
    options = {} if threads else {"thread": False}
    runner = client.beta.messages.tool_runner(**request(ERRANDS, tools=[look_up], stream=stream, **options))
    if stream:
        messages = [events.get_final_message() for events in runner]
    else:
        messages = list(runner)
        assert [message.model_extra["sprag"]["step"] for message in messages] == [1, 2, 3, 4]
    assert messages[-1].content[0].text == "Finished after 3 steps."
    assert_one_run(answers, 4)
    # With threads a request repeats nothing: only the id of the last answer ties it to its run.
    last = provider_requests()[-1]
    assert len(last["messages"]) == (1 if threads else 7)
    assert ("thread" in last) == threads


def test_parallel_tool_runners_are_runs_of_their_own(client: anthropic.Anthropic, answers):
    runners = [client.beta.messages.tool_runner(**request(ERRANDS, tools=[look_up])) for _ in range(2)]
    for _ in zip(*runners, strict=True):
        pass
    assert_one_run(answers[0::2], 4)
    assert_one_run(answers[1::2], 4)
    assert answers[0].run_id != answers[1].run_id


def test_count_tokens(client: anthropic.Anthropic, answers):
    counted = client.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "How long is this?"}])
    assert counted.input_tokens > 0
    assert answers[0].headers["x-sprag-request-id"]


def test_models(client: anthropic.Anthropic):
    assert [model.id for model in client.models.list()]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.AuthenticationError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (529, anthropic.APIStatusError),
    ],
)
def test_errors_of_the_provider(client: anthropic.Anthropic, status: int, expected: type[anthropic.APIStatusError]):
    order = f"[[mock:status {status}]][[mock:message It went wrong.]]"
    with pytest.raises(expected, match="It went wrong.") as raised:
        client.with_options(max_retries=0).messages.create(**request(order))
    assert raised.value.status_code == status
    assert raised.value.response.headers["x-sprag-run-id"]


def test_a_bad_run_id_is_said_in_the_sdks_own_way(client: anthropic.Anthropic):
    with pytest.raises(anthropic.BadRequestError, match="run") as raised:
        client.messages.create(**request("hello"), extra_headers={"x-sprag-run-id": "x" * 129})
    assert raised.value.body["type"] == "error"
    assert raised.value.body["error"]["message"]
