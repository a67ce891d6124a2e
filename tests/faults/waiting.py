"""Waiting for what must come true, with an end."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 60
# How often it is looked at. Short beside everything that is measured.
LOOK_SECONDS = 0.02


class Overdue(AssertionError):
    """It has not come true in time."""


def wait_until(condition: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> float:
    """Gives the seconds that it took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise Overdue(f"waited {seconds} s in vain for {what}")
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - began
