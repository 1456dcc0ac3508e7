"""Work that is stopped again and again, at every point where something is kept, ends as if it never was."""

import errno
import warnings
from contextlib import suppress
from itertools import count

import numpy as np
import pytest

import unless
from sharing import statements_made_once
from strategies import chained_columns
from unless.errors import SettingError, TooLarge, UnlessWarning
from unless.learners import base, feature_search, gsmn, ibmap
from unless.learners.feature_search import conjunctions
from unless.learners.feature_search.conjunctions import HalvingSearch, WorkingSets
from unless.runtime import checkpoints
from unless.runtime.checkpoints import CheckpointStore, settled_seed

PRIORS = [unless.Gaussian(1.0) + unless.Laplace(l1) for l1 in (4.0, 1.0)]
MAKE = {
    "GSMN*": lambda **machine: unless.GSMN(variant="gsmn*", **machine),
    "IBMAPHC": lambda **machine: unless.IBMAPHC(n_restarts=2, **machine),
    "DTSL": lambda **machine: unless.DTSL(kappa=[0.01, 0.1], prior=unless.Gaussian(1.5), **machine),
    "GSSL": lambda **machine: unless.GSSL(600, prune=[3, 2, 1], prior=PRIORS, **machine),
    "GSSL once": lambda **machine: unless.GSSL(600, prune=[2, 1], prior=PRIORS, refit=False, **machine),
}
# What does the work that must not be done again.
WORK = {
    "GSMN*": [(gsmn, "grow"), (gsmn, "shrink")],
    "IBMAPHC": [(ibmap, "scores_of_additions"), (ibmap, "scores_beside")],
    # Trees grow in several threads; a stop may find another one half done.
    "DTSL": [(feature_search, "prior_path")],
    "GSSL": [(WorkingSets, "log_likelihood"), (conjunctions, "minimise")],
    "GSSL once": [(WorkingSets, "log_likelihood"), (conjunctions, "minimise")],
}
# Steps between which work may be stopped though nothing was kept of the last ones.
STEPS = {"GSMN*": (gsmn, "grow"), "IBMAPHC": (ibmap, "_run"), "GSSL": (WorkingSets, "fit")}


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    monkeypatch.setattr(base, "MOST_PARTS", 3)
    # All that can be kept is kept.
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "_TIMES_LONGER", 0)
    monkeypatch.setattr(ibmap, "_AT_ONCE", 1)
    monkeypatch.setattr(conjunctions, "_LOOK_AT_ONCE", 100)


@pytest.fixture(scope="module", autouse=True)
def explained_once():
    with statements_made_once():
        yield


@pytest.fixture(scope="module")
def table():
    return unless.read(chained_columns(6, 120))


def saved(est, folder):
    unless.save(est, folder / "model.unless")
    return (folder / "model.unless").read_bytes()


def counting(patch, functions):
    """Count the calls of some functions, all together."""
    calls = []

    def watch(owner, name):
        function = getattr(owner, name)

        def counted(*given, **settings):
            calls.append(name)
            return function(*given, **settings)

        patch.setattr(owner, name, counted)

    for owner, name in functions:
        watch(owner, name)
    return calls


def stopping(patch, owner, name, calls=None):
    """Stop the work after some calls of a function, counted over all runs, or after each."""
    function, numbers = getattr(owner, name), count(1)

    def stopped(*given, **settings):
        done = function(*given, **settings)
        if calls is None or next(numbers) in calls:
            raise KeyboardInterrupt
        return done

    patch.setattr(owner, name, stopped)


def fit_until_done(make, table, work):
    """Fit, and go on after every stop, by one thread and by two in turn."""
    for n_stops in range(1000):
        est = make(work_dir=work, resume=n_stops > 0, n_jobs=1 + n_stops % 2)
        with suppress(KeyboardInterrupt):
            return est.fit(table), n_stops
    raise AssertionError("It gets nowhere.")


@pytest.mark.parametrize("name", MAKE)
def test_work_stopped_after_everything_it_keeps_ends_alike(name, table, tmp_path, monkeypatch):
    calls = counting(monkeypatch, WORK[name])
    plain = saved(MAKE[name]().fit(table), tmp_path)
    unbroken, calls[:] = sorted(calls), []
    stopping(monkeypatch, CheckpointStore, "_write")
    est, n_stops = fit_until_done(MAKE[name], table, tmp_path / "work")
    assert n_stops > 1
    assert saved(est, tmp_path) == plain
    assert sorted(calls) == unbroken


@pytest.mark.parametrize("name", STEPS)
def test_work_stopped_between_two_checkpoints_ends_alike(name, table, tmp_path, monkeypatch):
    plain = saved(MAKE[name]().fit(table), tmp_path)
    move, numbers = checkpoints.Checkpoint.save, count(1)

    def move_now_and_then(checkpoint, state):
        if next(numbers) % 3 == 0:
            move(checkpoint, state)

    monkeypatch.setattr(checkpoints.Checkpoint, "save", move_now_and_then)
    stopping(monkeypatch, *STEPS[name], (1, 4, 9, 11, 20, 31))
    est, n_stops = fit_until_done(MAKE[name], table, tmp_path / "work")
    assert n_stops > 2
    assert saved(est, tmp_path) == plain


@pytest.mark.parametrize("name", ["GSMN*", "IBMAPHC", "GSSL"])
def test_a_spoiled_checkpoint_is_told_and_the_stage_done_again(name, table, tmp_path):
    work = tmp_path / "work"
    first = saved(MAKE[name](work_dir=work).fit(table), tmp_path)
    for path in work.glob("*.shard"):
        if path.stem.endswith(("answer", "part-00000-of-00001")):
            path.unlink()
        elif any(kind in path.stem for kind in ("visits", "climb", "fit-")) and "look" not in path.stem:
            path.write_bytes(path.read_bytes()[:-100])
    with pytest.warns(UserWarning, match=r"is damaged; it is computed again\.") as told:
        again = MAKE[name](work_dir=work, resume=True).fit(table)
    assert len(told) == 1
    assert saved(again, tmp_path) == first


