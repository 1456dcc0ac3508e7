"""Gibbs sampling: approximate answers with their errors, for models too wide to be answered exactly.

Chains start far from each other, at states that a search for modes found: states that chains could be caught
in. Where the chains agree and the search shows nothing that they did not see, the answer is theirs. Elsewhere
it comes from parallel tempering; where that does not settle either, there is an error and no answer.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Code
from unless.errors import NotConverged
from unless.inference.chains import (
    MOST_R_HAT,
    N_BATCHES,
    CellLayout,
    Chains,
    GibbsReport,
    Seed,
    Start,
    Trace,
    binomial_errors,
    effective_sizes,
    report_on,
    split_r_hats,
    standard_errors,
)
from unless.inference.potentials import sums_of_weights
from unless.inference.randomness import RandomState
from unless.inference.results import Distribution, Marginals
from unless.inference.tempering import Tempering
from unless.kernels.gibbs import run_batches, search_modes
from unless.runtime.memory import check_need, parse_memory
from unless.typing import Bools, Floats, Integers

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel


# All starts of a search, and those of a kind: the rest holds a variable at a level.
MOST_STARTS, _MOST_CONSTANT, _MOST_FEATURES, _N_RANDOM = 64, 4, 16, 8
# Sweeps while it gets colder, and after all is let go.
_N_COOLING, _N_AFTER = 20, 10
# Deep and narrow modes are found where it is colder than the model is.
_COLDEST = 4.0
_N_TRIES = 100
# Standard deviations beyond all batches of the chains at which a batch is strange.
_STRANGE = 2.0
# Sweeps after which a strange start is looked at again, if its batches are shorter.
_N_WAITING = 50
# Sweeps of the runs that measure how much mass is near a state.
_N_NEAR = 100
_SELDOM = 6.0

N_CHAINS, N_DRAWS, BURN_IN = 4, 5_000, 1_000
# Draws of each chain that are looked at before rows are drawn.
_LOOKED_AT = 1_000
# For each chain, batch and cell: sums and squares, means, and the spectra that errors are estimated from.
_BYTES = 80
# Chains are caught or too slow where fewer draws than this are worth something, or fewer than one in 50.
_FEWEST_EFFECTIVE, _SLOWEST = 400, 50
# Ensembles that visit the same modes equally often agree better than chains must.
_MOST_R_HAT_TEMPERED = 1.01
# Arrivals at the coldest level that tempering goes on for, of all ensembles and of each.
_WANTED_ARRIVALS, _FEWEST_ARRIVALS = 1_000, 50
# Tempering gives up when it has taken so many times the sweeps of the chains.
_MOST_EFFORT = 100
# Errors of their difference that two runs of ensembles may be apart.
_MOST_APART = 3.0
# Draws that are too few to tell how long a chain stays at a level, and the sweeps it may stay there.
_RARE, _STAY = 20, 10
# Errors that the two are apart at most, where both are right.
_GAP = 3.0
# Runs, each twice as long as the one before, in which a mode that was found before may still be looked for.
_MOST_MISSED = 3


class Modes(NamedTuple):
    """States that the search ended in, and the mean of every cell over the batch that led there."""

    states: Integers
    means: Floats
    hot: float


def search(walk: Chains, asked: CellLayout) -> Modes:
    """Cool states down from many starts that have little in common.

    Each level of the variables asked about is held once while the rest cools around it, then those of others;
    so are features of large weights. Some starts are random, and some have the same level everywhere.
    """
    hot = warmth(walk)
    states, fixed, hots, ends = _starts(walk, asked, hot)
    sums = np.zeros((len(states), asked.n_cells))
    random = walk.seed()
    for some in walk.pieces(len(states), _N_COOLING + _N_AFTER + walk.n_sweeps):
        starts = (states[some], fixed[some], hots[some], ends[some])
        lengths = (_N_COOLING, _N_AFTER, walk.n_sweeps)
        search_modes(walk.free, *starts, *lengths, walk.mentions, *asked.cells, sums[some], random)
    return Modes(states, sums / walk.n_sweeps, hot)


def warmth(walk: Chains) -> float:
    """Return an inverse temperature at which all states are about as probable as any other."""
    finite = np.where(walk.is_hard, 0.0, walk.weights)
    spread = float(sums_of_weights(walk.random_states(100).astype(Code), walk.arrays, finite).std())
    return min(0.3, 1.0 / max(spread, 1e-9))


def spread_starts(walk: Chains, modes: Modes, seeds: Seed) -> list[Start]:
    """Start chains far from each other: at the most probable state, at those least like it, and anywhere."""
    starts = [walk.possible_start(seeds[:1])]
    best = int(log_potentials(walk, modes.states).argmax())
    chosen = [best]
    distance = np.abs(modes.means - modes.means[best]).max(axis=1)
    while len(chosen) < walk.n_chains - 1:
        farthest = int(distance.argmax())
        chosen.append(farthest)
        distance = np.minimum(distance, np.abs(modes.means - modes.means[farthest]).max(axis=1))
    for number, place in enumerate(chosen, 1):
        number %= walk.n_chains
        starts.append(walk.start(modes.states[place].copy(), seeds[number : number + 1].copy()))
    return starts[: walk.n_chains] if walk.n_chains > 1 else starts[1:]


def far_states(modes: Modes, most: int) -> Integers:
    """Return states that the search ended in, each as far as can be from those before."""
    chosen, distance = [0], np.abs(modes.means - modes.means[0]).max(axis=1)
    while len(chosen) < most and distance.max() > 0.2:
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, np.abs(modes.means - modes.means[chosen[-1]]).max(axis=1))
    return modes.states[chosen]


def log_potentials(walk: Chains, states: Integers) -> Floats:
    """Return the log of the unnormalised probability of states."""
    return sums_of_weights(states.astype(Code), walk.arrays, walk.weights)


def strange_cells(batches: Floats, trace: Trace) -> Bools:
    """Tell, for each batch (starts, cells), the cells whose means no batch of the chains came near."""
    means = trace.means.reshape(-1, trace.means.shape[-1])
    margin = _STRANGE * means.std(axis=0) + 5 / trace.n_draws
    return np.asarray((batches < means.min(axis=0) - margin) | (batches > means.max(axis=0) + margin))


class Strangers(NamedTuple):
    """What the search saw and the chains did not: cells that stay so, and an error for those that do not.

    A chain that leaves a region after so many sweeps may miss it, if its mass is about that share of all
    sweeps; what this would change is the error.
    """

    caught: Bools
    errors: Floats


def look_at_strangers(walk: Chains, asked: CellLayout, modes: Modes, trace: Trace) -> Strangers:
    """Let the starts whose batches were strange go on for a while, and look again."""
    strange = strange_cells(modes.means, trace)
    caught, errors = np.zeros(asked.n_cells, dtype=np.bool_), np.zeros(asked.n_cells)
    n_waiting = max(0, _N_WAITING - walk.n_sweeps)
    stay = (_N_AFTER + n_waiting + 2 * walk.n_sweeps) / trace.n_draws
    means = trace.means.mean(axis=(0, 1))
    for place in np.flatnonzero(strange.any(axis=1)).tolist():
        start = walk.start(modes.states[place].copy(), walk.seed())
        walk.add_to_total(n_waiting + walk.n_sweeps)
        walk.go_on(start, n_waiting)
        sums, squares = np.zeros((1, asked.n_cells)), np.zeros((1, asked.n_cells))
        walk.add_up(start, asked, sums, squares)
        caught |= strange[place] & strange_cells(sums / walk.n_sweeps, trace)[0]
        errors = np.maximum(errors, stay * np.abs(modes.means[place] - means) * strange[place])
    return Strangers(caught, errors)


class Witness(NamedTuple):
    """States near one that the search found, and the log of the mass that they have.

    `states` are all distinct states that a chain met there, and `log_met` is the log of the sum of their
    potentials. `log_mass` estimates that of the whole mode: all states that the chain could have met, which
    differ from `center` in at most `radius` variables.
    """

    states: Rows
    log_met: float
    center: Integers
    radius: int
    log_mass: float


def witness(walk: Chains, codes: Integers) -> Witness:
    """Let a chain run from a state, and measure the mass around the most probable state it meets.

    P(x) = P(x_1) P(x_2 | x_1) ... with each factor an average over a chain that holds what is before it
    (Chib 1995); as the chain stays in its mode, so does the mass, Z = potential(x) / P(x).
    """
    start = walk.start(codes.copy(), walk.seed())
    walk.add_to_total(_N_NEAR * (2 + len(walk.free)))
    rows = np.zeros((2 * _N_NEAR, len(walk.n_levels)), dtype=Code)
    for some in walk.pieces(len(rows), 1):
        walk.fill(start, rows[some], 1)
    states = np.unique(rows, axis=0)
    potentials = sums_of_weights(states, walk.arrays, walk.weights)
    center = states[int(potentials.argmax())].astype(np.int64)
    radius = int(np.quantile((rows != center).sum(axis=1), 0.95, method="higher"))
    asked = CellLayout.of(walk.n_levels)
    log_share, random = 0.0, walk.seed()
    for place, variable in enumerate(walk.free.tolist()):
        near = walk.start(center.copy(), random)
        sums, squares = np.zeros((1, asked.n_cells)), np.zeros((1, asked.n_cells))
        for _ in walk.pieces(1, _N_NEAR):
            given = (walk.free[place:], near.codes, near.unmet, walk.mentions, _N_NEAR)
            run_batches(*given, *asked.cells, sums, squares, near.random)
        log_share += float(np.log(sums[0, asked.offsets[variable] + center[variable]] / _N_NEAR))
        # A chain that left the mode measured more than the mode.
        radius = max(radius, int((near.codes != center).sum()))
    top = float(potentials.max())
    log_met = top + float(np.log(np.exp(potentials - top).sum()))
    return Witness(states, log_met, center, radius, top - log_share)


def seen_and_due(one: Witness, rows: Rows, log_partition: float) -> tuple[float, float]:
    """Return the share of rows among the states that a witness met, and the probability that these have."""
    place = np.unique(np.concatenate([one.states, rows]), axis=0, return_inverse=True)[1].ravel()
    seen = np.isin(place[len(one.states) :], place[: len(one.states)]).mean()
    return float(seen), _share(one.log_met - log_partition)


def is_missed(one: Witness, rows: Rows, log_partition: float, n_visits: int) -> bool:
    """Tell whether so many independent visits, with these rows, came too seldom to what a witness met."""
    seen, due = seen_and_due(one, rows, log_partition)
    near = float(((rows != one.center).sum(axis=1) <= one.radius).mean())
    # The mass of given states is known but for the partition function, that of the mode only roughly.
    due_near = _share(one.log_mass - log_partition)
    return _too_seldom(seen, 0.8 * due, n_visits) or _too_seldom(near, 0.25 * due_near, n_visits)


def _share(log_share: float) -> float:
    return float(np.exp(min(0.0, log_share)))


def _too_seldom(seen: float, expected: float, n_visits: int) -> bool:
    """Tell whether so few visits of so many had a chance below e^-6, by Chernoff's bound for counts."""
    if seen >= expected:
        return False
    lacking = expected - seen + (seen * float(np.log(seen / expected)) if seen else 0.0)
    return n_visits * lacking > _SELDOM


