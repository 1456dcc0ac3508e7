"""Conjunctions of levels: generated from rows by dropping variables at random, and screened by their slopes.

A feature is a row and the set of variables it keeps of that row, its scope. Two features are one when they
have the same scope and their rows agree there, which is compared and not trusted to a hash.
"""

from typing import Any, NamedTuple

import numpy as np

from unless.kernels.compiling import borrowed, compiled, inlined, trailing_zeros

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


class Pool(NamedTuple):
    """All features so far, in the order in which they came: first the rows themselves."""

    codes: Any  # uint16 (rows, variables): the table
    first: Any  # int64 (variables,): where the keys of a variable begin
    keys: Any  # uint64 (levels of all variables,): random words that features are hashed by
    row: Any  # int32 (capacity,): the row a feature was made from
    scopes: Any  # uint64 (capacity, words): the variables it keeps
    count: Any  # int32 (capacity,): how often it was generated
    hashes: Any  # uint64 (capacity,)
    slots: Any  # int32 (a power of two): open addressing, one more than the feature, 0 for a gap


@inlined
def _random(state):
    """Return the next 64 random bits: xoshiro256++ (Blackman and Vigna)."""
    a, b, c, d = state[0], state[1], state[2], state[3]
    total = a + d
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + a
    moved = b << np.uint64(17)
    c ^= a
    d ^= b
    state[1] = b ^ c
    state[0] = a ^ d
    state[2] = c ^ moved
    state[3] = (d << np.uint64(45)) | (d >> np.uint64(19))
    return result


@inlined
def _below(state, bound):
    """Return a whole number below a bound of at most 32 bits, each with exactly the same chance (Lemire)."""
    limit = np.uint64(bound)
    product = (_random(state) >> _HALF) * limit
    if product & _LOW < limit:
        least = ((_LOW - limit) + _ONE) % limit
        while product & _LOW < least:
            product = (_random(state) >> _HALF) * limit
    return np.int64(product >> _HALF)


@compiled
def propose(state, n_features, scopes, members, drawn):
    """Pick one of the first features and drop some of its variables, as the law of generation says.

    The pick is uniform; the number dropped is uniform on 1 .. size - 1, and which ones is uniform. Returns
    the feature picked and how many variables are left, which are marked in `drawn` and listed in `members`;
    0 where a feature of one variable was picked, which has nothing to drop.
    """
    picked = _below(state, n_features)
    n_words = scopes.shape[1]
    size = 0
    for word in range(n_words):
        rest = scopes[picked, word]
        drawn[word] = _ZERO
        while rest != _ZERO:
            members[size] = (word << 6) + np.int64(trailing_zeros(rest))
            rest &= rest - _ONE
            size += 1
    if size < 2:
        return picked, 0
    n_kept = size - 1 - _below(state, size - 1)
    # The smaller part is drawn: those kept, or those dropped.
    n_drawn = min(n_kept, size - n_kept)
    for i in range(n_drawn):
        other = i + _below(state, size - i)
        members[i], members[other] = members[other], members[i]
    first, last = (0, n_kept) if n_drawn == n_kept else (n_drawn, size)
    for i in range(first, last):
        drawn[members[i] >> 6] |= _ONE << np.uint64(members[i] & 63)
    for i in range(first, last):
        members[i - first] = members[i]
    return picked, n_kept


@inlined
def _same(pool, feature, row, n_kept, members, drawn):
    for word in range(drawn.shape[0]):
        if pool.scopes[feature, word] != drawn[word]:
            return False
    other = np.int64(pool.row[feature])
    for i in range(n_kept):  # noqa: SIM110 (numba compiles no generators)
        if pool.codes[other, members[i]] != pool.codes[row, members[i]]:
            return False
    return True


@compiled
def generate(state, n_draws, n_features, pool, members, drawn):
    """Draw until the number of draws is done or the pool is full; returns the draws done and the features."""
    state, members, drawn = borrowed(state), borrowed(members), borrowed(drawn)
    pool = borrowed(pool)
    mask = pool.slots.shape[0] - 1
    capacity = pool.row.shape[0]
    done = 0
    while done < n_draws and n_features < capacity:
        done += 1
        picked, n_kept = propose(state, n_features, pool.scopes, members, drawn)
        if n_kept == 0:
            continue
        row = np.int64(pool.row[picked])
        name = _ZERO
        for i in range(n_kept):
            name ^= pool.keys[pool.first[members[i]] + np.int64(pool.codes[row, members[i]])]
        slot = np.int64(name >> _ONE) & mask
        while True:
            feature = np.int64(pool.slots[slot]) - 1
            if feature < 0:
                pool.slots[slot] = n_features + 1
                pool.row[n_features] = row
                pool.hashes[n_features] = name
                pool.count[n_features] = 1
                for word in range(drawn.shape[0]):
                    pool.scopes[n_features, word] = drawn[word]
                n_features += 1
                break
            if pool.hashes[feature] == name and _same(pool, feature, row, n_kept, members, drawn):
                pool.count[feature] += 1
                break
            slot = (slot + 1) & mask
    return done, n_features


