"""Answers that wait in files, and questions counted over parts, are those of a memo that holds everything."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unless
from strategies import datasets
from unless.kernels.memo import Log
from unless.learners import cohorts, graphs
from unless.learners.memo import Memo, Tally, Waiting, count_distinct, count_parts


@pytest.fixture(autouse=True)
def no_cube(monkeypatch):
    monkeypatch.setattr(graphs, "fits_cube", lambda n_levels: False)


def answers(*names):
    """Make answers that are told apart by a number."""
    return np.array([[name * 2**40, 4 * name + 1] for name in names], dtype=np.uint64).reshape(-1, 2)


def facts(est):
    return (
        est.structure_.packed.tolist(),
        est.structure_.graph_index.tolist(),
        est.n_tests_,
        est.n_distinct_tests_,
    )


@settings(max_examples=40, deadline=None)
@given(datasets(), st.sampled_from(["shared", "independent"]), st.integers(1, 3))
def test_files_and_parts_change_neither_answers_nor_counts(data, blankets, n_jobs):
    first = facts(unless.CSGS(blankets=blankets, alpha=0.3).fit(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cohorts, "_WAITING", 0)
        patch.setattr(cohorts, "_UNCOUNTED", 0)
        assert facts(unless.CSGS(blankets=blankets, alpha=0.3, n_jobs=n_jobs).fit(data)) == first


@pytest.mark.parametrize("max_bytes", [0, 100, 10**6])
def test_what_waits_for_a_node_is_what_was_sent_to_it(max_bytes):
    rng = np.random.default_rng(0)
    sent = {node: [] for node in range(12)}
    with Waiting(12, max_bytes) as waiting:
        for node in range(12):
            taken = waiting.take(node)
            assert sorted(taken[:, 0].tolist()) == sorted(name * 2**40 for name in sent[node])
            others = np.array([v for v in rng.integers(0, 12, 30) if v != node], dtype=np.int32)
            names = rng.integers(1, 2**20, len(others)).tolist()
            for other, name in zip(others.tolist(), names, strict=True):
                sent[other].append(name)
            halves = np.array_split(np.arange(len(others)), 2)
            early = waiting.add(node, [Log(answers(*names)[half], others[half]) for half in halves])
            assert len(early) == (others < node).sum()


@pytest.mark.parametrize("max_bytes", [0, 10**6])
def test_a_tally_counts_what_several_parts_ask_once(max_bytes):
    with Tally(2, 3, max_bytes) as tally:
        tally.close(0, answers(1, 2))
        tally.close(1, answers(7))
        tally.close(0, answers(2, 3))
        assert tally.n_distinct == 0
        tally.close(0, answers())
        assert tally.n_distinct == 3
        tally.close(1, answers())
        tally.close(1, answers(8))
        assert tally.n_distinct == 5


@pytest.mark.parametrize(("at_once", "n_jobs"), [(1, 1), (2, 2), (4, 3), (2**16, 2)])
def test_parts_are_counted_whatever_is_counted_at_once(at_once, n_jobs, monkeypatch):
    monkeypatch.setattr("unless.learners.memo._COUNTED_AT_ONCE", at_once)
    parts = [
        {"answers": answers(1, 2, 3, 9), "begins": np.array([0, 2, 3, 4])},
        {"answers": answers(2, 4, 5), "begins": np.array([0, 2, 3, 3])},
    ]
    assert count_parts(parts, n_jobs) == 6
    empty = {"answers": answers(), "begins": np.zeros(4, dtype=np.int64)}
    assert count_parts([empty, empty], n_jobs) == 0
    assert count_distinct([answers(1, 2), answers(2), answers()]) == 2


def test_more_questions_than_fit_memory_are_counted_in_slices(monkeypatch):
    monkeypatch.setattr("unless.learners.memo._LEAST_AT_ONCE", 300)
    monkeypatch.setattr("unless.learners.memo._READ_AT_ONCE", 64)
    rng = np.random.default_rng(0)
    asked = rng.integers(0, 2**64, size=(1_000, 2), dtype=np.uint64) | np.uint64(3)
    chosen = [np.unique(rng.integers(0, 1_000, 700)) for _ in range(3)]
    parts = [{"answers": asked[one], "begins": np.array([0, 0, len(one), len(one)])} for one in chosen]
    assert count_parts(parts, 1, 0) == len(np.unique(np.concatenate(chosen)))


def test_a_memo_begins_anew_with_what_is_known():
    memo = Memo(2**30)
    memo.begin(answers(*range(1, 50_000)))
    assert memo.n_known == 49_999
    wide = len(memo.places)
    memo.begin(answers(5))
    assert memo.n_known == 1 == len(memo.answers())
    assert len(memo.places) < wide