@pytest.mark.parametrize("name", ["IBMAPHC", "DTSL", "GSSL"])
def test_without_a_seed_draws_are_those_the_work_began_with(name, table, tmp_path):
    def make(**machine):
        return MAKE[name](**machine).set_params(random_state=None)

    first = saved(make(work_dir=tmp_path / "one").fit(table), tmp_path)
    for path in (tmp_path / "one").glob("*.shard"):
        if "-seed" not in path.stem and "-climb" not in path.stem:
            path.unlink()
    assert saved(make(work_dir=tmp_path / "one", resume=True).fit(table), tmp_path) == first


@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(b"?"), lambda path: path.unlink()])
def test_what_was_drawn_from_a_seed_that_is_lost_is_told_and_not_taken_up(spoil, table, tmp_path):
    store = CheckpointStore.enter(tmp_path, False, "draws", base.TABLES)
    first = settled_seed(store, None)
    store.save("chosen", {"draw": np.arange(3)})
    assert settled_seed(store, None) == first
    assert store.finished(["chosen"])
    spoil(store.path("checkpoint-seed"))
    # Of a seed that is there but damaged another warning tells.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The shard .* is damaged")
        with pytest.warns(
            UnlessWarning, match=r"has lost the seed of 1 finished shard; all of it is computed"
        ):
            second = settled_seed(store, None)
    assert second != first
    assert not store.finished(["chosen"])
    assert settled_seed(store, None) == second


@pytest.mark.parametrize("stops", ["while it chooses", "after it chose"])
def test_what_came_after_a_setting_too_large_is_not_taken_up_where_it_fits(
    stops, table, tmp_path, monkeypatch
):
    plain = MAKE["GSSL"]().fit(table)
    look = HalvingSearch._try

    def stop(*_given, **_settings):
        raise KeyboardInterrupt

    def refuse(search, place, rung):
        if place == 2 or (place and stops == "after it chose"):
            raise TooLarge("It needs more than is allowed.")
        return look(search, place, rung) if place < 4 else stop()

    with monkeypatch.context() as patch:
        patch.setattr(HalvingSearch, "_try", refuse)
        patch.setattr(conjunctions.WorkingSets, "converge", stop)
        with pytest.raises(KeyboardInterrupt, match=r"go on with resume=True\."):
            MAKE["GSSL"](work_dir=tmp_path / "work").fit(table)
    again = MAKE["GSSL"](work_dir=tmp_path / "work", resume=True).fit(table)
    assert (again.chosen_, again.tried_) == (plain.chosen_, plain.tried_)
    assert saved(again, tmp_path) == saved(plain, tmp_path)


def test_states_are_kept_now_and_then_only(table, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS", 60.0)
    unless.IBMAPHC(work_dir=tmp_path).fit(table)
    assert [path.stem.split("-", 1)[1] for path in tmp_path.glob("*.shard")] == ["answer"]


@pytest.mark.parametrize("name", ["IBMAPHC", "GSSL"])
def test_where_no_checkpoint_can_be_written_the_work_goes_on_and_that_is_told_once(
    name, table, tmp_path, monkeypatch
):
    plain = saved(MAKE[name]().fit(table), tmp_path)

    def full(*_given, **_settings):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoints, "_write_arrays", full)
    monkeypatch.setattr(base, "save_record", full)
    work = tmp_path / "work"
    with pytest.warns(UserWarning, match="cannot be written") as told:
        est = MAKE[name](work_dir=work).fit(table)
    assert [str(one.message) for one in told] == [
        f"work_dir={str(work)!r} cannot be written (No space left on device); the work goes on, but what is "
        "not kept there is lost if it is stopped."
    ]
    assert saved(est, tmp_path) == plain
    assert not list(work.glob("*.shard"))


def test_work_whose_seed_cannot_be_kept_does_not_begin(table, tmp_path, monkeypatch):
    def full(*_given, **_settings):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoints, "_write_arrays", full)
    with pytest.raises(SettingError, match=r"cannot be written any more \(No space left on device\)"):
        unless.GSSL(random_state=None, work_dir=tmp_path / "work").fit(table)
    assert not list((tmp_path / "work").glob("*.shard"))


def test_a_stop_tells_checkpoints_from_finished_shards(table, tmp_path, monkeypatch):
    def said(name, stop, folder):
        with monkeypatch.context() as patch:
            stopping(patch, *stop)
            with pytest.raises(KeyboardInterrupt) as stopped:
                MAKE[name](work_dir=tmp_path / folder).fit(table)
        return str(stopped.value).replace(repr(str(tmp_path / folder)), "W")

    go_on = "kept in work_dir=W: go on with resume=True."
    assert said("IBMAPHC", STEPS["IBMAPHC"], "0") == (
        "Stopped; nothing was finished yet in work_dir=W: begin again."
    )
    assert said("IBMAPHC", (checkpoints.Checkpoint, "save"), "1") == f"Stopped; a checkpoint {go_on}"
    assert said("GSSL", (WorkingSets, "converge"), "2").endswith(f" finished shards and a checkpoint {go_on}")
    with pytest.raises(SettingError, match=r"holds a checkpoint of this very work; go on from there with "):
        MAKE["IBMAPHC"](work_dir=tmp_path / "1").fit(table)
