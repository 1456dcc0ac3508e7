"""What rows that were not seen are worth to a learner."""

import numpy as np
import pandas as pd
import pytest

import unless
from unless.errors import DataError, NotFitted


def chain(n_rows=600, seed=0):
    """Make a frame in which each column mostly repeats the one before it."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 3, n_rows)]
    for _ in range(3):
        columns.append(np.where(rng.random(n_rows) < 0.7, columns[-1], rng.integers(0, 3, n_rows)))
    named = zip("abcd", columns, strict=True)
    return pd.DataFrame({name: [f"l{code}" for code in column] for name, column in named})


def test_it_is_the_pseudo_log_likelihood_of_the_rows_under_the_network_of_the_training_rows():
    training, unseen = chain(), chain(200, 1)
    est = unless.GSMN().fit(training)
    expected = est.network(training).pseudo_log_likelihood(unseen).value
    assert est.score(unseen) == pytest.approx(expected)
    assert est.score(unless.read(unseen)) == est.score(unseen)
    assert est.score(unseen, None) == est.score(unseen)


def test_a_learner_of_features_is_scored_by_its_own_network():
    training, unseen = chain(), chain(200, 1)
    est = unless.DTSL(kappa=0.01, prior=unless.Gaussian(1)).fit(training)
    assert est.score(unseen) == pytest.approx(est.network_.pseudo_log_likelihood(unseen).value)


def test_fitting_again_forgets_the_network():
    est = unless.GSMN().fit(chain())
    first = est.score(chain(200, 1))
    est.fit(chain(600, 2))
    assert est.score(chain(200, 1)) != first


def test_a_level_that_was_not_seen_costs_every_structure_the_same():
    training = chain()
    row = pd.DataFrame({"a": ["new"], "b": ["l1"], "c": ["l1"], "d": ["l1"]})
    linked, nothing = unless.GSMN(alpha=0.05).fit(training), unless.GSMN(alpha=1e-300).fit(training)
    assert not nothing.structure_.edges
    # Nothing is linked: each column has its own share, and the new level 1 / (n + k + 1).
    net = nothing.network(training)
    others = sum(np.log(net.query(name)["l1"]) for name in "bcd")
    assert nothing.score(row) == pytest.approx(others - np.log(600 + 3 + 1))
    # Of the linked columns, those without the new level's column say what they say.
    told = linked.network(training).pseudo_log_likelihood(row.assign(a="l1")).by_variable
    alone = linked.score(row) + np.log(600 + 3 + 1)
    assert alone - told["c"] - told["d"] < 0


def test_rows_with_and_without_new_levels_are_averaged():
    training = chain()
    est = unless.CSGS().fit(training)
    known, new = chain(50, 1), chain(50, 1).assign(c="new", a=["x", "l1"] * 25)
    both = pd.concat([known, new])
    assert est.score(both) == pytest.approx((est.score(known) + est.score(new)) / 2)


def test_numbers_fall_where_those_learned_from_were_cut():
    rng = np.random.default_rng(0)
    number = rng.normal(size=400)
    frame = pd.DataFrame({"x": number, "y": np.where(number > 0, "up", "down")})
    est = unless.UnlessClassifier(target="y").fit(frame).estimator_
    assert est.score(pd.DataFrame({"x": [0.123456, -99.0], "y": ["up", "down"]})) > -2.5


def test_tables_that_cannot_be_scored_get_one_sentence(tmp_path):
    training = chain()
    est = unless.GSMN().fit(training)
    holes = training.assign(a=None)
    wrong = [
        (lambda: unless.GSMN().score(training), NotFitted, "fit"),
        (lambda: est.score(training[["a", "b", "c"]]), DataError, "'d'"),
        (lambda: est.score(training[["a", "b", "c"]].to_numpy()), DataError, "expecting 4 features"),
        (lambda: est.score(unless.read(training[["a", "b", "c"]])), DataError, "'d'"),
        (lambda: est.score(training[:0]), DataError, "no rows"),
        (lambda: est.score(holes), DataError, "'a'"),
    ]
    for call, error, words in wrong:
        with pytest.raises(error, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)
    unless.save(est, tmp_path / "m.unless", rows=False)
    with pytest.raises(NotFitted, match="keeps no rows"):
        unless.load(tmp_path / "m.unless").score(training)
    unless.save(est, tmp_path / "m.unless")
    assert unless.load(tmp_path / "m.unless").score(training) == est.score(training)


def test_the_memory_allowed_bounds_the_score():
    rng = np.random.default_rng(0)
    levels = tuple(map(str, range(120)))
    domain = unless.Domain(tuple(unless.Variable(f"v{i}", levels) for i in range(120)))
    data = unless.Dataset.from_codes(domain, rng.integers(0, 120, (20_000, 120)))
    est = unless.GSMN(max_memory="64 MB")
    est.structure_, est.data_ = unless.Graph(domain, [("v0", "v1"), ("v0", "v2")]), data
    with pytest.raises(unless.errors.TooLarge, match="max_memory"):
        est.score(data)
