"""The library in a bare notebook kernel: one without ipywidgets, which progress bars would like to have."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from test_documents import blocks, write_survey

# Not imported here: the library takes that for a notebook.
pytestmark = pytest.mark.skipif(find_spec("ipykernel") is None, reason="ipykernel is not installed")


@pytest.fixture(scope="module")
def run():
    """Run code in a kernel; return what it showed on its streams and as results, or raise what it raised."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    command = [sys.executable, "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = KernelSpec(argv=command, display_name="bare", language="python")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=120)

    def execute(code):
        shown = {"stdout": "", "stderr": "", "html": []}
        sent = client.execute(code)
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
                raise AssertionError("\n".join(content["traceback"]))
            elif kind == "status" and content["execution_state"] == "idle":
                return shown

    try:
        yield execute
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_reading_and_learning_work_without_widgets(run, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "x,1,u\ny,2,v\nx,1,v\n" * 30)
    assert run("import importlib.util; print(importlib.util.find_spec('ipywidgets'))")["stdout"] == "None\n"
    shown = run(
        f"import unless\n"
        f"for show in (None, True, False):\n"
        f"    data = unless.read({str(path)!r}, show_progress=show)\n"
        f"est = unless.learn({str(path)!r})\n"
        f"est.statements_"
    )
    assert "a and b" in shown["html"][0]
    # A bar may be drawn as text; nothing may be warned of.
    assert "Warning" not in shown["stderr"]
    assert shown["stdout"] == ""


GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"


def test_the_guide_runs_in_a_bare_kernel_and_nothing_is_warned_of(run, tmp_path):
    """Each block is a cell; "always" also shows warnings that are hidden by default."""
    write_survey(tmp_path / "survey.csv")
    run(f"import os, warnings; os.chdir({str(tmp_path)!r}); warnings.simplefilter('always')")
    for block in blocks(GUIDE):
        assert "Warning" not in run(block)["stderr"], block


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
