"""Work in a fresh process: what comes back, and what is said when nothing does."""

import os

import pytest

from benchmarks.child import ChildError, in_child


def test_an_answer_comes_back_with_the_peak_of_memory():
    answer = in_child(dict, [["one", 1], ["two", {"2": [2.5]}]])
    assert answer.pop("peak") > 2**20
    assert answer == {"one": 1, "two": {"2": [2.5]}}


def test_it_is_another_process_with_what_is_added_to_the_environment():
    asked = "{'pid': __import__('os').getpid(), **__import__('os').environ}"
    answer = in_child(eval, asked, environment={"OPENBLAS_NUM_THREADS": "1"})
    assert answer["pid"] != os.getpid()
    assert (answer["OPENBLAS_NUM_THREADS"], answer["PATH"]) == ("1", os.environ["PATH"])


def test_benchmarks_are_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert in_child(dict, [["one", 1]])["one"] == 1


def test_a_failure_is_told_by_its_last_line_and_shown_whole(capsys):
    with pytest.raises(ChildError, match=r"^ZeroDivisionError: division by zero$"):
        in_child(eval, "1 / 0")
    assert capsys.readouterr().err.startswith("Traceback")


def test_a_process_that_ends_without_a_word_is_told_by_its_code():
    with pytest.raises(ChildError, match=r"^The process ended with code 3 and said nothing\.$"):
        in_child(os._exit, 3)


@pytest.mark.parametrize(
    ("work", "printed"), [("__import__('os')._exit(0)", "''"), ("print('hello') or {}", "'hello.*")]
)
def test_what_is_no_json_is_no_answer(work, printed):
    with pytest.raises(ChildError, match=rf"^The process printed {printed}, which is no answer\.$"):
        in_child(eval, work)
