"""The popcount kernel against loops in C: the compiler's own, one of AVX2, and Harley and Seal's."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import Sample, interleave, loops_for, measured, median, ratios, spread

TITLE = "Popcount of two bitmaps, against C"
SIZES = (32, 128, 512, 2048, 16384)
# So many bitmaps (a power of two) are counted against one in turn: work the optimiser cannot lift out.
N_BITMAPS = 8
# The same source twice: for this machine, whatever it has, and for any that has AVX2.
FLAGS = {"C": ("-O3", "-march=native"), "AVX2": ("-O3", "-mavx2", "-mpopcnt")}
LOOPS = {"C": ("C", "loop"), "AVX2": ("AVX2", "shuffle"), "Harley-Seal": ("AVX2", "adders")}
# Larger than what most machines cache.
MEMORY_WORDS = 2**25
L2 = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")

Count = Callable[[np.ndarray, np.ndarray, int], int]


def run(options: Options) -> Iterator[Entry]:
    """Count 32 to 16,384 words against eight bitmaps in turn, and read memory once."""
    compiler = shutil.which("cc")
    with tempfile.TemporaryDirectory() as folder:
        libraries = _libraries(compiler, Path(folder)) if compiler else {}
        loops = {
            name: _as_count(libraries[library], function)
            for name, (library, function) in LOOPS.items()
            if library in libraries
        }
        for n_words in SIZES:
            yield from _compare(n_words, {"kernel": _numba_loop(), **loops}, options.repeats)
        if "C" in libraries:
            yield _memory(libraries["C"], options.repeats)
    if "C" not in libraries:
        yield Note("No ratios: there is no C compiler (cc) here.")
        return
    if "AVX2" not in libraries:
        yield Note("No AVX2 here, so no ratio to its loop.")
    yield Note(
        f"C by cc {' '.join(FLAGS['C'])}, AVX2 (a look-up of half bytes) and Harley-Seal by cc "
        f"{' '.join(FLAGS['AVX2'])}; {options.repeats} turns; two bitmaps of 8 bytes a word are read. "
        f"Against AVX2 the target holds where nine bitmaps fit an L2 cache of {_l2_bytes() // 1024:,} KB."
    )


def _compare(n_words: int, loops: Mapping[str, Count], repeats: int) -> Iterator[Line]:
    rng = np.random.default_rng(n_words)
    left = rng.integers(0, 2**64, n_words, dtype=np.uint64)
    rights = rng.integers(0, 2**64, (N_BITMAPS, n_words), dtype=np.uint64)
    turns = loops_for(lambda: loops["kernel"](left, rights, 1000), 0.05) * 1000
    if len({loop(left, rights, N_BITMAPS) for loop in loops.values()}) > 1:
        raise AssertionError("C and the kernel count differently")
    ways = {
        name: measured(lambda loop=loop: loop(left, rights, turns))  # type: ignore[misc]
        for name, loop in loops.items()
    }
    samples = interleave(ways, repeats)
    fits = (N_BITMAPS + 1) * 8 * n_words <= _l2_bytes()
    yield from _ratios(n_words, samples, fits)
    for name, taken in samples.items():
        speeds = [16e-9 * n_words * turns / sample.cpu for sample in taken]
        yield Line(f"{n_words:,} words: {name}", float(np.median(speeds)), "GB/s", spread(speeds))


def _ratios(n_words: int, samples: Mapping[str, list[Sample]], fits: bool) -> Iterator[Line]:
    """Yield the speed of the kernel as a share of that of each loop; time against C, as before."""
    ours = samples["kernel"]
    for name, theirs in samples.items():
        if name == "kernel":
            continue
        share = median(theirs) / median(ours)
        target = 0.6 if name == "AVX2" and fits else None
        if name == "C":
            target = 1 / 1.5
        what = f"{n_words:,} words: speed of the kernel over {name}"
        yield Line(what, share, "times", spread(ratios(theirs, ours)), at_least=target)


def _memory(library: ctypes.CDLL, repeats: int) -> Line:
    """Return how fast memory is read."""
    words = np.ones(MEMORY_WORDS, dtype=np.uint64)
    function = library.read_all
    function.restype = ctypes.c_int64
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    samples = interleave({"read": measured(lambda: function(words.ctypes.data, words.size))}, repeats)["read"]
    speeds = [1e-9 * words.nbytes / sample.cpu for sample in samples]
    return Line(
        f"memory, {words.nbytes / 1e6:,.0f} MB read", float(np.median(speeds)), "GB/s", spread(speeds)
    )


def _numba_loop() -> Count:
    import numba

    from unless.kernels.bits import popcount_and

    @numba.njit(nogil=True, error_model="numpy")
    def count_all(left, rights, turns):
        total = 0
        for turn in range(turns):
            total += popcount_and(left, rights[turn & (N_BITMAPS - 1)], left.shape[0])
        return total

    return count_all  # type: ignore[no-any-return]


def _libraries(compiler: str, folder: Path) -> dict[str, ctypes.CDLL]:
    """Compile the source for this machine, and for AVX2 where there is that."""
    libraries = {}
    source = Path(__file__).with_suffix(".c")
    information = Path("/proc/cpuinfo")
    has_avx2 = information.exists() and " avx2 " in information.read_text()
    for name, flags in FLAGS.items():
        if name == "AVX2" and not has_avx2:
            continue
        target = folder / f"{name}.so"
        subprocess.run([compiler, *flags, "-shared", "-fPIC", "-o", str(target), str(source)], check=True)
        libraries[name] = ctypes.CDLL(str(target))
    return libraries


def _as_count(library: ctypes.CDLL, name: str) -> Count:
    function = getattr(library, name)
    function.restype = ctypes.c_int64
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3]
    return lambda left, rights, turns: function(
        left.ctypes.data, rights.ctypes.data, left.size, len(rights) - 1, turns
    )


def _l2_bytes() -> int:
    """Return the size of the second cache, or a small one where nobody says."""
    text = L2.read_text().strip() if L2.exists() else "512K"
    return int(text.rstrip("KM")) * {"K": 2**10, "M": 2**20}.get(text[-1], 1)
