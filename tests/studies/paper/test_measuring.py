"""What a run says of a method, held against its parts done by hand."""

import numpy as np
import pytest

import unless
from studies.paper.measuring import measure
from studies.paper.methods import METHODS, VALIDATION
from studies.paper.plan import Run, Table
from studies.paper.samples import sample_of
from studies.paper.variants import HEADLINE, VARIANTS, variant_named

TABLE = Table("headline", "complete", 5, 3, 400)


def naive_kl(truth, net):
    p = truth.probabilities
    states = np.argwhere(np.ones_like(p)).astype(np.uint16)
    names = truth.domain.names
    rows = states[:, [names.index(name) for name in net.domain.names]]
    log_q = net.log_potentials(rows)
    log_q -= np.logaddexp.reduce(log_q)
    return float((p.ravel() * (np.log(p.ravel()) - log_q)).sum())


@pytest.mark.parametrize("method", METHODS)
def test_the_divergence_is_that_of_weights_learned_by_hand(method):
    truth, data = sample_of(TABLE)
    found, times = measure(Run(TABLE, method))
    if method == "generating":
        features, rows = truth.features, data
    elif method == "canonical":
        features, rows = truth.truth(data).features(), data
    else:
        est = METHODS[method].make(HEADLINE).fit(data)
        assert found["n_tests"] == est.n_tests_
        structure = est.structure_
        features = structure if method in ("GSSL", "DTSL") else structure.features()
        if method == "CSPC-subcliques":
            features = structure.features("subcliques")
        rows = data
        if method in ("GSSL", "DTSL"):
            rows, _ = unless.data.dataset.hold_out(data, VALIDATION, 0)
    net = unless.fit_weights(features, rows, unless.Gaussian(1.0))
    assert found["kl"] == pytest.approx(naive_kl(truth, net), rel=1e-4)
    assert found["n_features"] == len(features)
    assert found["converged"]
    assert set(times) == {"learn_seconds", "weigh_seconds"}


def test_the_true_graphs_have_no_error():
    found, _ = measure(Run(TABLE, "canonical"))
    assert found["graphs_fp"] == found["graphs_fn"] == 0
    found, _ = measure(Run(TABLE, "generating"))
    assert found["features_fp"] == found["features_fn"] == 0


def test_the_largest_degree_is_that_of_the_graphs():
    _, data = sample_of(TABLE)
    model = METHODS["CSGS"].make(HEADLINE).fit(data).structure_
    degree = max(len(graph.neighbours(name)) for _, graph in model for name in data.names)
    assert measure(Run(TABLE, "CSGS"))[0]["max_degree"] == degree


@pytest.mark.parametrize("variant", [variant.name for variant in VARIANTS if variant is not HEADLINE])
def test_a_variant_changes_what_it_says(variant):
    changed = variant_named(variant).changes
    table = Table(variant, "complete", 6, 0, 200)
    method = next(one for one in ("GSSL", "CSGS") if one in changed)
    headline = Table("headline", "complete", 6, 0, 200)
    if variant in ("pairs", "subcliques"):
        one, other = (measure(Run(where, method))[0]["n_features"] for where in (table, headline))
        assert one != other
    elif variant in ("sd-0.5", "sd-10", "early"):
        one, other = (measure(Run(where, "GSMN"))[0] for where in (table, headline))
        assert one["kl"] != other["kl"]
        assert one["n_features"] == other["n_features"]
    else:
        assert measure(Run(table, method))[0]["kl"] > 0
