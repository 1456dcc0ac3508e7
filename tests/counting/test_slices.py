"""Bitmaps for rows with counts: a copy for each bit of a count that some row has, and no other."""

import numpy as np
import pytest

from twins.naive import naive_table
from unless.counting.slices import PackedTable, bitmap_words
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable

N_ROWS = 1500
# All counts, and how many words of copies there are besides one for each 64 rows.
COUNTS = {
    "one": (lambda rng: np.ones(N_ROWS), 0),
    "a high bit alone": (lambda rng: np.full(N_ROWS, 1025), 32),
    "a low bit of one row": (lambda rng: np.where(np.arange(N_ROWS) == 700, 1026, 1025), 16 + 32),
    "one that is huge": (lambda rng: np.where(np.arange(N_ROWS) == 700, 2**31 + 1, 1), 16),
    "a few": (lambda rng: rng.integers(1, 6, N_ROWS), 32 + 32),
    "all sizes": (lambda rng: (2.0 ** rng.uniform(0, 40, N_ROWS)).astype(np.int64), None),
}


@pytest.fixture
def make_table():
    def make(counts):
        codes = np.arange(N_ROWS)
        rows = np.stack([codes % 2, codes // 2 % 30, codes // 60], axis=1).astype(np.uint16)
        levels = [tuple(f"{level:02}" for level in range(n)) for n in (2, 30, 25)]
        domain = Domain(tuple(Variable(name, each) for name, each in zip("abc", levels, strict=True)))
        return Dataset(domain, rows, counts.astype(np.int64))

    return make


@pytest.mark.parametrize("name", COUNTS)
def test_copies_are_made_for_bits_that_some_row_has(name, make_table):
    make, extra = COUNTS[name]
    data = make_table(make(np.random.default_rng(1)))
    packed = PackedTable.of(data)
    n_words = packed.table.bitmaps.shape[1]
    # What memory is estimated by, from counts in any order.
    assert bitmap_words(data.counts) == bitmap_words(np.sort(data.counts)) == n_words
    assert extra is None or n_words == 32 + extra
    for context in ({}, {2: 11}):
        expected = naive_table(data.rows, data.counts, data.domain.n_levels, 0, 1, context)
        assert np.array_equal(packed.count(0, 1, context, list_limit=0), expected)
