"""Work kept in a folder: the same answer, nothing computed twice, nothing foreign taken up."""

import errno
import os
import signal
import subprocess
import sys
import warnings
import zipfile
from contextlib import ExitStack
from copy import copy
from itertools import count

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import ThreadingBackend

import unless
from sharing import statements_made_once
from strategies import chained_columns
from unless.errors import FileFormatError, SettingError
from unless.learners import base
from unless.learners.base import TABLES
from unless.learners.grow_shrink import cohorts
from unless.learners.registry import LEARNERS
from unless.runtime import checkpoints
from unless.runtime.progress import Bar

EVERY = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
IN_PARTS = pytest.mark.parametrize(
    "name", ["CSGS", "independent", "CSPC", "CSPC apart", "CSIBMAP", "GSMN", "DTSL", "GGS"]
)
QUICK = {
    "CSPC": {"adjacency": "shared", "max_condition": 2},
    "GSSL": {"n_draws": 500, "prune": 2, "prior": unless.Gaussian(1.0) + unless.Laplace(2.0)},
    "DTSL": {"kappa": [0.01, 0.1], "prior": unless.Gaussian(1.5)},
}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(cohorts, "SHARD_SIZE", 2**13)
    monkeypatch.setattr(base, "MOST_PARTS", 4)


@pytest.fixture(scope="module", autouse=True)
def explained_once():
    with statements_made_once():
        yield


@pytest.fixture(scope="module")
def table():
    """Make a table too wide for the dense cube, in which each column mostly repeats the one before it."""
    return unless.read(chained_columns(14, 300))


def make(name, **settings):
    if name == "independent":
        return unless.CSGS(blankets="independent", **settings)
    if name == "CSPC apart":
        return unless.CSPC(adjacency="independent", max_condition=2, **settings)
    return LEARNERS[name](**QUICK.get(name, {}), **settings)


def saved(est, folder):
    # Shards may ask the same questions: how many are distinct is all that they leave open.
    est = copy(est)
    est.n_distinct_tests_, est.max_distinct_tests_ = 0, None
    unless.save(est, folder / "model.unless")
    return (folder / "model.unless").read_bytes()


def shards(folder):
    return {path: path.stat().st_mtime_ns for path in sorted(folder.glob("*.shard"))}


class Elsewhere(ThreadingBackend):
    """A backend that behaves as those of Ray and Spark: another's memory, and all results at the end."""

    supports_sharedmem = False
    supports_return_generator = False


@pytest.mark.parametrize("has_folder", [True, False])
def test_a_backend_that_gives_all_results_at_the_end(has_folder, table, tmp_path):
    local = saved(unless.CSGS().fit(table), tmp_path)
    joblib.register_parallel_backend("elsewhere", Elsewhere)
    work_dir = tmp_path / "work" if has_folder else None
    with joblib.parallel_config("elsewhere"):
        est = unless.CSGS(n_jobs=2, work_dir=work_dir).fit(table)
    assert saved(est, tmp_path) == local


@EVERY
def test_a_folder_changes_nothing_and_finished_work_is_taken_up(learner, table, tmp_path):
    name, work = learner.__name__, tmp_path / "work"
    plain = saved(make(name).fit(table), tmp_path)
    assert saved(make(name, work_dir=work, n_jobs=2).fit(table), tmp_path) == plain
    kept = shards(work)
    assert kept
    assert saved(make(name, work_dir=str(work), resume=True).fit(table), tmp_path) == plain
    assert shards(work) == kept
    with pytest.raises(SettingError, match="resume=True, or choose another folder"):
        make(name, work_dir=work).fit(table)


@IN_PARTS
def test_only_missing_shards_are_computed_again(name, table, tmp_path):
    work = tmp_path / "work"
    first = saved(make(name, work_dir=work).fit(table), tmp_path)
    kept = shards(work)
    assert len(kept) > 3
    # What makes parts needless goes with some of them: a finished answer, a choice that was made.
    parts = [path for path in kept if "-of-" in path.stem]
    lost = [path for path in kept if path in parts[::2] or path not in parts]
    for path in lost:
        path.unlink()
    assert saved(make(name, work_dir=work, resume=True).fit(table), tmp_path) == first
    assert {path for path, time in shards(work).items() if time != kept[path]} == set(lost)


