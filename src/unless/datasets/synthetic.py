"""Synthetic domains with a known law, in which gates switch the links between other variables.

`make_csi` draws that of Edera, Schlueter and Bromberg (2014), one gate that switches all other links off, and
others of any levels, gates and shape.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, Literal, overload

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import SettingError, TooLarge
from unless.inference.model import Evidence, LogLinearModel, Method
from unless.inference.randomness import RandomState, check_size, make_rng
from unless.runtime.memory import Memory
from unless.structures.canonical import CanonicalModel
from unless.structures.graph import FeatureSet
from unless.structures.structure import Edge, FeatureArrays, pack_edges, packed_width
from unless.typing import Floats

Shape = Literal["complete", "chain", "grid"]
Law = Literal["normal", "uniform"]
_Position = Literal["last", "first"]
Pair = tuple[int, int]
# A table of all states is made up to this many.
MAX_STATES = 2**24
# The table of a CSIDomain has 2^n cells, and sampling needs a few of its size.
MAX_VARIABLES = 24
MAX_FEATURES = 1_000_000
# Gates are balanced over all their joint values.
MAX_GATES = 10
# How near to one half the probabilities of gates come, and after how many rounds it is near enough anyway.
BALANCE = 1e-12
MAX_ROUNDS = 1_000


class GatedDomain(LogLinearModel):
    """A known law: each link between two variables holds while its gate is 0.

    p(x) ~ exp( sum over links (a, b) of gate w: [x_w = 0] pair_weights[a, b][x_a, x_b]
              + sum over a at a link of gate w: [x_w = 1] gate_weights[a, w][x_a] ).

    Positions are those of the domain; `owner` gives the gate of each link. A gate is linked to the
    variables of its links in every context.
    """

    def __init__(
        self,
        domain: Domain,
        owner: Mapping[Pair, int],
        pair_weights: Mapping[Pair, Floats],
        gate_weights: Mapping[Pair, Floats],
    ) -> None:
        weights: dict[tuple[tuple[int, int, bool], ...], float] = {}
        for (a, b), table in pair_weights.items():
            for (i, j), weight in np.ndenumerate(table):
                literals = [(a, i, True), (b, j, True), (owner[a, b], 0, True)]
                weights[tuple(sorted(literals))] = float(weight)
        for (a, gate), table in gate_weights.items():
            for (i,), weight in np.ndenumerate(table):
                weights[tuple(sorted([(a, i, True), (gate, 1, True)]))] = float(weight)
        features = FeatureSet.from_arrays(domain, FeatureArrays.of(weights))
        super().__init__(features, [weights[literals] for literals in features.arrays.literals()])
        self.__dict__.update(owner=dict(owner), spokes=tuple(gate_weights))

    owner: Mapping[Pair, int]
    spokes: tuple[Pair, ...]

    @property
    def gates(self) -> tuple[str, ...]:
        """The names of the variables that switch links."""
        return tuple(self.domain.names[gate] for gate in sorted({gate for _, gate in self.spokes}))

    @property
    def gate(self) -> str:
        """The name of the only gate."""
        if len(self.gates) > 1:
            raise SettingError(f"There are {len(self.gates)} gates; ask for gates.")
        return self.gates[0]

    @cached_property
    def probabilities(self) -> Floats:
        """The exact table, one axis per variable, where it is small."""
        shape = tuple(self.domain.n_levels.tolist())
        n_states = float(np.prod(self.domain.n_levels.astype(np.float64)))
        if n_states > MAX_STATES:
            raise TooLarge(
                f"The table has {n_states:.3g} states and needs {8 * n_states / 1e9:,.1f} GB; use query() or "
                "sample()."
            )
        energy = np.zeros(shape)
        for literals, weight in zip(self.features.arrays.literals(), self.weights.tolist(), strict=True):
            where: list[int | slice] = [slice(None)] * len(shape)
            for variable, level, _ in literals:
                where[variable] = level
            energy[tuple(where)] += weight
        table = np.exp(energy - energy.max())
        return np.asarray(table / table.sum())

    def edges(self, context: Mapping[str, object] | None = None) -> frozenset[Edge]:
        """Return the true links in a context; where it gives a gate no value, those of any."""
        codes = self.domain.encode(context or {})
        names = self.domain.names
        present = [pair for pair, gate in self.owner.items() if codes.get(gate) != 1]
        return frozenset(
            (min(names[a], names[b]), max(names[a], names[b])) for a, b in (*present, *self.spokes)
        )

    def truth(self, data: Dataset) -> CanonicalModel:
        """Return the true graph of every distinct row of a table: what a learner should find."""
        if data.domain != self.domain:
            raise SettingError("The table is not of this domain; give one that was sampled from it.")
        gates = [self.domain.index(name) for name in self.gates]
        settings, which = np.unique(data.rows[:, gates], axis=0, return_inverse=True)
        packed = np.zeros((len(settings), packed_width(len(self.domain))), dtype=np.uint8)
        for number, levels in enumerate(settings.tolist()):
            context = self.domain.decode(dict(zip(gates, levels, strict=True)))
            packed[number] = pack_edges(self.domain, self.edges(context))
        return CanonicalModel.from_edges(self.domain, data.rows, data.counts, packed[which.ravel()])

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
        show_progress: bool | None = None,
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
        show_progress: bool | None = None,
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
        show_progress: bool | None = None,
    ) -> Any:
        """Draw rows, exactly, as a Dataset, or as the kind of frame that `backend` names."""
        how: dict[str, Any] = {"evidence": evidence, "method": method, "max_memory": max_memory}
        if backend is not None:
            return super().sample(n, random_state, **how, backend=backend, show_progress=show_progress)
        if evidence or method != "auto":
            return self.sample_codes(n, random_state, **how, show_progress=show_progress)
        return self._dataset(n, random_state)

    def _dataset(self, n: int, random_state: RandomState) -> Dataset:
        return self.sample_codes(n, random_state, method="exact")


class CSIDomain(GatedDomain):
    """A known law over binary variables: all linked while the gate W is 0, only to W while it is 1.

    p(x) ~ exp( [w = 0] sum_{a<b} pair_weights[a, b][x_a, x_b] + [w = 1] sum_a gate_weights[a][x_a] ).
    """

    def __init__(self, domain: Domain, pair_weights: Mapping[Pair, Floats], gate_weights: Floats) -> None:
        gate = len(gate_weights)
        spokes = {(variable, gate): weights for variable, weights in enumerate(gate_weights)}
        super().__init__(domain, dict.fromkeys(pair_weights, gate), pair_weights, spokes)
        self.__dict__.update(pair_weights=pair_weights, gate_weights=gate_weights)

    pair_weights: Mapping[Pair, Floats]
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


def side_energies(pair_weights: Mapping[Pair, Floats], gate_weights: Floats) -> tuple[Floats, Floats]:
    """Return the exponents of p(x) for W = 0 and for W = 1, one axis per other variable."""
    n_others = len(gate_weights)
    linked, unlinked = np.zeros((2,) * n_others), np.zeros((2,) * n_others)
    for (a, b), weights in pair_weights.items():
        linked += weights.reshape(_axes(n_others, a, b))
    for a, weights in enumerate(gate_weights):
        unlinked += weights.reshape(_axes(n_others, a))
    return linked, unlinked


def _axes(n_others: int, *positions: int) -> tuple[int, ...]:
    return tuple(2 if axis in positions else 1 for axis in range(n_others))


def make_csi(
    n_variables: int = 6,
    *,
    law: Law = "normal",
    balance: bool = True,
    w: _Position = "last",
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
    sizes: list[int], n_gates: int, w: _Position, shape: Shape, draw: Callable[..., Any], balance: bool
) -> GatedDomain:
    n_variables = len(sizes) + n_gates
    gates = range(n_gates) if w == "first" else range(n_variables - n_gates, n_variables)
    others = range(n_gates, n_variables) if w == "first" else range(n_variables - n_gates)
    domain = _domain(sizes, n_gates, w)
    links = links_of(shape, others)
    if len(links) < n_gates > 1:
        raise SettingError(f"n_gates={n_gates} is more than the {len(links)} links; use fewer.")
    owner, size = owners(links, gates), domain.n_levels.tolist()
    n_features = sum(size[a] * size[b] for a, b in links)
    if n_features > MAX_FEATURES:
        raise TooLarge(
            f"The domain would have {n_features:,} features, more than {MAX_FEATURES:,}; use fewer variables "
            "or levels, or shape='chain' or 'grid'."
        )
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
        linked, unlinked = (
            np.logaddexp.reduce(energies, axis=None) for energies in side_energies(pair_weights, gate_weights)
        )
        # Every row with W = 1 matches exactly one feature per other variable, so a shift shared among them is
        # a shift of all these rows, and the model needs no feature of W alone.
        gate_weights = gate_weights + float(linked - unlinked) / len(gate_weights)
    return CSIDomain(_domain([2] * (n_variables - 1), 1, "last"), pair_weights, gate_weights)


def _domain(sizes: Sequence[int], n_gates: int, w: _Position) -> Domain:
    gates = [("W" if n_gates == 1 else f"W{number}", 2) for number in range(1, n_gates + 1)]
    others = [(f"X{number}", size) for number, size in enumerate(sizes, 1)]
    named = gates + others if w == "first" else others + gates
    return Domain(tuple(Variable(name, tuple(map(str, range(size))), "integer") for name, size in named))


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


def links_of(shape: Shape, variables: Sequence[int]) -> list[Pair]:
    """Return the links of variables that are all linked, or neighbours in a chain or in a grid."""
    if shape == "complete":
        return list(combinations(variables, 2))
    if shape == "chain":
        return list(pairwise(variables))
    # As square as the number allows, row by row; the last row may be shorter.
    width = int(np.ceil(np.sqrt(len(variables))))
    numbers = range(len(variables))
    right = [(number, number + 1) for number in numbers[:-1] if (number + 1) % width]
    below = [(number, number + width) for number in numbers[:-width]]
    return [(variables[a], variables[b]) for a, b in sorted(right + below)]


def owners(links: Sequence[Pair], gates: Sequence[int]) -> dict[Pair, int]:
    """Deal the links, in their order, to the gates in runs of equal length."""
    return {link: gates[number * len(gates) // len(links)] for number, link in enumerate(links)}


def spokes_of(owner: Mapping[Pair, int], variables: Sequence[int], gates: Sequence[int]) -> list[Pair]:
    """Return (variable, gate) for the variables at the links of each gate; all belong to a single one."""
    if len(gates) == 1:
        return [(variable, gates[0]) for variable in variables]
    touched = {(end, gate) for link, gate in owner.items() for end in link}
    return [(variable, gate) for gate in gates for variable in variables if (variable, gate) in touched]


def balanced(raw: GatedDomain, gate_weights: Mapping[Pair, Floats]) -> dict[Pair, Floats]:
    """Shift the weights of each gate's side of 1 evenly until every gate is open half the time."""
    gates = [raw.domain.index(name) for name in raw.gates]
    sides = np.array(list(np.ndindex((2,) * len(gates))))
    evidence = np.full((len(sides), len(raw.domain)), -1, dtype=np.int64)
    evidence[:, gates] = sides
    log_sums, _ = raw.exact.posteriors(evidence, marginals=False)
    shifts = dict(zip(gates, _even(log_sums, sides.astype(np.float64)), strict=True))
    n_spokes = {gate: sum(one == gate for _, one in gate_weights) for gate in gates}
    # A row with its gate at 1 matches exactly one feature per spoke: what they share shifts the whole side.
    return {spoke: weights + shifts[spoke[1]] / n_spokes[spoke[1]] for spoke, weights in gate_weights.items()}


def _even(log_sums: Floats, sides: Floats) -> list[float]:
    """Find what to add to the log sums for each gate at 1 so that every gate is at 1 half the time.

    It is where `height`, which is convex, is lowest. Evening out one gate after another always goes down and
    is all that one gate needs; Newton steps make it quick where gates depend on each other.
    """
    shifts = np.zeros(sides.shape[1])
    signs = sides - 0.5

    def height(at: Floats) -> float:
        return float(np.logaddexp.reduce(log_sums + signs @ at))

    for _ in range(MAX_ROUNDS):
        for gate, side in enumerate(sides.T):
            logs = log_sums + sides @ shifts
            shifts[gate] += np.logaddexp.reduce(logs[side == 0]) - np.logaddexp.reduce(logs[side == 1])
        logs = log_sums + sides @ shifts
        probabilities = np.exp(logs - np.logaddexp.reduce(logs))
        slope = probabilities @ signs
        if np.abs(slope).max() < BALANCE:
            break
        curvature = (signs * probabilities[:, None]).T @ signs - np.outer(slope, slope)
        step = np.linalg.lstsq(curvature, slope, rcond=None)[0]
        if height(shifts - step) < height(shifts):
            shifts = shifts - step
    return [float(shift) for shift in shifts]
