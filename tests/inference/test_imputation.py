import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import unless
from inference.models import domain_of, grid_model, model_of, random_model
from twins import brute_force
from unless.errors import DataError, ImpossibleEvidence, UnknownLevel, UnknownName
from unless.inference import imputation
from unless.inference.frames import to_frame
from unless.inference.imputation import impute, predict, predict_proba
from unless.inference.model import LogLinearModel

INF = float("inf")


def holed_rows(rng, domain, n_rows, share):
    """Draw rows of labels, some of them None; returns the frame and the codes, -1 for None."""
    codes = np.column_stack([rng.integers(0, size, n_rows) for size in domain.n_levels])
    codes[rng.random(codes.shape) < share] = -1
    labels = {
        variable.name: [None if code < 0 else variable.levels[code] for code in codes[:, position]]
        for position, variable in enumerate(domain)
    }
    return pd.DataFrame(labels, dtype=object), codes


def evidence_of(row, but=None):
    return {v: int(code) for v, code in enumerate(row) if code >= 0 and v != but}


@pytest.mark.parametrize("max_states", [imputation.MAX_STATES, 1])
@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_probabilities_equal_brute_force_row_by_row(monkeypatch, seed, share, max_states):
    monkeypatch.setattr(imputation, "MAX_STATES", max_states)
    rng = np.random.default_rng(seed)
    model = random_model(rng, 6, max_levels=3)
    frame, codes = holed_rows(rng, model.domain, 40, share)
    target = int(rng.integers(6))
    answers = predict_proba(model, frame, f"A{target}")
    for row, answer in zip(codes, answers, strict=True):
        truth = brute_force.joint(model, [target], evidence_of(row, but=target))
        assert answer == pytest.approx(truth, abs=1e-9)


def test_columns_the_table_has_not_are_summed_over_and_strange_ones_left_alone():
    rng = np.random.default_rng(5)
    model = random_model(rng, 6, max_levels=3)
    frame, codes = holed_rows(rng, model.domain, 20, 0.0)
    some = frame[["A4", "A1"]].assign(other=1.5)
    answers = predict_proba(model, some, "A0")
    for row, answer in zip(codes, answers, strict=True):
        given = {1: int(row[1]), 4: int(row[4])}
        assert answer == pytest.approx(brute_force.joint(model, [0], given), abs=1e-9)


def test_rows_that_show_the_same_are_computed_once(monkeypatch):
    rng = np.random.default_rng(6)
    model = random_model(rng, 5)
    frame, _ = holed_rows(rng, model.domain, 10, 0.2)
    asked = []
    whole = imputation.HiddenPart.marginals
    monkeypatch.setattr(
        imputation.HiddenPart, "marginals", lambda *given: asked.append(len(given[1])) or whole(*given)
    )
    once = predict_proba(model, frame, "A0")
    n_asked = sum(asked)
    again = predict_proba(model, pd.concat([frame] * 50), "A0")
    assert sum(asked) == 2 * n_asked
    assert np.array_equal(again, np.tile(once, (50, 1)))


@pytest.mark.parametrize("seed", range(8))
def test_holes_are_filled_by_their_joint_mode(seed):
    rng = np.random.default_rng(20 + seed)
    model = random_model(rng, 6, max_levels=3)
    frame, codes = holed_rows(rng, model.domain, 30, 0.4)
    filled = impute(model, frame)
    assert not filled.isna().any().any()
    table = brute_force.log_potentials(model)
    for before, (_, after) in zip(codes, filled.iterrows(), strict=True):
        state = tuple(model.domain.variables[v].code(label) for v, label in enumerate(after))
        assert all(code in (-1, new) for code, new in zip(before, state, strict=True))
        assert table[state] == pytest.approx(brute_force.map_value(model, evidence_of(before)), abs=1e-8)
    assert frame.isna().any().any()


