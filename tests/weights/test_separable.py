import pytest

import unless
from twins.naive_objective import random_case
from unless.errors import SettingError
from unless.structures.graph import Condition, Feature, FeatureSet

TABLE = {"A": [0, 0, 0, 1, 1, 1, 0, 1], "B": [0, 1, 0, 1, 0, 1, 1, 0], "C": [0, 0, 1, 1, 0, 1, 1, 0]}


def features(data, *listed):
    return FeatureSet(
        data.domain, [Feature(Condition(name, label) for name, label in one.items()) for one in listed]
    )


def test_without_a_prior_weights_have_no_slope_left():
    data = unless.read(TABLE)
    net = unless.fit_weights(features(data, {"A": 1}, {"B": 1}, {"B": 1, "C": 1}), data, prior=None)
    assert net.fit_report.converged
    assert repr(net.fit_report.prior) == "None"


def test_redundant_features_are_no_reason_to_refuse():
    data = unless.read(TABLE)
    both = features(
        data, {"A": 1}, {"A": 0}, {"B": 1, "C": 1}, {"B": 0, "C": 0}, {"B": 0, "C": 1}, {"B": 1, "C": 0}
    )
    assert unless.fit_weights(both, data, prior=None).fit_report.converged


def test_a_feature_that_is_never_true_is_refused_by_name():
    data = unless.read({"A": [0, 0, 1, 0], "B": [0, 1, 0, 0]})
    with pytest.raises(SettingError, match=r"\[A = 1 & B = 1\] has no finite .* never true"):
        unless.fit_weights(features(data, {"A": 1}, {"A": 1, "B": 1}), data, prior=None)


def test_a_feature_that_is_always_true_is_refused_by_name():
    data = unless.read({"A": [0, 1, 1], "B": [0, 1, 1]}, levels={"A": [0, 1], "B": [0, 1, 2]})
    with pytest.raises(SettingError, match=r"\[A = 1 & B = 1\] has no finite .* always true"):
        unless.fit_weights(features(data, {"A": 1, "B": 1}), data, prior=None)


def test_features_that_only_together_separate_the_data_are_refused():
    # B is 1 exactly where A and C differ or are both 1; each feature alone is true and false.
    data = unless.read({"A": [0, 0, 1, 1] * 2, "C": [0, 1, 0, 1] * 2, "B": [0, 0, 0, 1] * 2})
    pairs = features(data, {"A": 1}, {"B": 1}, {"C": 1}, {"A": 1, "B": 1}, {"B": 1, "C": 1})
    with pytest.raises(SettingError, match="together tell a part of the data apart"):
        unless.fit_weights(pairs, data, prior=None)


@pytest.mark.parametrize("prior", [unless.Gaussian(1), unless.Gaussian(100), unless.Laplace(0.1)])
def test_any_prior_makes_a_separable_set_finite(prior):
    data = unless.read({"A": [0, 0, 1, 0], "B": [0, 1, 0, 0]})
    net = unless.fit_weights(features(data, {"A": 1}, {"A": 1, "B": 1}), data, prior)
    assert net.fit_report.converged


def test_large_tables_without_a_prior_are_fitted():
    features, data, _ = random_case(31, [2, 3, 2], 3_000, 12)
    assert unless.fit_weights(features, data, prior=None).fit_report.converged
