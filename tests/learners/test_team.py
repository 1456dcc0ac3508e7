"""Threads that work together: one memo for all of them, and one stop."""

import os
import signal
import time
from threading import Barrier, Thread, Timer

import numpy as np
import pytest

import unless
from strategies import chained_columns
from unless.kernels.compiling import compiled
from unless.kernels.memo import keep, known_answer
from unless.learners.grow_shrink import cohorts
from unless.runtime.interrupts import Cancelled, CancelToken
from unless.runtime.parallel import Team


@compiled
def ask_all(memo, keys, found, is_new):
    """Look every question up, and answer those that are not known: by a number that its key decides."""
    for i in range(keys.shape[0]):
        found[i] = known_answer(memo, keys[i, 0], keys[i, 1])
        if found[i] == 0:
            found[i] = 1 + np.int64(keys[i, 1] >> np.uint64(40)) % 3
            is_new[i] = keep(memo, keys[i, 0], keys[i, 1], found[i]) >= 0


def test_threads_that_ask_the_same_keep_every_answer_once():
    rng = np.random.default_rng(0)
    n_threads, n_questions = 4, 3_000
    for _ in range(60):
        keys = rng.integers(1, 2**64, size=(n_questions, 2), dtype=np.uint64)
        # Many begin at the same place, so that threads fight for gaps.
        keys[:, 0] &= np.uint64(0xFFFF000003FFFFFF)
        memo = np.zeros((2**13, 2), dtype=np.uint64)
        orders = [rng.permutation(n_questions) for _ in range(n_threads)]
        found = np.zeros((n_threads, n_questions), dtype=np.int64)
        is_new = np.zeros((n_threads, n_questions), dtype=np.bool_)
        gate = Barrier(n_threads)

        def work(k, memo=memo, keys=keys, orders=orders, found=found, is_new=is_new, gate=gate):
            asked = keys[orders[k]]
            gate.wait()
            ask_all(memo, asked, found[k], is_new[k])

        threads = [Thread(target=work, args=(k,)) for k in range(n_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert is_new.sum() == n_questions
        for k in range(n_threads):
            assert (found[k] == 1 + (keys[orders[k], 1] >> np.uint64(40)).astype(np.int64) % 3).all()


@pytest.mark.parametrize("blankets", ["shared", "independent"])
def test_threads_change_nothing(blankets, monkeypatch):
    monkeypatch.setattr("unless.learners.csgs.fits_cube", lambda n_levels: False)
    monkeypatch.setattr(cohorts, "_CHUNKS_PER_THREAD", 7)
    table = unless.read(chained_columns(16, 800))
    one = unless.CSGS(blankets=blankets, alpha=0.2).fit(table)
    for n_jobs in (2, 3, 5):
        est = unless.CSGS(blankets=blankets, alpha=0.2, n_jobs=n_jobs).fit(table)
        assert est.n_tests_ == one.n_tests_
        assert est.n_distinct_tests_ == one.n_distinct_tests_
        assert (est.structure_.packed == one.structure_.packed).all()
        assert (est.structure_.graph_index == one.structure_.graph_index).all()


@pytest.mark.parametrize("failing", [0, 2])
def test_what_fails_in_one_thread_stops_all_and_is_raised(failing):
    token = CancelToken()
    stopped = []

    def work(member):
        if member == failing:
            raise ValueError("told")
        while True:
            try:
                token.check()
            except Cancelled:
                stopped.append(member)
                raise

    with Team(3, token) as team, pytest.raises(ValueError, match="told"):
        team.together(work)
    assert len(stopped) == 2


@pytest.fixture
def hears_ctrl_c():
    """Let this process hear the signal: what a shell has started in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_is_passed_on_while_the_others_are_waited_for():
    token = CancelToken()
    heard = []

    def work(member):
        if member == 0:
            Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
            return
        while True:
            try:
                token.check()
            except Cancelled:
                heard.append(member)
                raise
            time.sleep(0.001)

    with Team(2, token) as team, pytest.raises(KeyboardInterrupt):
        team.together(work)
    assert heard == [1]
