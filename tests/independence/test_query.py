import json

import pytest
from click.testing import CliRunner

from unless import CSGS, read, save
from unless.cli import main
from unless.datasets import load_titanic, load_ucb_admissions
from unless.errors import SettingError, UnknownContext, UnknownLevel, UnknownName
from unless.independence.tests import PearsonTest, ask


@pytest.mark.parametrize("department", "ABCDEF")
def test_admission_depends_on_gender_in_department_a_only(department):
    verdict = ask(load_ucb_admissions(), "Admit", "Gender", context={"Dept": department})
    assert verdict.answer == ("dependent" if department == "A" else "independent")


def test_department_a_has_the_published_numbers():
    verdict = ask(load_ucb_admissions(), "Admit", "Gender", context={"Dept": "A"})
    assert (verdict.n_rows, verdict.df) == (933, 1)
    assert verdict.statistic == pytest.approx(17.248, abs=1e-3)


def test_given_pools_the_strata():
    admissions = load_ucb_admissions()
    slices = [ask(admissions, "Admit", "Gender", context={"Dept": department}) for department in "ABCDEF"]
    pooled = ask(admissions, "Admit", "Gender", given="Dept")
    assert pooled.statistic == pytest.approx(sum(verdict.statistic for verdict in slices))
    assert pooled.df == 6
    assert pooled == ask(admissions, "Gender", "Admit", given=["Dept"])


def test_strata_in_which_nothing_varies_are_not_used():
    verdict = ask(load_titanic(), "Age", "Survived", given=["Sex"], context={"Class": "Crew"})
    assert (verdict.answer, verdict.n_rows, verdict.rows_used) == ("undecided", 885, 0)
    part = ask(load_titanic(), "Age", "Survived", given=["Class"])
    assert part.n_rows - part.rows_used == 885


@pytest.mark.parametrize("test", ["pearson", "likelihood_ratio", "bayesian", PearsonTest(alpha=0.01)])
def test_any_test_can_be_asked(test):
    assert ask(load_titanic(), "Sex", "Survived", test=test).is_dependent


@pytest.mark.parametrize("test", ["pearson", "likelihood_ratio"])
def test_five_rows_of_two_kinds_are_no_dependence_however_they_are_asked_about(test, tmp_path):
    """The same rule for `unless.ask`, `est.ask` and `unless ask`: p by permutations in nearly empty cells."""
    data = read({"a": [*"xxyyy"], "b": [*"uuvvv"]})
    verdict = ask(data, "a", "b", test=test)
    assert (verdict.answer, verdict.method) == ("undecided", "permutations")
    assert "by permutations" in str(verdict)
    est = CSGS().fit(data)
    side_by_side = est.ask("a", "b").data
    assert (side_by_side.p, side_by_side.method) == (verdict.p, verdict.method)
    save(est, tmp_path / "m.unless")
    shown = CliRunner().invoke(main, ["ask", str(tmp_path / "m.unless"), "a", "b", "--json"])
    answer = json.loads(shown.stdout)["data"]
    assert answer["p"] == pytest.approx(verdict.p)
    assert (answer["method"], answer["answer"]) == (verdict.method, verdict.answer)


def test_full_cells_are_asked_about_by_chi_square():
    verdict = ask(load_ucb_admissions(), "Admit", "Gender")
    assert verdict.method == "chi-square"
    assert verdict.p < 1e-10
    assert ask(load_ucb_admissions(), "Admit", "Gender", test="bayesian").method is None


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ({"a": "Admit", "b": "Admit"}, SettingError),
        ({"a": "Admit", "b": "Gender", "given": ["Admit"]}, SettingError),
        ({"a": "Admit", "b": "Gender", "given": ["Dept"], "context": {"Dept": "A"}}, SettingError),
        ({"a": "Admit", "b": "gender"}, UnknownName),
        ({"a": "Admit", "b": "Gender", "context": {"Dept": "Z"}}, UnknownLevel),
        ({"a": "Admit", "b": "Gender", "test": "fisher"}, SettingError),
    ],
)
def test_questions_that_make_no_sense_are_refused(question, error):
    with pytest.raises(error):
        ask(load_ucb_admissions(), **question)


def test_a_context_nobody_was_in_is_unknown():
    with pytest.raises(UnknownContext, match="Class = Crew, Age = Child"):
        ask(load_titanic(), "Sex", "Survived", context={"Age": "Child", "Class": "Crew"})
