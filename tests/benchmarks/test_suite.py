"""The suite itself: what it keeps, what it writes, and how it talks to peers. Its figures are not tested."""

import importlib
import json
import sys
import types
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import unless
from benchmarks import history, scaling, suite
from benchmarks.__main__ import command
from benchmarks.big_tables import write_chain
from benchmarks.child import ChildError
from benchmarks.growth import fit_slope
from benchmarks.options import DataError, Options
from benchmarks.peers import Peer, PeerError
from benchmarks.result import Line, Note, Section, Table, as_markdown, as_records, from_records
from benchmarks.structures import TimedPeer
from unless.errors import FileFormatError, SettingError

ROOT = Path(__file__).parents[2]
STORED = sorted((ROOT / "benchmarks" / "history").glob("*.json"))
ENTRIES = (
    Line("quick", 0.5, "times", "0.4 to 0.6", at_most=1.0),
    Line("slow", 3.0, "times", at_least=4.0),
    Line("plain", 12.0),
    Table(("a", "b"), (("1", "2"),)),
    Note("Said plainly."),
)
WHEN = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


@pytest.fixture
def made_up(monkeypatch):
    """Put an item of our own into the suite."""

    def run(options):
        options.need("nothing.csv") if options.draws == 1 else None
        yield from ENTRIES

    module = types.ModuleType("benchmarks.made_up")
    module.TITLE, module.run = "Made up", run
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for place in (suite, history):
        monkeypatch.setattr(place, "ITEMS", ("made_up",))
    return module


@pytest.mark.parametrize("name", suite.ITEMS + suite.LONG)
def test_every_item_has_a_title_and_can_be_run(name):
    module = importlib.import_module(f"benchmarks.{name}")
    assert module.TITLE
    assert callable(module.run)


def test_an_unknown_item_is_refused_with_those_there_are():
    with pytest.raises(SettingError, match=r"no item 'nonsense'; there are startup, .*, classifier\."):
        suite.chosen(["nonsense"])


def test_entries_survive_json():
    records = json.loads(json.dumps(as_records(ENTRIES)))
    assert from_records(records) == ENTRIES
    assert [record.get("met") for record in records] == [True, False, None, None, None]


def test_a_section_is_written_as_tables_and_notes():
    text = as_markdown(Section("made_up", "Made up", ENTRIES))
    assert text.startswith("## Made up\n\n| a | b |")
    assert "| slow  | 3 times   |            | at least 4 times | **no** |" in text
    assert text.endswith("Said plainly.\n")


def test_what_was_not_run_again_is_taken_over(made_up, tmp_path):
    first = history.document([Section("made_up", "Made up", ENTRIES)], WHEN)
    history.keep(first, tmp_path)
    later = history.document(
        [Section(suite.LONG[0], "Long", ENTRIES[:1])], WHEN.replace(hour=5), history.newest(tmp_path)
    )
    path = history.keep(later, tmp_path)
    assert [(item["name"], item["date"]) for item in history.read(path)["items"]] == [
        ("made_up", "2026-01-02 03:04"),
        (suite.LONG[0], "2026-01-02 05:04"),
    ]
    assert history.newest(tmp_path) == later
    (tmp_path / "other.json").write_text('{"format": "other"}')
    with pytest.raises(FileFormatError, match=r"other\.json"):
        history.newest(tmp_path)


def test_the_command_prints_and_writes(made_up, tmp_path):
    figures, page, kept = tmp_path / "f.json", tmp_path / "page.md", tmp_path / "kept"
    words = ["--only", "made_up", "--json", figures, "--write", page, "--history", kept]
    result = CliRunner().invoke(command, [str(word) for word in words])
    assert (result.exit_code, "Said plainly." in result.stdout) == (0, True)
    assert "targets missed: 1." in result.stderr
    (stored,) = kept.glob("*.json")
    assert json.loads(figures.read_text()) == history.read(stored)
    assert page.read_text() == history.page(history.read(stored))


def test_what_needs_data_that_are_not_there_is_skipped(made_up):
    (section,) = suite.run(["made_up"], Options(None, 1, draws=1))
    assert section.entries == (
        Note("Skipped: no data folder was named (--data DIR, or make bench DATA=DIR)."),
    )
    with pytest.raises(DataError, match="has no nothing"):
        Options(Path(), 1).need("nothing")


