"""The studies of faults see what is wrong."""

import signal
from collections import Counter

import pytest

from studies.faults import kills, surroundings
from studies.faults.commands import Cell, Ended

DATASETS = next(number for number, case in enumerate(kills.CASES) if case.name == "datasets -o")


def test_every_command_is_killed_by_every_signal():
    planned = kills.plan(0, kills.N_KILLS)
    assert len(planned) >= 200
    pairs = Counter((kill.case, kill.signal) for kill in planned)
    assert len(pairs) == len(kills.CASES) * len(kills.SIGNALS)
    assert min(pairs.values()) >= 5
    assert planned == kills.plan(0, kills.N_KILLS) != kills.plan(1, kills.N_KILLS)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_kill_while_a_file_is_written_leaves_nothing_wrong(number, tmp_path):
    case = kills.CASES[DATASETS]
    reference = kills._reference(case, tmp_path, tmp_path)
    kill = kills.Kill(0, DATASETS, number, while_writing=True, moment=0.0, has_old=True, same_again=False)
    found = kills.run_kill(kill, tmp_path / "cells", tmp_path, {case.name: reference})
    assert found.faults == []
    assert found.code in (-number, 128 + number, 0)
    kills._keep(tmp_path, 0, found)
    assert kills._load(tmp_path, 0, kill) == found


def test_what_is_wrong_after_a_kill_is_said(tmp_path):
    case = kills.CASES[DATASETS]
    kill = kills.Kill(0, DATASETS, signal.SIGTERM, False, 0.0, has_old=False, same_again=False)
    ended = Ended(1, "", "Traceback (most recent call last): ...")
    found = kills.FoundAfterKill({"number": 0, "case": DATASETS, "signal": 15}, code=1, outputs=["other"])
    found.faults = kills._wrong_after_kill(kill, case, ended, found.outputs)
    assert len(found.faults) == 3
    cell = Cell(tmp_path)
    (cell.out / ".d.csv.0123.part").write_text("half")
    (cell.temporary / "rows").write_text("rows")
    left = kills._run_next(kill, case, cell, (), kills.Reference({}, 0.0))
    assert left == [".d.csv.0123.part stayed", "rows stayed in the temporary folder"]
    text = kills.section([found], n_planned=2)
    assert text.startswith("## Kills\n")
    assert "Half files: 1." in text
    assert "no time for 1 of 2 kills" in text
    assert text.count("\n- Kill 0, `unless datasets -o`: ") == 3


def test_what_a_command_says_in_bad_surroundings_is_judged():
    right, wrong = (surroundings.Seen("full disk", "a small disk") for _ in range(2))
    ended = Ended(2, "", "unless: 'x': No space left on device.\n")
    surroundings._expect(right, ended, 2, rf"unless: 'x': {surroundings.FULL}\.")
    surroundings._expect(wrong, ended, 0, r"unless: 'y': .*", never="No space")
    assert (right.faults, len(wrong.faults)) == ([], 3)
    text = surroundings.section([right, wrong])
    assert text.startswith("## Surroundings\n")
    assert "2 commands were run" in text
    assert text.count("\n- full disk") == 1
