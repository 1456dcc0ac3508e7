"""Slices of a statement are the table's own counts, cut by its gate."""

import numpy as np
import pytest
from scipy import stats

import unless
from unless.knowledge.slices import Slicer, wilson


def counted(data, pair, context):
    """Count two variables in a context row by row."""
    levels = [data.domain[name].levels for name in pair]
    table = np.zeros([len(one) for one in levels], dtype=int)
    for row, count in zip(data.rows, data.counts, strict=True):
        labels = data.domain.decode(row)
        if all(labels[name] in allowed for name, allowed in context.items()):
            table[levels[0].index(labels[pair[0]]), levels[1].index(labels[pair[1]])] += count
    return table


@pytest.mark.parametrize("name", ["ucb_admissions", "titanic"])
def test_slices_are_counted_as_row_by_row(name):
    data = getattr(unless.datasets, f"load_{name}")()
    for statement in unless.CSGS().fit(data).statements_:
        for one in Slicer(data).slices(statement):
            if len(one.where) <= 1:
                context = dict(one.where[0].conditions) if one.where else {}
                assert one.table.tolist() == counted(data, statement.pair, context).tolist()


def test_slices_of_a_gate_divide_the_rows():
    data = unless.datasets.load_titanic()
    for statement in unless.CSGS().fit(data).statements_:
        parts = Slicer(data).slices(statement)
        assert sum(one.evidence.n_rows for one in parts) == data.n_rows
        if statement.gate is None:
            assert [one.is_linked for one in parts] == [None]
        else:
            rows = [
                sum(one.evidence.n_rows for one in parts if one.is_linked is side) for side in (True, False)
            ]
            assert rows == [side.n_rows for side in statement.evidence]


def test_a_gate_of_many_combinations_is_cut_into_its_two_sides(monkeypatch):
    monkeypatch.setattr("unless.knowledge.slices.MOST_SLICES", 3)
    data = unless.datasets.load_titanic()
    statement = unless.CSGS().fit(data).statements_.about("Age", "Survived")
    assert [one.is_linked for one in Slicer(data).slices(statement)] == [True, False]


@pytest.mark.parametrize(("count", "total"), [(0, 4), (1, 141), (11, 25), (4, 4), (512, 825)])
def test_limits_are_those_of_wilson(count, total):
    low, high = wilson(np.array([count]), np.array([total]))
    expected = stats.binomtest(count, total).proportion_ci(method="wilson")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_nothing_counted_says_nothing():
    assert [limit.tolist() for limit in wilson(np.array([0]), np.array([0]))] == [[0.0], [1.0]]
