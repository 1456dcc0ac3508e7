"""Generate and select: GSSL (Van Haaren and Davis, AAAI 2012), and CSGSSL, the same over canonical models.

GSSL draws features from rows at random; CSGSSL takes those that the graphs of contexts propose, and reads
graphs off what is left. Both select by an L1 prior.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache, reduce
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset, Rows
from unless.errors import SettingError
from unless.inference.model import LogLinearModel
from unless.inference.pseudo_likelihood import Conditionals
from unless.learners.base import Run, table_digest
from unless.learners.csgs import CSGS
from unless.learners.feature_search import TOLERANCE, FeatureChoice, FeatureLearner, GridPoint, in_order
from unless.learners.feature_search.conjunctions import (
    HalvingSearch,
    Weighed,
    WorkingSets,
    fits_memory,
    generate_features,
    n_conjunctions,
)
from unless.learners.settings import between, edge_matrix, setting
from unless.runtime.checkpoints import settings_digest
from unless.structures.canonical import CanonicalModel
from unless.structures.structure import FeatureArrays, Links, n_pairs, pack, pair_numbers
from unless.typing import Integers
from unless.weights.fit import fit, priors_to_try, weigh
from unless.weights.priors import Gaussian, Laplace, Prior

PRIORS = tuple(Gaussian(1.0) + Laplace(l1) for l1 in (10.0, 5.0, 1.0))
# Draws by default: in a small table every conjunction is met many times; in a large one each row is taken
# down to short conjunctions, in about as many steps as the logarithm of this number.
_DRAWS_PER_CONJUNCTION = 20
_DRAWS_PER_ROW = 300
_MOST_DRAWS = 5_000_000
# Iterations that fit the weights which are kept, at most.
_MOST_ITERATIONS = 500


class GSSL(FeatureLearner):
    """Generate conjunctions from the rows of a table at random, and weigh those that come often.

    The set begins as the distinct rows, each a conjunction of all variables that vary. A draw picks one of
    the set, each with the same chance; drops a number of its variables, uniform on 1 .. size - 1, whichever
    with the same chance; and puts the result into the set, if it is new, and one on its count. A draw that
    picks a conjunction of one variable generates nothing. Conjunctions generated fewer than `prune` times
    (rows that stand in the table fewer times) are then dropped, except those of one variable, which are all
    there; and an L1 prior drops most of the others. Edges cannot be required or forbidden.

    Several values of `n_draws`, `prune` and `prior` are judged by unseen rows, by successive halving: all
    get some features and iterations, the best quarter twice as many, and so on.

    With `work_dir=` each of these is kept, and within the long ones how far they got, every two seconds at
    most; the draws are made again. `resume=True` goes on to the same features and weights.

    Parameters
    ----------
    n_draws
        Number of draws, or several to choose from; "auto" is 300 for each distinct row, but at most 20 for
        each conjunction there can be, and 5 million.
    prune
        Conjunctions generated fewer times are dropped; one number, or several to choose from.
    prior
        One prior with a Laplace part, such as `Gaussian(1) + Laplace(5)`, or several to choose from.

    Examples
    --------
    >>> import unless
    >>> est = unless.GSSL(prune=5, prior=unless.Laplace(5)).fit(unless.datasets.load_ucb_admissions())
    >>> est.structure_.graph().has_edge("Admit", "Dept")
    True
    """

    n_draws: int | str | Sequence[int] = setting(
        default="auto", check=lambda name, value: _draws(name, value), kw_only=False
    )
    prune: int | Sequence[int] = setting(
        default=(1, 5, 10), check=lambda name, value: _whole_numbers(name, value)
    )
    prior: Prior | Sequence[Prior] = setting(default=PRIORS, check=lambda _, value: _check_priors(value))

    def _grid(self) -> list[GridPoint]:
        prunes = _whole_numbers("prune", self.prune)
        return [{"n_draws": n, "prune": p} for n in _draws("n_draws", self.n_draws) for p in prunes]

    def _choose(
        self,
        training: Dataset,
        unseen: Dataset,
        grid: Sequence[GridPoint],
        priors: tuple[Prior, ...],
    ) -> FeatureChoice:
        points = [_with_draws(training, point) for point in grid]
        fitting = [point for point in points if fits_memory(training, point["n_draws"], self._run.max_bytes)]
        working = self._working_sets(training, fitting or points)
        search = HalvingSearch(working, unseen, fitting, priors, self._run)
        best, prior, members, here = search.choose()
        unjudged = {"n_features": None, "pseudo_log_likelihood": None, "rung": -1}
        left_out = [
            {**point, "prior": repr(one), **unjudged}
            for point in points
            if point not in fitting
            for one in priors
        ]
        return FeatureChoice(
            best,
            prior,
            search.tried + left_out,
            lambda: self._converged(training, working, best, prior, members, here),
        )

    def _learn_with(self, data: Dataset, point: GridPoint, prior: Prior) -> LogLinearModel:
        point = _with_draws(data, point)
        working = self._working_sets(data, [point])
        members = working.generated.chosen(point["n_draws"], point["prune"])
        return self._converged(data, working, point, prior, members, working.start(prior))

    def _working_sets(self, data: Dataset, points: Sequence[GridPoint]) -> WorkingSets:
        draws = [point["n_draws"] for point in points]
        return WorkingSets(generate_features(data, draws, self._seed, self._run), **self._layout())

    def _converged(
        self,
        data: Dataset,
        working: WorkingSets,
        point: GridPoint,
        prior: Prior,
        members: Integers,
        start: Weighed,
    ) -> LogLinearModel:
        """Fit to the end, and put the features in the order of sets."""
        tolerance = TOLERANCE * data.n_rows
        # How many it takes shows only at the end.
        steps = self._run.steps(None, "rounds of the last fit")
        # Features are numbered by the draws, and the start of the rounds shows what was chosen from.
        begins = settings_digest([table_digest(data), point, prior, *(array.tolist() for array in start)])
        checkpoint = self._run.checkpoint(f"fit-{begins}")
        here, n_iterations = working.converge(
            members, prior, start, tolerance, _MOST_ITERATIONS, steps.tick, checkpoint
        )
        features, weights = in_order(data.domain, working.generated.spelled(here.features), here.weights)
        conditionals = Conditionals.of(features.arrays, data, **self._layout())
        # No iterations: `fit` is called for its report on these weights.
        no_steps: dict[str, Any] = {"tolerance": tolerance, "max_iterations": 0, "step": lambda: None}
        _, report = fit(features, conditionals, prior, weights, **no_steps)
        return LogLinearModel(features, weights, report=replace(report, n_iterations=n_iterations))


class CSGSSL(CSGS):
    """Learn one graph for every distinct row of a table by selecting features that contexts propose.

    As GSSL it generates many features and lets an L1 prior drop most of them. They are generated by CSGS: the
    values of each maximal clique in each context. Two variables are then linked in a context if some feature
    that is left has both, and its other conditions hold there: so the model of what is left links them, given
    the rest of the context. Graphs may have links that CSGS did not find in a context, and lack others.

    Parameters
    ----------
    l1
        Features are weighed under the prior `Gaussian(1) + Laplace(l1)`, of which the second part drops some.

    Examples
    --------
    >>> import unless
    >>> est = unless.CSGSSL().fit(unless.datasets.load_ucb_admissions())
    >>> est.structure_.given({"Dept": "C"}).has_edge("Admit", "Gender")
    False
    """

    # Weights of the features of all cliques are fitted.
    _relative_cost = 25.0
    l1: float = setting(default=20.0, check=between(0, math.inf), kw_only=False)

    def _learn(self, data: Dataset, run: Run, *_: Dataset) -> None:
        # By name: the order of the columns must not decide anything, not even the rounding.
        named = data.select(sorted(data.names))
        super()._learn(named, run)
        run.steps(None, "weighing features")
        features, prior = self.structure_.features(), Gaussian(1.0) + Laplace(self.l1)
        layout = {"n_jobs": self.n_jobs, "max_memory": self.max_memory}
        weighed = run.once("weighed", lambda: {"weights": weigh(features, named, prior, run.bar, layout)})
        arrays = features.take(weighed["weights"] != 0).arrays
        columns = np.array([data.domain.index(name) for name in named.names], dtype=np.int32)
        links = links_given_rest(arrays._replace(variable=columns[arrays.variable]), data.rows)
        must = edge_matrix(data.domain, self.required_edges, "required_edges")
        links |= must[np.triu_indices(len(must), 1)]
        self.structure_ = CanonicalModel.from_edges(data.domain, data.rows, data.counts, pack(links))


def links_given_rest(features: FeatureArrays, rows: Rows) -> Links:
    """Tell, for each row and pair, whether a feature has both and its other conditions hold in the row."""
    n = rows.shape[1]
    number = pair_numbers(n)
    linked = np.zeros((n_pairs(n), (len(rows) + 7) // 8), dtype=np.uint8)
    everywhere = np.full(linked.shape[1], 255, dtype=np.uint8)

    @cache
    def holds(variable: int, level: int) -> npt.NDArray[np.uint8]:
        return np.packbits(rows[:, variable] == level)

    for conditions in features.literals():
        # Features of cliques have one level for each of their variables.
        bits = [(variable, holds(variable, level)) for variable, level, _ in conditions]
        for (a, _), (b, _) in combinations(bits, 2):
            others = (bit for variable, bit in bits if variable not in (a, b))
            linked[number[a, b]] |= reduce(np.bitwise_and, others, everywhere)
    return np.unpackbits(linked, axis=1, count=len(rows)).T.view(np.bool_)


def default_draws(data: Dataset) -> int:
    """Return the number of draws that "auto" stands for."""
    by_conjunctions = _DRAWS_PER_CONJUNCTION * n_conjunctions(data)
    return max(1, min(by_conjunctions, _DRAWS_PER_ROW * data.n_distinct, _MOST_DRAWS))


def _with_draws(data: Dataset, point: GridPoint) -> GridPoint:
    return {**point, "n_draws": default_draws(data)} if point["n_draws"] == "auto" else point


def _check_priors(prior: Any) -> None:
    for one in priors_to_try(prior):
        if not one.l1:
            raise SettingError(
                f"prior={one!r} lets every feature in, and GSSL selects by an L1 part; give a prior "
                "such as Gaussian(1) + Laplace(5)."
            )


def _draws(name: str, value: Any) -> list[Any]:
    if isinstance(value, str) and value == "auto":
        return [value]
    return _whole_numbers(name, value, "'auto', ")


def _whole_numbers(name: str, value: Any, other: str = "") -> list[int]:
    """Read one whole number from 1 on, or several."""
    # An iterator would be empty the second time.
    listed = list(value) if isinstance(value, Collection) and not isinstance(value, str) else [value]
    for number in listed:
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
            raise SettingError(f"{name}={value!r} must be {other}a whole number of at least 1, or several.")
    if not listed:
        raise SettingError(
            f"{name}={value!r} is empty; give {other}a whole number of at least 1, or several."
        )
    return [int(number) for number in listed]
