"""Kernels give the same bytes whatever runs them, and small work never loads a compiler."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import unless
from building.record import described, fit_all_ways, gated_table, recording, tables, use
from unless.datasets import load_titanic, load_ucb_admissions, make_csi
from unless.errors import SettingError, UnlessWarning
from unless.kernels import compiling, extension
from unless.kernels.algebra import add_product, dot
from unless.kernels.answers import Rules
from unless.weights import optimise
from unless.weights.fit import fit_weights


@contextmanager
def as_plain_python(is_plain):
    token = compiling._is_plain.set(is_plain)
    try:
        yield
    finally:
        compiling._is_plain.reset(token)


def everything_about(data, folder):
    """Give the bytes of what is learned, said, fitted and asked."""
    for learner in (unless.CSGS, unless.CSPC, unless.GGS, unless.GSMN, unless.IBMAPHC, unless.ChowLiu):
        est = learner().fit(data)
        yield json.dumps(est.statements_.to_dict(), default=str)
        unless.save(est, folder / "learner.unless")
        yield (folder / "learner.unless").read_bytes()
    net = est.network(data)
    yield net.weights.tobytes()
    yield repr([net.query([name]) for name in data.names])
    yield net.sample_codes(50, random_state=1).rows.tobytes()
    yield repr((net.score(data), net.map_query(), net.marginals()))


@pytest.mark.skipif(compiling.HAS_EXTENSION, reason="the extension runs everything")
@pytest.mark.parametrize("seed", range(4))
def test_plain_python_and_machine_code_give_the_same_bytes(seed, tmp_path):
    data = unless.read(gated_table(3 + seed % 3, 60 * (seed + 1), 3, seed))
    with as_plain_python(True):
        plain = list(everything_about(data, tmp_path))
    with as_plain_python(False):
        assert list(everything_about(data, tmp_path)) == plain


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 16, 41])
def test_sums_of_products_have_one_order(n):
    left, right = np.random.default_rng(n).normal(size=(2, n))
    with as_plain_python(True):
        plain, total = dot(left, right), np.ones(1)
        add_product(left[None, :], right, total)
    assert type(plain) is float
    assert total[0] == 1.0 + plain
    with as_plain_python(False):
        assert dot(left, right) == plain
    assert plain == pytest.approx(float(left @ right), rel=1e-12, abs=1e-12)


def test_infinities_are_those_of_machine_code():
    assert compiling.exp(1e4) == np.inf
    assert compiling.log(0.0) == -np.inf
    assert np.isnan(compiling.log(-1.0))


SMALL = """
import sys
import unless
from unless.datasets import load_titanic

