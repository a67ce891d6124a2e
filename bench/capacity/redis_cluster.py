"""Several Redis servers that share the slots between them: a Redis Cluster without replicas."""

import redis_server
from ports import free_port
from waiting import wait_until

SLOTS = 16384


class ClusterMember(redis_server.RedisServer):
    """A server of a cluster; its port, and the one that members talk on, are its own."""

    def start(self) -> None:
        # Members talk on a port that is 10,000 higher unless told otherwise, which may be none.
        self.options += ["--cluster-enabled", "yes", "--cluster-port", str(free_port()), "--cluster-node-timeout", "5000"]
        super().start()


def start(folder, count: int) -> list[ClusterMember]:
    members = [ClusterMember(folder / f"redis-{number}") for number in range(count)]
    for number, member in enumerate(members):
        member.command("CLUSTER", "ADDSLOTSRANGE", str(SLOTS * number // count), str(SLOTS * (number + 1) // count - 1))
        if number:
            bus = members[0].options[members[0].options.index("--cluster-port") + 1]
            member.command("CLUSTER", "MEET", "127.0.0.1", str(members[0].port), bus)
    wait_until(lambda: all(is_whole(member, count) for member in members), "the cluster to be whole")
    return members


def is_whole(member: ClusterMember, count: int) -> bool:
    told = member.command("CLUSTER", "INFO")
    return "cluster_state:ok" in told and f"cluster_known_nodes:{count}" in told