def _starts(walk: Chains, asked: CellLayout, hot: float) -> tuple[Integers, Bools, Floats, Floats]:
    """Return states, the variables that are held in each, and where its cooling begins and ends."""
    holds: list[dict[int, int]] = [{} for _ in range(_N_RANDOM)]
    holds += _features_to_hold(walk)
    n_constant = min(int(walk.n_levels.max()), _MOST_CONSTANT)
    holds += _levels_to_hold(walk, asked, MOST_STARTS - n_constant - len(holds))
    states = walk.random_states(n_constant + len(holds))
    fixed = np.zeros(states.shape, dtype=np.bool_)
    for level in range(n_constant):
        states[level, walk.free] = np.minimum(level, walk.n_levels[walk.free] - 1)
    for place, hold in enumerate(holds, n_constant):
        states[place, list(hold)] = list(hold.values())
        fixed[place, list(hold)] = True
    ends = np.where(np.arange(len(states)) % 2, 1.0, _COLDEST)
    hots = np.full(len(states), hot)
    hots[:n_constant] = ends[:n_constant] = 1.0
    if walk.is_hard.any():
        random = walk.seed()
        keep = [
            place for place in range(len(states)) if _make_possible(walk, states[place], fixed[place], random)
        ]
        states, fixed, hots, ends = states[keep], fixed[keep], hots[keep], ends[keep]
    if not len(states):
        states, fixed = walk.possible_start().codes[None], np.zeros((1, len(walk.n_levels)), dtype=np.bool_)
        hots = ends = np.ones(1)
    return states, fixed, hots, ends


