import numpy as np
import pytest

import unless
from twins.naive_objective import naive_losses, random_case
from unless.data.dataset import Dataset
from unless.errors import DataError, SettingError


@pytest.fixture
def case():
    return random_case(41, [2, 3, 2, 2], 200, 30)


def test_the_prior_that_predicts_a_given_table_best_is_taken(case):
    features, data, rng = case
    unseen = Dataset.from_codes(data.domain, rng.integers(0, data.domain.n_levels, (50, len(data.domain))))
    priors = [unless.Gaussian(0.1), unless.Gaussian(1), unless.Laplace(1)]
    net = unless.fit_weights(features, data, priors, validation=unseen)
    scores = {}
    for candidate in net.fit_report.candidates:
        alone = unless.fit_weights(features, data, candidate.prior)
        scores[candidate.prior] = -naive_losses(features, unseen, alone.weights).sum() / unseen.n_rows
        assert candidate.score == pytest.approx(scores[candidate.prior], abs=1e-6)
    best = max(scores, key=scores.get)
    assert net.fit_report.prior == best
    assert net.weights == pytest.approx(unless.fit_weights(features, data, best).weights, abs=1e-6)


@pytest.mark.parametrize("validation", [None, 3, 0.3])
def test_the_choice_is_determined_by_the_random_state(case, validation):
    features, data, _ = case
    first, second = (
        unless.fit_weights(features, data, "validate", validation=validation, random_state=5).fit_report
        for _ in range(2)
    )
    assert first == second
    assert len(first.candidates) == 7


@pytest.mark.parametrize("validation", [1, 0, 1.5, 0.0, True])
def test_odd_ways_to_validate_are_refused(case, validation):
    features, data, _ = case
    with pytest.raises(SettingError, match="validation="):
        unless.fit_weights(features, data, "validate", validation=validation)


def test_too_few_rows_to_validate_are_refused(case):
    features, data, _ = case
    with pytest.raises(DataError, match="too few"):
        unless.fit_weights(features, Dataset.from_codes(data.domain, data.rows[:1]), "validate")


def test_numbers_of_numpy_are_folds_and_shares(case):
    features, data, _ = case
    priors = [unless.Gaussian(0.1), unless.Gaussian(1)]
    for own, numpys in ((3, np.int64(3)), (0.25, np.float32(0.25))):
        nets = [
            unless.fit_weights(features, data, priors, validation=one, random_state=0)
            for one in (own, numpys)
        ]
        assert np.array_equal(nets[0].weights, nets[1].weights)
    for strange in (np.bool_(True), np.float64(1.5)):
        with pytest.raises(SettingError, match="no way to judge priors"):
            unless.fit_weights(features, data, priors, validation=strange)
    with pytest.raises(SettingError, match="random_state='x' is no seed"):
        unless.fit_weights(features, data, priors, random_state="x")
