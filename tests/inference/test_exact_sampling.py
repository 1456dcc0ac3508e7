"""Exact samples follow the model, and nothing but the random state decides them."""

import numpy as np
import pytest
from scipy.stats import chi2

from inference.models import csi_model, random_evidence, random_model, trees_by_context
from twins import brute_force
from unless.data.domain import Domain, Variable
from unless.errors import MissingExtra, SettingError
from unless.inference import exact, frames
from unless.inference.model import LogLinearModel, sample_codes
from unless.structures.graph import FeatureSet

N_ROWS = 20_000


def drawn(model, n, random_state):
    """Draw rows of codes, in the order they are drawn."""
    return sample_codes(model, n, random_state, {}, method="exact", max_memory=None)


def chi_square_p(observed, probabilities):
    """Return the p-value of counts against probabilities; cells expected below 5 are merged."""
    expected = probabilities.ravel() * observed.sum()
    assert observed.ravel()[expected == 0].sum() == 0
    rare = expected < 5
    pairs = [
        (observed.ravel()[~rare], expected[~rare]),
        ([observed.ravel()[rare].sum()], [expected[rare].sum()]),
    ]
    seen, awaited = (np.concatenate(side) for side in zip(*pairs, strict=True))
    kept = awaited > 0
    statistic = ((seen[kept] - awaited[kept]) ** 2 / awaited[kept]).sum()
    return float(chi2.sf(statistic, max(1, kept.sum() - 1)))


@pytest.mark.parametrize("seed", range(12))
def test_samples_follow_the_exact_probabilities(seed, monkeypatch):
    if seed % 2:
        monkeypatch.setattr(exact, "CHEAP", 64.0)
        monkeypatch.setattr(exact, "MOST", 3.0)
    rng = np.random.default_rng(seed)
    model = random_model(
        rng, 5, max_levels=3, zeros=0.1 if seed % 3 == 0 else 0.0, scale=400.0 if seed % 4 == 3 else 1.0
    )
    evidence = random_evidence(rng, model.domain, share=0.2)
    while brute_force.log_partition(model, evidence) == -np.inf:
        evidence.popitem()
    sample = model.sample_codes(N_ROWS, seed, evidence=model.domain.decode(evidence))
    table = brute_force.joint(model, list(range(5)), evidence)
    observed = np.zeros(table.shape)
    observed[tuple(sample.rows.T)] = sample.counts
    assert chi_square_p(observed, table) > 1e-4


@pytest.mark.parametrize(
    "model", [csi_model(12), trees_by_context(np.random.default_rng(0))], ids=["csi", "trees"]
)
def test_samples_of_gated_models_have_the_right_pairs(model):
    rows = drawn(model, N_ROWS, 7)
    names = model.domain.names
    for a, b in [(0, len(names) - 1), (3, 4), (1, 9)]:
        observed = np.zeros((2, 2))
        np.add.at(observed, (rows[:, a], rows[:, b]), 1)
        assert chi_square_p(observed, model.query([names[a], names[b]]).probabilities) > 1e-4


def test_the_random_state_alone_decides():
    model = random_model(np.random.default_rng(0), 6)
    before = np.random.get_state()[1].copy()
    one, two = drawn(model, 100, 3), drawn(model, 100, np.random.default_rng(3))
    np.testing.assert_array_equal(one, two)
    assert (np.random.get_state()[1] == before).all()
    assert (drawn(model, 100, 4) != one).any()
    np.testing.assert_array_equal(drawn(model, 10, 3), one[:10])


@pytest.mark.parametrize("n", [-1, 2.5, True, "3"])
def test_what_is_no_number_of_rows_is_refused(n):
    with pytest.raises(SettingError, match="whole number"):
        random_model(np.random.default_rng(0), 2).sample(n)


def test_belief_propagation_draws_nothing():
    with pytest.raises(SettingError, match="draws no samples"):
        random_model(np.random.default_rng(0), 2).sample(1, method="belief")


MIXED = Domain(
    (
        Variable("count", ("1", "2", "10"), "integer"),
        Variable("size", ("0.5", "2"), "float"),
        Variable("open", ("False", "True"), "boolean"),
        Variable("kind", ("b", "a"), "category"),
        Variable("name", ("x", "y"), "text"),
        Variable("binned", ("1", "other"), "integer"),
    )
)


def silent(domain):
    return LogLinearModel(FeatureSet(domain), [])


def test_a_sample_has_the_types_of_the_columns_it_was_learned_from():
    pd = pytest.importorskip("pandas")
    frame = silent(MIXED).sample(50, 0)
    assert [str(frame[name].dtype) for name in ("count", "size", "open", "kind")] == [
        "int64",
        "float64",
        "bool",
        "category",
    ]
    assert list(frame["kind"].cat.categories) == ["b", "a"]
    assert set(frame["binned"]) == {"1", "other"}
    assert isinstance(frame, pd.DataFrame)
    assert set(frame["count"]) == {1, 2, 10}


@pytest.mark.parametrize("n", [0, 40])
def test_other_backends_hold_the_same_rows(n):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    model = silent(MIXED)
    plain = model.sample(n, 0, backend="dict")
    polars, arrow = model.sample(n, 0, backend="polars"), model.sample(n, 0, backend="pyarrow")
    assert polars.schema["kind"] == pl.Enum(["b", "a"])
    assert polars.schema["name"] == pl.String
    assert pa.types.is_dictionary(arrow.schema.field("kind").type)
    for name, column in plain.items():
        assert polars[name].to_list() == arrow[name].to_pylist() == column.tolist()


def test_a_backend_that_is_absent_or_unknown_is_said(monkeypatch):
    monkeypatch.setattr(frames, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="polars is not installed"):
        silent(MIXED).sample(1, backend="polars")
    assert isinstance(silent(MIXED).sample(1), dict)
    with pytest.raises(SettingError, match="no backend 'excel'"):
        silent(MIXED).sample(1, backend="excel")
