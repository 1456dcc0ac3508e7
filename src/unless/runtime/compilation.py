"""Compiles the kernels of a kind of work at once, by several processes, where numba has to compile them.

`kernels/compiling.py` says what else may run kernels, and how that is chosen.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event
from typing import TYPE_CHECKING

from unless.kernels import compiling, extension
from unless.runtime.child import homes
from unless.runtime.interrupts import interruptible
from unless.runtime.progress import Bar, progress

if TYPE_CHECKING:
    import subprocess

# So few are compiled where they are called: a process takes a second to start.
_FEW = 3
# More processes would take more memory, 250 MB each, for little: the longest kernels decide.
_MOST = 8
# Seconds after Ctrl-C in which a kernel may come to its end.
_GRACE = 0.1
# What a compiler makes is seldom garbage: to look for it as often as Python does takes a tenth of the time.
# The process that asks is the user's, who may have settings of their own.
SELDOM = (20_000, 20, 1_000)
_START = (
    f"import gc, sys; gc.set_threshold(*{SELDOM}); sys.path.extend(sys.argv[1:]); "
    "from unless.kernels.ahead import serve; serve()"
)


def compile_ahead(work: str, show_progress: bool | None = None) -> None:
    """Compile the kernels of a kind of work that numba's cache lacks."""
    compile_kernels(missing(extension.kernels_of(work)), show_progress)


def missing(kernels: Iterable[str]) -> list[str]:
    """Return the kernels that numba has not compiled for all their types."""
    from unless.kernels.jit import is_cached

    signatures = extension.signatures()
    return [
        name
        for name in kernels
        if not is_cached(compiling.dispatcher(compiling.kernel_named(name).function), signatures[name])
    ]


def compile_kernels(kernels: Sequence[str], show_progress: bool | None = None) -> None:
    """Compile kernels into numba's cache, several at a time where there are cores."""
    # Here, because most processes compile nothing.
    import subprocess
    from concurrent.futures import ThreadPoolExecutor

    from joblib import cpu_count

    # Beside this one, which has loaded the compiler.
    n_processes = min(len(kernels), cpu_count(), _MOST) - 1
    can_start = sys.executable and not getattr(sys, "frozen", False)
    if len(kernels) <= _FEW or n_processes < 1 or not can_start:
        return
    left: SimpleQueue[str] = SimpleQueue()
    for name in compiling.longest_first(kernels):
        left.put(name)
    # Not with -m: files in the folder where the user works must not pass for modules.
    command = [sys.executable, "-P", "-c", _START, *homes("unless", "numba")]
    environment = {**os.environ, "UNLESS_KERNELS": "numba"}
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    try:
        processes = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, env=environment)  # noqa: S603 (this Python, and words of our own)
            for _ in range(n_processes)
        ]
    except OSError:
        # No more processes are allowed. Those that began end when they read nothing.
        return
    with (
        progress("Compiling kernels, once per installation", show_progress) as bar,
        ThreadPoolExecutor(n_processes) as threads,
    ):
        bar.begin("", len(kernels))
        try:
            fed = threads.map(lambda one: _feed(one, left, bar), processes)
            stopped = Event()
            # A daemon: after Ctrl-C it comes to the end of a kernel, for which nobody waits.
            interruptible(
                lambda: _compile_here(left, bar, stopped), stop=stopped.set, grace=_GRACE, daemon=True
            )
            list(fed)
        finally:
            # After Ctrl-C, before anybody waits for the threads: they wait for the processes.
            # What is not compiled now is compiled where it is called.
            for one in processes:
                one.kill()


def _compile_here(left: "SimpleQueue[str]", bar: Bar, stopped: Event) -> None:
    """Compile one kernel after the other as long as there are some."""
    with suppress(Empty):
        while not stopped.is_set():
            compiling.compile_kernel(left.get_nowait())
            if not stopped.is_set():
                bar()


def _feed(process: "subprocess.Popen[bytes]", left: "SimpleQueue[str]", bar: Bar) -> None:
    """Hand one kernel after the other to a process, and let it end."""
    try:
        with process:
            assert process.stdin is not None  # noqa: S101 (for type checkers)
            assert process.stdout is not None  # noqa: S101
            while True:
                process.stdin.write(json.dumps(left.get_nowait()).encode() + b"\n")
                process.stdin.flush()
                if not process.stdout.readline():
                    return
                bar()
    except (Empty, OSError):
        return
