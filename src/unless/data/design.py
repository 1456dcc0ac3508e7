"""How the rows of a survey were drawn: weights, clusters and strata."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
import numpy.typing as npt

from unless.data.showing import html_table

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Design:
    """Weights, clusters and strata of rows that are counted together.

    `weights`, `squares` and `fourths` are the sums of the weights, of their squares and (nearly) of their
    fourth powers over the rows that are counted together; a weight is 1 on average. `clusters` and `strata`
    number those of each row; None where every row is a cluster of its own, or where there is one stratum.
    `columns` names the columns that say so.
    """

    weights: Floats
    squares: Floats
    fourths: Floats
    clusters: Ints | None = None
    strata: Ints | None = None
    columns: tuple[str, ...] = ()

    @property
    def n_effective(self) -> float:
        """The rows of a plain sample with the same error of a mean, by the weights alone (Kish 1965)."""
        return effective_size(self.weights, self.squares)

    @property
    def n_clusters(self) -> int | None:
        """The number of clusters; None where every row is one."""
        return None if self.clusters is None else len(np.unique(self.clusters))

    def _repr_html_(self) -> str:
        rows = [("rows of a plain sample, by the weights", f"{self.n_effective:,.0f}")]
        if self.n_clusters is not None:
            rows.append(("clusters", f"{self.n_clusters:,}"))
        return html_table("Design of a survey", ("", ""), rows, [f"From {', '.join(self.columns)}."])

    def keys(self) -> list[Ints]:
        """Return what tells rows apart beside their levels."""
        return [one for one in (self.strata, self.clusters) if one is not None]

    def taken(self, rows: Bools | Ints) -> "Design":
        """Keep some rows, or put them into another order."""
        clusters, strata = (None if one is None else one[rows] for one in (self.clusters, self.strata))
        sums = self.weights[rows], self.squares[rows], self.fourths[rows]
        return Design(*sums, clusters, strata, self.columns)

    def joined(self, order: Ints, starts: Ints) -> "Design":
        """Sort the rows and add up those between two starts, which are of one cluster and stratum."""
        clusters, strata = (
            None if one is None else one[order][starts] for one in (self.clusters, self.strata)
        )
        weights, squares, fourths = (
            np.add.reduceat(one[order], starts) for one in (self.weights, self.squares, self.fourths)
        )
        return Design(weights, squares, fourths, clusters, strata, self.columns)


def effective_size(weights: Floats, squares: Floats) -> float:
    """Return the square of the sum of weights by the sum of their squares.

    >>> effective_size(np.array([1.0, 3.0]), np.array([1.0, 9.0]))
    1.6
    """
    # Rounded once, the sums are the same in any order.
    total = fsum(weights.tolist())
    return total * total / fsum(squares.tolist()) if total else 0.0


def whole_numbers(weights: Sequence[float] | Floats) -> Ints:
    """Round weights to whole numbers that add up to their sum, in proportion in every run of rows.

    This is systematic sampling with probability proportional to the weight, from half a step on: rows that
    are left out and rows that are counted say nothing of what they hold but through the weight.

    >>> whole_numbers([0.5, 0.5, 1.0, 0.25, 2.75]).tolist()
    [0, 1, 1, 0, 3]
    """
    ends = np.floor(np.cumsum(np.asarray(weights, dtype=np.float64)) + 0.5 - 1e-9)
    return np.diff(ends, prepend=0.0).astype(np.int64)
