"""Asks a real Sprag's admin API everything that its own description allows, and much that it does not.

Starts the scripted provider and a Sprag before it, lets some calls pass and stops some, then runs schemathesis against
`/api/v1/openapi.json`: no 5xx, no status, type or form of an answer that the description does not have.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "clients" / "python"))
from servers import TOKEN, Sprag, mock_provider, sprag  # noqa: E402

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "missing_required_header",
    "negative_data_rejection",
)

CONFIG = """
[defaults.budget]
mode = "enforce"
daily_limit = 1000
stages = [{ at = 1, action = "warn" }]

[defaults.run_limits]
mode = "shadow"
max_steps = 3

[agents.configured.detection]
preset = "strict"

[[agents.configured.rate_limits]]
name = "gentle"
requests = 1000
window_seconds = 60
limit_keys = ["agent"]
"""


def call(running: Sprag, agent: str, run: str, prompt: str, key: str = "sk-none") -> int:
    """A call of an agent; gives its status."""
    body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": prompt}]}
    headers = {
        "authorization": f"Bearer {key}",
        "content-type": "application/json",
        "x-sprag-agent": agent,
        "x-sprag-run-id": run,
    }
    request = urllib.request.Request(f"{running.url}/v1/chat/completions", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as refusal:
        return refusal.code


def fill(running: Sprag) -> None:
    """Something of every kind is on record, so that answers have more than empty lists."""
    for step in range(6):
        call(running, "bot", "task", f"Question {step}")
        call(running, "configured", "stuck", "The same question, again and again")
    call(running, "bot", "leak", "My key is sk-proj-" + "a1B2c3D4e5F6" * 4 + " and my card 4111 1111 1111 1111")
    running.order("POST", "runs/bot/task/kill", {"reason": "too much"})
    call(running, "bot", "task", "One more")
    running.order("POST", "runs/bot/leak/kill", {"pause": True})
    running.order("POST", "kills", {"scope": "agent:stopped", "expires_in_seconds": 3600})
    running.order("POST", "keys", {"agent": "bot", "name": "ci", "budget": {"daily_limit": 5}})
    running.order("POST", "tokens", {"name": "anna", "role": "viewer", "expires_in_seconds": 3600})
    running.order("POST", "agents", {"name": "made", "policy": {"hours": {"allowed": ["mon-fri 08:00-18:00"]}}})
    running.order("PATCH", "agents/bot", {"active": False, "reason": "holiday", "kill_switch": {"enabled": True}})
    running.order("POST", "budgets/adjust", {"account": "agent:bot daily", "amount_usd": "1.5", "reason": "refund"})


def fuzz(running: Sprag, examples: int) -> int:
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{running.admin}/api/v1/openapi.json"]
    command += ["--header", f"Authorization: Bearer {TOKEN}", "--checks", ",".join(CHECKS)]
    # It goes on for ever.
    command += ["--exclude-path", "/api/v1/live"]
    command += ["--max-examples", str(examples), "--generation-deterministic"]
    command += ["--continue-on-failure", "--warnings", "off", "--no-color", "--request-timeout", "20"]
    with tempfile.TemporaryDirectory() as elsewhere:
        return subprocess.run(command, cwd=elsewhere, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=40, help="requests to make up for each operation")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        mock_provider() as provider,
        sprag(provider, Path(directory), CONFIG) as running,
    ):
        fill(running)
        return fuzz(running, asked.examples)


if __name__ == "__main__":
    sys.exit(main())
