"""Learners of features: several settings are tried, and what predicts unseen rows best is kept."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from unless.data.dataset import Dataset, check_share, hold_out
from unless.data.domain import Domain
from unless.errors import DataError, SettingError
from unless.inference.model import LogLinearModel
from unless.inference.pseudo_likelihood import Conditionals
from unless.learners.base import Learner, Run
from unless.learners.settings import at_least, learned, setting
from unless.runtime.checkpoints import Arrays, settled_seed
from unless.runtime.interrupts import CancelToken
from unless.structures.graph import FeatureSet
from unless.structures.structure import FeatureArrays
from unless.typing import Floats
from unless.weights.fit import fit, prior_path, priors_to_try
from unless.weights.priors import Prior

# The settings of features to try, each by its name.
GridPoint = Mapping[str, Any]
# Largest component of the gradient that is left, as a share of the rows. A hundred times less takes twice the
# time on tables of a hundred columns and moves the score of a row by 1e-5.
TOLERANCE = 1e-5
_MAX_ITERATIONS = 5_000


@dataclass(frozen=True)
class FeatureChoice:
    """The setting and prior that won, what was tried, and how to get the winner's weights to the end."""

    point: GridPoint
    prior: Prior
    tried: list[dict[str, Any]]
    finish: Callable[[], LogLinearModel]


class FeatureLearner(Learner):
    """Learn features under each setting of a grid, weigh them under each prior, keep the best.

    A learner defines `_grid` and `_feature_sets`, and has a setting `prior`. With a single setting and prior
    nothing is judged, and all rows are learned from.

    Fitted, `structure_` is the FeatureSet (a Laplace prior drops those of weight zero), `network_` the model
    of them, `chosen_` the setting and prior that won, and `tried_` one record for each setting and prior,
    with the pseudo-log-likelihood of a row unseen.

    Parameters
    ----------
    validation, random_state
        The share of the rows that settings are judged by, and the seed of their draw. A table to judge by can
        be given to `fit`.
    refit
        Whether the best setting learns once more from all rows.
    """

    kept_structure = LogLinearModel
    saves_answer = True
    # Weights of many sets of features are fitted.
    _relative_cost = 50.0
    _run: Run = learned()
    _seed: Any = learned()
    prior: Any = learned()
    validation: float = setting(default=0.3, check=lambda _, value: check_share(value))
    random_state: Any = setting(default=0, check=at_least(0))
    refit: bool = setting(default=True)
    network_: LogLinearModel = learned()
    chosen_: dict[str, Any] = learned()
    tried_: list[dict[str, Any]] = learned()

    def fit(
        self, X: object, y: object = None, sample_weight: Any = None, *, validation: object = None
    ) -> Self:
        """Learn from a Dataset, a frame, an array or a file that `unless.read` understands.

        `validation` is a table to judge settings by, in place of a share of X.
        """
        del y
        return self._fit(X, sample_weight, validation)

    def _grid(self) -> Sequence[GridPoint]:
        """Return the settings of features to try."""
        raise NotImplementedError

    def _feature_sets(self, data: Dataset, grid: Sequence[GridPoint]) -> Iterator[FeatureSet]:
        """Learn features from a table, one set for each setting."""
        raise NotImplementedError

    def _learn(self, data: Dataset, run: Run, *beside: Dataset) -> None:
        unseen = beside[0] if beside else None
        if unseen is not None and not unseen.n_rows:
            raise DataError("The table to judge settings by has no rows.")
        self._run, self._seed = run, settled_seed(run.store, self.random_state)
        # By name: the order of the columns must not decide anything, not even the rounding.
        by_name = sorted(data.names)
        net, chosen, tried = self._learn_named(data.select(by_name), unseen and unseen.select(by_name))
        self.network_ = in_domain(net, data.domain)
        self.structure_ = self.network_.features
        self.chosen_, self.tried_ = chosen, tried
        # No independence is tested: features are judged by what they predict.
        self.n_tests_ = self.n_distinct_tests_ = 0

    def _learn_named(
        self, data: Dataset, judge: Dataset | None
    ) -> tuple[LogLinearModel, dict[str, Any], list[dict[str, Any]]]:
        grid, priors = self._grid(), priors_to_try(self.prior)
        try:
            if len(grid) * len(priors) == 1:
                return self._learn_with(data, grid[0], priors[0]), _record(grid[0], priors[0]), []
            training, unseen = hold_out(data, self.validation, self._seed) if judge is None else (data, judge)
            if not self.refit or training is data:
                best = self._choose(training, unseen, grid, priors)
                return best.finish(), _record(best.point, best.prior), best.tried
            # Where all is learned again, what was chosen is all that is left of the choice.
            chosen = self._run.once(
                "chosen",
                lambda: _chosen(self._choose(training, unseen, grid, priors), priors),
                # With more memory, what was left out may be better.
                lambda made: all(one["pseudo_log_likelihood"] is not None for one in _read(made)[2]),
            )
            point, number, tried = _read(chosen)
            prior = priors[number]
            return self._learn_with(data, point, prior), _record(point, prior), tried
        finally:
            del self._run

    def _choose(
        self,
        training: Dataset,
        unseen: Dataset,
        grid: Sequence[GridPoint],
        priors: tuple[Prior, ...],
    ) -> FeatureChoice:
        """Judge all settings and priors by the rows unseen."""
        best, best_score = None, -math.inf
        steps: CancelToken | None = None
        tried: list[dict[str, Any]] = []
        names = [f"weighed-{number:05}-of-{len(grid):05}" for number in range(len(grid))]
        n_left = len(grid) - (0 if self._run.store is None else len(self._run.store.finished(names)))
        for point, name, features in zip(grid, names, self._feature_sets(training, grid), strict=True):
            # After the first features are made, which may have steps of their own.
            steps = steps or self._run.steps(n_left * len(priors), "weighing")
            weigh = partial(self._weigh_under, priors, features, training, unseen, steps)
            weighed = self._run.once(name, weigh)
            for prior, score, weights in zip(priors, weighed["scores"], weighed["weights"], strict=True):
                judged = {"n_features": len(features), "pseudo_log_likelihood": float(score) / unseen.n_rows}
                tried.append({**_record(point, prior), **judged})
                if best is None or score > best_score:
                    best, best_score = (point, prior, features, weights), score
        if best is None:
            raise SettingError(f"{type(self).__name__} was given nothing to try.")
        won, belief, features, start = best
        return FeatureChoice(won, belief, tried, lambda: self._weigh(training, features, belief, start))

    def _weigh_under(
        self,
        priors: Sequence[Prior],
        features: FeatureSet,
        training: Dataset,
        unseen: Dataset,
        steps: CancelToken,
    ) -> Arrays:
        """Weigh features under each prior and judge them by the rows unseen."""
        scores, weights = np.empty(len(priors)), np.empty((len(priors), len(features)))
        path = prior_path(features, training, unseen, priors, self._layout(), _effort(training))
        for number, (under, score) in enumerate(path):
            weights[number], scores[number] = under, score
            steps.tick()
        return {"scores": scores, "weights": weights}

    def _learn_with(self, data: Dataset, point: GridPoint, prior: Prior) -> LogLinearModel:
        """Learn from a table with one setting and one prior."""
        features = next(self._feature_sets(data, (point,)))
        return self._weigh(data, features, prior, np.zeros(len(features)))

    def _weigh(self, data: Dataset, features: FeatureSet, prior: Prior, start: Floats) -> LogLinearModel:
        """Fit the weights that are kept, and drop the features that got none."""
        # How many iterations it takes shows only at the end.
        steps = self._run.steps(None, "iterations of the last fit")
        conditionals = Conditionals.of(features.arrays, data, **self._layout())
        weights, report = fit(features, conditionals, prior, start, **{**_effort(data), "step": steps.tick})
        if prior.l1:
            features, weights = features.take(weights != 0), weights[weights != 0]
        return LogLinearModel(features, weights, report=report)

    def _scoring_network(self) -> LogLinearModel:
        self.check_fitted()
        return self.network_

    def _layout(self) -> dict[str, Any]:
        return {"n_jobs": self.n_jobs, "max_memory": self.max_memory}

    def _to_record(self) -> tuple[LogLinearModel, dict[str, Any]]:
        return self.network_, {"chosen": [self.chosen_], "tried": self.tried_}

    def _from_record(self, structure: Any, results: Mapping[str, Any]) -> None:
        super()._from_record(structure, results)
        chosen, tried = results["chosen"], results["tried"]
        if not isinstance(chosen, list) or not isinstance(tried, list) or len(chosen) != 1:
            raise SettingError("what was tried is no list of records")
        self.network_, self.structure_ = structure, structure.features
        self.chosen_, self.tried_ = chosen[0], tried


