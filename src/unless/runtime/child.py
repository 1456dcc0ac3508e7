"""Work on files of unknown origin, done in a child process with bounds on memory, time and bytes.

The child is a fresh Python that imports little. It reads from standard input what to do, writes to standard
output how it went, and ends when its parent does. Whatever ends it (a bound, a crash of a library), the
parent goes on and says so in one sentence.
"""

import importlib
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread, stack_size
from time import monotonic
from typing import Any, Literal, NoReturn

from unless import errors
from unless.errors import SettingError, UnlessError

# A report is some numbers and a sentence; a longer one is an error of the child.
_LONGEST_REPORT = 2**16
# Seconds between two looks at a working child, and until one that was asked to end has ended.
_LOOK, _GRACE = 0.1, 5.0
# What a library or a program needs to be found; the child gets no more of the environment.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")
# Address space that the child may take before its work says that it needs more.
FIRST_MEMORY = 96 * 2**20
_START = "import sys; sys.path.extend(sys.argv[1:]); from unless.runtime.child import serve; serve()"


class ChildFailed(Exception):
    """The child ended without an answer, for want of memory or of time, or by a fault of a library."""

    def __init__(self, want: Literal["memory", "time", "nothing"]) -> None:
        super().__init__(want)
        self.want = want


def run_in_child(
    work: str,
    arguments: dict[str, Any],
    *,
    packages: tuple[str, ...] = (),
    memory: int,
    seconds: float,
    n_bytes: int,
    look: Callable[[], object] = lambda: None,
) -> Any:
    """Call a function, "module:name", in a child process and return its answer.

    An `UnlessError` of the child is raised here, too. The child may take `memory` bytes of address space,
    where the system can bound that, compute for `seconds`, and write files of `n_bytes`. `packages` are those
    that it imports besides the standard library and Unless.
    """
    import subprocess

    if not sys.executable or getattr(sys, "frozen", False):
        raise SettingError(
            "Spreadsheets and packed files are opened by a Python process of their own, which cannot be "
            "started from here; unpack the file by hand, or save it as CSV."
        )
    request = {
        "work": work,
        "arguments": arguments,
        "memory": memory,
        "seconds": int(seconds) + 1,
        "n_bytes": n_bytes,
    }
    # Without the user's site and environment, which also takes half the time to start.
    # Without bytecode: a bound on the size of files would leave half of it in the installation.
    command = [sys.executable, "-B", "-I", "-S", "-X", "utf8", "-c", _START, *homes("unless", *packages)]
    child = subprocess.Popen(  # noqa: S603 (this Python, and words of our own)
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Threads of glibc would each reserve address space of their own.
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        | {"MALLOC_ARENA_MAX": "1"},
        # Ctrl-C goes to the parent alone.
        start_new_session=True,
    )
    try:
        report = _attend(child, json.dumps(request).encode(), 2 * seconds, look)
    finally:
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                _close(stream)
    return _answer(report, child.returncode)


def homes(*packages: str) -> list[str]:
    """Return the folders (or archives) that packages are imported from."""
    found = [importlib.util.find_spec(name) for name in packages]
    return list(dict.fromkeys(str(Path(one.origin).parents[1]) for one in found if one and one.origin))


def _close(stream: Any) -> None:
    try:
        stream.close()
    except OSError:
        # The reader of what was still to be written is gone.
        return


def _attend(child: Any, request: bytes, seconds: float, look: Callable[[], object]) -> bytes | None:
    """Return what the child reports, None if it takes too long."""
    import subprocess

    received: list[bytes] = []

    def listen() -> None:
        try:
            child.stdin.write(request + b"\n")
            # Not closed: that would tell the child that its parent has gone.
            child.stdin.flush()
            received.append(child.stdout.read(_LONGEST_REPORT))
        except (OSError, ValueError):
            # The child ended before it read anything, or the parent was stopped and closed the streams.
            received.append(b"")

    # In another thread: Ctrl-C interrupts the main thread only while that is not reading.
    listener = Thread(target=listen, daemon=True)
    listener.start()
    end = monotonic() + seconds
    while listener.is_alive():
        if monotonic() > end:
            return None
        listener.join(_LOOK)
        look()
    report = received[0] if received else b""
    if len(report) == _LONGEST_REPORT:
        return b""
    try:
        # Its exit code says why it ended.
        child.wait(_GRACE)
    except subprocess.TimeoutExpired:
        return None
    return report


