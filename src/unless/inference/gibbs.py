"""Gibbs sampling: approximate answers with their errors, for models too wide to be answered exactly.

Chains start far from each other, at states that a search for modes found. Where they agree and the search
shows nothing that they did not see, the answer is theirs. Elsewhere it comes from parallel tempering; where
that does not settle either, there is an error and no answer.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Code
from unless.errors import NotConverged, TooLarge
from unless.inference.chains import N_BATCHES, Asked, Walk
from unless.inference.diagnostics import (
    MOST_R_HAT,
    Floats,
    GibbsReport,
    Trace,
    binomial_errors,
    effective_sizes,
    report_on,
    split_r_hats,
    standard_errors,
)
from unless.inference.distribution import Distribution
from unless.inference.model import LogLinearModel
from unless.inference.modes import (
    Found,
    Witness,
    far_states,
    is_missed,
    look_at_strangers,
    search,
    seen_and_due,
    spread_starts,
    witness,
)
from unless.inference.randomness import RandomState
from unless.inference.tempering import Tempering
from unless.runtime.memory import parse_memory, show_memory

Bools = npt.NDArray[np.bool_]

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


class _Sampled(NamedTuple):
    probabilities: Floats
    errors: Floats
    report: GibbsReport


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
    walk = Walk(model, evidence, random_state, n_chains, n_draws, burn_in)
    shape = tuple(int(walk.n_levels[variable]) for variable in variables)
    _check_room(math.prod(shape) + int(walk.n_levels.sum()), n_chains, max_memory)
    free = [variable for variable in variables if variable not in evidence]
    if not free:
        sampled = _certain(walk, shape, [evidence[variable] for variable in variables])
        return _answer(model, variables, evidence, sampled)
    asked = Asked.of(walk.n_levels, variables, max(free, key=lambda v: int(walk.n_levels[v])))
    with walk.shown(show_progress):
        run = _Run(walk, asked, max_memory)
        sampled = run.answer(run.table, free, _is_known(shape, variables, evidence))
    tables = (sampled.probabilities.reshape(shape), sampled.errors.reshape(shape))
    return _answer(model, variables, evidence, _Sampled(*tables, sampled.report))


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
    walk = Walk(model, evidence, random_state, n_chains, n_draws, burn_in)
    _check_room(int(walk.n_levels.sum()), n_chains, max_memory)
    with walk.shown(show_progress):
        run = _Run(walk, Asked.of(walk.n_levels), max_memory)
        sampled = [
            run.answer(run.levels_of(variable), [variable], np.full(int(size), variable in evidence))
            for variable, size in enumerate(walk.n_levels)
        ]
    return [_answer(model, [variable], evidence, one) for variable, one in enumerate(sampled)]


def gibbs_sample(
    model: LogLinearModel,
    n_rows: int,
    evidence: Mapping[int, int],
    random_state: RandomState = None,
    *,
    n_chains: int = N_CHAINS,
    burn_in: int = BURN_IN,
    n_between: int = 10,
    max_memory: int | str | None = None,
    show_progress: bool | None = None,
) -> Rows:
    """Draw rows of codes from several chains, `n_between` sweeps apart, in random order.

    Rows of one chain resemble each other a little; their order is shuffled, so it tells nothing. Where chains
    are caught in modes, rows come from the coldest levels of tempered ensembles instead.
    """
    walk = Walk(model, evidence, random_state, n_chains, _LOOKED_AT, burn_in)
    with walk.shown(show_progress, n_rows * n_between):
        run = _Run(walk, Asked.of(walk.n_levels), max_memory)
        if run.caught.any():
            return walk.rng.permutation(run.tempering.rows(n_rows, n_between))
        rows = np.zeros((n_rows, len(model.domain)), dtype=Code)
        for share, start in zip(np.array_split(rows, n_chains), run.starts, strict=True):
            for some in walk.pieces(len(share), n_between):
                walk.fill(start, share[some], n_between)
    return walk.rng.permutation(rows)


def _is_known(shape: tuple[int, ...], variables: Sequence[int], evidence: Mapping[int, int]) -> Bools:
    """Tell which cells of a table the evidence excludes."""
    known = np.zeros(shape, dtype=np.bool_)
    for axis, variable in enumerate(variables):
        if variable in evidence:
            others = np.arange(shape[axis]) != evidence[variable]
            known |= others.reshape([-1 if place == axis else 1 for place in range(len(shape))])
    return known.ravel()


class _Run:
    """Chains of the model, with what a search for modes says of them, and tempering where they fail.

    All variables are looked at, whatever is asked about: what moves slowly elsewhere moves it, too.
    """

    def __init__(self, walk: Walk, asked: Asked, max_memory: int | str | None) -> None:
        self.walk, self.asked, self.max_memory = walk, asked, max_memory
        self._gap = 0.0
        self.table = slice(int(walk.n_levels.sum()), asked.n_cells)
        seeds = walk.seed(walk.n_chains)
        self.found: Found = search(walk, asked)
        self.starts = spread_starts(walk, self.found, seeds)
        self.trace = walk.run_chains(self.starts, asked)
        self.errors = standard_errors(self.trace)
        self.sizes = effective_sizes(self.trace, self.errors)
        fewest = min(_FEWEST_EFFECTIVE, self.trace.n_draws / _SLOWEST)
        strangers = look_at_strangers(walk, asked, self.found, self.trace)
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
        pool = np.concatenate([ends, far_states(self.found, 8)])
        tempering = Tempering(walk, self.asked, pool, self.found.hot, self.max_memory)
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


def _check_room(n_cells: int, n_chains: int, max_memory: int | str | None) -> None:
    limit, need = parse_memory(max_memory), _BYTES * n_chains * N_BATCHES * n_cells
    if need > limit:
        raise TooLarge(
            f"Gibbs sampling of {n_cells:.3g} probabilities with their errors needs about "
            f"{show_memory(need)}, more than the {show_memory(limit)} allowed; ask about fewer variables at "
            "once or raise max_memory=."
        )


def _certain(walk: Walk, shape: tuple[int, ...], codes: list[int]) -> _Sampled:
    # Even what is known is asked for: impossible evidence must be said.
    walk.possible_start()
    table = np.zeros(shape)
    table[tuple(codes)] = 1.0
    n_draws = walk.n_sweeps * N_BATCHES
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
