"""GGS against its literal twins: parts, tests of weights and of gates, gate trees, accounts of pairs."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twins.naive_ggs as naive
import unless
from twins import naive_gates
from unless.independence.logistic import NO_EFFECT
from unless.independence.statistics import NOTHING
from unless.learners.ggs import claims, gates, regressions
from unless.learners.ggs.claims import Linker
from unless.learners.ggs.gates import GateSearch, GateTree, even_shares, gate_ranks, gate_shares, part_rivals
from unless.learners.ggs.regressions import NeighbourTests, StratifiedTable, Stratum, differences

NASTY = ("plain", "constant", "copied", "one row", "separated")


@st.composite
def nasty_tables(draw, n_variables=4, max_rows=60):
    """Draw a table with unused levels, repeated rows and one more nuisance."""
    return nasty_table(
        draw(st.integers(0, 10_000)),
        draw(st.sampled_from(NASTY)),
        n_variables,
        draw(st.integers(1, max_rows)),
    )


def nasty_table(seed, kind="plain", n_variables=4, n_rows=60):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 5, n_variables)
    rows = np.column_stack([rng.integers(0, size, n_rows) for size in sizes])
    rows[:, 1] = np.where(rng.random(n_rows) < 0.7, rows[:, 0] % sizes[1], rows[:, 1])
    if kind == "constant":
        rows[:, 2] = 1
    elif kind == "copied":
        rows[:, -1] = rows[:, 1] % sizes[-1]
    elif kind == "separated":
        rows[:, 0] = rows[:, 1] % sizes[0]
    elif kind == "one row":
        rows = rows[:1]
    return dataset(rows, sizes + 1, rng.integers(1, 4, len(rows)))


def gated_table(seed, n_variables=4, n_levels=2, n_rows=500):
    """Make a table in which the last variable, of so many levels, switches what the others copy."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2, (n_rows, n_variables))
    rows[:, -1] = rng.integers(0, n_levels, n_rows)
    for column in range(1, n_variables - 1):
        copied = (rows[:, -1] == 0) & (rng.random(n_rows) < 0.7)
        rows[copied, column] = rows[copied, column - 1]
    return dataset(rows, [3] * (n_variables - 1) + [n_levels])


def dataset(rows, sizes, counts=None):
    variables = [
        unless.Variable(f"v{place}", tuple(map(str, range(size)))) for place, size in enumerate(sizes)
    ]
    return unless.Dataset.from_codes(unless.Domain(tuple(variables)), rows, counts)


def references_of(rows):
    return [naive.reference_level(rows, variable) for variable in range(rows.shape[1])]


def neighbour_tests(table, target, alpha=0.05):
    allowed = np.array([len(levels) > 1 for levels in table.used])
    allowed[target] = False
    return NeighbourTests(
        table, target, allowed & (len(table.used[target]) > 1), np.zeros_like(allowed), alpha, 24
    )


def inside(rows, conditions):
    return np.array([all(row[v] in levels for v, levels in conditions) for row in rows], dtype=bool)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(nasty_tables(), st.data())
def test_parts_are_the_rows_that_meet_their_conditions(data, choose):
    table = StratifiedTable(data)
    parts = []
    for _ in range(2):
        part = table.whole
        for variable in choose.draw(st.lists(st.integers(0, 3), max_size=3)):
            levels = table.levels_in(part, variable)
            some = choose.draw(st.sets(st.sampled_from(levels), min_size=1)) if levels else {0}
            part = table.restrict(part, variable, tuple(sorted(some)))
        parts.append(part)
    one, other = parts
    both = one.intersection(other)
    met = inside(data.rows, one.conditions) & inside(data.rows, other.conditions)
    for part, expected in ((one, inside(data.rows, one.conditions)), (both, met)):
        assert part.rows.tolist() == np.flatnonzero(expected).tolist()
        assert inside(data.rows, part.conditions).tolist() == expected.tolist()
        assert table.n_rows(part) == data.counts[expected].sum()
        for variable in range(4):
            assert table.levels_in(part, variable) == sorted({*data.rows[expected][:, variable].tolist()})


@settings(max_examples=40, deadline=None, derandomize=True)
@given(nasty_tables())
def test_gates_are_scored_literally(data):
    rows, table = naive.expanded(data), StratifiedTable(data)
    part = table.restrict(table.whole, 3, tuple(table.used[3][:2]))
    tests = neighbour_tests(table, 0)
    kept = rows[inside(rows, part.conditions)]
    for blanket in ((), (1,), (1, 2), (1, 2, 3)):
        for gate, found in zip((1, 2, 3), tests.split_scores(part, blanket, [1, 2, 3]), strict=True):
            levels = [level for level in table.used[gate] if level != table.references[gate]]
            if levels:
                expected = naive.gate_score(kept, 0, blanket, gate, levels, references_of(rows))
                assert found == pytest.approx(expected, rel=1e-4, abs=1e-5)
            else:
                assert found == (0.0, 0)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(nasty_tables())