data = load_titanic()
est = unless.learn(data)
est.report(sys.argv[1], network=False)
net = est.network(data)
net.query(["Survived"], evidence={"Sex": "Male"})
unless.save(net, sys.argv[2])
assert not {"numba", "llvmlite"} & set(sys.modules)
"""


def test_small_work_loads_no_compiler(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "UNLESS_KERNELS"}
    command = [sys.executable, "-c", SMALL, str(tmp_path / "page.html"), str(tmp_path / "net.unless")]
    subprocess.run(command, check=True, env=environment)


def test_weights_of_many_features_are_no_small_work(monkeypatch):
    asked = []

    def record(n_steps, work=""):
        asked.append(n_steps)
        return nullcontext(False)

    monkeypatch.setattr("unless.weights.fit.plain_if_small", record)
    few, many = load_titanic(), make_csi(9, random_state=0).sample(5_000, random_state=1)
    for data in (few, many):
        fit_weights(unless.CSGS().fit(data).structure_.features(), data, show_progress=False)
    assert asked[0] < compiling.SMALL < asked[1]


@pytest.mark.skipif(compiling.HAS_EXTENSION, reason="the extension runs everything")
def test_much_small_work_is_compiled_in_the_end(monkeypatch):
    monkeypatch.setattr(compiling, "FORCED", "")
    monkeypatch.setattr(compiling, "_n_plain_steps", 0.0)
    ways = []
    for _ in range(5):
        with compiling.plain_if_small(compiling.MANY / 10 + 1):
            ways.append(compiling._is_plain.get())
            with compiling.plain_if_small(np.inf):
                # The outermost decides.
                ways.append(compiling._is_plain.get())
    assert ways[::2] == ways[1::2]
    with compiling.plain_if_small(compiling.SMALL + 1):
        assert compiling._is_plain.get() is False
    for _ in range(5):
        with compiling.plain_if_small(compiling.MANY / 10 + 1):
            ways.append(compiling._is_plain.get())
    assert ways[0] is True
    assert ways[-1] is False


def test_the_list_of_signatures_has_what_users_ask_for(tmp_path, monkeypatch):
    # Machine code, as users of a wheel have it: what kernels ask of each other is compiled into them.
    with recording() as found, as_plain_python(False):
        for name, data in (("small", load_titanic()), ("gated", load_ucb_admissions())):
            use(name, data, tmp_path, feature_searches=False)
            fit_all_ways(data)
        # As for thousands of features.
        monkeypatch.setattr(optimise, "_AT_ONCE", 1)
        assert optimise.factorise_in_calls(np.eye(100))
    assert "algebra.factorise_some" in found
    listed = extension.signatures()
    assert {name: some for name, some in found.items() if any(one not in listed[name] for one in some)} == {}
    for name in listed:
        assert isinstance(compiling.kernel_named(name), compiling.Kernel)
    assert {name for some in json.loads(extension.WORK.read_text()).values() for name in some} <= set(listed)


def test_every_kernel_that_other_rooms_call_has_a_signature():
    package = Path(unless.__file__).parent
    lines = re.compile(r"from unless\.kernels\.(\w+) import (\([^)]*\)|.*)")
    named = {
        f"{module}.{name}"
        for path in package.rglob("*.py")
        if path.parent.name != "kernels"
        for module, names in lines.findall(path.read_text())
        # They have no kernels, and need numba.
        if module not in ("jit", "ahead")
        for name in re.findall(r"\w+", names)
    }
    called = {name for name in named if isinstance(member_named(name), compiling.Kernel)}
    assert {"gibbs.run_tempered", "slices.count_slice"} < called
    assert called - set(extension.signatures()) == set()


def member_named(name):
    module, _, member = name.partition(".")
    return getattr(import_module(f"unless.kernels.{module}"), member, None)


@pytest.mark.skipif(not compiling.HAS_EXTENSION, reason="there is no extension; make test-wheel has one")
def test_the_extension_runs_all_that_users_ask_for(monkeypatch, tmp_path):
    asked = []
    found = compiling.Kernel.machine_code.fget
    monkeypatch.setattr(
        compiling.Kernel, "machine_code", property(lambda self: asked.append(self.name) or found(self))
    )
    for name, data in tables():
        use(name, data, tmp_path, feature_searches=False)
    assert asked == []


def test_types_are_described_alike_by_the_recorder_and_at_a_call():
    rules = Rules(*(np.zeros(1) for _ in Rules._fields))
    arguments = (rules, np.zeros((2, 3), dtype=np.uint16).T, True, 3, 2.5, np.uint64(1), (np.arange(2),))
    listed = list(extension.leaf_types(list(map(described, arguments))))
    assert listed == [extension.type_name(leaf) for leaf in extension.leaves(arguments)]
    assert listed[len(rules) :] == ["u2[2F]", "b1", "i8", "f8", "u8", "i8[1C]"]


def test_an_array_that_cannot_be_written_is_another_type():
    frozen = np.arange(3)
    frozen.setflags(write=False)
    assert extension.type_name(frozen) == "i8[1Cr]"
    assert extension.type_name(np.arange(6)[::2]) == "i8[1A]"


def test_an_array_that_machine_code_would_read_wrongly_is_another_type():
    assert extension.type_name(np.arange(3).astype(">i8")) == ">i8[1C]"
    assert extension.type_name(np.frombuffer(bytes(17), "u1")[1:].view("i8")) == "<i8[1Cr]"


@pytest.mark.parametrize(
    ("features", "can_run"),
    [
        ({"X86_V2": True, "X86_V3": True}, True),
        ({"AVX2": True, "FMA3": True, "F16C": True, "X86_V3": False}, False),
        # As numpy before 2.4 tells them.
        ({"AVX": True, "AVX2": True, "FMA3": True, "F16C": True}, True),
        ({"AVX": True, "AVX2": False, "FMA3": True, "F16C": True}, False),
        ({}, False),
    ],
)
def test_the_extension_is_left_alone_where_the_processor_lacks_instructions(features, can_run, monkeypatch):
    monkeypatch.setattr(extension.platform, "machine", lambda: "x86_64")
    assert extension.can_run(features) is can_run
    monkeypatch.setattr(extension.platform, "machine", lambda: "aarch64")
    assert extension.can_run(features)


def test_the_wide_extension_needs_an_instruction_that_counts_bits(monkeypatch):
    monkeypatch.setattr(extension.platform, "machine", lambda: "x86_64")
    assert extension.can_run({"AVX512_SKX": True, "AVX512VPOPCNTDQ": True}, extension.WIDE_NAME)
    assert not extension.can_run({"AVX512_SKX": True, "X86_V3": True}, extension.WIDE_NAME)
    assert not extension.can_run({"X86_V3": True, "AVX512VPOPCNTDQ": True}, extension.WIDE_NAME)
    monkeypatch.setattr(extension.platform, "machine", lambda: "aarch64")
    assert not extension.can_run({}, extension.WIDE_NAME)


OLD_PROCESSOR = """
import sys
import unless
from unless.datasets import load_titanic
from unless.kernels import compiling

