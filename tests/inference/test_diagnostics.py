import numpy as np
import pytest

from unless.inference.chains import (
    GibbsReport,
    Trace,
    effective_sizes,
    report_on,
    split_r_hats,
    standard_errors,
)


def trace_of(values, n_per_batch):
    """Cut series (chains, draws) into batches."""
    cut = values.reshape(values.shape[0], -1, n_per_batch)
    return Trace(cut.sum(axis=2)[..., None], (cut**2).sum(axis=2)[..., None], n_per_batch)


def autoregressive(rng, correlation, n_chains=4, n_draws=20_000):
    values = np.empty((n_chains, n_draws))
    state = rng.standard_normal(n_chains) / np.sqrt(1 - correlation**2)
    for draw in range(n_draws):
        state = correlation * state + rng.standard_normal(n_chains)
        values[:, draw] = state
    return values


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, 0.98])
def test_effective_sizes_of_autoregressive_series_are_the_known_ones(correlation):
    trace = trace_of(autoregressive(np.random.default_rng(0), correlation), 200)
    size = effective_sizes(trace, standard_errors(trace))[0]
    assert size == pytest.approx(trace.n_draws * (1 - correlation) / (1 + correlation), rel=0.25)
    assert split_r_hats(trace)[0] == pytest.approx(1, abs=0.01)


def test_chains_that_disagree_have_a_large_r_hat_and_few_effective_draws():
    values = autoregressive(np.random.default_rng(1), 0.0, n_draws=2_000) + np.array([[0], [0], [3], [3]])
    trace = trace_of(values, 20)
    errors = standard_errors(trace)
    report = report_on(trace, errors, burn_in=10)
    assert report.r_hat > 1.5
    assert report.effective_size < 20
    assert "disagree" in str(report)
    assert errors[0] > 0.5


def test_a_chain_that_drifts_is_seen_by_its_halves():
    values = np.random.default_rng(2).standard_normal((4, 2_000)) + np.linspace(0, 4, 2_000)
    assert split_r_hats(trace_of(values, 20))[0] > 1.3


def test_a_constant_is_known_without_error():
    trace = trace_of(np.full((2, 100), 0.25), 10)
    errors = standard_errors(trace)
    assert errors[0] == pytest.approx(0, abs=1e-12)
    assert split_r_hats(trace)[0] == 1
    report = report_on(trace, np.zeros(1), burn_in=0)
    assert report.effective_size == 200
    assert report.agrees


def test_a_hopeless_r_hat_is_not_spelled_out():
    report = GibbsReport(4, 5_000, 1_000, 5968127738555778417557504.0, 3.0)
    assert "R-hat over 100," in str(report)
    assert "R-hat 1.013," in str(GibbsReport(4, 5_000, 1_000, 1.013, 3.0))
