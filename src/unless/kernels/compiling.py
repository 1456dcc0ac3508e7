"""How a kernel is compiled: once per installation, wherever a folder can be written."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function, keeping the machine code beside the package or in the user's cache folder."""
    return _compiled(function, forceinline=False)


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that only kernels call: Python has no way in, which would be compiled as well."""
    return _compiled(function, forceinline=False, no_cpython_wrapper=True)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small function into its callers, where the optimiser can drop its reference counting.

    Only kernels call it, as they do a `helper`.
    """
    return _compiled(function, forceinline=True, no_cpython_wrapper=True)


def reordered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function whose sums may be added up in the order that suits the processor best.

    The order follows from the processor and the number of summands alone. In the order in which it is
    written, each addition would wait for the one before.
    """
    return _compiled(function, forceinline=False, fastmath={"reassoc"})


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    # Nothing calls a kernel as C does: the way in from there would take its share of compiling.
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    try:
        kernel = numba.njit(function, cache=True, **options)
    except RuntimeError:
        # Neither the package folder nor the user's cache can be written: compile anew in every process.
        return _without_literals(numba.njit(function, **options))
    # numba keeps machine code until the function's own file changes, but kernels are inlined across files.
    cache_file = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = _SOURCES
        # numba compares the version before it unpickles the rest, which may name classes that are gone.
        cache_file._version = f"{cache_file._version} {_SOURCES}"
    return _without_literals(kernel)


def _without_literals(kernel: Any) -> Any:
    """Take a number that a calling kernel writes out as one of its type, not as a type of its own.

    numba compiles a function once more for every such number, and counters that begin with one are typed
    as that number first: whole kernels would be compiled twice, and one of the two would never run.
    """
    typed = getattr(kernel, "get_call_template", None)
    if typed is not None:

        def typed_without_literals(arguments: Any, named: Any) -> Any:
            plain = types.unliteral  # type: ignore[attr-defined]
            return typed(tuple(map(plain, arguments)), {name: plain(kind) for name, kind in named.items()})

        kernel.get_call_template = typed_without_literals
    return kernel


def _stamp_of_sources() -> str:
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


_SOURCES = _stamp_of_sources()


def _unary(generate: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Make an operation on a 64-bit word from what it is in LLVM."""

    @intrinsic
    def operation(_typing_context: Any, word: Any) -> Any:  # noqa: ARG001 (numba matches names)
        def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return generate(builder, arguments[0])

        return types.uint64(types.uint64), build

    return operation


if numba.config.DISABLE_JIT:
    # Kernels run as plain Python under coverage and mutation tests.
    def popcount(word: Any) -> Any:
        """Count the ones of a word."""
        return word.dtype.type(int(word).bit_count())

    def trailing_zeros(word: Any) -> Any:
        """Return the position of the lowest one of a non-zero word."""
        return word.dtype.type((int(word) & -int(word)).bit_length() - 1)

    def without_refcount(array: Any) -> Any:
        """Return the array."""
        return array

    def prefetch(array: Any, row: int) -> None:
        """Do nothing."""

    def compare_and_swap(array: Any, row: int, word: Any) -> Any:
        """Write a word into the first column of a row that holds zero there; returns what it held."""
        held = array[row, 0]
        if held == 0:
            array[row, 0] = word
        return held

    def fetch_add(counters: Any, at: int, by: int) -> Any:
        """Raise a counter and return what it was."""
        counters[at] += by
        return counters[at] - by

else:
    # LLVM turns a loop of population counts into vector instructions.
    popcount: Any = _unary(lambda builder, word: builder.ctpop(word))  # type: ignore[no-redef]
    trailing_zeros: Any = _unary(  # type: ignore[no-redef]
        lambda builder, word: builder.cttz(word, ir.Constant(ir.IntType(1), 1))
    )

    def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        if isinstance(kind, types.BaseTuple):  # type: ignore[attr-defined]
            members = zip(kind, cgutils.unpack_tuple(builder, value), strict=True)
            return context.make_tuple(
                builder, kind, [_without_owner(context, builder, *member) for member in members]
            )
        if not isinstance(kind, types.Array):
            return value
        view = context.make_array(kind)(context, builder, value=value)
        view.meminfo = context.get_constant_null(types.MemInfoPointer(types.voidptr))  # type: ignore[attr-defined]
        view.parent = context.get_constant_null(types.pyobject)
        return view._getvalue()

    @intrinsic
    def without_refcount(_typing_context: Any, array: Any) -> Any:
        """Return an array, or a tuple of arrays, without owners: passing it on costs no reference counting.

        Safe only for arrays that the caller of the kernel keeps alive. Halves the time of the cohort kernel.
        """

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _without_owner(context, builder, signature.return_type, arguments[0])

        return array(array), build

    @intrinsic
    def fetch_add(_typing_context: Any, counters: Any, at: Any, by: Any) -> Any:  # noqa: ARG001
        """Raise a counter and return what it was: of several threads that raise it, none gets the same.

        What a thread wrote before is seen by those that find the counter fetch_add.
        """

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, value=arguments[0])
            address = builder.gep(array.data, [arguments[1]])
            return builder.atomic_rmw("add", address, arguments[2], "seq_cst")

        return types.int64(counters, types.int64, types.int64), build

    def _address_of_row(context: Any, builder: Any, kind: Any, array: Any, row: Any) -> Any:
        matrix = context.make_array(kind)(context, builder, value=array)
        return builder.gep(matrix.data, [builder.mul(row, builder.extract_value(matrix.shape, 1))])

    @intrinsic
    def compare_and_swap(_typing_context: Any, array: Any, row: Any, word: Any) -> Any:  # noqa: ARG001
        """Write a word into the first column of a row that holds zero there; returns what it held.

        Of several threads one succeeds, and what it wrote before is seen by those that find its word.
        """

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address = _address_of_row(context, builder, signature.args[0], *arguments[:2])
            zero = ir.Constant(ir.IntType(64), 0)
            outcome = builder.cmpxchg(address, zero, arguments[2], "seq_cst", "seq_cst")
            return builder.extract_value(outcome, 0)

        return types.uint64(array, types.int64, types.uint64), build

    @intrinsic
    def prefetch(_typing_context: Any, array: Any, row: Any) -> Any:  # noqa: ARG001
        """Ask for a row of a matrix ahead of its use, so that a look-up need not wait for memory.

        It is asked for to be written: most look-ups lead to an answer there, and another core may hold it.
        """

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            address = _address_of_row(context, builder, signature.args[0], *arguments)
            word = ir.IntType(32)
            pointer = builder.bitcast(address, ir.IntType(8).as_pointer())
            declared = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
            function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], declared)
            builder.call(function, [pointer, word(1), word(3), word(1)])
            return context.get_dummy_value()

        return types.void(array, types.int64), build
