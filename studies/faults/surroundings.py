"""Commands whose surroundings fail: full disks, read-only folders, inputs that change, closed streams.

`python -m studies.faults.surroundings` runs it alone.
"""

import argparse
import lzma
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from studies.faults.commands import PROC, Cell, Ended, finish, wrong_with

OLD = "what was there before"
# What is said where there is no more room, on a small disk and with a limit on the size of files.
FULL = r"(?:No space left on device|File too large)"
# Bytes: of a disk that holds a small file but no result, of one for work, and of the limit without disks.
DISK, LIMIT = 8192, 1000
# Rows of the table that changes while it is read.
N_ROWS, N_QUICK = 2_000_000, 500_000
# Mounts a small disk in a name space of its own, runs a command on it, and tells what is there afterwards.
ON_A_DISK = """
place=$1 size=$2 old=$3 read_only=$4 listing=$5 here=$6
shift 6
mount -t tmpfs -o size="$size" none "$place" || exit 97
[ -z "$old" ] || printf %s "what was there before" > "$place/$old"
[ -z "$read_only" ] || mount -o remount,ro "$place" || exit 97
cd "$here"
"$@"
code=$?
ls -A "$place" > "$listing"
[ -z "$old" ] || cat "$place/$old" > "$listing.old"
exit $code
"""


@dataclass
class Seen:
    """What a command did in bad surroundings; `faults` is empty if it did right."""

    what: str
    how: str
    code: int | None = None
    said: str = ""
    faults: list[str] = field(default_factory=list)


@dataclass
class Setting:
    """What all cells need: inputs, a folder for cells, and what this machine allows."""

    inputs: Path
    folder: Path
    rng: random.Random
    n_rows: int
    disks: Sequence[str] | None
    n_cells: int = 0

    def cell(self) -> Cell:
        """Make a new folder for commands."""
        self.n_cells += 1
        return Cell(self.folder / str(self.n_cells))

    def input(self, name: str) -> str:
        """Name an input."""
        return str(self.inputs / name)


def study(folder: Path, seed: int, quick: bool, minutes: float) -> str:
    """Run all cells, and return the section of the page."""
    end = time.monotonic() + 60 * minutes
    shutil.rmtree(folder / "cells", ignore_errors=True)
    setting = _prepare(folder.absolute(), seed, quick)
    seen: list[Seen] = []
    for group in GROUPS:
        if time.monotonic() > end:
            seen.append(Seen(group.__name__.replace("_", " "), "left out: there was no time"))
            continue
        seen += group(setting)
    if not any(one.faults for one in seen):
        shutil.rmtree(folder / "cells", ignore_errors=True)
    return section(seen)


def _prepare(folder: Path, seed: int, quick: bool) -> Setting:
    inputs = folder / "inputs"
    inputs.mkdir(parents=True, exist_ok=True)
    n_rows = N_QUICK if quick else N_ROWS
    rng = random.Random(seed)  # noqa: S311 (no secret)
    setting = Setting(inputs, folder / "cells", rng, n_rows, _small_disks())
    cell = setting.cell()
    for name, words in {
        "t.csv": ("datasets", "csi", "--variables", "12", "--rows", "20000", "-o"),
        "m.unless": ("learn", setting.input("t.csv"), "-o"),
        "f.unless": ("fit", setting.input("m.unless"), setting.input("t.csv"), "-o"),
    }.items():
        ended = cell.run([*words, setting.input(name)])
        if ended.code:
            raise RuntimeError(f"{' '.join(words)} failed: {ended.sentence}")
    (inputs / "t.csv.xz").write_bytes(lzma.compress((inputs / "t.csv").read_bytes(), preset=0))
    return setting


def _small_disks() -> Sequence[str] | None:
    """Return what starts a program that may mount disks for itself alone, if this machine allows that."""
    for words in (["unshare", "-m"], ["unshare", "-Urm"]):
        if shutil.which(words[0]) is None:
            continue
        test = [*words, "sh", "-c", "mount -t tmpfs -o size=4096 none /mnt"]
        if subprocess.run(test, capture_output=True, check=False).returncode == 0:  # noqa: S603
            return words
    return None


# --- full disks and read-only folders -----------------------------------------------------------------------


