"""Machine code is kept, and never outlives the sources it came from."""

import os
import pickle
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numba
import numpy as np
import pytest

import unless
from building.record import described
from unless.kernels import compiling, jit
from unless.kernels.compiling import compiled, dispatcher, helper, longest_first
from unless.kernels.cube import Cube

PACKAGE = Path(unless.__file__).parent
ASK = """
import numpy as np
from unless.kernels.grow_shrink import pack_pairs

graphs = np.array([[[2]], [[1]]], np.uint64)
packed = np.zeros((1, 1), np.uint8)
pack_pairs(graphs, np.arange(2), False, True, packed, 0, 1)
print(packed[0, 0], pack_pairs.machine_code.stats.cache_hits.total())
"""


def ask(folder, cache):
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(cache)}
    run = subprocess.run(
        [sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True, cwd=folder
    )
    return run.stdout.split()


def test_a_change_of_an_inlined_kernel_is_noticed_by_its_callers(tmp_path):
    copy = tmp_path / "package"
    shutil.copytree(PACKAGE, copy / "unless", ignore=shutil.ignore_patterns("__pycache__"))
    assert ask(copy, tmp_path / "cache") == ["1", "0"]
    assert ask(copy, tmp_path / "cache") == ["1", "1"]
    inlined = copy / "unless" / "kernels" / "bits.py"
    inlined.write_text(inlined.read_text().replace("& _ONE != _ZERO", "& _ONE == _ZERO"))
    assert ask(copy, tmp_path / "cache") == ["0", "0"]


PROBE = """
from typing import Any, NamedTuple
from unless.kernels.compiling import compiled

class Pair(NamedTuple):
    x: Any
    y: Any

@compiled
def add(pair):
    return pair.x + pair.y

print(add(Pair(1, 2)))
"""


def test_machine_code_for_a_class_that_is_gone_is_not_read(tmp_path):
    copy = tmp_path / "package"
    shutil.copytree(PACKAGE, copy / "unless", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(copy), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for name in ("Pair", "Both"):
        (copy / "unless" / "kernels" / "probe.py").write_text(PROBE.replace("Pair", name))
        command = [sys.executable, "-c", "import unless.kernels.probe"]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=copy)
        assert run.stdout == "3\n"


@helper
def add_to(total, number):
    return total + number


@compiled
def add_up(numbers):
    total = 0
    for number in numbers:
        total = add_to(total, number)
    return add_to(total, 1)


def test_threads_may_call_the_first_kernel_at_once(monkeypatch):
    def number(one):
        return one

    begun = Event()

    def declare(function, _):
        begun.set()
        time.sleep(0.2)
        jit.DISPATCHERS[function] = function

    monkeypatch.setattr(compiling, "_declared", [(number, {})])
    monkeypatch.setattr(jit, "declare", declare)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(dispatcher, number)
        begun.wait()
        # While the first one tells numba of the kernel, the second asks for it.
        second = threads.submit(dispatcher, number)
        assert (first.result(), second.result()) == (number, number)
    assert jit.DISPATCHERS.pop(number) is number


def test_numbers_that_kernels_write_out_are_compiled_for_no_more_than_others():
    assert add_up((1, 2, 3)) == 7
    # An earlier run may have left the machine code, which says nothing of how it was compiled.
    add_up.machine_code.recompile()
    assert len(dispatcher(add_to).signatures) == 1


def test_what_kernels_call_is_machine_code_only_where_somebody_asks_for_its_address():
    assert add_up((1, 2, 3)) == 7
    add_up.machine_code.recompile()
    (code,) = dispatcher(add_to).overloads.values()
    name, engine = code.fndesc.llvm_func_name, code.library._codegen._engine
    assert not engine.is_symbol_defined(name)
    assert code.library.get_pointer_to_function(name)
    assert engine.is_symbol_defined(name)


@compiled
def add_up_twice(numbers):
    return 2 * add_up(numbers)


def test_kernels_that_others_call_are_compiled_into_these_without_a_way_in():
    assert add_up_twice((1, 2, 3)) == 14
    add_up_twice.machine_code.recompile()
    (called,) = jit.part(add_up.function).overloads.values()
    assert called.library._is_part
    assert add_up((1, 2, 3)) == 7


CALL = """
import numba, numpy as np
from unless.kernels.algebra import factorise

print(numba.njit(lambda matrix: factorise(matrix))(np.eye(3)))
"""


def test_functions_that_are_no_kernels_may_call_one_before_anybody_else_does(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", CALL], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout == "True\n"


def test_kernels_load_no_scipy_and_leave_what_others_need_of_it():
    code = (
        "import sys; from unless.kernels import jit; from numba.np import arraymath, linalg; "
        "assert 'scipy.linalg' not in sys.modules; assert arraymath._HAVE_BLAS; linalg.ensure_blas(); "
        "assert 'scipy.linalg' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_kernels_with_the_most_code_that_nobody_has_compiled_come_first():
    kernels = ["algebra.dot", "regression.fit_only", "regression.regress", "regression.score_gate"]
    first, second, *_, last = longest_first(kernels)
    # What `fit_only` does is nearly all in `regress`.
    assert (first, second, last) == ("regression.regress", "regression.score_gate", "algebra.dot")


def test_what_older_kernels_left_in_the_cache_is_not_unpickled(tmp_path):
    copy = tmp_path / "site"
    shutil.copytree(PACKAGE, copy / "unless", ignore=shutil.ignore_patterns("__pycache__"))
    ask(copy, tmp_path / "cache")
    # An index whose pickle names a class that is gone, as after an upgrade that renames one.
    gone = b"cunless.kernels.bitmaps\nGone\n."
    for index in (tmp_path / "cache").rglob("*.nbi"):
        index.write_bytes(pickle.dumps(numba.__version__) + gone)
    assert ask(copy, tmp_path / "cache") == ["1", "0"]


def test_processes_that_compile_at_once_never_mix_up_what_they_keep(tmp_path, monkeypatch):
    one, other = (jit._Kept(str(tmp_path), "kernel") for _ in range(2))
    # Both look at the list before either has written: what the first one listed is compiled anew.
    monkeypatch.setattr(other, "_load_index", dict)
    one.save("whole numbers", b"one")
    other.save("fractions", b"two")
    found = jit._Kept(str(tmp_path), "kernel")
    assert (found.load("whole numbers"), found.load("fractions")) == (None, b"two")
    found.save("whole numbers", b"one")
    assert (found.load("whole numbers"), found.load("fractions")) == (b"one", b"two")


def test_machine_code_of_older_sources_is_never_taken_for_that_of_a_process_that_was_killed(
    tmp_path, monkeypatch
):
    def stop(*_):
        raise KeyboardInterrupt

    sources = jit._SOURCES
    monkeypatch.setattr(jit, "_SOURCES", "0" * 64)
    jit._Kept(str(tmp_path), "kernel").save("types", b"old")
    monkeypatch.setattr(jit, "_SOURCES", sources)
    for half in ("_save_data", "_save_index"):
        stopped = jit._Kept(str(tmp_path), "kernel")
        monkeypatch.setattr(stopped, half, stop)
        with pytest.raises(KeyboardInterrupt):
            stopped.save("types", b"new")
        assert jit._Kept(str(tmp_path), "kernel").load("types") is None
    kept = jit._Kept(str(tmp_path), "kernel")
    kept.save("types", b"new")
    assert kept.load("types") == b"new"
    assert len(list(tmp_path.glob("*.nbc"))) == 1


def test_files_that_were_cut_short_and_full_disks_cost_a_compilation_and_no_more(tmp_path, monkeypatch):
    for ending in ("*.nbc", "*.nbi"):
        kept = jit._Kept(str(tmp_path), "kernel")
        kept.save("types", b"code")
        (cut,) = tmp_path.glob(ending)
        cut.write_bytes(b"")
        assert kept.load("types") is None
    monkeypatch.setattr(kept, "_save_data", lambda *_: Path("/dev/full").write_text("x"))
    kept.save("types", b"code")
    assert kept.load("types") is None


def test_types_that_are_compiled_ahead_are_those_of_a_call():
    numbers, codes = np.zeros(3), np.arange(3)
    tuples = [(1.5, 2.5), (1.5, 2), Cube(codes, codes, codes), Cube(codes, codes, numbers)]
    for argument in (numbers, 1.5, True, None, *tuples):
        assert jit.numba_type(described(argument)) == numba.typeof(argument)
