"""Learners of features: several settings are tried, and what predicts unseen rows best is kept."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.data.domain import Domain
from unless.data.splitting import check_share, hold_out
from unless.errors import DataError, SettingError
from unless.inference.model import LogLinearModel
from unless.inference.pseudo_likelihood import Conditionals
from unless.inference.tables import read_rows
from unless.learners.base import Learner
from unless.learners.settings import at_least, learned, setting
from unless.runtime.checkpoints import Arrays, CheckpointStore, once, settled_seed
from unless.runtime.progress import Bar, progress
from unless.structures.graph import FeatureSet
from unless.weights.fit import fit, prior_path, priors_to_try
from unless.weights.priors import Prior

Setting = Mapping[str, Any]
# Largest component of the gradient that is left, as a share of the rows. A hundred times less takes twice the
# time on tables of a hundred columns and moves the score of a row by 1e-5.
TOLERANCE = 1e-5
_MAX_ITERATIONS = 5_000


@dataclass(frozen=True)
class Choice:
    """The setting and prior that won, what was tried, and how to get the winner's weights to the end."""

    setting: Setting
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
    _store: CheckpointStore | None = learned()
    _seed: Any = learned()
    _bar: Bar = learned()
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
        return self._fit(X, sample_weight, validation=validation)

    def _grid(self) -> Sequence[Setting]:
        """Return the settings of features to try."""
        raise NotImplementedError

    def _feature_sets(self, data: Dataset, grid: Sequence[Setting]) -> Iterator[FeatureSet]:
        """Learn features from a table, one set for each setting."""
        raise NotImplementedError

    def _learn(self, data: Dataset, validation: object = None) -> None:
        # Read with the columns in their own order, in which a table without names would have them.
        unseen = None if validation is None else read_rows(data.domain, validation, self.show_progress)
        if unseen is not None and not unseen.n_rows:
            raise DataError("The table to judge settings by has no rows.")
        self._store = self._checkpoint_store(data, *(() if unseen is None else (unseen,)))
        if self._restore(self._store):
            return
        self._seed = settled_seed(self._store, self.random_state)
        # By name: the order of the columns must not decide anything, not even the rounding.
        by_name = sorted(data.names)
        net, chosen, tried = self._learn_named(data.select(by_name), unseen and unseen.select(by_name))
        self.network_ = in_domain(net, data.domain)
        self.structure_ = self.network_.features
        self.chosen_, self.tried_ = chosen, tried
        # No question is asked of the data here: features are judged by what they predict.
        self.n_tests_ = self.n_distinct_tests_ = 0
        self._checkpoint(self._store)

    def _learn_named(
        self, data: Dataset, judge: Dataset | None
    ) -> tuple[LogLinearModel, dict[str, Any], list[dict[str, Any]]]:
        grid, priors = self._grid(), priors_to_try(self.prior)
        with progress(type(self).__name__, self.show_progress) as self._bar:
            try:
                if len(grid) * len(priors) == 1:
                    return self._learn_with(data, grid[0], priors[0]), _told(grid[0], priors[0]), []
                training, unseen = (
                    hold_out(data, self.validation, self._seed) if judge is None else (data, judge)
                )
                if not self.refit or training is data:
                    best = self._choose(training, unseen, grid, priors)
                    return best.finish(), _told(best.setting, best.prior), best.tried
                # Where all is learned again, what was chosen is all that is left of the choice.
                kept = once(
                    self._store,
                    "chosen",
                    lambda: _chosen(self._choose(training, unseen, grid, priors), priors),
                    # With more memory, what was left out may be better.
                    lambda made: all(one["pseudo_log_likelihood"] is not None for one in _read(made)[2]),
                )
                setting, place, tried = _read(kept)
                prior = priors[place]
                return self._learn_with(data, setting, prior), _told(setting, prior), tried
            finally:
                del self._bar

    def _choose(
        self,
        training: Dataset,
        unseen: Dataset,
        grid: Sequence[Setting],
        priors: tuple[Prior, ...],
    ) -> Choice:
        """Judge all settings and priors by the rows unseen."""
        best, best_score = None, -math.inf
        tried: list[dict[str, Any]] = []
        names = [f"weighed-{number:05}-of-{len(grid):05}" for number in range(len(grid))]
        n_left = len(grid) - (0 if self._store is None else len(self._store.finished(names)))
        for chosen, name, features in zip(grid, names, self._feature_sets(training, grid), strict=True):
            if not tried:
                self._bar.begin("weighing", n_left * len(priors))
            weighed = once(self._store, name, partial(self._weigh_under, priors, features, training, unseen))
            scores, found = weighed["scores"].tolist(), weighed["weights"]
            for prior, score, weights in zip(priors, scores, found, strict=True):
                told = {"n_features": len(features), "pseudo_log_likelihood": score / unseen.n_rows}
                tried.append({**_told(chosen, prior), **told})
                if best is None or score > best_score:
                    best, best_score = (chosen, prior, features, weights), score
        if best is None:
            raise SettingError(f"{type(self).__name__} was given nothing to try.")
        won, belief, kept, start = best
        return Choice(won, belief, tried, lambda: self._weigh(training, kept, belief, start))

    def _weigh_under(
        self, priors: Sequence[Prior], features: FeatureSet, training: Dataset, unseen: Dataset
    ) -> Arrays:
        """Weigh features under each prior and judge them by the rows unseen."""
        scores, weights = np.empty(len(priors)), np.empty((len(priors), len(features)))
        path = prior_path(features, training, unseen, priors, self._layout(), _effort(training))
        for place, (found, score) in enumerate(path):
            scores[place], weights[place] = score, found
            self._bar()
        return {"scores": scores, "weights": weights}

    def _learn_with(self, data: Dataset, setting: Setting, prior: Prior) -> LogLinearModel:
        """Learn from a table with one setting and one prior."""
        features = next(self._feature_sets(data, (setting,)))
        return self._weigh(data, features, prior, np.zeros(len(features)))

    def _weigh(
        self, data: Dataset, features: FeatureSet, prior: Prior, start: npt.NDArray[np.float64]
    ) -> LogLinearModel:
        """Fit the weights that are kept, and drop the features that got none."""
        # How many iterations it takes shows only at the end.
        self._bar.begin("iterations of the last fit", None)
        conditionals = Conditionals.of(features.arrays, data, **self._layout())
        weights, report = fit(features, conditionals, prior, start, **{**_effort(data), "step": self._bar})
        kept = weights != 0 if prior.l1 else np.ones(len(weights), dtype=np.bool_)
        return LogLinearModel(features.take(kept), weights[kept], report=report)

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


