"""The synthetic domain of Edera, Schlueter and Bromberg (2014): a gate that switches all other links off."""

import math
from collections.abc import Mapping
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import SettingError, TooLarge
from unless.inference.model import Evidence, LogLinearModel, Memory
from unless.inference.queries import Method
from unless.inference.randomness import RandomState, check_size, make_rng
from unless.structures.conditions import FeatureArrays
from unless.structures.conditions import Literal as Spoken
from unless.structures.features import FeatureSet

Law = Literal["normal", "uniform"]
Floats = npt.NDArray[np.float64]
# The table has 2^n cells, and sampling needs a few of its size.
MAX_VARIABLES = 24


class CSIDomain(LogLinearModel):
    """A known law over binary variables: all linked while the gate W is 0, only to W while it is 1.

    p(x) ~ exp( [w = 0] sum_{a<b} pair_weights[a, b][x_a, x_b] + [w = 1] sum_a gate_weights[a][x_a] ).
    """

    def __init__(
        self, domain: Domain, pair_weights: Mapping[tuple[int, int], Floats], gate_weights: Floats
    ) -> None:
        spoken = _spoken(pair_weights, gate_weights)
        features = FeatureSet.from_arrays(domain, FeatureArrays.of(spoken))
        super().__init__(features, [spoken[literals] for literals in features.arrays.literals()])
        self.__dict__.update(pair_weights=pair_weights, gate_weights=gate_weights)

    pair_weights: Mapping[tuple[int, int], Floats]
    gate_weights: Floats

    @property
    def gate(self) -> str:
        """The name of the variable that switches the links, the last one."""
        return self.domain.names[-1]

    @cached_property
    def probabilities(self) -> Floats:
        """The exact table, one axis per variable."""
        energy = np.stack(side_energies(self.pair_weights, self.gate_weights), axis=-1)
        table = np.exp(energy - energy.max())
        return np.asarray(table / table.sum())

    def edges(self, context: Mapping[str, object] | None = None) -> frozenset[tuple[str, str]]:
        """Return the true links in a context; without a value of the gate, those of any."""
        codes = self.domain.encode(context or {})
        pairs = frozenset(combinations(sorted(self.domain.names), 2))
        if codes.get(len(self.domain) - 1) == 1:
            return frozenset(pair for pair in pairs if self.gate in pair)
        return pairs

    @overload
    def sample(
        self,
        n: int,
        random_state: RandomState = None,
        *,
        evidence: Evidence = None,
        method: Method = "auto",
        max_memory: Memory = None,
        backend: None = None,
    ) -> Dataset: ...

    @overload
    def sample(
        self,
        n: int,
        random_state: RandomState = None,
        *,
        evidence: Evidence = None,
        method: Method = "auto",
        max_memory: Memory = None,
        backend: str | None = None,
    ) -> Any: ...

    def sample(
        self,
        n: int,
        random_state: RandomState = None,
        *,
        evidence: Evidence = None,
        method: Method = "auto",
        max_memory: Memory = None,
        backend: str | None = None,
    ) -> Any:
        """Draw rows as a Dataset, or as the kind of frame that `backend` names.

        At most 2^n rows differ, so a Dataset of any size is small; it is drawn exactly, as one multinomial.
        """
        if backend is not None:
            return super().sample(
                n,
                random_state,
                evidence=evidence,
                method=method,
                max_memory=max_memory,
                backend=backend,
            )
        if evidence or method != "auto":
            return self.sample_codes(n, random_state, evidence=evidence, method=method, max_memory=max_memory)
        rng = make_rng(random_state)
        counts = rng.multinomial(check_size(n), self.probabilities.ravel()).reshape(self.probabilities.shape)
        return Dataset.from_codes(self.domain, np.argwhere(counts > 0), counts[counts > 0])


def _spoken(
    pair_weights: Mapping[tuple[int, int], Floats], gate_weights: Floats
) -> dict[tuple[Spoken, ...], float]:
    """Write the weights down by the conditions of their features."""
    gate = len(gate_weights)
    spoken: dict[tuple[Spoken, ...], float] = {}
    for (a, b), weights in pair_weights.items():
        for i, j in np.ndindex(2, 2):
            spoken[(a, i, True), (b, j, True), (gate, 0, True)] = float(weights[i, j])
    for (a, i), weight in np.ndenumerate(gate_weights):
        spoken[(a, i, True), (gate, 1, True)] = float(weight)
    return spoken


def side_energies(
    pair_weights: Mapping[tuple[int, int], Floats], gate_weights: Floats
) -> tuple[Floats, Floats]:
    """Return the exponents of p(x) for W = 0 and for W = 1, one axis per other variable."""
    n_others = len(gate_weights)
    linked, unlinked = np.zeros((2,) * n_others), np.zeros((2,) * n_others)
    for (a, b), weights in pair_weights.items():
        linked += weights.reshape(_axes(n_others, a, b))
    for a, weights in enumerate(gate_weights):
        unlinked += weights.reshape(_axes(n_others, a))
    return linked, unlinked


def make_csi(
    n_variables: int = 6, *, law: Law = "normal", balance: bool = True, random_state: RandomState = None
) -> CSIDomain:
    """Draw the weights of a domain whose last variable, W, switches all links between the others.

    `law` is that of the weights, N(0, 1) or U(0, 1); `balance` shifts those of W = 1 so that P(W = 1) = 1/2.

    >>> make_csi(6, random_state=0).sample(1_000, random_state=0).n_rows
    1000
    """
    _check(n_variables, law)
    rng = make_rng(random_state)
    draw = rng.standard_normal if law == "normal" else rng.random
    names = [*(f"X{position}" for position in range(1, n_variables)), "W"]
    domain = Domain(tuple(Variable(name, ("0", "1"), "integer") for name in names))
    pairs = list(combinations(range(n_variables - 1), 2))
    pair_weights = dict(zip(pairs, draw((len(pairs), 2, 2)), strict=True))
    gate_weights = draw((n_variables - 1, 2))
    if balance:
        gate_weights = gate_weights + _balancing_shift(pair_weights, gate_weights)
    return CSIDomain(domain, pair_weights, gate_weights)


def _balancing_shift(pair_weights: Mapping[tuple[int, int], Floats], gate_weights: Floats) -> float:
    linked, unlinked = (
        np.logaddexp.reduce(side, axis=None) for side in side_energies(pair_weights, gate_weights)
    )
    # Every row with W = 1 matches exactly one feature per other variable, so a shift shared among them is
    # a shift of the whole side, and the model needs no feature of W alone.
    return float(linked - unlinked) / len(gate_weights)


def _axes(n_others: int, *positions: int) -> tuple[int, ...]:
    return tuple(2 if axis in positions else 1 for axis in range(n_others))


def _check(n_variables: int, law: str) -> None:
    if isinstance(n_variables, bool) or not isinstance(n_variables, int | np.integer) or n_variables < 2:
        raise SettingError(f"n_variables must be a whole number, 2 or more, not {n_variables!r}.")
    if n_variables > MAX_VARIABLES:
        raise TooLarge(
            f"The exact table of {n_variables} variables needs {math.ldexp(8, n_variables) / 1e9:,.1f} GB; "
            f"use at most {MAX_VARIABLES}."
        )
    if law not in {"normal", "uniform"}:
        raise SettingError(f"There is no law {law!r}; use 'normal' or 'uniform'.")
