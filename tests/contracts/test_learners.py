"""What every learner promises, whatever it learns."""

import random

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import unless
from unless.errors import DataError, NotFitted, SettingError, UnknownName
from unless.learners.catalogue import LEARNERS, learner_named

EVERY = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)


def chain(n_variables=14, n_rows=1500, n_levels=3, seed=0):
    """Make a frame in which each column mostly repeats the one before it: too wide for the dense cube."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, n_levels, n_rows)]
    for _ in range(n_variables - 1):
        columns.append(np.where(rng.random(n_rows) < 0.7, columns[-1], rng.integers(0, n_levels, n_rows)))
    return pd.DataFrame(
        {f"v{place:02}": [f"l{code}" for code in column] for place, column in enumerate(columns)}
    )


def saved(est, folder):
    path = folder / "model.unless"
    unless.save(est, path)
    return path.read_bytes()


@EVERY
def test_fit_returns_the_estimator_with_names_and_counts(learner):
    frame = chain(6)
    est = learner()
    assert est.fit(frame, None) is est
    assert list(est.feature_names_in_) == list(frame.columns)
    assert est.n_features_in_ == 6
    assert 0 < est.n_distinct_tests_ <= est.n_tests_


@EVERY
def test_row_order_and_repetition_by_counts_leave_the_bytes_alone(learner, tmp_path):
    frame = chain()
    counted = frame.value_counts().reset_index(name="n")
    shuffled = frame.sample(frac=1, random_state=1)
    first = saved(learner().fit(frame), tmp_path)
    assert saved(learner().fit(shuffled), tmp_path) == first
    assert saved(learner().fit(unless.read(counted, count_column="n")), tmp_path) == first
    assert saved(learner().fit(counted.drop(columns="n"), sample_weight=counted["n"]), tmp_path) == first


@EVERY
def test_workers_leave_the_bytes_alone(learner, tmp_path):
    data = unless.read(chain())
    first = saved(learner(n_jobs=1).fit(data), tmp_path)
    assert saved(learner(n_jobs=2).fit(data), tmp_path) == first
    assert saved(learner(n_jobs=3, show_progress=False, max_memory="1 GB").fit(data), tmp_path) == first


@EVERY
@pytest.mark.parametrize("n_variables", [5, 14])
def test_permuting_columns_permutes_the_answer_and_nothing_else(learner, n_variables):
    frame = chain(n_variables)
    est = learner().fit(frame)
    moved = learner().fit(frame[list(frame.columns[::-1])])
    assert (moved.n_tests_, moved.n_distinct_tests_) == (est.n_tests_, est.n_distinct_tests_)
    graphs = {frozenset(context.items()): graph.edges for context, graph in moved.structure_}
    assert {frozenset(context.items()): graph.edges for context, graph in est.structure_} == graphs


@EVERY
def test_a_saved_estimator_comes_back_as_it_was(learner, tmp_path):
    est = learner(alpha=0.01, required_edges=[("v00", "v03")], n_jobs=2).fit(chain(5))
    first = saved(est, tmp_path)
    back = unless.load(tmp_path / "model.unless")
    assert type(back) is learner
    assert back.alpha == 0.01
    assert back.n_jobs is None
    assert (back.n_tests_, back.n_distinct_tests_) == (est.n_tests_, est.n_distinct_tests_)
    assert dict(back.structure_) == dict(est.structure_)
    assert saved(back, tmp_path) == first


@EVERY
def test_constant_columns_are_linked_to_nothing(learner):
    frame = chain(5).assign(still="always")
    est = learner().fit(frame)
    assert all("still" not in edge for edge in est.structure_.given().edges)
    assert any("'still'" in note for note in est.notes_)


@EVERY
def test_degenerate_tables_give_empty_graphs(learner):
    one_row = pd.DataFrame({"a": ["x"], "b": ["y"]})
    for frame in (one_row, pd.concat([one_row] * 5)):
        est = learner().fit(frame)
        assert len(est.structure_) == 1
        assert est.structure_.given().edges == frozenset()


@EVERY
def test_thirty_levels_are_no_obstacle(learner):
    codes = np.arange(3000) % 30
    frame = pd.DataFrame({"a": codes, "b": (codes * 7 + 1) % 30, "c": np.arange(3000) // 30 % 30})
    est = learner().fit(frame)
    assert est.structure_.given().edges == {("a", "b")}


@EVERY
def test_required_and_forbidden_edges_are_obeyed_everywhere(learner):
    frame = chain()
    est = learner(required_edges=[("v13", "v00")], forbidden_edges=[("v01", "v02")]).fit(frame)
    for _, graph in est.structure_:
        assert graph.has_edge("v00", "v13")
        assert not graph.has_edge("v01", "v02")


@EVERY
@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"alpha": 0}, SettingError, "alpha"),
        ({"alpha": 1.0}, SettingError, "alpha"),
        ({"alpha": "small"}, SettingError, "alpha"),
        ({"test": "t-test"}, SettingError, "'t-test'"),
        ({"order": "random"}, SettingError, "order"),
        ({"order": ["v00", "v01"]}, SettingError, "leaves out 'v02'"),
        ({"order": ["v00", "v01", "v02", "v99"]}, UnknownName, "v99"),
        ({"max_blanket": -1}, SettingError, "max_blanket"),
        ({"undecided": "guess"}, SettingError, "undecided"),
        ({"required_edges": [("v00", "nobody")]}, UnknownName, "nobody"),
        ({"required_edges": ["v00"]}, SettingError, "required_edges"),
        ({"required_edges": [("v00", "v01")], "forbidden_edges": [("v01", "v00")]}, SettingError, "both"),
        ({"max_memory": "lots"}, SettingError, "lots"),
    ],
)
def test_bad_settings_get_one_sentence(learner, settings, error, words):
    with pytest.raises(error, match=words) as caught:
        learner(**settings).fit(chain(4))
    assert str(caught.value).count("\n") == 0


@EVERY
def test_settings_can_be_read_changed_cloned_and_shown(learner):
    est = learner(alpha=0.01)
    assert clone(est).get_params() == est.get_params()
    assert repr(est) == f"{learner.__name__}(alpha=0.01)"
    assert est.set_params(alpha=0.2).alpha == 0.2
    with pytest.raises(SettingError, match="alhpa"):
        est.set_params(alhpa=0.1)
    with pytest.raises(NotFitted, match="fit"):
        est.check_fitted()


@EVERY
def test_learning_is_quiet_and_leaves_the_global_generators_alone(learner, capsys):
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    learner().fit(chain())
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    assert capsys.readouterr() == ("", "")


@EVERY
def test_work_that_would_not_fit_is_refused_with_the_estimate(learner):
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.integers(0, 2, (4000, 400)).astype(str)).rename(columns=str)
    with pytest.raises(unless.errors.TooLarge, match="MiB"):
        learner(max_memory="64 MB").fit(wide)


@EVERY
def test_an_empty_dataset_is_refused(learner):
    domain = unless.Domain((unless.Variable("a", ("x", "y")), unless.Variable("b", ("x", "y"))))
    with pytest.raises(DataError, match="no rows"):
        learner().fit(unless.Dataset.from_codes(domain, np.zeros((0, 2))))


def test_a_learner_is_found_by_name_in_any_case():
    assert learner_named("csgs") is unless.CSGS
    with pytest.raises(UnknownName, match="PC"):
        learner_named("PC")