def test_sizes_and_differences_of_weights_are_the_literal_ones(data):
    rows, table, blanket = naive.expanded(data), StratifiedTable(data), (1, 2)
    tests = neighbour_tests(table, 0)
    parts = [table.restrict(table.whole, 3, (level,)) for level in table.used[3]]
    strata = [tests.regression(part, blanket) for part in parts]
    told = [
        naive.regress(rows[inside(rows, part.conditions)], 0, blanket, references_of(rows)) for part in parts
    ]
    for found, literal in zip(strata, told, strict=True):
        expected = {variable: naive.size(naive.effect(literal, variable)) for variable in blanket}
        assert {*found.sizes} == {variable for variable, (_, df) in expected.items() if df}
        for variable, size in found.sizes.items():
            assert size == pytest.approx(expected[variable], rel=1e-4, abs=1e-6)
    for variable, found in zip(blanket, differences(strata, blanket), strict=True):
        expected = naive.difference([naive.effect(one, variable) for one in told])
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_what_the_blanket_explains_is_left_to_eigenvalues(monkeypatch):
    asked = []

    def listen(slope, variance, own):
        asked.append(len(slope))
        return known_part(slope, variance, own)

    known_part = regressions.known_part
    monkeypatch.setattr(regressions, "known_part", listen)
    # The whole table has the reference of the gate; here it is gone, and its other levels add up to one.
    rows = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1], [0, 1, 2], [1, 0, 2]])
    data = dataset(rows, [2, 2, 3], [900, 800, 300, 200, 250, 350])
    table = StratifiedTable(data)
    part = table.restrict(table.whole, 2, (1, 2))
    tests = neighbour_tests(table, 0)
    (found,) = tests.split_scores(part, (1,), [2])
    assert asked == [4]
    every = naive.expanded(data)
    expected = naive.gate_score(every[every[:, 2] > 0], 0, (1,), 2, [1, 2], references_of(every))
    assert found == pytest.approx(expected, rel=1e-6)
    assert found.df < 4


def told(tree):
    """Write a tree as its twin does."""
    return (
        tree.stratum.conditions,
        tree.blanket,
        tuple((one.gate, pytest.approx(one.gain, abs=1e-5), pytest.approx(one.p, rel=1e-4), one.union)
              for one in tree.candidates),
        tree.gate,
        tree.union,
        tuple(told(child) for child in tree.children),
    )  # fmt: skip


def both_searches(data, target, **settings):
    rows, tests = naive.expanded(data), neighbour_tests(StratifiedTable(data), target)
    allowed = np.flatnonzero(tests.allowed).tolist()
    slow = naive_gates.NaiveSearch(rows, target, allowed, allowed, 0.05, 3, **settings)
    return GateSearch(tests, tests.allowed, 3), slow


TABLES = {
    **{f"gated {seed}": gated_table(seed) for seed in (0, 1)},
    "three levels": gated_table(2, n_levels=3, n_rows=700),
    "four levels": gated_table(3, n_variables=3, n_levels=4, n_rows=900),
    **{kind: nasty_table(place, kind, n_rows=150) for place, kind in enumerate(NASTY)},
    # A gate and its copy, which must not be told apart by rounding.
    "two gates alike": nasty_table(36, "copied", n_rows=150),
}


@pytest.mark.parametrize("few_gates", [8, 1])
@pytest.mark.parametrize("name", TABLES)
def test_gate_trees_are_the_literal_ones(name, few_gates, monkeypatch):
    monkeypatch.setattr(gates, "FEW_GATES", few_gates)
    monkeypatch.setattr(regressions, "MAX_NEAR", 2 * few_gates)
    data = TABLES[name]
    rng = np.random.default_rng(0)
    for target in range(2):
        fast, slow = both_searches(data, target, few_gates=few_gates, max_near=2 * few_gates)
        for shares in (even_shares(data.n_variables), rng.dirichlet(np.ones(data.n_variables + 1))):
            assert told(fast.tree(shares)) == slow.tree(shares)
        assert fast.tests.near == slow.near


