"""Starts the programs under test: the scripted provider, and Sprag before it, on free ports."""

import json
import os
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[3] / "target")) / "debug"
SPRAG = os.environ.get("SPRAG_BIN", str(TARGET / "sprag"))
MOCK = os.environ.get("SPRAG_MOCK_BIN", str(TARGET / "sprag-mock"))

# Why a stuck agent is stopped. Any other reason than a loop needs no detection: the first request is refused.
STOP = os.environ.get("SPRAG_TEST_STOP", "loop_detected")

TOKEN = "a-token-for-tests-only-0123456789abcdef"
# What the admin says when it kills a run.
KILL_REASON = "too-expensive"


@dataclass(frozen=True)
class Sprag:
    """A Sprag that runs, and what its admin can do."""

    url: str
    admin: str

    def kill(self, run: str) -> None:
        self.order("POST", f"runs/default/{urllib.parse.quote(run, safe='')}/kill", {"reason": KILL_REASON})

    def deactivate(self) -> None:
        self.order("PATCH", "agents/default", {"active": False})

    def ask(self, path: str) -> dict:
        headers = {"authorization": f"Bearer {TOKEN}"}
        with urllib.request.urlopen(urllib.request.Request(f"{self.admin}/api/v1/{path}", headers=headers)) as response:
            return json.load(response)

    def lift_all(self) -> None:
        """Takes every kill back."""
        for kill in self.ask("kills?limit=500")["items"]:
            self.order("DELETE", f"kills/{kill['id']}", {})

    def order(self, method: str, path: str, order: dict) -> None:
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        body = json.dumps(order).encode()
        request = urllib.request.Request(f"{self.admin}/api/v1/{path}", body, headers, method=method)
        with urllib.request.urlopen(request) as response:
            assert response.status == 200


def model(name: str) -> str:
    """The model of an agent that will be stopped."""
    return "nobody-knows" if STOP == "model_not_allowed" else name


def stopping_config(more: str) -> str:
    """A configuration under which a stuck agent is stopped."""
    return more + ('[prices]\nunpriced = "block"\n' if STOP == "model_not_allowed" else "")


@contextmanager
def mock_provider() -> Iterator[str]:
    """The provider's URL. It ends when its standard input closes, so it cannot outlive the tests."""
    with subprocess.Popen([MOCK, "--stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().strip()
        assert address, "the provider did not start"
        yield f"http://{address}"
        process.stdin.close()


@contextmanager
def sprag(provider: str, directory: Path, config: str = "") -> Iterator[Sprag]:
    """Starts Sprag. `provider` stands in for every API; `directory` holds configuration, data and log."""
    (directory / "sprag.toml").write_text(config)
    command = [SPRAG, "--proxy", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", str(directory / "data")]
    for name in ("openai", "anthropic", "gemini"):
        command += ["--provider", f"{name}={provider}"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SPRAG_")}
    clean["SPRAG_ADMIN_TOKEN"] = TOKEN
    log = directory / "sprag.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command, cwd=directory, env=clean, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True
        )
    with process:
        try:
            yield in_greeting(process, log)
        finally:
            process.terminate()


def in_greeting(process: subprocess.Popen, log: Path) -> Sprag:
    found: dict[str, str] = {}
    for line in process.stdout:
        if match := re.fullmatch(r"\s*(proxy|dashboard)\s+(http://\S+?)/?\s*", line):
            found[match[1]] = match[2]
        if len(found) == 2:
            return Sprag(found["proxy"], found["dashboard"])
    raise RuntimeError(f"Sprag did not start:\n{log.read_text()}")
