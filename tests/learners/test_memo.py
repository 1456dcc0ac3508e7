"""Answers that wait in files, and questions counted over parts, are those of a memo that holds everything."""

import errno
import io
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unless
from strategies import chained_columns, datasets
from unless.errors import SettingError, TooLarge
from unless.kernels.memo import PRIVATE, Log
from unless.learners import cohorts, graphs, visits
from unless.learners.cohorts import bytes_to_learn
from unless.learners.memo import Memo, Waiting
from unless.learners.tallying import Ledger, Tally, count_parts
from unless.runtime.checkpoints import ShardFile


@pytest.fixture(autouse=True)
def no_cube(monkeypatch):
    monkeypatch.setattr(graphs, "fits_cube", lambda n_levels: False)


def answers(*names):
    """Make answers that are told apart by a number."""
    return np.array([[name * 2**40, 8 * name + 1] for name in names], dtype=np.uint64).reshape(-1, 2)


def words(*names):
    return np.array([name * 2**40 for name in names], dtype=np.uint64)


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
        patch.setattr(visits, "_WAITING", 0)
        assert facts(unless.CSGS(blankets=blankets, alpha=0.3, n_jobs=n_jobs).fit(data)) == first


@pytest.mark.parametrize("max_bytes", [0, 100, 10**6])
def test_what_waits_for_a_node_is_what_was_sent_to_it(max_bytes):
    rng = np.random.default_rng(0)
    sent = {node: [] for node in range(12)}
    with Waiting(12, max_bytes) as waiting:
        for node in range(12):
            taken = np.concatenate([answers(), *waiting.take(node)])
            assert sorted(taken[:, 0].tolist()) == sorted(name * 2**40 for name in sent[node])
            others = np.array([v for v in rng.integers(0, 12, 30) if v != node], dtype=np.int32)
            names = rng.integers(1, 2**20, len(others)).tolist()
            for other, name in zip(others.tolist(), names, strict=True):
                sent[other].append(name)
            for half in np.array_split(np.arange(len(others)), 2):
                waiting.add(node, Log(answers(*names)[half], others[half]))


@pytest.mark.parametrize(("at_once", "n_jobs"), [(1, 1), (2, 2), (4, 3), (2**16, 2)])
def test_parts_are_counted_whatever_is_counted_at_once(at_once, n_jobs, monkeypatch):
    monkeypatch.setattr("unless.learners.tallying._COUNTED_AT_ONCE", at_once)
    parts = [
        {"questions": words(1, 2, 3, 9), "begins": np.array([0, 2, 3, 4]), "n_private": 10},
        {"questions": words(2, 4, 5), "begins": np.array([0, 2, 3, 3]), "n_private": 20},
    ]
    assert count_parts(parts, n_jobs) == 36
    empty = {"questions": words(), "begins": np.zeros(4, dtype=np.int64), "n_private": 0}
    assert count_parts([empty, empty], n_jobs) == 0
    tally = Tally()
    assert [tally.count([words(1, 2), words(last), words()]) for last in (2, 3, 1)] == [2, 3, 2]


def test_more_questions_than_fit_memory_are_counted_in_slices(monkeypatch):
    monkeypatch.setattr("unless.learners.tallying._LEAST_AT_ONCE", 300)
    monkeypatch.setattr("unless.learners.tallying._READ_AT_ONCE", 64)
    rng = np.random.default_rng(0)
    asked = rng.integers(0, 2**64, size=1_000, dtype=np.uint64)
    chosen = [np.unique(rng.integers(0, 1_000, 700)) for _ in range(3)]
    begins = [np.array([0, 0, len(one), len(one)]) for one in chosen]
    parts = [
        {"questions": asked[one], "begins": begin, "n_private": 0}
        for one, begin in zip(chosen, begins, strict=True)
    ]
    assert count_parts(parts, 1, 0) == len(np.unique(np.concatenate(chosen)))


