"""Kernels compiled into numba's cache before they are called, here or in a process that does nothing else."""

import gc
import json
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from unless.kernels.compiling import Kernel, dispatcher, kernel_named
from unless.kernels.extension import signatures
from unless.kernels.jit import compile_for

# What a compiler makes is seldom garbage: to look for it as often as Python does takes a tenth of the time.
SELDOM = (20_000, 20, 20)
# What is typed and lowered takes so many times as long as what is only optimised.
_ANEW = 3


def serve() -> None:
    """Compile what standard input names, until it ends, as it does when the parent ends."""
    for line in sys.stdin:
        compile_kernel(json.loads(line))
        sys.stdout.write("done\n")
        sys.stdout.flush()


def compile_kernel(name: str) -> None:
    """Compile a kernel for the types that `signatures.json` lists."""
    often = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        for signature in signatures()[name]:
            compile_for(dispatcher(kernel_named(name).function), signature)
    finally:
        gc.set_threshold(*often)


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