def test_a_failing_process_is_told_after_what_was_found_before(made_up):
    def run(_options):
        yield ENTRIES[0]
        raise ChildError("MemoryError: no room.")

    made_up.run = run
    (section,) = suite.run(["made_up"], Options(None, 1))
    assert section.entries == (ENTRIES[0], Note("Failed: MemoryError: no room."))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.name)
def test_stored_runs_can_be_read(path):
    assert history.page(history.read(path)).startswith("# What it costs")


@pytest.mark.skipif(not STORED, reason="no run is stored")
def test_the_page_is_the_newest_stored_run():
    assert (ROOT / "docs" / "benchmarks.md").read_text() == history.page(history.read(STORED[-1]))


def test_exponents_are_found_with_their_intervals():
    xs = np.array([1e3, 1e4, 1e5, 1e6])
    exact = fit_slope(xs, 3 * xs**1.5)
    assert (exact.value, exact.low, exact.high) == pytest.approx((1.5, 1.5, 1.5))
    assert exact.at(100) == pytest.approx(3 * 100**1.5)
    noisy = fit_slope(xs, xs * [1.0, 1.2, 0.9, 1.1])
    assert noisy.low < 1 < noisy.high


def test_a_law_is_told_and_drawn_alike_for_the_same_numbers(tmp_path):
    pytest.importorskip("matplotlib")
    law = scaling.contexts_law()
    found = {
        m: {"distinct": m**0.5, "learn": m / 1e5, "peak": 1e8 + 30 * m, "before": 1e8, "model": 100 * m}
        | dict.fromkeys(("contexts", "read", "tests", "graphs"), 1)
        for m in law.requests
    }
    assert "| 10,000 " in as_markdown(Section("scaling", "Laws", (scaling._table(law, found),)))
    slopes = {measure.what: scaling._slope(measure, found) for measure in law.measures}
    lines = [line for measure in law.measures for line in scaling._lines(law, measure, slopes[measure.what])]
    assert [round(line.value, 6) for line in lines] == [0.5, 1, pytest.approx(1, abs=0.02), 1]
    assert [line.met for line in lines] == [True, None, None, None]
    for folder in ("a", "b"):
        scaling.draw(law, found, slopes, tmp_path / folder)
    drawn = [(tmp_path / folder / "contexts.svg").read_bytes() for folder in ("a", "b")]
    assert drawn[0] == drawn[1]


PEER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from serve import serve

def work(request):
    if request == "fail":
        raise ValueError("no such thing")
    time.sleep(30 if request == "sleep" else 0)
    return request

serve({"version": "1"}, work)
"""


@pytest.fixture
def peer(tmp_path):
    from benchmarks import peers

    script = tmp_path / "peer.py"
    script.write_text(PEER)
    with Peer("unless", str(script), str(peers.SCRIPTS)) as talking:
        yield talking


def test_a_peer_tells_what_each_turn_cost(peer):
    answer = peer.ask("hello", time_limit=20)
    assert (peer.about, answer["result"]) == ({"version": "1"}, "hello")
    assert answer["cpu"] >= 0
    assert peer.sample().wall >= 0


def test_a_peer_that_takes_too_long_is_stopped(peer):
    with pytest.raises(PeerError, match="was stopped after 0 s"):
        peer.ask("sleep", time_limit=0.1)


def test_a_peer_that_fails_says_why(peer, capsys):
    with pytest.raises(PeerError, match="failed: ValueError: no such thing"):
        peer.ask("fail")


def test_a_timed_peer_is_shown_by_its_later_turns_or_its_failure(peer):
    one = TimedPeer("somebody", peer, [{"cpu": 9.0, "wall": 9.0, "peak": None}])
    assert one.of("cpu") == 9.0
    one.answers += [{"cpu": cpu, "wall": 1.0, "peak": 2e6} for cpu in (1.0, 2.0, 3.0)]
    assert one.row("asia") == ("asia", "somebody", "1", "2", "1", "2", "", "")
    assert TimedPeer("somebody", peer, failure="it failed").row("asia")[:3] == (
        "asia",
        "somebody",
        "it failed",
    )


def test_big_tables_are_the_same_for_the_same_seed(tmp_path):
    data = [unless.read(write_chain(tmp_path / name, 2_000, (2, 3, 4))) for name in "ab"]
    assert data[0] == data[1]
    assert data[0].n_rows == 2_000
    (text,) = write_chain(tmp_path / "c", 2_000, (2, 3, 4), form="csv")
    assert (unless.read(text).counts == data[0].counts).all()
    assert unless.read(write_chain(tmp_path / "d", 2_000, (2, 3, 4), seed=50)) != data[0]
