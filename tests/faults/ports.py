"""Ports for servers that are ended and started again."""

import random
import socket


def free_port() -> int:
    """Below the ports that the system hands out, so that no connection takes it while a server is down."""
    for _ in range(100):
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", random.randrange(10_000, 19_500)))
            except OSError:
                continue
            return listener.getsockname()[1]
    raise RuntimeError("no free port between 10000 and 19500")
