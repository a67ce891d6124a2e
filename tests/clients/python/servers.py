"""Starts the programs under test: the scripted provider, and Sprag before it, on free ports."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[3] / "target")) / "debug"
SPRAG = os.environ.get("SPRAG_BIN", str(TARGET / "sprag"))
MOCK = os.environ.get("SPRAG_MOCK_BIN", str(TARGET / "sprag-mock"))


@contextmanager
def mock_provider() -> Iterator[str]:
    """The provider's URL. It ends when its standard input closes, so it cannot outlive the tests."""
    with subprocess.Popen([MOCK, "--stdin"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().strip()
        assert address, "the provider did not start"
        yield f"http://{address}"
        process.stdin.close()


@contextmanager
def sprag(provider: str, directory: Path) -> Iterator[str]:
    """The proxy's URL. `provider` stands in for every API; `directory` holds the data and the log."""
    command = [SPRAG, "--proxy", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", str(directory / "data")]
    for name in ("openai", "anthropic", "gemini"):
        command += ["--provider", f"{name}={provider}"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SPRAG_")}
    log = directory / "sprag.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command, cwd=directory, env=clean, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True
        )
    with process:
        try:
            yield proxy_in_greeting(process, log)
        finally:
            process.terminate()


def proxy_in_greeting(process: subprocess.Popen, log: Path) -> str:
    for line in process.stdout:
        if found := re.fullmatch(r"\s*proxy\s+(http://\S+)\s*", line):
            return found[1]
    raise RuntimeError(f"Sprag did not start:\n{log.read_text()}")
