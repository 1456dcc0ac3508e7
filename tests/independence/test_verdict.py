import pytest

from unless.errors import SettingError
from unless.independence.tests import TESTS, BayesianTest, PearsonTest, make_test


def test_a_verdict_reads_as_a_sentence():
    assert str(PearsonTest().on([[30, 10], [10, 30]])) == (
        "dependent (80 of 80 rows used, df = 1, statistic = 20, p = 7.74e-06)"
    )
    assert str(PearsonTest().on([[5, 5], [5, 5]])) == (
        "undecided (20 of 20 rows used, df = 1, statistic = 0, p = 1, power = 0.27)"
    )
    assert str(PearsonTest().on([[5, 5], [0, 0]])) == "undecided (0 of 10 rows used, df = 0, power = 0.00)"
    assert "probability of independence = " in str(BayesianTest().on([[5, 5], [5, 5]]))


def test_a_verdict_is_neither_true_nor_false():
    with pytest.raises(TypeError, match="three answers"):
        bool(PearsonTest().on([[5, 5], [5, 5]]))


def test_verdicts_are_values():
    assert PearsonTest().on([[5, 5], [0, 0]]) == PearsonTest().on([[5, 5], [0, 0]])
    assert PearsonTest(alpha=0.01) == PearsonTest(alpha=0.01)


@pytest.mark.parametrize("name", TESTS)
def test_a_test_is_made_by_its_own_name_and_passed_through_when_made(name):
    made = make_test(name, alpha=0.01, effect=0.1)
    assert made.name == name
    assert make_test(made) is made
    assert made.on([[9, 1], [1, 9]]).answer == "dependent"


def test_settings_reach_the_test():
    assert make_test("pearson", alpha=0.01, effect=0.1) == PearsonTest(0.01, 0.1)


def test_an_unknown_test_is_refused_with_the_names_there_are():
    with pytest.raises(SettingError, match="'pearson', 'likelihood_ratio', 'bayesian'"):
        make_test("fisher")
