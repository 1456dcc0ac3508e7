import pytest

import unless
from unless.errors import SettingError
from unless.structures.featuring import features_of


@pytest.fixture
def learned():
    return unless.CSGS().fit(unless.datasets.load_ucb_admissions())


@pytest.mark.parametrize("kind", ["cliques", "pairs"])
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
        features_of(learned.structure_.given(), "pairs")
