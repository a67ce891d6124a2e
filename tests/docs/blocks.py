"""Finds the code in a page: what is fenced, and what is indented and looks like commands.

A comment on the line before a fence says more about it: `<!-- file: NAME -->` saves the block under that name, `~/` being the home.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)\s*$")
FILE_MARK = re.compile(r"^<!-- file: (\S+) -->$")


@dataclass(frozen=True)
class Block:
    """One piece of code, with where it stands."""

    page: str
    line: int
    language: str
    text: str
    file: str | None = None

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def first(self) -> str:
        """The first line, by which lists name a block: numbers of lines change too often."""
        return self.text.splitlines()[0] if self.text else ""


def blocks_of(path: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    page = str(path.relative_to(ROOT))
    found: list[Block] = []
    opened: tuple[int, str, str | None] | None = None
    inside: list[str] = []
    before = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if opened is None and fence:
            mark = FILE_MARK.match(before)
            opened, inside = (number, fence[1], mark[1] if mark else None), []
        elif opened is not None and line == "```":
            found.append(Block(page, opened[0], opened[1], "\n".join(inside) + "\n", opened[2]))
            opened = None
        elif opened is not None:
            inside.append(line)
        before = line
    assert opened is None, f"{page}:{opened[0]}: the block is never closed" if opened else ""
    return found


def indented_commands_of(path: Path) -> list[Block]:
    """Lines that are indented as code and begin with `sprag`, or with a prompt and `sprag`. Joined lines stay joined."""
    page = str(path.relative_to(ROOT))
    found = []
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fenced ^= line.startswith("```")
        if not fenced and (match := re.match(r"^    (?:\$ )?(sprag\b.*)$", line)):
            found.append(Block(page, number, "sh", match[1] + "\n"))
    return found


def pages() -> list[Path]:
    """Every page for users, apart from the quick starts."""
    top = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return top + sorted((ROOT / "docs").glob("*.md"))


def quick_starts() -> list[Path]:
    return sorted((ROOT / "docs" / "quickstart").glob("*.md"))
