"""The synthetic domain of Edera, Schlueter and Bromberg (2014): a gate that switches all other links off."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.datasets.gated import (
    Floats,
    GatedDomain,
    Shape,
    balanced,
    links_of,
    owners,
    spokes_of,
)
from unless.errors import SettingError, TooLarge
from unless.inference.randomness import RandomState, check_size, make_rng

Law = Literal["normal", "uniform"]
Place = Literal["last", "first"]
# The table has 2^n cells, and sampling needs a few of its size.
MAX_VARIABLES = 24
MAX_FEATURES = 1_000_000
# They are balanced over all their joint values.
MAX_GATES = 10


class CSIDomain(GatedDomain):
    """A known law over binary variables: all linked while the gate W is 0, only to W while it is 1.

    p(x) ~ exp( [w = 0] sum_{a<b} pair_weights[a, b][x_a, x_b] + [w = 1] sum_a gate_weights[a][x_a] ).
    """

    def __init__(
        self, domain: Domain, pair_weights: Mapping[tuple[int, int], Floats], gate_weights: Floats
    ) -> None:
        gate = len(gate_weights)
        spokes = {(variable, gate): weights for variable, weights in enumerate(gate_weights)}
        super().__init__(domain, dict.fromkeys(pair_weights, gate), pair_weights, spokes)
        self.__dict__.update(pair_weights=pair_weights, gate_weights=gate_weights)

    pair_weights: Mapping[tuple[int, int], Floats]
    gate_weights: Floats

    @cached_property
    def probabilities(self) -> Floats:
        """The exact table, one axis per variable."""
        energy = np.stack(side_energies(self.pair_weights, self.gate_weights), axis=-1)
        table = np.exp(energy - energy.max())
        return np.asarray(table / table.sum())

    def _dataset(self, n: int, random_state: RandomState) -> Dataset:
        # At most 2^n rows differ, so a Dataset of any size is small, and one multinomial draws it exactly.
        rng = make_rng(random_state)
        counts = rng.multinomial(check_size(n), self.probabilities.ravel()).reshape(self.probabilities.shape)
        return Dataset.from_codes(self.domain, np.argwhere(counts > 0), counts[counts > 0])


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
    n_variables: int = 6,
    *,
    law: Law = "normal",
    balance: bool = True,
    w: Place = "last",
    n_levels: int | Sequence[int] = 2,
    n_gates: int = 1,
    shape: Shape = "complete",
    random_state: RandomState = None,
) -> GatedDomain:
    """Draw the weights of a domain whose variable W switches all links between the others, X1, X2, ...

    Parameters
    ----------
    n_variables
        The number of all variables, gates included.
    law
        That of the weights, N(0, 1) or U(0, 1).
    balance
        Shift the weights of W = 1 so that P(W = 1) = 1/2; otherwise W is as the raw law leaves it.
    w
        Where the gate is among the columns, "last" or "first".
    n_levels
        The number of levels of every X, or of each; gates have two.
    n_gates
        With several gates, W1, W2, ..., each switches an equal run of the links, in the order of their
        columns, and is linked to the variables of these links only.
    shape
        Which X are linked while their gate is 0: all ("complete"), neighbours in a "chain", or neighbours in
        a "grid" as square as the number allows, row by row. The last two stay easy to sample exactly as
        they grow.

    The answer is a LogLinearModel of the generating features; `edges(context)` gives the true links and
    `truth(data)` the true canonical model of a table.

    >>> make_csi(6, random_state=0).sample(1_000, random_state=0).n_rows
    1000
    >>> make_csi(30, shape="grid", n_gates=3, random_state=0).gates
    ('W1', 'W2', 'W3')
    """
    sizes = _checked_sizes(n_variables, n_levels, n_gates)
    _check(law, w, shape)
    rng = make_rng(random_state)
    draw = rng.standard_normal if law == "normal" else rng.random
    if (w, n_gates, shape) == ("last", 1, "complete") and set(sizes) == {2}:
        return _as_published(n_variables, draw, balance)
    return _of_shape(sizes, n_gates, w, shape, draw, balance)


def _of_shape(
    sizes: list[int], n_gates: int, w: Place, shape: Shape, draw: Callable[..., Any], balance: bool
) -> GatedDomain:
    n_variables = len(sizes) + n_gates
    gates = range(n_gates) if w == "first" else range(n_variables - n_gates, n_variables)
    others = range(n_gates, n_variables) if w == "first" else range(n_variables - n_gates)
    domain = _domain(sizes, n_gates, w)
    links = links_of(shape, others)
    if len(links) < n_gates > 1:
        raise SettingError(f"n_gates={n_gates} is more than the {len(links)} links; use fewer.")
    owner = owners(links, gates)
    _check_features(domain, links)
    size = domain.n_levels.tolist()
    pair_weights = {(a, b): draw((size[a], size[b])) for a, b in links}
    gate_weights = {spoke: draw(size[spoke[0]]) for spoke in spokes_of(owner, others, gates)}
    raw = GatedDomain(domain, owner, pair_weights, gate_weights)
    if not raw.exact.fits():
        raise TooLarge(
            f"Exact samples of this domain need tables of {raw.exact.cost.cells:.3g} cells; use fewer "
            "variables or levels, or shape='chain'."
        )
    return GatedDomain(domain, owner, pair_weights, balanced(raw, gate_weights)) if balance else raw


def _as_published(n_variables: int, draw: Callable[..., Any], balance: bool) -> CSIDomain:
    if n_variables > MAX_VARIABLES:
        raise TooLarge(
            f"The exact table of {n_variables} variables needs {math.ldexp(8, n_variables) / 1e9:,.1f} GB; "
            f"use at most {MAX_VARIABLES}, or shape='chain' or 'grid'."
        )
    pairs = list(combinations(range(n_variables - 1), 2))
    pair_weights = dict(zip(pairs, draw((len(pairs), 2, 2)), strict=True))
    gate_weights = draw((n_variables - 1, 2))
    if balance:
        gate_weights = gate_weights + _balancing_shift(pair_weights, gate_weights)
    return CSIDomain(_domain([2] * (n_variables - 1), 1, "last"), pair_weights, gate_weights)


def _domain(sizes: Sequence[int], n_gates: int, w: Place) -> Domain:
    gates = [("W" if n_gates == 1 else f"W{number}", 2) for number in range(1, n_gates + 1)]
    others = [(f"X{number}", size) for number, size in enumerate(sizes, 1)]
    named = gates + others if w == "first" else others + gates
    return Domain(tuple(Variable(name, tuple(map(str, range(size))), "integer") for name, size in named))


def _balancing_shift(pair_weights: Mapping[tuple[int, int], Floats], gate_weights: Floats) -> float:
    linked, unlinked = (
        np.logaddexp.reduce(side, axis=None) for side in side_energies(pair_weights, gate_weights)
    )
    # Every row with W = 1 matches exactly one feature per other variable, so a shift shared among them is
    # a shift of the whole side, and the model needs no feature of W alone.
    return float(linked - unlinked) / len(gate_weights)


def _axes(n_others: int, *positions: int) -> tuple[int, ...]:
    return tuple(2 if axis in positions else 1 for axis in range(n_others))


def _checked_sizes(n_variables: int, n_levels: int | Sequence[int], n_gates: int) -> list[int]:
    """Return the number of levels of each X."""
    for name, number, least in (("n_variables", n_variables, 2), ("n_gates", n_gates, 1)):
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
            raise SettingError(f"{name} must be a whole number, {least} or more, not {number!r}.")
    if n_gates > min(MAX_GATES, n_variables - 1):
        raise SettingError(
            f"n_gates must be from 1 to {min(MAX_GATES, n_variables - 1)} for {n_variables} variables, not "
            f"{n_gates!r}."
        )
    n_others = n_variables - n_gates
    sizes = list(n_levels) if isinstance(n_levels, Sequence) else [n_levels] * n_others
    if len(sizes) != n_others or not all(isinstance(size, int | np.integer) and size >= 2 for size in sizes):
        raise SettingError(
            f"n_levels must be 2 or more, or such a number for each of the {n_others} variables that are no "
            f"gates, not {n_levels!r}."
        )
    return [int(size) for size in sizes]


def _check(law: str, w: str, shape: str) -> None:
    if law not in {"normal", "uniform"}:
        raise SettingError(f"There is no law {law!r}; use 'normal' or 'uniform'.")
    if w not in {"last", "first"}:
        raise SettingError(f"w={w!r} is no place for the gates; use 'last' or 'first'.")
    if shape not in {"complete", "chain", "grid"}:
        raise SettingError(f"There is no shape {shape!r}; use 'complete', 'chain' or 'grid'.")


def _check_features(domain: Domain, links: list[tuple[int, int]]) -> None:
    n_features = sum(int(domain.n_levels[a] * domain.n_levels[b]) for a, b in links)
    if n_features > MAX_FEATURES:
        raise TooLarge(
            f"The domain would have {n_features:,} features, more than {MAX_FEATURES:,}; use fewer variables "
            "or levels, or shape='chain' or 'grid'."
        )
