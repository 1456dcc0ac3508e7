"""Tables of the study: nested, repeatable, drawn from the law they claim."""

from itertools import pairwise

import numpy as np
from scipy.stats import chisquare

from studies.paper.plan import Site
from studies.paper.tables import table_of


def site(**changes):
    return Site(
        **{"reading": "headline", "shape": "complete", "n_variables": 6, "network": 0, "size": 500, **changes}
    )


def test_a_smaller_table_is_the_beginning_of_a_larger_one():
    sizes = (20, 40, 500)
    counted = [
        dict(zip(map(tuple, d.rows.tolist()), d.counts.tolist(), strict=True))
        for d in (table_of(site(size=size)).data for size in sizes)
    ]
    assert [sum(counts.values()) for counts in counted] == list(sizes)
    for small, large in pairwise(counted):
        assert all(large[row] >= number for row, number in small.items())


def test_the_first_rows_follow_the_law():
    truth, data = table_of(site(size=5_000))
    counts = np.zeros(truth.probabilities.shape)
    np.add.at(counts, tuple(data.rows.T), data.counts)
    expected = 5_000 * truth.probabilities
    large = expected >= 5
    observed = np.append(counts[large], counts[~large].sum())
    assert chisquare(observed, np.append(expected[large], expected[~large].sum())).pvalue > 1e-3


def test_networks_differ_and_readings_share_them():
    first, second = table_of(site()), table_of(site(network=1))
    assert not np.array_equal(first.truth.weights, second.truth.weights)
    again = table_of(site(reading="sd-10"))
    assert np.array_equal(first.truth.weights, again.truth.weights)
    assert first.data == again.data
    raw = table_of(site(reading="raw"))
    assert not np.array_equal(first.truth.weights, raw.truth.weights)


def test_w_comes_first_where_the_reading_says_so():
    headline, turned = table_of(site()), table_of(site(reading="w-first"))
    assert headline.data.names[-1] == "W"
    assert turned.data.names == ("W", *headline.data.names[:-1])
    assert turned.data.select(headline.data.names) == headline.data
