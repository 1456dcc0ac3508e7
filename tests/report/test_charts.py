"""The shares of a statement come from the table's own counts; their limits are Wilson's."""

import numpy as np
import pytest
from scipy import stats

import unless
from unless.report.writing import wilson


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
def test_strata_are_counted_as_row_by_row(name):
    data = getattr(unless.datasets, f"load_{name}")()
    for statement in unless.CSGS().fit(data).statements_.findings:
        for side in statement.evidence:
            for labels, table in zip(side.strata, side.tables, strict=True):
                allowed = {name: (label,) for name, label in zip(side.table_given, labels, strict=True)}
                if side.where:
                    (region,) = side.where
                    allowed = _both(allowed, dict(region.conditions))
                assert table.tolist() == counted(data, statement.pair, allowed).tolist()


def _both(first, second):
    names = {*first, *second}
    return {
        name: tuple(x for x in first.get(name, second.get(name)) if x in second.get(name, first.get(name)))
        for name in names
    }


@pytest.mark.parametrize(("count", "total"), [(0, 4), (1, 141), (11, 25), (4, 4), (512, 825)])
def test_limits_are_those_of_wilson(count, total):
    low, high = wilson(np.array([count]), np.array([total]))
    expected = stats.binomtest(count, total).proportion_ci(method="wilson")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_nothing_counted_says_nothing():
    assert [limit.tolist() for limit in wilson(np.array([0]), np.array([0]))] == [[0.0], [1.0]]
