import random

import numpy as np
import pandas as pd
import pytest

from data.tables import levels_of, rows_of, write
from unless import read
from unless.errors import DataError, SettingError

AGES = list(range(18, 90))


def cut(values, spec, **settings):
    return read({"x": values, "b": [i % 2 for i in range(len(values))]}, bins={"x": spec}, **settings)


def counts(data):
    column = data.select(["x"])
    return dict(
        zip((column.domain["x"].levels[row[0]] for row in column.rows), column.counts.tolist(), strict=True)
    )


def test_quantiles_of_whole_numbers():
    data = cut(AGES, 4)
    assert counts(data) == {"18 to 35": 18, "36 to 53": 18, "54 to 71": 18, "72 to 89": 18}
    assert data.notes == (
        "Cut 'x' at quantiles into 4 groups: '18 to 35', '36 to 53', '54 to 71', '72 to 89'.",
    )
    assert data.domain["x"].kind == "category"
    assert cut(AGES, ("quantile", 4)) == data


def test_quantiles_of_other_numbers():
    data = cut([number / 8 for number in range(1000)], 2)
    assert counts(data) == {"0 to under 62.5": 500, "62.5 to 124.875": 500}


def test_equal_widths():
    assert counts(cut(AGES, ("width", 3))) == {"18 to 41": 24, "42 to 65": 24, "66 to 89": 24}
    data = cut([0.0, 0.1, 0.3, 0.45, 1.0], ("width", 3))
    assert levels_of(data)["x"] == ("0 to under 0.333333", "0.333333 to under 0.666667", "0.666667 to 1")
    assert sum(counts(data).values()) == 5


def test_given_edges():
    assert counts(cut(AGES, [18, 30, 65, 120])) == {"18 to 29": 12, "30 to 64": 35, "65 to 120": 25}
    assert levels_of(cut(AGES, [float("-inf"), 30, float("inf")]))["x"] == ("under 30", "30 or more")
    assert levels_of(cut([0.5, 1.5, 3.0], [0, 1, 2.5, 3]))["x"] == (
        "0 to under 1",
        "1 to under 2.5",
        "2.5 to 3",
    )


def test_a_group_of_one_number_is_called_by_it():
    assert levels_of(cut([0, 0, 0, 1, 2, 3], [0, 1, 3]))["x"] == ("0", "1 to 3")


def test_ties_make_fewer_groups():
    data = cut([0] * 60 + list(range(1, 41)), 4)
    assert counts(data) == {"0": 60, "1 to 15": 15, "16 to 40": 25}


def test_groups_are_as_equal_as_the_values_allow():
    values = np.random.default_rng(0).normal(size=999).tolist()
    assert all(abs(n - 999 / 5) <= 1 for n in counts(cut(values, 5)).values())


def test_counts_weigh(tmp_path):
    table = {"x": [1, 2, 3, 4], "b": [0, 1, 0, 1], "n": [9, 1, 1, 9]}
    data = read(table, bins={"x": 2}, count_column="n")
    assert counts(data) == {"1 to 2": 10, "3 to 4": 10}


def test_text_and_typed_columns_are_cut_alike(tmp_path):
    frame = pd.DataFrame({"x": [1.5, 2.0, None, 7.25, 3.0], "b": list("pqpqp")})
    frame.to_csv(tmp_path / "t.csv", index=False, na_rep="NA")
    frame.to_json(tmp_path / "t.json", orient="records")
    frame.to_parquet(tmp_path / "t.parquet")
    settings = {"bins": {"x": 2}, "missing": "level"}
    expected = read(frame, **settings)
    assert levels_of(expected)["x"] == ("1.5 to under 3", "3 to 7.25", "missing")
    for source in ("t.csv", "t.json", "t.parquet"):
        assert read(tmp_path / source, **settings) == expected
    assert read(frame.astype(object), **settings) == expected
    assert read(frame.astype({"x": "category"}), **settings) == expected
    assert read(frame.astype({"x": "string"}), **settings) == expected


def test_numbers_that_stand_for_missing_are_not_cut():
    data = cut([1, 2, 3, -9], 2, missing_values=[-9], missing="level")
    assert levels_of(data)["x"] == ("1 to 2", "3", "missing")


def test_the_order_of_rows_does_not_matter():
    values = [random.Random(3).random() for _ in range(50)]
    rows = [{"x": value, "b": position % 3} for position, value in enumerate(values)]
    shuffled = random.Random(4).sample(rows, len(rows))
    assert read(rows, bins={"x": 4}) == read(shuffled, bins={"x": 4})


def test_what_is_no_number_is_named(tmp_path):
    path = write(tmp_path / "t.csv", "x,b\n1,p\ntwo,q\n")
    with pytest.raises(DataError, match="'x' cannot be cut into bins: row 2 holds 'two', no number"):
        read(path, bins={"x": 2})
    with pytest.raises(DataError, match="row 1 holds 'p'"):
        read({"x": [1, 2], "b": ["p", "q"]}, bins={"b": 2})
    with pytest.raises(DataError, match="no numbers to cut"):
        read({"x": [None, None], "b": ["p", "q"]}, bins={"x": 2}, missing="level")


def test_values_outside_the_edges_are_named():
    with pytest.raises(DataError, match="'x' holds 89, outside its bins from 18 to 65"):
        cut(AGES, [18, 30, 65])


@pytest.mark.parametrize(
    "spec", [1, 0, "4", ("depth", 3), ("width", 1), [1], [3, 2, 1], ["a", "b", "c"], None]
)
def test_a_way_to_cut_that_says_nothing_is_refused(spec):
    with pytest.raises(SettingError, match="bins="):
        cut(AGES, spec)


def test_bins_free_a_column_of_very_many_values():
    values = np.random.default_rng(1).normal(size=20_000).tolist()
    data = cut(values, 3)
    assert len(rows_of(data)) == 6
