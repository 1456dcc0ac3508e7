"""The popcount kernel against the same loop in C."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from unless.benchmarks.options import Options
from unless.benchmarks.result import Entry, Line, Note
from unless.benchmarks.timing import interleave, loops_for, measured, median, ratios, spread

TITLE = "Popcount of two bitmaps, against C"
SIZES = (32, 128, 512, 2048, 16384)
# So many bitmaps (a power of two) are counted against one in turn: work the optimiser cannot lift out.
N_BITMAPS = 8
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")
SOURCE = """
#include <stdint.h>
static int64_t popcount_and(const uint64_t *left, const uint64_t *right, int64_t n) {
    uint64_t ones = 0;
    for (int64_t i = 0; i < n; i++) ones += __builtin_popcountll(left[i] & right[i]);
    return (int64_t)ones;
}
int64_t count_all(const uint64_t *left, const uint64_t *rights, int64_t n, int64_t last, int64_t turns) {
    int64_t total = 0;
    for (int64_t turn = 0; turn < turns; turn++)
        total += popcount_and(left, rights + (turn & last) * n, n);
    return total;
}
"""


def run(options: Options) -> Iterator[Entry]:
    """Count 32 to 16,384 words against eight bitmaps in turn."""
    compiler = shutil.which("cc")
    ours = _numba_loop()
    with tempfile.TemporaryDirectory() as folder:
        theirs = _c_loop(compiler, Path(folder)) if compiler else None
        for n_words in SIZES:
            yield from _compare(n_words, ours, theirs, options.repeats)
    if theirs is None:
        yield Note("No ratios: there is no C compiler (cc) here.")
    else:
        yield Note(
            f"C by cc {' '.join(FLAGS[:2])}; {options.repeats} turns; two bitmaps of 8 bytes a word are read."
        )


def _compare(n_words, ours, theirs, repeats) -> Iterator[Line]:
    rng = np.random.default_rng(n_words)
    left = rng.integers(0, 2**64, n_words, dtype=np.uint64)
    rights = rng.integers(0, 2**64, (N_BITMAPS, n_words), dtype=np.uint64)
    turns = loops_for(lambda: ours(left, rights, 1000), 0.05) * 1000
    ways = {"ours": measured(lambda: ours(left, rights, turns))}
    if theirs is not None:
        if theirs(left, rights, N_BITMAPS) != ours(left, rights, N_BITMAPS):
            raise AssertionError("C and the kernel count differently")
        ways["theirs"] = measured(lambda: theirs(left, rights, turns))
    samples = interleave(ways, repeats)
    if theirs is not None:
        ratio = median(samples["ours"]) / median(samples["theirs"])
        spreads = spread(ratios(samples["ours"], samples["theirs"]))
        yield Line(f"{n_words:,} words: kernel against C", ratio, "times", spreads, at_most=1.5)
    for name, taken in samples.items():
        speeds = [16e-9 * n_words * turns / sample.cpu for sample in taken]
        who = "kernel" if name == "ours" else "C"
        yield Line(f"{n_words:,} words: {who}", float(np.median(speeds)), "GB/s", spread(speeds))


def _numba_loop():
    import numba

    from unless.kernels.slices import popcount_and

    @numba.njit(nogil=True, error_model="numpy")
    def count_all(left, rights, turns):
        total = 0
        for turn in range(turns):
            total += popcount_and(left, rights[turn & (N_BITMAPS - 1)], left.shape[0])
        return total

    return count_all


def _c_loop(compiler: str, folder: Path):
    source, library = folder / "popcount.c", folder / "popcount.so"
    source.write_text(SOURCE)
    subprocess.run([compiler, *FLAGS, "-o", str(library), str(source)], check=True)
    function = ctypes.CDLL(str(library)).count_all
    function.restype = ctypes.c_int64
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3]
    return lambda left, rights, turns: function(
        left.ctypes.data, rights.ctypes.data, left.size, len(rights) - 1, turns
    )
