"""A cluster of separate processes: workers are killed, and the answer has the same bytes."""

import os
import signal
import threading
import time
from copy import copy

import joblib
import numpy as np
import pandas as pd
import pytest

import unless
from unless.learners.grow_shrink import cohorts

distributed = pytest.importorskip("distributed", reason="the extra 'dask' is not installed")


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    # The cut is made here, not by the workers.
    monkeypatch.setattr(cohorts, "SHARD_SIZE", 2**14)


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 3, 900)]
    for _ in range(13):
        columns.append(np.where(rng.random(900) < 0.7, columns[-1], rng.integers(0, 3, 900)))
    frame = pd.DataFrame({f"v{place:02}": column for place, column in enumerate(columns)})
    frame.to_parquet(tmp_path / "table.parquet")
    return tmp_path / "table.parquet"


@pytest.fixture
def ctrl_c_is_heard():
    """A shell's background job, as `make test` may be, would ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def start_cluster():
    cluster = distributed.LocalCluster(
        host="127.0.0.1", dashboard_address=None, n_workers=2, threads_per_worker=1, processes=True
    )
    return cluster, distributed.Client(cluster)


def worker_pids(client):
    return sorted(client.run(os.getpid).values())


def hold_after_the_first_shard(client, folder):
    """Let workers finish a shard, then wait for the file "go": what is killed is surely in the middle."""

    def hold(folder):
        import time

        from unless.learners.grow_shrink import cohorts

        learn = cohorts.learn_part

        def held(*task):
            while list(folder.glob("*.shard")) and not (folder / "go").exists():
                time.sleep(0.01)
            return learn(*task)

        cohorts.learn_part = held

    client.run(hold, folder)


def when_a_shard_is_there(folder, act):
    def watch():
        while not list(folder.glob("*.shard")):
            time.sleep(0.01)
        act()

    watcher = threading.Thread(target=watch)
    watcher.start()
    return watcher


def shards(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.glob("*.shard")}


def saved(est, folder):
    # Shards may ask the same questions: how many are distinct is all that they leave open.
    est = copy(est)
    est.n_distinct_tests_, est.max_distinct_tests_ = 0, None
    unless.save(est, folder / "model.unless")
    return (folder / "model.unless").read_bytes()


def test_killed_workers_leave_the_bytes_alone(table, tmp_path, ctrl_c_is_heard):
    local = saved(unless.CSGS().fit(unless.read(table)), tmp_path)
    cluster, client = start_cluster()
    with cluster, client:
        one_dies(client, table, tmp_path, local)
        kept = all_die(client, table, tmp_path)
    cluster, client = start_cluster()
    with cluster, client, joblib.parallel_config("dask"):
        est = unless.CSGS(n_jobs=-1, work_dir=tmp_path / "two", resume=True).fit(unless.read(table))
        gated = unless.GGS(n_jobs=-1, work_dir=tmp_path / "three").fit(unless.read(table))
    assert saved(est, tmp_path) == local
    assert saved(gated, tmp_path) == saved(unless.GGS().fit(unless.read(table)), tmp_path)
    finished = shards(tmp_path / "two")
    assert len(kept) < len(finished)
    assert {name: finished[name] for name in kept} == kept


def one_dies(client, table, folder, local):
    work = folder / "one"
    work.mkdir()
    hold_after_the_first_shard(client, work)
    pids, n_before = worker_pids(client), []

    def kill():
        os.kill(pids[0], signal.SIGKILL)
        n_before.append(len(shards(work)))
        (work / "go").touch()

    watcher = when_a_shard_is_there(work, kill)
    with joblib.parallel_config("dask"):
        est = unless.CSGS(n_jobs=-1, work_dir=work).fit(unless.read(table))
    watcher.join()
    assert 1 <= n_before[0] <= 2 < len(shards(work))
    assert saved(est, folder) == local


def all_die(client, table, folder):
    work = folder / "two"
    work.mkdir()
    client.wait_for_workers(2)
    hold_after_the_first_shard(client, work)

    def kill():
        for pid in worker_pids(client):
            os.kill(pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGINT)

    watcher = when_a_shard_is_there(work, kill)
    with joblib.parallel_config("dask"), pytest.raises(KeyboardInterrupt, match=r"go on with resume=True"):
        unless.CSGS(n_jobs=-1, work_dir=work).fit(unless.read(table))
    watcher.join()
    return shards(work)
