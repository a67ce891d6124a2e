"""Blocks that install something. They are not run: what they name must be pinned and installed here already."""

import json
import re

from blocks import ROOT, Block

HERE = ROOT / "tests" / "docs"
CLIENTS = ROOT / "tests" / "clients"


def installs(block: Block) -> bool:
    return block.language == "sh" and block.text.startswith(("pip install ", "npm install "))


def assert_pinned(block: Block) -> None:
    (line,) = block.text.splitlines()
    manager, _, *names = line.split()
    names = [name.strip("'\"") for name in names if not name.startswith("-")]
    known = python_packages() if manager == "pip" else node_packages()
    missing = [name for name in names if name.split("[")[0] not in known]
    assert not missing, f"{block.name} installs {missing}, which nothing here has tried"


def python_packages() -> set[str]:
    lists = [HERE / "sdks.txt", HERE / "frameworks.txt"]
    return {match[1] for file in lists for match in re.finditer(r"^([\w.-]+)(?:\[[^\]]*\])?==", file.read_text(), re.M)}


def node_packages() -> set[str]:
    manifests = [CLIENTS / "node" / "package.json", CLIENTS / "agents" / "package.json"]
    return {name for file in manifests for name in json.loads(file.read_text())["dependencies"]}
