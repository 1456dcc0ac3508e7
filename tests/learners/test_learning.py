"""One call from a table to a fitted estimator."""

import pytest

import unless
from unless.errors import DataError, SettingError, UnknownName
from unless.learners import DEFAULT_LEARNER

TABLE = {"sex": ["f", "m"] * 100, "age": [30, 41, 41, 30] * 50, "city": ["a", "b", "b", None] * 50}


def test_the_default_reads_and_learns():
    est = unless.learn(TABLE, missing="level", columns=["sex", "city"])
    assert type(est).__name__ == DEFAULT_LEARNER == "GGS"
    assert est.data_.names == ("sex", "city")
    assert est.statements_.about("sex", "city").is_finding
    assert (
        est.structure_
        == unless.GGS().fit(unless.read(TABLE, missing="level", columns=["sex", "city"])).structure_
    )


@pytest.mark.parametrize("learner", ["csgs", unless.CSGS])
def test_a_learner_by_name_or_class_takes_settings(learner):
    est = unless.learn(TABLE, learner=learner, missing="drop", alpha=0.01, max_memory="1 GB")
    assert isinstance(est, unless.CSGS)
    assert (est.alpha, est.max_memory) == (0.01, "1 GB")


def test_an_estimator_is_fitted_itself():
    est = unless.GSMN(alpha=0.01)
    assert unless.learn(TABLE, learner=est, missing="drop", show_progress=False) is est
    with pytest.raises(SettingError, match=r"alpha= is given beside an estimator .* write GSMN\(alpha"):
        unless.learn(TABLE, learner=est, alpha=0.1)


def test_a_target_keeps_statements_to_one_column(tmp_path):
    data = unless.datasets.load_titanic()
    est, whole = unless.learn(data, target="Age"), unless.learn(data)
    assert est.structure_ == whole.structure_
    # The same statements, what matters most first.
    assert list(est.statements_) == list(whole.statements_.about_column("Age"))
    assert {one.pair for one in whole.statements_ if "Age" in one.pair} == {
        one.pair for one in est.statements_
    }
    unless.save(est, tmp_path / "m.unless")
    back = unless.load(tmp_path / "m.unless")
    assert (back.target_, back.statements_) == ("Age", est.statements_)
    # Who fits again asks anew.
    assert est.fit(data).statements_ == whole.statements_


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        (
            {"alhpa": 1},
            SettingError,
            "There is no setting 'alhpa': unless.read has columns, .*; GGS has alpha, ",
        ),
        ({"learner": "CSGS", "gates": ["age"]}, SettingError, "There is no setting 'gates': .*; CSGS has"),
        ({"learner": "PC"}, UnknownName, "There is no learner 'PC'"),
        ({"learner": dict}, SettingError, "is no learner; give a name such as 'GGS'"),
        ({"target": "agee", "missing": "drop"}, UnknownName, "did you mean 'age'"),
        ({"fdr": 2, "missing": "drop"}, SettingError, "fdr=2"),
        ({"strict": True}, DataError, "city"),
    ],
)
def test_bad_input_gets_one_sentence(settings, error, words):
    with pytest.raises(error, match=words) as caught:
        unless.learn(TABLE, **settings)
    assert "\n" not in str(caught.value)


def test_every_candidate_is_listed_on_request():
    data = unless.datasets.make_csi(6, random_state=0).sample(300, random_state=1)
    few, all_of_them = (
        {one.pair for one in unless.learn(data, fdr=fdr).statements_.findings} for fdr in (0.001, 1)
    )
    assert few <= all_of_them


def test_gates_are_those_that_may_be():
    data = unless.datasets.load_ucb_admissions()
    assert unless.learn(data).statements_.about("Admit", "Gender").gate.names == ("Dept",)
    for settings in ({"gates": []}, {"forbidden_gates": ["Dept"]}):
        assert all(
            one.gate is None or "Dept" not in one.gate.names
            for one in unless.learn(data, **settings).statements_
        )
