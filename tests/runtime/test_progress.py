"""A bar where somebody looks, silence elsewhere."""

import io
import sys
from functools import partial

import pytest
from tqdm.auto import tqdm

import unless
from unless.runtime import progress as drawing
from unless.runtime.progress import giving_way, progress, unseen, within


def test_a_bar_is_drawn_only_where_asked_for_or_watched(capsys):
    for show, drawn in ((True, True), (False, False), (None, False)):
        with progress("learning", show, 2) as step:
            step()
            step()
        out, err = capsys.readouterr()
        assert out == ""
        assert ("learning" in err) == drawn


def test_each_stage_of_work_has_a_time_left_of_its_own(capsys):
    with progress("learning", True, 2) as bar:
        bar.begin("round 1", 3)
        for _ in range(3):
            bar()
        bar.begin("the rest", None)
        bar()
        drawn = bar._drawn
        assert (drawn.n, drawn.total) == (1, None)
        bar.set_total(7)
        drawn.refresh()
        assert (drawn.n, drawn.total) == (1, 7)
    said = capsys.readouterr().err
    assert "learning, round 1: " in said
    assert "learning, the rest: " in said
    assert "1/7 [" in said


def test_what_is_done_soon_is_not_drawn(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("unless.runtime.progress.monotonic", lambda: now[0])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with progress("reading", None, after=1.0) as bar:
        bar.begin("columns", 9)
        bar()
        now[0] = 0.9
        bar()
        assert capsys.readouterr().err == ""
        now[0] = 4.0
        bar()
        drawn = bar._drawn
        # The time left is reckoned from where the stage began.
        assert drawn.format_dict["elapsed"] >= 4
        drawn.refresh()
    assert "reading, columns:  33%|" in capsys.readouterr().err


def test_a_share_shows_the_time_left_and_nobody_knows_shows_the_time_passed(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("unless.runtime.progress.monotonic", lambda: now[0])
    with progress("reading", True) as bar:
        bar.begin("grouping", None, counted=False)
        for done, told in ((0.25, ""), (-1.0, ""), (1.5, "nearly")):
            now[0] += 1.0
            bar.share(done, told)
    said = capsys.readouterr().err.split("\r")
    assert any(line.startswith("reading, grouping:  25%|") and "<" in line for line in said)
    assert any(line.startswith("reading, grouping: 00:00") for line in said)
    assert any(
        line.startswith("reading, grouping: 100%|") and line.strip().endswith(", nearly") for line in said
    )


def test_there_is_one_indicator_at_a_time(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    told = []
    with giving_way(lambda: told.append("stop"), lambda: told.append("start")):
        with progress("outer", None, 3) as outer:
            assert told == ["stop"]
            with progress("inner", None, 3) as inner:
                inner()
            outer()
        assert told == ["stop", "start"]
    assert "inner" not in capsys.readouterr().err
    assert not drawing._bars
    assert not drawing._spinners


def test_a_bar_is_not_written_through_a_spinner(monkeypatch):
    # While it spins, rich has its own in the place of stderr, which would make each state of a bar a line.
    plain, spun = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", spun)
    with (
        giving_way(lambda: setattr(sys, "stderr", plain), lambda: setattr(sys, "stderr", spun)),
        progress("learning", True, 3) as bar,
    ):
        bar()
    assert "learning" in plain.getvalue()
    assert spun.getvalue() == ""


def test_what_quiet_work_calls_is_quiet_unless_it_is_asked_for(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with pytest.raises(ValueError, match="no"), progress("silent", False, 3):
        raise ValueError("no")
    with progress("outer", False, 3):
        with progress("inner", None, 3):
            pass
        assert capsys.readouterr().err == ""
        with progress("wanted", True, 3):
            pass
    assert "wanted" in capsys.readouterr().err
    with progress("after", None, 3):
        pass
    assert "after" in capsys.readouterr().err


def test_a_part_of_the_work_tells_its_share_of_the_whole():
    told = []
    half = within(told.append, 0.5, 1.0)
    within(half, 0.0, 0.5)(1.0)
    half(1.0)
    assert told == [0.75, 1.0]
    assert within(unseen, 0.0, 0.5) is unseen


def test_a_bar_goes_with_what_failed(capsys):
    with pytest.raises(ValueError, match="no"), progress("learning", True, 3):
        raise ValueError("no")
    assert not drawing._bars
    assert capsys.readouterr().err.endswith("\r")


def test_a_bar_that_the_environment_forbids_is_not_drawn(capsys, monkeypatch):
    # As TQDM_DISABLE=1 does, which tqdm reads when it is loaded.
    monkeypatch.setattr("tqdm.auto.tqdm", partial(tqdm, disable=True))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    told = []
    with giving_way(lambda: told.append("stop"), lambda: told.append("start")):
        for show, after in ((True, 0.0), (None, 0.0), (None, 1e-9)):
            with progress("learning", show, 2, after=after) as bar:
                bar.begin("round 1", 3)
                bar()
                bar.begin("the rest", None, counted=False)
                bar.share(0.5)
    assert capsys.readouterr().err == ""
    assert told == ["stop", "start"] * 3


@pytest.mark.parametrize("stream", [None, object()], ids=["none", "no terminal"])
def test_programs_without_a_terminal_read_and_learn(stream, monkeypatch):
    monkeypatch.setattr("sys.stderr", stream)
    data = unless.read({"a": ["x", "y"] * 9, "b": ["1", "2"] * 9})
    assert unless.CSGS().fit(data).n_tests_ > 0
