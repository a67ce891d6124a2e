"""Every command and every configuration on the pages for users: run where that can be, otherwise held against the program.

A block is run unless it stands in `NOT_RUN`. Names that pages use (`bot`, `billing`, `RUN`) exist here, so that the text is run as it is.
"""

import json
import re
import subprocess
import urllib.request
from pathlib import Path

import pytest

import commands
import servers
from blocks import ROOT, Block, blocks_of, indented_commands_of, pages, quick_starts
from stage import Stage, assert_printed, stage

BUILDS = "it builds the project, which has happened before"
NO_RELEASE = "there is no release here; tests/packaging/check makes one and installs it"
FRAGMENT = "it is a piece of a program; the same exceptions are caught on the pages of the quick starts"
# Blocks that are not run, by page and first line, with the reason.
NOT_RUN = {
    ("README.md", "cargo run --release"): BUILDS,
    ("README.md", "$ cargo run --release -- demo"): "the demo is played by tests/first_steps and tests/browser",
    ("README.md", "$ sprag run --budget 1.00 -- python agent.py"): "a stuck agent under it is in tests/clients/python/test_run_command.py",
    ("README.md", "scripts/test"): "it is what runs this",
    ("CONTRIBUTING.md", "cargo run --release          # the program"): BUILDS,
    ("docs/deployment.md", "scripts/release --target x86_64-unknown-linux-musl"): NO_RELEASE,
    ("docs/deployment.md", "sh install.sh sprag-0.1.0-x86_64-unknown-linux-musl.tar.gz --service"): NO_RELEASE,
    ("docs/deployment.md", "sudo sprag status --data /var/lib/sprag"): "there is no service here",
    ("docs/deployment.md", "docker compose up --build --detach"): "there is no Docker here",
    ("docs/deployment.md", "kubectl create namespace sprag"): "there is no cluster here",
    ("docs/failure-modes.md", "python3 tests/faults/faults.py --only redis-killed"): "scripts/test tries every fault in a step of its own",
    ("docs/clickhouse.md", "cargo test --release -p sprag --test admin shared_speed -- --ignored --nocapture"): BUILDS,
    ("docs/policy.md", "cargo test --release -p sprag --lib judging_cost -- --ignored --nocapture"): BUILDS,
    ("docs/scaling.md", "bench/cluster"): BUILDS,
    ("docs/shared-state.md", "python3 tests/faults/together.py"): "scripts/test does it in a step of its own",
    ("docs/stops.md", "except openai.APIStatusError as stop:"): FRAGMENT,
    ("docs/stops.md", "catch (stop) {                                       // OpenAI.APIError, Anthropic.APIError"): FRAGMENT,
    ("docs/replay.md", "sprag replay --since 30d"): "there are no sessions of any agent here",
    ("docs/replay.md", "sprag replay ~/.claude/projects/my-project"): "there are no sessions of Claude Code here",
    ("docs/replay.md", "sprag replay ~/.codex/sessions/2026/03/02/*.jsonl --preset strict"): "there are no sessions of Codex here",
}
# Commands inside of blocks that are left out.
LINES_NOT_RUN = {"sprag top": "it fills a terminal until somebody leaves it"}

# What the names on the pages stand for.
CONFIG = """
[agents.billing.budget]
daily_limit = 5
[agents.s2.budget]
max_run_cost = 1
[budget]
monthly_limit = 500
"""
# Files and variables that configurations name.
FILES_ON_PAGES = re.compile(r'"(/[\w./-]+\.(?:pem|json)|/run/secrets/\w+)"')
# Ends of names that look like keys and are files.
NOT_A_KEY = {"db", "rs", "md", "tsv"}
RUNNABLE = ("sh", "python", "js")
# What else is fenced: configurations are checked, the rest is shown.
SHOWN = ("toml", "json", "text")


def all_blocks() -> list[Block]:
    return [block for path in pages() for block in blocks_of(path)]


def named(block: Block) -> str:
    return block.name


def is_console(block: Block) -> bool:
    return block.language == "text" and block.text.startswith("$ ")


def is_usage(block: Block) -> bool:
    """A line that says how a command is used, with brackets and choices, and cannot be run as it is."""
    return bool(re.search(r"[\[|…]|, sprag | [A-Z]{2,}\b", block.text))


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory):
    home = tmp_path_factory.mktemp("pages")
    with stage(home, "pages", CONFIG) as started:
        (home / "fixtures").symlink_to(ROOT / "fixtures")
        (home / "app.env").write_text("LOG_LEVEL=info\n")
        (home / "agent.py").write_text("print('done')\n")
        (home / "slack-webhook").write_text("https://hooks.slack.com/services/T/B/x\n")
        started.variables["TOKEN"] = servers.TOKEN
        for agent, run in (("default", "RUN"), ("bot", "task-7"), ("billing", "invoice-1"), ("s2", "st")):
            call(started, agent, run)
        yield started


def call(here: Stage, agent: str, run: str) -> None:
    """One call of an agent, so that what a page names is there."""
    body = b'{"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}'
    headers = {"content-type": "application/json", "authorization": "Bearer sk-test", "x-sprag-run-id": run}
    url = f"{here.sprag.url}/agents/{agent}/v1/chat/completions"
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as response:
        assert response.status == 200


