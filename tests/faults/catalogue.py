"""Every fault that is tried, in the order of the table."""

import os
import tempfile
from pathlib import Path

import clickhouse_server
import disk
import redis_server
from cluster import Cluster, Setup
from fault import Fault

SLOW_MS = 100
# Long enough for a node to lose patience a few times.
SILENCE_SECONDS = 4.0
# Until nodes have sent what waited. The engine has many threads, and few cores here.
CATCH_UP_SECONDS = 60.0
ONE = frozenset({0})
EVERY = frozenset({0, 1, 2})


def needs_redis() -> str | None:
    return None if redis_server.is_installed() else redis_server.HOW_TO_INSTALL


def needs_a_disk() -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        return needs_redis() or disk.cannot_be_made(Path(folder))


def needs_clickhouse() -> str | None:
    return needs_redis() or clickhouse_server.is_missing()


def needs_another_build() -> str | None:
    if "SPRAG_OTHER_BIN" not in os.environ:
        return "there is no other build; SPRAG_OTHER_BIN names one, such as the release before"
    return needs_redis()


# Everything that nodes have there, also under the names of another version; and rows of a form that this one does not know.
OF_A_NEWER_VERSION = """
for _, key in ipairs(redis.call('KEYS', 'sprag:2:*')) do
  redis.call('COPY', key, 'sprag:3:' .. string.sub(key, 9), 'REPLACE')
end
for _, kind in ipairs({'kill', 'policy', 'standing', 'planet'}) do
  redis.call('HSET', 'sprag:1:{catalog}:' .. kind, 'agent:worker', '[2,99999999999999,"ab",0,{"what":"ever"}]')
  local seq = redis.call('HINCRBY', 'sprag:1:{catalog}:state', 'seq', 1)
  redis.call('XADD', 'sprag:1:{catalog}:log', seq .. '-0', 'kind', kind, 'name', 'agent:worker')
end
return 'done'
"""


def lead_to_the_replica(cluster: Cluster) -> None:
    cluster.replica.promote()
    for way in cluster.redis_ways:
        way.order(f"lead {cluster.replica.port}")


def start_first_node(cluster: Cluster) -> None:
    cluster.nodes[0].launch()
    cluster.nodes[0].arrive()


def restart_all(cluster: Cluster) -> None:
    """One after the other, in good order; the streams that a node waits for must come to their end."""
    cluster.provider.release()
    for node in cluster.nodes:
        node.drain()
        node.launch()
        node.arrive()


def replace_one(cluster: Cluster) -> None:
    cluster.provider.release()
    cluster.nodes[0].drain()
    cluster.nodes[0].launch(os.environ["SPRAG_OTHER_BIN"])
    cluster.nodes[0].arrive()


def put_back(cluster: Cluster) -> None:
    cluster.nodes[0].drain()
    start_first_node(cluster)


