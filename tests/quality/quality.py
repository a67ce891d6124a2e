#!/usr/bin/env python3
"""How good the detection is on recorded runs of real agents.

  quality.py TRACES SPRAG [--check] [--seconds 10] [--presets balanced,strict,...]

TRACES is a folder of traces with its `tools/score.py`; SPRAG is the program, built for release. Prints one line of a
table for each preset. With --check the default preset must meet the bars below, and the replay its time: what --seconds says, for
a program that is not built for release."""
import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile

PRESETS = ["balanced", "strict", "agentgazer", "fairvisor", "agentwall"]

# What the default preset must reach, with a margin below what it does reach: name, at most or at least, bar in percent.
BARS = [
    ("healthy", "most", 0.4),
    ("healthy20", "most", 1.0),
    ("healthy_native", "most", 0.0),
    ("recall", "least", 95.0),
    ("recall5", "least", 85.0),
    ("near", "least", 75.0),
    ("made", "least", 99.0),
    ("polls", "most", 0.0),
    ("saved", "least", 66.0),
]
# Of one core, in a release.
SECONDS = 10.0


def runs(traces):
    for name in sorted(os.listdir(traces)):
        if name.endswith(".jsonl.gz"):
            with gzip.open(os.path.join(traces, name), "rt", encoding="utf-8") as lines:
                for line in lines:
                    yield json.loads(line)


def replay(sprag, traces, preset, out):
    """Verdicts of a preset, and the seconds of a core that it took, whatever else the machine does."""
    command = [sprag, "replay", traces, "--preset", preset, "--verdicts", out, "--json"]
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = ended.ru_utime - began.ru_utime + ended.ru_stime - began.ru_stime
    with open(out, encoding="utf-8") as lines:
        return {v["run_id"]: v["killed_at_step"] for v in map(json.loads, lines)}, took


def percent(part, whole):
    return 100.0 * part / whole if whole else 0.0


def measure(score, known, verdicts):
    real = [r for r, _ in known if r["source"] not in ("mutated", "poll")]
    of = lambda keep: score.metrics([r for r, native in known if keep(r, native)], verdicts)  # noqa: E731
    is_real = lambda r: r["source"] not in ("mutated", "poll")  # noqa: E731
    every = score.metrics(real, verdicts)
    native = of(lambda r, native: is_real(r) and native)
    near = of(lambda r, _: is_real(r) and r["by"] == "manual")
    made = of(lambda r, _: r["source"] == "mutated")
    polls = of(lambda r, _: r["source"] == "poll")
    whole = lambda part: 100.0 * (part or 0.0)  # noqa: E731
    return {
        "healthy": whole(every["fpr"]), "healthy20": whole(every["fpr_long"]), "healthy_native": whole(native["fpr"]),
        "recall": whole(every["recall"]), "recall5": whole(every["recall5"]), "near": whole(near["recall"]),
        "made": whole(made["recall"]), "polls": whole(polls["fpr"]), "saved": whole(every["saved"]),
        "counts": (every.get("fp", 0), every.get("healthy", 0), native.get("fp", 0), native.get("healthy", 0)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces")
    parser.add_argument("sprag")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--presets", default=",".join(PRESETS))
    arguments = parser.parse_args()
    sys.path.insert(0, os.path.join(arguments.traces, "tools"))
    import score

    is_native = lambda run: any(m.get("tool_calls") for m in run["messages"])  # noqa: E731
    known = [(score.summarise(run), is_native(run)) for run in runs(arguments.traces)]
    print("| preset | healthy killed | of 20+ steps | with native calls | loops caught | within 5 steps | near-loops "
          "| made loops | polls killed | steps saved | seconds |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for preset in arguments.presets.split(","):
            verdicts, took = replay(arguments.sprag, arguments.traces, preset, os.path.join(folder, "verdicts.jsonl"))
            m = measure(score, known, verdicts)
            print("| `%s` | %.1f %% | %.1f %% | %.1f %% | %.0f %% | %.0f %% | %.0f %% | %.0f %% | %.0f %% | %.0f %% | %.1f |" % (
                preset, m["healthy"], m["healthy20"], m["healthy_native"], m["recall"], m["recall5"], m["near"], m["made"],
                m["polls"], m["saved"], took), flush=True)
            if arguments.check and preset == "balanced":
                for name, bound, bar in BARS:
                    if (m[name] > bar + 1e-9) if bound == "most" else (m[name] < bar - 1e-9):
                        failures.append("%s is %.2f %%, at %s %.2f %% allowed" % (name, m[name], bound, bar))
                if took > arguments.seconds:
                    failures.append("the replay took %.1f s, at most %.0f s allowed" % (took, arguments.seconds))
                print("\nhealthy runs killed: %d of %d, with native tool calls %d of %d" % m["counts"])
    for failure in failures:
        print("FAILED: " + failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