@compiled
def enter(first, last, hashes, slots):
    """Give features their slots in a larger hash table."""
    mask = slots.shape[0] - 1
    for feature in range(first, last):
        slot = np.int64(hashes[feature] >> _ONE) & mask
        while slots[slot] != 0:
            slot = (slot + 1) & mask
        slots[slot] = feature + 1


@compiled
def spell_out(features, row, scopes, codes, variable, level):
    """Write the conditions of some features one after another, each sorted by variable."""
    at = 0
    for k in range(features.shape[0]):
        feature = features[k]
        for word in range(scopes.shape[1]):
            rest = scopes[feature, word]
            while rest != _ZERO:
                column = (word << 6) + np.int64(trailing_zeros(rest))
                variable[at] = column
                level[at] = codes[row[feature], column]
                at += 1
                rest &= rest - _ONE


class Screen(NamedTuple):
    """Features as rows and the variables they keep, and the rows with each level as bitmaps."""

    codes: Any  # uint16 (rows, variables)
    first: Any  # int64 (variables,): the number of each variable's first level among all
    words: Any  # uint64 (levels, words): the rows that have a level
    row: Any  # int32 (features,)
    scopes: Any  # uint64 (features, words of variables)


class ScreenBuffers(NamedTuple):
    """Scratch for one feature at a time.

    A feature enters the conditional of a variable in the rows that meet all its conditions but perhaps the
    one on that variable. So only rows that miss at most one condition count, and those are found for all
    variables of a feature at once, from bitmaps.
    """

    levels: Any  # int64 (variables,): the levels it has
    missed: Any  # uint64 (words,): rows that miss a condition
    again: Any  # uint64 (words,): rows that miss two
    alive: Any  # int64 (words,): words with rows that miss at most one


@inlined
def _find_near_rows(feature, screen, buffers):
    """Find the rows that miss at most one condition; returns the numbers of conditions and of live words."""
    missed, again, alive, words = buffers.missed, buffers.again, buffers.alive, screen.words
    n_words = words.shape[1]
    row = np.int64(screen.row[feature])
    size = 0
    for word in range(n_words):
        missed[word] = _ZERO
        again[word] = _ZERO
    for part in range(screen.scopes.shape[1]):
        rest = screen.scopes[feature, part]
        while rest != _ZERO:
            variable = (part << 6) + np.int64(trailing_zeros(rest))
            rest &= rest - _ONE
            level = screen.first[variable] + np.int64(screen.codes[row, variable])
            buffers.levels[size] = level
            size += 1
            for word in range(n_words):
                absent = ~words[level, word]
                again[word] |= missed[word] & absent
                missed[word] |= absent
    tail = screen.codes.shape[0] & 63
    if tail != 0:
        again[n_words - 1] |= ~((_ONE << np.uint64(tail)) - _ONE)
    n_alive = 0
    for word in range(n_words):
        if again[word] != ~_ZERO:
            alive[n_alive] = word
            n_alive += 1
    return size, n_alive


@inlined
def _entered(level, word, screen, buffers):
    """Return the rows of a word that meet all conditions but perhaps the one on a level."""
    return ~buffers.again[word] & ~(buffers.missed[word] & screen.words[level, word])


@compiled
def add_scores(features, weights, screen, buffers, scores):
    """Add the weights of features to the scores of the levels, row by row, whose conditionals they enter."""
    screen, buffers = borrowed(screen), borrowed(buffers)
    scores = borrowed(scores)
    for k in range(features.shape[0]):
        size, n_alive = _find_near_rows(features[k], screen, buffers)
        for i in range(size):
            level = buffers.levels[i]
            for j in range(n_alive):
                word = buffers.alive[j]
                rest = _entered(level, word, screen, buffers)
                while rest != _ZERO:
                    scores[level, (word << 6) + np.int64(trailing_zeros(rest))] += weights[k]
                    rest &= rest - _ONE


@compiled
def find_slopes(features, screen, buffers, excess, spread, slopes, bends):
    """Sum, for each feature, what the probabilities exceed the rows by where it enters, and their spread."""
    screen, buffers = borrowed(screen), borrowed(buffers)
    excess, spread = borrowed(excess), borrowed(spread)
    for k in range(features.shape[0]):
        size, n_alive = _find_near_rows(features[k], screen, buffers)
        slope, bend = 0.0, 0.0
        for i in range(size):
            level = buffers.levels[i]
            for j in range(n_alive):
                word = buffers.alive[j]
                rest = _entered(level, word, screen, buffers)
                while rest != _ZERO:
                    row = (word << 6) + np.int64(trailing_zeros(rest))
                    slope += excess[level, row]
                    bend += spread[level, row]
                    rest &= rest - _ONE
        slopes[k] = slope
        bends[k] = bend
