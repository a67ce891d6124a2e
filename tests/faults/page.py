"""The table of `docs/failure-modes.md`: written from what was measured, or held against the faults that there are."""

from pathlib import Path

from catalogue import FAULTS
from row import Row

PAGE = Path(__file__).parents[2] / "docs" / "failure-modes.md"
BEGIN = "<!-- Written by tests/faults/faults.py --write-docs -->"
END = "<!-- End of what is written -->"
HEAD = ["| fault | lasted | clients saw | lost | back to normal after |", "|---|---|---|---|---|"]


def write(rows: dict[str, Row], skipped: dict[str, str]) -> None:
    """Rows of faults that were not tried stay as they are; of those that never were, the reason stands there."""
    before, old, after = parts()
    lines = {line.split("|")[1].strip(): line for line in old}
    for fault in FAULTS:
        if fault.name in rows:
            lines[fault.title] = rows[fault.name].as_line()
        elif fault.name in skipped:
            lines.setdefault(fault.title, f"| {fault.title} | | not measured: {skipped[fault.name]} | | |")
    table = "\n".join(HEAD + [lines[fault.title] for fault in FAULTS if fault.title in lines])
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
