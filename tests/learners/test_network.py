import pytest

import unless
from unless.errors import NotFitted


def test_a_learner_gives_a_network_of_its_features():
    data = unless.datasets.load_ucb_admissions()
    learner = unless.CSGS().fit(data)
    for kind in ("cliques", "pairs", "subcliques"):
        net = learner.network(data, unless.Gaussian(0.5), kind)
        wanted = unless.fit_weights(learner.structure_.features(kind), data, unless.Gaussian(0.5))
        assert net.features == wanted.features
        assert net.weights.tobytes() == wanted.weights.tobytes()
        assert net.fit_report.converged


def test_a_learner_that_has_not_learned_has_no_network():
    with pytest.raises(NotFitted, match="CSGS"):
        unless.CSGS().network(unless.datasets.load_ucb_admissions())
