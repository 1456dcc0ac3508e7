"""Gibbs chains over one model: their starts, their random numbers, and calls of kernels that stay short."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Code
from unless.errors import ImpossibleEvidence, SettingError
from unless.inference.diagnostics import Floats, Trace
from unless.inference.model import LogLinearModel
from unless.inference.randomness import RandomState, make_rng
from unless.kernels.elimination import component_labels
from unless.kernels.gibbs import Mentions, find_start, run_batches, run_rows, settle
from unless.runtime.interrupts import interruptible_kernel
from unless.runtime.progress import Look, showing_share, unseen
from unless.structures.conditions import FeatureArrays

Integers = npt.NDArray[np.int64]
Seed = npt.NDArray[np.uint64]

# Enough batches to estimate an error from, few enough to keep many quantities.
N_BATCHES = 100
# Mentions of variables that one call looks at: about a tenth of a second.
_AT_ONCE = 10_000_000
# Sweeps in search of a state to begin with; penalties rise over some of them, again and again.
_N_TRIES, _TRIES_AT_ONCE = 10_000, 100


class Start(NamedTuple):
    """Where a chain is: its state, the unmet conditions of each feature, and its random numbers."""

    codes: Integers
    unmet: Integers
    random: Seed


class Asked(NamedTuple):
    """The cells that are added up: the levels of all variables, and perhaps the joint table of some.

    Level l of variable v is in cell offsets[v] + l. The table comes after all levels; the strides are the
    steps of its variables, and the conditional of the pivot is averaged (-1: there is no table).
    """

    n_cells: int
    offsets: Integers
    strides: Integers
    pivot: int
    variables: tuple[int, ...]

    @classmethod
    def of(cls, n_levels: Integers, variables: Sequence[int] = (), pivot: int = -1) -> "Asked":
        """Ask about every variable by itself, and about some of them together."""
        strides = np.zeros(len(n_levels), dtype=np.int64)
        n_table = 1
        for variable in reversed(variables):
            strides[variable] = n_table
            n_table *= int(n_levels[variable])
        n_cells = int(n_levels.sum()) + (n_table if pivot >= 0 else 0)
        return cls(n_cells, np.cumsum(n_levels) - n_levels, strides, pivot, tuple(variables))


class Walk:
    """Chains over one model, each from its own start and with its own stream of random numbers."""

    def __init__(
        self,
        model: LogLinearModel,
        evidence: Mapping[int, int],
        random_state: RandomState,
        n_chains: int,
        n_draws: int,
        burn_in: int,
    ) -> None:
        for name, value, least in (("n_chains", n_chains, 1), ("n_draws", n_draws, N_BATCHES)):
            if value < least:
                raise SettingError(f"{name} must be {least:,} or more, not {value!r}.")
        if burn_in < 0:
            raise SettingError(f"burn_in must be 0 or more, not {burn_in!r}.")
        self.rng = make_rng(random_state)
        self.model = model
        self.n_levels = model.domain.n_levels
        self.n_chains = n_chains
        self.burn_in = burn_in
        self.n_sweeps = -(-n_draws // N_BATCHES)
        self.evidence = evidence
        self._n_done, self._n_all = 0, 1
        self._look: Look = unseen
        self.free: Integers = np.array(
            [variable for variable in range(len(self.n_levels)) if variable not in evidence], dtype=np.int64
        )
        self.arrays, self.weights = model.plain
        self.is_hard = np.isneginf(self.weights)
        self.mentions = find_mentions(self.arrays, self.weights, self.n_levels)
        self._forbidden = find_mentions(
            self.arrays.take(self.is_hard), np.full(int(self.is_hard.sum()), -1.0), self.n_levels
        )

    @property
    def n_sweeps_of_chains(self) -> int:
        """The sweeps of all plain chains, those of burning in among them."""
        return self.n_chains * (N_BATCHES * self.n_sweeps + self.burn_in)

    @contextmanager
    def shown(self, show: bool | None, n_more: int = 0) -> Iterator[None]:
        """Show how many of all sweeps are done: those of the chains, and so many more."""
        with showing_share("Sampling", show, "sweeps") as look:
            self._n_done, self._n_all = 0, max(1, self.n_sweeps_of_chains + n_more)
            self._look = look
            yield

    def expect(self, n_more: int) -> None:
        """Tell the bar that more sweeps are to come than it knew of."""
        self._n_all += n_more

    def pieces(self, n: int, n_sweeps: int) -> Iterator[slice]:
        """Cut n times so many sweeps into calls short enough to hear Ctrl-C between them."""
        steps = max(1, n_sweeps) * max(1, len(self.mentions.feature))
        at_once = max(1, _AT_ONCE // steps)
        for begin in range(0, n, at_once):
            end = min(begin + at_once, n)
            yield slice(begin, end)
            self._n_done += (end - begin) * n_sweeps
            self._look(min(1.0, self._n_done / self._n_all))

    def burn_in_chain(self, start: Start) -> None:
        """Let a chain forget where it began."""
        self.go_on(start, self.burn_in)

    def go_on(self, start: Start, n_sweeps: int) -> None:
        """Let a chain go on for some sweeps."""
        nothing = np.zeros((n_sweeps, 0), dtype=Code)
        for some in self.pieces(n_sweeps, 1):
            self.fill(start, nothing[some], 1)

    def fill(self, start: Start, rows: Rows, n_between: int) -> None:
        """Let a chain go on, keeping every so many-th of its states."""
        run_rows(self.free, start.codes, start.unmet, self.mentions, n_between, rows, start.random)

    def add_up(self, start: Start, asked: Asked, sums: Floats, squares: Floats) -> None:
        """Let a chain go on, adding up the cells that are asked about in batches (batches, cells)."""
        given = (self.free, start.codes, start.unmet, self.mentions, self.n_sweeps)
        for some in self.pieces(len(sums), self.n_sweeps):
            cells = (asked.offsets, asked.strides, asked.pivot, sums[some], squares[some])
            run_batches(*given, *cells, start.random)

    def run_chains(self, starts: Sequence[Start], asked: Asked) -> Trace:
        """Burn all chains in and add up what is asked about."""
        shape = (self.n_chains, N_BATCHES, asked.n_cells)
        sums, squares = np.zeros(shape), np.zeros(shape)
        for chain, start in enumerate(starts):
            self.burn_in_chain(start)
            self.add_up(start, asked, sums[chain], squares[chain])
        return Trace(sums, squares, self.n_sweeps)

    def neighbourhoods(self) -> Integers:
        """Label variables that depend on each other given the evidence with the smallest of them."""
        arrays = self.arrays
        known = np.full(len(self.n_levels), -1)
        known[list(self.evidence)] = list(self.evidence.values())
        feature = np.repeat(np.arange(len(self.weights)), np.diff(arrays.start))
        code = known[arrays.variable]
        broken = (code >= 0) & ((code == arrays.level) != arrays.equal)
        alive = np.ones(len(self.weights), dtype=np.bool_)
        alive[feature[broken]] = False
        stays = (code < 0) & alive[feature]
        sizes = np.bincount(feature[stays], minlength=len(self.weights))
        start = np.append(0, np.cumsum(sizes[sizes > 0])).astype(np.int64)
        labels = component_labels(start, arrays.variable[stays].astype(np.int64), len(self.n_levels))
        return np.asarray(labels, dtype=np.int64)

    def seed(self, n: int = 1) -> Seed:
        """Begin streams of random numbers."""
        return self.rng.integers(1, 2**62, size=n, dtype=np.uint64)

    def random_states(self, n: int) -> Integers:
        """Draw states that agree with the evidence, whether they are possible or not."""
        states = self.rng.integers(0, self.n_levels, size=(n, len(self.n_levels)))
        states[:, list(self.evidence)] = list(self.evidence.values())
        return states

    def start(self, codes: Integers, random: Seed) -> Start:
        """Put a chain into a state."""
        unmet = np.zeros(len(self.mentions.weights), dtype=np.int64)
        settle(codes, unmet, self.mentions)
        return Start(codes, unmet, random)

    def possible_start(self, seed: Seed | None = None) -> Start:
        """Put a chain into a random state of positive probability."""
        codes, random = self.random_states(1)[0], self.seed() if seed is None else seed.copy()
        if not self.avoid_the_forbidden(codes, self.free, random):
            raise ImpossibleEvidence(
                f"No state of positive probability was found in {_N_TRIES:,} sweeps, so Gibbs sampling "
                "cannot start; drop some of the evidence, which features of weight -inf contradict or nearly "
                "so, or ask with method='exact'."
            )
        return self.start(codes, random)

    def avoid_the_forbidden(
        self, codes: Integers, free: Integers, random: Seed, n_tries: int = _N_TRIES
    ) -> bool:
        """Change the free variables of a state until no feature of weight -inf holds, if that is found."""
        if not len(self._forbidden.weights):
            return True
        unmet = np.zeros(len(self._forbidden.weights), dtype=np.int64)
        settle(codes, unmet, self._forbidden)
        at_once = min(_TRIES_AT_ONCE, n_tries)
        trying = partial(find_start, free, codes, unmet, self._forbidden, at_once, random)
        n_steps = at_once * len(self._forbidden.feature)
        return any(interruptible_kernel(trying, n_steps) for _ in range(n_tries // at_once))


def find_mentions(arrays: FeatureArrays, weights: Floats, n_levels: Integers) -> Mentions:
    """List, for each variable, the features that speak of it and the levels that fit them."""
    feature = np.repeat(np.arange(len(weights)), np.diff(arrays.start))
    variable = arrays.variable.astype(np.int64)
    begins = np.ones(len(variable), dtype=np.bool_)
    begins[1:] = (feature[1:] != feature[:-1]) | (variable[1:] != variable[:-1])
    first = np.flatnonzero(begins)
    mention = np.cumsum(begins) - 1
    only = np.where(arrays.equal[first], arrays.level[first].astype(np.int64), -1)
    sizes = np.where(only < 0, n_levels[variable[first]], 0)
    place = np.cumsum(sizes) - sizes
    fits = np.ones(int(sizes.sum()), dtype=np.bool_)
    fits[(place[mention] + arrays.level)[~arrays.equal]] = False
    order = np.argsort(variable[first], kind="stable")
    bounds = np.searchsorted(variable[first][order], np.arange(len(n_levels) + 1))
    return Mentions(
        bounds.astype(np.int64),
        feature[first][order],
        only[order],
        place[order],
        fits,
        np.array(weights, dtype=np.float64),
        np.array(n_levels),
    )
