"""The compiled objective against its naive twin and against finite differences."""

import numpy as np
import pytest

from twins.naive_objective import naive_losses, random_case
from unless.data.dataset import Dataset
from unless.errors import TooLarge
from unless.inference import pseudo_likelihood
from unless.inference.pseudo_likelihood import Conditionals
from unless.structures.structure import FeatureArrays

SHAPES = {
    "binary": ([2] * 6, 60, 25),
    "mixed": ([2, 3, 4, 2, 5], 50, 30),
    "one level": ([1, 2, 3, 2], 30, 12),
    "sparse blankets": ([2, 3] * 5, 80, 6),
    "no features": ([2, 3], 20, 0),
    "many levels": ([40, 2, 3], 60, 30),
}


@pytest.fixture(params=SHAPES)
def case(request):
    features, data, rng = random_case(7, *SHAPES[request.param])
    return features, data, rng.normal(0, 1.5, len(features)), rng


@pytest.fixture(params=["listed", "found anew", "several blocks"])
def layout(request, monkeypatch):
    if request.param == "several blocks":
        monkeypatch.setattr(pseudo_likelihood, "_BLOCK", 64)
        monkeypatch.setattr(pseudo_likelihood, "_MOST_SCORES", 64)
    return {"once": request.param == "found anew"}


def test_losses_equal_the_naive_ones(case, layout):
    features, data, weights, _ = case
    losses = Conditionals.of(features.arrays, data, **layout).losses(weights)
    assert losses == pytest.approx(naive_losses(features, data, weights), rel=1e-12)


def test_gradients_equal_finite_differences(case, layout):
    features, data, weights, rng = case
    conditionals = Conditionals.of(features.arrays, data, **layout)
    _, gradient = conditionals.value_and_gradient(weights)
    for _ in range(5):
        direction = rng.normal(size=len(weights))
        up, down = (conditionals.losses(weights + step * direction).sum() for step in (1e-5, -1e-5))
        assert gradient @ direction == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-5)


def test_products_with_the_hessian_equal_differences_of_gradients(case, layout):
    features, data, weights, rng = case
    conditionals = Conditionals.of(features.arrays, data, **layout)
    direction = rng.normal(size=len(weights))
    up, down = (conditionals.value_and_gradient(weights + step * direction)[1] for step in (1e-5, -1e-5))
    conditionals.value_and_gradient(weights, keep=True)
    product = conditionals.product(direction)
    assert product == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-4)
    assert conditionals.hessian() @ direction == pytest.approx(product, rel=1e-9, abs=1e-9)


def test_the_diagonal_is_that_of_the_hessian_or_a_little_more(case):
    features, data, weights, _ = case
    conditionals = Conditionals.of(features.arrays, data)
    conditionals.value_and_gradient(weights, keep=True)
    exact, bound = conditionals.hessian().diagonal(), conditionals.diagonal()
    told_once = np.diff(features.arrays.start) == [len(feature.scope) for feature in features]
    assert bound[told_once] == pytest.approx(exact[told_once], rel=1e-9, abs=1e-9)


def test_tallies_count_where_a_variable_alone_decides(case):
    features, data, _, _ = case
    could, was = Conditionals.of(features.arrays, data).tallies()
    for k, literals in enumerate(features.arrays.literals()):
        wanted = [0, 0]
        for row, count in zip(data.rows.tolist(), data.counts.tolist(), strict=True):
            wrong = {v for v, level, equal in literals if (row[v] == level) != equal}
            for v in {v for v, _, _ in literals if data.domain.n_levels[v] > 1}:
                wanted[0] += count * (wrong <= {v})
                wanted[1] += count * (not wrong)
        assert (could[k], was[k]) == pytest.approx(tuple(wanted), abs=1e-6)


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    monkeypatch.setattr("unless.inference.pseudo_likelihood._WORTH_SHARING", 0)
    features, data, rng = random_case(3, [2, 3, 2, 4, 2, 2], 300, 60)
    weights = rng.normal(size=len(features))
    answers = []
    for n_jobs in (1, 2, 3):
        conditionals = Conditionals.of(features.arrays, data, n_jobs=n_jobs)
        with conditionals.threads():
            value, gradient = conditionals.value_and_gradient(weights, keep=True)
            answers.append((value, gradient.tobytes(), conditionals.product(weights).tobytes()))
    assert answers[0] == answers[1] == answers[2]


def test_what_is_listed_changes_no_bit():
    features, data, rng = random_case(4, [2] * 8, 200, 60)
    weights = rng.normal(size=len(features))
    listed = Conditionals.of(features.arrays, data)
    found = Conditionals.of(features.arrays, data, once=True)
    assert listed.slots.listed.any()
    assert not found.slots.listed.any()
    for a, b in zip(listed.value_and_gradient(weights), found.value_and_gradient(weights), strict=True):
        assert np.array_equal(a, b)


def test_rows_that_a_blanket_does_not_tell_apart_are_one_case():
    _, data, _ = random_case(5, [2] * 10, 500, 0)
    pair = FeatureArrays.of([[(0, 1, True), (1, 1, True)]])
    conditionals = Conditionals.of(pair, data)
    assert np.diff(conditionals.cases.start).tolist() == [2, 2] + [1] * 8


def test_a_layout_that_does_not_fit_is_refused_with_the_estimate():
    features, data, rng = random_case(6, [2] * 20, 20_000, 60, max_size=6)
    wide = Dataset.from_codes(data.domain, rng.integers(0, 2, (400_000, 20)))
    with pytest.raises(TooLarge, match=r"would need more than .* and 64\.0 MiB are allowed"):
        Conditionals.of(features.arrays, wide, max_memory="64 MB")
