"""Settings that several learners share, checked once and turned into what the kernels read."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.counting.slices import association_order
from unless.data.dataset import Dataset
from unless.data.domain import Domain, shorten
from unless.errors import SettingError
from unless.independence.power import critical_values, minimum_rows
from unless.kernels.answers import BAYESIAN, LIKELIHOOD_RATIO, PEARSON, Rules
from unless.kernels.bits import pack_sets

EdgeNames = Collection[tuple[str, str]] | None
KERNEL_TESTS = {"pearson": PEARSON, "likelihood_ratio": LIKELIHOOD_RATIO, "bayesian": BAYESIAN}


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Refuse a setting that is none of its choices."""
    allowed = tuple(choices)
    if not isinstance(value, str) or value not in allowed:
        raise SettingError(f"{name}={value!r} is not one of {', '.join(map(repr, allowed))}.")


def check_between(name: str, value: object, low: float, high: float) -> None:
    """Refuse a number outside the open interval."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.number)
        or not low < float(value) < high
    ):
        raise SettingError(f"{name}={value!r} must be a number between {low} and {high}, both excluded.")


def check_at_least(name: str, value: object, low: int, *, optional: bool = True) -> None:
    """Refuse anything but whole numbers from `low` on, and None where it is allowed."""
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        either = "None or " if optional else ""
        raise SettingError(f"{name}={value!r} must be {either}a whole number of at least {low}.")


def check_n_jobs(n_jobs: object) -> None:
    """Refuse anything but None and whole numbers other than 0."""
    if n_jobs is None:
        return
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise SettingError(f"n_jobs={n_jobs!r} must be None, a number of threads, or -1 for all of them.")


def resolve_order(data: Dataset, order: str | Sequence[str]) -> list[int]:
    """Return the columns in the order a learner visits them."""
    if isinstance(order, str):
        check_choice("order", order, ("association", "columns"))
        return association_order(data) if order == "association" else list(range(data.n_variables))
    # An iterator would be empty at the second look, and a set has another order in another process.
    if not isinstance(order, Collection) or isinstance(order, AbstractSet | Mapping):
        raise SettingError(f"order={order!r} must be 'association', 'columns' or a list of all names.")
    names = list(order)
    columns = [data.domain.index(name) for name in names]
    if sorted(columns) != list(range(data.n_variables)):
        missing = [name for name in data.names if name not in names]
        what = f"leaves out {shorten(missing)}" if missing else "names a variable twice"
        raise SettingError(f"order= must name every variable once; it {what}.")
    return columns


def edge_matrix(domain: Domain, edges: EdgeNames, setting: str) -> npt.NDArray[np.bool_]:
    """Turn pairs of names into a symmetric matrix of columns."""
    matrix = np.zeros((len(domain), len(domain)), dtype=np.bool_)
    if edges is None:
        return matrix
    if not isinstance(edges, Collection):
        # An iterator would be empty at the second fit.
        raise SettingError(f"{setting}= must be a list of pairs of names.")
    for edge in edges:
        pair = tuple(edge) if isinstance(edge, Iterable) and not isinstance(edge, str) else (edge,)
        if len(pair) != 2 or pair[0] == pair[1]:
            raise SettingError(f"{setting}= holds {edge!r}; each edge is a pair of two different names.")
        a, b = (domain.index(name) for name in pair)
        matrix[a, b] = matrix[b, a] = True
    return matrix


def edge_limits(
    domain: Domain, required: EdgeNames, forbidden: EdgeNames
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return the edges that must be there and those that must not, as matrices of columns."""
    must = edge_matrix(domain, required, "required_edges")
    never = edge_matrix(domain, forbidden, "forbidden_edges")
    if (must & never).any():
        a, b = np.argwhere(must & never)[0]
        raise SettingError(
            f"The edge {domain.names[a]!r} - {domain.names[b]!r} is both required and forbidden."
        )
    return must, never


def kernel_rules(
    data: Dataset,
    order: list[int],
    *,
    alpha: float,
    effect: float,
    test: str,
    undecided: str,
    max_blanket: int | None,
    required: EdgeNames,
    forbidden: EdgeNames,
) -> Rules:
    """Write the settings of a learner of blankets, checked already, as the kernels read them."""
    must, never = edge_limits(data.domain, required, forbidden)
    max_df = int(np.prod([size - 1 for size in _most_levels(data)]))
    keeps = undecided == "keep"
    # Only a learner that treats "undecided" in its own way needs to know how many rows settle a question.
    enough: Any = (
        minimum_rows(float(alpha), float(effect), max_df) if keeps else np.zeros(max_df + 1, np.int64)
    )
    return Rules(
        critical=np.array(critical_values(float(alpha), max_df)),
        minimum_rows=np.array(enough),
        test=KERNEL_TESTS[test],
        keep_undecided=keeps,
        max_blanket=len(data.domain) if max_blanket is None else int(max_blanket),
        required=pack_sets(must[np.ix_(order, order)]),
        forbidden=pack_sets(never[np.ix_(order, order)]),
    )


def _most_levels(data: Dataset) -> list[int]:
    """Return how many levels occur in the two variables with most; others give no degree of freedom."""
    most: list[int] = []
    for column in np.argsort(-data.domain.n_levels):
        # Counted only as long as a variable could have more.
        if len(most) == 2 and most[0] >= data.domain.n_levels[column]:
            break
        most = sorted([*most, int(np.count_nonzero(np.bincount(data.rows[:, column])))])[-2:]
    return most
