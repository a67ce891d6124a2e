"""Holds commands of `sprag` that pages show against what the program says about itself."""

import re
import subprocess
from functools import cache

import servers
from blocks import Block

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
# Where a command begins: not every `sprag` in a line is one.
COMMAND = re.compile(r"(?:^|[;&|(,])\s*(?:target/release/)?sprag((?: +[^#\n]*)?)")


@cache
def help_of(words: tuple[str, ...]) -> str:
    done = subprocess.run([servers.SPRAG, *words, "--help"], capture_output=True, text=True)
    assert done.returncode == 0, f"`sprag {' '.join(words)}` is no command:\n{done.stderr}"
    return done.stdout


@cache
def commands_under(words: tuple[str, ...]) -> frozenset[str]:
    listed = re.search(r"^Commands:\n((?:  .*\n)+)", help_of(words), re.M)
    return frozenset(re.findall(r"^  ([a-z-]+)", listed[1], re.M)) - {"help"} if listed else frozenset()


def assert_known(block: Block) -> None:
    """Each command exists, and each of its flags stands in its help or, in a line of usage, in the help of what is below it."""
    for line in block.text.replace("\\\n", " ").splitlines():
        code = line.split(" #")[0]
        for match in COMMAND.finditer(code):
            assert_line_known(block, match[1])


def assert_line_known(block: Block, rest: str) -> None:
    rest = rest.split(" -- ")[0]
    words: tuple[str, ...] = ()
    for word in re.findall(r"[^\s\[\]|,;]+", rest):
        if word in commands_under(words):
            words += (word,)
        elif not word.startswith("-"):
            break
    asked = rest.split()
    if asked and re.fullmatch(r"[a-z][a-z-]*", asked[0]):
        assert words, f"{block.name}: `sprag {asked[0]}` is no command"
    helps = help_of(words) + "".join(help_of(words[:1] + (below,)) for below in commands_under(words[:1]))
    for flag in FLAG.findall(rest):
        known = re.search(rf"(?<![\w-]){flag}(?![\w-])", helps)
        assert known, f"{block.name}: `sprag {' '.join(words)}` has no {flag}"


def assert_mentioned_known(page: str, text: str) -> None:
    """The same for commands in the running text, between backquotes."""
    for number, line in enumerate(text.splitlines(), 1):
        if "Not there yet" in line:
            continue
        for mention in re.findall(r"`sprag ([a-z][^`]*)`", line):
            assert_line_known(Block(page, number, "sh", line), mention)
