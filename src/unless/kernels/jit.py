"""Kernels by numba: compiled once per installation, wherever a folder can be written.

Only kernels that are called from here import this module, because numba takes half a second to load.
"""

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from glob import escape
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numba
import numpy as np
from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.core.caching import IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numba.np import linalg as blas

from unless.kernels.extension import class_named

DISPATCHERS: dict[Callable[..., Any], Any] = {}
_PARTS: dict[Callable[..., Any], Any] = {}
# Nothing calls a kernel as C does: the way in from there would take its share of compiling.
_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def _load_without_blas() -> None:
    """Load what numba knows of arrays without scipy.

    It looks there for BLAS, which no kernel calls, for more than a tenth of a second. Other functions that
    call BLAS look for it when they are compiled.
    """
    name = "numba.np.arraymath"
    if name in sys.modules or not hasattr(blas, "ensure_blas"):
        return
    ensure_blas = blas.ensure_blas

    def find_nothing() -> None:
        raise ImportError

    # No other thread may compile meanwhile.
    with global_compiler_lock:
        blas.ensure_blas = find_nothing
        try:
            loaded = import_module(name)
        finally:
            blas.ensure_blas = ensure_blas
    vars(loaded).update(ensure_blas=ensure_blas, _HAVE_BLAS=find_spec("scipy") is not None)


_load_without_blas()


def declare(function: Callable[..., Any], options: dict[str, Any], source: Callable[..., Any]) -> None:
    """Let numba compile a source where kernels name a function: mostly its own."""
    DISPATCHERS[function] = _dispatcher(source, options)
    function._numba_type_ = type_of(DISPATCHERS[function])  # type: ignore[attr-defined]


def replace(plain: Callable[..., Any]) -> None:
    """Let numba take what `INTRINSICS` has under the name of a plain function, where kernels name it."""
    if not hasattr(plain, "_numba_type_"):
        plain._numba_type_ = cpu_target.typing_context.resolve_value_type(INTRINSICS[plain.__name__])  # type: ignore[attr-defined]


def type_of(dispatcher: Any) -> Any:
    """Return the type of a function that others call; numba asks for it as `_numba_type_`."""
    return types.Dispatcher(dispatcher)


def compile_for(made: Any, signature: list[Any]) -> None:
    """Compile a kernel for types that `signatures.json` lists, into the cache."""
    made.compile(_types_of(signature))


def _types_of(signature: list[Any]) -> tuple[Any, ...]:
    return tuple(map(numba_type, signature))


def numba_type(described: Any) -> Any:
    """Return the type that `signatures.json` describes."""
    if isinstance(described, list):
        # Parts that are all of one type make another type, as they do at a call.
        inner = tuple(map(numba_type, described[1:]))
        return types.BaseTuple.from_types(inner, class_named(described[0]) if described[0] else None)  # type: ignore[attr-defined]
    if described == "none":
        return types.none
    kind, _, rest = described.partition("[")
    scalar = numba.from_dtype(np.dtype(kind))
    return types.Array(scalar, int(rest[0]), rest[1], readonly="r" in rest) if rest else scalar


def is_cached(made: Any, signatures: Iterable[list[Any]]) -> bool:
    """Tell whether the cache has machine code of a kernel for all of these types, or can have none."""
    kept = getattr(made._cache, "_cache_file", None)
    if kept is None:
        return True
    listed, codegen = kept._load_index(), made.targetctx.codegen()
    return all(made._cache._index_key(_types_of(one), codegen) in listed for one in signatures)


def part(function: Callable[..., Any]) -> Any:
    """Return what compiles a kernel for others to call, without the way in from Python."""
    if function not in _PARTS:
        _PARTS[function] = _dispatcher(function, {"no_cpython_wrapper": True}, "-part")
    return _PARTS[function]


def _dispatcher(function: Callable[..., Any], options: dict[str, Any], ending: str = "") -> Any:
    options = options | _OPTIONS
    try:
        made = numba.njit(function, cache=True, **options)
    except RuntimeError:
        # Neither the package folder nor the user's cache can be written: compile anew in every process.
        return _by_parts(_without_literals(numba.njit(function, **options)))
    made._cache._cache_file = _Kept(made._cache.cache_path, made._cache._impl.filename_base + ending)
    return _by_parts(_without_literals(made))


