"""Generation of features by dropping variables from features at random, with counts.

A feature is a row and the set of variables it keeps of that row. Two features are one when they keep the
same variables and their rows agree there, which is compared and not trusted to a hash.
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
    kept: Any  # uint64 (capacity, words): the variables it speaks of
    count: Any  # int32 (capacity,): how often it was generated
    hashes: Any  # uint64 (capacity,)
    places: Any  # int32 (a power of two): open addressing, one more than the feature, 0 for a gap


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


@inlined
def _propose(state, n_features, kept, members, drawn):
    """Pick a feature and drop some of its variables: see `propose`."""
    picked = _below(state, n_features)
    n_words = kept.shape[1]
    size = 0
    for word in range(n_words):
        rest = kept[picked, word]
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


@compiled
def propose(state, n_features, kept, members, drawn):
    """Pick one of the first features and drop some of its variables, as the law of generation says.

    The pick is uniform; the number dropped is uniform on 1 .. size - 1, and which ones is uniform. Returns
    the feature picked and how many variables are left, which are marked in `drawn` and listed in `members`;
    0 where a feature of one variable was picked, which has nothing to drop.
    """
    return _propose(state, n_features, kept, members, drawn)


@inlined
def _same(pool, feature, row, n_kept, members, drawn):
    for word in range(drawn.shape[0]):
        if pool.kept[feature, word] != drawn[word]:
            return False
    other = np.int64(pool.row[feature])
    for i in range(n_kept):  # noqa: SIM110 (numba compiles no generators)
        if pool.codes[other, members[i]] != pool.codes[row, members[i]]:
            return False
    return True


@inlined
def _borrowed_pool(pool):
    return Pool(
        borrowed(pool.codes),
        borrowed(pool.first),
        borrowed(pool.keys),
        borrowed(pool.row),
        borrowed(pool.kept),
        borrowed(pool.count),
        borrowed(pool.hashes),
        borrowed(pool.places),
    )


@compiled
def generate(state, n_draws, n_features, pool, members, drawn):
    """Draw until the number of draws is done or the pool is full; returns the draws done and the features."""
    state, members, drawn = borrowed(state), borrowed(members), borrowed(drawn)
    pool = _borrowed_pool(pool)
    mask = pool.places.shape[0] - 1
    capacity = pool.row.shape[0]
    done = 0
    while done < n_draws and n_features < capacity:
        done += 1
        picked, n_kept = _propose(state, n_features, pool.kept, members, drawn)
        if n_kept == 0:
            continue
        row = np.int64(pool.row[picked])
        name = _ZERO
        for i in range(n_kept):
            name ^= pool.keys[pool.first[members[i]] + np.int64(pool.codes[row, members[i]])]
        place = np.int64(name >> _ONE) & mask
        while True:
            feature = np.int64(pool.places[place]) - 1
            if feature < 0:
                pool.places[place] = n_features + 1
                pool.row[n_features] = row
                pool.hashes[n_features] = name
                pool.count[n_features] = 1
                for word in range(drawn.shape[0]):
                    pool.kept[n_features, word] = drawn[word]
                n_features += 1
                break
            if pool.hashes[feature] == name and _same(pool, feature, row, n_kept, members, drawn):
                pool.count[feature] += 1
                break
            place = (place + 1) & mask
    return done, n_features


@compiled
def enter(first, last, hashes, places):
    """Give features their places in a larger table."""
    mask = places.shape[0] - 1
    for feature in range(first, last):
        place = np.int64(hashes[feature] >> _ONE) & mask
        while places[place] != 0:
            place = (place + 1) & mask
        places[place] = feature + 1


@compiled
def spell_out(features, row, kept, codes, variable, level):
    """Write the conditions of some features one after another, each sorted by variable."""
    at = 0
    for k in range(features.shape[0]):
        feature = features[k]
        for word in range(kept.shape[1]):
            rest = kept[feature, word]
            while rest != _ZERO:
                column = (word << 6) + np.int64(trailing_zeros(rest))
                variable[at] = column
                level[at] = codes[row[feature], column]
                at += 1
                rest &= rest - _ONE
