"""What the packaging says about Sprag must be so: variables, ports, paths of health, the configuration, times."""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "clients" / "python"))
import servers  # noqa: E402

DOCKERFILE = (ROOT / "Dockerfile").read_text()
UNIT = (ROOT / "packaging" / "sprag.service").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["sprag"]
MANIFESTS = [
    manifest
    for file in sorted((ROOT / "packaging" / "kubernetes").glob("*.yaml"))
    for manifest in yaml.safe_load_all(file.read_text())
]


def only(kind: str) -> dict:
    (found,) = (manifest for manifest in MANIFESTS if manifest["kind"] == kind)
    return found


POD = only("StatefulSet")["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


def program(*words: str, **variables: str) -> subprocess.CompletedProcess:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SPRAG_")}
    with tempfile.TemporaryDirectory() as empty:
        command = [servers.SPRAG, *words]
        return subprocess.run(command, cwd=empty, env=clean | variables, capture_output=True, text=True)


def variables_are_known() -> None:
    used = dict(re.findall(r"\b(SPRAG_[A-Z_]+)=(\S+)", DOCKERFILE + UNIT))
    used |= {name: "a-token-of-thirty-two-characters" for name in COMPOSE["environment"]}
    used |= {entry["name"]: "a-token-of-thirty-two-characters" for entry in CONTAINER["env"]}
    assert "SPRAG_DATA_DIR" in used and "SPRAG_ADMIN_TOKEN" in used
    done = program("check", **used)
    said = done.stdout + done.stderr
    assert done.returncode == 0 and not any(name in said for name in used), said
    wrong = program("check", SPRAG_PROXY_LISTNE="x")
    assert "SPRAG_PROXY_LISTNE" in wrong.stdout + wrong.stderr, "a wrong variable would not be noticed"


def ports_are_the_defaults() -> None:
    schema = json.loads(program("schema").stdout)["properties"]
    port = {side: schema[side]["properties"]["listen"]["default"].split(":")[1] for side in ("proxy", "admin")}
    assert re.search(r"^EXPOSE (.*)$", DOCKERFILE, re.M)[1].split() == [port["proxy"], port["admin"]]
    assert {entry["name"]: str(entry["containerPort"]) for entry in CONTAINER["ports"]} == port
    assert [entry.split(":")[-1] for entry in COMPOSE["ports"]] == [port["proxy"], port["admin"]]
    drain = schema["proxy"]["properties"]["drain_seconds"]["default"]
    graces = [POD["terminationGracePeriodSeconds"], int(COMPOSE["stop_grace_period"].removesuffix("s"))]
    graces.append(int(re.search(r"^TimeoutStopSec=(\d+)$", UNIT, re.M)[1]))
    assert all(grace > drain for grace in graces), f"answers get {drain} s, and the process gets {graces}"


def configuration_is_right() -> None:
    """As it stands, and with what is commented out."""
    text = only("ConfigMap")["data"]["sprag.toml"]
    uncommented = re.sub(r"^# (\[|\w+ = )", r"\1", text, flags=re.M)
    assert uncommented != text
    for version in (text, uncommented):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(version)
            file.flush()
            done = program("check", file.name, OPENAI_API_KEY="sk-test")
            assert done.returncode == 0, done.stdout + done.stderr


def health_is_served() -> None:
    with tempfile.TemporaryDirectory() as folder, servers.sprag("http://127.0.0.1:9", Path(folder)) as sprag:
        address = {"proxy": sprag.url, "admin": sprag.admin}
        for probe in ("livenessProbe", "readinessProbe"):
            asked = CONTAINER[probe]["httpGet"]
            with urllib.request.urlopen(address[asked["port"]] + asked["path"]) as response:
                assert response.status == 200
        command = json.loads(re.search(r"^HEALTHCHECK .*CMD (\[.*\])$", DOCKERFILE, re.M)[1])
        listen = sprag.admin.removeprefix("http://")
        done = program(*command[1:], SPRAG_ADMIN_LISTEN=listen, SPRAG_ADMIN_TOKEN=servers.TOKEN)
        assert done.returncode == 0, done.stderr
        gone = program(*command[1:], SPRAG_ADMIN_LISTEN="127.0.0.1:1", SPRAG_ADMIN_TOKEN=servers.TOKEN)
        assert gone.returncode != 0, "the check of health would not notice that Sprag is gone"


for fact in (variables_are_known, ports_are_the_defaults, configuration_is_right, health_is_served):
    fact()
    print(f"   {fact.__name__.replace('_', ' ')}")
