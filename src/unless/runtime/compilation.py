"""Compiles the kernels of a kind of work at once, by several processes, where numba has to compile them.

`kernels/compiling.py` says what else may run kernels, and how that is chosen.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import IO

from unless.kernels import compiling, extension
from unless.runtime.progress import Bar, progress

# Fewer are compiled where they are called: a process takes a second to start.
_FEW = 3


def compile_ahead(work: str, show_progress: bool | None = None) -> None:
    """Compile the kernels of a kind of work that numba's cache lacks."""
    compile_kernels(missing(extension.kernels_of(work)), show_progress)


def missing(kernels: Iterable[str]) -> list[str]:
    """Return the kernels that numba has not compiled yet, those of most arguments first."""
    from unless.kernels.jit import is_cached

    signatures = extension.signatures()
    lacking = [
        name for name in kernels if not is_cached(compiling.dispatcher(compiling.kernel_named(name).function))
    ]
    return sorted(lacking, key=lambda name: -sum(1 for _ in extension.leaf_types(signatures[name][0])))


def compile_kernels(kernels: Sequence[str], show_progress: bool | None = None) -> None:
    """Compile kernels into numba's cache, as many at a time as there are cores."""
    # Here, because most processes compile nothing.
    import subprocess
    from concurrent.futures import ThreadPoolExecutor

    n_processes = min(len(kernels), os.cpu_count() or 1)
    if len(kernels) <= _FEW or n_processes < 2:
        return
    left: SimpleQueue[str] = SimpleQueue()
    for name in kernels:
        left.put(name)
    command = [sys.executable, "-m", "unless.kernels.ahead"]
    environment = {**os.environ, "UNLESS_KERNELS": "numba"}
    processes = [
        subprocess.Popen(  # noqa: S603 (this Python, and a module of ours)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        for _ in range(n_processes)
    ]
    try:
        with progress("Compiling kernels, once per installation", show_progress) as bar:
            bar.begin("", len(kernels))
            with ThreadPoolExecutor(n_processes) as threads:
                list(threads.map(lambda one: _feed(one.stdin, one.stdout, left, bar), processes))
    finally:
        # After Ctrl-C, too. What is not compiled now is compiled where it is called.
        for one in processes:
            one.kill()
            one.communicate()


def _feed(stdin: IO[bytes] | None, stdout: IO[bytes] | None, left: "SimpleQueue[str]", bar: Bar) -> None:
    """Hand one kernel after the other to a process."""
    assert stdin is not None  # noqa: S101 (for type checkers)
    assert stdout is not None  # noqa: S101
    try:
        while True:
            stdin.write(json.dumps(left.get_nowait()).encode() + b"\n")
            stdin.flush()
            if not stdout.readline():
                return
            bar()
    except (Empty, OSError):
        return
