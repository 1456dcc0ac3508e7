"""CSPC in all contexts at once against PC in one context after the other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import datasets
from twins.naive import naive_association_order, reference_cspc
from unless.counting.slices import PackedTable
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import SettingError, TooLarge
from unless.learners import cspc
from unless.learners.cspc import CSPC

ADJACENCY = pytest.mark.parametrize("adjacency", ["shared", "independent"])


@st.composite
def runs(draw):
    """Draw a table and settings of CSPC for it."""
    data = draw(datasets())
    pairs = st.tuples(st.sampled_from(data.names), st.sampled_from(data.names)).filter(
        lambda pair: pair[0] < pair[1]
    )
    required = draw(st.lists(pairs, max_size=2, unique=True))
    chosen = {
        "alpha": draw(st.sampled_from([0.05, 0.3, 0.01])),
        "test": draw(st.sampled_from(["pearson", "pearson", "likelihood_ratio", "bayesian"])),
        "order": draw(st.one_of(st.sampled_from(["association", "columns"]), st.permutations(data.names))),
        "adjacency": draw(st.sampled_from(["shared", "independent"])),
        "rule": draw(st.sampled_from(["or", "and"])),
        "max_condition": draw(st.sampled_from([None, None, None, 0, 1, 2])),
        "undecided": draw(st.sampled_from(["independent", "independent", "keep"])),
        "required_edges": required or None,
        "forbidden_edges": [pair for pair in draw(st.lists(pairs, max_size=2)) if pair not in required]
        or None,
    }
    return data, chosen


def naive_answer_to(data, chosen):
    positions = {name: column for column, name in enumerate(data.names)}
    chosen = {"order": "association", **chosen}
    if chosen["order"] == "association":
        order = naive_association_order(data.rows, data.counts, data.domain.n_levels, data.names)
    elif chosen["order"] == "columns":
        order = list(range(data.n_variables))
    else:
        order = [positions[name] for name in chosen["order"]]
    edges = {
        kind: [(positions[a], positions[b]) for a, b in chosen.get(f"{kind}_edges") or ()]
        for kind in ("required", "forbidden")
    }
    names = ("alpha", "test", "adjacency", "rule", "max_condition", "undecided")
    same = {name: chosen[name] for name in names if name in chosen}
    return reference_cspc(data.rows, data.counts, data.domain.n_levels, order=order, **edges, **same)


def assert_equals_its_twin(data, chosen):
    twins, n_tests, n_distinct = naive_answer_to(data, chosen)
    est = CSPC(**chosen).fit(data)
    names = data.names
    for (context, graph), twin, row in zip(est.structure_, twins, data.rows, strict=True):
        assert context == data.domain.decode(row)
        assert graph.edges == {tuple(sorted((names[a], names[b]))) for a, b in twin}
    assert (est.n_tests_, est.n_distinct_tests_) == (n_tests, n_distinct)


def check_random_tables(adjacency, n_tables):
    """Compare with the twin: by lists and by bitmaps, in calls that stop after every question too."""

    @settings(max_examples=n_tables, deadline=None)
    @given(
        runs(),
        st.sampled_from([0, 3, 1000]),
        st.sampled_from([0, 1.5, 1000]),
        st.sampled_from([1, 1, 2, 3]),
        st.sampled_from([1, 2**15]),
    )
    def check(run, list_limit, word_cost, n_jobs, max_new):
        data, chosen = run
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PackedTable, "list_limit", lambda self: min(list_limit, self.table.codes.shape[1]))
            patch.setattr(cspc, "_WORD_COST", word_cost)
            patch.setattr(cspc, "_MAX_NEW", max_new)
            assert_equals_its_twin(data, {**chosen, "adjacency": adjacency, "n_jobs": n_jobs})

    check()


@ADJACENCY
def test_all_contexts_at_once_give_the_graphs_and_counts_of_pc_in_each(adjacency):
    check_random_tables(adjacency, 100)


@pytest.mark.slow
@ADJACENCY
def test_two_hundred_random_tables_equal_the_twin(adjacency):
    check_random_tables(adjacency, 200)


@settings(max_examples=60, deadline=None)
@given(runs(), st.sampled_from([1, 2]))
def test_the_usual_limits_give_the_graphs_and_counts_of_pc_in_each_context(run, n_jobs):
    data, chosen = run
    assert_equals_its_twin(data, {**chosen, "n_jobs": n_jobs})


def table_of(codes, counts=None, n_levels=None):
    codes = np.asarray(codes)
    sizes = codes.max(axis=0) + 1 if n_levels is None else n_levels
    domain = Domain(
        tuple(
            Variable(f"v{place:03}", tuple(f"l{level:03}" for level in range(size)))
            for place, size in enumerate(sizes)
        )
    )
    return Dataset.from_codes(domain, codes, counts)


def nasty_tables():
    rng = np.random.default_rng(4)
    copies = rng.integers(0, 30, 400)
    thirty = np.column_stack([copies, np.where(rng.random(400) < 0.2, 3, copies), copies % 3, copies % 2])
    half = rng.integers(0, 2, (300, 5))
    half[:, 3] = 0
    return {
        "one row": table_of([[0, 1, 2]], n_levels=[2, 2, 3]),
        "two columns": table_of([[0, 1], [1, 0], [1, 1]], [50, 40, 3]),
        "one row many times": table_of([[1, 1, 1]], [10**12]),
        "thirty levels": table_of(thirty),
        "a constant column": table_of(half, n_levels=[2] * 5),
        "columns of one level": table_of(half * [1, 0, 1, 0, 1], n_levels=[2, 1, 2, 1, 2]),
        "unused levels": table_of(half, n_levels=[5, 2, 7, 3, 2]),
        "all alike": table_of(np.repeat(rng.integers(0, 2, (200, 1)), 5, axis=1)),
        "counts of fifty bits": table_of([[0, 0, 0], [1, 1, 1], [0, 1, 1]], [2**51, 2**50, 5]),
    }


@ADJACENCY
@pytest.mark.parametrize("undecided", ["independent", "keep"])
@pytest.mark.parametrize("name", nasty_tables())
def test_nasty_tables_equal_the_twin(name, undecided, adjacency):
    chosen = {"undecided": undecided, "adjacency": adjacency}
    assert_equals_its_twin(nasty_tables()[name], chosen)
    assert_equals_its_twin(nasty_tables()[name], {**chosen, "order": "columns", "rule": "and", "n_jobs": 2})


@ADJACENCY
@pytest.mark.parametrize("n", range(2, 9))
def test_where_nothing_is_removed_every_set_is_asked_about_from_both_ends(n, adjacency):
    # Every value is worth much and no two variables are independent in any slice.
    rng = np.random.default_rng(n)
    codes = np.array(list(np.ndindex(*[2] * n)))
    agree = (2 * codes - 1) @ (2 * codes - 1).T
    counts = np.maximum(10**8 * np.exp(agree[0] ** 2 / n - n), 10**4) * rng.uniform(1, 1.01, len(codes))
    data = table_of(codes, counts.astype(np.int64))
    est = CSPC(adjacency=adjacency).fit(data)
    assert est.structure_.n_graphs == 1
    assert len(est.structure_.given({}).edges) == n * (n - 1) // 2
    assert est.n_tests_ == 2**n * n * (n - 1) * 2 ** (n - 2)
    assert est.n_distinct_tests_ == n * (n - 1) // 2 * 3 ** (n - 2)


def quick_table(data):
    """Make a `naive_table` for one dataset that is quick enough for thousands of rows."""
    n_levels = data.domain.n_levels

    def count_quickly(_rows, _counts, _n_levels, a, b, context):
        held = np.ones(data.n_distinct, dtype=bool)
        for position, code in context.items():
            held &= data.rows[:, position] == code
        table = np.zeros((n_levels[a], n_levels[b]), dtype=np.int64)
        np.add.at(table, (data.rows[held, a], data.rows[held, b]), data.counts[held])
        return table

    return count_quickly


def noisy_copies(n_variables, n_levels, n_rows, largest, seed):
    """Make a table whose columns follow one of two before them, some rows worth many."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, n_levels, n_rows) for _ in range(2)]
    while len(columns) < n_variables:
        source = np.where(columns[-2] == 0, columns[-1], columns[-2])
        columns.append(np.where(rng.random(n_rows) < 0.6, source, rng.integers(0, n_levels, n_rows)))
    counts = rng.geometric(0.6, n_rows) + rng.integers(0, largest, n_rows) * (rng.random(n_rows) < 0.1)
    return table_of(np.column_stack(columns), counts, [n_levels] * n_variables)