def test_where_questions_begin_in_a_file_is_found_once(monkeypatch, tmp_path):
    table, found, find = unless.read(chained_columns(8, 60)), [], ShardFile._find
    monkeypatch.setattr(cohorts, "SHARD_SIZE", 2**10)
    monkeypatch.setattr("unless.learners.tallying._COUNTED_AT_ONCE", 8)
    monkeypatch.setattr("unless.learners.tallying._COUNTS_PER_WORKER", 1)
    monkeypatch.setattr(ShardFile, "_find", lambda file, *how: found.append(file.path) or find(file, *how))
    learner = unless.CSGS(work_dir=tmp_path, n_jobs=1).fit(table)
    assert learner.n_distinct_tests_ == unless.CSGS().fit(table).n_distinct_tests_
    assert len(found) == len(set(found)) > 1


def test_questions_of_other_parts_are_noted_within_their_memory():
    ledger = Ledger(4, 1_000)
    ledger.begin_kind()
    ledger.begin_kind()
    for first in range(1, 60, 10):
        others = np.arange(10, dtype=np.int32)
        ledger.add(answers(*range(first, first + 4)))
        ledger.add_closed(Log(answers(*range(first + 4, first + 14)), others), 6)
    handed_in = ledger.hand_in(70)
    assert handed_in["questions"].tolist() == words(*range(1, 61)).tolist()
    assert handed_in["begins"].tolist() == [0, 0, 60, 60, 60]
    assert handed_in["n_private"] == 10
    private = answers(*range(1, 500)) | np.array([0, PRIVATE], dtype=np.uint64)
    ledger.add(private)
    ledger.add_closed(Log(private, np.zeros(499, dtype=np.int32)), 1)
    assert ledger.n_noted == 60
    with pytest.raises(TooLarge, match=r"count 141 questions once .* max_memory="):
        ledger.add(answers(*range(1, 81)))


@pytest.mark.parametrize("n_notes", [60, 100, 128, 250, 400, 3_000])
def test_notes_may_fill_most_of_their_memory(n_notes, monkeypatch):
    monkeypatch.setattr("unless.learners.tallying._FIRST_ROOM", 64)
    ledger = Ledger(1, 8 * n_notes)
    for first in range(1, int(0.75 * n_notes), 10):
        ledger.add(answers(*range(first, first + 10)))
    assert ledger.n_noted >= 0.75 * n_notes - 10


def test_a_memo_begins_anew_with_what_is_known():
    memo = Memo(2**30)
    memo.begin([answers(*range(1, 20_000)), answers(*range(20_000, 50_000))])
    assert memo.n_known == 49_999
    wide = len(memo.places)
    memo.begin([answers(5)])
    assert memo.n_known == 1 == len(memo.answers())
    assert len(memo.places) < wide


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
    monkeypatch.setattr("unless.learners.memo._nameless", lambda _: io.BufferedRandom(Full()))
    log = Log(answers(*range(1, n_answers + 1)), np.arange(n_answers, dtype=np.int32) % 2 + 1)
    with (
        Waiting(3, 0, tmp_path) as waiting,
        pytest.raises(SettingError, match=r"cannot be written to .*No space left.* max_memory="),
    ):
        waiting.add(0, log)


@pytest.mark.parametrize("blankets", ["shared", "independent"])
@pytest.mark.parametrize("n_levels", [2, 30])
def test_the_estimate_covers_what_learning_holds_beside_answers(n_levels, blankets, monkeypatch):
    rng = np.random.default_rng(0)
    columns = {f"c{k}": rng.integers(0, n_levels, 4_000) for k in range(8 if n_levels > 2 else 30)}
    data = unless.read(columns)
    learner, held = unless.CSGS(blankets=blankets, max_blanket=1), []
    learner.fit(data)
    result = visits._Visits.result

    def watch(self, team):
        kept = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, memo_file)])
        held.append(sum(trace.size for trace in kept.traces))
        return result(self, team)

    memo_file = Memo.begin.__code__.co_filename
    monkeypatch.setattr(visits._Visits, "result", watch)
    tracemalloc.start()
    try:
        learner.fit(data)
    finally:
        tracemalloc.stop()
    assert 0 < held[0] <= bytes_to_learn(data, 1)
