"""What a cell says of a contestant, held against its parts done by hand."""

import numpy as np
import pytest

import unless
from studies.paper.contestants import VALIDATION, learner_of
from studies.paper.measuring import measure
from studies.paper.plan import Cell, Site
from studies.paper.readings import CONTESTANTS, HEADLINE, READINGS, reading_named
from studies.paper.tables import table_of

SITE = Site("headline", "complete", 5, 3, 400)


def naive_kl(truth, net):
    p = truth.probabilities
    states = np.argwhere(np.ones_like(p)).astype(np.uint16)
    names = truth.domain.names
    rows = states[:, [names.index(name) for name in net.domain.names]]
    log_q = net.log_potentials(rows)
    log_q -= np.logaddexp.reduce(log_q)
    return float((p.ravel() * (np.log(p.ravel()) - log_q)).sum())


@pytest.mark.parametrize("contestant", CONTESTANTS)
def test_the_divergence_is_that_of_weights_learned_by_hand(contestant):
    truth, data = table_of(SITE)
    found, times = measure(Cell(SITE, contestant))
    if contestant == "generating":
        features, rows = truth.features, data
    elif contestant == "canonical":
        features, rows = truth.truth(data).features(), data
    else:
        est = learner_of(contestant, HEADLINE).fit(data)
        assert found["n_tests"] == est.n_tests_
        structure = est.structure_
        features = structure if contestant in ("GSSL", "DTSL") else structure.features()
        rows = data
        if contestant in ("GSSL", "DTSL"):
            rows, _ = unless.data.dataset.hold_out(data, VALIDATION, 0)
    net = unless.fit_weights(features, rows, unless.Gaussian(1.0))
    assert found["kl"] == pytest.approx(naive_kl(truth, net), rel=1e-4)
    assert found["n_features"] == len(features)
    assert found["converged"]
    assert set(times) == {"learn_seconds", "weigh_seconds"}


def test_the_true_graphs_have_no_error():
    found, _ = measure(Cell(SITE, "canonical"))
    assert found["graphs_fp"] == found["graphs_fn"] == 0
    found, _ = measure(Cell(SITE, "generating"))
    assert found["features_fp"] == found["features_fn"] == 0


def test_the_largest_degree_is_that_of_the_graphs():
    _, data = table_of(SITE)
    model = learner_of("CSGS", HEADLINE).fit(data).structure_
    degree = max(len(graph.neighbours(name)) for _, graph in model for name in data.names)
    assert measure(Cell(SITE, "CSGS"))[0]["max_degree"] == degree


@pytest.mark.parametrize("reading", [reading.name for reading in READINGS if reading is not HEADLINE])
def test_a_reading_changes_what_it_says(reading):
    changed = reading_named(reading).changes
    site = Site(reading, "complete", 6, 0, 200)
    contestant = next(one for one in ("GSSL", "CSGS") if one in changed)
    if reading == "pairs":
        assert (
            measure(Cell(site, contestant))[0]["n_features"]
            != measure(Cell(SITE, contestant))[0]["n_features"]
        )
    elif reading in ("sd-0.5", "sd-10", "early"):
        headline = Site("headline", "complete", 6, 0, 200)
        one, other = (measure(Cell(where, "GSMN"))[0] for where in (site, headline))
        assert one["kl"] != other["kl"]
        assert one["n_features"] == other["n_features"]
    else:
        assert measure(Cell(site, contestant))[0]["kl"] > 0
