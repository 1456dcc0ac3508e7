"""What the comparison of learners keeps, where a learner is stopped, and how its tables are written."""

import gzip

import numpy as np
import pytest

import unless
from benchmarks import learner_run, learners
from benchmarks.learner_run import ALONE, OutOfTime, at_most, learn
from benchmarks.options import Options
from benchmarks.result import Note, Table
from unless.learners.registry import LEARNERS


@pytest.fixture
def tables():
    rows = unless.datasets.make_csi(6, random_state=0).sample(900, random_state=0)
    domain = rows.domain
    codes = np.repeat(rows.rows, rows.counts, axis=0)
    return {
        part: unless.Dataset.from_codes(domain, codes[begin::3])
        for begin, part in enumerate(("train", "valid", "test"))
    }


def test_every_learner_takes_part():
    assert {one.learner for one in learners.RUNS.values()} == {ALONE, *LEARNERS}


def test_columns_by_themselves_have_the_log_likelihood_of_their_margins(tables):
    found = learn(ALONE, {}, tables)
    train, test = tables["train"], tables["test"]
    expected = 0.0
    for column in range(train.n_variables):
        shares = np.bincount(train.rows[:, column], train.counts, 2) / train.n_rows
        expected += float(test.counts @ np.log(shares[test.rows[:, column]])) / test.n_rows
    assert found["pll"] == pytest.approx(expected, abs=0.01)
    assert found["features"] == 2 * train.n_variables


def test_weights_are_those_of_the_learner_itself(tables):
    est = unless.CSGS().fit(tables["train"])
    expected = est.network(tables["train"]).pseudo_log_likelihood(tables["test"])
    found = learn("CSGS", {}, tables)
    assert found["pll"] == pytest.approx(float(expected), abs=1e-4)
    assert (found["tests"], found["kind"]) == (est.n_tests_, "cliques")


def test_pairs_stand_in_for_too_many_cliques(monkeypatch):
    law = unless.datasets.make_csi(9, random_state=0)
    tables = {part: law.sample(1000, random_state=seed) for seed, part in enumerate(("train", "test"))}
    structure = unless.CSGS().fit(tables["train"]).structure_
    pairs = len(structure.features("pairs"))
    monkeypatch.setattr(learner_run, "MOST_WORK", pairs * tables["train"].n_distinct)
    found = learn("CSGS", {}, tables)
    cliques = len(structure.features())
    assert cliques > pairs
    assert (found["features"], found["kind"]) == (pairs, f"pairs, not {cliques} cliques")
    monkeypatch.setattr(learner_run, "MOST_WORK", 1)
    assert "too long" in learn("CSGS", {}, tables)["refused"]


def burn():
    while True:
        pass


def test_work_is_stopped_by_its_cpu_time(tables):
    with pytest.raises(OutOfTime), at_most(0.05):
        burn()
    found = learn("CSIBMAP", {"n_restarts": 100_000}, tables, 0.2)
    assert found["refused"].startswith("stopped after")
    assert "pll" not in found


def test_the_best_comes_first_and_what_did_not_finish_says_why(tmp_path, monkeypatch):
    for table in learners.TABLES:
        folder = tmp_path / "debd" / table
        folder.mkdir(parents=True)
        for part in ("train", "valid", "test"):
            with gzip.open(folder / f"{table}.{part}.data.gz", "wt") as file:
                file.write("0,1\n")
    monkeypatch.setattr(learners, "KEPT", tmp_path / "kept")
    answers = {
        "CSGS": {"pll": -2.0, "features": 3, "kind": "cliques", "peak": 1_000_000},
        "GGS": {"pll": -1.0},
    }
    monkeypatch.setattr(learners, "RUNS", {name: learners.RUNS[name] for name in ("CSGS", "GGS", "CSIBMAP")})
    monkeypatch.setattr(
        learners,
        "in_child",
        lambda work, folder, learner, *rest, **_: answers.get(learner, {"refused": "no"}),
    )
    entries = list(learners.run(Options(tmp_path, 1)))
    # A second run takes what the first found.
    monkeypatch.setattr(learners, "in_child", None)
    assert list(learners.run(Options(tmp_path, 1))) == entries
    shown = [entry for entry in entries if isinstance(entry, Table)]
    assert [[row[0] for row in table.rows] for table in shown] == [["GGS", "CSGS", "CSIBMAP"]] * 3
    assert shown[1].rows[2][-1].startswith("not tried")
    best = [entry.text for entry in entries if isinstance(entry, Note)]
    assert best[0] == (
        "nltcs: of the 2 that finished, `GGS` is best (-1.0000); "
        "of those with a graph for every context, `CSGS` (-2.0000)."
    )
