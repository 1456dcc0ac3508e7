"""Those who wait for weights are told how far they are."""

import numpy as np
import pytest

import unless
from strategies import chained_columns
from unless.inference.pseudo_likelihood import short_calls
from unless.weights.optimise import Descent


@pytest.fixture(scope="module")
def fitted():
    data = unless.read(chained_columns(5, 200))
    return unless.GSMN().fit(data).structure_.features(), data


def test_the_share_of_the_time_is_guessed_from_the_fall_of_the_slope():
    descent = Descent(lambda: None, 1e-6)
    assert descent.share < 0
    descent.moved(1.0)
    assert descent.share < 0
    # A slope may rise again; what was reached stays reached.
    for norm, share in ((1e-3, 0.25), (1e-2, 0.25), (1e-9, 1.0)):
        descent.moved(norm)
        assert descent.share == pytest.approx(share)
    libra = Descent(lambda: None, 1e-6, is_guessed=False)
    libra.moved(1.0)
    libra.moved(0.1)
    assert libra.share < 0


def test_a_fit_tells_its_iterations_and_its_slope(fitted, capsys, monkeypatch):
    monkeypatch.setattr("unless.runtime.progress._PAUSE", 0.0)
    unless.fit_weights(*fitted, show_progress=True)
    said = capsys.readouterr().err
    assert "fit_weights, iterations: " in said
    assert ", iteration 1, slope " in said
    assert ", to be 1.0e-06" in said
    unless.fit_weights(*fitted, show_progress=True, relative_tolerance=1e-3)
    assert ", to be " not in capsys.readouterr().err


def test_a_fit_of_a_moment_is_not_drawn(fitted, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    unless.fit_weights(*fitted)
    assert capsys.readouterr().err == ""


def test_calls_are_short_and_take_every_block_once():
    steps, n_blocks = np.array([3.0, 4.0, 100.0, 1.0, 25.0, 0.0]), np.array([1, 2, 20, 3, 1, 0])
    calls = short_calls(steps, n_blocks, 10.0)
    taken = [(v, b) for part in calls for call in part for v in call.variables for b in range(*call[1:])]
    taken = [(v, b) for v, b in taken if b < n_blocks[v]]
    assert sorted(taken) == [(v, b) for v in range(6) for b in range(n_blocks[v])]
    assert all(
        steps[call.variables].sum() <= 20 or len(call.variables) == 1 for part in calls for call in part
    )
    assert max(call.end - call.begin for part in calls for call in part if 2 in call.variables) == 2


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_short_calls_change_no_bit(n_jobs, monkeypatch):
    data = unless.read(chained_columns(6, 400), levels={"x0": ["0", "1", "2", "3"]})
    features = unless.GSMN().fit(data).structure_.features()
    whole = unless.fit_weights(features, data).weights
    monkeypatch.setattr("unless.inference.pseudo_likelihood._BLOCK", 64)
    monkeypatch.setattr("unless.inference.pseudo_likelihood._WORTH_SHARING", 0)
    blocks = unless.fit_weights(features, data).weights
    monkeypatch.setattr("unless.inference.pseudo_likelihood._STEPS_OF_A_LISTING", 1.0)
    monkeypatch.setattr("unless.inference.pseudo_likelihood._AT_ONCE", 1)
    cut = unless.fit_weights(features, data, n_jobs=n_jobs).weights
    assert cut.tobytes() == blocks.tobytes()
    np.testing.assert_allclose(cut, whole, atol=1e-6)
