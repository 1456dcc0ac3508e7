"""CSGS by cohorts and by the cube against the literal Algorithm 2."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import datasets
from twins.naive import as_pairs, links_of, naive_association_order, reference_csgs
from unless.counting.reference import PlainCounts
from unless.counting.slices import PackedTable
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.independence.tests import make_test
from unless.learners.csgs import CSGS
from unless.learners.grow_shrink.algorithm import EdgeLimits, SliceOracle, csgs
from unless.learners.settings import resolve_order


@st.composite
def runs(draw):
    """Draw a table and settings of CSGS for it."""
    data = draw(datasets())
    pairs = st.tuples(st.sampled_from(data.names), st.sampled_from(data.names)).filter(
        lambda pair: pair[0] < pair[1]
    )
    required = draw(st.lists(pairs, max_size=2, unique=True))
    chosen = {
        "alpha": draw(st.sampled_from([0.05, 0.3, 0.01])),
        "test": draw(st.sampled_from(["pearson", "pearson", "likelihood_ratio", "bayesian"])),
        "order": draw(st.one_of(st.sampled_from(["association", "columns"]), st.permutations(data.names))),
        "blankets": draw(st.sampled_from(["shared", "shared", "independent"])),
        "rule": draw(st.sampled_from(["or", "and"])),
        "max_blanket": draw(st.sampled_from([None, None, None, 0, 1, 2])),
        "undecided": draw(st.sampled_from(["independent", "independent", "keep"])),
        "required_edges": required or None,
        "forbidden_edges": [pair for pair in draw(st.lists(pairs, max_size=2)) if pair not in required]
        or None,
    }
    return data, chosen


def naive_answer_to(data, chosen):
    positions = {name: column for column, name in enumerate(data.names)}
    if chosen["order"] == "association":
        order = naive_association_order(data.rows, data.counts, data.domain.n_levels, data.names)
    elif chosen["order"] == "columns":
        order = list(range(data.n_variables))
    else:
        order = [positions[name] for name in chosen["order"]]
    edges = {
        kind: [(positions[a], positions[b]) for a, b in chosen[f"{kind}_edges"] or ()]
        for kind in ("required", "forbidden")
    }
    same = {name: chosen[name] for name in ("alpha", "test", "blankets", "rule", "max_blanket", "undecided")}
    return reference_csgs(data.rows, data.counts, data.domain.n_levels, order=order, **edges, **same)


def assert_equals_its_twin(data, chosen):
    twins, n_tests, n_distinct = naive_answer_to(data, chosen)
    est = CSGS(**chosen).fit(data)
    names = data.names
    for (context, graph), twin, row in zip(est.structure_, twins, data.rows, strict=True):
        assert context == data.domain.decode(row)
        assert graph.edges == {tuple(sorted((names[a], names[b]))) for a, b in twin}
    assert (est.n_tests_, est.n_distinct_tests_) == (n_tests, n_distinct)


@settings(max_examples=200, deadline=None)
@given(runs())
def test_cube_gives_the_graphs_and_counts_of_the_literal_algorithm(run):
    assert_equals_its_twin(*run)


@settings(max_examples=200, deadline=None)
@given(runs(), st.sampled_from([0, 3, 1000]))
def test_cohorts_give_the_graphs_and_counts_of_the_literal_algorithm(run, list_limit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unless.learners.csgs.fits_cube", lambda n_levels: False)
        patch.setattr(PackedTable, "list_limit", lambda self: min(list_limit, self.table.codes.shape[1]))
        assert_equals_its_twin(*run)


@settings(max_examples=60, deadline=None)
@given(runs())
def test_the_reference_gives_the_same_on_plain_counts(run):
    data, chosen = run
    twins, n_tests, n_distinct = naive_answer_to(data, chosen)
    n, index = data.n_variables, data.domain.index
    required, forbidden = (
        links_of([(index(a), index(b)) for a, b in chosen[f"{kind}_edges"] or ()], n)
        for kind in ("required", "forbidden")
    )
    slices = SliceOracle(
        PlainCounts(data), make_test(chosen["test"], chosen["alpha"]), chosen["undecided"] == "keep"
    )
    most = n if chosen["max_blanket"] is None else chosen["max_blanket"]
    graphs = csgs(
        slices,
        data.rows,
        resolve_order(data, chosen["order"]),
        EdgeLimits(required, forbidden, most),
        shared=chosen["blankets"] == "shared",
        join_both=chosen["rule"] == "and",
    )
    assert [as_pairs(graph) for graph in graphs] == twins
    assert (slices.n_tests, slices.n_distinct_tests) == (n_tests, n_distinct)


def quick_table(data):
    """Make a `naive_table` for one dataset that is quick enough for thousands of rows."""
    n_levels = data.domain.n_levels

    def table_of(_rows, _counts, _n_levels, a, b, context):
        held = np.ones(data.n_distinct, dtype=bool)
        for position, code in context.items():
            held &= data.rows[:, position] == code
        table = np.zeros((n_levels[a], n_levels[b]), dtype=np.int64)
        np.add.at(table, (data.rows[held, a], data.rows[held, b]), data.counts[held])
        return table

    return table_of


def noisy_copies(n_variables, n_levels, n_rows, largest, seed):
    """Make a table whose columns follow one of two before them, some rows worth many."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, n_levels, n_rows) for _ in range(2)]
    while len(columns) < n_variables:
        source = np.where(columns[-2] == 0, columns[-1], columns[-2])
        columns.append(np.where(rng.random(n_rows) < 0.6, source, rng.integers(0, n_levels, n_rows)))
    domain = Domain(
        tuple(Variable(f"v{place:03}", tuple(map(str, range(n_levels)))) for place in range(n_variables))
    )
    counts = rng.geometric(0.6, n_rows) + rng.integers(0, largest, n_rows) * (rng.random(n_rows) < 0.1)
    return Dataset.from_codes(domain, np.column_stack(columns), counts)


@pytest.mark.parametrize(
    ("shape", "blankets", "n_jobs"),
    [
        # More than 64 variables: blankets of two words.
        ((67, 2, 25, 9), "shared", 1),
        ((67, 2, 25, 9), "independent", 3),
        # More than 64 words of rows, counts of many binary digits.
        ((5, 10, 8000, 70_000), "shared", 2),
    ],
)
def test_wide_and_long_tables_equal_the_literal_algorithm_too(shape, blankets, n_jobs, monkeypatch):
    data = noisy_copies(*shape, seed=5)
    assert data.n_variables > 64 or data.n_distinct > 64 * 64
    monkeypatch.setattr("unless.learners.csgs.fits_cube", lambda n_levels: False)
    monkeypatch.setattr("twins.naive.naive_table", quick_table(data))
    chosen = {
        "alpha": 0.01, "test": "pearson", "order": "columns", "blankets": blankets, "rule": "or",
        "max_blanket": None, "undecided": "independent", "required_edges": None, "forbidden_edges": None,
    }  # fmt: skip
    assert_equals_its_twin(data, {**chosen, "n_jobs": n_jobs})