@ADJACENCY
@pytest.mark.parametrize(
    ("shape", "max_condition", "n_jobs"),
    [
        # More than 64 variables: sets of two words.
        ((67, 2, 8, 9), 2, 1),
        ((67, 2, 8, 9), 1, 3),
        # More than 64 words of contexts, counts of many binary digits.
        ((4, 12, 12_000, 70_000), None, 2),
    ],
)
def test_wide_and_long_tables_equal_the_twin_too(shape, max_condition, n_jobs, adjacency, monkeypatch):
    data = noisy_copies(*shape, seed=5)
    monkeypatch.setattr("twins.naive.naive_table", quick_table(data))
    chosen = {"alpha": 0.01, "order": "columns", "max_condition": max_condition, "n_jobs": n_jobs}
    assert_equals_its_twin(data, {**chosen, "adjacency": adjacency})


@ADJACENCY
def test_the_same_bytes_whatever_the_threads_and_the_order_of_rows_and_columns(adjacency):
    data = noisy_copies(9, 3, 700, 40, seed=2)
    whole = CSPC(adjacency=adjacency).fit(data)
    assert whole.structure_ == CSPC(adjacency=adjacency, n_jobs=3).fit(data).structure_
    shuffled = np.random.default_rng(0).permutation(data.n_variables)
    domain = Domain(tuple(data.domain.variables[place] for place in shuffled))
    shuffled_data = Dataset.from_codes(domain, data.rows[::-1][:, shuffled], data.counts[::-1])
    mirrored = CSPC(adjacency=adjacency).fit(shuffled_data)
    assert (mirrored.n_tests_, mirrored.n_distinct_tests_) == (whole.n_tests_, whole.n_distinct_tests_)
    assert mirrored.structure_.link_shares() == whole.structure_.link_shares()