def _make_possible(walk: Chains, codes: Integers, fixed: Bools, random: npt.NDArray[np.uint64]) -> bool:
    """Move a state where no feature of weight -inf holds; where that cannot be, nothing is held."""
    if walk.avoid_the_forbidden(codes, walk.free[~fixed[walk.free]], random, _N_TRIES):
        return True
    fixed[:] = False
    return walk.avoid_the_forbidden(codes, walk.free, random, _N_TRIES)


def _levels_to_hold(walk: Chains, asked: CellLayout, most: int) -> list[dict[int, int]]:
    """Hold every level of every free variable once: one in each start, or several if there are too many."""
    first = [variable for variable in asked.variables if variable not in walk.evidence]
    others = [int(variable) for variable in walk.rng.permutation(walk.free) if int(variable) not in first]
    holds: list[dict[int, int]] = []
    place = 0
    for variable in first + others:
        for level in range(int(walk.n_levels[variable])):
            if len(holds) < most:
                holds.append({variable: level})
                continue
            # A variable of more levels than there are starts keeps the last of them.
            holds[place % most][variable] = level
            place += 1
    return holds


def _features_to_hold(walk: Chains) -> list[dict[int, int]]:
    """List assignments with which the heaviest features hold, of those that speak of several variables."""
    sizes = np.diff(walk.arrays.start)
    order = np.argsort(-np.where(np.isfinite(walk.weights), walk.weights, -np.inf), kind="stable")
    some = [int(f) for f in order[: 8 * _MOST_FEATURES] if walk.weights[f] > 1.0 and sizes[f] > 1]
    holds: list[dict[int, int]] = []
    for feature in some:
        inside = slice(int(walk.arrays.start[feature]), int(walk.arrays.start[feature + 1]))
        hold = _assignment(walk, inside)
        if hold and hold not in holds:
            holds.append(hold)
        if len(holds) == _MOST_FEATURES:
            break
    return holds


