"""Gibbs sampling: approximate answers with their errors, for models too wide to be answered exactly."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Code
from unless.data.progress import Look, showing_share, unseen
from unless.data.waiting import heard
from unless.errors import ImpossibleEvidence, SettingError, TooLarge
from unless.inference.diagnostics import Floats, GibbsReport, Trace, report_on, standard_errors
from unless.inference.distribution import Distribution
from unless.inference.model import LogLinearModel
from unless.inference.randomness import RandomState, make_rng
from unless.kernels.gibbs import Mentions, find_start, run_joint, run_marginals, run_rows, settle
from unless.runtime.memory import parse_memory, show_memory
from unless.structures.conditions import FeatureArrays

Integers = npt.NDArray[np.int64]

N_CHAINS, N_DRAWS, BURN_IN = 4, 5_000, 1_000
# Enough batches to estimate an error from, few enough to keep many quantities.
_N_BATCHES = 100
# Mentions of variables that one call looks at: about a tenth of a second.
_AT_ONCE = 10_000_000
# Sweeps in search of a state to begin with; penalties rise over some of them, again and again.
_N_TRIES, _TRIES_AT_ONCE = 10_000, 100
# For each chain, batch and cell: sums and squares, means, and the spectra that errors are estimated from.
_BYTES = 80


class _Sampled(NamedTuple):
    probabilities: Floats
    errors: Floats
    report: GibbsReport


class _Start(NamedTuple):
    codes: Integers
    unmet: Integers
    random: npt.NDArray[np.uint64]


def gibbs_query(
    model: LogLinearModel,
    variables: Sequence[int],
    evidence: Mapping[int, int],
    *,
    random_state: RandomState = None,
    n_chains: int = N_CHAINS,
    n_draws: int = N_DRAWS,
    burn_in: int = BURN_IN,
    max_memory: int | str | None = None,
    show_progress: bool | None = None,
) -> Distribution:
    """Estimate the joint distribution of some variables (positions) given codes of others.

    The conditional of one of the variables is averaged, with the others as they were drawn.
    """
    _check_room(math.prod(model.domain.n_levels[list(variables)].tolist()), n_chains, max_memory)
    walk = _Walk(model, evidence, random_state, n_chains, n_draws, burn_in)
    shape = tuple(int(walk.n_levels[variable]) for variable in variables)
    free = [variable for variable in variables if variable not in evidence]
    if free:
        pivot = max(free, key=lambda v: int(walk.n_levels[v]))
        with walk.shown(show_progress):
            sampled = _sample_joint(walk, variables, shape, pivot)
    else:
        sampled = _certain(walk, shape, [evidence[variable] for variable in variables])
    return _answer(model, variables, evidence, sampled)


def gibbs_marginals(
    model: LogLinearModel,
    evidence: Mapping[int, int],
    *,
    random_state: RandomState = None,
    n_chains: int = N_CHAINS,
    n_draws: int = N_DRAWS,
    burn_in: int = BURN_IN,
    max_memory: int | str | None = None,
    show_progress: bool | None = None,
) -> list[Distribution]:
    """Estimate the marginal of every variable, given codes of some, from one run of chains."""
    _check_room(int(model.domain.n_levels.sum()), n_chains, max_memory)
    walk = _Walk(model, evidence, random_state, n_chains, n_draws, burn_in)
    ends = np.cumsum(walk.n_levels)
    offsets = ends - walk.n_levels
    sums, squares = walk.room(int(ends[-1]))
    with walk.shown(show_progress):
        for chain, start in enumerate(walk.starts()):
            for some in walk.batches_after_burning_in(start):
                run_marginals(
                    walk.free,
                    start.codes,
                    start.unmet,
                    walk.mentions,
                    walk.n_sweeps,
                    offsets,
                    sums[chain, some],
                    squares[chain, some],
                    start.random,
                )
    answers = []
    for variable, (low, high) in enumerate(zip(offsets.tolist(), ends.tolist(), strict=True)):
        part = Trace(sums[..., low:high], squares[..., low:high], walk.n_sweeps)
        answers.append(_answer(model, [variable], evidence, _sum_up(part, burn_in, (high - low,))))
    return answers


def gibbs_sample(
    model: LogLinearModel,
    n_rows: int,
    evidence: Mapping[int, int],
    random_state: RandomState = None,
    *,
    n_chains: int = N_CHAINS,
    burn_in: int = BURN_IN,
    n_between: int = 10,
    show_progress: bool | None = None,
) -> Rows:
    """Draw rows of codes from several chains, `n_between` sweeps apart, in random order.

    Rows of one chain resemble each other a little; their order is shuffled, so it tells nothing.
    """
    walk = _Walk(model, evidence, random_state, n_chains, _N_BATCHES, burn_in)
    rows = np.zeros((n_rows, len(model.domain)), dtype=Code)
    shares = np.array_split(rows, n_chains)
    with walk.shown(show_progress, n_rows * n_between):
        for share, start in zip(shares, walk.starts(), strict=True):
            walk.burn_in_chain(start)
            for some in walk.pieces(len(share), n_between):
                walk.fill(start, share[some], n_between)
    return walk.rng.permutation(rows)


class _Walk:
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
        for name, value, least in (("n_chains", n_chains, 1), ("n_draws", n_draws, _N_BATCHES)):
            if value < least:
                raise SettingError(f"{name} must be {least:,} or more, not {value!r}.")
        if burn_in < 0:
            raise SettingError(f"burn_in must be 0 or more, not {burn_in!r}.")
        self.rng = make_rng(random_state)
        self.n_levels = model.domain.n_levels
        self.n_chains = n_chains
        self.burn_in = burn_in
        self.n_sweeps = -(-n_draws // _N_BATCHES)
        self.evidence = evidence
        self._n_done = 0
        self._look: Look = unseen
        self.free: Integers = np.array(
            [variable for variable in range(len(self.n_levels)) if variable not in evidence], dtype=np.int64
        )
        arrays, weights = model.plain
        self.mentions = find_mentions(arrays, weights, self.n_levels)
        self._forbidden = find_mentions(
            arrays.take(np.isneginf(weights)),
            np.full(int(np.isneginf(weights).sum()), -1.0),
            self.n_levels,
        )

    @contextmanager
    def shown(self, show: bool | None, n_kept: int | None = None) -> Iterator[None]:
        """Show how many of all sweeps are done: those of burning in, and those that something is kept of."""
        kept = self.n_chains * _N_BATCHES * self.n_sweeps if n_kept is None else n_kept
        with showing_share("Sampling", show, "sweeps") as look:
            self._n_done, n_all = 0, max(1, kept + self.n_chains * self.burn_in)
            self._look = lambda n_done: look(n_done / n_all)
            yield

    def pieces(self, n: int, n_sweeps: int) -> Iterator[slice]:
        """Cut n times so many sweeps into calls short enough to hear Ctrl-C between them."""
        steps = max(1, n_sweeps) * max(1, len(self.mentions.feature))
        at_once = max(1, _AT_ONCE // steps)
        for begin in range(0, n, at_once):
            end = min(begin + at_once, n)
            yield slice(begin, end)
            self._n_done += (end - begin) * n_sweeps
            self._look(self._n_done)

    def burn_in_chain(self, start: _Start) -> None:
        """Let a chain forget where it began."""
        nothing = np.zeros((self.burn_in, 0), dtype=Code)
        for some in self.pieces(self.burn_in, 1):
            self.fill(start, nothing[some], 1)

    def batches_after_burning_in(self, start: _Start) -> Iterator[slice]:
        """Burn a chain in, and give the batches that one call may take."""
        self.burn_in_chain(start)
        return self.pieces(_N_BATCHES, self.n_sweeps)

    def fill(self, start: _Start, rows: Rows, n_between: int) -> None:
        """Let a chain go on, keeping every so many-th of its states."""
        run_rows(self.free, start.codes, start.unmet, self.mentions, n_between, rows, start.random)

    def room(self, n_cells: int) -> tuple[Floats, Floats]:
        """Return empty sums and squares, (chains, batches, cells)."""
        shape = (self.n_chains, _N_BATCHES, n_cells)
        return np.zeros(shape), np.zeros(shape)

    def starts(self) -> Iterator[_Start]:
        """Give each chain a state of positive probability."""
        seeds = self.rng.integers(1, 2**62, size=self.n_chains, dtype=np.uint64)
        states = self.rng.integers(0, self.n_levels, size=(self.n_chains, len(self.n_levels)))
        states[:, list(self.evidence)] = list(self.evidence.values())
        for seed, codes in zip(seeds, states, strict=True):
            random = np.array([seed], dtype=np.uint64)
            self._avoid_the_forbidden(codes, random)
            unmet = np.zeros(len(self.mentions.weights), dtype=np.int64)
            settle(codes, unmet, self.mentions)
            yield _Start(codes, unmet, random)

    def _avoid_the_forbidden(self, codes: Integers, random: npt.NDArray[np.uint64]) -> None:
        unmet = np.zeros(len(self._forbidden.weights), dtype=np.int64)
        settle(codes, unmet, self._forbidden)
        n_steps = _TRIES_AT_ONCE * len(self._forbidden.feature)
        trying = partial(find_start, self.free, codes, unmet, self._forbidden, _TRIES_AT_ONCE, random)
        if not any(heard(trying, n_steps) for _ in range(_N_TRIES // _TRIES_AT_ONCE)):
            raise ImpossibleEvidence(
                f"No state of positive probability was found in {_N_TRIES:,} sweeps, so Gibbs sampling "
                "cannot start; drop some of the evidence, which features of weight -inf contradict or nearly "
                "so, or ask with method='exact'."
            )


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


def _check_room(n_cells: int, n_chains: int, max_memory: int | str | None) -> None:
    limit, need = parse_memory(max_memory), _BYTES * n_chains * _N_BATCHES * n_cells
    if need > limit:
        raise TooLarge(
            f"Gibbs sampling of {n_cells:.3g} probabilities with their errors needs about "
            f"{show_memory(need)}, more than the {show_memory(limit)} allowed; ask about fewer variables at "
            "once or raise max_memory=."
        )


def _sample_joint(walk: _Walk, variables: Sequence[int], shape: tuple[int, ...], pivot: int) -> _Sampled:
    strides = np.zeros(len(walk.n_levels), dtype=np.int64)
    for position, variable in enumerate(variables):
        strides[variable] = math.prod(shape[position + 1 :])
    sums, squares = walk.room(math.prod(shape))
    for chain, start in enumerate(walk.starts()):
        for some in walk.batches_after_burning_in(start):
            run_joint(
                walk.free,
                start.codes,
                start.unmet,
                walk.mentions,
                walk.n_sweeps,
                strides,
                pivot,
                sums[chain, some],
                squares[chain, some],
                start.random,
            )
    return _sum_up(Trace(sums, squares, walk.n_sweeps), walk.burn_in, shape)


def _sum_up(trace: Trace, burn_in: int, shape: tuple[int, ...]) -> _Sampled:
    errors = standard_errors(trace)
    means = trace.means.mean(axis=(0, 1))
    report = report_on(trace, errors, burn_in)
    return _Sampled((means / means.sum()).reshape(shape), errors.reshape(shape), report)


def _certain(walk: _Walk, shape: tuple[int, ...], codes: list[int]) -> _Sampled:
    # Even what is known is asked for: impossible evidence must be said.
    next(walk.starts())
    table = np.zeros(shape)
    table[tuple(codes)] = 1.0
    n_draws = walk.n_sweeps * _N_BATCHES
    report = GibbsReport(walk.n_chains, n_draws, walk.burn_in, 1.0, float(walk.n_chains * n_draws))
    return _Sampled(table, np.zeros(shape), report)


def _answer(
    model: LogLinearModel, variables: Sequence[int], evidence: Mapping[int, int], sampled: _Sampled
) -> Distribution:
    return Distribution(
        tuple(model.domain.variables[variable] for variable in variables),
        sampled.probabilities,
        model.domain.decode(evidence),
        "gibbs",
        sampled.errors,
        {**asdict(sampled.report), "report": str(sampled.report)},
    )
