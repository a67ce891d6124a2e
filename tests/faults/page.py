"""The table of `docs/failure-modes.md`: written from what was measured, or held against the faults that there are."""

from pathlib import Path

from catalogue import FAULTS
from row import Row

PAGE = Path(__file__).parents[2] / "docs" / "failure-modes.md"
BEGIN = "<!-- Written by tests/faults/faults.py --write-docs -->"
END = "<!-- End of what is written -->"
HEAD = ["| fault | lasted | clients saw | lost | back to normal after |", "|---|---|---|---|---|"]


def write(rows: dict[str, Row]) -> None:
    """Rows of faults that were not tried stay as they are."""
    before, old, after = parts()
    kept = {line.split("|")[1].strip(): line for line in old}
    lines = [rows[fault.name].as_line() if fault.name in rows else kept.get(fault.title) for fault in FAULTS]
    table = "\n".join(HEAD + [line for line in lines if line is not None])
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")


def problems() -> list[str]:
    """Faults without a row, and rows without a fault."""
    _, lines, _ = parts()
    told, known = {line.split("|")[1].strip() for line in lines}, {fault.title for fault in FAULTS}
    missing = [f"{PAGE.name} has no row for {title!r}; `--write-docs` writes it" for title in known - told]
    return missing + [f"{PAGE.name} has a row for {title!r}, which is not tried" for title in told - known]


def parts() -> tuple[str, list[str], str]:
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    table, end, after = rest.partition(END)
    assert begin and end, f"{PAGE} has no place for the table: {BEGIN} … {END}"
    return before, [line for line in table.strip().splitlines() if line.startswith("|") and line not in HEAD], after
