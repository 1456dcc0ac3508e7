"""Work in a fresh Python process: its time and its memory are its own."""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVarTuple

Arguments = TypeVarTuple("Arguments")
# Benchmarks are not installed: the other process finds them here, whatever its working directory is.
ROOT = Path(__file__).resolve().parents[1]


class ChildError(Exception):
    """The process failed, or gave no answer; the message says why in one sentence."""


def in_child(
    work: Callable[[*Arguments], dict[str, Any]],
    *arguments: *Arguments,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Call a module's function in a fresh process; return what it found, and its peak of memory as "peak".

    What goes in and what comes out is plain data that JSON can hold.
    """
    given = {**os.environ, **(environment or {})}
    places = [str(ROOT), *filter(None, [given.get("PYTHONPATH")])]
    child = subprocess.run(
        [sys.executable, "-m", __name__, work.__module__, work.__name__, json.dumps(arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**given, "PYTHONPATH": os.pathsep.join(places)},
    )
    if child.returncode:
        # All of it for whoever watches; the sentence for the page.
        print(child.stderr, end="", file=sys.stderr)
        silent = f"The process ended with code {child.returncode} and said nothing."
        raise ChildError((child.stderr.strip().splitlines() or [silent])[-1])
    try:
        answer: dict[str, Any] = json.loads(child.stdout)
    except ValueError:
        # Standard output is the caller's: a library that writes there is found out here.
        raise ChildError(f"The process printed {child.stdout[:80]!r}, which is no answer.") from None
    return answer


def peak() -> int:
    """Return this process's own view of its peak: getrusage would count what its parent took."""
    try:
        return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    """Do the work that the words name, and print what it found."""
    module, name, given = sys.argv[1:]
    work = getattr(importlib.import_module(module), name)
    print(json.dumps({**work(*json.loads(given)), "peak": peak()}))


if __name__ == "__main__":
    main()
