"""CPU time from the start of a process."""

import compileall
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.timing import Sample, interleave, median, spread, times

TITLE = "Start-up: CPU time from process start"
COLD_TURNS = 2
PYTHON = [sys.executable]
UNLESS = [str(Path(sys.executable).parent / "unless")]
# Linux: take the right to write anywhere from a process of root's.
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1


def run(options: Options) -> Iterator[Entry]:
    """Start processes, with compiled kernels, without them, and where the package cannot be written to."""
    if not hasattr(os, "wait4"):
        yield Note("Skipped: this system does not tell what a process cost.")
        return
    ways = {
        "python -c pass": ([*PYTHON, "-c", "pass"], None),
        'python -c "import unless"': ([*PYTHON, "-c", "import unless"], 0.5),
        "unless --help": ([*UNLESS, "--help"], 0.2),
        "unless demo, kernels compiled": ([*UNLESS, "demo"], 2.5),
    }
    broken = [name for name, (command, _) in ways.items() if _fails(command)]
    for name in broken:
        yield Note(f"Skipped `{name}`: it does not run yet.")
    measured = {
        name: (lambda command=command: cost(command))
        for name, (command, _) in ways.items()
        if name not in broken
    }
    for name, taken in interleave(measured, options.repeats).items():
        yield Line(name, median(taken), "s", spread(times(taken)), at_most=ways[name][1])
    if not any("demo" in name for name in broken):
        yield from _cold()
        yield from _read_only()
    yield Note(f"User and system time of the child; {options.repeats} turns, cold ones {COLD_TURNS}.")


def cost(
    command: list[str],
    environment: Mapping[str, str] | None = None,
    before: Callable[[], object] | None = None,
    folder: Path | None = None,
) -> Sample:
    """Run a command to its end and return what it cost."""
    wall = time.perf_counter()
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
        cwd=folder or tempfile.gettempdir(),
        preexec_fn=before,
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{Path(command[0]).name} {' '.join(command[1:])} failed")
    return Sample(usage.ru_utime + usage.ru_stime, time.perf_counter() - wall)


def _fails(command: list[str]) -> bool:
    try:
        cost(command)
    except (OSError, RuntimeError):
        return True
    return False


def _cold() -> Iterator[Entry]:
    """Point the kernel cache at an empty folder, and let numba run what plain Python would."""
    taken = []
    for _ in range(COLD_TURNS):
        with tempfile.TemporaryDirectory() as cache:
            taken.append(cost([*UNLESS, "demo"], {"NUMBA_CACHE_DIR": cache, "UNLESS_KERNELS": "numba"}))
            n_kept = len(list(Path(cache).rglob("*.nbi")))
    yield Line("unless demo, no kernels compiled", median(taken), "s", spread(times(taken)), at_most=12)
    yield Line("kernels kept in NUMBA_CACHE_DIR", n_kept, at_least=1)


def _give_up_writing_anywhere() -> None:
    if sys.platform == "linux" and os.geteuid() == 0:
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


def _read_only() -> Iterator[Entry]:
    """Run the package twice where it cannot be written to: kernels must be kept elsewhere."""
    import unless

    with tempfile.TemporaryDirectory() as folder:
        package, home = Path(folder) / "site", Path(folder) / "home"
        shutil.copytree(
            Path(unless.__file__).parent, package / "unless", ignore=shutil.ignore_patterns("__pycache__")
        )
        compileall.compile_dir(package, quiet=2)
        home.mkdir()
        for path in (package, *package.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        environment = {
            "PYTHONPATH": str(package),
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / ".cache"),
            # Plain Python, which runs small work, keeps nothing.
            "UNLESS_KERNELS": "numba",
        }
        try:
            command = [
                *PYTHON,
                "-c",
                "import sys; from unless.cli import main; sys.argv = ['unless', 'demo']; main()",
            ]
            first, second = (cost(command, environment, _give_up_writing_anywhere) for _ in range(2))
            n_kept = len(list((home / ".cache").rglob("*.nbi")))
        except (OSError, RuntimeError) as error:
            yield Note(f"The read-only package could not be tried: {type(error).__name__}.")
            return
        finally:
            for path in (package, *package.rglob("*")):
                path.chmod(0o755)
    yield Line("unless demo, read-only package, first time", first.cpu, "s", at_most=12)
    yield Line("unless demo, read-only package, second time", second.cpu, "s", at_most=2.5)
    yield Line("kernels kept in the user's cache folder", n_kept, at_least=1)
