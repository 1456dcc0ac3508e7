from itertools import combinations

import numpy as np
import pytest

from unless.structures.structure import (
    is_padded_with_zeros,
    n_pairs,
    pack,
    packed_width,
    pair_nodes,
    unpack,
)


@pytest.mark.parametrize("n_nodes", [0, 1, 2, 3, 5, 17, 70])
def test_pairs_come_in_the_order_of_combinations(n_nodes):
    first, second = pair_nodes(np.arange(n_pairs(n_nodes)), n_nodes)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == list(combinations(range(n_nodes), 2))


@pytest.mark.parametrize("n_nodes", [1, 2, 4, 5, 20])
def test_links_survive_packing(n_nodes):
    links = np.random.default_rng(n_nodes).random((6, n_pairs(n_nodes))) < 0.5
    packed = pack(links)
    assert packed.shape == (6, packed_width(n_nodes))
    assert is_padded_with_zeros(packed, n_nodes)
    np.testing.assert_array_equal(unpack(packed, n_nodes), links)
    np.testing.assert_array_equal(unpack(packed[0], n_nodes), links[0])


def test_a_bit_beyond_the_last_pair_is_noticed():
    assert not is_padded_with_zeros(np.array([[0b1000]], dtype=np.uint8), 3)
    assert is_padded_with_zeros(np.array([[0b0111]], dtype=np.uint8), 3)
