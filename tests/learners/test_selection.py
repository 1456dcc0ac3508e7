from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import unless
from unless.data.dataset import hold_out
from unless.errors import DataError, SettingError
from unless.learners.feature_search import FeatureLearner
from unless.learners.settings import setting
from unless.structures.graph import FeatureSet
from unless.structures.structure import FeatureArrays

WEAK = unless.Gaussian(1.0)


class Words(FeatureLearner):
    """The joint states of the first `size` variables: a learner so small that it can be checked by eye."""

    sizes: Sequence[int] = setting(default=(1, 2, 3), kw_only=False)
    prior: Any = setting(default=WEAK)

    def _grid(self):
        return [{"size": size} for size in self.sizes]

    def _feature_sets(self, data, grid):
        for point in grid:
            rows = np.unique(data.rows[:, : point["size"]], axis=0)
            scope = np.tile(np.arange(point["size"]), (len(rows), 1))
            yield FeatureSet.from_arrays(data.domain, FeatureArrays.of_equals(scope, rows))


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    first = rng.integers(0, 2, 400)
    second = np.where(rng.random(400) < 0.85, first, 1 - first)
    return unless.read({"a": first, "b": second, "c": rng.integers(0, 3, 400)})


def test_the_best_of_the_grid_is_kept_and_all_is_told(data):
    priors = [unless.Gaussian(0.1), unless.Gaussian(1), unless.Laplace(2)]
    est = Words(prior=priors, refit=False).fit(data)
    training, unseen = hold_out(data, 0.3, 0)
    assert len(est.tried_) == 9
    for tried in est.tried_:
        features = next(est._feature_sets(training, [{"size": tried["size"]}]))
        prior = next(prior for prior in priors if repr(prior) == tried["prior"])
        net = unless.fit_weights(features, training, prior)
        wanted = net.pseudo_log_likelihood(unseen).value
        assert tried["pseudo_log_likelihood"] == pytest.approx(wanted, abs=1e-5)
        assert tried["n_features"] == len(features)
    best = max(est.tried_, key=lambda tried: tried["pseudo_log_likelihood"])
    assert repr(est.network_.fit_report.prior) == best["prior"]
    features = next(est._feature_sets(training, [{"size": best["size"]}]))
    again = unless.fit_weights(features, training, est.network_.fit_report.prior)
    assert est.network_.score(data) == pytest.approx(again.score(data), abs=1e-6)


def test_refitting_uses_all_rows_and_a_given_table_is_never_learned_from(data):
    whole = Words((2, 3)).fit(data)
    features = next(whole._feature_sets(data, [{"size": 2}]))
    assert whole.structure_ == features
    assert whole.network_.weights == pytest.approx(unless.fit_weights(features, data).weights, abs=2e-3)
    training, unseen = hold_out(data, 0.3, 0)
    judged = Words((2, 3)).fit(training, validation=unseen)
    assert judged.network_.weights == pytest.approx(unless.fit_weights(features, training).weights, abs=2e-3)
    assert [one["size"] for one in judged.tried_] == [2, 3]


def test_the_order_of_the_columns_changes_no_bit(data):
    est = Words((2, 3), prior=unless.Laplace(3)).fit(data)
    moved = Words((2, 3), prior=unless.Laplace(3)).fit(data.select(["c", "a", "b"]))
    assert moved.structure_.domain.names == ("c", "a", "b")
    weights = dict(zip(est.structure_, est.network_.weights.tolist(), strict=True))
    assert dict(zip(moved.structure_, moved.network_.weights.tolist(), strict=True)) == weights


def test_a_single_setting_is_not_judged(data):
    est = Words([2]).fit(data)
    assert est.tried_ == []
    assert len(est.structure_) == 4
    assert (est.n_tests_, est.n_distinct_tests_) == (0, 0)


def test_features_without_weight_are_dropped(data):
    est = Words([3], prior=unless.Laplace(50)).fit(data)
    net = unless.fit_weights(next(est._feature_sets(data, [{"size": 3}])), data, unless.Laplace(50))
    assert 0 < len(est.structure_) == np.count_nonzero(net.weights) < len(net.weights)
    assert est.network_.score(data) == pytest.approx(net.score(data), abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"validation": 1.5}, SettingError, "validation"),
        ({"prior": []}, SettingError, "prior"),
        ({"prior": "weak"}, SettingError, "prior"),
        ({"refit": "yes"}, SettingError, "refit"),
    ],
)
def test_bad_settings_get_one_sentence(data, settings, error, words):
    with pytest.raises(error, match=words):
        Words(**settings).fit(data)


def test_too_few_rows_to_judge_by_are_refused(data):
    one = unless.Dataset.from_codes(data.domain, data.rows[:1])
    with pytest.raises(DataError, match="leaves none"):
        Words().fit(one)
    nothing = unless.Dataset.from_codes(data.domain, data.rows[:0])
    with pytest.raises(DataError, match="no rows"):
        Words().fit(data, validation=nothing)
