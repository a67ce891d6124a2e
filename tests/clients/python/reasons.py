"""Every way to be stopped, and one call in every form that the SDKs have.

The table and the configuration are shared with the suites in Rust and Node: `../reasons`.
"""

import datetime
import json
from dataclasses import dataclass, field
from pathlib import Path

import anthropic
import openai
from google import genai
from google.genai import errors, types

import servers

SHARED = Path(__file__).parents[1] / "reasons"
# What every call uses: 60 cents. No budget of the table pays for two.
USAGE = "input=60 output=0"


@dataclass(frozen=True)
class Case:
    """One row of the table. The agent has its name."""

    case: str
    reason: str
    status: int
    code: str
    fields: dict
    says: str = ""
    before: str = "nothing"
    act: str | None = None
    key: str = "sk-test"
    require_keys: bool = False
    has_run: bool = True
    waits: bool = False
    not_for: list[str] = field(default_factory=list)


CASES = [Case(**row) for row in json.loads((SHARED / "cases.json").read_text())]


def config(require_keys: bool) -> str:
    closed = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3)
    shared = (SHARED / "sprag.toml").read_text().replace("CLOSED", closed.strftime("%a").lower())
    return f"{shared}\n[proxy]\nrequire_keys = {str(require_keys).lower()}\n"


@dataclass(frozen=True)
class Caller:
    """One call with what the SDK was told: where, as whom, in which run."""

    url: str
    case: Case
    run: str

    @property
    def base(self) -> str:
        return f"{self.url}/agents/{self.case.case}"

    @property
    def headers(self) -> dict[str, str]:
        return {"x-sprag-run-id": self.run, "x-mock-usage": USAGE}

    @property
    def prompt(self) -> str:
        return f"please tell me about {self.run} {self.case.says}".rstrip()

    @property
    def messages(self) -> list[dict]:
        return [{"role": "user", "content": self.prompt}]

    def openai(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.base}/v1", api_key=self.case.key, default_headers=self.headers)

    def anthropic(self) -> anthropic.Anthropic:
        return anthropic.Anthropic(base_url=self.base, api_key=self.case.key, default_headers=self.headers)

    def gemini(self) -> genai.Client:
        return genai.Client(api_key=self.case.key, http_options={"base_url": self.base, "headers": self.headers})


def openai_chat(caller: Caller, stream: bool) -> str:
    request = {"model": "gpt-4o", "messages": caller.messages}
    with caller.openai() as client:
        if not stream:
            answer = client.chat.completions.create(**request)
            return said(answer.choices[0].message.content, answer.model, answer.usage.total_tokens)
        chunks = list(client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True}))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        return said(text, chunks[-1].model, chunks[-1].usage.total_tokens)


def openai_completions(caller: Caller, stream: bool) -> str:
    request = {"model": "gpt-3.5-turbo-instruct", "prompt": caller.prompt}
    with caller.openai() as client:
        if not stream:
            answer = client.completions.create(**request)
            return said(answer.choices[0].text, answer.model, answer.usage.total_tokens)
        chunks = list(client.completions.create(**request, stream=True, stream_options={"include_usage": True}))
        text = "".join(chunk.choices[0].text for chunk in chunks if chunk.choices)
        return said(text, chunks[-1].model, chunks[-1].usage.total_tokens)


def openai_responses(caller: Caller, stream: bool) -> str:
    request = {"model": "gpt-4o", "input": caller.prompt}
    with caller.openai() as client:
        if not stream:
            answer = client.responses.create(**request)
        else:
            with client.responses.stream(**request) as events:
                answer = events.get_final_response()
        return said(answer.output_text, answer.model, answer.usage.total_tokens)


def openai_embeddings(caller: Caller, stream: bool) -> str:
    with caller.openai() as client:
        client.embeddings.create(model="text-embedding-3-small", input=caller.prompt)
    return ""


def anthropic_messages(caller: Caller, stream: bool) -> str:
    request = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": caller.messages}
    with caller.anthropic() as client:
        if not stream:
            answer = client.messages.create(**request)
        else:
            with client.messages.stream(**request) as events:
                answer = events.get_final_message()
        return said(answer.content[0].text, answer.model, answer.usage.input_tokens + answer.usage.output_tokens)


def google_genai(caller: Caller, stream: bool) -> str:
    request = {"model": "gemini-2.5-flash", "contents": caller.prompt}
    with caller.gemini() as client:
        if not stream:
            chunks: list[types.GenerateContentResponse] = [client.models.generate_content(**request)]
        else:
            chunks = list(client.models.generate_content_stream(**request))
        last = chunks[-1]
        text = "".join(chunk.text or "" for chunk in chunks)
        return said(text, last.model_version, last.usage_metadata.total_token_count)


def said(text: str, model: str, tokens: int) -> str:
    """The words of an answer. Those of a stop come from no model and cost nothing."""
    if "[sprag: " in text:
        assert (model, tokens) == ("sprag-policy", 0)
    return text


def kill(sprag: servers.Sprag, case: Case, run: str, pause: bool) -> None:
    order = {"scope": f"run:{case.case}/{run}", "reason": servers.KILL_REASON, "pause": pause}
    sprag.order("POST", "kills", order)


# Every form in which a call can be made, with its dialect.
CALLS = [
    (openai_chat, "openai_chat", False),
    (openai_chat, "openai_chat", True),
    (openai_completions, "openai_completions", False),
    (openai_completions, "openai_completions", True),
    (openai_responses, "openai_responses", False),
    (openai_responses, "openai_responses", True),
    (openai_embeddings, "openai_embeddings", False),
    (anthropic_messages, "anthropic", False),
    (anthropic_messages, "anthropic", True),
    (google_genai, "gemini", False),
    (google_genai, "gemini", True),
]

# What each SDK raises, by status.
RAISED = {
    "openai": {
        401: openai.AuthenticationError,
        402: openai.APIStatusError,
        403: openai.PermissionDeniedError,
        429: openai.RateLimitError,
    },
    "anthropic": {
        401: anthropic.AuthenticationError,
        402: anthropic.APIStatusError,
        403: anthropic.PermissionDeniedError,
        429: anthropic.RateLimitError,
    },
    "gemini": {status: errors.ClientError for status in (401, 402, 403, 429)},
}