def _answer(report: bytes | None, code: int) -> Any:
    # Windows knows neither these signals nor an end by one.
    ended_by = {-code} if code < 0 else set()
    if report is None or ended_by & {getattr(signal, "SIGXCPU", 0)}:
        raise ChildFailed("time")
    try:
        message = json.loads(report)
    except ValueError:
        # Rust aborts where it cannot allocate, and the system kills where memory runs out.
        is_memory = ended_by & {signal.SIGABRT, getattr(signal, "SIGKILL", 0)}
        raise ChildFailed("memory" if is_memory else "nothing") from None
    if "answer" in message:
        return message["answer"]
    if "error" in message:
        kind = getattr(errors, message["error"], UnlessError)
        raise kind(message["sentence"])
    if "errno" in message:
        raise OSError(message["errno"], os.strerror(message["errno"]))
    raise ChildFailed(message["want"])


# Below: the child.


def serve() -> NoReturn:
    """Do what standard input asks for, tell standard output how it went, and end."""
    request = json.loads(sys.stdin.buffer.readline())
    _die_with_parent()
    _bind(request)
    module, _, name = request["work"].partition(":")
    try:
        answer = getattr(importlib.import_module(module), name)(**request["arguments"])
        report = {"answer": answer}
    except UnlessError as error:
        report = {"error": type(error).__name__, "sentence": str(error)}
    except MemoryError:
        report = {"want": "memory"}
    except OSError as error:
        report = {"errno": error.errno} if error.errno else {"want": "nothing"}
    except BaseException:  # A panic of a Rust library is a BaseException.
        report = {"want": "nothing"}
    sys.stdout.buffer.write(json.dumps(report).encode())
    sys.stdout.buffer.flush()
    # At once: there is nothing to take down, and a thread still listens.
    os._exit(0)


def allow_memory(n_bytes: int) -> None:
    """Let this child take so much address space, at most what its parent allows; where that can be bound."""
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[1]
        wanted = n_bytes if most == resource.RLIM_INFINITY else min(n_bytes, most)
        resource.setrlimit(resource.RLIMIT_AS, (wanted, most))
    except (ImportError, AttributeError, OSError, ValueError):
        # Windows has no such bound, and macOS does not keep it: what is checked beforehand must do.
        return


def _bind(request: dict[str, Any]) -> None:
    try:
        import resource
    except ImportError:
        return
    bounds = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": request["seconds"],
        "RLIMIT_FSIZE": request["n_bytes"],
        "RLIMIT_AS": request["memory"],
    }
    for name, bound in bounds.items():
        try:
            kind = getattr(resource, name)
            most = resource.getrlimit(kind)[1]
            # A little more is the last bound: at the first the child can say what happened; the last kills.
            last = bound + 2 if name == "RLIMIT_CPU" else bound
            tighter = [one if most == resource.RLIM_INFINITY else min(one, most) for one in (bound, last)]
            resource.setrlimit(kind, (tighter[0], tighter[1]))
        except (AttributeError, OSError, ValueError):
            continue
    allow_memory(FIRST_MEMORY)


def _die_with_parent() -> None:
    # Standard input ends when the parent does, in whatever way.
    stack_size(2**18)
    Thread(target=_wait_for_end, daemon=True).start()
    if sys.platform == "linux":
        # The thread does not run while a library holds Python's lock; the system kills all the same.
        import ctypes

        pr_set_pdeathsig = 1
        try:
            ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(signal.SIGKILL), 0, 0, 0)
        except (OSError, AttributeError):
            return


def _wait_for_end() -> None:
    sys.stdin.buffer.read()
    os._exit(1)
