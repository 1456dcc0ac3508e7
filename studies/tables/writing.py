"""Writes what the study found: a page of its own, and a section of docs/accuracy.md between two marks."""

from collections.abc import Iterable
from pathlib import Path

from studies.tables import run
from studies.tables.cases import Line, Record, table
from studies.truth.writing import TABLES_BEGIN, TABLES_END, marked_section


def write(
    records: Iterable[Record], out: Path, *, seed: int, quick: bool, n_left: int, seconds: float
) -> Path:
    """Write accuracy/tables.md into a folder, and its summary into accuracy.md; returns the page."""
    by_part: dict[str, list[Record]] = {name: [] for name in run.PARTS}
    for one in records:
        by_part[one["part"]].append(one)
    told: list[Line] = [
        line for name, part in run.PARTS.items() if by_part[name] for line in part.lines(by_part[name])
    ]
    parts = [_head(seed, quick, n_left, seconds), _summary(told)]
    parts += [
        f"## {part.TITLE}\n\n{part.section(by_part[name])}"
        for name, part in run.PARTS.items()
        if by_part[name]
    ]
    page = out / "accuracy" / "tables.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    _insert(out / "accuracy.md", _section(told, seed))
    return page


def _head(seed: int, quick: bool, n_left: int, seconds: float) -> str:
    kind = "This is a quick run: few tables, wide intervals. " if quick else ""
    left = f"Time was up with {n_left:,} cells left to run; what is there is told. " if n_left else ""
    design = " It is a design seed: none of the figures is to be reported." if seed < run.DESIGN_SEEDS else ""
    return (
        "# Tables as people have them\n\n"
        f"Written by `python -m studies.tables`. {kind}{left}Tables are drawn from laws that are known, "
        "given to `unless.learn` as a DataFrame with default settings, and the findings are judged. Shares "
        f"have counts and Wilson's 95 % interval. Base seed {seed:,}; rules were chosen on base seeds below "
        f"{run.DESIGN_SEEDS:,}, and base seed {run.SEEN:,} was looked at before the last change.{design} "
        f"{seconds / 60:.0f} minutes of CPU."
    )


def _summary(told: Iterable[Line]) -> str:
    words = {True: "yes", False: "no", None: "-"}
    rows = [(what, aim, reached, words[met]) for what, aim, reached, met in told]
    return table(("figure", "aim", "reached", "met"), rows)


def _section(told: list[Line], seed: int) -> str:
    return (
        f"{TABLES_BEGIN}\n## Tables as people have them\n\n"
        "Numbers, confounders that are cut, missing values and weighted samples, by `python -m "
        f"studies.tables` (base seed {seed:,}); [accuracy/tables.md](accuracy/tables.md) has the figures one "
        "by one. What networks lose by missing values: [accuracy/incomplete.md](accuracy/incomplete.md).\n\n"
        f"{_summary(told)}\n{TABLES_END}"
    )


def _insert(page: Path, section: str) -> None:
    """Put the section in place of the old one, or at the end."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    old = marked_section(text)
    text = text.replace(old, section) if old else f"{text.rstrip()}\n\n{section}\n".lstrip()
    page.write_text(text, encoding="utf-8")
