"""Structure: what every structure answers for itself, asked of all kinds of structures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins.naive_statements as naive
import unless
from structures.models import canonical_models, steady
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import SettingError
from unless.structures import structure as structure_module
from unless.structures.graph import Feature, FeatureSet, Graph
from unless.structures.structure import features_of, link_shares, n_pairs, pair_names


def by_name(data):
    return data.select(sorted(data.names))


@steady
@given(canonical_models(min_variables=2))
def test_links_are_what_the_graphs_say(model):
    data = by_name(model.observed)
    view = model.view(data.domain)
    links, shares = view.links(view.contexts), link_shares(model, data)
    where = {tuple(context.items()): place for place, context in enumerate(model.contexts())}
    for number, (a, b) in enumerate(pair_names(data.domain, np.arange(len(shares)))):
        wanted = naive.presence(model, a, b)
        for row, linked in zip(view.contexts, links[number], strict=True):
            labels = data.domain.decode(row)
            place = where[tuple((name, labels[name]) for name in model.domain.names)]
            assert linked == wanted[place]
        assert shares[number] == model.link_shares()[a, b]


@steady
@given(canonical_models(min_variables=2), st.data())
def test_shares_in_a_context_are_those_of_its_rows(model, data):
    table = by_name(model.observed)
    row = table.rows[data.draw(st.integers(0, table.n_distinct - 1))]
    held = {0: int(row[0])}
    shares = link_shares(model, table, held)
    expected = model.link_shares(dict(table.domain.decode(held)))
    names = pair_names(table.domain, np.arange(len(shares)))
    assert shares.tolist() == [expected[pair] for pair in names]


def test_graphs_and_features_are_asked_about_the_rows_of_the_table():
    domain = Domain(tuple(Variable(name, ("0", "1")) for name in "abc"))
    data = Dataset.from_codes(domain, list(np.ndindex(2, 2, 2)))
    graph = Graph(domain, [("a", "c")])
    assert link_shares(graph, data).tolist() == [0, 1, 0]
    assert graph.view(domain).is_constant
    features = FeatureSet(domain, [Feature.of({"a": "1", "b": "1", "c": "0"})])
    assert link_shares(features, data).tolist() == [0.125] * 3
    assert link_shares(features, data, {0: 1}).tolist() == [0.25] * 3
    some = Dataset.from_codes(domain, [(1, 1, 0)])
    assert len(link_shares(features, some, {0: 0})) == 0


def test_blocks_of_any_size_give_the_same(monkeypatch):
    data = by_name(unless.datasets.make_csi(6, random_state=0).sample(3000, random_state=0))
    model = unless.CSGS().fit(data).structure_
    whole = link_shares(model, data)
    monkeypatch.setattr(structure_module, "_ANSWERS", 7 * n_pairs(len(data.domain)))
    assert link_shares(model, data).tolist() == whole.tolist()


@pytest.fixture
def learned():
    return unless.CSGS().fit(unless.datasets.load_ucb_admissions())


@pytest.mark.parametrize("kind", ["cliques", "pairs", "subcliques"])
def test_a_canonical_model_has_the_features_of_its_graphs(learned, kind):
    assert features_of(learned.structure_, kind) == learned.structure_.features(kind)


def test_a_graph_has_those_of_its_cliques_and_a_set_its_own(learned):
    graph = learned.structure_.given()
    assert features_of(graph) == graph.features()
    assert features_of(graph.features()) == graph.features()


def test_what_is_no_structure_is_refused(learned):
    with pytest.raises(SettingError, match="no structure"):
        features_of("graph")
    with pytest.raises(SettingError, match="features='triples'"):
        features_of(learned.structure_, "triples")
    with pytest.raises(SettingError, match="cliques"):
        features_of(learned.structure_.given(), "subcliques")
    with pytest.raises(SettingError, match="cliques"):
        features_of(learned.structure_.given(), "pairs")
