"""Answers that wait in files are those of a memo that holds everything."""

import errno
import io
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unless
from strategies import datasets
from unless.errors import SettingError
from unless.kernels.memo import Log
from unless.learners.grow_shrink import cohorts
from unless.learners.grow_shrink.cohorts import BlanketSearch, bytes_to_learn
from unless.learners.memo import DeferredAnswers, Memo


@pytest.fixture(autouse=True)
def no_cube(monkeypatch):
    monkeypatch.setattr("unless.learners.csgs.fits_cube", lambda n_levels: False)


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
def test_files_and_threads_change_neither_answers_nor_counts(data, blankets, n_jobs):
    first = facts(unless.CSGS(blankets=blankets, alpha=0.3).fit(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cohorts, "_DEFERRED_SHARE", 0)
        assert facts(unless.CSGS(blankets=blankets, alpha=0.3, n_jobs=n_jobs).fit(data)) == first


@pytest.mark.parametrize("max_bytes", [0, 100, 10**6])
def test_what_waits_for_a_node_is_what_was_sent_to_it(max_bytes):
    rng = np.random.default_rng(0)
    sent = {node: [] for node in range(12)}
    with DeferredAnswers(12, max_bytes) as deferred:
        for node in range(12):
            taken = np.concatenate([answers(), *deferred.take(node)])
            assert sorted(taken[:, 0].tolist()) == sorted(name * 2**40 for name in sent[node])
            others = np.array([v for v in rng.integers(0, 12, 30) if v != node], dtype=np.int32)
            names = rng.integers(1, 2**20, len(others)).tolist()
            for other, name in zip(others.tolist(), names, strict=True):
                sent[other].append(name)
            for half in np.array_split(np.arange(len(others)), 2):
                deferred.add(node, Log(answers(*names)[half], others[half]))


def test_a_memo_begins_anew_with_what_is_known():
    memo = Memo(2**30)
    memo.begin([answers(*range(1, 20_000)), answers(*range(20_000, 50_000))])
    assert memo.n_known == 49_999
    wide = len(memo.slots)
    memo.begin([answers(5)])
    assert memo.n_known == 1 == np.count_nonzero(memo.slots[:, 1])
    assert len(memo.slots) < wide


def test_threads_that_fill_a_memo_together_put_in_every_answer_once():
    memo = Memo(2**30)
    with ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            parts = [answers(*range(k, 20_000, 7)) for k in range(1, 8)]
            memo.make_room([*parts, answers(5, 6)], 0)
            list(threads.map(lambda _: memo.fill(), range(4)))
            assert memo.n_known == 19_999 == np.count_nonzero(memo.slots[:, 1])


@pytest.mark.parametrize("n_answers", [3, 300, 3000])
def test_a_full_disk_is_one_sentence(n_answers, monkeypatch, tmp_path):
    class Full(io.RawIOBase):
        def readable(self):
            return True

        writable = seekable = readable

        def seek(self, *_):
            return 0

        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    # With a buffer, as files have: some fail when it is full, some when it is emptied.
    monkeypatch.setattr("unless.learners.memo._unnamed_file", lambda _: io.BufferedRandom(Full()))
    log = Log(answers(*range(1, n_answers + 1)), np.arange(n_answers, dtype=np.int32) % 2 + 1)
    with (
        DeferredAnswers(3, 0, tmp_path) as deferred,
        pytest.raises(SettingError, match=r"cannot be written to .*No space left.* max_memory="),
    ):
        deferred.add(0, log)


@pytest.mark.parametrize("blankets", ["shared", "independent"])
@pytest.mark.parametrize("n_levels", [2, 30])
def test_the_estimate_covers_what_learning_holds_beside_answers(n_levels, blankets, monkeypatch):
    rng = np.random.default_rng(0)
    columns = {f"c{k}": rng.integers(0, n_levels, 4_000) for k in range(8 if n_levels > 2 else 30)}
    data = unless.read(columns)
    learner, held = unless.CSGS(blankets=blankets, max_blanket=1), []
    learner.fit(data)
    result = BlanketSearch.result

    def watch(self):
        kept = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, memo_file)])
        held.append(sum(trace.size for trace in kept.traces))
        return result(self)

    memo_file = Memo.begin.__code__.co_filename
    monkeypatch.setattr(BlanketSearch, "result", watch)
    tracemalloc.start()
    try:
        learner.fit(data)
    finally:
        tracemalloc.stop()
    assert 0 < held[0] <= bytes_to_learn(data, 1)
