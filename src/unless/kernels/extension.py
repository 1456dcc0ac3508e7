"""The machine code of a wheel: kernels compiled ahead of time for the types that `signatures.json` lists.

An extension takes numbers and arrays alone. Named tuples are taken apart on the way in, and put together
again by the functions that it exports (`building/extension.py`).
"""

import json
import platform
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

NAME = "_machine_code"
# Kernels that spend much of their time on counting bits; there is another extension with these alone, for
# processors with vectors of 512 bits and an instruction to count them.
WIDE = ("grow_shrink.grow_shrink", "ibmap.ascend_contexts", "pc.run_round")
WIDE_NAME = "_machine_code_wide"
SIGNATURES = Path(__file__).with_name("signatures.json")
WORK = Path(__file__).with_name("work.json")
# What numpy before 2.4, which knows no x86-64-v3, calls the newest instructions of it.
_NEWEST = ("AVX2", "FMA3", "F16C")
_SCALARS = {bool: "b1", int: "i8", float: "f8", type(None): "none"}


def exported_name(kernel: str, number: int) -> str:
    """Return the name under which the extension has a kernel for one of its signatures."""
    return f"{kernel.replace('.', '_')}_{number}"


def is_there() -> bool:
    """Tell whether there is an extension that this processor can run."""
    return find_spec(f"unless.kernels.{NAME}") is not None and _module(NAME) is not None


@cache
def natives(kernel: str) -> dict[tuple[str, ...], Callable[..., Any]]:
    """Return the functions of the extension for a kernel, by the types of its numbers and arrays."""
    module = _module(WIDE_NAME) if kernel in WIDE else None
    module = module or _module(NAME)
    if module is None:
        return {}
    return {
        tuple(leaf_types(signature)): getattr(module, exported_name(kernel, number))
        for number, signature in enumerate(signatures().get(kernel, ()))
    }


@cache
def signatures() -> dict[str, list[list[Any]]]:
    """Return the types that each kernel is called with."""
    listed: dict[str, list[list[Any]]] = json.loads(SIGNATURES.read_text())
    return listed


def kernels_of(work: str) -> list[str]:
    """Return the kernels that a kind of work calls, none where it is not known."""
    listed: list[str] = json.loads(WORK.read_text()).get(work, [])
    return listed


def can_run(features: Mapping[str, bool], name: str = NAME) -> bool:
    """Tell whether a processor with these features, as numpy names them, runs an extension."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return name == NAME
    if name == WIDE_NAME:
        return all(features.get(one) for one in ("AVX512_SKX", "AVX512VPOPCNTDQ"))
    return features.get("X86_V3", all(features.get(one) for one in _NEWEST))


@cache
def _module(name: str) -> ModuleType | None:
    from numpy._core._multiarray_umath import __cpu_features__  # type: ignore[import-not-found, unused-ignore]

    # Looked at before: an instruction that the processor does not know ends the process.
    if not can_run(__cpu_features__, name):
        return None
    try:
        return import_module(f"unless.kernels.{name}")
    except ImportError:
        return None


def class_named(name: str) -> Any:
    """Return the class of named tuples that a kernel module has under a name."""
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        # Most modules need not be imported to see that they lack it.
        if f"class {name}(" in path.read_text():
            return getattr(import_module(f"unless.kernels.{path.stem}"), name)
    raise LookupError(f"No kernel module has a class {name}; run `make signatures`.")


def leaf_types(signature: Any) -> Iterator[str]:
    """Give the types of numbers and arrays, in order: a tuple is a list of its own, a name in front."""
    for one in signature:
        if isinstance(one, list):
            yield from leaf_types(one[1:])
        else:
            yield one


def leaves(arguments: tuple[Any, ...]) -> list[Any]:
    """Take tuples apart, whatever is in them."""
    found: list[Any] = []
    for argument in arguments:
        if isinstance(argument, tuple):
            found += leaves(argument)
        else:
            found.append(argument)
    return found


def type_name(leaf: Any) -> str:
    """Return the type of a number or an array as signatures have it."""
    if isinstance(leaf, np.ndarray):
        return _array_type(leaf.dtype, leaf.ndim, leaf.flags.num)
    return _SCALARS.get(type(leaf)) or np.asarray(leaf).dtype.str[1:]


@cache
def _array_type(kind: np.dtype[Any], n_dimensions: int, flags: int) -> str:
    # As `ndarray.flags` has them: C order, Fortran's order, aligned, writable.
    layout = "C" if flags & 0x1 else "F" if flags & 0x2 else "A"
    # What machine code would read wrongly is no type that it is made for.
    name = kind.str[1:] if kind.isnative and flags & 0x100 else kind.str
    return f"{name}[{n_dimensions}{layout}{'' if flags & 0x400 else 'r'}]"