def full_disks(setting: Setting) -> Iterator[Seen]:
    """Let outputs, unpacked tables and finished work meet a full disk."""
    cases = {
        "learn": (["learn", setting.input("t.csv"), "-o", "m.unless"], "m.unless"),
        "report": (["report", setting.input("m.unless"), "-o", "r.html"], "r.html"),
        "fit": (["fit", setting.input("m.unless"), setting.input("t.csv"), "-o", "f.unless"], "f.unless"),
        "sample": (["sample", setting.input("f.unless"), "-n", "20000", "-o", "s.csv"], "s.csv"),
        "convert": (["convert", setting.input("f.unless"), "f.json"], "f.json"),
        "datasets": (["datasets", "csi", "--rows", "20000", "-o", "d.csv"], "d.csv"),
    }
    for name, (words, output) in cases.items():
        seen = Seen(f"full disk, the output of `unless {name}`", _disk_in_words(setting))
        cell = setting.cell()
        ended = _on_small_disk(setting, cell, words, cell.out, output)
        _expect(seen, ended, 2, rf"unless: '{re.escape(output)}': {FULL}\.")
        seen.faults += _wrong_on_disk(cell, [output])
        yield seen
    seen = Seen("full disk while a table is unpacked (.xz)", _disk_in_words(setting))
    cell = setting.cell()
    words = ["learn", setting.input("t.csv.xz"), "-o", "m.unless"]
    ended = _on_small_disk(setting, cell, words, cell.temporary, None)
    _expect(seen, ended, 2, rf"unless: .*(?:{FULL}|[Nn]o space).*", never="damaged")
    seen.faults += _wrong_on_disk(cell, [])
    yield seen
    seen = Seen("full disk, the folder of --work-dir", _disk_in_words(setting))
    cell = setting.cell()
    (cell.out / "work").mkdir()
    words = ["learn", setting.input("t.csv"), "-o", "m.unless", "--work-dir", "work", "--quiet"]
    ended = _on_small_disk(setting, cell, words, cell.out / "work", None)
    _expect(seen, ended, 2, rf"unless: --work-dir '.*' cannot be written any more \({FULL}\); .*--resume\.")
    yield seen


def _disk_in_words(setting: Setting) -> str:
    return f"a disk of {DISK} bytes" if setting.disks else f"no file larger than {LIMIT} bytes"


def _on_small_disk(setting: Setting, cell: Cell, words: list[str], place: Path, old: str | None) -> Ended:
    """Run a command with a disk too small in one place, or where that cannot be, with a limit for files."""
    if setting.disks is not None:
        return cell.run(words, within=_mounting(setting.disks, cell, place, old))
    if old is not None:
        (place / old).write_text(OLD)

    def limit() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))

    ended = cell.run(words, prepare=limit)
    (cell.folder / "listing").write_text("\n".join(cell.files()))
    if old is not None:
        (cell.folder / "listing.old").write_text((place / old).read_text())
    return ended


def _mounting(
    disks: Sequence[str], cell: Cell, place: Path, old: str | None, *, read_only: bool = False
) -> list[str]:
    listing = str(cell.folder / "listing")
    given = [str(place), str(DISK), old or "", "yes" if read_only else "", listing, str(cell.out)]
    return [*disks, "sh", "-c", ON_A_DISK, "sh", *given]


def _wrong_on_disk(cell: Cell, expected: list[str]) -> list[str]:
    """Say what is not as before on the disk."""
    listing = cell.folder / "listing"
    if not listing.exists():
        return ["the disk could not be made"]
    faults = []
    if (there := listing.read_text().split()) != expected:
        faults.append(f"{there} is there afterwards")
    if expected and (cell.folder / "listing.old").read_text() != OLD:
        faults.append("the old file was changed")
    if cell.left():
        faults.append(f"{cell.left()} stayed in the temporary folder")
    return faults


