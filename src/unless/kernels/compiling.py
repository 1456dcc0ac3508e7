"""Which code runs a kernel: its source as plain Python, the extension of a wheel, or what numba compiles.

All three give the same bytes. The extension serves wherever there is one for this processor. Without it small
work runs as plain Python, which takes less time than to load a compiler (`plain_if_small`); all else is
compiled by numba, once per installation (`jit.py`).
"""

import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, update_wrapper
from importlib import import_module
from importlib.util import find_spec
from threading import Lock, RLock
from types import FunctionType
from typing import Any

import numpy as np

from unless.errors import SettingError, UnlessWarning
from unless.kernels import extension

# Scalar steps of plain Python that take some two seconds: with a cache, to load the compiler takes one.
SMALL = 3e6
# A process that has asked for so many in all works on, and is better off with compiled kernels.
MANY = 2e7
# What is typed and lowered takes so many times as long as what is only optimised.
_ANEW = 3
# Functions that numba has not been told of, how to compile them, and what; one thread tells it at a time.
_declared: list[tuple[Callable[..., Any], dict[str, Any], Callable[..., Any]]] = []
_declaring = RLock()
# Whether small work runs as plain Python; None where nobody has decided.
_is_plain: ContextVar[bool | None] = ContextVar("is_plain", default=None)
_n_plain_steps = 0.0
# Kinds of work that this process has begun with compiled kernels; work without a name has no list of kernels
# to compile ahead.
_begun = {""}


def has_numba() -> bool:
    """Tell whether numba is installed, without loading it."""
    return find_spec("numba") is not None


def forced() -> str:
    """Return the only code that may run kernels, as the environment says; "" where it says nothing."""
    asked = os.environ.get("UNLESS_KERNELS", "")
    here = {"": True, "plain": True, "numba": has_numba, "extension": extension.is_there}.get(asked)
    if here is None:
        raise SettingError(
            f"UNLESS_KERNELS is {asked!r}; let it be 'plain', 'numba' or 'extension', or unset it."
        )
    if callable(here) and not here():
        raise SettingError(f"UNLESS_KERNELS asks for {asked!r}, which cannot run here; unset it.")
    return asked


FORCED = forced()
HAS_EXTENSION = FORCED == "extension" or (not FORCED and extension.is_there())


class Kernel:
    """A function of numbers, arrays and named tuples of them, run by the code that suits the work."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.function = function
        self.name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        self._machine_code: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:  # noqa: D102 (that of the function)
        if HAS_EXTENSION:
            return self._ahead_of_time(*arguments)
        if _is_plain.get():
            return self._plain(*arguments)
        return (self._machine_code or self.machine_code)(*arguments)

    def _ahead_of_time(self, *arguments: Any) -> Any:
        leaves = extension.leaves(arguments)
        native = self._natives.get(tuple(map(extension.type_name, leaves)))
        return self.machine_code(*arguments) if native is None else native(*leaves)

    @cached_property
    def _natives(self) -> dict[tuple[str, ...], Callable[..., Any]]:
        return extension.natives(self.name)

    def _plain(self, *arguments: Any) -> Any:
        # Machine code wraps whole numbers around and divides by zero without a word.
        with np.errstate(all="ignore"):
            return _to_python(self.function(*arguments))

    @property
    def machine_code(self) -> Callable[..., Any]:
        """What runs the kernel where no extension does and the work is not small."""
        if self._machine_code is None:
            if FORCED == "plain" or not has_numba():
                self._machine_code = self._plain
                if HAS_EXTENSION:
                    _warn_of_slowness()
            else:
                self._machine_code = dispatcher(self.function)
        return self._machine_code

    @property
    def _numba_type_(self) -> Any:
        # numba asks for this where another kernel, or a function of a wheel, calls this one.
        from unless.kernels.jit import part, type_of

        # Tells numba of all that is called from here, too.
        dispatcher(self.function)
        return type_of(part(self.function))


def compiled(function: Callable[..., Any]) -> Kernel:
    """Make a kernel of a function that Python calls."""
    _declared.append((function, {}, function))
    return Kernel(function)


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let kernels call a function: it needs no way in from Python, which would be compiled as well."""
    _declared.append((function, {"no_cpython_wrapper": True}, function))
    return function