def _chosen(best: Choice, priors: Sequence[Prior]) -> Arrays:
    told = [dict(best.setting), priors.index(best.prior), best.tried]
    return {"told": np.frombuffer(json.dumps(told).encode(), dtype=np.uint8)}


def _read(kept: Arrays) -> tuple[dict[str, Any], int, list[dict[str, Any]]]:
    setting, place, tried = json.loads(kept["told"].tobytes())
    return setting, place, tried


def _told(setting: Setting, prior: Prior) -> dict[str, Any]:
    return {**setting, "prior": repr(prior)}


def in_domain(net: LogLinearModel, domain: Domain) -> LogLinearModel:
    """Return the same model over the same variables in another order."""
    if net.domain == domain:
        return net
    place = [domain.index(name) for name in net.domain.names]
    arrays = net.features.arrays
    turned = arrays._replace(variable=np.array(place, dtype=np.int32)[arrays.variable])
    features = FeatureSet.from_arrays(domain, turned)
    moved = (
        tuple(sorted((place[variable], level, equal) for variable, level, equal in literals))
        for literals in arrays.literals()
    )
    weights = dict(zip(moved, net.weights.tolist(), strict=True))
    ordered = [weights[literals] for literals in features.arrays.literals()]
    return LogLinearModel(features, ordered, report=net.fit_report)


def _effort(data: Dataset) -> dict[str, Any]:
    return {
        "tolerance": max(1e-6, TOLERANCE * data.n_rows),
        "max_iterations": _MAX_ITERATIONS,
        "step": lambda: None,
    }
