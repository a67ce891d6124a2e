"""One Sprag of several: a process with a folder of its own, which is killed and started again at the same addresses."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from ports import free_port

sys.path.insert(0, str(Path(__file__).parents[1] / "clients" / "python"))
from servers import SPRAG, TOKEN, Sprag, in_greeting  # noqa: E402

PATIENCE_SECONDS = 30


class Node:
    """`program` is the build that it runs; `start` may name another one."""

    def __init__(self, number: int, directory: Path, provider: str, config: str):
        self.number = number
        self.directory = directory
        self.provider = provider
        self.data = directory / "data"
        self.data.mkdir(parents=True)
        (directory / "sprag.toml").write_text(config)
        self.listen = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        self.process: subprocess.Popen | None = None

    def launch(self, program: str = SPRAG) -> None:
        """Starts it without waiting, so that several start at once. `arrive` must follow."""
        proxy, admin = self.listen
        command = [program, "--proxy", proxy, "--admin", admin, "--data", str(self.data), "--provider", f"openai={self.provider}"]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SPRAG_")}
        clean["SPRAG_ADMIN_TOKEN"] = TOKEN
        with self.log.open("ab") as stderr:
            self.process = subprocess.Popen(
                command, cwd=self.directory, env=clean, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True
            )

    def arrive(self) -> None:
        self.sprag: Sprag = in_greeting(self.process, self.log)
        self.listen = [self.sprag.url.removeprefix("http://"), self.sprag.admin.removeprefix("http://")]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def drain(self) -> None:
        """Ends it in good order."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=PATIENCE_SECONDS)
        assert code == 0, f"node {self.number} ended with {code} when it was asked to:\n{self.log_end()}"

    @property
    def log(self) -> Path:
        return self.directory / "sprag.log"

    def log_end(self) -> str:
        """The last lines, without those about stops: the load is full of them."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join([line for line in lines if '"killed"' not in line][-8:])

    @property
    def host(self) -> str:
        return self.listen[0]

    def ask(self, path: str) -> dict:
        return self.sprag.ask(path)

    def kill_run(self, agent: str, run: str) -> None:
        self.sprag.order("POST", f"runs/{agent}/{run}/kill", {"reason": "a test of faults"})

    def status(self) -> dict:
        return self.ask("status")

    def is_well(self) -> bool:
        """By its own word: it records what passes, and what is shared reaches the others."""
        try:
            with urllib.request.urlopen(f"{self.sprag.admin}/readyz", timeout=PATIENCE_SECONDS) as answer:
                told = json.load(answer)
                return told.get("shared_state", {}).get("connected", True) and not told.get("behind")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def can_read(self) -> bool:
        """Whether the record can be read."""
        try:
            self.ask("events?limit=1")
        except OSError:
            return False
        return True

    def is_quiet(self) -> bool:
        """Nothing is under way, and nothing waits to be recorded or told."""
        status = self.status()
        recording, state = status["recording"], status.get("shared_state", {})
        waiting = [status["in_flight"], recording["waiting_bytes"], recording.get("shared", {}).get("waiting", 0)]
        return not any(waiting + [state.get("untold_calls", 0), state.get("untold_runs", 0)])

    def events(self) -> list[dict]:
        """Everything on record."""
        headers = {"authorization": f"Bearer {TOKEN}"}
        request = urllib.request.Request(f"{self.sprag.admin}/api/v1/events/export?format=jsonl", headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return [json.loads(line) for line in answer]

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process is not None:
            self.process.stdout.close()
