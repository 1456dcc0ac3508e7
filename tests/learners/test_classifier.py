"""UnlessClassifier: what it is given, what it predicts, and how it is kept."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import unless
from unless.errors import DataError, NotFitted, SettingError, UnknownName
from unless.learners.classifier import joined_pairs
from unless.learners.examples import find_cuts


def frame(n_rows=400, seed=0):
    """Make a table in which y follows a and b, and c nothing."""
    rng = np.random.default_rng(seed)
    a, b = rng.choice(["p", "q", "r"], n_rows), rng.choice(["s", "t"], n_rows)
    is_yes = np.where(b == "s", a == "p", a == "q")
    y = np.where(rng.random(n_rows) < 0.9, is_yes, rng.random(n_rows) < 0.5)
    return pd.DataFrame({"a": a, "b": b, "c": rng.choice(["u", "v"], n_rows), "y": np.where(y, "yes", "no")})


@pytest.fixture(scope="module")
def fitted():
    table = frame()
    return unless.UnlessClassifier().fit(table[["a", "b", "c"]], table["y"])


def test_it_predicts_labels_and_probabilities(fitted):
    table = frame()
    X = table[["a", "b", "c"]]
    chances = fitted.predict_proba(X)
    assert fitted.classes_.tolist() == ["no", "yes"]
    assert chances.shape == (400, 2)
    assert chances.sum(axis=1) == pytest.approx(1)
    assert np.array_equal(fitted.predict(X), fitted.classes_[chances.argmax(axis=1)])
    assert fitted.predict_log_proba(X) == pytest.approx(np.log(chances))
    assert fitted.score(X, table["y"]) == (fitted.predict(X) == table["y"]).mean() > 0.9
    assert fitted.score(X, table["y"], sample_weight=(table["y"] == "no") * 1) != fitted.score(X, table["y"])


def test_it_knows_its_columns_its_learner_and_what_matters(fitted):
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert fitted.n_features_in_ == 3
    assert isinstance(fitted.estimator_, unless.GGS)
    assert fitted.target_ == "y"
    assert fitted.statements_.target == "y"
    assert {name for one in fitted.statements_.findings for name in one.pair} == {"a", "b", "y"}


@pytest.mark.parametrize(
    "make", [lambda table: table, unless.read, pl.from_pandas, lambda t: t.to_dict("list")]
)
def test_a_target_inside_the_table_gives_the_same_as_labels_beside_it(make, fitted):
    table = frame()
    est = unless.UnlessClassifier(target="y").fit(make(table))
    X = table[["a", "b", "c"]]
    assert np.array_equal(est.predict_proba(X), fitted.predict_proba(X))
    assert est.score(make(table)) == pytest.approx(fitted.score(X, table["y"]))


def test_a_file_holds_its_labels(tmp_path, fitted):
    table = frame()
    table.to_csv(tmp_path / "table.csv", index=False)
    est = unless.UnlessClassifier(target="y").fit(tmp_path / "table.csv")
    assert np.array_equal(est.predict(tmp_path / "table.csv"), fitted.predict(table))
    assert est.score(str(tmp_path / "table.csv")) == fitted.score(table, table["y"])
    table.loc[3, "y"] = None
    table.to_csv(tmp_path / "holes.csv", index=False)
    est = unless.UnlessClassifier(target="y").fit(tmp_path / "holes.csv")
    assert est.notes_[-1] == "Left out 1 row without a label in 'y'."
    assert est.classes_.tolist() == ["no", "yes"]
    assert est.data_.n_rows == 399
    polars = {name: [None if pd.isna(one) else one for one in table[name]] for name in table}
    for kept in (table, pl.DataFrame(polars)):
        again = unless.UnlessClassifier(target="y").fit(kept)
        assert again.notes_[-1] == "Left out 1 row without a label in 'y'."
        assert np.array_equal(again.predict_proba(table), est.predict_proba(table))
    numbers = table.assign(y=table["y"].map({"yes": 1.0, "no": 0.0}))
    again = unless.UnlessClassifier(target="y").fit(numbers, sample_weight=np.full(400, 2))
    assert again.data_.n_rows == 798
    assert again.classes_.tolist() == [0.0, 1.0]
    with pytest.raises(DataError, match="labels are missing"):
        unless.UnlessClassifier().fit(
            table[["a", "b"]], table["y"].astype(object).where(table["y"].notna(), None)
        )


@pytest.mark.parametrize(
    "labels",
    [np.array(["no", "yes"]), np.array([3, 7]), np.array([False, True]), np.array([1.0, 2.0]), [-1, 1],
     np.array(["no", "yes"], dtype=object), np.array([0, 1], dtype=np.int8)],
    ids=["text", "int", "bool", "float", "list", "object", "int8"],
)  # fmt: skip
def test_labels_come_back_as_they_were_given(labels, tmp_path):
    table = frame(200)
    y = np.asarray(labels)[(table["y"] == "yes").astype(int)]
    est = unless.UnlessClassifier().fit(table[["a", "b"]], y)
    told = est.predict(table[["a", "b"]])
    assert told.dtype == y.dtype
    assert set(told.tolist()) <= set(y.tolist())
    unless.save(est, tmp_path / "m.unless")
    back = unless.load(tmp_path / "m.unless").predict(table[["a", "b"]])
    assert np.array_equal(back, told)
    assert back.dtype == told.dtype


def test_a_category_and_a_name_of_the_labels_are_kept():
    table = frame(200)
    y = pd.Series(pd.Categorical(table["y"], ["yes", "no"]), name="answer")
    est = unless.UnlessClassifier().fit(table[["a", "b"]], y)
    assert est.target_ == "answer"
    assert est.classes_.tolist() == ["no", "yes"]


def test_levels_that_were_not_seen_and_missing_values_are_left_out(fitted):
    rows = pd.DataFrame({"a": ["new", None, "p"], "b": ["s", "s", "s"], "c": ["u", "u", "strange"]})
    new, none, other = fitted.predict_proba(rows)
    assert np.array_equal(new, none)
    table = frame()
    known = fitted.predict_proba(pd.DataFrame({"a": ["p", "q", "r"], "b": "s", "c": "u"}))
    shares = table["a"].value_counts(normalize=True).sort_index().to_numpy()
    assert new == pytest.approx(shares @ known)
    assert other[1] > 0.8


def test_missing_values_are_a_level_where_the_training_rows_have_some():
    table = frame()
    table.loc[(table["a"] == "p"), "a"] = None
    est = unless.UnlessClassifier(target="y").fit(table)
    rows = pd.DataFrame({"a": [None, "q"], "b": ["s", "s"], "c": ["u", "u"]})
    assert est.predict(rows).tolist() == ["yes", "no"]
    assert est.data_.domain["a"].levels == ("q", "r", "missing")


def test_numbers_are_cut_and_fall_into_their_group_whatever_they_are():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0.5).astype(int)
    est = unless.UnlessClassifier().fit(X, y)
    variable = est.data_.domain["x0"]
    assert variable.is_ordered
    assert len(variable.cuts) + 1 == len(variable.levels)
    assert est.score(X, y) > 0.9
    low, high, none = est.predict_proba([[-1e9, 0.0], [1e9, 0.0], [np.nan, 0.0]])[:, 1]
    assert low < 0.1 < none < 0.9 < high
    assert np.array_equal(est.predict(X.astype(object)), est.predict(X))
    assert np.array_equal(est.predict(pd.DataFrame(X, columns=["x0", "x1"])), est.predict(X))


def test_cuts_follow_the_weights_and_few_values_stay_levels():
    numbers = np.arange(20.0)
    twice = np.repeat(numbers, 2)
    weights = np.full(20, 2)
    assert find_cuts({"x": numbers}, weights) == find_cuts({"x": twice}, np.ones(40))
    assert find_cuts({"x": numbers % 10}, weights) == {}
    assert find_cuts({"x": np.array(["a"] * 20)}, weights) == {}
    ((cut,),) = find_cuts({"x": np.r_[np.zeros(100), numbers]}, np.ones(120)).values()
    assert cut > 0


def test_weights_are_copies():
    table = frame(60)
    times = np.arange(60) % 3
    weighted = unless.UnlessClassifier(target="y").fit(table, sample_weight=times)
    repeated = unless.UnlessClassifier(target="y").fit(table.loc[table.index.repeat(times)])
    assert np.array_equal(weighted.predict_proba(table), repeated.predict_proba(table))


def test_the_order_of_rows_and_columns_changes_no_bit(fitted):
    table = frame()
    moved = table.sample(frac=1, random_state=1)[["y", "c", "b", "a"]]
    est = unless.UnlessClassifier(target="y").fit(moved)
    assert np.array_equal(est.predict_proba(table), fitted.predict_proba(table))


def test_a_saved_classifier_comes_back_as_it_was(fitted, tmp_path):
    path, again = tmp_path / "m.unless", tmp_path / "n.unless"
    unless.save(fitted, path)
    back = unless.load(path)
    assert isinstance(back, unless.UnlessClassifier)
    assert np.array_equal(back.predict_proba(frame()), fitted.predict_proba(frame()))
    assert back.statements_ == fitted.statements_
    assert back.feature_names_in_.tolist() == ["a", "b", "c"]
    assert back.conditional_.tried == fitted.conditional_.tried
    assert back.estimator_.structure_ == fitted.estimator_.structure_
    unless.save(back, again)
    assert path.read_bytes() == again.read_bytes()
    unless.save(fitted, path, rows=False)
    assert np.array_equal(unless.load(path).predict(frame()), fitted.predict(frame()))


@pytest.mark.parametrize(
    "learner", [unless.GSMN(alpha=0.01), unless.CSGS, "DTSL"], ids=["estimator", "class", "name"]
)
def test_any_learner_will_do(learner, tmp_path):
    table = frame(300)
    est = unless.UnlessClassifier(target="y", learner=learner).fit(table)
    assert est.score(table) > 0.85
    unless.save(est, tmp_path / "m.unless")
    back = unless.load(tmp_path / "m.unless")
    assert type(back.estimator_) is type(est.estimator_)
    assert repr(back.estimator_) == repr(est.estimator_)
    assert repr(back) == repr(est) or isinstance(learner, type)
    assert np.array_equal(back.predict_proba(table), est.predict_proba(table))
    if isinstance(learner, unless.GSMN):
        assert repr(est) == "UnlessClassifier(target='y', learner=GSMN(alpha=0.01))"
        assert not hasattr(learner, "structure_")
        assert back.learner.alpha == 0.01


def test_pairs_that_structures_join_with_the_target():
    table = frame()
    data = unless.read(table)
    graph = unless.Graph(data.domain, [("a", "y"), ("b", "y"), ("a", "b"), ("b", "c")])
    assert joined_pairs(graph, "y") == {("a", "b")}
    features = graph.features()
    assert joined_pairs(features, "y") == {("a", "b")}
    link = unless.Link(("a", "y"), (unless.Region({"c": ("u",)}),))
    assert joined_pairs(unless.LabelledGraph(data.domain, [link]), "y") == {("a", "c")}
    assert joined_pairs(unless.CSGS().fit(data).structure_, "y") <= {("a", "b"), ("a", "c"), ("b", "c")}


def test_scikit_learns_tools_work():
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    table = frame(150)
    X, y = table[["a", "b", "c"]], table["y"]
    assert cross_val_score(unless.UnlessClassifier(), X, y, cv=3, error_score="raise").mean() > 0.7
    whole = cross_val_score(unless.UnlessClassifier(target="y"), table, cv=3, error_score="raise")
    assert whole.mean() > 0.7
    pipe = make_pipeline(FunctionTransformer(), unless.UnlessClassifier(learner=unless.GSMN()))
    grid = {"unlessclassifier__learner__alpha": [0.01, 0.1]}
    search = GridSearchCV(pipe, grid, cv=2, scoring="neg_log_loss", error_score="raise").fit(X, y)
    assert search.best_params_["unlessclassifier__learner__alpha"] in (0.01, 0.1)
    assert search.predict(X).shape == (150,)
    # A level that only the held-out fold has is no error.
    rare = X.assign(c=np.where(np.arange(150) == 3, "once", X["c"]))
    assert cross_val_score(unless.UnlessClassifier(), rare, y, cv=3, error_score="raise").mean() > 0.7


def test_wrong_use_gets_one_sentence(fitted, tmp_path):
    table = frame(50)
    X, y = table[["a", "b", "c"]], table["y"]
    est = unless.UnlessClassifier
    wrong = [
        (lambda: est().fit(X), SettingError, "requires y"),
        (lambda: est(target="z").fit(table), DataError, "no column 'z'"),
        (lambda: est(target="z").fit(unless.read(table)), UnknownName, "'z'"),
        (lambda: est(target=3).fit(X, y), SettingError, "target=3"),
        (lambda: est(learner="XYZ").fit(X, y), UnknownName, "XYZ"),
        (lambda: est(learner=5).fit(X, y), SettingError, "learner=5"),
        (lambda: est(max_memory="lots").fit(X, y), SettingError, "lots"),
        (lambda: est().fit(X, y[:-1]), DataError, "49 labels for 50 rows"),
        (lambda: est().fit(X, [None, *y[1:]]), DataError, "labels are missing"),
        (lambda: est().fit(X, np.array(["1", 1] * 25, dtype=object)), DataError, "several types"),
        (lambda: est().fit(X, np.arange(50) / 7), DataError, "Unknown label type"),
        (lambda: est().fit(X, np.ones((50, 2))), DataError, "shape"),
        (lambda: est().fit(unless.read(table), y), DataError, "name their column"),
        (lambda: est(target="y").fit(unless.read(table), sample_weight=y), DataError, "count_column"),
        (lambda: est(target="y").fit(table[["y"]]), DataError, "no column to predict from"),
        (lambda: est().fit(X, y, sample_weight=[1, 2]), DataError, "2 weights for 50 rows"),
        (lambda: est().predict(X), NotFitted, "fit"),
        (lambda: fitted.predict(X[["a", "b"]]), DataError, "no column 'c'"),
        (lambda: fitted.predict(unless.read(X[["a", "b"]])), DataError, "no column 'c'"),
        (lambda: fitted.predict(X[["a", "b"]].to_numpy()), DataError, "expecting 3 features"),
        (lambda: fitted.score(X), DataError, "no column 'y'"),
        (lambda: fitted.score(X, y[:-1]), DataError, "49 labels"),
        (lambda: fitted.set_params(learner__alpha=1), SettingError, "learner=None"),
        (lambda: unless.save(est(), tmp_path / "m.unless"), NotFitted, "fit"),
    ]
    for call, error, words in wrong:
        with pytest.raises(error, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_a_damaged_file_is_refused(fitted, tmp_path):
    from dataclasses import replace

    from unless.formats.record import save_record
    from unless.learners.base import make_record

    record = make_record(fitted)
    for results in (
        {"energies": [0.0]},
        {"terms": [("nobody", "a")]},
        {"learner_name": "PC"},
        {"shares": ["x"]},
    ):
        save_record(replace(record, results={**record.results, **results}), tmp_path / "m.unless")
        with pytest.raises(unless.errors.FileFormatError, match="does not hold"):
            unless.load(tmp_path / "m.unless")


def test_arrays_follow_the_order_of_the_columns_learned_from(fitted):
    table = frame()
    X = table[["a", "b", "c"]]
    assert np.array_equal(fitted.predict(X.to_numpy()), fitted.predict(X[["c", "b", "a"]]))
    assert np.array_equal(fitted.predict(X.to_numpy().tolist()), fitted.predict(X))
    assert fitted.predict(unless.read(table)).shape == (unless.read(table).n_distinct,)


# ------------------------------------------------------------------ rows with missing values


def holed(n_rows=600, seed=1, share=0.3):
    """Return a table whose b follows a, and the same with some b missing mostly where a is p."""
    rng = np.random.default_rng(seed)
    a = rng.choice(["p", "q"], n_rows)
    b = np.where(rng.random(n_rows) < 0.9, np.where(a == "p", "s", "t"), rng.choice(["s", "t"], n_rows))
    c = rng.choice(["u", "v"], n_rows)
    y = np.where(
        rng.random(n_rows) < 0.85, np.where(b == "s", "yes", "no"), rng.choice(["no", "yes"], n_rows)
    )
    whole = pd.DataFrame({"a": a, "b": b, "c": c, "y": y}).astype(object)
    gone = rng.random(n_rows) < np.where(a == "p", 1.6, 0.4) * share
    return whole, whole.assign(b=whole["b"].mask(gone, None))


def test_rows_with_missing_values_of_a_dataset_are_learned_from(tmp_path):
    _, table = holed(share=0.15)
    table.loc[:11, "y"] = None
    data = unless.read(table)
    assert set(data.detail.missing) == {"b", "y"}
    est = unless.UnlessClassifier(target="y").fit(data)
    assert any("Left out 12 rows without a label in 'y'" in note for note in est.notes_)
    told = est.network_.fit_report.completed
    labelled = table[table["y"].notna()]
    assert told.n_complete == len(labelled.dropna())
    assert told.n_incomplete == len(labelled) - len(labelled.dropna())
    rows = pd.DataFrame({"a": ["p", "q", "p"], "b": [None, None, "t"], "c": ["u", "u", None]})
    chances = est.predict_proba(rows)
    assert chances.sum(axis=1) == pytest.approx(1)
    # What is missing is guessed by what the row shows: b is s where a is p.
    assert chances[0, 1] > 0.7
    assert chances[1, 1] < 0.3
    unless.save(est, tmp_path / "m.unless", rows=False)
    back = unless.load(tmp_path / "m.unless")
    assert back.predict_proba(rows).tobytes() == chances.tobytes()
    assert est.fit(data).predict_proba(rows).tobytes() == chances.tobytes()
    assert est.fit(holed()[0]).network_ is None


def test_hidden_columns_are_summed_over_given_the_rest():
    _, table = holed(share=0.15)
    est = unless.UnlessClassifier(target="y").fit(unless.read(table))
    rows = [
        {"a": "p", "b": None, "c": None},
        {"a": None, "b": "s", "c": "u"},
        {"a": None, "b": None, "c": None},
    ]
    for row, found in zip(rows, est.predict_proba(rows), strict=True):
        known = {name: label for name, label in row.items() if label is not None}
        hidden = [name for name in "abc" if name not in known]
        law = est.network_.query(hidden, known).probabilities
        expected = np.zeros(2)
        for place in np.ndindex(*law.shape):
            levels = [
                est.network_.domain[name].levels[code] for name, code in zip(hidden, place, strict=True)
            ]
            filled = {**known, **dict(zip(hidden, levels, strict=True))}
            expected += law[place] * est.predict_proba([filled])[0]
        assert found == pytest.approx(expected)


def test_a_row_is_predicted_alike_alone_and_among_others(monkeypatch):
    _, table = holed(share=0.15)
    est = unless.UnlessClassifier(target="y").fit(unless.read(table))
    rows = [
        {"a": "p", "b": None, "c": None},
        {"a": None, "b": None, "c": "v"},
        {"a": "q", "b": "s", "c": "u"},
    ]
    exact = est.predict_proba(rows)
    assert np.array_equal(exact[1:2], est.predict_proba(rows[1:2]))
    monkeypatch.setattr("unless.inference.completing.MOST_AVERAGED", 1)
    drawn = est.predict_proba(rows)
    assert np.array_equal(drawn[1:2], est.predict_proba(rows[1:2]))
    assert drawn == pytest.approx(exact, abs=0.15)
    assert drawn[2] == pytest.approx(exact[2])


def test_columns_of_a_frame_are_prepared_as_elsewhere(tmp_path):
    rng = np.random.default_rng(3)
    n = 300
    price = rng.gamma(5, 300, n)
    tools = [
        ";".join(one for one in ("Excel", "Python", "R") if rng.random() < 0.5) or None for _ in range(n)
    ]
    colors = rng.choice(["red", "blue", "green"], n)
    table = pd.DataFrame(
        {
            "customer_id": [f"c{i}" for i in range(n)],
            "price": [f"${one:,.2f}" for one in price],
            "tools": tools,
            **{f"color_{one}": (colors == one).astype(int) for one in ("red", "blue", "green")},
            "day": pd.date_range("2019-01-01", periods=n, freq="5D").astype(str),
            "level": rng.choice(["low", "medium", "high"], n),
        }
    )
    y = np.where((price > 1500) ^ (rng.random(n) < 0.1), "yes", "no")
    est = unless.UnlessClassifier().fit(table, y)
    names = {"price", "tools: Excel", "color", "day (year)", "level"}
    assert names <= set(est.feature_names_in_)
    assert "customer_id" not in est.feature_names_in_
    assert est.data_.domain["level"].levels == ("low", "medium", "high")
    assert est.data_.domain["price"].cuts == unless.read(table).domain["price"].cuts
    assert est.score(table, y) > 0.75
    hidden = est.predict_proba(table.assign(tools=None))
    assert not np.array_equal(hidden, est.predict_proba(table))
    assert est.predict(table.head(5)).tolist() == est.predict(table).tolist()[:5]
    unless.save(est, tmp_path / "m.unless")
    assert np.array_equal(unless.load(tmp_path / "m.unless").predict_proba(table), est.predict_proba(table))
    with pytest.raises(DataError, match="no column 'price', which UnlessClassifier learned from"):
        est.predict(table.drop(columns="price"))


def test_dates_that_were_split_are_split_again(tmp_path):
    days = pd.date_range("2018-01-01", periods=900)
    y = np.where(days.year >= 2019, "hi", "lo")
    table = pd.DataFrame({"day": days.strftime("%m/%d/%Y"), "g": list("ab") * 450, "y": y})
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    for source in (table, str(path), unless.read(table)):
        est = unless.UnlessClassifier("y").fit(source)
        assert "day (quarter)" in est.feature_names_in_ or "day (year)" in est.feature_names_in_
        for raw in (table.drop(columns="y"), table[:5], table[700:701], str(path)):
            places = raw.index if isinstance(raw, pd.DataFrame) else table.index
            assert (est.predict(raw) == y[places]).mean() > 0.9
        assert est.score(str(path)) == est.score(table) > 0.9


def test_a_label_that_a_file_lacks_is_never_predicted(tmp_path):
    table = pd.DataFrame({"a": list("pq") * 50, "y": list("uv") * 50})
    est = unless.UnlessClassifier("y").fit(table)
    path = tmp_path / "t.csv"
    path.write_text("a,y\np,u\nq,\nq,w\nq,v\n")
    assert est.score(str(path)) == 0.5
