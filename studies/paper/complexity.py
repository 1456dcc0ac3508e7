"""Questions of the methods that ask context by context, and the paper's bound on those of CSGS."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from studies.paper.plan import Study
from studies.paper.results import Floats, Results, curve
from studies.paper.variants import HEADLINE


class Cost(NamedTuple):
    """What one method costs for one number of variables and one size.

    `questions` and `distinct` are ratios of means to those of CSGS. The bound is m(n(n - 1) + nk): m
    contexts, n variables, k the largest degree in the graphs learned; `worst` is the largest share of it that
    was used.
    """

    method: str
    n_variables: int
    size: int
    questions: float
    distinct: float
    n_within: int
    n_networks: int
    worst: float


def costs(results: Results, study: Study, methods: Sequence[str]) -> Iterator[list[Cost]]:
    """Compare methods with CSGS: a list for each number of variables and size."""
    for n in study.n_variables:
        by_method = [_costs_of(one, results, study, n) for one in methods]
        yield from map(list, zip(*by_method, strict=True))


def _costs_of(method: str, results: Results, study: Study, n: int) -> list[Cost]:
    def numbers(method: str, field: str) -> Floats:
        return curve(results, study, HEADLINE.name, "complete", n, method, field)

    def ratios(field: str) -> Floats:
        return np.asarray(numbers(method, field).mean(axis=1) / numbers("CSGS", field).mean(axis=1))

    bound = numbers(method, "n_contexts") * (n * (n - 1) + n * numbers(method, "max_degree"))
    used = numbers(method, "n_tests") / bound
    within, worst = (used <= 1).sum(axis=1), used.max(axis=1)
    rows = zip(study.sizes, ratios("n_tests"), ratios("n_distinct_tests"), within, worst, strict=True)
    return [
        Cost(method, n, size, float(asked), float(distinct), int(n_within), study.n_networks, float(most))
        for size, asked, distinct, n_within, most in rows
    ]
