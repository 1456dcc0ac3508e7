"""Tests pooled over strata equal tests stratum by stratum, and verdicts say what the data can say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import twins.naive_statements as naive
from strategies import datasets
from structures.models import steady
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.independence.statistics import tail
from unless.knowledge import evidence as strata
from unless.knowledge.asking import evidence_of, largest_noncentrality, odds_ratio
from unless.knowledge.evidence import ROWS_PER_CELL, StrataCounter


def by_name(data):
    return data.select(sorted(data.names))


def table_of(cells, names="ab"):
    """Make a dataset of a contingency table of any number of axes."""
    cells = np.asarray(cells)
    domain = Domain(
        tuple(Variable(name, tuple(map(str, range(n)))) for name, n in zip(names, cells.shape, strict=True))
    )
    return Dataset.from_codes(domain, list(np.ndindex(*cells.shape)), cells.ravel())


def weigh(counted, pair, domain):
    return evidence_of(counted, pair, domain, alpha=0.05, effect=0.3)


def evidence_in(cells, names="ab", given=()):
    data = table_of(cells, names)
    counted = StrataCounter(data).count(0, 1, [data.domain.index(name) for name in given])
    return weigh(counted, (0, 1), data.domain)


@steady
@given(datasets(min_variables=2, max_variables=5, max_levels=4), st.data())
def test_evidence_is_the_sum_of_tests_in_strata(data, drawn):
    data = by_name(data)
    names = list(data.names)
    a, b, *rest = drawn.draw(st.permutations(names))
    given_names = sorted(rest[: drawn.draw(st.integers(0, len(rest)))])
    inside = np.array(drawn.draw(st.lists(st.booleans(), min_size=data.n_distinct, max_size=data.n_distinct)))
    places = [data.domain.index(name) for name in (a, b)]
    counted = StrataCounter(data).count(*places, [data.domain.index(name) for name in given_names], inside)
    wanted = naive.strata(data, a, b, given_names, inside)
    labels = [
        tuple(data.domain[name].levels[code] for name, code in zip(given_names, row, strict=True))
        for row in counted.codes.tolist()
    ]
    assert dict(zip(labels, counted.tables.tolist(), strict=True)) == {
        key: table.tolist() for key, table in wanted.items()
    }
    evidence = weigh(counted, tuple(places), data.domain)
    tables = [wanted[key] for key in labels]
    statistic, df, p, rows_used = naive.chi_square(tables)
    assert (evidence.df, evidence.rows_used) == (df, rows_used)
    assert evidence.statistic == pytest.approx(statistic, rel=1e-9, abs=1e-9)
    assert tail(evidence.df, evidence.statistic) == pytest.approx(p, rel=1e-6, abs=1e-290)
    if evidence.method == "chi-square":
        assert evidence.p == pytest.approx(p, rel=1e-6, abs=1e-290)
    if tables:
        assert evidence.information == pytest.approx(naive.conditional_information(tables), abs=1e-9)


@steady
@given(st.lists(st.lists(st.integers(0, 60), min_size=4, max_size=4), min_size=1, max_size=5))
def test_odds_ratios_follow_the_published_formulas(cells):
    tables = np.array(cells, dtype=np.int64).reshape(-1, 2, 2)
    wanted = naive.mantel_haenszel(tables)
    found = odds_ratio(tables)
    if wanted is None:
        assert found is None or (found[0] in (0.0, math.inf) and found[1:] == (None, None))
    else:
        assert found == pytest.approx(wanted)


def test_the_odds_ratio_of_berkeley_in_department_a():
    evidence = evidence_in([[512, 89], [313, 19]])
    assert evidence.odds_ratio.value == pytest.approx(512 * 19 / (89 * 313))
    # In a single table the interval is Woolf's, nearly.
    error = math.sqrt(sum(1 / cell for cell in (512, 89, 313, 19)))
    assert evidence.odds_ratio.low == pytest.approx(
        evidence.odds_ratio.value * math.exp(-1.96 * error), rel=0.01
    )
    assert evidence.odds_ratio.levels == (("0", "1"), ("0", "1"))
    assert evidence_in([[5, 9, 2], [3, 9, 8]]).odds_ratio is None


def test_three_answers_and_what_would_settle_the_third():
    assert evidence_in([[30, 10], [10, 30]]).answer == "dependent"
    even = evidence_in([[50, 50], [50, 50]])
    assert (even.answer, even.more_rows) == ("independent", None)
    few = evidence_in([[5, 5], [5, 5]])
    assert (few.answer, few.rows_used + few.more_rows) == ("undecided", 88)
    still = evidence_in([[5, 0], [7, 0]])
    assert (still.answer, still.df, still.more_rows, still.q) == ("undecided", 0, None, 1.0)


def test_strata_that_do_not_vary_make_the_way_longer():
    half = evidence_in([[[5, 5], [5, 5]], [[5, 0], [5, 0]]], "abc", given="c")
    whole = evidence_in([[5, 5], [5, 5]])
    assert (half.rows_used, half.n_rows, half.more_rows) == (20, 30, round(1.5 * whole.more_rows))


@pytest.mark.parametrize(
    ("statistic", "df"),
    [(0.0, 1), (1e-9, 3), (0.001, 1), (0.5, 1), (3.0, 2), (8.0, 30), (40.0, 30), (300.0, 2)],
)
def test_the_largest_effect_not_ruled_out(statistic, df):
    limit = largest_noncentrality(statistic, df)
    if statistic:
        share = stats.ncx2.cdf(statistic, df, limit) / stats.chi2.cdf(statistic, df)
        assert share == pytest.approx(0.05, rel=1e-4)
    else:
        assert limit == pytest.approx(largest_noncentrality(1e-9, df), rel=1e-6)
    assert limit > 5


def test_given_as_many_as_the_rows_bear():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 4, 2000)
    columns = {
        "a": (z + rng.integers(0, 2, 2000)) % 4,
        "b": (z + rng.integers(0, 2, 2000)) % 4,
        "id": np.arange(2000) % 500,
        "weak": rng.integers(0, 2, 2000),
        "z": z,
    }
    domain = Domain(
        tuple(Variable(name, tuple(map(str, range(int(c.max()) + 1)))) for name, c in columns.items())
    )
    data = Dataset.from_codes(domain, np.column_stack(list(columns.values())))
    a, b, identity, weak, cause = range(5)
    counted = StrataCounter(data).count_within_bounds(a, b, (identity, weak, cause))
    assert counted.given == (weak, cause)
    assert counted.tables.sum() == 2000
    assert weigh(counted, (a, b), domain).p > 0.01
    assert weigh(StrataCounter(data).count(a, b, []), (a, b), domain).p < 1e-9
    cells = sum(int((t.sum(axis=0) > 0).sum() * (t.sum(axis=1) > 0).sum()) for t in counted.tables)
    assert counted.tables.sum() >= ROWS_PER_CELL * cells


def test_a_variable_that_cuts_nothing_is_not_named():
    data = table_of(np.full((2, 2, 2), 50) * np.array([1, 0]), "abc")
    assert StrataCounter(data).count_within_bounds(0, 1, (2,)).given == ()


def test_plain_values_are_finite_and_hold_the_tables():
    evidence = evidence_in([[[3, 5], [5, 0]], [[5, 1], [0, 9]]], "abc", given="c")
    plain = evidence.to_dict()
    assert plain["tables"][1] == {"given": {"c": "1"}, "counts": [[5, 0], [1, 9]]}
    assert "tables" not in evidence.to_dict(tables=False)
    infinite = replace(evidence_in([[10, 0], [0, 10]]).odds_ratio)
    assert infinite.to_dict()["value"] is None


@steady
@given(datasets(min_variables=3, max_variables=5, max_levels=4))
def test_strata_found_by_sorting_are_those_looked_up(data):
    data = by_name(data)
    others = range(2, data.n_variables)
    found = []
    for dense in (16, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(strata, "_DENSE", dense)
            counter = StrataCounter(data)
            found.append([counter.count(0, 1, others), counter.count_within_bounds(0, 1, others)])
    for one, other in zip(*found, strict=True):
        assert one.given == other.given
        assert one.tables.tolist() == other.tables.tolist()
        assert one.codes.tolist() == other.codes.tolist()


def test_strata_of_mostly_empty_cells_are_not_counted(monkeypatch):
    # Each level of c has its own of a: few cells are seen, of many that there are.
    data = table_of(np.einsum("ac,b->abc", 50 * np.eye(30, dtype=int), [1, 1]), "abc")
    assert StrataCounter(data).count_within_bounds(0, 1, [2]).given == (2,)
    monkeypatch.setattr(strata, "MOST_CELLS", 30 * 2 * 30 - 1)
    assert StrataCounter(data).count_within_bounds(0, 1, [2]).given == ()
