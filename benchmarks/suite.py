"""The items of the suite, and how they are run one after the other."""

import importlib
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.child import ChildError
from benchmarks.options import DataError, Options
from benchmarks.result import Entry, Note, Section
from unless.errors import SettingError

ITEMS = (
    "startup", "popcount", "tests_per_second", "paper", "alarm", "structures", "sharing", "threads",
    "cluster", "ingest", "preparing", "memory", "memory_large", "weights", "weights_learned",
    "inference", "pages", "published", "fuzz",
)  # fmt: skip
# Run only when named: most take a quarter of an hour or more.
LONG = ("first_use", "wide", "scaling", "weights_large", "learners", "gssl_debd", "accuracy", "classifier")


def chosen(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the items to run, those of a full run when none are named."""
    for name in names or ():
        if name not in ITEMS + LONG:
            raise SettingError(f"There is no item {name!r}; there are {', '.join(ITEMS + LONG)}.")
    return tuple(names or ITEMS)


def run(names: Iterable[str], options: Options) -> Iterator[Section]:
    """Run items one after the other; each is given out as soon as it is done."""
    for name in names:
        module = importlib.import_module(f"benchmarks.{name}")
        yield Section(name, module.TITLE, tuple(_entries(module.run, options)))


def _entries(measure, options: Options) -> Iterator[Entry]:
    """Give out what an item finds; where it cannot go on, say why after what it found before."""
    try:
        yield from measure(options)
    except DataError as missing:
        yield Note(f"Skipped: {missing}.")
    except ChildError as failed:
        yield Note(f"Failed: {failed}")
