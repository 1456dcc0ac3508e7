"""Kernels are called for little at a time, so that Ctrl-C is heard; that changes no bit of any answer."""

import os
import signal
import threading

import numpy as np
import pandas as pd
import pytest

import unless
from strategies import chained_columns
from unless.inference.imputation import fill_cells
from unless.inference.tables import read_cells
from unless.runtime.interrupts import interruptible_kernel


@pytest.fixture(scope="module")
def net():
    data = unless.read(chained_columns(5, 200))
    return unless.fit_weights(unless.GSMN().fit(data).structure_.features(), data)


HOLES = pd.DataFrame({f"x{v}": ["0", "1", None, "1", "0"] for v in range(5)}).assign(
    x4=["1", "1", "0", None, "0"]
)


def answers(net):
    """Ask everything anew, as a model that has laid out nothing yet."""
    fresh = unless.LogLinearModel(net.features, net.weights)
    evidence = {"x0": "1"}
    return [
        fresh.log_partition(evidence),
        fresh.log_potentials(fresh.sample_codes(9, random_state=1).rows).tobytes(),
        fresh.query(["x1", "x3"], evidence).probabilities.tobytes(),
        fresh.map_query(evidence),
        fresh.sample_codes(50, random_state=0).rows.tobytes(),
        fresh.sample_codes(50, random_state=0, method="gibbs").rows.tobytes(),
        fresh.query(["x1", "x3"], evidence, method="gibbs", random_state=0).probabilities.tobytes(),
        [one.probabilities.tobytes() for one in fresh.marginals(method="gibbs", random_state=0).values()],
        fresh.query(["x1", "x3"], evidence, method="belief").probabilities.tobytes(),
        fresh.query(["x1", "x3"], evidence, method="belief").details["report"],
        fresh.log_likelihood(HOLES).tobytes(),
        fresh.predict_proba(HOLES, "x3").tobytes(),
        fresh.impute(HOLES).to_numpy().tolist(),
        float(unless.kl_divergence(net, fresh, n_samples=50, random_state=0)),
    ]


def test_short_calls_beside_the_main_thread_change_no_bit(net, monkeypatch):
    expected = answers(net)
    monkeypatch.setattr("unless.runtime.interrupts._LONG", 0.0)
    monkeypatch.setattr("unless.inference.exact._CELLS_AT_ONCE", 1)
    monkeypatch.setattr("unless.inference.chains._AT_ONCE", 1_000)
    monkeypatch.setattr("unless.inference.belief._AT_ONCE", 1)
    monkeypatch.setattr("unless.inference.imputation._MOST_AT_ONCE", 1)
    monkeypatch.setattr("unless.evaluation.divergence._AT_ONCE", 7)
    monkeypatch.setattr("unless.inference.exact.NUMBERS_AT_ONCE", 7)
    monkeypatch.setattr("unless.inference.potentials.CONDITIONS_AT_ONCE", 7)
    assert answers(net) == expected


def test_a_state_to_begin_with_is_searched_for_in_calls_that_change_no_bit(monkeypatch):
    domain = unless.read(chained_columns(4, 50)).domain
    pairs = [{"x0": "0", "x1": "0"}, {"x1": "1", "x2": "1"}, {"x2": "0", "x3": "0"}, {"x0": "1", "x3": "1"}]
    forbidden = unless.FeatureSet(domain, [unless.Feature.of(pair) for pair in pairs])
    net = unless.LogLinearModel(forbidden, np.full(4, -np.inf))
    whole = net.sample_codes(30, random_state=0, method="gibbs").rows.tobytes()
    monkeypatch.setattr("unless.inference.chains._TRIES_AT_ONCE", 10_000)
    assert net.sample_codes(30, random_state=0, method="gibbs").rows.tobytes() == whole


ASK = {
    "Sampling": lambda net, **how: net.sample_codes(20, random_state=0, **how),
    "Sampling, sweeps": lambda net, **how: net.sample(20, random_state=0, method="gibbs", **how),
    "Sampling, sweeps: ": lambda net, **how: net.marginals(method="gibbs", random_state=0, **how),
    "Answering, states": lambda net, **how: net.query(["x0", "x3"], **how),
    "Passing messages, states": lambda net, **how: net.query(["x0", "x3"], method="belief", **how),
    "Passing messages, iterations": lambda net, **how: net.marginals(method="belief", **how),
    "Scoring, rows": lambda net, **how: net.log_likelihood(HOLES, **how),
    "Scoring, rows: ": lambda net, **how: net.conditional_marginal_log_likelihood(HOLES.dropna(), **how),
    "Scoring, variables": lambda net, **how: net.pseudo_log_likelihood(HOLES.dropna(), **how),
    "Predicting, rows": lambda net, **how: net.predict(HOLES, "x2", **how),
    "Imputing, rows": lambda net, **how: net.impute(HOLES, **how),
    "Comparing, states": lambda net, **how: unless.kl_divergence(net, net, **how),
    "Comparing, rows": lambda net, **how: unless.kl_divergence(net, net, n_samples=9, random_state=0, **how),
    "Comparing, contexts": lambda net, **how: unless.compare_structures(net, net, **how),
}


@pytest.mark.parametrize("title", ASK)
def test_a_long_answer_shows_how_far_it_is_and_nothing_where_nobody_looks(title, net, capsys, monkeypatch):
    ASK[title](net)
    ASK[title](net, show_progress=False)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("unless.runtime.progress._PAUSE", 0.0)
    ASK[title](net, show_progress=True)
    said = capsys.readouterr().err
    assert title in said
    assert "100%|" in said or title == "Passing messages, iterations"


@pytest.mark.parametrize("by", ["expectations", "boxes"])
def test_what_is_too_wide_to_enumerate_shows_how_far_it_is_too(by, net, capsys, monkeypatch):
    monkeypatch.setattr("unless.runtime.progress._PAUSE", 0.0)
    monkeypatch.setattr("unless.evaluation.divergence.MAX_STATES", 1)
    monkeypatch.setattr("unless.evaluation.comparison.MAX_CONTEXTS", 1)
    if by == "boxes":
        unless.compare_structures(net, net, show_progress=True)
        assert "Comparing, pairs: " in capsys.readouterr().err
    else:
        assert unless.kl_divergence(net, net, show_progress=True) == pytest.approx(0.0, abs=1e-12)
        assert "Comparing, features: 100%|" in capsys.readouterr().err


@pytest.mark.parametrize("most_states", [4_096, 0])
def test_shares_rise_to_the_whole(most_states, net, monkeypatch):
    monkeypatch.setattr("unless.inference.imputation._MOST_AT_ONCE", 1)
    monkeypatch.setattr("unless.inference.imputation.MAX_STATES", most_states)
    cells = read_cells(net.domain, HOLES)
    told = []
    fill_cells(net, cells, look=told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)


def test_ctrl_c_does_not_wait_for_a_long_kernel():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    goes_on = threading.Event()
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible_kernel(lambda: goes_on.wait(60), 1e12)
    finally:
        goes_on.set()
        timer.join()
        signal.signal(signal.SIGINT, before)


def test_what_a_kernel_says_comes_back():
    assert interruptible_kernel(lambda: 7, 1.0) == interruptible_kernel(lambda: 7, 1e12) == 7
    with pytest.raises(ValueError, match="no"):
        interruptible_kernel(_fail, 1e12)


def _fail():
    raise ValueError("no")
