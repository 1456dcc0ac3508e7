"""What a benchmark reports, and how it is written down."""

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

COLUMNS = ("what", "figure", "spread", "target", "met")


@dataclass(frozen=True)
class Line:
    """One figure: a number with its unit, its range over the turns, and what it should be."""

    what: str
    value: float
    unit: str = ""
    spread: str = ""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.at_most is not None:
            return self.value <= self.at_most
        return None if self.at_least is None else self.value >= self.at_least

    @property
    def cells(self) -> tuple[str, ...]:
        """The line as text, in the order of `COLUMNS`."""
        target = "" if self.at_most is None else f"at most {_number(self.at_most, self.unit)}"
        if self.at_least is not None:
            target = f"at least {_number(self.at_least, self.unit)}"
        met = {None: "", True: "yes", False: "**no**"}[self.met]
        return (self.what, _number(self.value, self.unit), self.spread, target, met)


@dataclass(frozen=True)
class Note:
    """Something to be said plainly: why an item was skipped, what a figure means."""

    text: str


@dataclass(frozen=True)
class Table:
    """Figures that belong side by side, and have no target."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Entry = Line | Note | Table
_KINDS: dict[str, type[Line] | type[Note] | type[Table]] = {"line": Line, "note": Note, "table": Table}


@dataclass(frozen=True)
class Section:
    """What one item of the suite found."""

    name: str
    title: str
    entries: tuple[Entry, ...]


def _number(value: float, unit: str) -> str:
    figure = f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
    return f"{figure} {unit}".rstrip()


def as_markdown(section: Section) -> str:
    """Write one item: its tables, its figures, its notes."""
    lines = [entry.cells for entry in section.entries if isinstance(entry, Line)]
    parts = [f"## {section.title}"]
    parts += [_table(entry.headers, entry.rows) for entry in section.entries if isinstance(entry, Table)]
    if lines:
        parts.append(_table(COLUMNS, lines))
    parts += [entry.text for entry in section.entries if isinstance(entry, Note)]
    return "\n\n".join(parts) + "\n"


def _table(headers: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> str:
    table = [headers, *lines]
    widths = [max(len(row[i]) for row in table) for i in range(len(headers))]
    rows = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |" for row in table
    ]
    rows.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(rows)


def n_missed(entries: Sequence[Entry]) -> int:
    """Return how many targets were missed."""
    return sum(isinstance(entry, Line) and entry.met is False for entry in entries)


def as_records(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return the entries of one item as plain data."""
    kinds = {kind: name for name, kind in _KINDS.items()}
    return [
        {
            "kind": kinds[type(entry)],
            **{name: value for name, value in asdict(entry).items() if value not in ("", None)},
            **({"met": entry.met} if isinstance(entry, Line) and entry.met is not None else {}),
        }
        for entry in entries
    ]


def from_records(records: Sequence[dict[str, Any]]) -> tuple[Entry, ...]:
    """Read what `as_records` returned, also after it went through JSON."""
    entries = []
    for record in records:
        fields = {name: value for name, value in record.items() if name not in ("kind", "met")}
        if record["kind"] == "table":
            fields = {"headers": tuple(fields["headers"]), "rows": tuple(map(tuple, fields["rows"]))}
        entries.append(_KINDS[record["kind"]](**fields))
    return tuple(entries)


def machine() -> str:
    """Describe the machine and what runs on it, naming no place on it."""
    model = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        names = [
            line.split(":")[1].strip()
            for line in information.read_text().splitlines()
            if "model name" in line
        ]
        model = names[0] if names else model
    cores = os.cpu_count()
    packages = ", ".join(f"{package} {number}" for package, number in versions().items())
    return f"{cores} cores of {model}, {platform.system()} {platform.machine()}, {packages}"


def versions() -> dict[str, str]:
    """Return the versions of what the figures depend on most."""
    packages = ("unless", "numba", "numpy", "duckdb")
    return {"Python": platform.python_version()} | {package: version(package) for package in packages}
