"""Every quick start, from its first block to its last, as a reader would do it."""

from pathlib import Path

import pytest

import packages
from blocks import Block, blocks_of, quick_starts
from stage import Stage, assert_printed, stage

# Blocks that are not run, by page and first line, with the reason.
NOT_RUN: dict[tuple[str, str], str] = {}
# Pages on which nothing calls Sprag, with the reason.
NO_CALLS = {
    "README": "it shows what the pages have in common",
    "cline": "Cline is an extension of an editor: there is no way to drive it from here",
}


@pytest.mark.parametrize("path", quick_starts(), ids=lambda path: path.stem)
def test_quick_start(path: Path, tmp_path: Path) -> None:
    blocks = blocks_of(path)
    with stage(tmp_path, path.stem) as here:
        play(here, blocks)
        if path.stem in NO_CALLS:
            pytest.skip(NO_CALLS[path.stem])
        passed, stopped = here.calls()
    assert passed, "no block of the page called Sprag"
    assert stopped, "no block of the page shows a stop"


def play(here: Stage, blocks: list[Block]) -> None:
    """Runs the blocks in order. A `text` block is what the block before it prints."""
    ran: tuple[Block, str] | None = None
    for block in blocks:
        if block.language == "text":
            assert ran, f"{block.name} shows what is printed, and there is no block before it that runs"
            assert_printed(ran[0], ran[1], block.text)
            ran = None
        elif (block.page, block.first) in NOT_RUN:
            print(f"{block.name} is not run: {NOT_RUN[block.page, block.first]}")
        elif packages.installs(block):
            packages.assert_pinned(block)
            print(f"{block.name} is not run: what it installs is here already, pinned")
        elif block.language in ("python", "js", "sh"):
            ran = block, here.run(block)
        else:
            assert block.file, f"{block.name}: nothing is done with this block; say which file it is"
            here.save(block, block.file)
