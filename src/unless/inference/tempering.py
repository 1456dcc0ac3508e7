"""Parallel tempering: answers where chains of the model alone are caught in one of its modes.

Each ensemble has a replica at every level of a ladder from the uniform law to the model. Neighbours exchange
their states, so that a mode is left through the hot levels and another is found on the way back. How much the
answer is worth follows from how often replicas came from the hottest level to the coldest one.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unless.data.dataset import Rows
from unless.data.domain import Code
from unless.inference.chains import N_BATCHES, CellLayout, Chains, Seed, Trace
from unless.inference.potentials import sums_of_weights
from unless.kernels.gibbs import run_tempered, settle
from unless.runtime.memory import check_need, parse_memory
from unless.typing import Floats, Integers

# Levels of the first ladder, and of any.
_FIRST_LEVELS, _FEWEST_LEVELS, _MOST_LEVELS = 20, 4, 64
# Rounds of each ensemble under one ladder after the other, until the last one stays.
_TUNING = (50, 100, 200, 400)
# Rounds in a batch of the first run; the next one has twice as many.
_FIRST_ROUNDS = 10
# States of the coldest level that are kept of each batch.
_ROWS_OF_A_BATCH = 10
# Penalties of features of weight -inf, in units of the largest weight, where the ladder is half way up.
_PENALTY = 2.0


class Ladder(NamedTuple):
    """Levels from hot to cold: the factor of finite weights, and the penalty in place of -inf."""

    strengths: Floats
    penalties: Floats
    weights: Floats  # (levels, features)


@dataclass
class Ensemble:
    """The replicas of one ladder, and what their exchanges came to."""

    states: Integers
    unmet: Integers
    at: Integers
    was_hot: Integers
    random: Seed
    n_done: int
    up: Floats
    down: Floats
    rejected: Floats
    counts: Integers

    @property
    def n_arrivals(self) -> int:
        """How often a replica came from the hottest level to the coldest one."""
        return int(self.counts[-1])


class Tempering:
    """Ensembles over one model, for what is asked about."""

    def __init__(
        self, walk: Chains, asked: CellLayout, pool: Integers, hot: float, limit: int | str | None
    ) -> None:
        self.walk, self.asked, self.limit = walk, asked, limit
        self._pool = pool
        self.n_sweeps = 0
        self.last_rows: Rows = np.zeros((0, len(walk.n_levels)), dtype=Code)
        heaviest = float(np.abs(walk.weights[~walk.is_hard]).max(initial=0.5))
        self._penalty = _PENALTY * heaviest if walk.is_hard.any() else 0.0
        strengths = np.append(0.0, np.geomspace(hot, 1.0, _FIRST_LEVELS - 1))
        self.ladder = self._make_ladder(strengths)
        self.shifts = np.zeros(len(strengths) - 1)
        self.ensembles = [self._begin(number) for number in range(walk.n_chains)]
        for n_rounds in _TUNING:
            self._run(n_rounds, np.zeros((1, asked.n_cells)), np.zeros((1, asked.n_cells)))
            self._tune()
        self.shifts = self._guess_gains()
        for n_rounds in _TUNING[:2]:
            self._run(n_rounds, np.zeros((1, asked.n_cells)), np.zeros((1, asked.n_cells)))
            self._forget()
        self.before: Trace | None = None
        self.trace = self._add_up(_FIRST_ROUNDS)

    @property
    def n_arrivals(self) -> list[int]:
        """How often a replica of each ensemble came from the hottest level to the coldest one."""
        return [one.n_arrivals for one in self.ensembles]

    @property
    def log_partition(self) -> float:
        """The log of the sum of all potentials, estimated level by level (Bennett 1976)."""
        hottest = float(np.log(self.walk.n_levels[self.walk.free]).sum())
        return hottest + float(self._gains().sum())

    def _gains(self) -> Floats:
        """Estimate by how much the log partition function grows from each level to the next."""
        up = np.sum([one.up for one in self.ensembles], axis=0)
        down = np.sum([one.down for one in self.ensembles], axis=0)
        # Probabilities that underflow leave the shift as it was.
        ratios = np.divide(up, down, out=np.ones(len(up)), where=(up > 0) & (down > 0))
        return np.asarray(self.shifts + np.log(ratios))

    def _guess_gains(self) -> Floats:
        """Guess the gains by where the replicas are; without it, probabilities may underflow."""
        walk, n_levels = self.walk, len(self.ladder.strengths)
        finite = np.where(walk.is_hard, 0.0, walk.weights)
        states = np.concatenate([one.states[one.at] for one in self.ensembles]).astype(Code)
        sums = sums_of_weights(states, walk.arrays, finite).reshape(-1, n_levels).mean(axis=0)
        guess = np.diff(self.ladder.strengths) * (sums[1:] + sums[:-1]) / 2
        if walk.is_hard.any():
            broken = sums_of_weights(states, walk.arrays, walk.is_hard.astype(np.float64))
            n_broken = broken.reshape(-1, n_levels).mean(axis=0)
            # The last penalty has no end, and nothing is broken there.
            guess[:-1] -= np.diff(self.ladder.penalties[:-1]) * (n_broken[1:-1] + n_broken[:-2]) / 2
        return np.asarray(guess)

    def _forget(self) -> None:
        """Drop all exchanges but what they say of the partition function, which shifts the next ones."""
        self.shifts = self._gains()
        for one in self.ensembles:
            for counted in (one.up, one.down, one.rejected, one.counts):
                counted[:] = 0

    def go_on(self) -> None:
        """Run twice as long as last time, and drop what was before."""
        self._forget()
        self.before, self.trace = self.trace, self._add_up(2 * self.trace.n_per_batch)

    def rows(self, n_rows: int, n_between: int) -> Rows:
        """Return states of the coldest levels, so many rounds apart."""
        shares = []
        for one, share in zip(
            self.ensembles, np.array_split(np.arange(n_rows), len(self.ensembles)), strict=True
        ):
            rows = np.zeros((len(share), len(self.walk.n_levels)), dtype=Code)
            self.walk.add_to_total(len(rows) * n_between * len(self.ladder.strengths))
            for some in self.walk.pieces(len(rows), n_between * len(self.ladder.strengths)):
                nothing = np.zeros((some.stop - some.start, self.asked.n_cells))
                self._call(one, n_between, nothing, nothing.copy(), rows[some])
            shares.append(rows)
        return np.concatenate(shares)

    def _add_up(self, n_rounds: int) -> Trace:
        shape = (len(self.ensembles), N_BATCHES, self.asked.n_cells)
        sums, squares = np.zeros(shape), np.zeros(shape)
        given = zip(self.ensembles, sums, squares, strict=True)
        self.last_rows = np.concatenate([self._run_one(one, n_rounds, *cells) for one, *cells in given])
        return Trace(sums, squares, n_rounds)

    def _run(self, n_rounds: int, sums: Floats, squares: Floats) -> None:
        for one in self.ensembles:
            self._run_one(one, n_rounds, sums, squares)

    def _run_one(self, one: Ensemble, n_rounds: int, sums: Floats, squares: Floats) -> Rows:
        n_sweeps = n_rounds * len(self.ladder.strengths)
        self.n_sweeps += n_sweeps * len(sums)
        self.walk.add_to_total(n_sweeps * len(sums))
        rows = np.zeros((len(sums), min(n_rounds, _ROWS_OF_A_BATCH), len(self.walk.n_levels)), dtype=Code)
        for some in self.walk.pieces(len(sums), n_sweeps):
            flat = rows[some].reshape(-1, rows.shape[2])
            self._call(one, n_rounds, sums[some], squares[some], flat)
        return rows.reshape(-1, rows.shape[2])

    def _call(self, one: Ensemble, n_rounds: int, sums: Floats, squares: Floats, rows: Rows) -> None:
        replicas = (one.states, one.unmet, one.at, one.was_hot)
        law = (self.walk.mentions, self.walk.is_hard, *self.ladder, self.shifts)
        answers = (*self.asked.cells, sums, squares, rows)
        exchanges = (one.up, one.down, one.rejected, one.counts)
        times = (n_rounds, one.n_done)
        run_tempered(self.walk.free, *replicas, *law, *times, *answers, *exchanges, one.random)
        one.n_done += n_rounds * len(sums)

    def _make_ladder(self, strengths: Floats) -> Ladder:
        walk = self.walk
        each = len(walk.weights) * (1 + walk.n_chains) + len(walk.n_levels) * walk.n_chains
        work = "Chains of this model are caught in one of its modes, and tempering them needs about"
        check_need(8 * len(strengths) * each, parse_memory(self.limit), work, "raise max_memory=")
        with np.errstate(divide="ignore", invalid="ignore"):
            penalties = np.where(self._penalty, self._penalty * strengths / (1 - strengths), 0.0)
        finite = np.where(walk.is_hard, 0.0, walk.weights)
        weights = strengths[:, None] * finite - np.where(walk.is_hard, penalties[:, None], 0.0)
        return Ladder(strengths, penalties, weights)

    def _begin(self, number: int) -> Ensemble:
        """Put states of the pool on all levels, other ones in each ensemble."""
        n_levels = len(self.ladder.strengths)
        chosen = (np.arange(n_levels)[::-1] * self.walk.n_chains + number) % len(self._pool)
        return self._ensemble(self._pool[chosen].copy(), self.walk.seed())

    def _ensemble(self, states: Integers, random: Seed) -> Ensemble:
        n_levels = len(states)
        unmet = np.zeros((n_levels, len(self.walk.weights)), dtype=np.int64)
        for codes, counts in zip(states, unmet, strict=True):
            settle(codes, counts, self.walk.mentions)
        at = np.arange(n_levels)
        up, down, rejected = np.zeros((3, n_levels - 1))
        zeros = np.zeros(n_levels, dtype=np.int64)
        return Ensemble(states, unmet, at, zeros, random, 0, up, down, rejected, zeros.copy())

    def _tune(self) -> None:
        """Move the levels so that neighbours refuse each other equally often (Syed et al. 2022)."""
        old = self.ladder.strengths
        rejected = np.sum([one.rejected for one in self.ensembles], axis=0)
        refused = rejected / np.sum([one.counts[:-1] for one in self.ensembles], axis=0)
        barrier = np.append(0.0, np.cumsum(refused + 1e-3))
        n_levels = min(max(math.ceil(2 * refused.sum()) + 2, _FEWEST_LEVELS), _MOST_LEVELS)
        strengths = np.interp(np.linspace(0.0, barrier[-1], n_levels), barrier, old)
        strengths[0], strengths[-1] = 0.0, 1.0
        nearest = np.searchsorted((old[1:] + old[:-1]) / 2, strengths)
        nearest[-1] = len(old) - 1
        self.ladder = self._make_ladder(strengths)
        self.shifts = np.zeros(len(strengths) - 1)
        self.ensembles = [self._ensemble(one.states[one.at[nearest]], one.random) for one in self.ensembles]
