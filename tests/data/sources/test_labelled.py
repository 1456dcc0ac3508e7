"""Files of Stata and SPSS, written here by pyreadstat."""

import datetime
import subprocess
import sys

import pandas as pd
import pytest

from data.tables import kinds_of, levels_of, rows_of
from unless import prepare, read
from unless.errors import DataError, MissingExtra

pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat, the extra 'labelled', is not installed")

AGREE = {1: "disagree", 2: "neither", 3: "agree", 8: "no answer", 9: "refused"}


def spss(path, frame, **about):
    pyreadstat.write_sav(frame, str(path), compress=path.suffix == ".zsav", **about)
    return path


@pytest.fixture
def answers():
    return pd.DataFrame(
        {
            "q": [3.0, 1.0, 2.0, 9.0, 3.0, 1.0] * 10,
            "sex": [1.0, 2.0] * 30,
            "city": ["Ulm", "Bonn", "Ulm"] * 20,
        }
    )


@pytest.mark.parametrize("name", ["t.sav", "t.zsav"])
def test_labels_are_levels_in_the_order_of_their_codes_and_user_missing_is_missing(tmp_path, answers, name):
    path = spss(
        tmp_path / name,
        answers,
        variable_value_labels={"q": AGREE, "sex": {2: "male", 1: "female"}},
        missing_ranges={"q": [{"lo": 8, "hi": 9}]},
        variable_measure={"q": "ordinal", "sex": "nominal"},
    )
    data = read(path, missing="level")
    assert levels_of(data) == {
        "q": ("disagree", "neither", "agree", "missing"),
        "sex": ("female", "male"),
        "city": ("Bonn", "Ulm"),
    }
    dropped = read(path, missing="drop")
    assert dropped.n_rows == 50
    assert [one.ordered for one in dropped.domain] == [True, False, False]
    assert kinds_of(dropped) == {"q": "category", "sex": "category", "city": "text"}
    assert prepare(path)["q"].role == "ordered"


def test_stata_has_labels_and_letters_for_missing_values(tmp_path, answers):
    answers["q"] = [3, 1, 2, "a", 3, 1] * 10
    path = tmp_path / "t.dta"
    pyreadstat.write_dta(
        answers,
        str(path),
        variable_value_labels={"q": {1: "low", 2: "mid", 3: "high", "a": "refused"}},
        missing_user_values={"q": ["a"]},
        version=15,
    )
    data = read(path, missing="drop")
    assert levels_of(data)["q"] == ("low", "mid", "high")
    assert data.n_rows == 50


def test_a_portable_file(tmp_path):
    frame = pd.DataFrame({"A": [1.0, 2.0, 1.0], "B": ["x", "y", "x"]})
    pyreadstat.write_por(frame, str(tmp_path / "t.por"))
    assert rows_of(read(tmp_path / "t.por")) == {("1", "x"): 2, ("2", "y"): 1}


def test_types_are_kept(tmp_path):
    frame = pd.DataFrame(
        {
            "whole": [1.0, 2.0, None],
            "part": [0.5, 1.0, 1.5],
            "day": [datetime.date(2020, 1, 2), datetime.date(2019, 12, 31), None],
            "text": ['a "quoted", one', "two\nlines", ""],
        }
    )
    data = read(spss(tmp_path / "t.sav", frame), missing="level", strict=True)
    assert levels_of(data) == {
        "whole": ("1", "2", "missing"),
        "part": ("0.5", "1", "1.5"),
        "day": ("2019-12-31", "2020-01-02", "missing"),
        "text": ('a "quoted", one', "two\nlines", "missing"),
    }
    assert (data.domain["part"].kind, data.domain["day"].kind) == ("float", "text")


def test_a_scale_of_which_only_the_ends_have_labels_is_one_of_numbers(tmp_path):
    frame = pd.DataFrame({"scale": [float(i % 11) for i in range(220)], "sex": [1.0, 2.0] * 110})
    labels = {"scale": {0: "not at all", 10: "completely"}, "sex": {1: "f", 2: "m"}}
    data = read(spss(tmp_path / "t.sav", frame, variable_value_labels=labels), strict=True)
    assert data.domain["scale"].levels == tuple(map(str, range(11)))
    assert data.notes[0] == "'scale' has labels for some of its values, and is read without them."


def test_a_value_without_a_label_stays_among_those_with_one(tmp_path):
    frame = pd.DataFrame({"q": [1.0, 2.0, 3.0, 1.0], "b": ["x", "y", "x", "x"]})
    path = spss(tmp_path / "t.sav", frame, variable_value_labels={"q": {1: "one", 3: "three"}})
    assert read(path).domain["q"].levels == ("one", "2", "three")


def test_two_codes_of_one_label_are_one_level(tmp_path):
    frame = pd.DataFrame({"q": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    path = spss(tmp_path / "t.sav", frame, variable_value_labels={"q": {1: "yes", 2: "no", 3: "yes"}})
    assert rows_of(read(path)) == {("yes", "x"): 2, ("no", "y"): 1}


def test_chunks_make_one_table(tmp_path, monkeypatch, answers):
    from unless.data.sources import labelled

    # In this process, where the bound on memory is left alone.
    monkeypatch.setattr(labelled, "allow_memory", lambda _: None)
    path = spss(tmp_path / "t.sav", pd.concat([answers] * 10), variable_value_labels={"q": AGREE})
    told = [
        labelled.write_rows(str(path), str(tmp_path / f"{memory}.csv"), ".sav", "t", memory, None)
        for memory in (1, 2**30)
    ]
    assert told == [{"n_rows": 600}] * 2
    for ending in (".csv", ".csv.json"):
        assert (tmp_path / f"1{ending}").read_bytes() == (tmp_path / f"{2**30}{ending}").read_bytes()


@pytest.mark.parametrize("name", ["t.sav", "t.dta", "t.por", "t.zsav"])
def test_what_is_damaged_is_refused_in_one_sentence(tmp_path, name):
    (tmp_path / name).write_bytes(b"$FL2 nothing that anybody wrote" * 50)
    with pytest.raises(DataError, match=rf"'{name}' is damaged or of another format") as caught:
        read(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_file_that_was_cut_is_refused(tmp_path, answers):
    path = spss(tmp_path / "t.sav", pd.concat([answers] * 100))
    path.write_bytes(path.read_bytes()[:-3_001])
    with pytest.raises(DataError, match="damaged"):
        read(path)


def test_a_stream_and_a_file_of_another_name_are_known_by_their_bytes(tmp_path, answers):
    path = spss(tmp_path / "t.sav", answers)
    path.rename(tmp_path / "survey")
    with (tmp_path / "survey").open("rb") as stream:
        assert read(stream) == read(tmp_path / "survey")


def test_the_extra_is_named_where_it_is_absent(tmp_path, monkeypatch, answers):
    path = spss(tmp_path / "t.sav", answers)
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(
        MissingExtra, match=r"""'t.sav' needs pyreadstat; .* pip install "unless\[labelled\]"""
    ):
        read(path)


def test_nothing_of_it_is_imported_by_reading(tmp_path, answers):
    path = spss(tmp_path / "t.sav", answers)
    code = "import sys, unless; unless.read(sys.argv[1]); assert 'pyreadstat' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
