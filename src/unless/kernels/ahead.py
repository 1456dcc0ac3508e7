"""A process that compiles kernels into numba's cache: it reads names, and answers each when it is done."""

import json
import sys

from unless.kernels.compiling import compile_kernel


def serve() -> None:
    """Compile what standard input names, until it ends, as it does when the parent ends."""
    for line in sys.stdin:
        compile_kernel(json.loads(line))
        sys.stdout.write("done\n")
        sys.stdout.flush()