def test_wide_holes_are_filled_exactly_too(monkeypatch):
    rng = np.random.default_rng(3)
    model = random_model(rng, 6, max_levels=3)
    frame, _ = holed_rows(rng, model.domain, 20, 0.5)
    expected = impute(model, frame)
    monkeypatch.setattr(imputation, "MAX_STATES", 1)
    assert impute(model, frame).equals(expected)


def test_of_equals_the_first_level_is_taken():
    model = model_of(domain_of([3, 3]), [([(0, i, True), (1, i, True)], 0.1 + 0.2) for i in range(3)])
    filled = impute(model, pd.DataFrame({"A0": [None, "c"], "A1": [None, None]}, dtype=object))
    assert filled.to_numpy().tolist() == [["a", "a"], ["c", "c"]]
    assert predict(model, pd.DataFrame({"A1": ["b"]}), "A0").tolist() == ["b"]


def typed_model():
    frame = pd.DataFrame(
        {
            "n": [1, 2, 3, 1],
            "t": ["x", "y", "x", "y"],
            "b": [True, False, True, True],
            "c": pd.Categorical(["lo", "hi", "lo", "hi"], categories=["lo", "hi"]),
        }
    )
    domain = unless.read(frame).domain
    features = unless.FeatureSet(
        domain, [unless.Feature.of({"n": 2}), unless.Feature.of({"b": True}), unless.Feature.of({"c": "hi"})]
    )
    return LogLinearModel(features, [1.0, 1.0, 1.0])


HOLED = {
    "pandas": pd.DataFrame(
        {
            "n": [1, None, 3],
            "t": ["y", None, None],
            "b": [None, False, True],
            "c": pd.Categorical([None, "lo", "lo"], categories=["lo"]),
            "kept": [0.5, None, 0.7],
        }
    ),
    "nullable pandas": pd.DataFrame(
        {
            "n": pd.array([1, None, 3], dtype="Int64"),
            "t": pd.array(["y", None, None], dtype="string"),
            "b": pd.array([None, False, True], dtype="boolean"),
            "c": ["hi", "lo", "lo"],
        }
    ).assign(c=["hi", "lo", "lo"]),
    "polars": pl.DataFrame(
        {
            "n": [1, None, 3],
            "t": ["y", None, None],
            "b": [None, False, True],
            "c": pl.Series([None, "lo", "lo"], dtype=pl.Enum(["lo", "hi"])),
        }
    ),
    "pyarrow": pa.table({"n": [1, None, 3], "t": ["y", None, None], "b": [None, False, True]}),
}


@pytest.mark.parametrize("kind", HOLED)
def test_a_table_comes_back_in_its_own_kind_and_types(kind):
    table = HOLED[kind]
    filled = impute(typed_model(), table)
    assert type(filled) is type(table)
    columns = (
        filled.to_dict("list")
        if hasattr(filled, "iloc")
        else filled.to_pydict()
        if kind == "pyarrow"
        else filled.to_dict(as_series=False)
    )
    assert columns["n"] == [1, 2, 3]
    assert columns["t"] == ["y", "x", "x"]
    assert columns["b"] == [True, False, True]
    if kind in ("pandas", "polars"):
        assert columns["c"] == ["hi", "lo", "lo"]
    if kind == "pandas":
        assert filled["kept"].equals(table["kept"])
        assert filled.dtypes.drop("c").equals(table.dtypes.drop("c"))
    elif kind == "nullable pandas":
        assert filled.dtypes.equals(table.dtypes)
    else:
        assert filled.schema == table.schema


def test_dictionaries_and_arrays_are_filled_as_they_are():
    model = typed_model()
    assert impute(model, {"n": [1, None], "t": ["y", None]}) == {"n": [1, 2], "t": ["y", "x"]}
    array = np.array([[1, "x", None, "lo"], [None, "y", True, None]], dtype=object)
    assert impute(model, array).tolist() == [[1, "x", True, "lo"], [2, "y", True, "hi"]]
    numbers = model_of(domain_of([2, 2]), [])
    with pytest.raises(DataError, match="holes filled"):
        impute(numbers, [["a", None]])