@pytest.mark.parametrize("max_cells", [8, 2])
@pytest.mark.parametrize("name", ["gated 0", "three levels", "copied", "separated"])
def test_accounts_of_pairs_are_the_literal_ones(name, max_cells, monkeypatch):
    monkeypatch.setattr(claims, "MAX_STRATA", max_cells)
    data = TABLES[name]
    n = data.n_variables
    searches = [both_searches(data, target) for target in range(n)]
    fast, slow = [[search[way] for search in searches] for way in (0, 1)]
    trees = [search.tree(even_shares(n)) for search in fast]
    literal = [search.tree(even_shares(n)) for search in slow]
    assert gate_shares(trees) == pytest.approx(naive_gates.shares_of(literal))
    assert gate_ranks(trees) == naive_gates.ranks_of(literal)
    linker = Linker([search.tests for search in fast], trees, 0.05, 2)
    twin = naive_gates.NaiveLinker(slow, literal, 2, max_cells)
    for a, b in combinations(range(n), 2):
        if fast[a].tests.allowed[b]:
            for found, expected in zip(linker.pair(a, b), twin.pair(a, b), strict=True):
                assert [one.conditions for one in found] == [one[0] for one in expected]
                assert [one.n_rows for one in found] == [one[2] for one in expected]
                assert [one.gate for one in found] == [one[4] for one in expected]
                for one, other in zip(found, expected, strict=True):
                    assert one.statistic == pytest.approx(other[1], rel=1e-4, abs=1e-5)
                    assert one.corrected == pytest.approx(other[3], rel=1e-3)
                    assert one.p == pytest.approx(other[5], rel=1e-3)


def test_weights_are_no_surer_than_either_test_of_them_says():
    scaled = 0
    for seed in range(8):
        data = nasty_table(seed, n_rows=80)
        fast, slow = both_searches(data, 0)
        twin = naive_gates.NaiveLinker([slow], [], 2)
        for variable, others in ((1, (2, 3)), (2, (1,)), (3, ())):
            found = fast.tests.effect(fast.table.whole, others, variable)
            expected = twin.effect(0, (), others, variable)
            assert list(found.cells) == expected.cells
            assert found.weights == pytest.approx(expected.weights, rel=1e-4, abs=1e-6)
            assert found.covariance == pytest.approx(expected.covariance, rel=1e-4, abs=1e-6)
            plain = fast.tests.regression(fast.table.whole, tuple(sorted((*others, variable))))
            scaled += not np.array_equal(plain.effect(variable).covariance, found.covariance)
    assert scaled > 3


def test_two_that_are_each_others_gate_are_both_refused():
    data = gated_table(0)
    searches = [both_searches(data, target)[0] for target in range(4)]
    whole = searches[0].table.whole
    gates = [1, 0, None, None]
    leaf = GateTree(whole, ())
    trees = [leaf if gate is None else GateTree(whole, (), (), gate) for gate in gates]
    assert part_rivals(searches, trees) == {0, 1}
    assert (searches[0].gates, searches[1].gates) == ([2, 3], [2, 3])
    assert searches[2].gates == [0, 1, 3]


def test_a_gate_whose_sides_overlap_is_no_gate():
    nothing = np.zeros(0, dtype=np.int64)
    ways = [[(0, (0,)), (1, (0, 1))], [(0, (1,)), (1, (0,))], [(0, (1,)), (1, (1,))]]
    cells = [claims.PairEffect(Stratum(tuple(way), nothing), NO_EFFECT, 0, NOTHING) for way in ways]
    assert claims._gates(cells) == [0]
    assert claims._gates(cells[1:]) == [1]


def test_regions_of_a_pair_never_overlap():
    searches = [both_searches(gated_table(0), target)[0] for target in range(4)]
    table, whole = searches[0].table, searches[0].table.whole
    # At either level of 3 the variable 1 is a gate of 0; the tree of 1 knows neither; 0 is a gate of 2.
    inner = [
        GateTree(
            side, (2,), (gates.GateCandidate(1, 9.0, 1e-9, (2,)),), 1, (2,),
            tuple(GateTree(table.restrict(side, 1, (level,)), ()) for level in (0, 1)),
        )
        for side in (table.restrict(whole, 3, (level,)) for level in (0, 1))
    ]  # fmt: skip
    outer = GateTree(whole, (1,), (gates.GateCandidate(3, 9.0, 1e-9, (1,)),), 3, (1,), tuple(inner))
    leaf = GateTree(whole, (0,))
    last = GateTree(whole, (), (), 0)
    linker = Linker([search.tests for search in searches], [outer, leaf, last, leaf], 0.05, 2)
    assert [one.conditions for one in linker.pair(0, 1).linked] == [((3, (0,)),), ((3, (1,)),)]
