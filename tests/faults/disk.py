"""A small file system of its own under a node's data, which can be filled to the last byte."""

import os
import subprocess
from pathlib import Path

SIZE = "8m"
PIECE = bytes(4096)


def cannot_be_made(at: Path) -> str | None:
    """Why not, by trying."""
    try:
        Disk(at).close()
    except PermissionError as problem:
        return str(problem)
    return None


class Disk:
    def __init__(self, at: Path):
        self.at = at
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(at)], capture_output=True, text=True)
        if mounted.returncode != 0:
            raise PermissionError(f"no right to mount a small file system; run it as root ({mounted.stderr.strip()})")

    def fill(self) -> None:
        with (self.at / "filler").open("wb", buffering=0) as filler:
            try:
                while filler.write(PIECE):
                    os.fsync(filler.fileno())
            except OSError:
                pass

    def free(self) -> None:
        (self.at / "filler").unlink()

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.at)], check=False)
