"""Known laws in which gates switch the links between other variables, of any levels and shape."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.data.domain import Domain
from unless.errors import SettingError, TooLarge
from unless.inference.engine import Memory, Method
from unless.inference.model import Evidence, LogLinearModel
from unless.inference.randomness import RandomState
from unless.structures.canonical import CanonicalModel
from unless.structures.conditions import FeatureArrays
from unless.structures.conditions import Literal as Spoken
from unless.structures.graph import FeatureSet
from unless.structures.pairs import Edge, pack_edges, packed_width

Shape = Literal["complete", "chain", "grid"]
Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]
# A table of all states is made up to this many.
MAX_STATES = 2**24
# How near to one half the chances of gates come, and after how many rounds it is near enough anyway.
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
        spoken = _spoken(owner, pair_weights, gate_weights)
        features = FeatureSet.from_arrays(domain, FeatureArrays.of(spoken))
        super().__init__(features, [spoken[literals] for literals in features.arrays.literals()])
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


def links_of(shape: Shape, variables: Sequence[int]) -> list[Pair]:
    """Return the links of variables that are all linked, or neighbours in a chain or in a grid."""
    if shape == "complete":
        return list(combinations(variables, 2))
    if shape == "chain":
        return list(pairwise(variables))
    # As square as the number allows, row by row; the last row may be shorter.
    width = int(np.ceil(np.sqrt(len(variables))))
    places = range(len(variables))
    right = [(place, place + 1) for place in places[:-1] if (place + 1) % width]
    below = [(place, place + width) for place in places[:-width]]
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
        chances = np.exp(logs - np.logaddexp.reduce(logs))
        slope = chances @ signs
        if np.abs(slope).max() < BALANCE:
            break
        curvature = (signs * chances[:, None]).T @ signs - np.outer(slope, slope)
        step = np.linalg.lstsq(curvature, slope, rcond=None)[0]
        if height(shifts - step) < height(shifts):
            shifts = shifts - step
    return [float(shift) for shift in shifts]


def _spoken(
    owner: Mapping[Pair, int], pair_weights: Mapping[Pair, Floats], gate_weights: Mapping[Pair, Floats]
) -> dict[tuple[Spoken, ...], float]:
    """Write the weights down by the conditions of their features, variables in order."""
    spoken: dict[tuple[Spoken, ...], float] = {}
    for (a, b), weights in pair_weights.items():
        for (i, j), weight in np.ndenumerate(weights):
            literals = [(a, i, True), (b, j, True), (owner[a, b], 0, True)]
            spoken[tuple(sorted(literals))] = float(weight)
    for (a, gate), weights in gate_weights.items():
        for (i,), weight in np.ndenumerate(weights):
            spoken[tuple(sorted([(a, i, True), (gate, 1, True)]))] = float(weight)
    return spoken
