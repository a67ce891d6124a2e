"""The servers are those of the clients' tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "clients" / "python"))
