#!/usr/bin/env python3
"""How good the search for secrets and personal data is, on labelled text of real projects.

  dlp.py CORPUS SPRAG [--check]

CORPUS is a folder of labelled records with its `tools/score.py` and `tools/sse_cases.py`; SPRAG is the program, built for
release. Scans the records as whole texts with `sprag scan --jsonl`, and as streams of three styles whose secrets are cut at
random places. With --check the bars below must be met, and streams must find what whole texts find."""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

# Bars on whole texts, in percent but for the false positives: where, what, at most or at least, bar.
BARS = [
    ("secret", "distinctive", "least", 98.0),
    ("secret", "contextual", "least", 75.0),
    ("secret", "precision", "least", 90.0),
    ("secret", "f1", "least", 84.0),
    ("financial", "f1", "least", 99.0),
    ("pii", "f1", "least", 96.0),
    ("infra", "f1", "least", 98.0),
]
CREDDATA_F1 = 75.0
FALSE_PER_MB = 0.3
NAMED = 95.0
STYLES = ["openai", "anthropic", "tool"]
# Records of each style: all of them take minutes.
STREAMS = 2500


def scan(sprag, files, out):
    with open(out, "wb") as lines:
        subprocess.run([sprag, "scan", "--jsonl", *files], check=True, stdout=lines)


def scored(tools, corpus, predicted, ids=None):
    """The scorer's figures; of these records only, where they are given."""
    with tempfile.TemporaryDirectory() as folder:
        gold = corpus
        if ids is not None:
            gold = os.path.join(folder, "gold.jsonl")
            sys.path.insert(0, tools)
            from score import load  # noqa: E402
            with open(gold, "w", encoding="utf-8") as lines:
                lines.writelines(json.dumps(r) + "\n" for r in load([corpus]) if r["id"] in ids)
        figures = os.path.join(folder, "figures.json")
        command = [sys.executable, os.path.join(tools, "score.py"), "--gold", gold, "--pred", predicted, "--json", figures]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(figures, encoding="utf-8") as file:
            return json.load(file)


def picture_bytes_changed(predicted):
    with open(predicted, encoding="utf-8") as lines:
        records = (json.loads(line) for line in lines)
        return sum(len(r["spans"]) for r in records if r["id"].startswith("neg-images"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("sprag")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    tools = os.path.join(asked.corpus, "tools")
    missed = []

    def bar(name, value, kind, limit, unit=" %"):
        good = value >= limit if kind == "least" else value <= limit
        print(f"{name:<34} {value:8.2f}{unit:<5} at {kind} {limit:.2f}{unit}{'' if good else '   MISSED'}")
        if not good:
            missed.append(name)

    with tempfile.TemporaryDirectory() as folder:
        spans = os.path.join(folder, "spans.jsonl")
        scan(asked.sprag, sorted(glob.glob(os.path.join(asked.corpus, "*.jsonl.gz"))), spans)
        whole = scored(tools, asked.corpus, spans)
        families = whole["families"]
        for family, what, kind, limit in BARS:
            bar(f"{family} {what}", 100.0 * families[family][what], kind, limit)
        bar("CredData strong F1", 100.0 * whole["creddata"]["strong"]["f1"], "least", CREDDATA_F1)
        bar("false positives", whole["fp_per_mb"], "most", FALSE_PER_MB, "/MB")
        hits = sum(entity["hit"] for entity in whole["entities"].values())
        named = sum(entity["named"] for entity in whole["entities"].values())
        bar("right name", 100.0 * named / hits, "least", NAMED)
        bar("findings in pictures", picture_bytes_changed(spans), "most", 0, "")
        for style in STYLES:
            cases, out = os.path.join(folder, "cases.jsonl"), os.path.join(folder, "streams.jsonl")
            command = [sys.executable, os.path.join(tools, "sse_cases.py"), "--gold", asked.corpus, "--style", style]
            subprocess.run([*command, "--out", cases, "--limit", str(STREAMS)], check=True, stderr=subprocess.DEVNULL)
            scan(asked.sprag, [cases], out)
            with open(cases, encoding="utf-8") as lines:
                ids = {json.loads(line)["id"] for line in lines}
            streamed, same = scored(tools, asked.corpus, out, ids), scored(tools, asked.corpus, spans, ids)
            for family, figures in same["families"].items():
                if figures["gold"]:
                    found, expected = streamed["families"][family]["recall"], figures["recall"]
                    bar(f"{style} streams, {family} recall", 100.0 * found, "least", 100.0 * expected - 1e-9)
            for trouble in ("altered", "json broken", "stream unreadable"):
                bar(f"{style} streams {trouble}", streamed["info"].get(trouble, 0), "most", 0, "")
    if asked.check and missed:
        sys.exit(f"{len(missed)} bars are missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
