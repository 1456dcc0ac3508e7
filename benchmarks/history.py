"""Runs of the suite as JSON files, and the page that is written from one."""

import importlib
import json
import subprocess
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.result import Section, as_markdown, as_records, from_records, machine, versions
from benchmarks.suite import ITEMS, LONG
from unless.errors import FileFormatError

FORMAT, VERSION = "unless-benchmarks", 1
HEAD = """# What it costs

Written by `make bench`, from the newest file in `benchmarks/history`. Every ratio is one of medians from one
interleaved run (ABAB...), of CPU time where nothing else is said; the spread is the range over the turns. The
machine is shared, so only the ratios mean much.

Machine: {machine}.
"""


def document(
    sections: Iterable[Section], date: datetime, before: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Describe a run as plain data; items that were not run are taken over from the run before it."""
    when, revision = date.strftime("%Y-%m-%d %H:%M"), _revision()
    items = {item["name"]: item for item in (before or {}).get("items", ())}
    for section in sections:
        items[section.name] = {
            "name": section.name,
            "title": section.title,
            "date": when,
            "revision": revision,
            "entries": as_records(section.entries),
        }
    return {
        "format": FORMAT,
        "version": VERSION,
        "date": when,
        "revision": revision,
        "machine": machine(),
        "versions": versions(),
        "items": [items[name] for name in ITEMS + LONG if name in items],
    }


def page(run: dict[str, Any]) -> str:
    """Write a run as Markdown."""
    parts = [_head(run["items"]).format(machine=run["machine"])]
    for item in run["items"]:
        section = Section(item["name"], item["title"], from_records(item["entries"]))
        parts.append(
            f"{as_markdown(section)}\nMeasured on {item['date']} UTC at {item['revision'] or 'no commit'}.\n"
        )
    return "\n".join(parts)


def keep(run: dict[str, Any], folder: Path) -> Path:
    """Write a run into a folder of runs."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run['date'].replace(' ', 'T').replace(':', '')}.json"
    path.write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def newest(folder: Path) -> dict[str, Any] | None:
    """Read the last run of a folder, if there is one."""
    paths = sorted(folder.glob("*.json"))
    return read(paths[-1]) if paths else None


def read(path: Path) -> dict[str, Any]:
    """Read a run."""
    run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if run.get("format") != FORMAT or run.get("version") != VERSION:
        raise FileFormatError(f"{path.name} holds no figures that this version can read.")
    return run


def _head(items: list[dict[str, Any]]) -> str:
    """Return the head of the page; an item that fills one alone may bring its own."""
    alone = importlib.import_module(f"benchmarks.{items[0]['name']}") if len(items) == 1 else None
    return getattr(alone, "HEAD", HEAD)


def _revision() -> str:
    """Name the commit that was measured, where the code lies in a repository."""
    try:
        words = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
        told = subprocess.run(
            words, cwd=Path(__file__).parent, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return told.stdout.strip()
