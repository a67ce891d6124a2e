"""One call of a client, as the client saw it."""

import http.client
import json
import time
from dataclasses import dataclass, field

MODEL = "gpt-4o"
# Longer than anything here may take; a call that needs so long has failed.
PATIENCE_SECONDS = 20


@dataclass
class Call:
    """`name` is known to the provider too. `error` is what no answer should ever be: a connection that broke, a stream without its end."""

    name: str
    agent: str
    node: int
    cents: int
    run: str | None = None
    # Calls with the same are one task, whatever Sprag makes of them.
    task: str | None = None
    began: float = 0.0
    ended: float = 0.0
    status: int | None = None
    reason: str | None = None
    error: str | None = None
    request_id: str | None = None
    run_id: str | None = None
    step: int | None = None
    answer: str = ""
    # The provider holds it back until it is told otherwise.
    is_held: bool = False
    # Nobody listened there, so nothing was sent: a load balancer goes on to the next node.
    is_turned_away: bool = False
    told: dict = field(default_factory=dict)

    @property
    def is_answered(self) -> bool:
        return self.status == 200 and self.reason is None and self.error is None

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    def describe(self) -> str:
        return f"{self.name} at node {self.node}: status {self.status}, reason {self.reason}, error {self.error}"


def make(
    call: Call, host: str, messages: list[dict], stream: bool, most_cents: int | None = None, stall_seconds: float | None = None
) -> Call:
    """Sends it and reads the answer to its end. Costs `cents`, and at most `most_cents` can be asked for. A stream may stand still on the
    provider's side for about `stall_seconds`."""
    body = {"model": MODEL, "messages": messages, "max_tokens": call.cents if most_cents is None else most_cents}
    headers = {
        "authorization": "Bearer sk-test",
        "content-type": "application/json",
        "x-sprag-agent": call.agent,
        "x-call": call.name,
        "x-mock-usage": f"input=1 output={call.cents}",
    }
    if call.run is not None:
        headers["x-sprag-run-id"] = call.run
    if stream:
        body["stream"] = True
    if stall_seconds is not None:
        headers["x-mock-stall"] = "2"
        call.is_held = True
    call.began = time.monotonic()
    connection = http.client.HTTPConnection(host, timeout=PATIENCE_SECONDS + (stall_seconds or 0.0))
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        answer = connection.getresponse()
        read_head(call, answer)
        text = answer.read().decode()
        read_stream(call, text) if "event-stream" in (answer.getheader("content-type") or "") else read_json(call, text)
    except ConnectionRefusedError:
        call.is_turned_away = True
    except (OSError, http.client.HTTPException, ValueError) as error:
        call.error = f"{type(error).__name__}: {error}"
    finally:
        connection.close()
        call.ended = time.monotonic()
    return call


def read_head(call: Call, answer: http.client.HTTPResponse) -> None:
    call.status = answer.status
    call.reason = answer.getheader("x-sprag-blocked")
    call.request_id = answer.getheader("x-sprag-request-id")
    call.run_id = answer.getheader("x-sprag-run-id")
    step = answer.getheader("x-sprag-step")
    call.step = int(step) if step else None


def read_json(call: Call, text: str) -> None:
    call.told = json.loads(text)
    if call.status == 200:
        call.answer = call.told["choices"][0]["message"]["content"]
    elif call.reason is None:
        call.reason = (call.told.get("error") or {}).get("type") or f"status {call.status}"


def read_stream(call: Call, text: str) -> None:
    events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    for event in events:
        if event == "[DONE]":
            continue
        told = json.loads(event)
        if "error" in told:
            call.reason = call.reason or told["error"].get("type", "error")
            call.told = told
        for choice in told.get("choices", []):
            call.answer += choice["delta"].get("content") or ""
    if call.reason is None and (not events or events[-1] != "[DONE]"):
        call.error = "the stream ended before its end"
