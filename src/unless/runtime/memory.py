"""How much memory may be used, and what a table is expected to need."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from unless.errors import SettingError, TooLarge

resource: ModuleType | None
try:
    # Now: where memory has run out it could not be loaded any more.
    import resource
except ImportError:
    resource = None

# Addresses that the libraries map before a table is opened; with less some of them hang or abort.
LEAST_ADDRESSES = 2**30
_ADDRESSES_OF_A_THREAD = 80 * 2**20
# Below this the database cannot even hold its own buffers.
LEAST = 64 * 2**20
# An amount of memory as users give it: bytes, a text such as "2 GB", or None for a share of the machine.
Memory = int | str | None
# Reading rarely gains from more, and other programs need memory, too.
MOST_BY_DEFAULT = 4 * 2**30
# Measured on text files: buffers and parser state for each column of the file.
BYTES_PER_COLUMN = 64 * 2**10
# The database aborts the process when a row of the group-by outgrows one of its blocks, at 16,384 columns.
MOST_COLUMNS = 10_000
# Where Linux lists the limits of control groups.
CONTROL_GROUPS = Path("/sys/fs/cgroup")
_NO_ROOM = re.compile(r"can't start new thread|cannot allocate memory|failed to map segment", re.IGNORECASE)
_UNITS = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_memory(amount: Memory) -> int:
    """Turn bytes, a text such as "500 MB", or None into bytes.

    None means 60 % of what the machine, the container and the limits of the process leave, at most 4 GiB.
    """
    if amount is None:
        return max(LEAST, min(int(0.6 * _available()), MOST_BY_DEFAULT))
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


def _available() -> int:
    """Return the memory that this process may take: of the machine, its container, and its own limits."""
    return min(limit for limit, _ in _limits())


def _limits() -> list[tuple[int, str]]:
    """List every limit that can be found out, with what sets it."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        physical = 2 * MOST_BY_DEFAULT
    groups = [(limit, "the control group (container)") for limit in _of_control_groups(CONTROL_GROUPS)]
    own = [(limit, f"ulimit {option}") for limit, option in _of_process()]
    return [(physical, "the machine"), *groups, *own]


def _of_control_groups(root: Path) -> list[int]:
    """Read the limits of the control groups that this process is in, of both versions, and of those above."""
    folders = [root, root / "memory"]
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers in ("", "memory"):
            top = root / controllers
            inner = top / group.lstrip("/")
            folders += [inner, *(one for one in inner.parents if one.is_relative_to(top))]
    limits = set()
    for folder in dict.fromkeys(map(os.fspath, folders)):
        for name in ("memory.max", "memory.limit_in_bytes"):
            # "max" where there is no limit; a container may not see the group it is in.
            with suppress(OSError, ValueError), open(f"{folder}/{name}", "rb", 0) as file:  # noqa: PTH123 (in a third of the time)
                limits.add(int(file.read()))
    return sorted(limits)


def _of_process() -> list[tuple[int, str]]:
    """Return what the limits of this process on addresses and on data leave of each."""
    if resource is None:
        return []
    left = []
    for kind, option, field in ((resource.RLIMIT_AS, "-v", "VmSize"), (resource.RLIMIT_DATA, "-d", "VmData")):
        limit, _ = resource.getrlimit(kind)
        if limit != resource.RLIM_INFINITY:
            left.append((max(0, limit - _used(field)), option))
    return left


def _used(field: str) -> int:
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    match = re.search(rf"^{field}:\s+(\d+) kB", text, flags=re.MULTILINE)
    return int(match[1]) * 2**10 if match else 0


def check_process() -> None:
    """Refuse to begin where the limits of the process leave no room for the libraries themselves."""
    for limit, option in _of_process():
        if limit < LEAST_ADDRESSES:
            raise TooLarge(
                f"There is not enough memory: ulimit {option} leaves {show_memory(limit)}, and the libraries "
                f"alone need {show_memory(LEAST_ADDRESSES)}; allow the process more."
            )


def threads_that_fit() -> int | None:
    """Return how many threads the limits of the process leave room for; None where there is no limit.

    A thread reserves addresses for its stack and its heap before it uses any.
    """
    limits = [limit for limit, _ in _of_process()]
    return max(1, min(limits) // (8 * _ADDRESSES_OF_A_THREAD)) if limits else None


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an exception means that the system gave no more memory, whatever its type."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException":
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    # Threads need a stack, and libraries room to be loaded into.
    return isinstance(error, RuntimeError | OSError | ImportError) and bool(_NO_ROOM.search(str(error)))


def out_of_memory() -> TooLarge:
    """Return the error that says how much this process may take, and what to do."""
    limit, by = min(_limits())
    return TooLarge(
        f"There is not enough memory: {by} leaves {show_memory(limit)}; choose fewer columns, lower "
        "max_memory= so that more goes to disk or is refused beforehand, or allow the process more."
    )


@contextmanager
def memory_errors_explained() -> Iterator[None]:
    """Turn whatever error means that memory ran out into one clear sentence."""
    try:
        yield
    except TooLarge:
        raise
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise out_of_memory() from None


def show_memory(n_bytes: float) -> str:
    """Write bytes for a person."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.0f} {unit}" if unit in ("bytes", "KiB") else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} TiB"


def check_need(
    need: float, limit: int, work: str, way_out: str = "choose fewer columns or raise max_memory="
) -> None:
    """Refuse work that needs more memory than is allowed; `work` is the sentence up to the amount."""
    if need > limit:
        amounts = f"{show_memory(need)}, more than the {show_memory(limit)} allowed"
        raise TooLarge(f"{work} {amounts}; {way_out}.")


def check_columns(n_columns: int, n_chosen: int, limit: int) -> None:
    """Refuse a table that is too wide, before anything is allocated for its columns."""
    work = f"The table has {n_columns:,} columns and reading it would need about"
    way_out = "make a table with fewer columns or raise max_memory="
    check_need(n_columns * BYTES_PER_COLUMN, limit, work, way_out)
    if n_chosen > MOST_COLUMNS:
        raise TooLarge(
            f"The table has {n_chosen:,} columns, more than the {MOST_COLUMNS:,} that can be counted "
            "together; leave some out with exclude=."
        )


def check_rows(n_distinct: int, n_columns: int, limit: int) -> None:
    """Refuse to pull more distinct rows out of the database than memory allows."""
    # Two bytes a cell as fetched, labelled, stacked, sorted, compared; counts and sort order beside.
    need = n_distinct * (10 * n_columns + 48)
    work = f"The table has {n_distinct:,} distinct rows of {n_columns:,} columns and would need about"
    way_out = "leave columns out with exclude=, merge levels with bins= or rare=, or raise max_memory="
    check_need(need, limit, work, way_out)
