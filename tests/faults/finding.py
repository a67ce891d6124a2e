"""What a check has measured, and what of its promise broke."""

from dataclasses import dataclass, field


@dataclass
class Finding:
    """Rows are what was done, what is promised of it, and what was measured."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def add(self, what: str, promised: str, measured: str, is_kept: bool) -> None:
        self.rows.append((what, promised, measured))
        if not is_kept:
            self.broken.append(f"{what}: {measured}, where {promised} is promised")
