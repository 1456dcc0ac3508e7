"""What a graph asserts about one variable, and how probable that is by the Bayesian test."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from unless.counting.strata import StrataTable
from unless.kernels.strata import Desk

Floats = npt.NDArray[np.float64]
Names = npt.NDArray[np.uint64]
# A fixed seed: the words only name questions, no answer depends on them.
_SEED = 2014


def terms_at(table: StrataTable, a: int, blanket: Sequence[int], desk: Desk) -> Floats:
    """Return the log probability of each assertion about a: 0 for a itself.

    A member of the blanket is asserted to be dependent given the other members, anyone else to be
    independent given all of them.
    """
    terms = np.zeros(table.n_variables)
    outside = _others(table, a, blanket)
    terms[outside] = table.bayesian(table.given(blanket, desk), a, outside, desk)[0]
    for d, rest in table.leaving_out(blanket, desk):
        terms[d] = table.bayesian(rest, a, [d], desk)[1][0]
    return terms


def scores_of_additions(
    table: StrataTable, a: int, blanket: Sequence[int], added: Sequence[int], desk: Desk
) -> dict[int, list[float]]:
    """Return, for each variable that might join the blanket, the terms of all outside it then."""
    outside, strata = _others(table, a, blanket), table.given(blanket, desk)
    dependent = dict(zip(outside, table.bayesian(strata, a, outside, desk)[1].tolist(), strict=True))
    terms = {}
    for c in added:
        rest = [e for e in outside if e != c]
        independent = table.bayesian(strata, a, rest, desk, given=c)[0]
        terms[c] = [dependent[c], *independent.tolist()]
    return terms


def scores_beside(
    table: StrataTable, a: int, blanket: Sequence[int], member: int, flipped: Sequence[int], desk: Desk
) -> dict[int, list[float]]:
    """Return, for each variable flipped into or out of the blanket, what one member then contributes.

    Where the member itself is flipped out, these are the terms of all who are outside then.
    """
    others = [b for b in blanket if b != member]
    strata, terms = table.given(others, desk), {}
    for c in flipped:
        if c == member:
            terms[c] = table.bayesian(strata, a, _others(table, a, others), desk)[0].tolist()
        elif c not in others:
            terms[c] = table.bayesian(strata, a, [member], desk, given=c)[1].tolist()
    if any(c in others for c in flipped):
        for c, rest in table.leaving_out(others, desk):
            if c in flipped:
                terms[c] = table.bayesian(rest, a, [member], desk)[1].tolist()
    return terms


def add_up(parts: Iterable[dict[int, list[float]]]) -> dict[int, float]:
    """Sum the terms of each flip, exactly rounded: neither their order nor that of the parts matters."""
    terms: dict[int, list[float]] = {}
    for part in parts:
        for flip, values in part.items():
            terms.setdefault(flip, []).extend(values)
    return {flip: math.fsum(values) for flip, values in terms.items()}


def _others(table: StrataTable, a: int, blanket: Sequence[int]) -> list[int]:
    return [b for b in range(table.n_variables) if b != a and b not in blanket]


@dataclass
class Tally:
    """Counts distinct questions by random names of 128 bits: ({a, b}, given) is one from either side."""

    n_variables: int
    _known: Names = field(default_factory=lambda: np.empty((0, 2), dtype=np.uint64))
    _new: list[Names] = field(default_factory=list)
    _n_new: int = 0

    def __post_init__(self) -> None:
        words = np.random.default_rng(_SEED).integers(
            0, 2**64, size=(2 * self.n_variables, 2), dtype=np.uint64
        )
        self._as_end, self._as_given = words[: self.n_variables], words[self.n_variables :]

    def add(self, a: int, blanket: Iterable[int]) -> None:
        """Take note of all assertions about a under this blanket."""
        members = list(blanket)
        given = np.bitwise_xor.reduce(self._as_given[members], axis=0)
        names = (self._as_end + self._as_end[a]) ^ given
        # A member is asked about given the others.
        names[members] ^= self._as_given[members]
        self._new.append(np.delete(names, a, axis=0))
        self._n_new += self.n_variables - 1
        if self._n_new > max(2**16, len(self._known)):
            self._merge()

    @property
    def n_distinct(self) -> int:
        """The number of different questions so far."""
        self._merge()
        return len(self._known)

    def _merge(self) -> None:
        names = np.concatenate([self._known, *self._new])
        names = names[np.lexsort((names[:, 1], names[:, 0]))]
        fresh = np.ones(len(names), dtype=np.bool_)
        fresh[1:] = (names[1:] != names[:-1]).any(axis=1)
        self._known, self._new, self._n_new = names[fresh], [], 0