def read_only_folders(setting: Setting) -> Iterator[Seen]:
    """Let outputs go where nothing can be written."""
    cases = {
        "learn": (["learn", setting.input("t.csv"), "-o", "m.unless"], "m.unless"),
        "datasets": (["datasets", "titanic", "-o", "d.csv"], "d.csv"),
    }
    for name, (words, output) in cases.items():
        seen = Seen(f"read-only disk, the output of `unless {name}`", "a disk mounted read-only")
        if setting.disks is None:
            seen.how = "left out: no disk can be mounted here"
        else:
            cell = setting.cell()
            ended = cell.run(words, within=_mounting(setting.disks, cell, cell.out, output, read_only=True))
            _expect(seen, ended, 2, rf"unless: '{re.escape(output)}': Read-only file system\.")
            seen.faults += _wrong_on_disk(cell, [output])
        yield seen
    for name, (words, output) in cases.items():
        seen = Seen(f"forbidden folder, the output of `unless {name}`", "a folder of mode 0555")
        cell = setting.cell()
        (cell.out / output).write_text(OLD)
        cell.out.chmod(0o555)
        try:
            ended = cell.run(words, prepare=_obey_permissions)
        except (OSError, subprocess.SubprocessError) as error:
            seen.how = f"left out: {error}"
        else:
            _expect(seen, ended, 2, rf"unless: '{re.escape(output)}': Permission denied\.")
        cell.out.chmod(0o755)
        if cell.files() != [output] or (cell.out / output).read_text() != OLD:
            seen.faults.append(f"{cell.files()} is there afterwards")
        yield seen


def _obey_permissions() -> None:
    """Let root be held to the permissions of files as anybody is, from the next program on."""
    if os.geteuid() != 0:
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    # PR_CAPBSET_DROP: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH.
    for capability in (1, 2):
        if libc.prctl(24, capability, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "root cannot be held to permissions here")


# --- inputs that change while they are read -----------------------------------------------------------------


