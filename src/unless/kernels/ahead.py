"""A process that compiles kernels into numba's cache: it reads names, and answers each when it is done."""

import json
import sys

from unless.kernels.compiling import dispatcher, kernel_named
from unless.kernels.extension import signatures
from unless.kernels.jit import compile_for


def serve() -> None:
    """Compile what standard input names, until it ends, as it does when the parent ends."""
    for line in sys.stdin:
        name = json.loads(line)
        for signature in signatures()[name]:
            compile_for(dispatcher(kernel_named(name).function), signature)
        sys.stdout.write("done\n")
        sys.stdout.flush()
