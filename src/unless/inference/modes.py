"""The search for modes: states that chains could be caught in, found before chains are trusted."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Code
from unless.inference.chains import Asked, Integers, Seed, Start, Walk
from unless.inference.diagnostics import Floats, Trace
from unless.inference.sums import sums_of_weights
from unless.kernels.gibbs import run_batches
from unless.kernels.tempering import search_modes

Bools = npt.NDArray[np.bool_]

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


class Found(NamedTuple):
    """States that the search ended in, and the mean of every cell over the batch that led there."""

    states: Integers
    means: Floats
    hot: float


def search(walk: Walk, asked: Asked) -> Found:
    """Cool states down from many starts that have little in common.

    Each level of the variables asked about is held once while the rest cools around it, then those of others;
    so are features of large weights. Some starts are random, and some have the same level everywhere.
    """
    hot = warmth(walk)
    states, held, hots, ends = _starts(walk, asked, hot)
    sums = np.zeros((len(states), asked.n_cells))
    random = walk.seed()
    for some in walk.pieces(len(states), _N_COOLING + _N_AFTER + walk.n_sweeps):
        search_modes(
            walk.free,
            states[some],
            held[some],
            hots[some],
            ends[some],
            _N_COOLING,
            _N_AFTER,
            walk.n_sweeps,
            walk.mentions,
            asked.offsets,
            asked.strides,
            asked.pivot,
            sums[some],
            random,
        )
    return Found(states, sums / walk.n_sweeps, hot)


def warmth(walk: Walk) -> float:
    """Return an inverse temperature at which all states are about as probable as any other."""
    finite = np.where(walk.is_hard, 0.0, walk.weights)
    spread = float(sums_of_weights(walk.random_states(100).astype(Code), walk.arrays, finite).std())
    return min(0.3, 1.0 / max(spread, 1e-9))


def spread_starts(walk: Walk, found: Found, seeds: Seed) -> list[Start]:
    """Start chains far from each other: at the most probable state, at those least like it, and anywhere."""
    starts = [walk.possible_start(seeds[:1])]
    best = int(log_potentials(walk, found.states).argmax())
    chosen = [best]
    distance = np.abs(found.means - found.means[best]).max(axis=1)
    while len(chosen) < walk.n_chains - 1:
        farthest = int(distance.argmax())
        chosen.append(farthest)
        distance = np.minimum(distance, np.abs(found.means - found.means[farthest]).max(axis=1))
    for number, place in enumerate(chosen, 1):
        number %= walk.n_chains
        starts.append(walk.start(found.states[place].copy(), seeds[number : number + 1].copy()))
    return starts[: walk.n_chains] if walk.n_chains > 1 else starts[1:]


def far_states(found: Found, most: int) -> Integers:
    """Return states that the search ended in, each as far as can be from those before."""
    chosen, distance = [0], np.abs(found.means - found.means[0]).max(axis=1)
    while len(chosen) < most and distance.max() > 0.2:
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, np.abs(found.means - found.means[chosen[-1]]).max(axis=1))
    return found.states[chosen]


def log_potentials(walk: Walk, states: Integers) -> Floats:
    """Return the log of the unnormalised probability of states."""
    return sums_of_weights(states.astype(Code), walk.arrays, walk.weights)


def strange_cells(found: Floats, trace: Trace) -> Bools:
    """Tell, for each batch (starts, cells), the cells whose means no batch of the chains came near."""
    means = trace.means.reshape(-1, trace.means.shape[-1])
    margin = _STRANGE * means.std(axis=0) + 5 / trace.n_draws
    return np.asarray((found < means.min(axis=0) - margin) | (found > means.max(axis=0) + margin))


class Strangers(NamedTuple):
    """What the search saw and the chains did not: cells that stay so, and an error for those that do not.

    A chain that leaves a region after so many sweeps may miss it, if its mass is about that share of all
    sweeps; what this would change is the error.
    """

    caught: Bools
    errors: Floats


def look_at_strangers(walk: Walk, asked: Asked, found: Found, trace: Trace) -> Strangers:
    """Let the starts whose batches were strange go on for a while, and look again."""
    strange = strange_cells(found.means, trace)
    caught, errors = np.zeros(asked.n_cells, dtype=np.bool_), np.zeros(asked.n_cells)
    n_waiting = max(0, _N_WAITING - walk.n_sweeps)
    stay = (_N_AFTER + n_waiting + 2 * walk.n_sweeps) / trace.n_draws
    means = trace.means.mean(axis=(0, 1))
    for place in np.flatnonzero(strange.any(axis=1)).tolist():
        start = walk.start(found.states[place].copy(), walk.seed())
        walk.expect(n_waiting + walk.n_sweeps)
        walk.go_on(start, n_waiting)
        sums, squares = np.zeros((1, asked.n_cells)), np.zeros((1, asked.n_cells))
        walk.add_up(start, asked, sums, squares)
        caught |= strange[place] & strange_cells(sums / walk.n_sweeps, trace)[0]
        errors = np.maximum(errors, stay * np.abs(found.means[place] - means) * strange[place])
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


def witness(walk: Walk, codes: Integers) -> Witness:
    """Let a chain run from a state, and measure the mass around the most probable state it meets.

    P(x) = P(x_1) P(x_2 | x_1) ... with each factor an average over a chain that holds what is before it
    (Chib 1995); as the chain stays in its mode, so does the mass, Z = potential(x) / P(x).
    """
    start = walk.start(codes.copy(), walk.seed())
    walk.expect(_N_NEAR * (2 + len(walk.free)))
    rows = np.zeros((2 * _N_NEAR, len(walk.n_levels)), dtype=Code)
    for some in walk.pieces(len(rows), 1):
        walk.fill(start, rows[some], 1)
    states = np.unique(rows, axis=0)
    potentials = sums_of_weights(states, walk.arrays, walk.weights)
    center = states[int(potentials.argmax())].astype(np.int64)
    radius = int(np.quantile((rows != center).sum(axis=1), 0.95, method="higher"))
    asked = Asked.of(walk.n_levels)
    log_share, random = 0.0, walk.seed()
    for place, variable in enumerate(walk.free.tolist()):
        near = walk.start(center.copy(), random)
        sums, squares = np.zeros((1, asked.n_cells)), np.zeros((1, asked.n_cells))
        for _ in walk.pieces(1, _N_NEAR):
            given = (walk.free[place:], near.codes, near.unmet, walk.mentions, _N_NEAR)
            run_batches(*given, asked.offsets, asked.strides, asked.pivot, sums, squares, near.random)
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


def _starts(walk: Walk, asked: Asked, hot: float) -> tuple[Integers, Bools, Floats, Floats]:
    """Return states, the variables that are held in each, and where its cooling begins and ends."""
    holds: list[dict[int, int]] = [{} for _ in range(_N_RANDOM)]
    holds += _features_to_hold(walk)
    n_constant = min(int(walk.n_levels.max()), _MOST_CONSTANT)
    holds += _levels_to_hold(walk, asked, MOST_STARTS - n_constant - len(holds))
    states = walk.random_states(n_constant + len(holds))
    held = np.zeros(states.shape, dtype=np.bool_)
    for level in range(n_constant):
        states[level, walk.free] = np.minimum(level, walk.n_levels[walk.free] - 1)
    for place, hold in enumerate(holds, n_constant):
        states[place, list(hold)] = list(hold.values())
        held[place, list(hold)] = True
    ends = np.where(np.arange(len(states)) % 2, 1.0, _COLDEST)
    hots = np.full(len(states), hot)
    hots[:n_constant] = ends[:n_constant] = 1.0
    if walk.is_hard.any():
        random = walk.seed()
        keep = [
            place for place in range(len(states)) if _make_possible(walk, states[place], held[place], random)
        ]
        states, held, hots, ends = states[keep], held[keep], hots[keep], ends[keep]
    if not len(states):
        states, held = walk.possible_start().codes[None], np.zeros((1, len(walk.n_levels)), dtype=np.bool_)
        hots = ends = np.ones(1)
    return states, held, hots, ends


def _make_possible(walk: Walk, codes: Integers, held: Bools, random: npt.NDArray[np.uint64]) -> bool:
    """Move a state where no feature of weight -inf holds; where that cannot be, nothing is held."""
    if walk.avoid_the_forbidden(codes, walk.free[~held[walk.free]], random, _N_TRIES):
        return True
    held[:] = False
    return walk.avoid_the_forbidden(codes, walk.free, random, _N_TRIES)


def _levels_to_hold(walk: Walk, asked: Asked, most: int) -> list[dict[int, int]]:
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


def _features_to_hold(walk: Walk) -> list[dict[int, int]]:
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


def _assignment(walk: Walk, inside: slice) -> dict[int, int]:
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
