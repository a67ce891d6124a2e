"""What every suite uses: a Sprag before the scripted provider, and the answers as they came over the wire."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import httpx2
import pytest

import servers

os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"


@dataclass(frozen=True)
class Answer:
    """The head of one answer."""

    path: str
    status: int
    headers: httpx.Headers

    @property
    def run_id(self) -> str:
        return self.headers["x-sprag-run-id"]

    @property
    def step(self) -> int:
        return int(self.headers["x-sprag-step"])


@pytest.fixture(scope="session")
def provider():
    with servers.mock_provider() as url:
        yield url


@pytest.fixture(scope="session")
def sprag(provider: str, tmp_path_factory: pytest.TempPathFactory):
    directory: Path = tmp_path_factory.mktemp("sprag")
    with servers.sprag(provider, directory) as started:
        yield started.url


@pytest.fixture
def acts() -> dict[int, Callable[[], None]]:
    """What is to happen right before a request is sent, by its number from 1."""
    return {}


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, acts: dict[int, Callable[[], None]]) -> list[Answer]:
    """Every answer that an SDK gets during the test. Frameworks hide them, so they are noted where HTTP ends."""
    seen: list[Answer] = []
    for library in (httpx, httpx2):
        send = library.Client.send

        def noting(client, request, *args, send=send, **options):
            acts.get(len(seen) + 1, lambda: None)()
            response = send(client, request, *args, **options)
            seen.append(Answer(request.url.path, response.status_code, response.headers))
            return response

        monkeypatch.setattr(library.Client, "send", noting)
    return seen


@pytest.fixture
def provider_requests(provider: str):
    """The bodies that the provider has got, on call."""
    requests = lambda: httpx.get(f"{provider}/__requests").json()  # noqa: E731
    return lambda: [json.loads(request["body"]) for request in requests() if request["body"].startswith("{")]


def assert_one_run(answers: list[Answer], steps: int) -> None:
    """All answers belong to one run and count its steps from 1."""
    assert [answer.step for answer in answers] == list(range(1, steps + 1))
    assert len({answer.run_id for answer in answers}) == 1


def assert_metadata(metadata: dict, step: int, provider: str, answer: Answer | None = None) -> None:
    """The object that Sprag adds, as an SDK handed it out."""
    assert metadata["step"] == metadata["total_run_steps"] == step
    assert metadata["provider"] == provider
    assert metadata["cost_usd"] > 0
    assert metadata["total_run_cost"] >= metadata["cost_usd"]
    assert metadata["overhead_ms"] >= 0
    assert metadata["warning"] is None
    if answer is not None:
        assert metadata["run_id"] == answer.run_id
        assert metadata["step"] == answer.step
