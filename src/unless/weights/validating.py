"""The prior that predicts unseen rows best."""

from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.errors import DataError, SettingError
from unless.inference.fit_report import Candidate
from unless.inference.priors import NO_PRIOR, Gaussian, Prior
from unless.inference.randomness import make_rng
from unless.inference.rows import read_rows
from unless.structures.graph import FeatureSet
from unless.weights.objective import make_loss

Floats = npt.NDArray[np.float64]
# From strong to weak, so that the weights of one are a good start for the next.
GRID = tuple(Gaussian(sd) for sd in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0))
N_FOLDS = 5


def choose_prior(
    features: FeatureSet,
    data: Dataset,
    priors: str | Iterable[Prior],
    validation: object,
    random_state: Any,
    layout: dict[str, Any],
    settings: dict[str, Any],
) -> tuple[Candidate, ...]:
    """Judge every prior by the (pseudo-)log-likelihood per row of rows it was not fitted to."""
    tried = priors_to_try(priors)
    scores, n_rows = np.zeros(len(tried)), 0
    splits = _splits(data, validation, random_state)
    bar, quiet = settings["step"], {**settings, "step": lambda: None}
    bar.begin("fits", len(splits) * len(tried))
    for training, unseen in splits:
        path = prior_path(features, training, unseen, tried, layout, quiet)
        for place, (_, score) in enumerate(path):
            scores[place] += score
            bar()
        n_rows += unseen.n_rows
    return tuple(Candidate(prior, float(score) / n_rows) for prior, score in zip(tried, scores, strict=True))


def prior_path(
    features: FeatureSet,
    training: Dataset,
    unseen: Dataset,
    priors: Iterable[Prior],
    layout: dict[str, Any],
    settings: dict[str, Any],
) -> Iterator[tuple[Floats, float]]:
    """Give the weights under each prior and the (pseudo-)log-likelihood of the unseen rows, all together.

    The weights under one prior are the start for the next.
    """
    from unless.weights.fitting import fit

    seen = make_loss(features, training, **layout)
    judge = make_loss(features, unseen, **layout, once=True)
    weights = np.zeros(len(features))
    for prior in priors:
        weights, _ = fit(features, seen, prior, weights, **settings)
        yield weights, -float(judge.losses(weights).sum())


def _splits(data: Dataset, validation: object, random_state: Any) -> list[tuple[Dataset, Dataset]]:
    rng = make_rng(random_state)
    share = isinstance(validation, Real) and not isinstance(validation, Integral)
    if isinstance(validation, bool | np.bool_) or (share and not 0 < validation < 1):  # type: ignore[operator]
        raise SettingError(
            f"validation={validation!r} is no way to judge priors; give a table, a share between 0 and 1 or "
            "a number of folds."
        )
    if share:
        aside = rng.binomial(data.counts, float(validation))  # type: ignore[arg-type]
        return [_split(data, aside)]
    if validation is None or isinstance(validation, Integral):
        n_folds = N_FOLDS if validation is None else int(validation)
        if n_folds < 2:
            raise SettingError(f"validation={n_folds!r} must be at least 2 folds.")
        folds = rng.multinomial(data.counts, np.full(n_folds, 1 / n_folds))
        return [_split(data, fold) for fold in folds.T]
    return [(data, read_rows(data.domain, validation))]


def _split(data: Dataset, aside: Any) -> tuple[Dataset, Dataset]:
    parts = [Dataset.from_codes(data.domain, data.rows, counts) for counts in (data.counts - aside, aside)]
    if not all(part.n_rows for part in parts):
        raise DataError(
            f"{data.n_rows:,} rows are too few to set some aside and judge priors by them; give one prior."
        )
    return parts[0], parts[1]


def priors_to_try(prior: Prior | str | Iterable[Prior] | None) -> tuple[Prior, ...]:
    """Return the priors that were asked for: one, several, or the grid of "validate"."""
    if prior is None or isinstance(prior, Prior):
        return (prior or NO_PRIOR,)
    if isinstance(prior, str) and prior == "validate":
        return GRID
    listed = tuple(prior) if isinstance(prior, Iterable) and not isinstance(prior, str) else ()
    if not listed or not all(isinstance(one, Prior) for one in listed):
        raise SettingError(
            f"prior={prior!r} is not known; give Gaussian(sd), Laplace(l1), their sum, a list of them, "
            "'validate' or None."
        )
    return listed
