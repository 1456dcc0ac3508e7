import os
import subprocess
import sys
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twins.naive_ggs as naive
import unless
from unless.errors import SettingError
from unless.independence.logistic import Effect, common, difference, size_of
from unless.independence.statistics import Statistic, adapted, adjusted, largest_shift
from unless.learners.ggs.claims import Hypothesis, PairLinks, select_claims, select_weighed
from unless.learners.ggs.regressions import NeighbourTests, StratifiedTable


@st.composite
def small_tables(draw):
    """Make tables of a few rows, with constant columns, unused levels and repeated rows."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=3, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n_rows = draw(st.integers(1, 40))
    rows = np.column_stack([rng.integers(0, size, n_rows) for size in sizes])
    rows[:, 1] = np.where(rng.random(n_rows) < 0.7, rows[:, 0] % sizes[1], rows[:, 1])
    # One level more than is used.
    variables = [
        unless.Variable(f"v{place}", tuple(map(str, range(size + 1)))) for place, size in enumerate(sizes)
    ]
    return unless.Dataset.from_codes(unless.Domain(tuple(variables)), rows)


def neighbour_tests(data, target, **settings):
    allowed = np.arange(data.n_variables) != target
    chosen = {"alpha": 0.05, "max_blanket": 24, **settings}
    return NeighbourTests(StratifiedTable(data), target, allowed, np.zeros_like(allowed), **chosen)


@settings(max_examples=25, deadline=None)
@given(small_tables())
def test_regressions_and_tests_are_the_literal_ones(data):
    rows = naive.expanded(data)
    references = [naive.reference_level(rows, variable) for variable in range(data.n_variables)]
    tests = neighbour_tests(data, 0)
    whole = tests.table.whole
    blanket = tuple(range(1, data.n_variables - 1))
    last = data.n_variables - 1
    found = tests.regression(whole, blanket)
    literal = naive.regress(rows, 0, blanket, references)
    assert found.target_levels == literal.levels
    assert found.log_likelihood == pytest.approx(literal.log_likelihood, abs=1e-6)
    assert found.fitted.weights == pytest.approx(literal.weights, abs=1e-3)
    assert tests.drop(whole, blanket, 1) == pytest.approx(
        naive.drop(rows, 0, blanket, 1, references), abs=1e-5
    )
    if len(literal.levels) > 1 and len(set(rows[:, last].tolist())) > 1:
        expected = naive.score(rows, 0, blanket, last, references)
        assert tests.scores(whole, blanket)[last] == pytest.approx(expected, rel=1e-4, abs=1e-5)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_q_values_are_those_of_benjamini_and_hochberg(p_values):
    assert adjusted(p_values) == pytest.approx(naive.benjamini_hochberg(p_values))


def test_hypotheses_that_were_left_alone_count():
    assert adjusted([0.01, 0.02], 10) == pytest.approx(naive.benjamini_hochberg([0.01, 0.02, *[1.0] * 8])[:2])


def test_a_small_statistic_bounds_the_shift():
    from scipy.stats import ncx2

    assert ncx2.cdf(3.0, 2, largest_shift(3.0, 2)) == pytest.approx(0.05)
    assert largest_shift(0.001, 5) == 0.0


def test_strata_add_up_to_a_common_part_and_a_difference():
    one = Effect(((1, 1),), np.array([1.0]), np.array([[0.25]]))
    other = Effect(((1, 1),), np.array([0.0]), np.array([[0.25]]))
    assert size_of(one).value == pytest.approx(4)
    assert common([one, other]).value == pytest.approx(2)
    assert difference([one, other]).value == pytest.approx(2)
    assert difference([one, other]).df == 1


def test_the_gate_of_the_papers_domain_is_found():
    domain = unless.datasets.make_csi(6, random_state=1)
    data = domain.sample(10_000, random_state=1)
    est = unless.GGS().fit(data)
    assert est.structure_.gates == ("W",)
    assert unless.compare_structures(domain.truth(data), est.structure_).f1 > 0.9
    assert not est.structure_.given({"W": "1"}).has_edge("X1", "X2")
    kinds = {claim.kind for claim in est.claims_}
    assert {"linked", "differs"} <= kinds
    assert all(claim.q <= 0.05 for claim in est.claims_ if claim.kind != "vanishes")


def test_a_gate_of_two_variables_is_found():
    rng = np.random.default_rng(0)
    n = 12_000
    u, v, a = rng.integers(0, 2, (3, n))
    noise = rng.integers(0, 2, n)
    b = np.where((u == 0) & (v == 0) & (rng.random(n) < 0.7), a, noise)
    frame = pd.DataFrame({"a": a, "b": b, "u": u, "v": v})
    (region,) = unless.GGS().fit(frame).structure_.regions("a", "b")
    assert region.to_dict() == {"u": ["0"], "v": ["0"]}


def test_levels_of_a_gate_are_joined():
    est = unless.GGS().fit(unless.datasets.load_ucb_admissions())
    (vanishes,) = [claim for claim in est.claims_ if claim.kind == "vanishes"]
    assert str(vanishes.region) == "Dept in {B, C, D, E, F}"
    assert vanishes.at_most < 0.1
    assert "Admit - Gender linked where Dept = A (933 rows, V = 0.14" in "\n".join(map(str, est.claims_))


def test_without_gates_there_are_none():
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 3, 4000)]
    for _ in range(4):
        columns.append(np.where(rng.random(4000) < 0.5, columns[-1], rng.integers(0, 3, 4000)))
    est = unless.GGS().fit(pd.DataFrame(dict(zip("abcde", columns, strict=True))))
    assert {link.pair for link in est.structure_} == {("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")}
    assert est.structure_.gates == ()


def test_gates_can_be_named_and_forbidden():
    data = unless.datasets.make_csi(6, random_state=3).sample(10_000, random_state=0)
    assert unless.GGS().fit(data).structure_.gates == ("W",)
    assert "W" not in unless.GGS(forbidden_gates=["W"]).fit(data).structure_.gates
    assert unless.GGS(gates=["W"]).fit(data).structure_.gates == ("W",)
    assert unless.GGS(max_gate=0).fit(data).structure_.gates == ()


def test_small_tables_say_nothing():
    for frame in (
        pd.DataFrame({"a": ["x", "y"], "b": ["x", "y"]}),
        pd.DataFrame({"a": ["x"] * 9, "b": ["y"] * 9}),
        unless.Dataset.from_codes(unless.Domain((unless.Variable("a", ("x", "y")),)), [[0], [1]]),
    ):
        est = unless.GGS().fit(frame)
        assert len(est.structure_) == 0
        assert est.claims_ == []


def test_the_network_of_a_labelled_graph_has_low_order_features():
    data = unless.datasets.make_csi(6, random_state=1).sample(5_000, random_state=1)
    est = unless.GGS().fit(data)
    net = est.network(data)
    assert max(len(feature.scope) for feature in net.features) == 3
    assert net.query("W")["0"] == pytest.approx(0.5, abs=0.05)


def test_weak_links_are_weighed_and_files_keep_them(tmp_path):
    law = unless.datasets.make_csi(6, random_state=5_023)
    data = law.sample(500, random_state=6_023)
    est = unless.GGS().fit(data)
    drawn = unless.LabelledGraph(data.domain, est.structure_.links)
    alone = unless.fit_weights(drawn.features(), data, unless.Gaussian(1.0))
    assert est.structure_.weighed
    assert 2 * unless.kl_divergence(law, est.network(data)) < unless.kl_divergence(law, alone)
    unless.save(est, tmp_path / "weighed.unless")
    assert unless.load(tmp_path / "weighed.unless").structure_ == est.structure_


# Written so that no product of them is a threshold.
CHANCES = st.floats(1e-6, 0.5).map(lambda p: p * 0.9876543)


@given(st.lists(CHANCES, min_size=1, max_size=12), st.sampled_from([0.05, 0.2]))
def test_two_stages_are_the_literal_ones(p_values, level):
    found = adapted(p_values, len(p_values), level)
    assert (found <= level).tolist() == naive.two_stages(p_values, level)
    assert (found >= p_values).all()


@given(st.lists(st.tuples(CHANCES, CHANCES, st.booleans()), max_size=10))
def test_candidates_are_claimed_or_weighed_among_those_of_their_region(chances):
    domain = unless.Domain(tuple(unless.Variable(name, ("0", "1")) for name in "abcdef"))
    gate, places = ((5, (0,)),), list(combinations(range(5), 2))
    pairs = {
        pair: PairLinks((Hypothesis(gate if gated else (), Statistic(1.0, 1), 9, corrected, doubt=doubt),))
        for pair, (corrected, doubt, gated) in zip(places, chances, strict=False)
    }
    claims = select_claims(domain, pairs, 15, fdr=0.05, negligible=0.1)
    claimed, weighed = set(), set()
    for is_gated in (False, True):
        inside = [(pair, one) for pair, one in zip(places, chances, strict=False) if one[2] == is_gated]
        # Ten pairs without the gate; elsewhere all fifteen but those that were found under the gate.
        n_pairs = 10 if is_gated else 15 - sum(one[2] for one in chances)
        padding = [1.0] * (n_pairs - len(inside))
        sure = naive.two_stages([*(max(one[:2]) for _, one in inside), *padding], 0.05)
        likely = naive.two_stages([*(one[0] for _, one in inside), *padding], 0.2)
        for (pair, _), is_sure, is_likely in zip(inside, sure, likely, strict=False):
            names = tuple("abcdef"[place] for place in pair)
            (claimed if is_sure else weighed if is_likely else set()).add(names)
    assert {claim.pair for claim in claims} == claimed
    assert {pair for pair, _ in select_weighed(domain, pairs, claims)} == weighed


@pytest.mark.parametrize(("n_linked", "n_weighed"), [(6, 0), (7, 3)])
def test_where_two_of_three_pairs_are_linked_the_others_are_weighed(n_linked, n_weighed):
    domain = unless.Domain(tuple(unless.Variable(name, ("0", "1")) for name in "abcdef"))
    sure = PairLinks((Hypothesis(((5, (0,)),), Statistic(99.0, 1), 99, 1e-9),))
    everywhere = PairLinks((Hypothesis((), Statistic(99.0, 1), 99, 1e-9),))
    pairs = {
        pair: sure if place < n_linked else PairLinks()
        for place, pair in enumerate(combinations(range(5), 2))
    }
    pairs |= {(place, 5): everywhere for place in range(5)}
    claims = select_claims(domain, pairs, 10, fdr=0.05, negligible=0.1)
    weighed = list(select_weighed(domain, pairs, claims))
    assert [str(region) for _, region in weighed] == ["f = 0"] * n_weighed
    assert all("f" not in pair for pair, _ in weighed)


def test_a_claim_can_be_told_in_plain_values():
    est = unless.GGS().fit(unless.datasets.load_ucb_admissions())
    told = [claim.to_dict() for claim in est.claims_]
    assert {"kind": "differs", "gate": "Dept", "pair": ["Admit", "Gender"]}.items() <= told[1].items()


def test_levels_that_no_row_shows_do_not_make_a_link_smaller():
    few, many = (
        unless.Domain(tuple(unless.Variable(name, tuple(levels)) for name in "ab"))
        for levels in ("xy", "xyz")
    )
    rows, counts = [[0, 0], [0, 1], [1, 0], [1, 1]], [400, 300, 300, 400]
    (one,), (other,) = (
        unless.GGS().fit(unless.Dataset.from_codes(domain, rows, counts)).claims_ for domain in (few, many)
    )
    assert other == one
    assert one.effect == pytest.approx(1 / 7, abs=0.01)


def test_all_gates_that_are_named_count_as_tried():
    rng = np.random.default_rng(0)
    g, h, a, noise = rng.integers(0, 2, (4, 900))
    b = np.where((g == 0) & (rng.random(900) < 0.4), a, noise)
    frame = pd.DataFrame({"a": a, "b": b, "g": g, "h": h})
    named, free = (
        [claim.p for claim in unless.GGS(gates=gates).fit(frame).claims_ if claim.kind == "differs"]
        for gates in (["g", "h"], ["g"])
    )
    assert len(named) == 1
    assert named == pytest.approx([2 * p for p in free])


def test_a_link_cannot_be_required_and_gated():
    data = unless.datasets.load_ucb_admissions()
    est = unless.GGS(required_edges=[("Admit", "Gender")]).fit(data)
    assert est.structure_.has_edge("Admit", "Gender")
    with pytest.raises(SettingError, match="both required and forbidden"):
        unless.GGS(required_edges=[("Admit", "Gender")], forbidden_edges=[("Gender", "Admit")]).fit(data)


SAME = """
import json, sys
import numpy as np, unless
seed = int(sys.argv[1])
rng = np.random.default_rng(0)
w, a, d = rng.integers(0, 3, 900), rng.integers(0, 2, 900), rng.integers(0, 2, 900)
b = np.where((w == 0) & (rng.random(900) < 0.8), a, rng.integers(0, 2, 900))
c = np.where(rng.random(900) < 0.4, b, rng.integers(0, 3, 900))
named = {"w": w, "Z": a, "b": b, "c": c, "twin of d": 1 - d, "d": d}
order = np.random.default_rng(seed)
names = order.permutation(list(named)).tolist()
domain = unless.Domain(tuple(unless.Variable(name, ("l0", "l1", "l2")) for name in names))
rows = order.permutation(np.column_stack([named[name] for name in names]))
est = unless.GGS(n_jobs=1 + seed % 2).fit(unless.Dataset.from_codes(domain, rows))
claims, statements = [claim.to_dict() for claim in est.claims_], est.statements_.to_dict(tables=True)
print(json.dumps([[str(link) for link in est.structure_], claims, statements, est.n_tests_]))
print(len(est.structure_.gates), file=sys.stderr)
"""


def test_orders_of_rows_and_columns_threads_and_hash_seeds_give_the_same_bytes():
    started = [
        subprocess.Popen(
            [sys.executable, "-c", SAME, seed], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for seed in "012"
    ]  # fmt: skip
    printed = {process.communicate() for process in started}
    assert len(printed) == 1
    ((answer, n_gates),) = printed
    assert int(n_gates) > 0
    assert "linked" in answer
