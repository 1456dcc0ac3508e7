"""CPU time of the first commands after an installation: from a wheel with machine code, and from a clone."""

import gzip
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note
from benchmarks.startup import cost
from benchmarks.timing import median, spread, times
from unless.datasets import load_titanic

TITLE = "First use: CPU time of commands, each in a process of its own, with an empty home"
ROOT = Path(__file__).resolve().parents[1]
# Seconds that each command may take after the installation of a wheel.
FROM_WHEEL = {
    "demo": 1.0,
    "learn titanic.csv -o t.unless": 1.5,
    "report t.unless -o t.html": 2.1,
    "fit t.unless titanic.csv -o m.unless": 1.0,
    "query m.unless Survived": 0.6,
    "learn titanic.csv -o g.unless --learner GGS": 1.6,
    "learn titanic.csv -o d.unless --learner DTSL": 1.6,
    "learn alarm.csv -o a.unless": 7.0,
}
FROM_CLONE = list(FROM_WHEEL)[1:5]
WARM = {"learn titanic.csv -o t.unless": 1.2, "show t.unless": 0.5}


def run(options: Options) -> Iterator[Entry]:
    """Install the newest wheel of dist; clone the repository; call commands for the first time."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _write_tables(place, options)
        wheels = sorted((ROOT / "dist").glob("*_*.whl"), key=lambda path: path.stat().st_mtime)
        if wheels:
            yield from _from_wheel(place, wheels[-1], options.repeats)
        else:
            yield Note("Skipped the wheel: there is none in dist; run `make wheel`.")
        yield from _from_clone(place)


def _write_tables(folder: Path, options: Options) -> None:
    data = load_titanic()
    rows = [
        ",".join(data.domain.decode(row).values())
        for row, count in zip(data.rows, data.counts, strict=True)
        for _ in range(count)
    ]
    (folder / "titanic.csv").write_text("\n".join([",".join(data.names), *rows]))
    packed = options.need("bnlearn_alarm") / "data.csv.gz"
    (folder / "alarm.csv").write_bytes(gzip.decompress(packed.read_bytes()))


def _from_wheel(folder: Path, wheel: Path, n_turns: int) -> Iterator[Entry]:
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    install = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
    subprocess.run(install, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    size = sum(path.lstat().st_size for path in environment.rglob("*") if path.is_file())
    yield Line("installed, with pip and setuptools", size / 1e6, "MB", at_most=360)
    command = str(environment / "bin" / "unless")
    for given, bound in FROM_WHEEL.items():
        taken = []
        for _ in range(n_turns):
            with tempfile.TemporaryDirectory() as home:
                taken.append(cost([command, *given.split()], {"HOME": home}, folder=folder))
        yield Line(f"wheel: unless {given}", median(taken), "s", spread(times(taken)), at_most=bound)
    for given, bound in WARM.items():
        taken = [cost([command, *given.split()], folder=folder) for _ in range(n_turns)]
        yield Line(f"wheel, again: unless {given}", median(taken), "s", spread(times(taken)), at_most=bound)


def _from_clone(folder: Path) -> Iterator[Entry]:
    """Call the sources of a clone, whose kernels nobody has compiled."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder / "clone")], check=True)
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PYTHONPATH": str(folder / "clone" / "src")}
        command = [sys.executable, "-m", "unless"]
        taken = [cost([*command, *given.split()], environment, folder=folder) for given in FROM_CLONE]
        yield Line("clone: unless learn titanic.csv", taken[0].cpu, "s", at_most=2.0)
        yield Line("clone: learn, report, fit, query", sum(one.cpu for one in taken), "s", at_most=9.0)
        alarm = cost([*command, "learn", "alarm.csv", "-o", "a.unless"], environment, folder=folder)
        yield Line("clone: unless learn alarm.csv, wall", alarm.wall, "s", at_most=20.0)
        yield Line("clone: unless learn alarm.csv, this process", alarm.cpu, "s")
