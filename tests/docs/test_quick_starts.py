"""Every quick start, from its first block to its last, as a reader would do it."""

from pathlib import Path

import pytest

import packages
from blocks import Block, blocks_of, quick_starts
from stage import AGENTS, Stage, assert_printed, stage

# Blocks that are not run, by page and how they begin, with the reason.
NOT_RUN = {("cline", "cline auth "): "Cline is 450 MB and leaves a program running behind; tried by hand with version 3.0.65"}
# Pages on which nothing calls Sprag, with the reason.
NO_CALLS = {
    "README": "it shows what the pages have in common",
    "cline": NOT_RUN["cline", "cline auth "],
}
# Pages that need a program of tests/clients/agents.
AGENT_OF = {"claude-code": "claude", "codex": "codex"}


@pytest.mark.parametrize("path", quick_starts(), ids=lambda path: path.stem)
def test_quick_start(path: Path, tmp_path: Path) -> None:
    blocks = blocks_of(path)
    if (agent := AGENT_OF.get(path.stem)) and not (AGENTS / ".bin" / agent).exists():
        pytest.skip("the agent could not be installed")
    with stage(tmp_path, path.stem) as here:
        play(here, blocks)
        if path.stem in NO_CALLS:
            pytest.skip(NO_CALLS[path.stem])
        passed, stopped = here.calls()
    assert passed, "no block of the page called Sprag"
    assert stopped, "no block of the page shows a stop"


@pytest.mark.parametrize(
    "block", [b for path in quick_starts() for b in blocks_of(path) if packages.installs(b)], ids=lambda block: block.name
)
def test_installation(block: Block) -> None:
    packages.assert_pinned(block)
    pytest.skip("what it installs is here already, pinned")


def is_not_run(block: Block) -> bool:
    return any(Path(block.page).stem == page and block.text.startswith(start) for page, start in NOT_RUN)


def test_list_is_current() -> None:
    listed = [block for path in quick_starts() for block in blocks_of(path) if is_not_run(block)]
    assert len(listed) == len(NOT_RUN)


def play(here: Stage, blocks: list[Block]) -> None:
    """Runs the blocks in order. A `text` block is what the block before it prints."""
    ran: tuple[Block, str] | None = None
    for block in blocks:
        if block.language == "text":
            assert ran, f"{block.name} shows what is printed, and there is no block before it that runs"
            assert_printed(ran[0], ran[1], block.text)
            ran = None
        elif packages.installs(block) or is_not_run(block):
            continue
        elif block.language in ("python", "js", "sh"):
            ran = block, here.run(block)
        else:
            assert block.file, f"{block.name}: nothing is done with this block; say which file it is"
            here.save(block, block.file)
