"""Gibbs chains over one model: their starts, their random numbers, and calls of kernels that stay short.

And how far sampled averages can be trusted: standard errors, effective sample sizes and R-hat of chains.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Code
from unless.data.showing import html_table
from unless.errors import ImpossibleEvidence, SettingError
from unless.inference.randomness import RandomState, make_rng
from unless.kernels.gibbs import Mentions, find_start, run_batches, run_rows, settle
from unless.kernels.graphs import component_labels
from unless.runtime.interrupts import interruptible_kernel
from unless.runtime.progress import Look, showing_share, unseen
from unless.structures.structure import FeatureArrays
from unless.typing import Floats, Integers

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel

# Differences between probabilities that do not matter to anyone.
NEGLIGIBLE = 1e-6
# Chains agree below this, by the usual measure.
MOST_R_HAT = 1.05
Seed = npt.NDArray[np.uint64]

# Enough batches to estimate an error from, few enough to keep many quantities.
N_BATCHES = 100
# Mentions of variables that one call looks at: about a tenth of a second.
_AT_ONCE = 10_000_000
# Sweeps in search of a state to begin with; penalties rise over some of them, again and again.
_N_TRIES, _TRIES_AT_ONCE = 10_000, 100


@dataclass(frozen=True)
class Trace:
    """Sums of a quantity and of its square over batches of draws, (chains, batches, quantities)."""

    sums: Floats
    squares: Floats
    n_per_batch: int

    @property
    def n_draws(self) -> int:
        """The draws of all chains together."""
        return int(np.prod(self.sums.shape[:2])) * self.n_per_batch

    @property
    def means(self) -> Floats:
        """The mean of each batch."""
        return self.sums / self.n_per_batch


@dataclass(frozen=True)
class GibbsReport:
    """What the chains did: `r_hat` near 1 says that they agree, `effective_size` what the draws are worth.

    Both are the worst over the cells of the answer. Where chains were tempered, they are those of the coldest
    of `n_levels` levels, which replicas reached `n_arrivals` times from the hottest one.
    """

    n_chains: int
    n_draws: int
    burn_in: int
    r_hat: float
    effective_size: float
    n_levels: int = 1
    n_arrivals: int = 0

    @property
    def agrees(self) -> bool:
        """Whether the chains agree by the usual measure, R-hat below 1.05."""
        return self.r_hat < MOST_R_HAT

    def __str__(self) -> str:
        r_hat = f"{self.r_hat:.3f}" if self.r_hat < 100 else "over 100"
        said = "" if self.agrees else "; the chains disagree, so take more draws"
        if self.n_levels > 1:
            return (
                f"Gibbs sampling, tempered because plain chains stay in one mode or mix too slowly: "
                f"{self.n_chains} ensembles of {self.n_levels} levels and {self.n_draws:,} rounds, R-hat "
                f"{r_hat}, {self.n_arrivals:,} arrivals from the hottest level, {self.effective_size:,.0f} "
                f"effective draws{said}"
            )
        return (
            f"Gibbs sampling, {self.n_chains} chains of {self.n_draws:,} draws after {self.burn_in:,}: R-hat "
            f"{r_hat}, {self.effective_size:,.0f} effective draws{said}"
        )

    def _repr_html_(self) -> str:
        return html_table("Gibbs sampling", (), (), [str(self)])


def standard_errors(trace: Trace) -> Floats:
    """Return the standard error of each quantity's mean over all chains.

    The batch means are a short series whose autocorrelations are added up as far as they are positive and
    fall (Geyer 1992); chains that disagree count as correlated (Vehtari et al. 2021, without ranks).
    """
    means = trace.means
    n_chains, n_batches, _ = means.shape
    spread = means - means.mean(axis=1, keepdims=True)
    covariances = _autocovariances(spread)
    within = covariances[0] * n_batches / (n_batches - 1)
    total = covariances[0] + (means.mean(axis=1).var(axis=0, ddof=1) if n_chains > 1 else 0.0)
    moving = total > 0
    correlations = np.zeros_like(covariances)
    correlations[:, moving] = 1 - (within - covariances)[:, moving] / total[moving]
    correlations[0] = 1.0
    time = _correlation_time(correlations)
    return np.asarray(np.sqrt(total * time / (n_chains * n_batches)))


def effective_sizes(trace: Trace, errors: Floats) -> Floats:
    """Return how many independent draws would give the same standard errors; all of them for a constant."""
    variances = trace.squares.sum(axis=(0, 1)) / trace.n_draws - trace.means.mean(axis=(0, 1)) ** 2
    sizes = np.full(len(errors), float(trace.n_draws))
    moving = errors > NEGLIGIBLE
    sizes[moving] = np.maximum(variances[moving], 0) / errors[moving] ** 2
    return sizes


def split_r_hats(trace: Trace) -> Floats:
    """Return, for each quantity, how much wider all half chains together spread than each by itself."""
    half = trace.sums.shape[1] // 2
    sums = np.concatenate([trace.sums[:, :half], trace.sums[:, -half:]]).sum(axis=1)
    squares = np.concatenate([trace.squares[:, :half], trace.squares[:, -half:]]).sum(axis=1)
    n_draws = half * trace.n_per_batch
    means = sums / n_draws
    within = np.maximum(squares / n_draws - means**2, 0).mean(axis=0) * n_draws / max(n_draws - 1, 1)
    between = means.var(axis=0, ddof=1)
    ratios = np.ones(len(within))
    # Chains agree on a quantity whose means differ by less than anyone asks.
    moving = between > NEGLIGIBLE**2
    with np.errstate(divide="ignore"):
        ratios[moving] = np.sqrt((n_draws - 1) / n_draws + between[moving] / within[moving])
    return ratios


def binomial_errors(means: Floats, n_visits: int) -> Floats:
    """Return the standard errors of shares of so many independent visits.

    One visit more of each kind is counted than there were: what none of n visits saw has the error 1 / n, and
    five errors are the mass that would have been missed once in 150 times.
    """
    shares = (means * n_visits + 1) / (n_visits + 2)
    return np.asarray(np.sqrt(shares * (1 - shares) / n_visits))


def report_on(
    trace: Trace, errors: Floats, burn_in: int, n_levels: int = 1, n_arrivals: int = 0
) -> GibbsReport:
    """Sum up a run of chains by its worst quantity."""
    n_chains, n_batches, n_cells = trace.sums.shape
    r_hat = float(split_r_hats(trace).max()) if n_cells else 1.0
    size = float(effective_sizes(trace, errors).min()) if n_cells else float(trace.n_draws)
    return GibbsReport(n_chains, n_batches * trace.n_per_batch, burn_in, r_hat, size, n_levels, n_arrivals)


def _autocovariances(spread: Floats) -> Floats:
    """Return the autocovariances of centred series, (lags, quantities), averaged over chains."""
    n_batches = spread.shape[1]
    frequencies = np.fft.rfft(spread, 2 * n_batches, axis=1)
    power = (frequencies * frequencies.conj()).real.mean(axis=0)
    return np.asarray(np.fft.irfft(power, 2 * n_batches, axis=0)[:n_batches] / n_batches)


def _correlation_time(correlations: Floats) -> Floats:
    n_pairs = len(correlations) // 2
    pairs = correlations[0 : 2 * n_pairs : 2] + correlations[1 : 2 * n_pairs : 2]
    positive = np.logical_and.accumulate(pairs > 0, axis=0)
    falling = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=0)
    # Batches that undo each other would promise a precision that so short a series cannot show.
    return np.asarray(np.maximum(2 * falling.sum(axis=0) - 1, 0.5))


class Start(NamedTuple):
    """Where a chain is: its state, the unmet conditions of each feature, and its random numbers."""

    codes: Integers
    unmet: Integers
    random: Seed


class CellLayout(NamedTuple):
    """The cells that are added up: the levels of all variables, and perhaps the joint table of some.

    Level l of variable v is in cell offsets[v] + l. The table comes after all levels; the strides are the
    steps of its variables, and the conditional of the pivot is averaged (-1: there is no table).
    """

    n_cells: int
    offsets: Integers
    strides: Integers
    pivot: int
    variables: tuple[int, ...]

    @property
    def cells(self) -> tuple[Integers, Integers, int]:
        """What the kernels need to know of the cells."""
        return self.offsets, self.strides, self.pivot

    @classmethod
    def of(cls, n_levels: Integers, variables: Sequence[int] = (), pivot: int = -1) -> "CellLayout":
        """Ask about every variable by itself, and about some of them together."""
        strides = np.zeros(len(n_levels), dtype=np.int64)
        n_table = 1
        for variable in reversed(variables):
            strides[variable] = n_table
            n_table *= int(n_levels[variable])
        n_cells = int(n_levels.sum()) + (n_table if pivot >= 0 else 0)
        return cls(n_cells, np.cumsum(n_levels) - n_levels, strides, pivot, tuple(variables))


class Chains:
    """Chains over one model, each from its own start and with its own stream of random numbers."""

    def __init__(
        self,
        model: "LogLinearModel",
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

    def add_to_total(self, n_more: int) -> None:
        """Tell the bar that more sweeps are to come than it knew of."""
        self._n_all += n_more

    def pieces(self, n: int, n_sweeps: int) -> Iterator[slice]:
        """Cut n times so many sweeps into calls short enough for Ctrl-C between them."""
        steps = max(1, n_sweeps) * max(1, len(self.mentions.feature))
        at_once = max(1, _AT_ONCE // steps)
        for begin in range(0, n, at_once):
            end = min(begin + at_once, n)
            yield slice(begin, end)
            self._n_done += (end - begin) * n_sweeps
            self._look(min(1.0, self._n_done / self._n_all))

    def burn_in_chain(self, start: Start) -> None:
        """Run a chain until its state no longer depends on its start."""
        self.go_on(start, self.burn_in)

    def go_on(self, start: Start, n_sweeps: int) -> None:
        """Let a chain go on for some sweeps."""
        nothing = np.zeros((n_sweeps, 0), dtype=Code)
        for some in self.pieces(n_sweeps, 1):
            self.fill(start, nothing[some], 1)

    def fill(self, start: Start, rows: Rows, n_between: int) -> None:
        """Let a chain go on, keeping every so many-th of its states."""
        run_rows(self.free, start.codes, start.unmet, self.mentions, n_between, rows, start.random)

    def add_up(self, start: Start, asked: CellLayout, sums: Floats, squares: Floats) -> None:
        """Let a chain go on, adding up the cells that are asked about in batches (batches, cells)."""
        given = (self.free, start.codes, start.unmet, self.mentions, self.n_sweeps)
        for some in self.pieces(len(sums), self.n_sweeps):
            run_batches(*given, *asked.cells, sums[some], squares[some], start.random)

    def run_chains(self, starts: Sequence[Start], asked: CellLayout) -> Trace:
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
        feature = arrays.owner
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
    feature = arrays.owner
    variable = arrays.variable.astype(np.int64)
    begins = np.ones(len(variable), dtype=np.bool_)
    begins[1:] = (feature[1:] != feature[:-1]) | (variable[1:] != variable[:-1])
    first = np.flatnonzero(begins)
    mention = np.cumsum(begins) - 1
    only = np.where(arrays.equal[first], arrays.level[first].astype(np.int64), -1)
    sizes = np.where(only < 0, n_levels[variable[first]], 0)
    first_fit = np.cumsum(sizes) - sizes
    fits = np.ones(int(sizes.sum()), dtype=np.bool_)
    fits[(first_fit[mention] + arrays.level)[~arrays.equal]] = False
    order = np.argsort(variable[first], kind="stable")
    bounds = np.searchsorted(variable[first][order], np.arange(len(n_levels) + 1))
    return Mentions(
        bounds.astype(np.int64),
        feature[first][order],
        only[order],
        first_fit[order],
        fits,
        np.array(weights, dtype=np.float64),
        np.array(n_levels),
    )