def test_predictions_have_the_type_of_their_column():
    model = typed_model()
    frame = pd.DataFrame({"t": ["x", "y"]})
    assert predict(model, frame, "n").tolist() == [2, 2]
    assert predict(model, frame, "b").tolist() == [True, True]
    assert predict(model, frame, "c").tolist() == ["hi", "hi"]


def test_what_the_model_does_not_know_is_named():
    model = typed_model()
    with pytest.raises(UnknownLevel, match=r"'z' in column 't' \(row 2\)"):
        predict_proba(model, {"t": ["x", "z"], "n": [1, 1]}, "n")
    with pytest.raises(UnknownName, match="'q'"):
        predict_proba(model, {"t": ["x"]}, "q")
    with pytest.raises(UnknownName, match="none of the model's columns"):
        predict_proba(model, pd.DataFrame({"q": [1]}), "n")


def test_a_row_of_probability_zero_is_named():
    model = model_of(domain_of([2, 2, 2]), [([(0, 1, True), (1, i, True)], -INF) for i in range(2)])
    with pytest.raises(ImpossibleEvidence, match="row 2"):
        predict_proba(model, {"A0": ["a", "b"], "A2": ["a", "a"]}, "A1")
    with pytest.raises(ImpossibleEvidence, match="row 1"):
        impute(model, {"A0": ["b", "a"], "A1": [None, None], "A2": ["a", "a"]})
    assert predict_proba(model, {"A0": ["a"], "A1": ["a"]}, "A2") == pytest.approx(np.array([[0.5, 0.5]]))


def test_a_model_too_wide_for_tables_is_still_predicted_given_all_else():
    model = grid_model(np.random.default_rng(0), 15, 40)
    rows = np.random.default_rng(1).integers(0, 2, (200, 600)).astype(np.uint16)
    answers = predict_proba(model, to_frame(model.domain, rows, "polars"), "A77")
    flipped = [rows.copy(), rows.copy()]
    for level in range(2):
        flipped[level][:, 77] = level
    odds = model.log_potentials(flipped[1]) - model.log_potentials(flipped[0])
    assert answers[:, 1] == pytest.approx(1 / (1 + np.exp(-odds)), abs=1e-9)


def test_a_dataset_is_predicted_by_its_distinct_rows():
    model = typed_model()
    data = unless.read(pd.DataFrame({"n": [1, 1, 2], "t": ["x", "x", "y"], "b": [True] * 3, "c": ["lo"] * 3}))
    assert predict_proba(model, data, "t").tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_a_model_offers_them_as_methods():
    model = typed_model()
    table = {"n": [1, None], "t": ["y", None], "b": [True, False], "c": ["hi", "lo"]}
    assert np.array_equal(model.predict_proba(table, target="n"), predict_proba(model, table, "n"))
    assert model.predict(table, target="n").tolist() == [2, 2]
    assert model.impute(table) == impute(model, table)


@pytest.mark.parametrize(
    "empty",
    [
        lambda: pd.Series([np.nan, np.nan]),
        lambda: pd.array([None, None], "boolean"),
        lambda: pl.Series([None, None], dtype=pl.Float64),
        lambda: pl.Series([None, None]),
        lambda: pl.Series(["no", None], dtype=pl.Enum(["no"])),
        lambda: pa.nulls(2),
        lambda: pa.array([None, None], pa.float64()),
        lambda: np.array([np.nan, np.nan]),
        lambda: np.array(["no", ""], dtype="U2"),
    ],
)
def test_a_column_whose_type_cannot_hold_the_level_gets_one_that_can(empty):
    domain = unless.Domain((unless.Variable("v", ("no", "yes")), unless.Variable("w", ("a", "b"))))
    model = LogLinearModel(unless.FeatureSet(domain, [unless.Feature.of({"v": "yes"})]), [1.0])
    column = empty()
    makers = {"polars": pl.DataFrame, "pyarrow": pa.table, "pandas": pd.DataFrame, "numpy": dict}
    make = makers[type(column).__module__.partition(".")[0]]
    filled = impute(model, make({"v": column, "w": ["a", "b"]}))
    assert list(map(str, filled["v"]))[1] == "yes"


