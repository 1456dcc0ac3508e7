"""Rows drawn from a table: set aside to judge by, or to learn from again."""

from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.data.ordering import code_order
from unless.errors import DataError, SettingError

# numpy draws without putting back from no more rows than this.
_MOST_ROWS = 10**9


def hold_out(data: Dataset, share: float, random_state: Any = None) -> tuple[Dataset, Dataset]:
    """Cut a table in two: the rows to learn from, and a share of all rows, drawn at random, to judge by.

    The order of the rows and of the columns has no say in the draw.
    """
    check_share(share)
    n_aside = round(share * data.n_rows)
    order, aside = _settled_order(data), np.empty_like(data.counts)
    if data.n_rows:
        aside[order] = _draw(np.random.default_rng(random_state), data.counts[order], n_aside)
    if not 0 < aside.sum() < data.n_rows:
        raise DataError(
            f"Setting {share:g} of {data.n_rows:,} rows aside leaves none on one side; give more rows, "
            "another share, or a single setting that needs no judging."
        )
    return _take(data, data.counts - aside), _take(data, aside)


def resample(data: Dataset, rng: np.random.Generator, share: float | None = None) -> Dataset:
    """Draw as many rows as there are, each put back; or a share of them, none put back.

    The domain is kept: a level that no row drawn has is still one. The order of the rows and of the columns
    has no say in the draw.
    """
    order, counts = _settled_order(data), np.empty_like(data.counts)
    settled = data.counts[order]
    if share is None:
        counts[order] = rng.multinomial(data.n_rows, settled / data.n_rows)
    else:
        counts[order] = _draw(rng, settled, max(1, round(share * data.n_rows)))
    return _take(data, counts)


def _settled_order(data: Dataset) -> npt.NDArray[np.intp]:
    by_name = np.argsort(np.array(data.names, dtype=object), kind="stable")
    return code_order(data.rows[:, by_name])


def check_share(share: object, setting: str = "validation") -> None:
    """Refuse what is no share of rows."""
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0 < float(share) < 1:
        raise SettingError(f"{setting}={share!r} must be a share of the rows between 0 and 1, such as 0.3.")


def check_seed(seed: object) -> None:
    """Refuse what is no seed of draws."""
    is_seed = isinstance(seed, int | np.integer) and not isinstance(seed, bool) and int(seed) >= 0
    if seed is not None and not is_seed:
        raise SettingError(f"random_state={seed!r} must be a whole number of 0 or more, or None.")


def _draw(rng: np.random.Generator, counts: npt.NDArray[np.int64], n_aside: int) -> npt.NDArray[np.int64]:
    total = int(counts.sum())
    if total < _MOST_ROWS:
        return rng.multivariate_hypergeometric(counts, n_aside, method="marginals")
    return rng.binomial(counts, n_aside / total)


def _take(data: Dataset, counts: npt.NDArray[np.int64]) -> Dataset:
    present = counts > 0
    return Dataset.from_codes(data.domain, data.rows[present], counts[present], data.notes)
