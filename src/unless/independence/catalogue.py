"""The tests by name; a new test is one file and one line here."""

from collections.abc import Callable

from unless.errors import SettingError
from unless.independence.bayesian import BayesianTest
from unless.independence.likelihood_ratio import LikelihoodRatioTest
from unless.independence.pearson import PearsonTest
from unless.independence.verdict import IndependenceTest

TESTS: dict[str, Callable[[float, float], IndependenceTest]] = {
    "pearson": PearsonTest,
    "likelihood_ratio": LikelihoodRatioTest,
    # Its decision is a probability, so neither alpha nor effect has a part in it.
    "bayesian": lambda _alpha, _effect: BayesianTest(),
}


def make_test(test: str | IndependenceTest, alpha: float = 0.05, effect: float = 0.3) -> IndependenceTest:
    """Return the test of this name with these settings; a test that is one already comes back as it is."""
    if not isinstance(test, str):
        return test
    if test not in TESTS:
        raise SettingError(f"There is no test {test!r}; use one of {', '.join(map(repr, TESTS))}.")
    return TESTS[test](alpha, effect)