def compiled_as(loops: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let kernels call a function that plain Python runs over whole arrays, and machine code in loops."""

    def declared(function: Callable[..., Any]) -> Callable[..., Any]:
        _declared.append((function, {"no_cpython_wrapper": True}, loops))
        return function

    return declared


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let kernels call a small function, compiled into them: the optimiser drops its reference counting."""
    _declared.append((function, {"no_cpython_wrapper": True, "forceinline": True}, function))
    return function


def dispatcher(function: Callable[..., Any]) -> Any:
    """Return what compiles a function by numba for the types of its arguments, and calls it."""
    from unless.kernels import jit

    with _declaring:
        while _declared:
            jit.declare(*_declared[0])
            # Not before: Ctrl-C in between must not lose it.
            del _declared[0]
        for plain in _REPLACED:
            jit.replace(plain)
    return jit.DISPATCHERS[function]


def kernel_named(name: str) -> Kernel:
    """Return a kernel by its module and its name, as `signatures.json` has them."""
    module, function = name.split(".")
    found: Kernel = getattr(import_module(f"unless.kernels.{module}"), function)
    return found


def compile_kernel(name: str) -> None:
    """Compile a kernel for the types that `signatures.json` lists."""
    from unless.kernels.jit import compile_for

    for signature in extension.signatures()[name]:
        compile_for(dispatcher(kernel_named(name).function), signature)


def longest_first(kernels: Sequence[str]) -> list[str]:
    """Order kernels by how long they take where they are compiled one after the other.

    That follows from how much code there is to them, and how much of it those before them lack: what has been
    compiled once, other processes find in the cache.
    """
    left = {name: _code_of(kernel_named(name).function, {}) for name in sorted(kernels)}
    known: set[Callable[..., Any]] = set()
    ordered = []
    while left:
        taken = {
            name: sum(length * (1 if one in known else 1 + _ANEW) for one, length in code.items())
            for name, code in left.items()
        }
        longest = max(taken, key=lambda name: taken[name])
        known.update(left.pop(longest))
        ordered.append(longest)
    return ordered


def _code_of(
    function: Callable[..., Any], found: dict[Callable[..., Any], int]
) -> dict[Callable[..., Any], int]:
    """Return the functions of kernels that one calls, and itself, with the length of their code."""
    if function not in found:
        code = function.__code__
        found[function] = len(code.co_code)
        for name in code.co_names:
            called = function.__globals__.get(name)
            called = called.function if isinstance(called, Kernel) else called
            if isinstance(called, FunctionType) and called.__module__.startswith("unless.kernels."):
                _code_of(called, found)
    return found


@contextmanager
def plain_if_small(n_steps: float, work: str = "") -> Iterator[bool]:
    """Run kernels as plain Python where the work takes few scalar steps; the outermost caller decides.

    The number has to follow from the table or the model alone: what runs depends on it and on the work that
    the process has done before, never on what happens to be compiled, or on time. Tells whether a kind of
    work, a name of `work.json`, is the first of its kind that numba runs.
    """
    global _n_plain_steps
    is_free = _is_plain.get() is None and not FORCED and not HAS_EXTENSION
    is_small = n_steps <= SMALL and _n_plain_steps + n_steps <= MANY
    _n_plain_steps += n_steps if is_free and is_small else 0.0
    token = _is_plain.set(is_small) if is_free else None
    is_first = (FORCED == "numba" or _is_plain.get() is False) and work not in _begun
    _begun.update([work] if is_first else [])
    if is_free and not is_small and not has_numba():
        _warn_of_slowness()
    try:
        yield is_first and has_numba()
    finally:
        if token is not None:
            _is_plain.reset(token)


def _warn_of_slowness() -> None:
    """Say why work takes so long: Python shows the same warning once for each place."""
    warnings.warn(
        "This work is done by plain Python, some hundred times slower than by machine code, of which this "
        "installation has none for this processor or this table; install numba to have it compiled.",
        UnlessWarning,
        stacklevel=2,
    )


def _to_python(result: Any) -> Any:
    """Return numbers of numpy as those of Python, as machine code does."""
    if isinstance(result, tuple):
        return tuple(map(_to_python, result))
    return result.item() if isinstance(result, np.generic) else result


# What kernels need beyond numpy, in Python.
_one_thread = Lock()


def popcount(word: Any) -> Any:
    """Count the ones of a word."""
    return np.uint64(int(word).bit_count())


def trailing_zeros(word: Any) -> Any:
    """Return the position of the lowest one of a non-zero word."""
    return np.uint64((int(word) & -int(word)).bit_length() - 1)


def without_refcount(array: Any) -> Any:
    """Return an array, or a tuple of arrays, without owners: passing it on costs no reference counting.

    Safe only for arrays that the caller of the kernel keeps alive. Halves the time of the cohort kernel.
    """
    return array


def upward(begin: int, end: int) -> range:
    """Count from one number up to another that is no smaller, neither of them negative.

    What machine code counts so is unsigned: numba asks of every signed index whether it counts from the end
    of the array, and a loop with that question in it does not become vector instructions.
    """
    return range(begin, end)


def prefetch(array: Any, row: int) -> None:
    """Ask for a row of a matrix ahead of its use, so that a look-up need not wait for memory."""


def compare_and_swap(array: Any, row: int, word: Any) -> Any:
    """Write a word into the first column of a row that holds zero there; returns what it held.

    Of several threads one succeeds, and what it wrote before is seen by those that find its word.
    """
    with _one_thread:
        held = array[row, 0]
        if held == 0:
            array[row, 0] = word
    return held


def fetch_add(counters: Any, at: int, by: int) -> Any:
    """Raise a counter and return what it was: of several threads that raise it, none gets the same.

    What a thread wrote before is seen by those that find the counter raised.
    """
    with _one_thread:
        counters[at] += by
        return counters[at] - by


def exp(number: float) -> float:
    """Return e to a power, infinite where no number is as large."""
    try:
        return math.exp(number)
    except OverflowError:
        return math.inf


def log(number: float) -> float:
    """Return the natural logarithm, minus infinity of zero."""
    if number > 0:
        return math.log(number)
    return -math.inf if number == 0 else math.nan


# What machine code has in place of these is in `jit.INTRINSICS`.
_REPLACED = (
    popcount,
    trailing_zeros,
    without_refcount,
    upward,
    prefetch,
    compare_and_swap,
    fetch_add,
    exp,
    log,
)
