"""CSIBMAP against a climb that scores every neighbour in full; probabilities of links against plain sums."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unless
from strategies import KINDS, chained_columns, datasets, tables_with_limits
from twins.naive_gated import naive_link_probability
from twins.naive_graphs import naive_csibmap
from unless.counting.reference import PlainCounts
from unless.counting.slices import PackedTable
from unless.errors import SettingError, TooLarge, UnknownContext
from unless.kernels.bits import pack_sets, packed_words, unpack_sets
from unless.kernels.ibmap import FlipRules, ascend_contexts
from unless.learners.csibmap import (
    CSIBMAP,
    SliceScores,
    ascend_plainly,
    flip_limits,
    link_evidence,
    make_ascent,
    make_memo,
    shuffled_pairs,
)
from unless.learners.ibmap import PlainScorer
from unless.learners.memo import question_keys

# The logarithms of factorials of thousands of millions have no digits left for a twin to agree with.
MODERATE = tuple(kind for kind in KINDS if kind != "huge counts")


def runs():
    return tables_with_limits(kinds=MODERATE, max_variables=5, max_levels=4, max_rows=30)


@settings(max_examples=60)
@given(runs())
def test_graphs_scores_and_counts_are_those_of_full_scoring(run):
    data, chosen = run
    edges = {
        kind: [tuple(map(data.domain.index, pair)) for pair in chosen[f"{kind}_edges"] or ()]
        for kind in ("required", "forbidden")
    }
    climbs, n_tests, n_distinct = naive_csibmap(
        data.rows, data.counts, data.domain.n_levels, data.names, max_blanket=chosen["max_blanket"], **edges
    )
    est = CSIBMAP(**chosen).fit(data)
    assert [graph.edges for _, graph in est.structure_] == [
        {tuple(sorted(data.names[a] for a in edge)) for edge in linked} for linked, _ in climbs
    ]
    assert est.scores_ == pytest.approx([score for _, score in climbs], rel=1e-9, abs=1e-9)
    assert (est.n_tests_, est.n_distinct_tests_) == (n_tests, n_distinct)


@settings(max_examples=25)
@given(runs(), st.integers(0, 3))
def test_restarts_are_those_of_the_reference(run, n_restarts):
    data, chosen = run
    named = data.select(sorted(data.names))
    limits, must = flip_limits(
        named, range(named.n_variables), *list(chosen.values())[1:], chosen["max_blanket"]
    )
    shuffled = shuffled_pairs(limits, n_restarts, 5)
    optima = ascend_plainly(PlainCounts(named), named.rows, must, limits, shuffled)
    est = CSIBMAP(n_restarts=n_restarts, random_state=5, **chosen).fit(named)
    for (_, graph), optimum in zip(est.structure_, optima, strict=True):
        assert graph.edges == {
            (named.names[a], named.names[b]) for a, b in np.argwhere(np.triu(optimum.links))
        }
    assert est.scores_ == pytest.approx([optimum.score for optimum in optima], rel=1e-9, abs=1e-9)


@settings(max_examples=25)
@given(runs(), st.integers(0, 2))
def test_the_score_is_the_full_one_after_every_flip(run, n_restarts):
    data, chosen = run
    named = data.select(sorted(data.names))
    n = named.n_variables
    limits, must = flip_limits(named, range(n), *list(chosen.values())[1:], chosen["max_blanket"])
    shuffled = shuffled_pairs(limits, n_restarts, 0)
    rules = FlipRules(pack_sets(must), pack_sets(limits.flippable), limits.max_blanket, shuffled)
    packed = PackedTable.of(named)
    limit, contexts = packed.list_limit(), np.arange(named.n_distinct, dtype=np.int32)
    arrays = packed.table, question_keys(int(packed.table.offsets[-1]), n), rules, make_memo(2**16)
    room = packed.slices(n + 1, limit), packed.crosstab_buffers(limit)
    graphs = np.zeros((n, len(contexts), packed_words(n)), dtype=np.uint64)
    scores, ascent, n_done = np.empty(len(contexts)), make_ascent(n), 0
    while n_done < len(contexts):
        # One score a call, so that it stops after every flip.
        n_done = ascend_contexts(contexts, graphs, scores, *arrays, *room, ascent, 1)
        if n_done < len(contexts) and not np.isnan(ascent.scores).any():
            scorer = PlainScorer(SliceScores(PlainCounts(named), ascent.levels.copy()).log_probability)
            full = scorer.score(unpack_sets(ascent.links, n))
            assert math.fsum(ascent.scores) == pytest.approx(full, rel=1e-11, abs=1e-11)


def test_gated_links_are_found_where_they_are():
    law = unless.datasets.make_csi(6, random_state=1)
    data = law.sample(20_000, random_state=1)
    est = CSIBMAP().fit(data)
    report = unless.compare_structures(law.truth(data), est.structure_)
    assert report.f1 > 0.75


def test_neither_columns_nor_rows_nor_workers_change_a_bit():
    frame = pd.DataFrame(chained_columns(7, 300)).astype(str)
    first = CSIBMAP(n_restarts=2, random_state=7).fit(frame)
    for other, n_jobs in ((frame[frame.columns[::-1]], 1), (frame.sample(frac=1, random_state=1), 3)):
        est = CSIBMAP(n_restarts=2, random_state=7, n_jobs=n_jobs).fit(other)
        assert answers(est) == answers(first)
        assert (est.n_tests_, est.n_distinct_tests_) == (first.n_tests_, first.n_distinct_tests_)
        assert est.link_probabilities() == first.link_probabilities()


def answers(est):
    return {
        frozenset(context.items()): (graph.edges, score)
        for (context, graph), score in zip(est.structure_, est.scores_, strict=True)
    }


def test_restarts_never_make_a_score_worse():
    data = unless.datasets.make_csi(7, random_state=0).sample(300, random_state=0)
    once, again = CSIBMAP().fit(data), CSIBMAP(n_restarts=5).fit(data)
    assert (again.scores_ >= once.scores_).all()
    assert (again.scores_ > once.scores_ + 1e-6).any()


def test_a_memo_that_does_not_fit_is_refused_with_a_way_out(monkeypatch):
    data = unless.datasets.make_csi(8, random_state=0).sample(300, random_state=0)
    monkeypatch.setattr("unless.learners.base.Run.bytes_left", 2**18)
    with pytest.raises(TooLarge, match="max_blanket="):
        CSIBMAP().fit(data)


def test_edges_to_flip_before_restarts_are_part_of_the_estimate():
    data = unless.datasets.make_csi(9, random_state=0).sample(50, random_state=0)
    with pytest.raises(TooLarge, match=r"would need about 53\.6 GiB"):
        unless.CSIBMAP(n_restarts=10**8, max_memory="1 GB").fit(data)


def test_scores_come_back_from_a_file(tmp_path):
    est = CSIBMAP().fit(unless.datasets.load_ucb_admissions())
    unless.save(est, tmp_path / "m.unless")
    back = unless.load(tmp_path / "m.unless")
    assert back.scores_.tolist() == est.scores_.tolist()
    assert back.link_probabilities({"Dept": "A"}) == est.link_probabilities({"Dept": "A"})
    with pytest.raises(SettingError, match="scores"):
        back._from_record(back.structure_, {"scores": [1.0]})


@settings(max_examples=60)
@given(datasets(kinds=MODERATE, max_variables=5, max_levels=4, max_rows=60), st.data())
def test_probabilities_of_links_are_those_of_plain_sums(data, drawn):
    a, b, *given = drawn.draw(st.permutations(range(data.n_variables)))
    given = sorted(given[: drawn.draw(st.integers(0, len(given)))])
    context = data.rows[drawn.draw(st.integers(0, data.n_distinct - 1))]
    weighed = link_evidence(data, a, b, given).probability(context)
    expected = naive_link_probability(data.rows, data.counts, data.domain.n_levels, a, b, given, context)
    assert weighed == pytest.approx(expected, rel=1e-7, abs=1e-9)
    assert weighed == pytest.approx(link_evidence(data, b, a, given).probability(context), rel=1e-9)


def test_probabilities_of_links_follow_the_gate():
    law = unless.datasets.make_csi(6, random_state=1)
    est = CSIBMAP().fit(law.sample(20_000, random_state=1))
    linked, unlinked = (est.link_probabilities({"W": level}) for level in (0, 1))
    others = [pair for pair in linked if "W" not in pair]
    assert np.mean([linked[pair] for pair in others]) > 0.8
    assert np.mean([unlinked[pair] for pair in others]) < 0.2
    one = next(est.structure_.contexts())
    assert set(est.link_probabilities(one)) == set(linked)
    with pytest.raises(UnknownContext):
        CSIBMAP().fit(law.sample(3, random_state=1)).link_probabilities({**one, "W": 1})


def test_links_that_are_known_are_not_weighed():
    data = unless.datasets.load_ucb_admissions()
    free = CSIBMAP().fit(data).link_probabilities({"Dept": "A"})
    known = {"required_edges": [("Dept", "Admit")], "forbidden_edges": [("Gender", "Admit")]}
    told = CSIBMAP(**known).fit(data).link_probabilities({"Dept": "A"})
    assert free["Admit", "Gender"] > 0.9
    assert (told["Admit", "Gender"], told["Admit", "Dept"]) == (0.0, 1.0)
    assert 0.0 < told["Dept", "Gender"] < 1.0


def test_restarts_find_a_gate_that_single_flips_miss():
    rng = np.random.default_rng(3)
    w, a, others = rng.integers(0, 3, 1500), rng.integers(0, 4, 1500), rng.integers(0, 4, 1500)
    copies = (w == 1) & (rng.random(1500) < 0.8)
    frame = pd.DataFrame({"w": w, "a": a, "b": np.where(copies, a, others)}).astype(str)
    missed, found = (CSIBMAP(n_restarts=n).fit(frame) for n in (0, 3))
    assert missed.structure_.link_shares()["a", "w"] < 0.5 < found.structure_.link_shares()["a", "w"]
    # Known: what is in no blanket is no gate of a probability either.
    assert missed.link_probabilities({"w": "0"})["a", "b"] > 0.5
    assert found.link_probabilities({"w": "0"})["a", "b"] < 0.1
    assert found.link_probabilities({"w": "1"})["a", "b"] > 0.9


def test_nothing_is_said_where_nothing_varies_and_many_levels_are_no_obstacle():
    levels = tuple(map(str, range(30)))
    domain = unless.Domain(tuple(unless.Variable(name, levels) for name in "abc"))
    codes = np.arange(300)
    data = unless.Dataset.from_codes(domain, np.stack([0 * codes, codes % 2, codes % 30], axis=1))
    probabilities = CSIBMAP().fit(data).link_probabilities()
    assert probabilities["a", "b"] == pytest.approx(0.57)
    assert probabilities["b", "c"] > 0.6