@IN_PARTS
def test_shards_are_cut_alike_however_many_work_on_them(name, table, tmp_path):
    first = saved(make(name, work_dir=tmp_path / "one").fit(table), tmp_path)
    several = make(name, work_dir=tmp_path / "two", n_jobs=3).fit(table)
    assert saved(several, tmp_path) == first
    assert [path.name for path in shards(tmp_path / "two")] == [
        path.name for path in shards(tmp_path / "one")
    ]


@pytest.mark.parametrize("name", ["CSGS", "independent", "CSPC", "CSPC apart"])
def test_of_distinct_questions_shards_know_a_bound_that_depends_on_no_worker(name, table, tmp_path):
    plain = make(name).fit(table)
    one, two = (make(name, work_dir=tmp_path / str(k), n_jobs=k).fit(table) for k in (1, 2))
    assert one.n_distinct_tests_ is None is two.n_distinct_tests_
    assert plain.n_distinct_tests_ <= one.max_distinct_tests_ == two.max_distinct_tests_ < plain.n_tests_
    assert plain.max_distinct_tests_ is None
    joblib.register_parallel_backend("elsewhere", Elsewhere)
    with joblib.parallel_config("elsewhere"):
        apart = [make(name, n_jobs=k).fit(table) for k in (2, 3)]
    assert [est.n_distinct_tests_ for est in apart] == [None, None]
    assert [est.max_distinct_tests_ for est in apart] == [plain.n_tests_] * 2
    unless.save(one, tmp_path / "model.unless")
    back = unless.load(tmp_path / "model.unless")
    assert (back.n_distinct_tests_, back.max_distinct_tests_) == (None, one.max_distinct_tests_)
    assert f", at most {one.max_distinct_tests_:,} of them different" in back._repr_html_()
    back.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f", at most {one.max_distinct_tests_:,} of them different" in page
    # Learned again as a whole, the number is known.
    assert one.set_params(work_dir=None).fit(table).n_distinct_tests_ == plain.n_distinct_tests_
    assert one.max_distinct_tests_ is None


@EVERY
def test_spoiled_shards_are_told_and_computed_again(learner, table, tmp_path):
    name, work = learner.__name__, tmp_path / "work"
    first = saved(make(name, work_dir=work).fit(table), tmp_path)
    truncated = next(iter(shards(work)))
    truncated.write_bytes(truncated.read_bytes()[:-100])
    with pytest.warns(UserWarning, match=r"is damaged; it is computed again\.") as told:
        again = make(name, work_dir=work, resume=True).fit(table)
    assert len(told) == 1
    assert saved(again, tmp_path) == first


