"""Three nodes that share one Redis act as one: loops, kills, budgets and rates are what they would be on one node.

    python tests/faults/together.py                  with one Redis for all
    python tests/faults/together.py --apart          nodes that know nothing of each other: every check must break
    python tests/faults/together.py --only kills,rates

Needs the built programs (SPRAG_BIN, SPRAG_MOCK_BIN, or those under `target`) and redis-server, or the server that SPRAG_TEST_REDIS names.
Nothing fails here; what happens when something does is tried by `faults.py`. Exit code 1: a promise broke.
"""

import argparse
import sys
import time

import redis_server
import together_budgets
import together_kills
import together_loops
import together_rates
from faults import end_after
from finding import Finding

CHECKS = {
    "loops": together_loops.check,
    "kills": together_kills.check,
    "budgets": together_budgets.check,
    "rates": together_rates.check,
}
LONGEST_SECONDS = 240


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--apart", action="store_true", help="without a Redis: every check must break")
    parser.add_argument("--only", metavar="NAME,…", default=",".join(CHECKS), help=f"which checks: {', '.join(CHECKS)}")
    asked = parser.parse_args()
    names = asked.only.split(",")
    if unknown := set(names) - set(CHECKS):
        parser.error(f"there is no check {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    if not asked.apart and not redis_server.is_installed():
        parser.error(redis_server.HOW_TO_INSTALL)
    end_after(LONGEST_SECONDS)
    print("three nodes apart" if asked.apart else f"three nodes, {redis_server.version()}")
    findings = {}
    for name in names:
        began = time.monotonic()
        findings[name] = CHECKS[name](not asked.apart)
        tell(name, findings[name], time.monotonic() - began)
    broken = [f"BROKEN {name}: {what}" for name, finding in findings.items() for what in finding.broken]
    print("\n".join(broken), end="\n" if broken else "")
    print(f"{len(findings)} checks, {sum(bool(finding.broken) for finding in findings.values())} broken")
    return 1 if broken else 0


def tell(name: str, finding: Finding, seconds: float) -> None:
    print(f"{name} ({seconds:.1f} s)")
    for what, promised, measured in finding.rows:
        print(f"    {what:60} {promised:27} {measured}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
