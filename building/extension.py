"""Compile an extension of a wheel, by numba: `python -m building.extension FOLDER [wide]`.

Every kernel is exported once for each of its signatures. An exported function takes numbers and arrays and
puts the named tuples of its kernel together, so that no class is needed to call it. With `wide` only kernels
that count bits are, for processors with vectors of 512 bits and an instruction to count them.
"""

import json
import os
import platform
import sys
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

IS_X86 = platform.machine() in ("x86_64", "AMD64")
IS_WIDE = "wide" in sys.argv[2:]
# Runs on processors since 2013 (Intel) and 2015 (AMD); others compile at run time. The wide one on processors
# since 2019 and 2022.
CPU = ("x86-64-v4" if IS_WIDE else "x86-64-v3") if IS_X86 else "generic"
FEATURES = "+avx512vpopcntdq,-prefer-256-bit" if IS_WIDE else ""
# numba reads these when it is imported. Without them, functions that kernels call would be compiled for the
# processor of this machine, and not for CPU.
os.environ |= {"NUMBA_CPU_NAME": CPU, "NUMBA_CPU_FEATURES": FEATURES, "UNLESS_KERNELS": "numba"}


def build(folder: Path) -> Path:
    """Compile the extension into a folder; returns its file."""
    from numba.core.codegen import AOTCPUCodegen
    from numba.pycc import CC, compiler

    from unless.kernels import extension

    # pycc has no option for these flags and features, and asks these names for them.
    compiler.Flags = _Flags(compiler.Flags)
    AOTCPUCodegen._customize_tm_features = lambda _: FEATURES
    extension_module = CC(extension.WIDE_NAME if IS_WIDE else extension.NAME, source_module=__name__)
    extension_module.output_dir, extension_module.target_cpu = str(folder), CPU
    for kernel, signatures in json.loads(extension.SIGNATURES.read_text()).items():
        if IS_WIDE and kernel not in extension.WIDE:
            continue
        for number, signature in enumerate(signatures):
            name = extension.exported_name(kernel, number)
            function, types = _exported(kernel, name, signature)
            extension_module.export(name, types)(function)
    extension_module.compile()
    return folder / extension_module.output_file


class _Flags:
    """Flags of a compiler, as kernels are compiled at run time: they divide by zero and release the GIL."""

    def __init__(self, make: Any) -> None:
        self._make = make

    def __call__(self) -> Any:
        flags = self._make()
        flags.release_gil, flags.error_model = True, "numpy"
        return flags


def _exported(kernel: str, name: str, signature: list[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return a function of numbers and arrays that calls a kernel, and its types."""
    from unless.kernels import extension
    from unless.kernels.jit import numba_type

    module_name, function_name = kernel.split(".")
    module = import_module(f"unless.kernels.{module_name}")
    # The names that the source of the function uses.
    scope: dict[str, Any] = {"kernel": getattr(module, function_name)}
    numbers = count()

    def write(one: Any) -> str:
        """Write an argument of the call: leaf_0, or (leaf_0, ...) with the name of its tuple in front."""
        if not isinstance(one, list):
            return f"leaf_{next(numbers)}"
        inner = "".join(f"{write(part)}, " for part in one[1:])
        if one[0]:
            scope[one[0]] = extension.class_named(one[0])
        return f"{one[0]}({inner})"

    given = ", ".join(map(write, signature))
    types = list(extension.leaf_types(signature))
    leaves = ", ".join(f"leaf_{number}" for number in range(len(types)))
    exec(f"def {name}({leaves}):\n    return kernel({given})\n", scope)
    return scope[name], tuple(map(numba_type, types))


if __name__ == "__main__":
    print(build(Path(sys.argv[1]).resolve()))
