"""DTSL: Markov network structures from decision trees (Lowd and Davis, ICDM 2010, JMLR 2014)."""

from collections.abc import Collection, Iterator, Sequence
from typing import Literal

import numpy as np

from unless.data.dataset import Dataset
from unless.errors import SettingError
from unless.learners.feature_search import FeatureLearner, GridPoint
from unless.learners.feature_search.trees import GrowthRules, features_of_trees, grow_trees
from unless.learners.settings import at_least, setting
from unless.structures.graph import FeatureSet
from unless.weights.fit import priors_to_try
from unless.weights.priors import Gaussian, Laplace, Prior

KAPPAS = (1e-4, 1e-3, 1e-2, 1e-1)
# From strong to weak, so that the weights of one are a good start for the next.
PRIORS = (Gaussian(0.2), Gaussian(0.5) + Laplace(5.0), Gaussian(0.5), Gaussian(1.0))


class DTSL(FeatureLearner):
    """Learn a probability tree for every variable and read the trees as features of one network.

    A tree tells one variable's levels from the others by splits "variable = level", the best first; the path
    to each leaf, with each level of the tree's own variable, is a feature. Weights come from the penalised
    pseudo-likelihood. The features are made to predict, less to be read: a path to a leaf of one variable
    links all the others on it, so that edges cannot be required or forbidden either.

    Fitted, `structure_` is the FeatureSet, `network_` the model, `tried_` what was judged.

    With `work_dir=` the trees are kept, the weights under each kappa, and the choice; the last fit is not on
    its way.

    Parameters
    ----------
    kappa
        A split must add more than -log(kappa) to the log-likelihood of its variable: above 0, at most 1. Of
        several the one is taken that predicts unseen rows best. Values near 1 make many features.
    features
        "leaves"; "pruned", which adds the paths to all inner nodes; or "nonzero", which keeps of every
        feature of the leaves only its conditions "= a level that is not the first", for tables in which the
        first level means that there is nothing.
    min_rows
        Rows that each side of a split must have. For tables of some tens of rows take 1.
    max_depth
        The longest path, in splits; 0 makes all variables independent.
    prior
        For the weights: `Gaussian(sd)`, `Laplace(l1)`, their sum, or several to choose from.

    Examples
    --------
    >>> import unless
    >>> est = unless.DTSL(kappa=0.01, prior=unless.Gaussian(1.0)).fit(unless.datasets.load_ucb_admissions())
    >>> est.structure_
    <FeatureSet: 40 features over 3 variables>
    """

    kappa: float | Sequence[float] = setting(
        default=KAPPAS, check=lambda _, value: _kappas(value), kw_only=False
    )
    features: Literal["leaves", "pruned", "nonzero"] = setting(default="leaves")
    min_rows: int = setting(default=10, check=at_least(1, optional=False))
    max_depth: int | None = setting(default=None, check=at_least(0))
    prior: Prior | str | Sequence[Prior] | None = setting(
        default=PRIORS, check=lambda _, value: priors_to_try(value)
    )

    def _grid(self) -> Sequence[GridPoint]:
        return [{"kappa": kappa} for kappa in _kappas(self.kappa)]

    def _feature_sets(self, data: Dataset, grid: Sequence[GridPoint]) -> Iterator[FeatureSet]:
        # The largest kappa requires least of a split; the trees of the others are the tops of its trees.
        kappas = [float(point["kappa"]) for point in grid]
        rules = GrowthRules(max(kappas), self.min_rows, self.max_depth)
        trees = grow_trees(data, rules, self._run)
        for kappa in kappas:
            yield features_of_trees(data.domain, trees, kappa, self.features)


def _kappas(kappa: object) -> tuple[float, ...]:
    # An iterator would be empty the second time.
    listed = tuple(kappa) if isinstance(kappa, Collection) and not isinstance(kappa, str) else (kappa,)
    if not listed:
        raise SettingError("kappa= is an empty list; give a number above 0 and at most 1, or several.")
    for one in listed:
        if isinstance(one, bool) or not isinstance(one, int | float | np.number) or not 0 < float(one) <= 1:
            raise SettingError(f"kappa={one!r} must be a number above 0 and at most 1, or several of them.")
    return tuple(float(one) for one in listed)
