"""Kernels are called for little at a time, so that Ctrl-C is heard; that changes no bit of any answer."""

import os
import signal
import threading

import pytest

import unless
from strategies import chained_columns
from unless.data.waiting import heard


@pytest.fixture(scope="module")
def net():
    data = unless.read(chained_columns(5, 200))
    return unless.fit_weights(unless.GSMN().fit(data).structure_.features(), data)


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
    ]


def test_short_calls_beside_the_main_thread_change_no_bit(net, monkeypatch):
    expected = answers(net)
    monkeypatch.setattr("unless.data.waiting._LONG", 0.0)
    monkeypatch.setattr("unless.inference.exact._CELLS_AT_ONCE", 1)
    monkeypatch.setattr("unless.inference.gibbs._AT_ONCE", 1_000)
    monkeypatch.setattr("unless.inference.sampling.NUMBERS_AT_ONCE", 7)
    monkeypatch.setattr("unless.inference.sums.CONDITIONS_AT_ONCE", 7)
    assert answers(net) == expected


def test_ctrl_c_does_not_wait_for_a_long_kernel():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    goes_on = threading.Event()
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            heard(lambda: goes_on.wait(60), 1e12)
    finally:
        goes_on.set()
        timer.join()
        signal.signal(signal.SIGINT, before)


def test_what_a_kernel_says_comes_back():
    assert heard(lambda: 7, 1.0) == heard(lambda: 7, 1e12) == 7
    with pytest.raises(ValueError, match="no"):
        heard(_fail, 1e12)


def _fail():
    raise ValueError("no")
