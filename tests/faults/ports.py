"""Ports for servers that are ended and started again."""

import random
import socket

# For as long as this process lives. A socket that does not listen holds its port against everybody who asks for a free one, and lets
# those bind to it who say that they may share it, as servers do.
held: list[socket.socket] = []
# Processes that were forked from one another would all draw the same numbers otherwise.
draw = random.SystemRandom()


def free_port() -> int:
    """Nobody else is given it. Below the ports that the system hands out, so that no connection takes it while a server is down."""
    for _ in range(100):
        holder = socket.socket()
        try:
            holder.bind(("127.0.0.1", draw.randrange(10_000, 19_500)))
        except OSError:
            holder.close()
            continue
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.append(holder)
        return holder.getsockname()[1]
    raise RuntimeError("no free port between 10000 and 19500")
