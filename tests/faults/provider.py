"""What the scripted provider was asked for, and what it charges for that: one side of the books."""

import json
import urllib.request
from dataclasses import dataclass

from waiting import wait_until


@dataclass(frozen=True)
class Bill:
    """One call that reached the provider, by the name that its client gave it."""

    call: str
    agent: str
    cents: int


class Provider:
    """It remembers a few thousand requests, so that a long load is read now and then with `bills`."""

    def __init__(self, url: str):
        self.url = url
        self.seen: dict[int, Bill] = {}

    def bills(self) -> list[Bill]:
        for request in self.ask("GET", "__requests"):
            headers = request["headers"]
            name = headers["x-call"]
            cents = int(headers["x-mock-usage"].rpartition("=")[2])
            self.seen[request["seq"]] = Bill(name, name.rpartition("-")[0], cents)
        missed = max(self.seen, default=0) - len(self.seen)
        assert missed == 0, f"{missed} requests were forgotten before they were read"
        return list(self.seen.values())

    def release(self) -> None:
        """Lets streams go on that stand still."""
        self.ask("POST", "__release")

    def wait_for_streams(self, count: int) -> None:
        wait_until(lambda: self.ask("GET", "__health")["open_responses"] >= count, f"{count} streams to be under way")

    def ask(self, method: str, path: str):
        request = urllib.request.Request(f"{self.url}/{path}", method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)