def changing_inputs(setting: Setting) -> Iterator[Seen]:
    """Remove and truncate a table while it is read."""
    text = (setting.inputs / "t.csv").read_bytes()
    header, _, rows = text.partition(b"\n")
    many = header + b"\n" + rows * max(1, setting.n_rows // rows.count(b"\n"))
    cell = setting.cell()
    (cell.out / "big.csv").write_bytes(many)
    words = ["learn", "big.csv", "-o", "m.unless", "--quiet"]
    running = cell.start(words)
    seconds = _watch(running, cell.out / "big.csv")
    ended = finish(running)
    if ended.code:
        raise RuntimeError(f"{' '.join(words)} failed: {ended.sentence}")
    whole = (cell.out / "m.unless").read_bytes()

    def remove(path: Path) -> None:
        path.unlink()

    # At the end of a row, where what is left is a table as well.
    end = many.index(b"\n", len(many) // 3) + 1

    def truncate(path: Path) -> None:
        os.truncate(path, end)

    for name, change in (("removed", remove), ("truncated", truncate)):
        for share in sorted(setting.rng.uniform(0, 0.9) for _ in range(4)):
            cell = setting.cell()
            table = cell.out / "big.csv"
            table.write_bytes(many)
            seen = Seen(f"table {name} while it is read", f"after {share:.0%} of the time that reading takes")
            running = cell.start(words)
            _wait_until_open(running, table)
            time.sleep(share * seconds)
            change(table)
            _judge_changed(seen, finish(running), cell, whole)
            shutil.rmtree(cell.folder)
            yield seen


def _watch(running: subprocess.Popen[str], path: Path) -> float:
    """Return the seconds from the first to the last moment at which a process has a file open."""
    first = last = None
    while running.poll() is None:
        if _has_open(running, path):
            last = time.monotonic()
            first = first or last
        elif last is not None and time.monotonic() > last + 2:
            break
        time.sleep(0.001)
    return 0.0 if first is None or last is None else last - first


def _wait_until_open(running: subprocess.Popen[str], path: Path) -> None:
    while running.poll() is None and not _has_open(running, path):
        time.sleep(0.001)


def _has_open(running: subprocess.Popen[str], path: Path) -> bool:
    for handle in (PROC / str(running.pid) / "fd").glob("*"):
        try:
            if handle.readlink() == path:
                return True
        except OSError:
            continue
    return False


def _judge_changed(seen: Seen, ended: Ended, cell: Cell, whole: bytes) -> None:
    model = cell.out / "m.unless"
    if ended.code == 0 and model.exists() and model.read_bytes() == whole:
        # All of it had been read.
        _expect(seen, ended, 0, "")
        return
    _expect(seen, ended, 2, r"unless: .*big\.csv.* (?:was removed|changed) while it was read.*")
    if model.exists():
        seen.faults.append("a model was written that is not of the whole table")


# --- streams ------------------------------------------------------------------------------------------------


def closed_streams(setting: Setting) -> Iterator[Seen]:
    """Close streams before the start, or let nothing be written to them."""
    learn = ["learn", setting.input("t.csv"), "-o", "m.unless"]
    streams = {"stdin": (0,), "stdout": (1,), "stderr": (2,), "stdout and stderr": (1, 2), "all": (0, 1, 2)}
    for name, numbers in streams.items():
        seen = Seen(f"{name} closed, `unless learn`", "closed before the start")
        cell = setting.cell()
        ended = cell.run(learn, prepare=_closing(numbers))
        _expect(seen, ended, 0, None)
        model = cell.out / "m.unless"
        if not model.exists() or model.read_bytes() != (setting.inputs / "m.unless").read_bytes():
            seen.faults.append("the model is not there, or another")
        yield seen
    for name, numbers in streams.items():
        seen = Seen(f"{name} closed, `unless datasets titanic`", "closed before the start")
        _expect(seen, setting.cell().run(["datasets", "titanic"], prepare=_closing(numbers)), 0, None)
        yield seen
    full = Path("/dev/full")
    for words in (["datasets", "titanic"], ["show", setting.input("m.unless"), "--json"]):
        seen = Seen(f"stdout cannot be written, `unless {words[0]}`", str(full))
        if not full.exists():
            seen.how = f"left out: there is no {full}"
        else:
            with full.open("w") as stream:
                ended = setting.cell().run(words, stdout=stream)
            _expect(seen, ended, 2, r"unless: .*No space left on device.*")
        yield seen


def _closing(numbers: Sequence[int]) -> Callable[[], None]:
    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


GROUPS: Sequence[Callable[[Setting], Iterator[Seen]]] = (
    full_disks,
    read_only_folders,
    changing_inputs,
    closed_streams,
)


def _expect(seen: Seen, ended: Ended, code: int, sentence: str | None, never: str | None = None) -> None:
    """Hold a command to its exit code and its sentence, which is one line; None where nothing is asked."""
    seen.code, seen.said = ended.code, ended.sentence
    seen.faults += wrong_with(ended)
    if ended.code != code:
        seen.faults.append(f"its exit code is {ended.code} instead of {code}")
    lines = [line for line in ended.stderr.splitlines() if line.startswith("unless: ")]
    if sentence and not any(re.fullmatch(sentence, line) for line in lines):
        seen.faults.append(f"it said something else than {sentence}")
    if never and never in ended.stderr:
        seen.faults.append(f"it said that something is {never}")


def section(seen: Sequence[Seen]) -> str:
    """Write the section: what was wrong around commands, and what they said."""
    wrong = [one for one in seen if one.faults]
    n_run = sum(one.code is not None for one in seen)
    lines = [
        "## Surroundings",
        "",
        f"{n_run} commands were run where something around them fails. Not as they should be (exit code, "
        f"sentence, traceback, files left behind): {len(wrong)}.",
        "",
        "| what | how | exit code | what was said on stderr |",
        "|---|---|---|---|",
    ]
    for one in seen:
        # The same command in other words would fold the table.
        said = _shortened(one.said).replace("|", r"\|")
        lines.append(f"| {one.what} | {one.how} | {'' if one.code is None else one.code} | {said} |")
    lines.append("")
    lines += [f"- {one.what} ({one.how}): {'; '.join(one.faults)}." for one in wrong]
    return "\n".join(lines).rstrip() + "\n"


def _shortened(text: str) -> str:
    # Folders of the machine say nothing to a reader.
    text = re.sub(r"'[^']*/([^/']*)'", r"'.../\1'", text)
    return text if len(text) <= 160 else f"{text[:157]}..."


def main(words: list[str] | None = None) -> int:
    """Run the study alone and print its section; returns 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m studies.faults.surroundings", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/faults/surroundings"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a smaller table")
    parser.add_argument("--minutes", type=float, default=15.0)
    options = parser.parse_args(words)
    text = study(options.folder, options.seed, options.quick, options.minutes)
    sys.stdout.write(text)
    return int("\n- " in text)


if __name__ == "__main__":
    sys.exit(main())