def test_arrays_grow_where_a_level_is_longer_than_their_text():
    domain = unless.Domain((unless.Variable("x0", ("no", "maybe")), unless.Variable("x1", ("1", "2"))))
    model = LogLinearModel(unless.FeatureSet(domain, [unless.Feature.of({"x0": "maybe"})]), [1.0])
    assert impute(model, np.array([["no", "1"], ["", "2"]])).tolist() == [["no", "1"], ["maybe", "2"]]
    assert impute(model, np.array([[np.nan, 1.0]])).tolist() == [["maybe", 1.0]]


def test_rows_are_impossible_whatever_is_asked_about_them():
    # A0 and A1 exclude each other's b, A3 has no level left where A2 is b; A4 is free.
    excluded = [[(0, 1, True), (1, 1, True)], [(2, 1, True), (3, 0, True)], [(2, 1, True), (3, 1, True)]]
    model = model_of(domain_of([2] * 5), [(literals, -INF) for literals in excluded])
    for row in ({"A0": "b", "A1": "b"}, {"A2": "b"}):
        with pytest.raises(ImpossibleEvidence):
            model.query("A4", row)
        table = {name: ["a", label] for name, label in row.items()}
        with pytest.raises(ImpossibleEvidence, match="row 2"):
            predict_proba(model, table, "A4")
        with pytest.raises(ImpossibleEvidence, match="row 2"):
            impute(model, {**table, "A4": [None, None]} | ({} if "A2" in row else {"A3": ["a", "a"]}))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("zeros", [0.0, 0.1])
def test_tables_scope_by_scope_equal_feature_by_feature(monkeypatch, seed, zeros):
    rng = np.random.default_rng(seed)
    model = random_model(rng, 9, max_levels=4, n_features=60, zeros=zeros)
    hidden = rng.choice(9, 5, replace=False)
    codes = np.column_stack([rng.integers(0, size, 40) for size in model.domain.n_levels])
    codes[:, hidden] = -1
    for part in imputation.parts_of(model, (codes == -1)[0], hidden.tolist()):
        asked = [ask(codes) for ask in (part.marginals, part.most_probable)]
        tables, best = asked
        monkeypatch.setattr(imputation, "_WORTH_TABLES", INF)
        np.testing.assert_allclose(part.marginals(codes), tables, atol=1e-12)
        np.testing.assert_array_equal(part.most_probable(codes), best)
        monkeypatch.setattr(imputation, "_WORTH_TABLES", 0)
        np.testing.assert_allclose(part.marginals(codes), tables, atol=1e-12)


def test_many_hidden_variables_are_asked_about_in_one_pass(monkeypatch):
    rng = np.random.default_rng(0)
    model = random_model(rng, 16, max_levels=2, max_length=2)
    data = unless.Dataset.from_codes(model.domain, rng.integers(0, 2, (30, 16)))
    passes = []
    whole = imputation.HiddenPart.marginals
    monkeypatch.setattr(imputation.HiddenPart, "marginals", lambda *given: passes.append(1) or whole(*given))
    model.conditional_marginal_log_likelihood(data, query=model.domain.names[:8])
    assert len(passes) <= 8
    planned = []
    monkeypatch.setattr(imputation, "MAX_STATES", 1)
    monkeypatch.setattr(imputation, "_MOST_AT_ONCE", 1)
    make = imputation.ExactSolver
    monkeypatch.setattr(imputation, "ExactSolver", lambda *given: planned.append(1) or make(*given))
    cells = data.rows.astype(np.int64)
    cells[:, :4] = -1
    n_parts = len(list(imputation.parts_of(model, (cells == -1)[0], range(4))))
    imputation.hidden_marginals(model, cells, range(4))
    assert len(planned) == n_parts