def test_too_little_memory_is_refused_before_any_work(monkeypatch):
    data = noisy_copies(67, 2, 25, 9, seed=5)
    monkeypatch.setattr("unless.learners.cspc.bytes_for_pc", lambda *_, **__: 2**40)
    with pytest.raises(TooLarge, match="25 graphs over 67 variables would need about"):
        CSPC().fit(data)


def test_too_many_answers_are_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr("unless.learners.cspc.bytes_for_pc", lambda *_, **__: 2**26 - 10**5)
    with pytest.raises(TooLarge, match="max_condition="):
        CSPC(max_memory=2**26).fit(noisy_copies(9, 3, 700, 40, seed=2))


@pytest.mark.parametrize("bad", [-1, 1.5, True, "2"])
def test_a_bad_max_condition_is_refused(bad):
    with pytest.raises(SettingError, match="max_condition"):
        CSPC(max_condition=bad).fit(table_of([[0, 1], [1, 0]]))


def test_the_order_of_columns_matters_where_the_order_is_theirs():
    data = noisy_copies(9, 3, 700, 40, seed=2)
    graphs = [
        CSPC(adjacency="independent", order=order).fit(data) for order in (data.names, data.names[::-1])
    ]
    assert graphs[0].structure_ != graphs[1].structure_


def test_independent_adjacency_is_expected_to_need_more_memory():
    data = noisy_copies(67, 2, 25, 9, seed=5)
    small, large = (cspc.bytes_for_pc(data, 1, shared=shared) for shared in (True, False))
    assert small < large < 2 * small
