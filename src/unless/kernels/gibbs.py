"""Gibbs sampling of a log-linear model: one update looks only at the features of its variable.

For every feature the state counts the variables of its scope that do not fit it yet. The conditional of a
variable then needs, of each of its features, one comparison: does everything else fit?

Searching for modes, and parallel tempering: chains at several temperatures that exchange their states. The
coldest level is the model itself. At the hottest one every state is as probable as any other, so a chain that
has been there knows nothing of where it came from. Features of weight -inf have a finite penalty at all
levels but the coldest.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import compiled, exp, inlined, without_refcount

_LOW, _HALF, _MULTIPLIER = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(4294883355)


class Mentions(NamedTuple):
    """For each variable, the features whose scope holds it, and the levels that fit them."""

    first: Any  # int64 (variables + 1,): where the mentions of a variable begin
    feature: Any  # int64 (mentions,)
    only: Any  # int64 (mentions,): the one level that fits, or -1
    first_fit: Any  # int64 (mentions,): where the levels that fit are in `fits`, if there are several
    fits: Any  # bool (levels of those mentions,)
    weights: Any  # float64 (features,)
    n_levels: Any  # int64 (variables,)


@inlined
def uniform(random):
    """Draw from (0, 1) by multiply-with-carry, whose products of 32-bit halves never overflow."""
    state = random[0]
    random[0] = (state & _LOW) * _MULTIPLIER + (state >> _HALF)
    return (np.float64((state ^ (state >> _HALF)) & _LOW) + 0.5) * 2.0**-32


@inlined
def fits_level(mention, level, mentions):
    """Tell whether a level fits a mention."""
    if mentions.only[mention] >= 0:
        return mentions.only[mention] == level
    return mentions.fits[mentions.first_fit[mention] + level]


@inlined
def weigh(variable, codes, unmet, mentions, sums):
    """Sum, for each level of a variable, the weights of its features that would hold."""
    n_levels = mentions.n_levels[variable]
    for level in range(n_levels):
        sums[level] = 0.0
    current = codes[variable]
    for mention in range(mentions.first[variable], mentions.first[variable + 1]):
        feature = mentions.feature[mention]
        n_others = unmet[feature] - (0 if fits_level(mention, current, mentions) else 1)
        if n_others == 0:
            weight = mentions.weights[feature]
            if mentions.only[mention] >= 0:
                sums[mentions.only[mention]] += weight
            else:
                for level in range(n_levels):
                    if mentions.fits[mentions.first_fit[mention] + level]:
                        sums[level] += weight


@inlined
def normalise(n_levels, sums):
    """Turn log weights into probabilities, in place."""
    top = sums[0]
    for level in range(1, n_levels):
        top = max(top, sums[level])
    total = 0.0
    for level in range(n_levels):
        sums[level] = exp(sums[level] - top)
        total += sums[level]
    for level in range(n_levels):
        sums[level] /= total


@inlined
def draw(n_levels, probabilities, random):
    """Draw a level."""
    left = uniform(random)
    chosen = 0
    for level in range(n_levels):
        # Rounding may leave a crumb after the last level; it must not fall on one that cannot be.
        if probabilities[level] > 0.0:
            chosen = level
            left -= probabilities[level]
            if left < 0.0:
                break
    return chosen


@inlined
def move(variable, new, codes, unmet, mentions):
    """Change a variable, and the counts of its features."""
    old = codes[variable]
    if new == old:
        return
    codes[variable] = new
    for mention in range(mentions.first[variable], mentions.first[variable + 1]):
        before, after = fits_level(mention, old, mentions), fits_level(mention, new, mentions)
        if before != after:
            unmet[mentions.feature[mention]] += 1 if before else -1


@inlined
def sweep(free, codes, unmet, mentions, sums, random, seen, offsets):
    """Draw every free variable once from its conditional, leaving the conditionals in `seen`."""
    for i in range(free.shape[0]):
        variable = free[i]
        n_levels = mentions.n_levels[variable]
        weigh(variable, codes, unmet, mentions, sums)
        normalise(n_levels, sums)
        for level in range(n_levels):
            seen[offsets[variable] + level] = sums[level]
        move(variable, draw(n_levels, sums, random), codes, unmet, mentions)


@inlined
def count_unmet(codes, unmet, mentions):
    """Count, for each feature, the variables of its scope that do not fit it."""
    unmet[:] = 0
    for variable in range(codes.shape[0]):
        for mention in range(mentions.first[variable], mentions.first[variable + 1]):
            if not fits_level(mention, codes[variable], mentions):
                unmet[mentions.feature[mention]] += 1


@compiled
def settle(codes, unmet, mentions):
    """Count unmet conditions for callers in Python."""
    count_unmet(codes, unmet, mentions)


@compiled
def find_start(free, codes, unmet, mentions, n_sweeps, random):
    """Move, by Gibbs sampling under rising penalties, to a state in which no feature holds.

    The weights are penalties for features that must not hold. Returns whether such a state was found.
    """
    mentions = without_refcount(mentions)
    free, codes, unmet, random = without_refcount((free, codes, unmet, random))
    sums = np.zeros(mentions.n_levels.max())
    for turn in range(n_sweeps):
        n_broken = 0
        for feature in range(unmet.shape[0]):
            n_broken += unmet[feature] == 0
        if n_broken == 0:
            return True
        strength = 1.0 + 15.0 * (turn % 100) / 100.0
        for i in range(free.shape[0]):
            variable = free[i]
            n_levels = mentions.n_levels[variable]
            weigh(variable, codes, unmet, mentions, sums)
            for level in range(n_levels):
                sums[level] *= strength
            normalise(n_levels, sums)
            move(variable, draw(n_levels, sums, random), codes, unmet, mentions)
    return False


@inlined
def record(codes, unmet, mentions, seen, strides, pivot, weighed, sums, squares):
    """Add the conditionals of one sweep to the cells, and their squares.

    The first cells are the levels of all variables, as in `seen`. Where pivot is 0 or more, a joint table
    comes after them: strides[v] is the step of variable v in it, 0 for variables outside; the conditional of
    the pivot is added, with the other variables of the table as they were drawn. Averaging conditionals
    instead of draws is the Rao-Blackwell estimate, at little extra cost.
    """
    for cell in range(seen.shape[0]):
        sums[cell] += seen[cell]
        squares[cell] += seen[cell] * seen[cell]
    if pivot < 0:
        return
    weigh(pivot, codes, unmet, mentions, weighed)
    normalise(mentions.n_levels[pivot], weighed)
    cell = np.int64(seen.shape[0])
    for variable in range(codes.shape[0]):
        cell += strides[variable] * codes[variable]
    cell -= strides[pivot] * codes[pivot]
    for level in range(mentions.n_levels[pivot]):
        share = weighed[level]
        sums[cell + level * strides[pivot]] += share
        squares[cell + level * strides[pivot]] += share * share


@compiled
def run_batches(free, codes, unmet, mentions, n_sweeps, offsets, strides, pivot, sums, squares, random):
    """Add up conditionals over batches of `n_sweeps` sweeps: sums and squares (batches, cells) of `record`.

    The levels of variable v begin at cell offsets[v].
    """
    mentions = without_refcount(mentions)
    free, codes, unmet, random = without_refcount((free, codes, unmet, random))
    offsets, strides = without_refcount((offsets, strides))
    sums, squares = without_refcount((sums, squares))
    weighed = np.zeros(mentions.n_levels.max())
    seen = np.zeros(mentions.n_levels.sum())
    for variable in range(codes.shape[0]):
        seen[offsets[variable] + codes[variable]] = 1.0
    for batch in range(sums.shape[0]):
        for _ in range(n_sweeps):
            sweep(free, codes, unmet, mentions, weighed, random, seen, offsets)
            record(codes, unmet, mentions, seen, strides, pivot, weighed, sums[batch], squares[batch])


@compiled
def run_rows(free, codes, unmet, mentions, n_between, rows, random):
    """Fill rows with states, `n_between` sweeps apart; rows without columns are only gone through."""
    mentions = without_refcount(mentions)
    free, codes, unmet, random = without_refcount((free, codes, unmet, random))
    weighed = np.zeros(mentions.n_levels.max())
    seen = np.zeros(mentions.n_levels.sum())
    offsets = np.zeros(codes.shape[0], dtype=np.int64)
    for row in range(rows.shape[0]):
        for _ in range(n_between):
            sweep(free, codes, unmet, mentions, weighed, random, seen, offsets)
        for variable in range(rows.shape[1]):
            rows[row, variable] = codes[variable]


@compiled
def search_modes(
    free,
    states,
    fixed,
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
    mentions = without_refcount(mentions)
    free, states, fixed = without_refcount((free, states, fixed))
    hots, ends = without_refcount((hots, ends))
    offsets, strides, sums, random = without_refcount((offsets, strides, sums, random))
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
                if fixed[start, variable]:
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
    mentions = without_refcount(mentions)
    free, states, unmet, at, was_hot = without_refcount((free, states, unmet, at, was_hot))
    is_hard, strengths, penalties = without_refcount((is_hard, strengths, penalties))
    weights, offsets, strides = without_refcount((weights, offsets, strides))
    shifts = without_refcount(shifts)
    sums, squares, rows, random = without_refcount((sums, squares, rows, random))
    up, down, rejected, counts = without_refcount((up, down, rejected, counts))
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
                    mentions.first_fit,
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
                chance = exp(min(0.0, gain_low - gain_high))
                up[low] += exp(min(0.0, gain_low - shifts[low]))
                down[low] += exp(min(0.0, shifts[low] - gain_high))
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
