import numpy as np
import pytest

import unless
from unless.errors import DataError, UnknownLevel
from weights.naive_objective import naive_losses, random_case


@pytest.fixture
def case():
    features, data, rng = random_case(51, [2, 3, 4, 2], 60, 25)
    return unless.LogLinearModel(features, rng.normal(size=len(features))), data


def test_the_score_is_the_naive_one_with_a_share_for_each_variable(case):
    net, data = case
    shares = -naive_losses(net.features, data, net.weights) / data.n_rows
    score = net.pseudo_log_likelihood(data)
    assert float(score) == pytest.approx(shares.sum(), rel=1e-12)
    assert score.by_variable == pytest.approx(dict(zip(data.names, shares, strict=True)), rel=1e-12)
    assert score.n_rows == data.n_rows


def test_frames_are_read_with_the_levels_of_the_model(case):
    net, data = case
    frame = {
        name: [data.domain[name].levels[code] for code in data.rows[:, i]]
        for i, name in enumerate(data.names)
    }
    once = unless.Dataset.from_codes(data.domain, data.rows)
    assert net.pseudo_log_likelihood(frame) == net.pseudo_log_likelihood(once)
    frame["X1"][3] = "never seen"
    with pytest.raises(UnknownLevel, match="'never seen' in column 'X1'"):
        net.pseudo_log_likelihood(frame)


def test_an_empty_table_is_refused(case):
    net, data = case
    with pytest.raises(DataError, match="no rows"):
        net.pseudo_log_likelihood(unless.Dataset.from_codes(data.domain, np.empty((0, 4))))


def test_what_a_model_excludes_has_no_chance():
    domain = unless.Domain((unless.Variable("A", ("0", "1")), unless.Variable("B", ("0", "1", "2"))))
    features = unless.FeatureSet(domain, [unless.Feature.of({"A": "1", "B": "2"})])
    net = unless.LogLinearModel(features, [-np.inf])
    fine = unless.Dataset.from_codes(domain, [[1, 0], [0, 2]])
    # Given A = 1 two levels of B are left; given B = 2 A is certain.
    assert float(net.pseudo_log_likelihood(fine)) == pytest.approx(-(np.log(2) + np.log(2) + np.log(3)) / 2)
    assert float(net.pseudo_log_likelihood(unless.Dataset.from_codes(domain, [[1, 2]]))) == -np.inf


def test_what_a_model_demands_is_certain():
    domain = unless.Domain((unless.Variable("A", ("0", "1")), unless.Variable("B", ("0", "1", "2"))))
    net = unless.LogLinearModel(unless.FeatureSet(domain, [unless.Feature.of({"A": "1"})]), [np.inf])
    score = net.pseudo_log_likelihood(unless.Dataset.from_codes(domain, [[1, 2]]))
    assert score.by_variable == pytest.approx({"A": 0.0, "B": -np.log(3)})
