import sys

import pandas as pd
import pytest

from data.tables import levels_of
from unless import prepare, read
from unless.errors import DataError, MissingExtra, SettingError


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
    assert data.notes[0] == "Read sheet 'first'; another sheet is 'second' (choose with sheet=)."


def test_an_empty_sheet_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"The first sheet of 't.xlsx' is empty"):
        read(sheets(tmp_path / "t.xlsx", one=pd.DataFrame()))


def test_the_extra_is_named_where_it_is_absent(tmp_path, monkeypatch):
    path = sheets(tmp_path / "t.xlsx", one=pd.DataFrame({"a": [1], "b": [2]}))
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingExtra, match=r'pip install "unless\[excel\]"'):
        read(path)


COVER = pd.DataFrame({"Answers of 2024": ["see the next sheet", "questions to the office"]})
TABLE = pd.DataFrame({"a": [1, 2, 1], "b": ["x", "y", "x"]})
OTHER = pd.DataFrame({"c": [1, 2, 1], "d": ["x", "y", "x"]})


def test_the_first_sheet_with_a_table_is_read_and_the_others_are_named(tmp_path):
    path = sheets(tmp_path / "t.xlsx", cover=COVER, empty=pd.DataFrame(), table=TABLE, other=OTHER)
    data = read(path)
    assert data.names == ("a", "b")
    note = "Read sheet 'table'; other sheets are 'cover', 'empty', 'other' (choose with sheet=)."
    assert [one for one in data.notes if "sheet" in one] == [note]
    assert prepare(path).notes == (note,)


@pytest.mark.parametrize("sheet", ["other", "Other ", 3, "3"])
def test_a_sheet_is_named_or_numbered(tmp_path, sheet):
    path = sheets(tmp_path / "t.xlsx", cover=COVER, table=TABLE, other=OTHER)
    data = read(path, sheet=sheet)
    assert (data.names, data.notes) == (("c", "d"), ())
    assert [one.name for one in prepare(path, sheet=sheet).lines] == ["c", "d"]


def test_a_name_comes_before_a_number(tmp_path):
    path = sheets(tmp_path / "t.xlsx", **{"2": TABLE, "1": OTHER})
    assert read(path, sheet="1").names == ("c", "d")
    assert read(path, sheet=1).names == ("a", "b")


@pytest.mark.parametrize("sheet", ["nothing", 3])
def test_an_unknown_sheet_is_refused_with_the_names_of_all(tmp_path, sheet):
    path = sheets(tmp_path / "t.xlsx", table=TABLE, other=OTHER)
    with pytest.raises(
        DataError, match=rf"'t.xlsx' has no sheet {sheet!r}; its sheets are 'table', 'other'."
    ):
        read(path, sheet=sheet)


def test_a_sheet_without_a_table(tmp_path):
    path = sheets(tmp_path / "t.xlsx", empty=pd.DataFrame(), cover=COVER)
    with pytest.raises(DataError, match=r"Sheet 'empty' of 't.xlsx' is empty; name another one of 'cover'"):
        read(path, sheet="empty")
    # Nothing better is there.
    with pytest.raises(DataError, match="one column, 'Answers of 2024'"):
        read(path)
    with pytest.raises(DataError, match=r"All 2 sheets of 'u.xlsx' are empty"):
        read(sheets(tmp_path / "u.xlsx", a=pd.DataFrame(), b=pd.DataFrame()))


def test_hidden_sheets_and_charts_are_passed_over(tmp_path):
    with pd.ExcelWriter(tmp_path / "t.xlsx", engine="xlsxwriter") as writer:
        OTHER.to_excel(writer, sheet_name="lists", index=False)
        chart = writer.book.add_chart({"type": "line"})
        chart.add_series({"values": "=lists!$A$2:$A$4"})
        writer.book.add_chartsheet("chart").set_chart(chart)
        TABLE.to_excel(writer, sheet_name="table", index=False)
        writer.sheets["lists"].hide()
        writer.sheets["table"].activate()
    assert read(tmp_path / "t.xlsx").names == ("a", "b")
    assert read(tmp_path / "t.xlsx", sheet="lists").names == ("c", "d")


def test_a_sheet_far_from_a_table_does_not_stand_in_the_way_of_another(tmp_path):
    with pd.ExcelWriter(tmp_path / "t.xlsx", engine="xlsxwriter") as writer:
        TABLE.to_excel(writer, sheet_name="table", index=False)
        TABLE.to_excel(writer, sheet_name="far", index=False)
        writer.sheets["far"].write(1_000_000, 16_000, "far away")
    assert read(tmp_path / "t.xlsx").names == ("a", "b")
    with pytest.raises(DataError, match=r"Sheet 2 of 't.xlsx' spans 1,000,001 rows"):
        read(tmp_path / "t.xlsx", sheet="far")


def test_a_sheet_is_for_spreadsheets(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SettingError, match=r"sheet='x' is for spreadsheets, and 't.csv' is none"):
        read(tmp_path / "t.csv", sheet="x")
    with pytest.raises(SettingError, match="sheet=1 is for spreadsheets, and the table is none"):
        read({"a": [1], "b": [2]}, sheet=1)
    with pytest.raises(SettingError, match=r"sheet=0 is out of range"):
        read(tmp_path / "t.csv", sheet=0)
