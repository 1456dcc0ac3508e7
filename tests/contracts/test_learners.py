"""What every learner promises, whatever it learns."""

import random

import numpy as np
import pandas as pd
import pytest

import unless
from sharing import statements_made_once
from unless.errors import DataError, MissingValues, NotFitted, SettingError, UnknownName
from unless.learners.feature_search import FeatureLearner
from unless.learners.registry import LEARNERS, learner_named

EVERY = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
# One setting of each that is not its default, and that decides quickly.
QUICK = {
    "CSGS": {"alpha": 0.01},
    "CSPC": {"alpha": 0.01, "max_condition": 3},
    "GGS": {"alpha": 0.01},
    "GSMN": {"alpha": 0.01},
    "IBMAPHC": {"max_blanket": 4},
    "CSIBMAP": {"max_blanket": 4},
    "CSGSSL": {"alpha": 0.01},
    "CSMPL": {"max_blanket": 4},
    "GSSL": {"n_draws": 2000, "prune": [2, 5], "prior": unless.Gaussian(1.0) + unless.Laplace(2.0)},
    "DTSL": {"kappa": [0.01, 0.1], "prior": unless.Gaussian(1.5)},
    "ChowLiu": {"alpha": 0.01},
}
# One setting, where several could not be judged: there is a single row.
SINGLE = {"GSSL": {"prune": 2}, "DTSL": {"kappa": 0.01}}
# What scikit-learn expects and these learners do otherwise, on purpose.
EXCEPTIONS = {
    "check_estimators_nan_inf": "missing values are refused, but infinity is a label like any other",
    "check_estimators_empty_data_messages": "refused in other words",
    "check_fit2d_1feature": "refused in other words",
}


BAD_SETTINGS = [
    ({"alpha": 0}, SettingError, "alpha"),
    ({"alpha": 1.0}, SettingError, "alpha"),
    ({"alpha": "small"}, SettingError, "alpha"),
    ({"test": "t-test"}, SettingError, "'t-test'"),
    ({"order": "random"}, SettingError, "order"),
    ({"order": ["v00", "v01"]}, SettingError, "leaves out 'v02'"),
    ({"order": ["v00", "v01", "v02", "v99"]}, UnknownName, "v99"),
    ({"max_blanket": -1}, SettingError, "max_blanket"),
    ({"max_condition": -1}, SettingError, "max_condition"),
    ({"undecided": "guess"}, SettingError, "undecided"),
    ({"fdr": 0}, SettingError, "fdr"),
    ({"max_gate": -1}, SettingError, "max_gate"),
    ({"effect": 0}, SettingError, "effect"),
    ({"gates": "v00"}, SettingError, "gates"),
    ({"gates": ["v99"]}, UnknownName, "v99"),
    ({"forbidden_gates": "v00"}, SettingError, "forbidden_gates"),
    ({"adjacency": "some"}, SettingError, "adjacency"),
    ({"rule": "xor"}, SettingError, "rule"),
    ({"variant": "gsmn**"}, SettingError, "variant"),
    ({"n_restarts": -1}, SettingError, "n_restarts"),
    ({"required_edges": [("v00", "nobody")]}, UnknownName, "nobody"),
    ({"required_edges": ["v00"]}, SettingError, "required_edges"),
    ({"required_edges": [("v00", "v01")], "forbidden_edges": [("v01", "v00")]}, SettingError, "both"),
    ({"kappa": 0}, SettingError, "kappa"),
    ({"kappa": []}, SettingError, "kappa"),
    ({"kappa": [0.1, -1]}, SettingError, "kappa"),
    ({"min_rows": 0}, SettingError, "min_rows"),
    ({"n_draws": 0}, SettingError, "n_draws"),
    ({"n_draws": []}, SettingError, "n_draws"),
    ({"prune": 0}, SettingError, "prune"),
    ({"prune": []}, SettingError, "prune"),
    ({"prior": []}, SettingError, "prior"),
    ({"prior": "weak"}, SettingError, "prior"),
    ({"validation": 1.0}, SettingError, "validation"),
    ({"validation": 0}, SettingError, "validation"),
    ({"random_state": -1}, SettingError, "random_state"),
    ({"random_state": "dice"}, SettingError, "random_state"),
    ({"max_memory": "lots"}, SettingError, "lots"),
    ({"n_jobs": 0}, SettingError, "n_jobs"),
]


