"""Compile all kernels into numba's cache, by all cores: `make test` begins with it.

Otherwise each process of the tests would compile what it needs, and several the same.
"""

import gc

from unless.kernels import compiling, extension
from unless.runtime.compilation import SELDOM, compile_kernels, missing

if __name__ == "__main__":
    if not compiling.HAS_EXTENSION:
        gc.set_threshold(*SELDOM)
        compile_kernels(missing(extension.signatures()))