@pytest.mark.parametrize("name", ["CSGS", "CSPC"])
def test_a_byte_that_changed_is_told_and_computed_again(name, table, tmp_path):
    work = tmp_path / "work"
    first = saved(make(name, work_dir=work).fit(table), tmp_path)
    path = next(iter(shards(work)))
    with zipfile.ZipFile(path) as archive:
        inside = archive.getinfo("edges.npy")
    content = bytearray(path.read_bytes())
    content[inside.header_offset + inside.compress_size // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.warns(UserWarning, match=r"is damaged; it is computed again\."):
        again = make(name, work_dir=work, resume=True).fit(table)
    assert saved(again, tmp_path) == first


def test_a_shard_in_the_place_of_its_neighbour_is_told_and_computed_again(table, tmp_path):
    first = saved(unless.CSGS(work_dir=tmp_path / "work").fit(table), tmp_path)
    one, two, *_ = shards(tmp_path / "work")
    two.write_bytes(one.read_bytes())
    with pytest.warns(UserWarning, match=r"belongs to other work; it is computed again\."):
        again = unless.CSGS(work_dir=tmp_path / "work", resume=True).fit(table)
    assert saved(again, tmp_path) == first


@pytest.mark.parametrize("make_order", [iter, set, dict.fromkeys], ids=["iterator", "set", "dict"])
@pytest.mark.parametrize("learner", [unless.CSGS, unless.CSPC, unless.GSMN])
def test_an_order_that_a_fingerprint_would_miss_is_refused(learner, make_order, table, tmp_path):
    with pytest.raises(SettingError, match="a list of all names"):
        learner(order=make_order(table.names), work_dir=tmp_path).fit(table)


@pytest.mark.parametrize("name", ["CSGS", "independent", "GSMN"])
def test_the_bar_is_not_overrun_by_finished_shards(name, table, tmp_path, monkeypatch):
    totals, steps = [], []
    make(name, work_dir=tmp_path).fit(table)
    monkeypatch.setattr(Bar, "begin", lambda bar, stage, total: totals.append(total))
    monkeypatch.setattr(Bar, "__call__", lambda bar: steps.append(bar))
    make(name, work_dir=tmp_path, resume=True).fit(table)
    assert totals == [table.n_variables]
    assert 0 < len(steps) <= table.n_variables


def test_shards_of_other_work_are_not_taken_up(table, tmp_path):
    work = tmp_path / "work"
    unless.CSGS(work_dir=work).fit(table)
    with pytest.raises(SettingError, match=r"other work only .* or begin without resume=True\."):
        unless.CSGS(alpha=0.01, work_dir=work, resume=True).fit(table)
    other = unless.CSGS(alpha=0.01, work_dir=work).fit(table)
    assert saved(other, tmp_path) == saved(unless.CSGS(alpha=0.01).fit(table), tmp_path)


def test_a_shard_under_the_name_of_another_is_told_and_computed_again(table, tmp_path):
    first = saved(unless.CSGS(work_dir=tmp_path / "one").fit(table), tmp_path)
    unless.CSGS(alpha=0.01, work_dir=tmp_path / "two").fit(table)
    own, foreign = (next(iter(shards(tmp_path / folder))) for folder in ("one", "two"))
    own.write_bytes(foreign.read_bytes())
    with pytest.warns(UserWarning, match=r"belongs to other work; it is computed again\."):
        again = unless.CSGS(work_dir=tmp_path / "one", resume=True).fit(table)
    assert saved(again, tmp_path) == first


@pytest.mark.parametrize("bad", [{"work_dir": 7}, {"work_dir": ""}, {"resume": 1}, {"resume": True}])
def test_settings_that_name_no_folder_are_refused(bad, table):
    with pytest.raises(SettingError, match=r"work_dir|resume"):
        unless.GSMN(**bad).fit(table)


def test_a_folder_that_cannot_be_written_is_refused_in_one_sentence(table, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingError, match="cannot be made a folder") as caught:
        unless.CSGS(work_dir=tmp_path / "file").fit(table)
    assert "\n" not in str(caught.value)


def test_a_folder_without_permission_is_refused_in_one_sentence(table, tmp_path, monkeypatch):
    def refuse(path, *rest):
        raise PermissionError(13, "Permission denied", str(path))

    # As root, no permission is denied.
    monkeypatch.setattr("unless.runtime.files.os.open", refuse)
    with pytest.raises(SettingError, match=r"cannot be written \(Permission denied\); choose another folder"):
        unless.CSGS(work_dir=tmp_path / "work").fit(table)


def test_a_full_disk_ends_work_in_shards_with_one_sentence_and_it_goes_on_later(table, tmp_path, monkeypatch):
    write, n_written = checkpoints._write_arrays, count(1)

    def write_two(*given, **settings):
        if next(n_written) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(*given, **settings)

    work = tmp_path / "work"
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "_write_arrays", write_two)
        with pytest.raises(SettingError) as told:
            make("CSGS", work_dir=work).fit(table)
    assert str(told.value) == (
        f"work_dir={str(work)!r} cannot be written any more (No space left on device); mend that and go on "
        "with resume=True."
    )
    assert len(shards(work)) == 2
    again = make("CSGS", work_dir=work, resume=True).fit(table)
    assert saved(again, tmp_path) == saved(make("CSGS").fit(table), tmp_path)


