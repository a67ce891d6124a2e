"""Sensitive data through the SDKs: the provider does not see it, and the client gets its own back."""

import json

import anthropic
import openai
import pytest

KEY = "sk-1234567890abcdef"
HIDDEN = "[REDACTED:OPENAI_KEY]"
MAIL = "anna.kowalska@acme-motors.com"
ASKED = f"My API key is {KEY}"
# In headers: a placeholder that stands in the prompt itself is passed over.
TOOL = {"extra_headers": {"x-mock-tool": 'name=send args={"to":"[EMAIL_1]"}', "x-mock-delta": "3"}}


@pytest.fixture
def chat(sprag: str):
    with openai.OpenAI(base_url=f"{sprag}/v1", api_key="sk-test") as client:
        yield client


@pytest.fixture
def claude(sprag: str):
    with anthropic.Anthropic(base_url=sprag, api_key="sk-ant-test") as client:
        yield client


def chat_order(text: str, **more) -> dict:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": text}], **more}


def claude_order(text: str, **more) -> dict:
    return {"model": "claude-sonnet-5", "max_tokens": 100, "messages": [{"role": "user", "content": text}], **more}


def saying(text: str) -> dict:
    """Headers by which the provider says this: what stands in the prompt is hidden from it."""
    return {"extra_headers": {"x-mock-text": text, "x-mock-delta": "3"}}


def test_openai_hides_a_key(chat: openai.OpenAI, provider_requests):
    answer = chat.chat.completions.create(**chat_order(ASKED), **saying(f"It is {KEY}!"))
    assert answer.choices[0].message.content == f"It is {HIDDEN}!"
    chunks = list(chat.chat.completions.create(**chat_order(ASKED, stream=True), **saying(f"It is {KEY}!")))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == f"It is {HIDDEN}!"
    for request in provider_requests()[-2:]:
        assert request["messages"][0]["content"] == f"My API key is {HIDDEN}"


def test_openai_gets_its_own_back_in_arguments(chat: openai.OpenAI, provider_requests):
    order = chat_order(f"Write to {MAIL}.", **TOOL)
    plain = chat.chat.completions.create(**order).choices[0].message
    with chat.chat.completions.stream(**order) as stream:
        streamed = stream.get_final_completion().choices[0].message
    for message in (plain, streamed):
        assert json.loads(message.tool_calls[0].function.arguments) == {"to": MAIL}
    assert all(MAIL not in json.dumps(request) for request in provider_requests()[-2:])


def test_anthropic_hides_a_key(claude: anthropic.Anthropic, provider_requests):
    message = claude.messages.create(**claude_order(ASKED), **saying(f"It is {KEY}!"))
    assert message.content[0].text == f"It is {HIDDEN}!"
    with claude.messages.stream(**claude_order(ASKED), **saying(f"It is {KEY}!")) as stream:
        assert "".join(stream.text_stream) == f"It is {HIDDEN}!"
        assert stream.get_final_message().content[0].text == f"It is {HIDDEN}!"
    for request in provider_requests()[-2:]:
        assert request["messages"][0]["content"] == f"My API key is {HIDDEN}"


def test_anthropic_gets_its_own_back_in_arguments(claude: anthropic.Anthropic, provider_requests):
    order = claude_order(f"Write to {MAIL}.", **TOOL)
    plain = claude.messages.create(**order)
    with claude.messages.stream(**order) as stream:
        streamed = stream.get_final_message()
    for message in (plain, streamed):
        assert [block.input for block in message.content if block.type == "tool_use"] == [{"to": MAIL}]
    assert all(MAIL not in json.dumps(request) for request in provider_requests()[-2:])
