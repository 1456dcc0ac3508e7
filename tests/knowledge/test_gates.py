"""Trees over presence: one split is the best of all, and what is described is what is there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_statements as naive
import unless
from strategies import datasets
from structures.models import canonical_models, steady
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.knowledge import gates
from unless.knowledge import presence as presence_module
from unless.knowledge.gates import Gate, GateFinder, Leaf, Split, read_tree
from unless.knowledge.levels import merged, shortened
from unless.knowledge.presence import Presence
from unless.structures.canonical import CanonicalModel
from unless.structures.features import Feature, FeatureSet
from unless.structures.graph import Graph
from unless.structures.pairs import pack, pair_names


def by_name(data):
    return data.select(sorted(data.names))


def model_of(n_levels, is_linked, counts=None, weight=100):
    """Make a model over all rows whose only possible link is that of the first two variables."""
    names = [f"V{place}" for place in range(len(n_levels))]
    domain = Domain(
        tuple(Variable(name, tuple("abcdefgh"[:n])) for name, n in zip(names, n_levels, strict=True))
    )
    rows = np.array(list(np.ndindex(*n_levels)), dtype=np.uint16)
    n_pairs = len(n_levels) * (len(n_levels) - 1) // 2
    links = np.zeros((len(rows), n_pairs), dtype=np.bool_)
    links[:, 0] = [is_linked(*row) for row in rows.tolist()]
    weights = (
        np.full(len(rows), weight) if counts is None else np.array([counts(*row) for row in rows.tolist()])
    )
    return CanonicalModel.from_edges(domain, rows, weights, pack(links))


def found(model, max_gate=3, variables=None):
    data = Dataset(model.domain, model.rows, model.counts)
    presence = Presence.of(model, data)
    places = range(len(model.domain)) if variables is None else variables
    ((_, tree),) = GateFinder(presence, places, max_gate).trees([0])
    return tree, read_tree(tree, model.domain, lambda leaf, _: leaf.share >= 0.5)


@steady
@given(canonical_models(min_variables=2))
def test_presence_is_what_the_graphs_say(model):
    data = by_name(Dataset(model.domain, model.rows, model.counts))
    presence = Presence.of(model, data)
    where = {tuple(context.items()): place for place, context in enumerate(model.contexts())}
    for number, (a, b) in enumerate(pair_names(data.domain, np.arange(len(presence.shares)))):
        wanted = naive.presence(model, a, b)
        for row, linked in zip(presence.rows, presence.linked(number), strict=True):
            labels = data.domain.decode(row)
            place = where[tuple((name, labels[name]) for name in model.domain.names)]
            assert linked == wanted[place]
        assert presence.shares[number] == model.link_shares()[a, b]


@steady
@given(canonical_models(min_variables=2), st.data())
def test_part_of_the_rows_is_the_same_presence(model, data):
    presence = Presence.of(model, by_name(Dataset(model.domain, model.rows, model.counts)))
    inside = np.array(data.draw(st.lists(st.booleans(), min_size=len(model), max_size=len(model))))
    part = presence.within(inside)
    for number in range(len(presence.shares)):
        assert part.linked(number).tolist() == presence.linked(number)[inside].tolist()
    variable = data.draw(st.integers(0, len(model.domain) - 1))
    if inside.any():
        assert part.neighbours(variable, None, 0.3) == presence.neighbours(variable, inside, 0.3)


def test_graphs_and_features_are_asked_about_the_rows_of_the_table():
    domain = Domain(tuple(Variable(name, ("0", "1")) for name in "abc"))
    data = Dataset.from_codes(domain, list(np.ndindex(2, 2, 2)))
    graph = Presence.of(Graph(domain, [("a", "c")]), data)
    assert (graph.shares.tolist(), graph.is_constant) == ([0, 1, 0], True)
    assert graph.neighbours(0, None, 0.5) == [2]
    features = Presence.of(FeatureSet(domain, [Feature.of({"a": "1", "b": "1", "c": "0"})]), data)
    assert features.shares.tolist() == [0.125] * 3


@steady
@given(datasets(min_variables=3, max_variables=5, max_levels=4), st.integers(0, 2**32 - 1))
def test_one_question_is_the_best_of_all(data, seed):
    linked = np.random.default_rng(seed).random(data.n_distinct) < 0.5
    if linked.all() or not linked.any():
        return
    links = np.zeros((data.n_distinct, data.n_variables * (data.n_variables - 1) // 2), dtype=np.bool_)
    links[:, 0] = linked
    model = CanonicalModel.from_edges(data.domain, data.rows, data.counts, pack(links))
    presence = Presence.of(model, data)
    finder = GateFinder(presence, range(data.n_variables), 1)
    with pytest.MonkeyPatch.context() as patch:
        # Longer lists of levels, small parts and small gains are no worse than others here.
        patch.setattr(gates, "GAIN_PER_LEVEL", 0.0)
        patch.setattr(gates, "GAIN_PER_SPLIT", 0.0)
        patch.setattr(gates, "LEAST_GAIN", 1e-9)
        finder.least = 0
        ((_, tree),) = finder.trees([0])
    best = naive.best_gain(data.rows, data.counts, linked.tolist(), range(2, data.n_variables))
    if isinstance(tree, Leaf):
        assert best < 1e-8
    else:
        asked = naive.gain(data.rows, data.counts, linked.tolist(), tree.variable, tree.levels)
        assert asked == pytest.approx(best, abs=1e-8)


def test_a_level_a_set_of_levels_and_two_variables():
    tree, gate = found(model_of([2, 2, 4], lambda a, b, c: c == 2))
    assert isinstance(tree, Split)
    assert gate.to_dict() == {"linked": [{"V2": ["c"]}], "not_linked": [{"V2": ["a", "b", "d"]}]}
    _, gate = found(model_of([2, 2, 6], lambda a, b, c: c in (0, 2)))
    assert [str(region) for region in gate.linked] == ["V2 in {a, c}"]
    _, gate = found(model_of([2, 2, 3, 2], lambda a, b, c, d: c == 1 and d == 0))
    assert [str(region) for region in gate.linked] == ["V2 = b and V3 = a"]
    assert [str(region) for region in gate.unlinked] == ["V2 in {a, c}", "V3 = b"]
    assert gate.names == ("V2", "V3")


def test_the_shorter_of_two_names_for_the_same_contexts():
    # V3 says in one level what V2 says in two.
    model = model_of([2, 2, 4, 2], lambda a, b, c, d: d == 1, counts=lambda a, b, c, d: 100 * (d == c % 2))
    kept = model.counts > 0
    links = np.zeros((int(kept.sum()), 6), dtype=np.bool_)
    links[:, 0] = model.rows[kept][:, 3] == 1
    model = CanonicalModel.from_edges(model.domain, model.rows[kept], model.counts[kept], pack(links))
    assert [str(region) for region in found(model)[1].linked] == ["V3 = b"]


def test_a_pair_is_not_its_own_gate():
    tree, gate = found(model_of([2, 2, 2], lambda a, b, c: a == 1))
    assert isinstance(tree, Leaf)
    assert tree.share == 0.5
    assert gate is True


def test_contexts_that_differ_in_the_pair_only_are_averaged_by_count():
    # Where V2 = b, most rows have a = 1, and with it the link.
    model = model_of(
        [2, 2, 2], lambda a, b, c: c == 1 and a == 1, counts=lambda a, b, c: 90 if (a, c) == (1, 1) else 10
    )
    tree, gate = found(model)
    assert isinstance(gate, Gate)
    assert sorted(part.share for part in tree.parts) == [0, 0.9]


def test_noise_is_no_gate():
    rng = np.random.default_rng(0)
    noise = rng.random(2**10) < 0.15
    model = model_of([2] * 10, lambda *row: noise[int("".join(map(str, row)), 2)], weight=10)
    assert isinstance(found(model)[0], Leaf)
    # The same noise on top of a gate does not hide it.
    model = model_of([2] * 10, lambda *row: (row[5] == 1) ^ noise[int("".join(map(str, row)), 2)], weight=10)
    assert [str(region) for region in found(model)[1].linked] == ["V5 = b"]


def test_depth_candidates_and_small_parts_are_bounded():
    model = model_of([2, 2, 2, 2], lambda a, b, c, d: c == 1 and d == 1)
    assert found(model, max_gate=0)[1] is False
    one = found(model, max_gate=1)[0]
    assert isinstance(one, Split)
    assert all(isinstance(part, Leaf) for part in one.parts)
    assert isinstance(found(model, variables=[0, 1])[0], Leaf)
    tiny = model_of([2, 2, 2], lambda a, b, c: c == 1, counts=lambda a, b, c: 1 if c else 10_000)
    assert isinstance(found(tiny)[0], Leaf)


def test_unseen_levels_go_with_the_larger_part():
    model = model_of([2, 2, 4], lambda a, b, c: c == 0, counts=lambda a, b, c: 100)
    kept = model.rows[:, 2] < 3
    links = np.zeros((int(kept.sum()), 3), dtype=np.bool_)
    links[:, 0] = model.rows[kept][:, 2] == 0
    model = CanonicalModel.from_edges(model.domain, model.rows[kept], model.counts[kept], pack(links))
    assert [str(region) for region in found(model)[1].linked] == ["V2 = a"]


def boxes(n_levels):
    return st.lists(
        st.fixed_dictionaries(
            {}, optional={v: st.frozensets(st.integers(0, n - 1), min_size=1) for v, n in enumerate(n_levels)}
        ),
        max_size=4,
    )


@given(st.data())
def test_descriptions_lose_nothing_when_they_get_shorter(data):
    n_levels = [2, 3, 2]
    domain = Domain(tuple(Variable(f"V{v}", tuple("abc"[:n])) for v, n in enumerate(n_levels)))
    cells = list(np.ndindex(*n_levels))

    def inside(box, cell):
        return all(cell[variable] in codes for variable, codes in box.items())

    drawn = data.draw(boxes(n_levels))
    union = {cell for cell in cells if any(inside(box, cell) for box in drawn)}
    assert {cell for cell in cells if any(inside(box, cell) for box in merged(drawn))} == union
    others = [{v: frozenset([code]) for v, code in enumerate(cell)} for cell in cells if cell not in union]
    short = shortened(merged(drawn), others, domain)
    assert {cell for cell in cells if any(inside(box, cell) for box in short)} == union
    assert len(short) <= len(drawn)


def test_blocks_of_any_size_give_the_same(monkeypatch):
    data = by_name(unless.datasets.make_csi(6, random_state=0).sample(3000, random_state=0))
    model = unless.CSGS().fit(data).structure_

    def grown():
        found = Presence.of(model, data)
        trees = dict(GateFinder(found, range(len(data.domain)), 3).trees(range(len(found.shares))))
        return found.bits.tolist(), found.shares.tolist(), trees

    whole = grown()
    monkeypatch.setattr(gates, "_SUMS", 64)
    monkeypatch.setattr(presence_module, "_ANSWERS", 200)
    assert grown() == whole
    monkeypatch.setattr(gates, "MOST_CANDIDATES", 1)
    asked = {tree.variable for tree in grown()[2].values() if isinstance(tree, Split)}
    assert asked


def test_too_many_pairs_and_rows_are_refused_beforehand():
    data = unless.datasets.load_titanic()
    model = unless.CSGS().fit(data).structure_
    with pytest.raises(unless.errors.SettingError, match="max_memory"):
        Presence.of(model, data, "1 KB")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presence_module, "parse_memory", lambda _: 10)
        with pytest.raises(unless.errors.TooLarge, match="raise max_memory="):
            Presence.of(model, data)
