"""Presence: in which rows a structure links each pair, asked for all kinds of structures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins.naive_statements as naive
import unless
from structures.models import canonical_models, steady
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.knowledge import presence as presence_module
from unless.knowledge.presence import Presence
from unless.structures.graph import Feature, FeatureSet, Graph
from unless.structures.pairs import pair_names


def by_name(data):
    return data.select(sorted(data.names))


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


def test_too_many_pairs_and_rows_are_refused_beforehand():
    data = unless.datasets.load_titanic()
    model = unless.CSGS().fit(data).structure_
    with pytest.raises(unless.errors.SettingError, match="max_memory"):
        Presence.of(model, data, "1 KB")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presence_module, "parse_memory", lambda _: 10)
        with pytest.raises(unless.errors.TooLarge, match="raise max_memory="):
            Presence.of(model, data)


def test_blocks_of_any_size_give_the_same(monkeypatch):
    data = by_name(unless.datasets.make_csi(6, random_state=0).sample(3000, random_state=0))
    model = unless.CSGS().fit(data).structure_
    whole = Presence.of(model, data)
    monkeypatch.setattr(presence_module, "_ANSWERS", 200)
    parts = Presence.of(model, data)
    assert (parts.bits.tolist(), parts.shares.tolist()) == (whole.bits.tolist(), whole.shares.tolist())
