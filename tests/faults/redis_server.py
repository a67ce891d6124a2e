"""A real Redis on a free port, and everything that can happen to it.

SPRAG_TEST_REDIS names the program of another server that takes the same options, such as `valkey-server`.
"""

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from ports import free_port
from waiting import wait_until

SERVER = os.environ.get("SPRAG_TEST_REDIS", "redis-server")
HOW_TO_INSTALL = f"{SERVER} is not there; `apt-get install redis-server` gives one (scripts/test does it)"


def is_installed() -> bool:
    return shutil.which(SERVER) is not None


def version() -> str:
    """As in `Redis server v=7.0.15`."""
    return " ".join(subprocess.run([SERVER, "--version"], capture_output=True, text=True, check=True).stdout.split()[:3])


class RedisServer:
    """Keeps what it has on disk only when it is told to: a Redis that was killed comes back empty otherwise."""

    def __init__(self, directory: Path, keeps: bool = False, replica_of: int | None = None):
        directory.mkdir()
        self.port = free_port()
        self.directory = directory
        self.options = ["--appendonly", "yes" if keeps else "no", "--appendfsync", "always"]
        if replica_of is not None:
            self.options += ["--replicaof", "127.0.0.1", str(replica_of)]
        # Otherwise a primary waits some seconds for more replicas.
        self.options += ["--repl-diskless-sync-delay", "0"]
        self.start()

    def start(self) -> None:
        command = [SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", "."]
        log = (self.directory / "redis.log").open("ab")
        self.process = subprocess.Popen(command + self.options, cwd=self.directory, stdout=log, stderr=log)
        wait_until(self.answers, "Redis to answer")

    def answers(self) -> bool:
        try:
            return self.command("PING") == "PONG"
        except OSError:
            return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def flush(self) -> None:
        self.command("FLUSHALL")

    def follows(self) -> bool:
        """Whether this replica has all that its primary has."""
        return "master_link_status:up" in self.command("INFO", "replication")

    def promote(self) -> None:
        self.command("REPLICAOF", "NO", "ONE")

    def run(self, script: str) -> str:
        """A Lua script without keys."""
        return self.command("EVAL", script, "0")

    def command(self, *words: str) -> str:
        """One command on a connection of its own; errors are raised."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
            parts = [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
            connection.sendall(f"*{len(words)}\r\n{''.join(parts)}".encode())
            answer = connection.makefile("rb")
            first = answer.readline().decode().rstrip()
            if not first or first[0] == "-":
                raise OSError(f"Redis says {first!r} to {words[0]}")
            return answer.read(int(first[1:])).decode() if first[0] == "$" else first[1:]

    def close(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.kill()
