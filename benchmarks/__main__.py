"""Measure what Unless costs and print it as tables: ratios from one run, with their targets."""

import argparse
import importlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.options import DataError, Options
from benchmarks.result import Entry, Note, as_markdown, as_records, machine

ITEMS = (
    "startup", "popcount", "paper", "alarm", "sharing", "memory", "weights", "learners", "inference",
    "published", "fuzz",
)  # fmt: skip
# Run only when named: each takes a quarter of an hour or more.
LONG = ("weights_large", "gssl_debd", "accuracy")
HEAD = """# What it costs

Written by `python -m benchmarks --data DIR --write docs/benchmarks.md`; `make bench` prints the same.
Every ratio is one of medians from one interleaved run (ABAB...), of CPU time where nothing else is said;
the spread is the range over the turns. The machine is shared, so only the ratios mean much.

Machine: {machine}.
"""


def main() -> None:
    """Run the chosen items."""
    chosen = _arguments()
    options = Options(chosen.data, chosen.repeats, chosen.draws)
    if chosen.data is not None and not chosen.data.is_dir():
        print("The data folder is not there; what needs it is skipped (make bench DATA=DIR names another).\n")
    start = time.perf_counter()
    head = _head(chosen.only or ITEMS).format(machine=machine())
    print(head, flush=True)
    pages, records = [head], []
    for name in chosen.only or ITEMS:
        module = importlib.import_module(f"benchmarks.{name}")
        entries = _entries(module, options)
        pages.append(as_markdown(module.TITLE, entries))
        records += as_records(name, entries)
        print(pages[-1], flush=True)
    missed = [record for record in records if record.get("met") is False]
    print(f"{time.perf_counter() - start:.0f} s; targets missed: {len(missed)}.")
    if chosen.json:
        chosen.json.write_text(json.dumps({"machine": machine(), "results": records}, indent=1) + "\n")
    if chosen.write:
        chosen.write.write_text("\n".join(pages))


def _head(names: Sequence[str]) -> str:
    """Return the head of the page; an item that fills one alone may bring its own."""
    alone = importlib.import_module(f"benchmarks.{names[0]}") if len(names) == 1 else None
    return getattr(alone, "HEAD", HEAD)


def _entries(module, options: Options) -> list[Entry]:
    try:
        return sorted(module.run(options), key=lambda entry: isinstance(entry, Note))
    except DataError as missing:
        return [Note(f"Skipped: {missing}.")]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with the data to measure on")
    parser.add_argument(
        "--only", nargs="+", choices=ITEMS + LONG, metavar="NAME", help=f"some of {', '.join(ITEMS + LONG)}"
    )
    parser.add_argument("--repeats", type=int, default=9, metavar="N", help="turns of each measurement (9)")
    parser.add_argument("--draws", type=int, default=40, metavar="N", help="draws of known laws (40)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the tables as Markdown")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