FAULTS = [
    Fault(
        name="redis-killed",
        title="Redis is killed and comes back empty",
        setup=Setup(),
        cause=lambda cluster: cluster.redis.kill(),
        end=lambda cluster: cluster.redis.start(),
        alone=EVERY,
        forgets=True,
        cannot=needs_redis,
    ),
    Fault(
        name="redis-restarted",
        title="Redis is killed and comes back with what it had",
        setup=Setup(redis_keeps=True),
        cause=lambda cluster: cluster.redis.kill(),
        end=lambda cluster: cluster.redis.start(),
        alone=EVERY,
        cannot=needs_redis,
    ),
    Fault(
        name="redis-killed-open",
        title="Redis is killed and comes back empty; budgets are open",
        setup=Setup(budgets="open"),
        cause=lambda cluster: cluster.redis.kill(),
        end=lambda cluster: cluster.redis.start(),
        alone=EVERY,
        forgets=True,
        cannot=needs_redis,
    ),
    Fault(
        name="redis-frozen",
        title="Redis is frozen (`SIGSTOP`)",
        setup=Setup(),
        cause=lambda cluster: cluster.redis.freeze(),
        end=lambda cluster: cluster.redis.thaw(),
        seconds=SILENCE_SECONDS,
        alone=EVERY,
        cannot=needs_redis,
    ),
    Fault(
        name="redis-slow",
        title=f"Redis is slow by {SLOW_MS} ms",
        setup=Setup(redis_ways=True),
        cause=lambda cluster: [way.order(f"slow {SLOW_MS}") for way in cluster.redis_ways],
        end=lambda cluster: [way.order("open") for way in cluster.redis_ways],
        cannot=needs_redis,
    ),
    Fault(
        name="redis-flushed",
        title="Redis is emptied (`FLUSHALL`)",
        setup=Setup(),
        cause=lambda cluster: cluster.redis.flush(),
        seconds=1.0,
        lasts=False,
        forgets=True,
        cannot=needs_redis,
    ),
    Fault(
        name="redis-full",
        title="Redis takes nothing, because its memory is full",
        setup=Setup(),
        cause=lambda cluster: cluster.redis.command("CONFIG", "SET", "maxmemory", "1"),
        end=lambda cluster: cluster.redis.command("CONFIG", "SET", "maxmemory", "0"),
        alone=EVERY,
        cannot=needs_redis,
    ),
    Fault(
        name="redis-failed-over",
        title="Redis is killed and its replica takes its place",
        setup=Setup(redis_ways=True, replica=True),
        cause=lambda cluster: cluster.redis.kill(),
        end=lead_to_the_replica,
        alone=EVERY,
        forgets=True,
        cannot=needs_redis,
    ),
    Fault(
        name="network-cut",
        title="One node of three does not reach Redis",
        setup=Setup(redis_ways=True),
        cause=lambda cluster: cluster.redis_ways[0].order("silent"),
        end=lambda cluster: cluster.redis_ways[0].order("open"),
        seconds=SILENCE_SECONDS,
        alone=ONE,
        cannot=needs_redis,
    ),
    Fault(
        name="clickhouse-killed",
        title="ClickHouse is killed and comes back",
        setup=Setup(clickhouse=True),
        cause=lambda cluster: cluster.clickhouse.kill(),
        end=lambda cluster: cluster.clickhouse.start(),
        behind=EVERY,
        may_last=True,
        hides_history=True,
        recovery_seconds=CATCH_UP_SECONDS,
        cannot=needs_clickhouse,
    ),
    Fault(
        name="clickhouse-full",
        title="ClickHouse takes nothing, because its disk is full",
        setup=Setup(clickhouse=True, clickhouse_way=True),
        cause=lambda cluster: cluster.clickhouse_way.order("full"),
        end=lambda cluster: cluster.clickhouse_way.order("open"),
        behind=EVERY,
        hides_history=True,
        recovery_seconds=CATCH_UP_SECONDS,
        cannot=needs_clickhouse,
    ),
    Fault(
        name="clickhouse-frozen",
        title="ClickHouse is frozen: it takes connections and says nothing",
        setup=Setup(clickhouse=True, clickhouse_way=True),
        cause=lambda cluster: cluster.clickhouse_way.order("silent"),
        end=lambda cluster: cluster.clickhouse_way.order("open"),
        hides_history=True,
        recovery_seconds=CATCH_UP_SECONDS,
        cannot=needs_clickhouse,
    ),
    Fault(
        name="node-killed",
        title="One node of three is killed (`kill -9`) and started again",
        setup=Setup(),
        cause=lambda cluster: cluster.nodes[0].kill(),
        end=start_first_node,
        down=ONE,
        cannot=needs_redis,
    ),
    Fault(
        name="only-node-killed",
        title="The only node, without Redis, is killed (`kill -9`) and started again",
        setup=Setup(nodes=1, redis=False),
        cause=lambda cluster: cluster.nodes[0].kill(),
        end=start_first_node,
        down=ONE,
    ),
    Fault(
        name="disk-full",
        title="The disk of one node of three is full",
        setup=Setup(small_disk=True),
        cause=lambda cluster: cluster.disk.fill(),
        end=lambda cluster: cluster.disk.free(),
        without_room=ONE,
        cannot=needs_a_disk,
    ),
    Fault(
        name="nodes-restarted",
        title="All nodes are restarted, one after the other",
        setup=Setup(),
        cause=restart_all,
        seconds=1.0,
        lasts=False,
        down=EVERY,
        in_good_order=True,
        cannot=needs_redis,
    ),
    Fault(
        name="versions-beside",
        title="A newer version writes to the same Redis what this one does not know",
        setup=Setup(),
        cause=lambda cluster: cluster.redis.run(OF_A_NEWER_VERSION),
        seconds=1.5,
        lasts=False,
        cannot=needs_redis,
    ),
    Fault(
        name="versions-mixed",
        title="One node of three runs another version",
        setup=Setup(),
        cause=replace_one,
        end=put_back,
        down=ONE,
        in_good_order=True,
        cannot=needs_another_build,
    ),
]
