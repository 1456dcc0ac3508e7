"""The study of missing values: cells that go on, values that are deleted as said, a page."""

import json
from dataclasses import replace

import numpy as np
import pytest

from studies.tables import incomplete


def test_every_kind_of_table_is_planned_and_the_first_come_first():
    cells = incomplete.plan()
    assert len({cell.key for cell in cells}) == len(cells) >= 200
    assert {cell.index for cell in cells[:36]} == {0}


@pytest.mark.parametrize("mechanism", incomplete.MECHANISMS)
def test_as_many_values_are_deleted_as_said(mechanism):
    rng = np.random.default_rng(0)
    codes = rng.choice([0, 0, 0, 1], (20_000, 8))
    holes = incomplete.holes_of(incomplete.Cell("pairwise", mechanism, 0.25, 20_000, 0), codes, rng)
    columns = holes.any(axis=0)
    assert columns.sum() == 4
    assert holes[:, columns].mean(axis=0) == pytest.approx(0.25, abs=0.02)
    # Where values go by what another column shows, that column tells of it.
    gaps = []
    for one in np.flatnonzero(columns):
        shares = [[holes[codes[:, other] == code, one].mean() for code in (0, 1)] for other in range(8)]
        gaps.append(max(abs(second - first) for first, second in shares))
    assert (min(gaps) > 0.1) == (mechanism == "MAR")


def test_a_run_goes_on_and_writes_its_page(tmp_path, monkeypatch):
    cells = [replace(cell, n=200) for cell in incomplete.plan(1) if (cell.n, cell.share) == (300, 0.25)]
    monkeypatch.setattr(incomplete, "plan", lambda tables: cells[: tables + 1])
    monkeypatch.setattr(incomplete, "PREDICTED_SIZES", (200,))
    monkeypatch.setattr(incomplete, "SIZES", (200,))
    monkeypatch.setattr(incomplete, "N_PREDICTED", 50)
    words = ["--seed", "1", "--cells", str(tmp_path / "cells"), "--out", str(tmp_path / "page.md")]
    assert incomplete.main([*words, "--tables", "0"]) == 0
    (first,) = (tmp_path / "cells").glob("*.json")
    kept = first.read_text()
    found = {name: value for name, value in json.loads(kept).items() if " " in name or name == "n_complete"}
    monkeypatch.setattr(incomplete, "measure", lambda *_: found)
    assert incomplete.main([*words, "--tables", "1"]) == 0
    assert first.read_text() == kept
    assert len(list((tmp_path / "cells").glob("*.json"))) == 2
    record = json.loads(kept)
    assert record["true em"] < record["true complete"]
    page = (tmp_path / "page.md").read_text()
    assert "2 tables, base seed 1" in page
    assert "EM better than level" in page
