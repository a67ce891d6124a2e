"""ClickHouse's own engine, behind the HTTP front that the other tests use too."""

import os
import subprocess
from pathlib import Path

from ports import free_port

ROOT = Path(__file__).parents[2]
FRONT = ROOT / "crates" / "testkit" / "clickhouse" / "front.py"
PYTHON = Path(os.environ.get("CHDB_PYTHON", ROOT / ".test-env" / "clickhouse" / "bin" / "python"))


def is_missing() -> str | None:
    """Why there is no engine, and how to get one."""
    if not PYTHON.is_file():
        return f"there is no {PYTHON.name} with ClickHouse's engine; scripts/test installs one, or CHDB_PYTHON names one with chdb-core"
    found = subprocess.run([PYTHON, "-c", "import chdb"], capture_output=True, text=True)
    return None if found.returncode == 0 else f"{PYTHON} has no chdb: `pip install chdb-core` there"


class ClickHouseServer:
    """Its data outlives it: what was inserted is there when it starts again."""

    def __init__(self, directory: Path):
        directory.mkdir()
        self.directory = directory
        self.port = free_port()
        self.start()

    def start(self) -> None:
        command = [PYTHON, FRONT, self.directory / "data", "--port", str(self.port)]
        with (self.directory / "front.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        said = self.process.stdout.readline().split()
        assert said[:1] == ["listening"], f"ClickHouse did not start: {(self.directory / 'front.log').read_text()}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def close(self) -> None:
        self.kill()
