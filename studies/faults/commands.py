"""The command line as a process of its own: started with its own temporary folder, and looked at."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# Seconds after which a command is given up.
TIME_LIMIT = 120.0
TEMPORARY = "temporary"
PROC = Path("/proc")


@dataclass
class Ended:
    """A command that has ended."""

    code: int
    said: str
    stderr: str

    @property
    def sentence(self) -> str:
        """What was written to stderr, in one line."""
        return " ".join(self.stderr.split())


@dataclass
class Cell:
    """A folder for commands to work in, with a temporary folder of their own beside it."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Commands are started in another folder than this process.
        self.folder = self.folder.absolute()
        for path in (self.out, self.temporary):
            path.mkdir(parents=True, exist_ok=True)

    @property
    def out(self) -> Path:
        """Where commands are started, and write."""
        return self.folder / "out"

    @property
    def temporary(self) -> Path:
        """Where their temporary files go."""
        return self.folder / TEMPORARY

    def start(
        self,
        words: Sequence[str],
        prepare: Callable[[], object] | None = None,
        within: Sequence[str] = (),
        **streams: Any,
    ) -> subprocess.Popen[str]:
        """Start a command; `prepare` is called in its process, and `within` is a program that starts it."""

        def first() -> None:
            # A shell's background job would ignore some.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            if prepare is not None:
                prepare()

        path = os.pathsep.join(part for part in (str(ROOT / "src"), os.environ.get("PYTHONPATH")) if part)
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(  # noqa: S603 (our own command line)
            [*within, sys.executable, "-m", "unless", *words],
            cwd=self.out,
            text=True,
            errors="replace",
            env={
                **os.environ,
                **self.environment,
                "PYTHONPATH": path,
                "TMPDIR": str(self.temporary),
                # Where no file may be large, Python would keep halves of its own.
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            preexec_fn=first,
            start_new_session=True,
            **(pipes | streams),
        )

    def run(
        self,
        words: Sequence[str],
        prepare: Callable[[], object] | None = None,
        within: Sequence[str] = (),
        **streams: Any,
    ) -> Ended:
        """Run a command to its end."""
        return finish(self.start(words, prepare, within, **streams))

    def files(self) -> list[str]:
        """Name all files that commands wrote."""
        return sorted(str(path.relative_to(self.out)) for path in self.out.rglob("*") if not path.is_dir())

    def left(self) -> list[str]:
        """Name all that is in the temporary folder."""
        return sorted(str(path.relative_to(self.temporary)) for path in self.temporary.rglob("*"))


def finish(running: subprocess.Popen[str]) -> Ended:
    """Wait for a command."""
    try:
        said, stderr = running.communicate(timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        running.kill()
        running.communicate()
        return Ended(running.returncode, "", f"it had not ended after {TIME_LIMIT:.0f} seconds")
    return Ended(running.returncode, said or "", stderr or "")


def wait_until_heard(running: subprocess.Popen[str]) -> bool:
    """Wait until a command listens to signals, False if it never does: while Python starts, it does not."""
    status = PROC / str(running.pid) / "status"
    while running.poll() is None:
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:
            return False
        # Python listens to Ctrl-C from the start, but not to SIGTERM.
        if int(lines.get("SigCgt", "0"), 16) >> (signal.SIGTERM - 1) & 1:
            return True
        time.sleep(0.001)
    return False


def alive(session: int) -> list[int]:
    """List the processes that are left of a command."""
    found = []
    for path in PROC.glob("[0-9]*"):
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        # State, parent, group, session; what is dead already waits for its parent to notice.
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(path.name))
    return found


def wrong_with(ended: Ended) -> list[str]:
    """Say what no command may do, however it ends."""
    faults = []
    if "Traceback" in ended.stderr or "Exception ignored" in ended.stderr:
        faults.append(f"it printed a traceback: {ended.sentence[-300:]}")
    if "This is a bug" in ended.stderr:
        faults.append(f"it said that this is a bug: {ended.sentence[-300:]}")
    return faults