def _assignment(walk: Chains, inside: slice) -> dict[int, int]:
    """Return levels of free variables with which the conditions of a feature hold, or nothing."""
    fits: dict[int, Bools] = {}
    for variable, level, equal in zip(*(array[inside].tolist() for array in walk.arrays[1:]), strict=True):
        levels = fits.get(variable, np.ones(int(walk.n_levels[variable]), dtype=np.bool_))
        fits[variable] = levels & ((np.arange(len(levels)) == level) == equal)
    if any(not levels[walk.evidence[v]] for v, levels in fits.items() if v in walk.evidence):
        return {}
    return {
        v: int(walk.rng.choice(np.flatnonzero(levels)))
        for v, levels in fits.items()
        if v not in walk.evidence
    }


class _Sampled(NamedTuple):
    probabilities: Floats
    errors: Floats
    report: GibbsReport


@dataclass(frozen=True)
class GibbsEngine:
    """Estimates answers from several chains, and from tempered ensembles where chains are caught in modes."""

    model: "LogLinearModel"
    random_state: RandomState = None
    n_chains: int = N_CHAINS
    n_draws: int = N_DRAWS
    burn_in: int = BURN_IN
    max_memory: int | str | None = None
    show_progress: bool | None = None

    def query(self, variables: Sequence[int], evidence: Mapping[int, int]) -> Distribution:
        """Estimate the joint distribution of some variables given evidence.

        The conditional of one of the variables is averaged, with the others as they were drawn.
        """
        walk = self._chains(evidence, self.n_draws)
        shape = tuple(int(walk.n_levels[variable]) for variable in variables)
        self._check_room(math.prod(shape) + int(walk.n_levels.sum()))
        free = [variable for variable in variables if variable not in evidence]
        if not free:
            sampled = _certain(walk, shape, [evidence[variable] for variable in variables])
            return _answer(self.model, variables, evidence, sampled)
        asked = CellLayout.of(walk.n_levels, variables, max(free, key=lambda v: int(walk.n_levels[v])))
        with walk.shown(self.show_progress):
            run = _GibbsRun(walk, asked, self.max_memory)
            sampled = run.answer(run.table, free, _is_known(shape, variables, evidence))
        tables = (sampled.probabilities.reshape(shape), sampled.errors.reshape(shape))
        return _answer(self.model, variables, evidence, _Sampled(*tables, sampled.report))

    def marginals(self, evidence: Mapping[int, int]) -> Marginals:
        """Estimate the marginal of every variable given evidence, from one run of chains."""
        walk = self._chains(evidence, self.n_draws)
        self._check_room(int(walk.n_levels.sum()))
        with walk.shown(self.show_progress):
            run = _GibbsRun(walk, CellLayout.of(walk.n_levels), self.max_memory)
            sampled = [
                run.answer(run.levels_of(variable), [variable], np.full(int(size), variable in evidence))
                for variable, size in enumerate(walk.n_levels)
            ]
        answers = [_answer(self.model, [variable], evidence, one) for variable, one in enumerate(sampled)]
        return Marginals.of(self.model.domain, answers, evidence)

    def sample(self, n_rows: int, evidence: Mapping[int, int], n_between: int = 10) -> Rows:
        """Draw rows of codes from several chains, `n_between` sweeps apart, in random order.

        Rows of one chain resemble each other a little; their order is shuffled, so it tells nothing. Where
        chains are caught in modes, rows come from the coldest levels of tempered ensembles instead.
        """
        walk = self._chains(evidence, _LOOKED_AT)
        with walk.shown(self.show_progress, n_rows * n_between):
            run = _GibbsRun(walk, CellLayout.of(walk.n_levels), self.max_memory)
            if run.caught.any():
                return walk.rng.permutation(run.tempering.rows(n_rows, n_between))
            rows = np.zeros((n_rows, len(self.model.domain)), dtype=Code)
            for share, start in zip(np.array_split(rows, self.n_chains), run.starts, strict=True):
                for some in walk.pieces(len(share), n_between):
                    walk.fill(start, share[some], n_between)
        return walk.rng.permutation(rows)

    def _chains(self, evidence: Mapping[int, int], n_draws: int) -> Chains:
        return Chains(self.model, evidence, self.random_state, self.n_chains, n_draws, self.burn_in)

    def _check_room(self, n_cells: int) -> None:
        need = _BYTES * self.n_chains * N_BATCHES * n_cells
        work = f"Gibbs sampling of {n_cells:.3g} probabilities with their errors needs about"
        way_out = "ask about fewer variables at once or raise max_memory="
        check_need(need, parse_memory(self.max_memory), work, way_out)