def chain(n_variables=14, n_rows=1500, n_levels=3, seed=0):
    """Make a frame in which each column mostly repeats the one before it: too wide for the dense cube."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, n_levels, n_rows)]
    for _ in range(n_variables - 1):
        columns.append(np.where(rng.random(n_rows) < 0.7, columns[-1], rng.integers(0, n_levels, n_rows)))
    return pd.DataFrame(
        {f"v{place:02}": [f"l{code}" for code in column] for place, column in enumerate(columns)}
    )


def quick(learner, **settings):
    return learner(**{**QUICK[learner.__name__], **settings})


def saved(est, folder):
    path = folder / "model.unless"
    unless.save(est, path)
    return path.read_bytes()


def is_of_features(learner):
    return issubclass(learner, FeatureLearner)


def has(learner, setting):
    return setting in learner.default_settings()


def linked(structure):
    """Return the pairs that are linked in some context."""
    if isinstance(structure, unless.CanonicalModel):
        return structure.given().edges
    return structure.graph().edges if isinstance(structure, unless.FeatureSet) else structure.edges


def graphs(structure):
    """Return every graph of a structure."""
    if isinstance(structure, unless.CanonicalModel):
        return [graph for _, graph in structure]
    return [structure]


def answer(est):
    """Return what was learned, whatever the order of the columns."""
    if is_of_features(type(est)):
        weights = est.network_.weights.tolist()
        return dict(zip(est.structure_, weights, strict=True))
    if isinstance(est.structure_, unless.CanonicalModel):
        return {frozenset(context.items()): graph.edges for context, graph in est.structure_}
    if isinstance(est.structure_, unless.LabelledGraph):
        return set(est.structure_), getattr(est, "claims_", None)
    return est.structure_.edges


@EVERY
def test_fit_returns_the_estimator_with_names_and_counts(learner):
    frame = chain(6)
    est = learner()
    assert est.fit(frame, None) is est
    assert list(est.feature_names_in_) == list(frame.columns)
    assert est.n_features_in_ == 6
    assert 0 <= est.n_distinct_tests_ <= est.n_tests_
    assert (est.n_tests_ == 0) == is_of_features(learner)
    assert ("v00", "v01") in linked(est.structure_)
    assert est.structure_.domain.names == tuple(frame.columns)
    assert set(est.structure_.domain["v00"].levels) == {"l0", "l1", "l2"}


@EVERY
def test_row_order_and_repetition_by_counts_leave_the_bytes_alone(learner, tmp_path):
    frame = chain(8)
    counted = frame.value_counts().reset_index(name="n")
    shuffled = frame.sample(frac=1, random_state=1)
    first = saved(quick(learner).fit(frame), tmp_path)
    assert saved(quick(learner).fit(shuffled), tmp_path) == first
    assert saved(quick(learner).fit(unless.read(counted, count_column="n")), tmp_path) == first
    weighted = quick(learner).fit(counted.drop(columns="n"), sample_weight=counted["n"])
    assert saved(weighted, tmp_path) == first


@EVERY
def test_workers_leave_the_bytes_alone(learner, tmp_path):
    data = unless.read(chain())
    # Statements are made without workers.
    with statements_made_once():
        first = saved(quick(learner, n_jobs=1).fit(data), tmp_path)
        assert saved(quick(learner, n_jobs=2).fit(data), tmp_path) == first
        bounded = quick(learner, n_jobs=3, show_progress=False, max_memory="1 GB")
        assert saved(bounded.fit(data), tmp_path) == first


@EVERY
@pytest.mark.parametrize("n_variables", [5, 14])
def test_permuting_columns_permutes_the_answer_and_nothing_else(learner, n_variables):
    frame = chain(n_variables)
    est = quick(learner).fit(frame)
    moved = quick(learner).fit(frame[list(frame.columns[::-1])])
    assert (moved.n_tests_, moved.n_distinct_tests_) == (est.n_tests_, est.n_distinct_tests_)
    assert answer(moved) == answer(est)


@EVERY
def test_a_saved_estimator_comes_back_as_it_was(learner, tmp_path):
    required = {"required_edges": [("v00", "v03")]} if has(learner, "required_edges") else {}
    est = quick(learner, n_jobs=2, **required).fit(chain(5))
    first = saved(est, tmp_path)
    back = unless.load(tmp_path / "model.unless")
    assert type(back) is learner
    assert back.answer_settings() == est.answer_settings()
    assert back.n_jobs is None
    assert (back.n_tests_, back.n_distinct_tests_) == (est.n_tests_, est.n_distinct_tests_)
    assert answer(back) == answer(est)
    for result in ("chosen_", "tried_", "score_", "assertions_", "claims_"):
        assert getattr(back, result, None) == getattr(est, result, None)
    assert (back.statements_, back.data_) == (est.statements_, est.data_)
    assert saved(back, tmp_path) == first


@EVERY
def test_constant_columns_are_linked_to_nothing(learner):
    frame = chain(5).assign(still="always")
    est = quick(learner).fit(frame)
    assert all("still" not in edge for edge in linked(est.structure_))
    assert any("'still'" in note for note in est.notes_)


@EVERY
def test_degenerate_tables_give_empty_graphs(learner):
    one_row = pd.DataFrame({"a": ["x"], "b": ["y"]})
    for frame in (one_row, pd.concat([one_row] * 5)):
        est = quick(learner, **SINGLE.get(learner.__name__, {})).fit(frame)
        assert linked(est.structure_) == frozenset()


@EVERY
def test_two_columns_are_enough(learner):
    frame = chain(2)
    assert linked(quick(learner).fit(frame).structure_) == {("v00", "v01")}
    est = quick(learner).fit(frame)
    net = est.network(frame)
    assert net.query("v00", {"v01": "l1"})["l1"] > 0.6


@EVERY
def test_thirty_levels_are_no_obstacle(learner):
    codes = np.arange(3000) % 30
    frame = pd.DataFrame({"a": codes, "b": (codes * 7 + 1) % 30, "c": np.arange(3000) // 30 % 30})
    est = quick(learner).fit(frame)
    assert ("a", "b") in linked(est.structure_)
    if not is_of_features(learner):
        assert linked(est.structure_) == {("a", "b")}


@EVERY
def test_missing_values_need_a_policy(learner):
    frame = chain(4)
    frame.loc[::7, "v01"] = None
    with pytest.raises(MissingValues, match="v01"):
        quick(learner).fit(unless.read(frame, strict=True))
    assert any("'v01'" in note for note in quick(learner).fit(frame).notes_)
    est = quick(learner).fit(unless.read(frame, missing="level"))
    assert ("v00", "v01") in linked(est.structure_)
    assert quick(learner).fit(unless.read(frame, missing="drop")).n_features_in_ == 4


@pytest.mark.parametrize(("name", "setting"), [("GSSL", "prune"), ("GSSL", "n_draws"), ("DTSL", "kappa")])
def test_an_iterator_is_refused_before_it_is_used_up(name, setting):
    values = iter((1, 1))
    with pytest.raises(SettingError, match=f"{setting}=<tuple_iterator .* several"):
        LEARNERS[name](**{setting: values}).fit(chain())
    assert next(values) == 1


@EVERY
def test_required_and_forbidden_edges_are_obeyed_everywhere_or_not_offered(learner):
    if not has(learner, "required_edges"):
        assert "edges cannot be required or forbidden" in learner.__doc__.lower()
        return
    est = quick(learner, required_edges=[("v13", "v00")], forbidden_edges=[("v01", "v02")]).fit(chain())
    for graph in graphs(est.structure_):
        assert graph.has_edge("v00", "v13")
        assert not graph.has_edge("v01", "v02")
    assert ("v01", "v02") in {one.pair for one in quick(learner).fit(chain()).statements_}
    assert ("v01", "v02") not in {one.pair for one in est.statements_}


@pytest.mark.parametrize(
    ("learner", "settings", "error", "words"),
    [
        pytest.param(learner, *bad, id=f"{name}-{bad[0]}")
        for name, learner in LEARNERS.items()
        for bad in BAD_SETTINGS
        if all(has(learner, setting) for setting in bad[0])
    ],
)
def test_bad_settings_get_one_sentence(learner, settings, error, words):
    with pytest.raises(error, match=words) as caught:
        learner(**settings).fit(chain(4))
    assert str(caught.value).count("\n") == 0


@EVERY
def test_settings_can_be_read_changed_cloned_and_shown(learner):
    est = quick(learner)
    changed = QUICK[learner.__name__]
    name, value = next(iter(changed.items()))
    from sklearn.base import clone

    assert clone(est).get_params() == est.get_params()
    assert repr(est) == f"{learner.__name__}({', '.join(f'{n}={v!r}' for n, v in changed.items())})"
    assert repr(learner()) == f"{learner.__name__}()"
    assert est.set_params(**{name: learner.default_settings()[name]}).get_params()[name] != value
    with pytest.raises(SettingError, match="alhpa"):
        est.set_params(alhpa=0.1)
    with pytest.raises(NotFitted, match="fit"):
        est.check_fitted()


@EVERY
def test_every_setting_is_documented_once_and_an_unknown_one_refused(learner):
    listed = learner.__doc__.split("Parameters\n----------\n")[1].split("\n\n")[0].splitlines()
    documented = [name for line in listed if not line.startswith(" ") for name in line.split(", ")]
    assert sorted(documented) == sorted(learner.default_settings())
    with pytest.raises(
        TypeError, match=rf"{learner.__name__}\(\) got an unexpected keyword argument 'alhpa'"
    ):
        learner(alhpa=0.1)


@EVERY
def test_learning_is_quiet_and_leaves_the_global_generators_alone(learner, capsys):
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    quick(learner).fit(chain())
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    assert capsys.readouterr() == ("", "")


@pytest.fixture(scope="module")
def wide():
    """A table of many columns, some with many levels: no learner has to begin to see that it will not fit."""
    rng = np.random.default_rng(0)
    n_levels = [2] * 400 + [250] * 10
    levels = [tuple(map(str, range(n))) for n in n_levels]
    domain = unless.Domain(tuple(unless.Variable(str(column), one) for column, one in enumerate(levels)))
    return unless.Dataset.from_codes(domain, rng.integers(0, n_levels, (4000, 410)))


@EVERY
def test_work_that_would_not_fit_is_refused_with_the_estimate(learner, wide):
    with pytest.raises(unless.errors.TooLarge, match="MiB"):
        quick(learner, max_memory="64 MB").fit(wide)


@EVERY
def test_an_empty_dataset_is_refused(learner):
    domain = unless.Domain((unless.Variable("a", ("x", "y")), unless.Variable("b", ("x", "y"))))
    with pytest.raises(DataError, match="no rows"):
        quick(learner).fit(unless.Dataset.from_codes(domain, np.zeros((0, 2))))


@EVERY
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_finds_an_estimator(learner):
    # Every process that collects tests would load it.
    from sklearn.utils.estimator_checks import check_estimator

    single = quick(learner, **SINGLE.get(learner.__name__, {}))
    results = check_estimator(single, expected_failed_checks=EXCEPTIONS, on_fail=None, on_skip=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert failed == {}
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == set(EXCEPTIONS)


@EVERY
def test_held_out_rows_are_scored_in_cross_validation_on_frames_and_arrays(learner):
    from sklearn.model_selection import cross_val_score

    frame = chain(4, 300)
    # A level that one fold alone has.
    frame.loc[0, "v01"] = "once"
    for table in (frame, frame.to_numpy()):
        scores = cross_val_score(quick(learner), table, cv=3, error_score="raise")
        # Columns of three levels that tell nothing of each other would be worth 4 log 1/3 = -4.4.
        assert (scores > -4.2).all()
        assert np.isfinite(scores).all()


def test_settings_are_chosen_by_cross_validation():
    from sklearn.model_selection import GridSearchCV

    frame = chain(4, 300)
    for table in (frame, frame.to_numpy()):
        search = GridSearchCV(unless.GSMN(), {"alpha": [1e-300, 0.05]}, cv=3, error_score="raise").fit(table)
        assert search.best_params_ == {"alpha": 0.05}
        assert ("v00", "v01") in search.best_estimator_.structure_.edges or table is not frame


# What scikit-learn expects of classifiers and this one does otherwise, on purpose.
CLASSIFIER_EXCEPTIONS = {
    "check_supervised_y_2d": "a column of labels is read as labels, without a warning: the library is quiet",
}


@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_finds_a_classifier():
    from sklearn.base import is_classifier
    from sklearn.utils.estimator_checks import check_estimator

    assert is_classifier(unless.UnlessClassifier())
    results = check_estimator(
        unless.UnlessClassifier(), expected_failed_checks=CLASSIFIER_EXCEPTIONS, on_fail=None, on_skip=None
    )
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert failed == {}
    expected = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert expected == set(CLASSIFIER_EXCEPTIONS)


def test_a_learner_is_found_by_name_in_any_case():
    assert learner_named("csgs") is unless.CSGS
    with pytest.raises(UnknownName, match="PC"):
        learner_named("PC")


@pytest.mark.parametrize("learner", [one for one in LEARNERS.values() if is_of_features(one)])
def test_a_table_to_judge_by_may_have_no_names(learner):
    frame = chain(4, 600)[["v02", "v00", "v03", "v01"]]
    first, second = frame[:400], frame[400:]
    named = quick(learner).fit(first, validation=second)
    assert quick(learner).fit(first, validation=second.to_numpy()).tried_ == named.tried_


def test_numbers_of_numpy_are_settings_like_others(tmp_path):
    est = unless.DTSL(kappa=list(np.logspace(-3, -1, 2)), min_rows=np.int64(5), prior=unless.Gaussian(1))
    saved(est.fit(chain(4)), tmp_path)
    assert unless.load(tmp_path / "model.unless").kappa == pytest.approx([0.001, 0.1])


def test_a_file_whose_structure_is_not_what_its_learner_learns_is_refused(tmp_path):
    from unless.formats.record import Record, save_record
    from unless.learners.base import make_record

    told = make_record(unless.GSMN().fit(chain(4)))
    for name in ("CSGS", "CSPC", "DTSL", "GSSL"):
        settings = make_record(quick(LEARNERS[name]).fit(chain(4))).settings
        save_record(Record(told.structure, name, settings, told.results), tmp_path / "m.unless")
        with pytest.raises(unless.errors.FileFormatError, match="structure"):
            unless.load(tmp_path / "m.unless")
