"""What a load runs against: the provider, nodes, and what they share. The parts are those of tests/faults."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROFILE = os.environ.get("SPRAG_BENCH_PROFILE", "release")
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / PROFILE
for variable, program in (("SPRAG_BIN", "sprag"), ("SPRAG_MOCK_BIN", "sprag-mock"), ("SPRAG_AGENTS_BIN", "sprag-agents")):
    os.environ.setdefault(variable, str(TARGET / program))
sys.path.insert(0, str(ROOT / "tests" / "faults"))

import clickhouse_server  # noqa: E402
import redis_server  # noqa: E402
from node import Node  # noqa: E402
from waiting import wait_until  # noqa: E402

from . import redis_cluster  # noqa: E402
from .tally import Tally  # noqa: E402

STEPS = 20
# Long: on a busy machine a late answer is measured, and not given up.
STATE_TIMEOUT_MS = 5000
# Every control is on: money of runs, agents and everybody, a rate by agent, limits of runs, detection, secrets.
POLICY = """
[budget]
monthly_limit = 100000000
[defaults.budget]
max_run_cost = 100000
daily_limit = 10000000
[[defaults.rate_limits]]
name = "pace"
limit_keys = ["agent"]
requests = 100000000
window_seconds = 60
"""


@dataclass(frozen=True)
class Plan:
    """Cores are those that nodes, and everything else, may use; none is all of them."""

    nodes: int = 1
    # How many servers; more than one are a Redis Cluster.
    redis: int = 1
    clickhouse: bool = False
    node_core: int | None = None
    other_core: int | None = None


class Site:
    """Starts with `with`, and ends all that it started when that is left."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.folder = Path(tempfile.mkdtemp(prefix="sprag-cluster-"))
        self.open = ExitStack()
        self.nodes: list[Node] = []

    def __enter__(self) -> "Site":
        try:
            with on_core(self.plan.other_core):
                self.start_servers()
            with on_core(self.plan.node_core):
                self.start_nodes()
        except BaseException:
            self.open.close()
            raise
        return self

    def __exit__(self, kind, *_) -> None:
        self.open.close()
        if kind is None:
            shutil.rmtree(self.folder)
        else:
            print(f"what nodes and servers said is in {self.folder}", file=sys.stderr)

    def start_servers(self) -> None:
        self.provider = self.kept(Provider())
        self.config = POLICY
        if self.plan.redis:
            self.start_redis()
        if self.plan.clickhouse:
            self.clickhouse = self.kept(clickhouse_server.ClickHouseServer(self.folder / "clickhouse"))
            self.to_clickhouse = self.kept(Tally(self.clickhouse.port))
            self.config += f'[events]\nclickhouse = "http://127.0.0.1:{self.to_clickhouse.port}/sprag"\n'

    def start_redis(self) -> None:
        if self.plan.redis == 1:
            self.redis = [self.kept(redis_server.RedisServer(self.folder / "redis"))]
            address = f"redis://127.0.0.1:{self.redis[0].port}"
        else:
            self.redis = [self.kept(member) for member in redis_cluster.start(self.folder, self.plan.redis)]
            address = "redis+cluster://" + ",".join(f"127.0.0.1:{member.port}" for member in self.redis)
        self.config += f'[state]\nredis = "{address}"\ntimeout_ms = {STATE_TIMEOUT_MS}\n'

    def start_nodes(self) -> None:
        for number in range(self.plan.nodes):
            node = Node(number, self.folder / f"node-{number}", f"http://{self.provider.host}", self.config)
            self.nodes.append(self.kept(node))
            node.launch()
        for node in self.nodes:
            node.arrive()
        wait_until(lambda: all(node.is_well() for node in self.nodes), "nodes to reach what they share")

    def load(self, name: str, runs: int, hosts: list[str] | None = None, **options: int) -> dict:
        """What the agents saw. Hosts are those of all nodes unless others are given."""
        command = [os.environ["SPRAG_AGENTS_BIN"], "--name", name, "--runs", str(runs), "--steps", str(STEPS)]
        for host in hosts or [node.host for node in self.nodes]:
            command += ["--node", host]
        for option, value in options.items():
            command += [f"--{option.replace('_', '-')}", str(value)]
        with on_core(self.plan.other_core):
            seen = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout)
        if seen["failures"] or seen["wrong_steps"]:
            raise RuntimeError(f"the load {name} is worth nothing: failures {seen['failures']}, wrong steps {seen['wrong_steps']}")
        return seen

    def settle(self) -> None:
        """Returns when everything is recorded, and told to those who share it."""
        wait_until(lambda: all(node.is_quiet() for node in self.nodes), "nodes to have recorded everything", seconds=120)

    def kept(self, part):
        self.open.callback(part.close)
        return part


class Provider:
    """The scripted provider. Agents say in headers what it shall answer."""

    def __init__(self):
        command = [os.environ["SPRAG_MOCK_BIN"], "--stdin"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.host = self.process.stdout.readline().strip()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@contextmanager
def on_core(core: int | None):
    """What is started inside may use this core only."""
    all_cores = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_cores)


def missing() -> str | None:
    """What a simulation cannot do without."""
    if not redis_server.is_installed():
        return redis_server.HOW_TO_INSTALL
    return None


def no_clickhouse() -> str | None:
    return clickhouse_server.is_missing()