class _Code(JITCodeLibrary):  # type: ignore[misc, unused-ignore]
    """The code of a function: a part of others, unless Python calls it.

    numba optimises every function, makes machine code of it, and does both again in each function that calls
    it, and in those that call these. A part is only made ready for that, which halves the time that a kernel
    takes to compile; whoever asks for its address gets machine code of it all the same.
    """

    _is_part = False

    def finalize(self) -> None:
        """Take in the functions that this one calls, and optimise all of it."""
        self._is_part = not any(map(_is_way_in, self._final_module.functions))
        super().finalize()

    def _optimize_final_module(self) -> None:
        if not self._is_part:
            super()._optimize_final_module()
            return
        # What numba begins with: small functions are inlined, and reference counting is dropped.
        passes, builder = self._codegen._module_pass_manager(
            opt=0, loop_vectorize=False, slp_vectorize=False, cost="cheap"
        )
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        if not self._is_part:
            super()._finalize_final_module()
            return
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function, 0 where it is not in here."""
        self._ensure_finalized()
        if self._is_part and any(one.name == name for one in self.get_defined_functions()):
            self._is_part = False
            self._optimize_final_module()
            self._finalize_final_module()
        return int(super().get_pointer_to_function(name))

    @property
    def codegen(self) -> Any:
        """What numba tells where machine code finds its environment: a part has none yet."""
        return self if self._is_part else super().codegen

    def set_env(self, *_: object) -> None:
        """Do nothing, as kernels do not ask for it."""

    def serialize_using_object_code(self) -> Any:
        """Return what the cache keeps: of a part no machine code."""
        if self._is_part:
            return self.serialize_using_bitcode()
        return super().serialize_using_object_code()

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        name, kind, content = state
        if kind != "bitcode":
            return super()._unserialize(codegen, state)
        part = codegen.create_library(name)
        part._is_part = True
        part._final_module = binding.parse_bitcode(content)
        part._finalize_final_module()
        return part


def _is_way_in(function: Any) -> bool:
    """Tell whether Python calls a function: one that is linked in from elsewhere is not external."""
    is_wrapper = function.name.startswith("_ZN7cpython")
    return is_wrapper and not function.is_declaration and function.linkage == binding.Linkage.external


@contextmanager
def _code_in_parts() -> Iterator[None]:
    """Let numba make parts of functions that it compiles, or reads from the cache, meanwhile."""
    codegen = cpu_target.target_context.codegen()
    with global_compiler_lock:
        before = codegen._library_class
        codegen._library_class = _Code
        try:
            yield
        finally:
            codegen._library_class = before


def _by_parts(made: Any) -> Any:
    """Compile a function by parts, where this numba knows LLVM's newer passes."""
    compile_all = made.compile

    def compile_by_parts(signature: Any) -> Any:
        with _code_in_parts():
            return compile_all(signature)

    if hasattr(binding, "create_pass_builder"):
        made.compile = compile_by_parts
    return made


class _Kept(IndexDataCacheFile):  # type: ignore[misc, unused-ignore]
    """The files with the machine code of a function: several processes may write them, and any may be killed.

    numba numbers these files for each function, and lists them before it writes them. Two processes may
    take the same number for different types, and one that ends between the two leaves what older sources
    had under that number. Here a name tells what is in the file, and is listed last.
    """

    def __init__(self, folder: str, base: str) -> None:
        # Not until the function's own file changes, as numba does: kernels are inlined across files.
        super().__init__(folder, base, _SOURCES)
        # numba compares the version before it unpickles the rest, which may name classes that are gone.
        self._version = f"{numba.__version__} {_SOURCES}"
        self._folder, self._base = Path(folder), base

    def save(self, key: Any, data: Any) -> None:
        """Keep machine code, if the disk takes it."""
        name = f"{self._base}.{_SOURCES[:12]}-{sha256(repr(key).encode()).hexdigest()[:12]}.nbc"
        listed = self._load_index()
        try:
            self._save_data(name, data)
            self._save_index(listed | {key: name})
            if not listed:
                self._remove_older()
        except OSError:
            # A disk that is full: what is in memory serves all the same.
            return

    def load(self, key: Any) -> Any:
        """Return machine code, None where there is none that can be read."""
        try:
            return super().load(key)
        except _DAMAGED:
            return None

    def _load_index(self) -> dict[Any, str]:
        try:
            listed: dict[Any, str] = super()._load_index()
        except _DAMAGED:
            return {}
        return listed

    def _remove_older(self) -> None:
        for path in self._folder.glob(f"{escape(self._base)}.*.nbc*"):
            if not path.name.startswith(f"{self._base}.{_SOURCES[:12]}-"):
                path.unlink(missing_ok=True)


