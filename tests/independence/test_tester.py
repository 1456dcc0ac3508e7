"""Many tests on one table: the answers of `ask`, by names, in any order and any thread."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import datasets
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import SettingError, UnknownName
from unless.independence.oracle import IndependenceTester
from unless.independence.statistics import tail
from unless.independence.tests import ask

TESTS = st.sampled_from(["pearson", "likelihood_ratio"])


def make_data(n_rows=400, n=7, n_levels=3):
    rng = np.random.default_rng(11)
    domain = Domain(tuple(Variable(name, tuple(map(str, range(n_levels)))) for name in "fbdaceg"[:n]))
    return Dataset.from_codes(domain, rng.integers(0, n_levels, (n_rows, n)), rng.integers(1, 9, n_rows))


@settings(max_examples=100, deadline=None)
@given(datasets(), st.data(), TESTS)
def test_it_says_what_ask_says(data, draw, test):
    a, b, *rest = draw.draw(st.permutations(data.names))
    by = rest[: draw.draw(st.integers(0, len(rest)))]
    tester = IndependenceTester(data, test=test)
    tested, verdict = tester.ask(a, b, by), ask(data, a, b, given=by, test=test)
    # G sums logarithms of nearly one, each as exact as the counts are large.
    slack = 1e-9 + (1e-14 * data.n_rows if test == "likelihood_ratio" else 0)
    assert tested.statistic == pytest.approx(verdict.statistic, rel=1e-9, abs=slack)
    assert (tested.df, tested.rows_used) == (verdict.df, verdict.rows_used)
    # Where cells are nearly empty, `ask` takes p from permutations; the tester keeps to the chi-square law.
    assert tested.p == pytest.approx(tail(verdict.df, verdict.statistic), rel=1e-6, abs=1e-7)
    if verdict.method == "chi-square":
        assert tested.p == pytest.approx(verdict.p, rel=1e-6, abs=1e-7)
    assert tester.ask(b, a, by[::-1]) == tested


@settings(max_examples=60, deadline=None)
@given(datasets(), st.data(), TESTS)
def test_all_at_once_is_one_by_one(data, draw, test):
    a, *rest = draw.draw(st.permutations(data.names))
    by = rest[: draw.draw(st.integers(0, len(rest) - 1))]
    tester = IndependenceTester(data, test=test)
    found = tester.ask_all(a, by)
    assert found.others == tuple(name for name in data.names if name != a and name not in by)
    for name, *answer in zip(*found, strict=True):
        assert tester.ask(a, name, by) == pytest.approx(tuple(answer), rel=1e-12)
        assert tester.ask(a, name, by)[:2] == tuple(answer[:2])


def test_the_order_of_columns_and_of_questions_changes_no_bit():
    data = make_data()
    mirrored = data.select(data.names[::-1])
    here, there = IndependenceTester(data), IndependenceTester(mirrored)
    some = here.ask_all("c", ["f", "a"], others=["g", "b"])
    assert some.others == ("g", "b")
    for by in (["f", "a"], ["a", "f"], ("f", "a")):
        assert here.ask("c", "g", by) == there.ask("g", "c", by)
        assert np.array_equal(there.ask_all("c", by, others=["g", "b"]).statistic, some.statistic)


def test_what_is_large_and_sparse_is_answered_too():
    data = make_data(n_rows=300, n_levels=9)
    tester = IndependenceTester(data)
    by = ["f", "b", "d"]
    found = tester.ask_all("a", by)
    for name, *answer in zip(*found, strict=True):
        verdict = ask(data, "a", name, given=by)
        assert tester.ask("a", name, by) == tuple(answer)
        assert answer == [
            pytest.approx(verdict.statistic),
            verdict.df,
            pytest.approx(verdict.p),
            verdict.rows_used,
        ]


def test_a_name_alone_is_one_name():
    tester = IndependenceTester(make_data())
    assert tester.ask("a", "b", "c") == tester.ask("a", "b", ["c"])
    assert tester.ask_all("a", "c", others="b").others == ("b",)


def test_threads_do_not_disturb_each_other():
    tester = IndependenceTester(make_data(3000))
    questions = [("a", b, by) for b in "bc" for by in ([], ["d"], ["e", "f"], ["d", "e", "f", "g"])] * 25
    alone = [tester.ask(*question) for question in questions]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda question: tester.ask(*question), questions)) == alone


def test_it_can_be_sent_to_another_process():
    tester = IndependenceTester(make_data(), test="likelihood_ratio")
    sent = pickle.loads(pickle.dumps(tester))
    assert sent.test == tester.test
    assert sent.ask("a", "b", ["c"]) == tester.ask("a", "b", ["c"])


def test_bad_questions_get_a_sentence():
    tester = IndependenceTester(make_data())
    with pytest.raises(UnknownName, match="no variable 'z'"):
        tester.ask("a", "z")
    with pytest.raises(UnknownName, match="no variable 'fa'"):
        tester.ask_all("a", "fa")
    for question in [("a", "a"), ("a", "b", ["a"]), ("a", "b", ["c", "c"])]:
        with pytest.raises(SettingError, match="twice"):
            tester.ask(*question)
    for a, by, others in [
        ("a", ["a"], ["b"]),
        ("a", [], ["a"]),
        ("a", ["c"], ["c"]),
        ("a", ["c", "c"], None),
    ]:
        with pytest.raises(SettingError, match="twice"):
            tester.ask_all(a, by, others=others)
    with pytest.raises(SettingError, match="test must be"):
        IndependenceTester(make_data(), test="bayesian")
