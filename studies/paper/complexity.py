"""Questions of CSPC against those of CSGS, and the paper's bound on the latter."""

from collections.abc import Iterator
from typing import NamedTuple

from studies.paper.plan import Study
from studies.paper.readings import CANONICAL, HEADLINE
from studies.paper.results import Floats, Results, curve


class Cost(NamedTuple):
    """For one number of variables and one size: ratios of means, and networks within the bound.

    The bound is m(n(n - 1) + nk): m contexts, n variables, k the largest degree in the graphs learned.
    `worst` is the largest share of it that was used.
    """

    n_variables: int
    size: int
    questions: float
    distinct: float
    n_within: int
    n_networks: int
    worst: float


def costs(results: Results, study: Study) -> Iterator[Cost]:
    """Compare the two learners, cell by cell."""
    for n in study.n_variables:
        questions = [_curve(results, study, n, one, "n_tests") for one in CANONICAL]
        distinct = [_curve(results, study, n, one, "n_distinct_tests") for one in CANONICAL]
        contexts, degree = (_curve(results, study, n, "CSGS", what) for what in ("n_contexts", "max_degree"))
        used = questions[0] / (contexts * (n * (n - 1) + n * degree))
        for place, size in enumerate(study.sizes):
            yield Cost(
                n,
                size,
                _ratio(questions, place),
                _ratio(distinct, place),
                int((used[place] <= 1).sum()),
                study.n_networks,
                float(used[place].max()),
            )


def _ratio(of_both: list[Floats], place: int) -> float:
    ours, theirs = (float(numbers[place].mean()) for numbers in of_both)
    return theirs / ours


def _curve(results: Results, study: Study, n: int, contestant: str, field: str) -> Floats:
    return curve(results, study, HEADLINE.name, "complete", n, contestant, field)
