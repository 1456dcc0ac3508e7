import numpy as np
import pytest

import unless
from inference.models import domain_of, model_of
from twins.naive_objective import naive_losses, random_case
from unless.errors import DataError, UnknownLevel


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


def naive_shares(net, data):
    """Sum, for each variable, log P(x_v | others) over the rows, level by level and by the definition."""
    shares = np.zeros(len(data.names))
    for row, count in zip(data.rows.tolist(), data.counts.tolist(), strict=True):
        for v, size in enumerate(data.domain.n_levels.tolist()):
            states = np.array([[*row[:v], level, *row[v + 1 :]] for level in range(size)], dtype=np.uint16)
            logs = net.log_potentials(states)
            if logs[row[v]] == -np.inf:
                shares[v] = -np.inf
            else:
                shares[v] += count * (logs[row[v]] - np.logaddexp.reduce(logs))
    return shares / data.n_rows


@pytest.mark.parametrize("seed", range(30))
def test_features_that_exclude_all_but_some_levels_leave_the_weights_of_those(seed):
    rng = np.random.default_rng(seed)
    domain = domain_of([4, 5, 3, 2])
    weighted = []
    for _ in range(14):
        length = int(rng.integers(1, 4))
        scope = np.sort(rng.choice(4, length, replace=False)).tolist()
        literals = []
        for v in scope:
            size = int(domain.n_levels[v])
            n_named = int(rng.integers(1, size - 1)) if size > 2 and rng.random() < 0.7 else 0
            named = rng.choice(size, max(n_named, 1), replace=False).tolist()
            literals += [(v, level, not n_named) for level in named]
        weighted.append((literals, -np.inf if rng.random() < 0.2 else float(rng.normal())))
    net = model_of(domain, weighted)
    every = np.indices(domain.n_levels).reshape(4, -1).T.astype(np.uint16)
    possible = every[np.isfinite(net.log_potentials(every))]
    if not len(possible):
        pytest.skip("no state is possible")
    chosen = rng.integers(0, len(possible), 20)
    data = unless.Dataset.from_codes(domain, possible[chosen], rng.integers(1, 4, 20))
    score = net.pseudo_log_likelihood(data)
    assert list(score.by_variable.values()) == pytest.approx(naive_shares(net, data), abs=1e-9)


def test_a_row_no_level_of_which_could_be_otherwise_is_impossible():
    net = model_of(
        domain_of([2, 2, 2]), [([(0, a, True), (1, b, True)], -np.inf) for a, b in ((0, 0), (0, 1), (1, 0))]
    )
    impossible = unless.Dataset.from_codes(net.domain, [[0, 0, 0]])
    score = net.pseudo_log_likelihood(impossible)
    assert float(score) == -np.inf
    # What has no part in it is not blamed for it.
    assert score.by_variable == {"A0": -np.inf, "A1": -np.inf, "A2": pytest.approx(-np.log(2))}