def _chosen(best: FeatureChoice, priors: Sequence[Prior]) -> Arrays:
    record = [dict(best.point), priors.index(best.prior), best.tried]
    return {"told": np.frombuffer(json.dumps(record).encode(), dtype=np.uint8)}


def _read(chosen: Arrays) -> tuple[dict[str, Any], int, list[dict[str, Any]]]:
    point, number, tried = json.loads(chosen["told"].tobytes())
    return point, number, tried


def _record(point: GridPoint, prior: Prior) -> dict[str, Any]:
    return {**point, "prior": repr(prior)}


def in_domain(net: LogLinearModel, domain: Domain) -> LogLinearModel:
    """Return the same model over the same variables in another order."""
    if net.domain == domain:
        return net
    arrays, position = net.features.arrays, [domain.index(name) for name in net.domain.names]
    turned = arrays._replace(variable=np.array(position, dtype=np.int32)[arrays.variable])
    features, weights = in_order(domain, turned, net.weights)
    return LogLinearModel(features, weights, report=net.fit_report)


def in_order(domain: Domain, arrays: FeatureArrays, weights: Floats) -> tuple[FeatureSet, Floats]:
    """Put features, and their weights with them, in the order of a FeatureSet."""
    features = FeatureSet.from_arrays(domain, arrays)
    literals = (tuple(sorted(one)) for one in arrays.literals())
    weight_of = dict(zip(literals, weights.tolist(), strict=True))
    return features, np.array([weight_of[one] for one in features.arrays.literals()])


def _effort(data: Dataset) -> dict[str, Any]:
    return {
        "tolerance": max(1e-6, TOLERANCE * data.n_rows),
        "max_iterations": _MAX_ITERATIONS,
        "step": lambda: None,
    }
