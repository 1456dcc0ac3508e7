"""GSSL: features drawn from rows at random, the frequent ones weighed (Van Haaren and Davis, AAAI 2012)."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.errors import SettingError
from unless.inference.conditionals import Conditionals
from unless.inference.model import LogLinearModel
from unless.inference.priors import Gaussian, Laplace, Prior
from unless.learners.bookmarks import Bookmark
from unless.learners.feature_search import TOLERANCE, FeatureChoice, FeatureLearner, Setting
from unless.learners.feature_search.conjunctions import (
    HalvingSearch,
    Integers,
    Weighed,
    WorkingSets,
    fits_memory,
    generate_features,
    n_conjunctions,
)
from unless.learners.settings import check_n_jobs
from unless.learners.workplace import brief, digest
from unless.runtime.memory import parse_memory
from unless.structures.features import FeatureSet
from unless.weights.fitting import fit
from unless.weights.validating import priors_to_try

PRIORS = tuple(Gaussian(1.0) + Laplace(l1) for l1 in (10.0, 5.0, 1.0))
# Draws by default: in a small table every conjunction is met many times; in a large one each row is taken
# down to short conjunctions, in about as many steps as the logarithm of this number.
DRAWS_PER_CONJUNCTION = 20
DRAWS_PER_ROW = 300
MOST_DRAWS = 5_000_000
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

    With `work_dir=` each of these is kept, and within the long ones how far they got, every two seconds; the
    draws are made again. `resume=True` goes on to the same features and weights.

    Parameters
    ----------
    n_draws
        Number of draws, or several to choose from; "auto" is 300 for each distinct row, but at most 20 for
        each conjunction there can be, and 5 million.
    prune
        Conjunctions generated fewer times are dropped; one number, or several to choose from.
    prior
        One prior with a Laplace part, such as `Gaussian(1) + Laplace(5)`, or several to choose from.
    validation
        The share of rows to judge by; `fit(data, validation=table)` judges by a table instead.
    random_state
        The seed of the draws and of the split.
    refit
        Whether to learn from all rows again, under what was chosen.

    Examples
    --------
    >>> import unless
    >>> est = unless.GSSL(prune=5, prior=unless.Laplace(5)).fit(unless.datasets.load_ucb_admissions())
    >>> est.structure_.graph().has_edge("Admit", "Dept")
    True
    """

    def __init__(  # noqa: PLR0913 (scikit-learn's way: one argument a setting)
        self,
        n_draws: int | str | Sequence[int] = "auto",
        *,
        prune: int | Sequence[int] = (1, 5, 10),
        prior: Prior | Sequence[Prior] = PRIORS,
        validation: float = 0.3,
        random_state: Any = 0,
        refit: bool = True,
        max_memory: int | str | None = None,
        n_jobs: int | None = None,
        work_dir: str | os.PathLike[str] | None = None,
        resume: bool = False,
        show_progress: bool | None = None,
    ) -> None:
        self.n_draws = n_draws
        self.prune = prune
        self.prior = prior
        self.validation = validation
        self.random_state = random_state
        self.refit = refit
        self.max_memory = max_memory
        self.n_jobs = n_jobs
        self.work_dir = work_dir
        self.resume = resume
        self.show_progress = show_progress

    def check_settings(self) -> None:
        """Refuse settings that are wrong whatever the table."""
        super().check_settings()
        check_n_jobs(self.n_jobs)
        parse_memory(self.max_memory)
        if not (isinstance(self.n_draws, str) and self.n_draws == "auto"):
            _whole_numbers("n_draws", self.n_draws, "'auto', ")
        _whole_numbers("prune", self.prune)
        for prior in priors_to_try(self.prior):
            if not prior.l1:
                raise SettingError(
                    f"prior={prior!r} lets every feature in, and GSSL selects by an L1 part; give a prior "
                    "such as Gaussian(1) + Laplace(5)."
                )

    def _grid(self) -> list[Setting]:
        draws = ["auto"] if isinstance(self.n_draws, str) else _whole_numbers("n_draws", self.n_draws)
        return [{"n_draws": n, "prune": p} for n in draws for p in _whole_numbers("prune", self.prune)]

    def _choose(
        self,
        training: Dataset,
        unseen: Dataset,
        grid: Sequence[Setting],
        priors: tuple[Prior, ...],
    ) -> FeatureChoice:
        told = [_told(training, setting) for setting in grid]
        limit = parse_memory(self.max_memory)
        fitting = [setting for setting in told if fits_memory(training, setting["n_draws"], limit)]
        working = self._working_sets(training, fitting or told)
        search = HalvingSearch(working, unseen, fitting, priors, self._bar, self._place)
        best = search.run()
        left_out = [setting for setting in told if setting not in fitting]
        tried = search.records() + [_left_out(one, prior) for one in left_out for prior in priors]
        setting, prior, members, here = search.at(best)
        return FeatureChoice(
            setting, prior, tried, lambda: self._converged(training, working, setting, prior, members, here)
        )

    def _learn_with(self, data: Dataset, setting: Setting, prior: Prior) -> LogLinearModel:
        told = _told(data, setting)
        working = self._working_sets(data, [told])
        members = working.generated.chosen(told["n_draws"], told["prune"])
        return self._converged(data, working, told, prior, members, working.start(prior))

    def _working_sets(self, data: Dataset, settings: Sequence[Setting]) -> WorkingSets:
        limit = parse_memory(self.max_memory)
        draws = [setting["n_draws"] for setting in settings]
        generated = generate_features(data, draws, self._seed, limit, self._bar)
        return WorkingSets(generated, **self._layout())

    def _converged(
        self,
        data: Dataset,
        working: WorkingSets,
        setting: Setting,
        prior: Prior,
        members: Integers,
        start: Weighed,
    ) -> LogLinearModel:
        """Fit to the end, and put the features in the order of sets."""
        tolerance = TOLERANCE * data.n_rows
        # How many it takes shows only at the end.
        self._bar.begin("rounds of the last fit", None)
        # Features are numbered by the draws, and where the rounds begin says what was chosen from.
        begins = brief([digest(data), setting, prior, *(array.tolist() for array in start)])
        bookmark = Bookmark(self._place, f"fit-{begins}")
        here, n_iterations = working.converge(
            members, prior, start, tolerance, _MOST_ITERATIONS, self._bar, bookmark
        )
        arrays = working.generated.spelled(here.features)
        features = FeatureSet.from_arrays(data.domain, arrays)
        weight_of = dict(zip(arrays.literals(), here.weights.tolist(), strict=True))
        weights = np.array([weight_of[literals] for literals in features.arrays.literals()])
        conditionals = Conditionals.of(features.arrays, data, **self._layout())
        # No further step: only the report of where these weights are.
        stay: dict[str, Any] = {"tolerance": tolerance, "max_iterations": 0, "step": lambda: None}
        _, report = fit(features, conditionals, prior, weights, **stay)
        return LogLinearModel(features, weights, report=replace(report, n_iterations=n_iterations))


def default_draws(data: Dataset) -> int:
    """Return the number of draws that "auto" stands for."""
    by_conjunctions = DRAWS_PER_CONJUNCTION * n_conjunctions(data)
    return max(1, min(by_conjunctions, DRAWS_PER_ROW * data.n_distinct, MOST_DRAWS))


def _told(data: Dataset, setting: Setting) -> dict[str, Any]:
    return {**setting, "n_draws": default_draws(data)} if setting["n_draws"] == "auto" else dict(setting)


def _left_out(setting: Setting, prior: Prior) -> dict[str, Any]:
    return {**setting, "prior": repr(prior), "n_features": None, "pseudo_log_likelihood": None, "rung": -1}


def _whole_numbers(name: str, value: Any, other: str = "") -> list[int]:
    """Read one whole number from 1 on, or several."""
    listed = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    for number in listed:
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
            raise SettingError(f"{name}={value!r} must be {other}a whole number of at least 1, or several.")
    if not listed:
        raise SettingError(
            f"{name}={value!r} is empty; give {other}a whole number of at least 1, or several."
        )
    return [int(number) for number in listed]