def test_a_shard_that_vanishes_before_it_is_read_is_told(table, tmp_path):
    est = unless.CSGS(work_dir=tmp_path)
    store = est._open_store(None, table)
    with pytest.raises(FileFormatError, match="go on with resume=True"):
        store.shard("part-00000-of-00001")["edges"]


def test_what_a_killed_worker_had_begun_to_write_is_cleared_and_a_living_one_goes_on(table, tmp_path):
    store = unless.CSGS(work_dir=tmp_path)._open_store(None, table)
    code = """
import sys
from unless.runtime.files import replacing
with replacing(sys.argv[1], follow_links=False) as stream:
    print(flush=True)
    sys.stdin.read()
"""
    dead, living = (
        subprocess.Popen(
            [sys.executable, "-c", code, str(store.path(f"part-0000{k}-of-00009"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for k in range(2)
    )
    for worker in (dead, living):
        worker.stdout.readline()
    dead.kill()
    dead.communicate()
    assert len(list(tmp_path.glob(".*.unless-part"))) == 2
    unless.GSMN(work_dir=tmp_path).fit(table)
    (left,) = tmp_path.glob(".*.unless-part")
    assert "part-00001" in left.name
    living.communicate()
    assert store.path("part-00001-of-00009").exists()


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_lock_that_is_a_link_is_refused_and_what_it_points_to_is_left_alone(link, table, tmp_path):
    work, victim = tmp_path / "work", tmp_path / "victim"
    stamp = unless.GSMN(work_dir=work)._open_store(None, table).stamp
    victim.write_text("years of work")
    getattr(work / f".{stamp}.lock", link)(victim)
    with pytest.raises(SettingError, match=r"lock' is a .*link and cannot be used .* another folder\.$"):
        unless.GSMN(work_dir=work).fit(table)
    assert victim.read_text() == "years of work"


def test_a_file_of_another_kind_in_the_place_of_the_lock_is_left_alone(table, tmp_path):
    stamp = unless.GSMN(work_dir=tmp_path)._open_store(None, table).stamp
    (tmp_path / f".{stamp}.lock").write_text("years of work")
    with pytest.raises(SettingError, match="holds other text"):
        unless.GSMN(work_dir=tmp_path).fit(table)
    assert (tmp_path / f".{stamp}.lock").read_text() == "years of work"


@pytest.mark.parametrize("name", ["CSGS", "IBMAPHC"])
def test_links_in_the_folder_are_never_written_through(name, table, tmp_path):
    plain = saved(make(name).fit(table), tmp_path)
    make(name, work_dir=tmp_path / "names").fit(table)
    victim, work = tmp_path / "victim", tmp_path / "work"
    victim.write_text("years of work")
    work.mkdir()
    for path in shards(tmp_path / "names"):
        (work / path.name).symlink_to(victim)
    with pytest.warns(UserWarning, match=r"is a link or another user's file; it is computed again\."):
        assert saved(make(name, work_dir=work, resume=True).fit(table), tmp_path) == plain
    assert victim.read_text() == "years of work"
    assert not any(path.is_symlink() for path in shards(work))


def test_what_holds_rows_in_the_folder_is_for_its_owner(table, tmp_path):
    work = tmp_path / "work"
    unless.CSGS(work_dir=work).fit(table)
    checkpoints.CheckpointStore(work, "0" * 20, TABLES).save_input(table)
    for path in (work, *shards(work), *work.glob("*.npz")):
        assert path.stat().st_mode & 0o077 == 0, path


HOLD = """
import os, sys, time
from contextlib import ExitStack
import numpy as np
import unless

table = unless.read(np.load(sys.argv[1]))
est = unless.GSMN(work_dir=sys.argv[2])
stack = ExitStack()
est._open_store(stack, table)
forked = os.fork()
if forked:
    print(os.getpid(), forked, flush=True)
time.sleep(60)
"""


def test_work_that_another_process_is_at_is_refused_until_that_is_dead(tmp_path):
    rows = np.random.default_rng(0).integers(0, 2, (60, 4))
    np.save(tmp_path / "rows.npy", rows)
    table, work = unless.read(rows), tmp_path / "work"
    command = [sys.executable, "-c", HOLD, str(tmp_path / "rows.npy"), str(work)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        holder, forked = map(int, other.stdout.readline().split())
        try:
            with pytest.raises(SettingError, match=rf"is in use by process {holder} on .*; wait") as caught:
                unless.GSMN(work_dir=work).fit(table)
            assert "\n" not in str(caught.value)
            # Other work may be done beside it.
            unless.GSMN(alpha=0.01, work_dir=work).fit(table)
            os.kill(holder, signal.SIGKILL)
            other.wait()
            # Though a child that it forked lives on.
            unless.GSMN(work_dir=work).fit(table)
        finally:
            os.kill(forked, signal.SIGKILL)


def test_work_that_this_process_is_at_is_refused(table, tmp_path):
    with ExitStack() as stay:
        first = unless.GSMN(work_dir=tmp_path)
        first._open_store(stay, table)
        with pytest.raises(SettingError, match=rf"in use by process {os.getpid()} "):
            unless.GSMN(work_dir=tmp_path).fit(table)
    unless.GSMN(work_dir=tmp_path).fit(table)


def test_a_folder_that_knows_no_locks_is_used_without(table, tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("unless.runtime.files._lock", refuse)
    assert saved(unless.GSMN(work_dir=tmp_path / "work").fit(table), tmp_path) == saved(
        unless.GSMN().fit(table), tmp_path
    )


@pytest.mark.parametrize("name", ["CSGS", "GSMN", "GGS"])
def test_ctrl_c_after_the_last_shard_says_how_to_go_on_too(name, table, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    work = tmp_path / "work"
    last = {"CSGS": "csgs.CanonicalModel.from_edges", "GSMN": "gsmn.Graph", "GGS": "ggs.labelled"}
    with monkeypatch.context() as patch:
        patch.setattr(f"unless.learners.{last[name]}", stop)
        with pytest.raises(KeyboardInterrupt) as stopped:
            make(name, work_dir=work).fit(table)
    n_kept = len(shards(work))
    assert n_kept > 3
    assert str(stopped.value) == (
        f"Stopped; {n_kept} finished shards kept in work_dir={str(work)!r}: go on with resume=True."
    )
    again = make(name, work_dir=work, resume=True).fit(table)
    assert saved(again, tmp_path) == saved(make(name).fit(table), tmp_path)


def test_settings_say_the_same_in_any_spelling(table, tmp_path):
    edges = [("0", "1"), ("2", "3")]
    stamps = {
        unless.CSGS(alpha=alpha, forbidden_edges=listed, work_dir=tmp_path)._open_store(None, table).stamp
        for alpha in (0.05, np.float64(0.05))
        for listed in (edges, tuple(edges))
    }
    assert len(stamps) == 1
    assert unless.CSGS(order="columns", work_dir=tmp_path)._open_store(None, table).stamp not in stamps


def test_a_table_to_judge_by_belongs_to_the_work(table, tmp_path):
    first = make("GSSL", work_dir=tmp_path / "work").fit(table, validation=table)
    with warnings.catch_warnings(), pytest.raises(SettingError, match="other work only"):
        make("GSSL", work_dir=tmp_path / "work", resume=True).fit(table)
    again = make("GSSL", work_dir=tmp_path / "work", resume=True).fit(table, validation=table)
    assert saved(again, tmp_path) == saved(first, tmp_path)


def test_an_answer_that_is_kept_whole_says_at_most_how_many_questions_were_distinct(tmp_path, monkeypatch):
    class Bounded(unless.CSMPL):
        def _learn(self, data, run, *beside):
            super()._learn(data, run, *beside)
            self.n_distinct_tests_, self.max_distinct_tests_ = None, 7

    data = unless.datasets.load_ucb_admissions()
    Bounded(work_dir=tmp_path).fit(data)
    monkeypatch.setattr(unless.CSMPL, "_learn", None)
    est = Bounded(work_dir=tmp_path, resume=True).fit(data)
    assert (est.n_distinct_tests_, est.max_distinct_tests_) == (None, 7)
