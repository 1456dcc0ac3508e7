"""The library in a bare notebook kernel: with pandas 2 and 3, without ipywidgets, which bars would like."""

import os
import re
import subprocess
import sys
import venv
from importlib.metadata import distribution, requires, version
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import unless
from test_documents import blocks, write_survey

# Not imported here: the library takes that for a notebook.
pytestmark = pytest.mark.skipif(
    find_spec("ipykernel") is None or find_spec("pandas") is None,
    reason="ipykernel or pandas is not installed",
)
# Seconds that fetching another pandas may take.
TIME_LIMIT = 60
# A bar is redrawn from the beginning of its line; nothing else is.
BAR = re.compile(r"\r[^\r\n]*")


def needed(extra="figures"):
    """Return the packages of a notebook user: Unless with figures, ipykernel, pandas, and what they need."""
    asked = [Requirement(one) for one in requires("unless")]
    waiting = [one.name for one in asked if one.marker is None or one.marker.evaluate({"extra": extra})]
    waiting += ["ipykernel", "pandas"]
    found = {}
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in found:
            found[name] = distribution(name)
            further = [Requirement(one) for one in found[name].requires or ()]
            waiting += [
                one.name for one in further if one.marker is None or one.marker.evaluate({"extra": ""})
            ]
    return found.values()


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """An environment that has what is needed and nothing else, by links to what is installed here."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for one in needed():
        for top in {file.parts[0] for file in one.files} - {"..", "__pycache__"}:
            if not top.endswith(".pth") and not (packages / top).exists():
                (packages / top).symlink_to(Path(one.locate_file(top)).resolve())
    return folder / "bin" / "python"


@pytest.fixture(scope="module", params=["2", "3"], ids=["pandas 2", "pandas 3"])
def pandas_folder(request):
    """The folder that has this pandas: None if it is the installed one, else it is fetched and kept."""
    if version("pandas").split(".")[0] == request.param:
        return None
    folder = request.config.cache.mkdir(f"pandas-{request.param}")
    wanted = [f"pandas>={request.param},<{int(request.param) + 1}", "pytz"]
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable]
    command += ["--no-deps", "--only-binary", ":all:", "--target", str(folder), *wanted]
    environment = {**os.environ, "UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "15"}
    try:
        subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True, timeout=TIME_LIMIT
        )
    except (OSError, subprocess.SubprocessError) as error:
        reason = (getattr(error, "stderr", None) or str(error)).split()
        pytest.skip(f"pandas {request.param} could not be installed: {' '.join(reason)[:300]}")
    return folder


@pytest.fixture(scope="module")
def run(bare_python, pandas_folder):
    """Run code in a kernel; return what it showed on its streams and as results, or raise what it raised."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    command = [
        str(bare_python),
        "-Xfrozen_modules=off",
        "-m",
        "ipykernel_launcher",
        "-f",
        "{connection_file}",
    ]
    manager._kernel_spec = KernelSpec(argv=command, display_name="bare", language="python")
    source = Path(unless.__file__).parents[1]
    path = os.pathsep.join(str(one) for one in (pandas_folder, source) if one is not None)
    manager.start_kernel(env={**os.environ, "PYTHONPATH": path})
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=120)

    def execute(code):
        shown = {"stdout": "", "stderr": "", "html": []}
        sent, raised = client.execute(code), ""
        while True:
            message = client.get_iopub_msg(timeout=300)
            if message["parent_header"].get("msg_id") != sent:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                shown[content["name"]] += content["text"]
            elif kind in ("execute_result", "display_data"):
                shown["html"].append(content["data"].get("text/html", content["data"].get("text/plain")))
            elif kind == "error":
                raised = "\n".join(content["traceback"])
            elif kind == "status" and content["execution_state"] == "idle":
                assert not raised, raised
                return shown

    try:
        yield execute
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_reading_and_learning_work_without_widgets(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "x,1,u\ny,2,v\nx,1,v\n" * 30)
    absent = "('ipywidgets', 'pyarrow', 'polars', 'sklearn', 'pytest')"
    bare = run(f"import importlib.util; print(*(importlib.util.find_spec(name) for name in {absent}))")
    assert set(bare["stdout"].split()) == {"None"}
    shown = run(
        f"import unless\n"
        f"for show in (None, True, False):\n"
        f"    data = unless.read({str(path)!r}, show_progress=show)\n"
        f"est = unless.learn({str(path)!r})\n"
        f"est.statements_"
    )
    assert "a and b" in shown["html"][0]
    assert BAR.sub("", shown["stderr"]) == ""
    assert shown["stdout"] == ""


def test_frames_of_this_pandas_are_read_and_given_back(run, pandas_folder, request):
    wanted = request.node.callspec.params["pandas_folder"]
    shown = run(
        "import pandas as pd, unless\n"
        "frame = pd.DataFrame({'s': ['x', 'y', None] * 40, 'c': pd.Categorical(['u', 'v', 'u'] * 40),\n"
        "    'n': [k * 0.5 for k in range(120)], 'i': pd.array([1, 2, None] * 40, dtype='Int64'),\n"
        "    'd': pd.date_range('2024-01-01', periods=120, freq='7D')})\n"
        "est = unless.learn(frame)\n"
        "print(pd.__version__.split('.')[0], type(est.statements_.to_frame()))\n"
        "print(type(est.network(est.data_).sample(3)))\n"
        "est.data_"
    )
    assert shown["stdout"].split()[0] == wanted
    assert shown["stdout"].count("DataFrame") == 2
    assert "120 rows" in shown["html"][0]
    assert BAR.sub("", shown["stderr"]) == ""


GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"


def test_the_guide_runs_in_a_bare_kernel_and_nothing_is_warned_of(run, tmp_path):
    """Each block is a cell; "always" also shows warnings that are hidden by default."""
    write_survey(tmp_path / "survey.csv")
    run(f"import os, warnings; os.chdir({str(tmp_path)!r}); warnings.simplefilter('always')")
    for block in blocks(GUIDE):
        assert BAR.sub("", run(block)["stderr"]) == "", block


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("est.ask('Admit', 'Gender', context={'Dept': 'A'})", "model: "),
        ("unless.ask(data, 'Admit', 'Gender')", "degrees of freedom"),
        ("est.network(data).fit_report", "Converged."),
        ("est.network(data).marginals()", "probabilities"),
        ("unless.compare_groups(data, 'Dept')", "Comparison: "),
    ],
)
def test_results_are_shown_as_html(run, code, shown):
    run("import unless; data = unless.datasets.load_ucb_admissions(); est = unless.learn(data)")
    (form,) = run(code)["html"]
    assert form.startswith("<div>")
    assert shown in form


def test_completion_offers_public_names(run):
    completed = "[one.text for one in ip.Completer.completions('unless.', 7)]"
    code = f"import unless; ip = get_ipython(); ip.Completer.use_jedi = False; print(sorted({completed}))"
    offered = run(
        f"from IPython.core.completer import provisionalcompleter\nwith provisionalcompleter():\n    {code}"
    )
    assert "'.learn'" in offered["stdout"] or "'learn'" in offered["stdout"]
    assert "inference" not in offered["stdout"]
