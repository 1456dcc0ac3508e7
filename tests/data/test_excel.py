import sys

import pandas as pd
import pytest

from data.tables import levels_of
from unless import read
from unless.errors import DataError, MissingExtra


def sheets(path, **frames):
    with pd.ExcelWriter(path, engine="xlsxwriter") as writer:
        for name, frame in frames.items():
            frame.to_excel(writer, sheet_name=name, index=False)
    return path


def test_whole_numbers_have_no_point_and_empty_cells_are_missing(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, None], "b": ["x", "NA", "y"], "c": [True, False, True]})
    data = read(sheets(tmp_path / "t.xlsx", one=frame), missing="level")
    assert levels_of(data) == {"a": ("1", "2", "missing"), "b": ("x", "y", "missing"), "c": ("False", "True")}


def test_the_first_of_several_sheets_is_read_and_said(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": [1, 2]})
    data = read(sheets(tmp_path / "t.xlsx", first=frame, second=frame))
    assert data.notes[0] == "Read 'first', the first of 2 sheets."


def test_an_empty_sheet_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"The first sheet of 't.xlsx' is empty"):
        read(sheets(tmp_path / "t.xlsx", one=pd.DataFrame()))


def test_the_extra_is_named_where_it_is_absent(tmp_path, monkeypatch):
    path = sheets(tmp_path / "t.xlsx", one=pd.DataFrame({"a": [1], "b": [2]}))
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingExtra, match=r'pip install "unless\[excel\]"'):
        read(path)
