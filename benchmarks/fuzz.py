"""Files gone wrong, for as long as one likes: read or refused in a sentence, and soon."""

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note

TITLE = "Fuzz: spoiled files of every format"
SECONDS = float(os.environ.get("UNLESS_FUZZ_SECONDS", "60"))
MEGABYTE = 1_000_000
# Seconds a megabyte may take to be refused, on a machine that has other things to do as well.
TIME_LIMIT = 20.0


def run(_: Options) -> Iterator[Entry]:
    """Spoil small files and make garbage of up to a megabyte until the time is up."""
    from benchmarks.mutants import SEEDS, garbage, large, mutant, seconds_to_refuse

    seed = int.from_bytes(os.urandom(4), "little")
    rng = np.random.default_rng(seed)
    n_files, n_bytes = 0, 0
    slowest: defaultdict[str, float] = defaultdict(float)
    failures: list[str] = []
    end = time.monotonic() + SECONDS
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            ending = list(SEEDS)[rng.integers(len(SEEDS))]
            kind = rng.random()
            content = SEEDS[ending] if kind < 0.96 else large(rng, ending, _size(rng))
            content = garbage(rng, _size(rng)) if kind > 0.98 else mutant(rng, content)
            try:
                taken = seconds_to_refuse(content, ending, folder)
            except Exception as error:  # anything at all is what is looked for
                failures.append(f"{ending}: {type(error).__name__} ({error})")
                continue
            n_files, n_bytes = n_files + 1, n_bytes + len(content)
            slowest[ending] = max(slowest[ending], taken)
    yield Line("files that did anything but be read or refused", len(failures), at_most=0)
    yield Line("slowest file of up to 1 MB", max(slowest.values()), "s", at_most=TIME_LIMIT)
    yield Line("files tried", n_files)
    yield Line("bytes tried", n_bytes / MEGABYTE, "MB")
    yield Note(f"Seed {seed}, {SECONDS:.0f} s (UNLESS_FUZZ_SECONDS sets another time).")
    for failure in failures[:10]:
        yield Note(failure)


def _size(rng: np.random.Generator) -> int:
    return int(10 ** rng.uniform(1, 6))
