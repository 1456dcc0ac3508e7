"""How much memory reading may use, and what a table is expected to need."""

import os
import re
from pathlib import Path

from unless.errors import SettingError, TooLarge

# Below this the database cannot even hold its own buffers.
LEAST = 64 * 2**20
# Reading rarely gains from more, and a laptop has other guests.
MOST_BY_DEFAULT = 4 * 2**30
# Measured on text files: buffers and parser state for each column of the file.
BYTES_PER_COLUMN = 64 * 2**10
# The database aborts the process when a row of the group-by outgrows one of its blocks, at 16,384 columns.
MOST_COLUMNS = 10_000

_UNITS = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_memory(amount: int | str | None) -> int:
    """Turn bytes, a text such as "500 MB", or None (60 % of this machine, at most 4 GiB) into bytes."""
    if amount is None:
        return max(LEAST, min(int(0.6 * _machine()), MOST_BY_DEFAULT))
    number = _bytes(amount)
    if number < LEAST:
        raise SettingError(f"max_memory={amount!r} is below 64 MB, the least that is needed; give more.")
    return number


def _bytes(amount: int | str) -> int:
    if isinstance(amount, int) and not isinstance(amount, bool):
        return amount
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?\s*", str(amount), flags=re.IGNORECASE)
    if not match:
        raise SettingError(
            f"max_memory={amount!r} is not an amount of memory; give bytes or a text such as '2 GB'."
        )
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _machine() -> int:
    """Return the memory of this machine, or of the container it runs in."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        physical = 2 * MOST_BY_DEFAULT
    try:
        return min(physical, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):
        return physical


def show_memory(n_bytes: float) -> str:
    """Write bytes for a person."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.0f} {unit}" if unit in ("bytes", "KiB") else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} TiB"


def check_columns(n_columns: int, n_chosen: int, limit: int) -> None:
    """Refuse a table that is too wide, before anything is allocated for its columns."""
    need = n_columns * BYTES_PER_COLUMN
    if need > limit:
        raise TooLarge(
            f"The table has {n_columns:,} columns and reading it would need about {show_memory(need)}, more "
            f"than the {show_memory(limit)} allowed; make a table with fewer columns or raise max_memory=."
        )
    if n_chosen > MOST_COLUMNS:
        raise TooLarge(
            f"The table has {n_chosen:,} columns, more than the {MOST_COLUMNS:,} that can be counted "
            "together; choose some with columns=."
        )


def check_rows(n_distinct: int, n_columns: int, limit: int) -> None:
    """Refuse to pull more distinct rows out of the database than memory allows."""
    # Two bytes a cell as fetched, labelled, stacked, sorted, compared; counts and sort order beside.
    need = n_distinct * (10 * n_columns + 48)
    if need > limit:
        raise TooLarge(
            f"The table has {n_distinct:,} distinct rows of {n_columns:,} columns and would need about "
            f"{show_memory(need)}, more than the {show_memory(limit)} allowed; choose fewer columns with "
            "columns=, merge levels with bins= or rare=, or raise max_memory=."
        )