# A file that is cut short, as after a power failure.
_DAMAGED = (EOFError, UnpicklingError)


def _without_literals(made: Any) -> Any:
    """Take a number that a calling kernel writes out as one of its type, not as a type of its own.

    numba compiles a function once more for every such number, and counters that begin with one are typed
    as that number first: whole kernels would be compiled twice, and one of the two would never run.
    """
    typed = made.get_call_template

    def typed_without_literals(arguments: Any, named: Any) -> Any:
        plain = types.unliteral  # type: ignore[attr-defined]
        return typed(tuple(map(plain, arguments)), {name: plain(kind) for name, kind in named.items()})

    made.get_call_template = typed_without_literals
    return made


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
def _without_refcount(_typing_context: Any, array: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_owner(context, builder, signature.return_type, arguments[0])

    return array(array), build


@intrinsic
def _fetch_add(_typing_context: Any, counters: Any, at: Any, by: Any) -> Any:  # noqa: ARG001
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, value=arguments[0])
        address = builder.gep(array.data, [arguments[1]])
        return builder.atomic_rmw("add", address, arguments[2], "seq_cst")

    return types.int64(counters, types.int64, types.int64), build


def _count_upward(begin: Any, end: Any) -> Any:
    return range(np.uint64(begin), np.uint64(end))


_upward = _without_literals(numba.njit(_count_upward, forceinline=True, no_cpython_wrapper=True))


def _address_of_row(context: Any, builder: Any, kind: Any, array: Any, row: Any) -> Any:
    matrix = context.make_array(kind)(context, builder, value=array)
    return builder.gep(matrix.data, [builder.mul(row, builder.extract_value(matrix.shape, 1))])


@intrinsic
def _compare_and_swap(_typing_context: Any, array: Any, row: Any, word: Any) -> Any:  # noqa: ARG001
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address_of_row(context, builder, signature.args[0], *arguments[:2])
        zero = ir.Constant(ir.IntType(64), 0)
        outcome = builder.cmpxchg(address, zero, arguments[2], "seq_cst", "seq_cst")
        return builder.extract_value(outcome, 0)

    return types.uint64(array, types.int64, types.uint64), build


@intrinsic
def _prefetch(_typing_context: Any, array: Any, row: Any) -> Any:  # noqa: ARG001
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # Asked for to be written: most look-ups lead to an answer there, and another core may hold it.
        address = _address_of_row(context, builder, signature.args[0], *arguments)
        word = ir.IntType(32)
        pointer = builder.bitcast(address, ir.IntType(8).as_pointer())
        declared = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], declared)
        builder.call(function, [pointer, word(1), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), build


# What stands in machine code for functions of `compiling` that are written for Python.
INTRINSICS: dict[str, Any] = {
    # LLVM turns a loop of population counts into vector instructions.
    "popcount": _unary(lambda builder, word: builder.ctpop(word)),
    "trailing_zeros": _unary(lambda builder, word: builder.cttz(word, ir.Constant(ir.IntType(1), 1))),
    "without_refcount": _without_refcount,
    "upward": _upward,
    "fetch_add": _fetch_add,
    "compare_and_swap": _compare_and_swap,
    "prefetch": _prefetch,
    "exp": math.exp,
    "log": math.log,
}
cpu_target.typing_context.refresh()
