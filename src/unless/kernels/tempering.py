"""Searching for modes, and parallel tempering: chains at several temperatures that exchange their states.

The coldest level is the model itself. At the hottest one every state is as probable as any other, so a chain
that has been there knows nothing of where it came from. Features of weight -inf have a finite penalty at all
levels but the coldest.
"""

import numpy as np

from unless.kernels.compiling import borrowed, compiled, inlined
from unless.kernels.gibbs import (
    Mentions,
    borrowed_mentions,
    count_unmet,
    draw,
    move,
    normalise,
    record,
    sweep,
    uniform,
    weigh,
)


@compiled
def search_modes(
    free,
    states,
    held,
    hots,
    ends,
    n_cooling,
    n_after,
    n_sweeps,
    mentions,
    offsets,
    strides,
    pivot,
    sums,
    random,
):
    """Cool states down with some variables held, let them go, and add up a batch of sweeps of each.

    States (starts, variables) are left as they end; `held` says which variables do not move while the
    inverse temperature rises from `hots` to `ends`; `sums` (starts, cells) is filled as by `run_batches`.
    """
    mentions = borrowed_mentions(mentions)
    free, states, held = borrowed(free), borrowed(states), borrowed(held)
    hots, ends = borrowed(hots), borrowed(ends)
    offsets, strides, sums, random = borrowed(offsets), borrowed(strides), borrowed(sums), borrowed(random)
    unmet = np.zeros(mentions.weights.shape[0], dtype=np.int64)
    weighed = np.zeros(mentions.n_levels.max())
    seen = np.zeros(mentions.n_levels.sum())
    squares = np.zeros(sums.shape[1])
    for start in range(states.shape[0]):
        codes = states[start]
        count_unmet(codes, unmet, mentions)
        for turn in range(n_cooling):
            share = (turn + 1) / n_cooling
            strength = hots[start] ** (1.0 - share) * ends[start] ** share
            for i in range(free.shape[0]):
                variable = free[i]
                if held[start, variable]:
                    continue
                n_levels = mentions.n_levels[variable]
                weigh(variable, codes, unmet, mentions, weighed)
                for level in range(n_levels):
                    weighed[level] *= strength
                normalise(n_levels, weighed)
                move(variable, draw(n_levels, weighed, random), codes, unmet, mentions)
        seen[:] = 0.0
        for variable in range(codes.shape[0]):
            seen[offsets[variable] + codes[variable]] = 1.0
        for turn in range(n_after + n_sweeps):
            sweep(free, codes, unmet, mentions, weighed, random, seen, offsets)
            if turn >= n_after:
                record(codes, unmet, mentions, seen, strides, pivot, weighed, sums[start], squares)


@inlined
def _energies(unmet, mentions, is_hard, level, soft, hard):
    """Add up the finite weights of the features that hold, and count those that must not hold."""
    total, n_hard = 0.0, 0
    for feature in range(unmet.shape[0]):
        if unmet[feature] == 0:
            if is_hard[feature]:
                n_hard += 1
            else:
                total += mentions.weights[feature]
    soft[level], hard[level] = total, n_hard


@inlined
def _gain(low, level, soft, hard, strengths, penalties):
    """Return how much more the log potential of a level's state is at level low + 1 than at level low."""
    gain = (strengths[low + 1] - strengths[low]) * soft[level]
    if hard[level] > 0:
        gain -= (penalties[low + 1] - penalties[low]) * hard[level]
    return gain


@compiled
def run_tempered(
    free,
    states,
    unmet,
    at,
    was_hot,
    mentions,
    is_hard,
    strengths,
    penalties,
    weights,
    shifts,
    n_rounds,
    n_done,
    offsets,
    strides,
    pivot,
    sums,
    squares,
    rows,
    up,
    down,
    rejected,
    counts,
    random,
):
    """Sweep at all levels and exchange neighbours, `n_rounds` times for each batch of the coldest level.

    States, `unmet` and `was_hot` belong to replicas; at[level] is the replica at a level, the last one the
    coldest. Neighbours 0-1, 2-3, ... and 1-2, 3-4, ... are offered an exchange in turn. `up` and `down` add
    up the chances of either side to accept alone, its gain less `shifts`; `rejected` those that an exchange
    is refused; `counts` the offers to each pair and, last, how often a replica came to the coldest level from
    the hottest one. `rows` gets states of the coldest level, as many from each batch and as far apart as its
    length allows.
    """
    mentions = borrowed_mentions(mentions)
    free, states, unmet, at, was_hot = (
        borrowed(free),
        borrowed(states),
        borrowed(unmet),
        borrowed(at),
        borrowed(was_hot),
    )
    is_hard, strengths, penalties = borrowed(is_hard), borrowed(strengths), borrowed(penalties)
    weights, offsets, strides = borrowed(weights), borrowed(offsets), borrowed(strides)
    shifts = borrowed(shifts)
    sums, squares, rows, random = borrowed(sums), borrowed(squares), borrowed(rows), borrowed(random)
    up, down, rejected, counts = borrowed(up), borrowed(down), borrowed(rejected), borrowed(counts)
    n_levels = strengths.shape[0]
    weighed = np.zeros(mentions.n_levels.max())
    seen = np.zeros(mentions.n_levels.sum())
    soft, hard = np.zeros(n_levels), np.zeros(n_levels, dtype=np.int64)
    for variable in range(states.shape[1]):
        seen[offsets[variable] + states[0, variable]] = 1.0
    n_rows = rows.shape[0] // sums.shape[0]
    n_between = n_rounds // n_rows
    for batch in range(sums.shape[0]):
        for turn in range(n_rounds):
            for level in range(n_levels):
                replica = at[level]
                tempered = Mentions(
                    mentions.first,
                    mentions.feature,
                    mentions.only,
                    mentions.place,
                    mentions.fits,
                    weights[level],
                    mentions.n_levels,
                )
                sweep(free, states[replica], unmet[replica], tempered, weighed, random, seen, offsets)
                if level == n_levels - 1:
                    record(
                        states[replica],
                        unmet[replica],
                        tempered,
                        seen,
                        strides,
                        pivot,
                        weighed,
                        sums[batch],
                        squares[batch],
                    )
                _energies(unmet[replica], mentions, is_hard, level, soft, hard)
            first = (n_done + batch * n_rounds + turn) % 2
            for low in range(first, n_levels - 1, 2):
                gain_low = _gain(low, low, soft, hard, strengths, penalties)
                gain_high = _gain(low, low + 1, soft, hard, strengths, penalties)
                chance = np.exp(min(0.0, gain_low - gain_high))
                up[low] += np.exp(min(0.0, gain_low - shifts[low]))
                down[low] += np.exp(min(0.0, shifts[low] - gain_high))
                rejected[low] += 1.0 - chance
                counts[low] += 1
                if uniform(random) < chance:
                    at[low], at[low + 1] = at[low + 1], at[low]
            was_hot[at[0]] = 1
            if was_hot[at[n_levels - 1]]:
                was_hot[at[n_levels - 1]] = 0
                counts[n_levels - 1] += 1
            if turn % n_between == n_between - 1 and turn // n_between < n_rows:
                row = batch * n_rows + turn // n_between
                for variable in range(states.shape[1]):
                    rows[row, variable] = states[at[n_levels - 1], variable]
