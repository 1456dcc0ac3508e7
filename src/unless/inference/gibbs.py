"""Gibbs sampling: approximate answers with their errors, for models too wide to be answered exactly.

Chains start far from each other, at states that a search for modes found. Where they agree and the search
shows nothing that they did not see, the answer is theirs. Elsewhere it comes from parallel tempering; where
that does not settle either, there is an error and no answer.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Code
from unless.errors import NotConverged, TooLarge
from unless.inference.chains import N_BATCHES, Asked, Start, Walk
from unless.inference.diagnostics import (
    Floats,
    GibbsReport,
    Trace,
    binomial_errors,
    report_on,
    standard_errors,
)
from unless.inference.distribution import Distribution
from unless.inference.model import LogLinearModel
from unless.inference.modes import Found, Witness, caught_cells, far_states, search, spread_starts, witness
from unless.inference.randomness import RandomState
from unless.inference.tempering import Tempering
from unless.runtime.memory import parse_memory, show_memory

Bools = npt.NDArray[np.bool_]

N_CHAINS, N_DRAWS, BURN_IN = 4, 5_000, 1_000
# Draws of each chain that are looked at before rows are drawn.
_LOOKED_AT = 1_000
# For each chain, batch and cell: sums and squares, means, and the spectra that errors are estimated from.
_BYTES = 80
# Chains are caught or too slow where fewer draws than this are worth something.
_FEWEST_EFFECTIVE = 100
# Arrivals at the coldest level that tempering goes on for, of all ensembles and of each.
_WANTED_ARRIVALS, _FEWEST_ARRIVALS = 1_000, 50
# Tempering gives up when it has taken so many times the sweeps of the chains.
_MOST_EFFORT = 100
# A mode of less mass than this is not missed by rows of this number.
_LEAST_MASS = 0.02


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
    _check_room(math.prod(model.domain.n_levels[list(variables)].tolist()), n_chains, max_memory)
    walk = Walk(model, evidence, random_state, n_chains, n_draws, burn_in)
    shape = tuple(int(walk.n_levels[variable]) for variable in variables)
    free = [variable for variable in variables if variable not in evidence]
    if not free:
        sampled = _certain(walk, shape, [evidence[variable] for variable in variables])
        return _answer(model, variables, evidence, sampled)
    pivot = max(free, key=lambda v: int(walk.n_levels[v]))
    asked = Asked.table(walk.n_levels, variables, pivot)
    known = np.zeros(shape, dtype=np.bool_)
    for axis, variable in enumerate(variables):
        if variable in evidence:
            others = np.arange(shape[axis]) != evidence[variable]
            known |= others.reshape([-1 if place == axis else 1 for place in range(len(shape))])
    with walk.shown(show_progress):
        (sampled,) = _Run(walk, asked, max_memory).answers([slice(0, asked.n_cells)], known.ravel())
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
    _check_room(int(model.domain.n_levels.sum()), n_chains, max_memory)
    walk = Walk(model, evidence, random_state, n_chains, n_draws, burn_in)
    asked = Asked.levels(walk.n_levels)
    parts = _parts(walk, asked)
    known = np.zeros(asked.n_cells, dtype=np.bool_)
    for variable in evidence:
        known[parts[variable]] = True
    with walk.shown(show_progress):
        sampled = _Run(walk, asked, max_memory).answers(parts, known)
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
    asked = Asked.levels(walk.n_levels)
    with walk.shown(show_progress, n_rows * n_between):
        run = _Run(walk, asked, max_memory)
        tempering = run.tempering_for(_parts(walk, asked))
        if tempering is not None:
            return walk.rng.permutation(tempering.rows(n_rows, n_between))
        rows = np.zeros((n_rows, len(model.domain)), dtype=Code)
        for share, start in zip(np.array_split(rows, n_chains), run.starts, strict=True):
            for some in walk.pieces(len(share), n_between):
                walk.fill(start, share[some], n_between)
    return walk.rng.permutation(rows)


def _parts(walk: Walk, asked: Asked) -> list[slice]:
    """Return the cells of each variable."""
    ends = asked.offsets + walk.n_levels
    return [slice(low, high) for low, high in zip(asked.offsets.tolist(), ends.tolist(), strict=True)]


class _Run:
    """Chains of the model, with what a search for modes says of them, and tempering where they fail."""

    def __init__(self, walk: Walk, asked: Asked, max_memory: int | str | None) -> None:
        self.walk, self.asked, self.max_memory = walk, asked, max_memory
        self.starts: list[Start] = []
        self.found: Found = search(walk, asked)
        self.starts = spread_starts(walk, self.found)
        self.trace = walk.run_chains(self.starts, asked)
        self.caught = caught_cells(walk, asked, self.found, self.trace)

    def answers(self, parts: list[slice], known: Bools) -> list[_Sampled]:
        """Answer each part of the cells, by chains or by tempering; what is known has no error."""
        tempering = self.tempering_for(parts)
        answers = []
        for part in parts:
            plain = self._sum_up(part, known[part])
            if plain is None:
                assert tempering is not None
                plain = _sum_up_tempered(tempering, part, known[part], self.walk.burn_in)
            answers.append(plain)
        return answers

    def tempering_for(self, parts: list[slice]) -> Tempering | None:
        """Temper where the chains do not answer some part, until all such parts are answered."""
        nothing_known = np.zeros(self.asked.n_cells, dtype=np.bool_)
        open_parts = [part for part in parts if self._sum_up(part, nothing_known[part]) is None]
        if not open_parts:
            return None
        walk = self.walk
        ends = np.array([start.codes for start in self.starts])
        pool = np.concatenate([ends, far_states(self.found, 8)])
        tempering = Tempering(walk, self.asked, pool, self.found.hot, self.max_memory)
        witnesses: list[Witness] | None = None
        while True:
            if _has_settled(tempering, open_parts):
                if witnesses is None:
                    witnesses = [witness(walk, codes) for codes in pool]
                if not _misses(tempering, witnesses):
                    return tempering
            if 2 * tempering.n_sweeps > _MOST_EFFORT * walk.n_sweeps_of_chains:
                raise NotConverged(
                    "Gibbs sampling did not converge: its chains are caught in separate modes of the model, and "
                    f"tempering joined them too seldom ({sum(tempering.n_arrivals):,} times), so there is no "
                    "answer to trust; ask with method='exact' and a larger max_memory=, or give more evidence."
                )
            tempering.go_on()

    def _sum_up(self, part: slice, known: Bools) -> _Sampled | None:
        """Sum up the chains, unless they are caught, disagree or are too slow."""
        trace = _take(self.trace, part)
        errors = standard_errors(trace)
        report = report_on(trace, errors, self.walk.burn_in)
        if self.caught[part].any() or not report.agrees or report.effective_size < _FEWEST_EFFECTIVE:
            return None
        # A state that no draw fell on may have about this probability.
        errors = np.where(known, 0.0, np.maximum(errors, 1 / report.effective_size))
        means = trace.means.mean(axis=(0, 1))
        return _Sampled(means / means.sum(), errors, report)


def _take(trace: Trace, part: slice) -> Trace:
    return Trace(trace.sums[..., part], trace.squares[..., part], trace.n_per_batch)


def _sum_up_tempered(tempering: Tempering, part: slice, known: Bools, burn_in: int) -> _Sampled:
    trace = _take(tempering.trace, part)
    errors = standard_errors(trace)
    n_arrivals = sum(tempering.n_arrivals)
    means = trace.means.mean(axis=(0, 1))
    report = report_on(trace, errors, burn_in, n_arrivals=n_arrivals, n_levels=len(tempering.ladder.strengths))
    errors = np.where(known, 0.0, np.maximum(errors, binomial_errors(means, n_arrivals)))
    return _Sampled(means / means.sum(), errors, report)


def _has_settled(tempering: Tempering, parts: list[slice]) -> bool:
    """Tell whether replicas came from hot to cold often enough, and all ensembles agree."""
    arrivals = tempering.n_arrivals
    if sum(arrivals) < _WANTED_ARRIVALS or min(arrivals) < _FEWEST_ARRIVALS:
        return False
    for part in parts:
        trace = _take(tempering.trace, part)
        report = report_on(trace, standard_errors(trace), 0)
        if not report.agrees or report.effective_size < _FEWEST_EFFECTIVE:
            return False
    return True


def _misses(tempering: Tempering, witnesses: list[Witness]) -> bool:
    """Tell whether the mass around some state is too large for how seldom tempering came near it."""
    rows, total = tempering.last_rows, tempering.log_partition
    least = max(_LEAST_MASS, 5 / sum(tempering.n_arrivals))
    for one in witnesses:
        mass = min(1.0, math.exp(min(0.0, one.log_mass - total)))
        share = float(((rows != one.codes).sum(axis=1) <= one.radius).mean())
        if mass > least and share < mass / 4:
            return True
    return False


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