assert unless.learn(load_titanic()).statements_
assert not compiling.HAS_EXTENSION
assert "unless.kernels._machine_code" not in sys.modules
"""


@pytest.mark.skipif(not compiling.HAS_EXTENSION, reason="there is no extension; make test-wheel has one")
def test_an_older_processor_works_without_the_extension():
    environment = {name: value for name, value in os.environ.items() if name != "UNLESS_KERNELS"}
    # numpy then says that the processor lacks it.
    environment["NPY_DISABLE_CPU_FEATURES"] = "X86_V3"
    subprocess.run([sys.executable, "-W", "ignore", "-c", OLD_PROCESSOR], check=True, env=environment)


@pytest.mark.parametrize(("asked", "said"), [("fast", "let it be 'plain'"), ("numba", "cannot run here")])
def test_code_that_cannot_be_had_is_refused(asked, said, monkeypatch):
    monkeypatch.setattr(compiling, "has_numba", lambda: False)
    monkeypatch.setenv("UNLESS_KERNELS", asked)
    with pytest.raises(SettingError, match=said):
        compiling.forced()


def test_slow_work_says_what_would_make_it_fast(monkeypatch):
    monkeypatch.setattr(compiling, "FORCED", "")
    monkeypatch.setattr(compiling, "HAS_EXTENSION", False)
    monkeypatch.setattr(compiling, "has_numba", lambda: False)
    with pytest.warns(UnlessWarning, match="install numba"), compiling.plain_if_small(np.inf, "GGS") as first:
        assert not first


def test_types_that_the_extension_lacks_say_so_where_nothing_can_compile_them(monkeypatch):
    monkeypatch.setattr(compiling, "FORCED", "")
    monkeypatch.setattr(compiling, "HAS_EXTENSION", True)
    monkeypatch.setattr(compiling, "has_numba", lambda: False)
    kernel = compiling.Kernel(dot.function)
    with pytest.warns(UnlessWarning, match="install numba"):
        assert kernel(np.arange(3, dtype=np.int8), np.arange(3, dtype=np.int8)) == 5


AHEAD = """
import joblib

joblib.cpu_count = lambda: 2
from unless.runtime import compilation

names = ["algebra.dot", "algebra.substitute", "algebra.add_product", "bits.number_rows"]
compilation.compile_kernels(names, False)
from unless.kernels import compiling
from unless.kernels.extension import signatures
from unless.kernels.jit import compile_for

assert compilation.missing(names) == []
# Types of which the cache has some, but not all.
(listed,) = signatures()["memo.merge"]
compile_for(compiling.dispatcher(compiling.kernel_named("memo.merge").function), listed)
assert compilation.missing(["memo.merge"]) == []
signatures()["memo.merge"].append(["u8[2A]", "u8[2C]"])
assert compilation.missing(["memo.merge"]) == ["memo.merge"]
"""


def test_kernels_are_compiled_ahead_by_several_processes(tmp_path):
    pytest.importorskip("numba")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    # A file of the user that has the name of a module.
    (tmp_path / "json.py").write_text("raise ImportError")
    subprocess.run([sys.executable, "-P", "-c", AHEAD], check=True, env=environment, cwd=tmp_path)


STOPPED = """
import signal
import joblib

# A shell's background job would ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
joblib.cpu_count = lambda: 3
from unless.kernels import extension
from unless.runtime import compilation

compilation._START = (
    "import os, pathlib, sys, time; "
    "sys.stdin.readline() and pathlib.Path(os.environ['FOLDER'], str(os.getpid())).touch(); "
    "time.sleep(600)"
)
compilation.compile_kernels(list(extension.signatures())[:9], False)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows interrupts in another way")
def test_stopping_the_parent_alone_ends_the_processes_that_compile(tmp_path):
    # The parent compiles, too.
    pytest.importorskip("numba")
    environment = {**os.environ, "FOLDER": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED], env=environment, stderr=subprocess.DEVNULL
    ) as parent:
        while len(list(tmp_path.iterdir())) < 2:
            assert parent.poll() is None
            time.sleep(0.05)
        parent.send_signal(signal.SIGINT)
        parent.wait(60)
    for path in tmp_path.iterdir():
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.name), 0)
