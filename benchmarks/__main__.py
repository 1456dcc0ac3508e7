"""`python -m benchmarks`: what Unless costs on this machine, beside what others cost."""

from pathlib import Path
from typing import Any

import click

from unless.cli.options import Written, names
from unless.cli.program import Answering


@click.command(
    cls=Answering,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""
    Ratios come from one interleaved run. Other packages are installed on first use, each into an environment
    of its own in the folder UNLESS_PEERS (or the user's cache folder); without them their figures are left
    out. What needs data that the folder does not hold is skipped, and says so.

    \b
    Examples:
      python -m benchmarks --only startup,alarm --data DIR
      python -m benchmarks --data DIR --json figures.json
      python -m benchmarks --data DIR --history benchmarks/history --write docs/benchmarks.md
    """,
)
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="The data to measure on.")
@click.option(
    "--only", type=Written("NAME[,NAME...]", names), help="Some items; a wrong name lists them all."
)
@click.option("--repeats", type=click.IntRange(min=1), default=9, metavar="N", help="Turns of each (9).")
@click.option(
    "--draws", type=click.IntRange(min=1), default=40, metavar="N", help="Draws of known laws (40)."
)
@click.option(
    "--plots", type=click.Path(path_type=Path), metavar="DIR", help="Draw figures into this folder."
)
@click.option("--json", "figures", type=click.Path(path_type=Path), metavar="FILE", help="Write JSON.")
@click.option("--write", type=click.Path(path_type=Path), metavar="FILE", help="Write the page.")
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the run here; items left out are taken over from the last one.",
)
def command(only: list[str] | None, **wishes: Any) -> None:
    """Measure what Unless costs on this machine, beside what others cost."""
    import time
    from datetime import UTC, datetime

    from benchmarks.history import document, newest
    from benchmarks.options import Options
    from benchmarks.result import as_markdown, machine, n_missed
    from benchmarks.suite import chosen, run
    from unless.cli.output import note, say

    selected, start = chosen(only), time.perf_counter()
    data: Path | None = wishes["data"]
    if data is not None and not data.is_dir():
        note("The data folder is not there; what needs it is skipped.")
    say(f"Machine: {machine()}.\n")
    sections = []
    for section in run(selected, Options(data, wishes["repeats"], wishes["draws"], wishes["plots"])):
        sections.append(section)
        say(as_markdown(section))
    history: Path | None = wishes["history"]
    missed = n_missed([entry for section in sections for entry in section.entries])
    note(f"{time.perf_counter() - start:.0f} s; targets missed: {missed}.")
    found = document(sections, datetime.now(UTC), newest(history) if history else None)
    _write(found, history, wishes["figures"], wishes["write"])


def _write(found: dict[str, Any], history: Path | None, figures: Path | None, page_file: Path | None) -> None:
    import json

    from benchmarks.history import keep, page

    if history:
        keep(found, history)
    if figures:
        figures.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if page_file:
        page_file.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    command()