def _is_known(shape: tuple[int, ...], variables: Sequence[int], evidence: Mapping[int, int]) -> Bools:
    """Tell which cells of a table the evidence excludes."""
    known = np.zeros(shape, dtype=np.bool_)
    for axis, variable in enumerate(variables):
        if variable in evidence:
            others = np.arange(shape[axis]) != evidence[variable]
            known |= others.reshape([-1 if place == axis else 1 for place in range(len(shape))])
    return known.ravel()


class _GibbsRun:
    """Chains of the model, with what a search for modes says of them, and tempering where they fail.

    All variables are looked at, whatever is asked about: what moves slowly elsewhere moves it, too.
    """

    def __init__(self, walk: Chains, asked: CellLayout, max_memory: int | str | None) -> None:
        self.walk, self.asked, self.max_memory = walk, asked, max_memory
        self._gap = 0.0
        self.table = slice(int(walk.n_levels.sum()), asked.n_cells)
        seeds = walk.seed(walk.n_chains)
        self.modes: Modes = search(walk, asked)
        self.starts = spread_starts(walk, self.modes, seeds)
        self.trace = walk.run_chains(self.starts, asked)
        self.errors = standard_errors(self.trace)
        self.sizes = effective_sizes(self.trace, self.errors)
        fewest = min(_FEWEST_EFFECTIVE, self.trace.n_draws / _SLOWEST)
        strangers = look_at_strangers(walk, asked, self.modes, self.trace)
        self.errors = np.maximum(self.errors, strangers.errors)
        failed = strangers.caught | (split_r_hats(self.trace) >= MOST_R_HAT) | (self.sizes < fewest)
        shown = np.logical_or.reduceat(failed[: self.table.start], asked.offsets)
        shown[list(asked.variables)] |= bool(failed[self.table].any())
        shown[list(walk.evidence)] = False
        # Variables that depend on each other are caught together, whichever of them shows it.
        self.labels = walk.neighbourhoods()
        self.caught = np.isin(self.labels, self.labels[shown])

    def levels_of(self, variable: int) -> slice:
        """Return the cells of the levels of a variable."""
        begin = int(self.asked.offsets[variable])
        return slice(begin, begin + int(self.walk.n_levels[variable]))

    def answer(self, part: slice, variables: list[int], known: Bools) -> _Sampled:
        """Answer some cells of these variables, by chains or by tempering; what is known has no error."""
        if self.caught[variables].any():
            tempering = self.tempering
            n_arrivals, n_levels = sum(tempering.n_arrivals), len(tempering.ladder.strengths)
            trace = _take(tempering.trace, part)
            errors, means = _tempered_errors(trace, n_arrivals), trace.means.mean(axis=(0, 1))
            # The mass of some states is known in two ways; how far these are apart says what both are worth.
            errors = np.maximum(errors, self._gap / _GAP)
            report = report_on(trace, errors, self.walk.burn_in, n_levels=n_levels, n_arrivals=n_arrivals)
        else:
            trace = _take(self.trace, part)
            errors, means = self.errors[part], trace.means.mean(axis=(0, 1))
            report = report_on(trace, errors, self.walk.burn_in)
            errors = np.maximum(errors, self._floor(variables, means))
        errors = np.where(known, 0.0, errors)
        return _Sampled(means / means.sum(), errors, report)

    def _floor(self, variables: list[int], means: Floats) -> Floats:
        """Return the least error of some cells: what no draw fell on may have about this probability.

        Draws on levels that the chains were hardly ever at may have come in one visit of several sweeps.
        """
        n_draws = self.trace.n_draws
        near = np.isin(self.labels, self.labels[variables])
        near[list(self.walk.evidence)] = False
        cells = np.append(
            near.repeat(self.walk.n_levels), np.zeros(self.asked.n_cells - self.table.start, dtype=np.bool_)
        )
        shares = self.trace.means.mean(axis=(0, 1))[cells]
        least = 1 / float(self.sizes[cells].min(initial=n_draws))
        if (shares * n_draws < _RARE).any():
            least = max(least, _STAY / n_draws)
        rare = np.minimum(means, 1 - means) * n_draws < _RARE
        return np.where(rare, np.maximum(least, binomial_errors(means, n_draws // _STAY)), least)

    @cached_property
    def tempering(self) -> Tempering:
        """Temper until all that the chains do not answer is answered."""
        walk = self.walk
        parts = [self.levels_of(int(variable)) for variable in np.flatnonzero(self.caught)]
        if self.caught[list(self.asked.variables)].any():
            parts.append(self.table)
        ends = np.array([start.codes for start in self.starts])
        pool = np.concatenate([ends, far_states(self.modes, 8)])
        tempering = Tempering(walk, self.asked, pool, self.modes.hot, self.max_memory)
        witnesses: list[Witness] = []
        n_missed = 0
        while True:
            if _has_settled(tempering, parts):
                witnesses = witnesses or [witness(walk, codes) for codes in pool]
                rows, total, n_visits = (
                    tempering.last_rows,
                    tempering.log_partition,
                    sum(tempering.n_arrivals),
                )
                if not any(is_missed(one, rows, total, n_visits) for one in witnesses):
                    shares = [seen_and_due(one, rows, total) for one in witnesses]
                    self._gap = max(abs(seen - due) for seen, due in shares)
                    return tempering
                n_missed += 1
            is_long = 2 * tempering.n_sweeps > _MOST_EFFORT * walk.n_sweeps_of_chains
            if is_long or n_missed > _MOST_MISSED:
                raise NotConverged(_not_converged(tempering, n_missed > 0))
            tempering.go_on()


def _not_converged(tempering: Tempering, is_missing: bool) -> str:
    why = "never comes back to one of them" if is_missing else "joins them too seldom"
    return (
        f"Gibbs sampling did not converge: chains stay in separate modes of the model, and tempering {why} "
        f"({sum(tempering.n_arrivals):,} arrivals from the hottest of {len(tempering.ladder.strengths)} "
        "levels); ask with method='exact' and a larger max_memory=, or give more evidence."
    )


def _take(trace: Trace, part: slice) -> Trace:
    return Trace(trace.sums[..., part], trace.squares[..., part], trace.n_per_batch)


def _has_settled(tempering: Tempering, parts: list[slice]) -> bool:
    """Tell whether replicas came from hot to cold often enough, all ensembles agree, and so do two runs.

    To stop as soon as ensembles agree would choose the moments at which they do so by chance.
    """
    arrivals, before = tempering.n_arrivals, tempering.before
    if before is None or sum(arrivals) < _WANTED_ARRIVALS or min(arrivals) < _FEWEST_ARRIVALS:
        return False
    for part in parts:
        now, then = _take(tempering.trace, part), _take(before, part)
        report = report_on(now, standard_errors(now), 0)
        if report.r_hat >= _MOST_R_HAT_TEMPERED or report.effective_size < _FEWEST_EFFECTIVE:
            return False
        error = _tempered_errors(now, sum(arrivals))
        apart = np.abs(now.means.mean(axis=(0, 1)) - then.means.mean(axis=(0, 1)))
        # The run before was half as long, so its variance was twice this one's.
        if (apart > _MOST_APART * np.sqrt(3) * error).any():
            return False
    return True


def _tempered_errors(trace: Trace, n_arrivals: int) -> Floats:
    return np.maximum(standard_errors(trace), binomial_errors(trace.means.mean(axis=(0, 1)), n_arrivals))


def _certain(walk: Chains, shape: tuple[int, ...], codes: list[int]) -> _Sampled:
    # Even what is known is asked for: impossible evidence must be said.
    walk.possible_start()
    table = np.zeros(shape)
    table[tuple(codes)] = 1.0
    n_draws = walk.n_sweeps * N_BATCHES
    report = GibbsReport(walk.n_chains, n_draws, walk.burn_in, 1.0, float(walk.n_chains * n_draws))
    return _Sampled(table, np.zeros(shape), report)


def _answer(
    model: "LogLinearModel", variables: Sequence[int], evidence: Mapping[int, int], sampled: _Sampled
) -> Distribution:
    return Distribution(
        tuple(model.domain.variables[variable] for variable in variables),
        sampled.probabilities,
        model.domain.decode(evidence),
        "gibbs",
        sampled.errors,
        {**asdict(sampled.report), "report": str(sampled.report)},
    )
