"""A home for one page: a Sprag before the scripted provider, and a shell in which the page's blocks run one after the other.

What a reader sees is what runs. Only the two addresses are replaced, because 7070 may be taken here; keys and the way to the admin
side come from the environment, as they would for the reader.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import servers
from blocks import ROOT, Block

ENVIRONMENTS = Path(os.environ.get("SPRAG_DOCS_ENV", ROOT / ".test-env" / "docs"))
NODE_MODULES = ROOT / "tests" / "clients" / "node" / "node_modules"
AGENTS = ROOT / "tests" / "clients" / "agents" / "node_modules"
# The frameworks want an older SDK than the one that the other pages show.
WITH_FRAMEWORKS = {"crewai", "llamaindex"}
# Longer than any block takes on a busy machine.
PATIENCE_SECONDS = 300

# Keys that open nothing, and nothing sent to anybody but Sprag.
READERS_ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-test",
    "ANTHROPIC_API_KEY": "sk-ant-test",
    "GEMINI_API_KEY": "test",
    "NO_PROXY": "127.0.0.1",
    "no_proxy": "127.0.0.1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_STORAGE_DIR": "crewai",
    "OTEL_SDK_DISABLED": "true",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}


@dataclass
class Stage:
    """Where the blocks of a page run. `variables` is what the shell has exported so far."""

    home: Path
    sprag: servers.Sprag
    provider: str
    variables: dict[str, str]

    def as_run(self, text: str) -> str:
        """The text with the addresses of this Sprag."""
        proxy, admin = (url.removeprefix("http://") for url in (self.sprag.url, self.sprag.admin))
        text = text.replace("127.0.0.1:7070", proxy).replace("127.0.0.1:7071", admin)
        return text.replace("target/release/sprag", "sprag")

    def as_read(self, text: str) -> str:
        """What a program printed, with the addresses that the page shows."""
        return text.replace(self.sprag.url, "http://127.0.0.1:7070").replace(self.sprag.admin, "http://127.0.0.1:7071")

    def save(self, block: Block, name: str) -> Path:
        path = self.home / name.removeprefix("~/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.as_run(block.text))
        return path

    def run(self, block: Block) -> str:
        """Runs a block to its end and gives what it printed. Fails where its exit code is not 0."""
        self.wait_until_recorded()
        if block.language == "sh":
            if block.file:
                self.save(block, block.file)
            return self.shell(block)
        suffix = {"python": "py", "js": "mjs"}[block.language]
        path = self.save(block, block.file or f"line-{block.line}.{suffix}")
        return self.finish(block, [{"py": "python", "mjs": "node"}[suffix], path.name])

    def shell(self, block: Block) -> str:
        exported = self.home / ".exported"
        script = f"set -euo pipefail\n{self.as_run(block.text)}\nenv -0 >{exported}\n"
        printed = self.finish(block, ["bash", "-c", script])
        pairs = (pair.partition("=") for pair in exported.read_text().split("\0") if pair)
        self.variables = {name: value for name, _, value in pairs if name not in ("_", "SHLVL")}
        return printed

    def finish(self, block: Block, command: list[str]) -> str:
        done = subprocess.run(
            command,
            cwd=self.home,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, f"{block.name} ended with {done.returncode}:\n{block.text}\n{done.stdout}"
        return self.as_read(done.stdout)

    def wait_until_recorded(self) -> None:
        """A run is found by its name once its call is on record, which a reader is too slow to notice."""
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            status = self.sprag.ask("status")
            if status["in_flight"] == 0 and status["recording"]["waiting_bytes"] == 0:
                return
        raise TimeoutError("calls are not recorded")

    def calls(self) -> tuple[int, int]:
        """How many calls went through this Sprag, and how many it stopped."""
        self.wait_until_recorded()
        events = self.sprag.ask("events?limit=500&kind=llm_call")["items"]
        stopped = sum(event["blocked"] for event in events)
        return len(events) - stopped, stopped


@contextmanager
def stage(home: Path, page: str, config: str = "") -> Iterator[Stage]:
    """A stage with its own Sprag. It listens where the page says, but for the port."""
    with servers.mock_provider() as provider, servers.sprag(provider, home, config) as sprag:
        programs = home / "bin"
        programs.mkdir()
        (programs / "sprag").symlink_to(Path(servers.SPRAG).resolve())
        (home / "node_modules").symlink_to(NODE_MODULES)
        python = ENVIRONMENTS / ("frameworks" if page in WITH_FRAMEWORKS else "sdks")
        node = Path(sys.executable).parent
        path = [programs, python / "bin", AGENTS / ".bin", node, os.environ["PATH"]]
        variables = READERS_ENVIRONMENT | {
            "HOME": str(home),
            "PATH": ":".join(map(str, path)),
            "SPRAG_ADMIN_LISTEN": sprag.admin.removeprefix("http://"),
            "SPRAG_ADMIN_TOKEN": servers.TOKEN,
            "SPRAG_DATA_DIR": str(home / "data"),
        }
        yield Stage(home, sprag, provider, variables)


def assert_printed(block: Block, printed: str, expected: str) -> None:
    """`…` in what a page shows stands for anything."""
    pattern = r"[\s\S]*?".join(re.escape(part) for part in expected.strip().split("…"))
    shown = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    assert re.fullmatch(pattern, shown), f"{block.name} prints\n{shown}\nand the page shows\n{expected}"
