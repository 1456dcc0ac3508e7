"""CSGSSL: what is generated, what is left, and the graphs read off it, against a literal twin."""

from contextlib import suppress
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unless
from strategies import KINDS, datasets
from twins.naive_gssl import naive_links_given_rest
from unless.errors import SettingError
from unless.kernels import compiling
from unless.learners import gssl
from unless.learners.gssl import CSGSSL, links_given_rest
from unless.structures.canonical import CanonicalModel
from unless.structures.structure import FeatureArrays

MODERATE = tuple(kind for kind in KINDS if kind != "huge counts")


@settings(max_examples=60)
@given(datasets(kinds=MODERATE, max_variables=5, max_rows=40), st.data())
def test_pairs_are_linked_where_the_other_conditions_of_a_feature_hold(data, drawn):
    columns = st.sets(st.sampled_from(range(data.n_variables)), min_size=1)
    features = [
        [(column, int(row[column]), True) for column in sorted(drawn.draw(columns))]
        for row in data.rows[: drawn.draw(st.integers(0, 6))]
    ]
    links = links_given_rest(FeatureArrays.of(features), data.rows)
    assert links.tolist() == naive_links_given_rest(features, data.rows)


@settings(max_examples=25)
@given(datasets(kinds=MODERATE, max_variables=4, max_levels=3, max_rows=60))
def test_graphs_are_read_off_what_the_prior_leaves_of_the_cliques_of_csgs(data):
    named = data.select(sorted(data.names))
    csgs = unless.CSGS(alpha=0.2).fit(named)
    net = unless.fit_weights(csgs.structure_.features(), named, unless.Gaussian(1) + unless.Laplace(2))
    weighed = zip(net.features.arrays.literals(), net.weights, strict=True)
    left = [feature for feature, weight in weighed if weight]
    est = CSGSSL(2, 0.2).fit(named)
    expected = naive_links_given_rest(left, named.rows)
    pairs = [(a, b) for i, a in enumerate(named.names) for b in named.names[i + 1 :]]
    for (_, graph), linked in zip(est.structure_, expected, strict=True):
        assert graph.edges == {pair for pair, is_linked in zip(pairs, linked, strict=True) if is_linked}
    assert (est.n_tests_, est.n_distinct_tests_) == (csgs.n_tests_, csgs.n_distinct_tests_)


def test_a_stronger_prior_leaves_fewer_links():
    data = unless.datasets.make_csi(6, random_state=0).sample(2000, random_state=0)
    shares = [sum(CSGSSL(l1).fit(data).structure_.link_shares().values()) for l1 in (1, 20, 2000)]
    assert shares[0] > shares[1] > shares[2]


def test_a_prior_that_drops_nothing_is_refused():
    with pytest.raises(SettingError, match="l1=0"):
        CSGSSL(0).fit(unless.datasets.load_ucb_admissions())


def test_weights_are_kept_and_not_fitted_again(tmp_path, monkeypatch):
    data = unless.datasets.load_ucb_admissions()
    plain = CSGSSL().fit(data).structure_

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(gssl, "links_given_rest", stop)
        CSGSSL(work_dir=tmp_path).fit(data)
    monkeypatch.setattr(gssl, "weigh", stop)
    assert CSGSSL(work_dir=tmp_path, resume=True).fit(data).structure_ == plain
    assert isinstance(plain, CanonicalModel)


def test_weights_of_many_features_are_no_small_work(monkeypatch):
    asked = []
    small = compiling.plain_if_small
    monkeypatch.setattr(
        "unless.learners.base.plain_if_small", lambda n, work="": asked.append(n) or small(n, work)
    )
    data = unless.datasets.make_csi(7, random_state=0).sample(9_000, random_state=0)
    CSGSSL().fit(data)
    assert asked[0] > compiling.SMALL


def test_the_bar_shows_how_far_the_weights_are(monkeypatch):
    drawn = Mock(disable=False)
    monkeypatch.setattr("tqdm.auto.tqdm", lambda **_: drawn)
    monkeypatch.setattr("unless.runtime.progress._PAUSE", 0.0)
    data = unless.datasets.make_csi(6, random_state=0).sample(2_000, random_state=0)
    CSGSSL(show_progress=True).fit(data)
    assert any("iteration" in call.args[0] for call in drawn.set_postfix_str.call_args_list)
