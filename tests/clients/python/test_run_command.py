"""`sprag run` before a script upon OpenAI's SDK: nothing is changed in the script, and nothing is configured."""

import json
import os
import subprocess
import sys
from pathlib import Path

import servers

AGENT = Path(__file__).parent / "guarded_agent.py"


def run(provider: str, directory: Path, task: str, *words: str) -> tuple[subprocess.CompletedProcess, dict]:
    report = directory / "report.json"
    command = [servers.SPRAG, "run", "--data", str(directory / "data"), f"--json={report}", *words]
    command += ["--provider", f"openai={provider}", "--", sys.executable, str(AGENT), task]
    clean = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    clean |= {"OPENAI_API_KEY": "sk-test", "NO_PROXY": "127.0.0.1"}
    ended = subprocess.run(
        command, env=clean, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    return ended, json.loads(report.read_text())


def test_a_stuck_script_is_stopped_and_says_why(provider: str, tmp_path: Path):
    task = 'Read the notes. [[mock:stuck tool=look_up args={"key":"notes.txt"}]]'
    ended, report = run(provider, tmp_path, task)
    assert ended.returncode == 3, ended.stderr
    assert "Going in circles (loop_detected)" in ended.stderr
    # The script had the time to fail as scripts do.
    assert "openai.RateLimitError" in ended.stderr and "loop_detected" in ended.stderr
    assert report["stopped"]["reason"] == "loop_detected"
    assert report["stopped"]["proof"]["summary"] in ended.stderr
    assert (report["totals"]["steps"], report["totals"]["refused"]) == (6, 1)


def test_a_healthy_script_of_forty_steps_is_untouched(provider: str, tmp_path: Path):
    task = 'Read all parts. [[mock:agent steps=40 tool=look_up args={"key":"part $N"}]]'
    ended, report = run(provider, tmp_path, task, "--budget", "5")
    assert (ended.returncode, ended.stdout) == (0, "Finished after 40 steps.\n"), ended.stderr
    assert report["stopped"] is None
    assert (report["totals"]["steps"], report["totals"]["refused"], report["totals"]["runs"]) == (41, 0, 1)
    assert report["totals"]["cost_nano_usd"] > 0
