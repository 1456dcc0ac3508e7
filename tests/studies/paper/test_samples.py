"""Tables of the study: nested, repeatable, drawn from the law they claim."""

from itertools import pairwise

import numpy as np
from scipy.stats import chisquare

from studies.paper.plan import Table
from studies.paper.samples import sample_of


def table(**changes):
    return Table(
        **{"variant": "headline", "shape": "complete", "n_variables": 6, "network": 0, "size": 500, **changes}
    )


def test_a_smaller_table_is_the_beginning_of_a_larger_one():
    sizes = (20, 40, 500)
    counted = [
        dict(zip(map(tuple, d.rows.tolist()), d.counts.tolist(), strict=True))
        for d in (sample_of(table(size=size)).data for size in sizes)
    ]
    assert [sum(counts.values()) for counts in counted] == list(sizes)
    for small, large in pairwise(counted):
        assert all(large[row] >= number for row, number in small.items())


def test_the_first_rows_follow_the_law():
    truth, data = sample_of(table(size=5_000))
    counts = np.zeros(truth.probabilities.shape)
    np.add.at(counts, tuple(data.rows.T), data.counts)
    expected = 5_000 * truth.probabilities
    large = expected >= 5
    observed = np.append(counts[large], counts[~large].sum())
    assert chisquare(observed, np.append(expected[large], expected[~large].sum())).pvalue > 1e-3


def test_networks_differ_and_variants_share_them():
    first, second = sample_of(table()), sample_of(table(network=1))
    assert not np.array_equal(first.truth.weights, second.truth.weights)
    again = sample_of(table(variant="sd-10"))
    assert np.array_equal(first.truth.weights, again.truth.weights)
    assert first.data == again.data
    raw = sample_of(table(variant="raw"))
    assert not np.array_equal(first.truth.weights, raw.truth.weights)


def test_w_comes_first_where_the_reading_says_so():
    headline, turned = sample_of(table()), sample_of(table(variant="w-first"))
    assert headline.data.names[-1] == "W"
    assert turned.data.names == ("W", *headline.data.names[:-1])
    assert turned.data.select(headline.data.names) == headline.data
