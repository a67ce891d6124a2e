"""Everything that a fault happens to: nodes, the provider, and what the nodes share."""

import shutil
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from clickhouse_server import ClickHouseServer
from disk import Disk
from load import POLICY
from node import Node
from provider import Provider
from redis_server import RedisServer
from waiting import wait_until
from way import Way

sys.path.insert(0, str(Path(__file__).parents[1] / "clients" / "python"))
from servers import mock_provider  # noqa: E402


# Until calls can be read; the shorter, the more a node that is killed has already put away.
FLUSH_MS = 100


@dataclass(frozen=True)
class Setup:
    """Ways are what can be disturbed: to Redis there is one for each node, to ClickHouse one for all."""

    nodes: int = 3
    policy: str = POLICY
    redis: bool = True
    redis_keeps: bool = False
    redis_ways: bool = False
    replica: bool = False
    clickhouse: bool = False
    clickhouse_way: bool = False
    # Four times the default: on a machine that is busy with other tests Redis may take that long without any fault.
    state_timeout_ms: int = 1000
    # What happens to calls with a budget while Redis is away.
    budgets: str = "closed"
    # The first node has a disk of its own that is soon full.
    small_disk: bool = False


class Cluster:
    """Starts all of it when entered, and ends all of it when left; the folder stays when something went wrong."""

    def __init__(self, setup: Setup):
        self.setup = setup
        self.folder = Path(tempfile.mkdtemp(prefix="sprag-faults-"))
        self.nodes: list[Node] = []
        self.redis_ways: list[Way] = []
        self.replica: RedisServer | None = None
        self.open = ExitStack()

    def __enter__(self) -> "Cluster":
        try:
            self.start()
        except BaseException:
            self.open.close()
            raise
        return self

    def __exit__(self, kind, *_) -> None:
        self.open.close()
        if kind is None:
            shutil.rmtree(self.folder)

    def start(self) -> None:
        self.provider = Provider(self.open.enter_context(mock_provider()))
        if self.setup.redis:
            self.redis = self.kept(RedisServer(self.folder / "redis", self.setup.redis_keeps))
        if self.setup.replica:
            self.replica = self.kept(RedisServer(self.folder / "replica", replica_of=self.redis.port))
            wait_until(self.replica.follows, "the replica to follow")
        events = self.events_config()
        for number in range(self.setup.nodes):
            config = self.setup.policy + self.state_config() + events
            self.nodes.append(self.kept(Node(number, self.folder / f"node-{number}", self.provider.url, config)))
        if self.setup.small_disk:
            self.disk = self.kept(Disk(self.nodes[0].data))
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.arrive()
        wait_until(lambda: all(node.is_well() for node in self.nodes), "nodes to reach what they share")
        if self.setup.clickhouse:
            # The tables are there as soon as one node has made them.
            wait_until(lambda: all(node.can_read() for node in self.nodes), "the shared history to be there")

    def state_config(self) -> str:
        if not self.setup.redis:
            return ""
        port = self.redis.port
        if self.setup.redis_ways:
            self.redis_ways.append(self.kept(Way(port)))
            port = self.redis_ways[-1].port
        config = f'[state]\nredis = "redis://127.0.0.1:{port}"\ntimeout_ms = {self.setup.state_timeout_ms}\n'
        return f'{config}on_state_loss.budgets = "{self.setup.budgets}"\n'

    def events_config(self) -> str:
        config = f"[events]\nflush_ms = {FLUSH_MS}\n"
        if not self.setup.clickhouse:
            return config
        self.clickhouse = self.kept(ClickHouseServer(self.folder / "clickhouse"))
        port = self.clickhouse.port
        if self.setup.clickhouse_way:
            self.clickhouse_way = self.kept(Way(port))
            port = self.clickhouse_way.port
        return f'{config}clickhouse = "http://127.0.0.1:{port}/sprag"\n'

    def what_nodes_say(self) -> str:
        return "\n".join(f"--- node {node.number}\n{node.log_end()}" for node in self.nodes if node.log.exists())

    def kept(self, part):
        """The part, which ends with the cluster."""
        self.open.callback(part.close)
        return part