@pytest.mark.parametrize("block", [b for b in all_blocks() if b.language in RUNNABLE], ids=named)
def test_code(here: Stage, block: Block) -> None:
    if block.language == "sh":
        assert subprocess.run(["bash", "-n"], input=block.text, text=True).returncode == 0
        commands.assert_known(block)
    if reason := NOT_RUN.get((block.page, block.first)):
        pytest.skip(reason)
    here.run(without_lines(block))
    here.sprag.lift_all()


@pytest.mark.parametrize("line", LINES_NOT_RUN)
def test_line_that_is_not_run(line: str) -> None:
    assert any(line in map(command_of, block.text.splitlines()) for block in all_blocks()), "it is on no page any more"
    pytest.skip(LINES_NOT_RUN[line])


def without_lines(block: Block) -> Block:
    kept = [line for line in block.text.splitlines() if command_of(line) not in LINES_NOT_RUN]
    return Block(block.page, block.line, block.language, "\n".join(kept) + "\n", block.file)


def command_of(line: str) -> str:
    return line.split(" #")[0].strip()


@pytest.mark.parametrize("block", [b for b in all_blocks() if is_console(b)], ids=named)
def test_console(here: Stage, block: Block) -> None:
    if reason := NOT_RUN.get((block.page, block.first)):
        pytest.skip(reason)
    command, _, expected = block.text.removeprefix("$ ").partition("\n")
    assert_printed(block, squeeze(here.run(Block(block.page, block.line, "sh", command))), squeeze(expected))


def squeeze(text: str) -> str:
    """Columns are as wide as their widest row, and pages leave rows out."""
    return re.sub(r" +", " ", text)


@pytest.mark.parametrize("block", [b for path in pages() for b in indented_commands_of(path)], ids=named)
def test_indented_command(here: Stage, block: Block) -> None:
    commands.assert_known(block)
    if is_usage(block):
        return
    if reason := NOT_RUN.get((block.page, block.first)):
        pytest.skip(reason)
    here.run(block)


@pytest.mark.parametrize("block", [b for b in all_blocks() if b.language == "toml"], ids=named)
def test_configuration(tmp_path: Path, block: Block) -> None:
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OPENAI_API_KEY": "sk-test", "JWT_SECRET": "0123456789abcdef"}
    text = FILES_ON_PAGES.sub(lambda match: f'"{stand_in(tmp_path, match[1])}"', block.text)
    (tmp_path / "sprag.toml").write_text(text)
    done = subprocess.run([servers.SPRAG, "check", "sprag.toml"], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, f"{block.name}:\n{done.stdout}{done.stderr}"


def stand_in(folder: Path, name: str) -> Path:
    """A file in the place of one that a page names and this machine has not."""
    path = folder / Path(name).name
    path.write_text("a-secret-of-32-characters-0123456")
    if path.suffix == ".pem":
        bundle = Path("/etc/ssl/certs/ca-certificates.crt").read_text()
        path.write_text(bundle[: bundle.index("-----END CERTIFICATE-----")] + "-----END CERTIFICATE-----\n")
    return path


@pytest.mark.parametrize("path", pages() + quick_starts(), ids=lambda path: path.stem)
def test_mentioned_commands(path: Path) -> None:
    commands.assert_mentioned_known(str(path.relative_to(ROOT)), path.read_text())


@pytest.fixture(scope="module")
def schema() -> dict:
    return json.loads(subprocess.run([servers.SPRAG, "schema"], check=True, stdout=subprocess.PIPE).stdout)


@pytest.mark.parametrize("path", pages() + quick_starts(), ids=lambda path: path.stem)
def test_mentioned_keys(path: Path, schema: dict) -> None:
    """Dotted keys of the configuration in the running text exist."""
    for key in re.findall(r"`([a-z_]+(?:\.[a-zA-Z_-]+)+)`", without_fences(path)):
        parts = key.split(".")
        if parts[0] in schema["properties"] and parts[-1] not in NOT_A_KEY:
            assert has_key(schema, parts), f"{path.name} names the key {key}, which does not exist"


def has_key(schema: dict, parts: list[str]) -> bool:
    """Whether a path of keys leads anywhere. In a table with free names (`agents.NAME`) any name does."""
    if not parts:
        return True
    if "$ref" in schema:
        raise AssertionError("the schema has references now: follow them here")
    under = schema.get("properties", {}).get(parts[0]) or schema.get("additionalProperties")
    choices = [under, *under.get("anyOf", [])] if isinstance(under, dict) else []
    return any(has_key(choice, parts[1:]) for choice in choices)


@pytest.mark.parametrize("path", pages() + quick_starts(), ids=lambda path: path.stem)
def test_links(path: Path) -> None:
    """Links inside of the project lead to files, and to headings that are there."""
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, heading = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        assert file.exists(), f"{path.name} links to {target}"
        if heading:
            assert heading in headings(file), f"{path.name} links to {target}, and there is no such heading"


def headings(path: Path) -> set[str]:
    lines = re.findall(r"^#+ (.*)$", without_fences(path), re.M)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in lines}


def without_fences(path: Path) -> str:
    return re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)


def test_every_block_says_what_it_is() -> None:
    """Otherwise a block in a language that nobody thought of would be passed over."""
    strange = [block.name for block in all_blocks() if block.language not in RUNNABLE + SHOWN]
    assert not strange


def test_lists_are_current() -> None:
    """What the lists name is still on the pages."""
    known = {(block.page, block.first) for block in all_blocks()}
    known |= {(block.page, block.first) for path in pages() for block in indented_commands_of(path)}
    assert not NOT_RUN.keys() - known
