"""The study of calibration counts every link of every context once, resumes, and says how far it is off."""

import json

import numpy as np
import pytest

import unless
from studies import calibration
from studies.calibration import Table, binned, load, measure, page, plan, run


def test_links_are_counted_by_bin():
    bins = binned(np.array([[0.0, 0.1], [0.95, 1.0]]), np.array([[False, True], [True, False]]))
    assert bins[0].tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 0, 2]
    assert bins[1, [0, 1, 9]] == pytest.approx([0, 0.1, 1.95])
    assert bins[2, [0, 1, 9]].tolist() == [0, 1, 1]


def test_probabilities_are_those_of_each_context_and_truth_that_of_the_law():
    table = Table(6, 60, 3)
    law = unless.datasets.make_csi(6, random_state=3)
    data = law.sample(60, random_state=3)
    est, truth = unless.CSIBMAP().fit(data), law.truth(data)
    said, true = [], []
    for context, graph in truth:
        for pair, probability in est.link_probabilities(context).items():
            said.append(probability)
            true.append(graph.has_edge(*pair))
    assert measure(table) == pytest.approx(binned(np.array(said), np.array(true)))


def test_a_run_that_was_stopped_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(calibration, "VARIABLES", (6, 7))
    monkeypatch.setattr(calibration, "SIZES", (20, 30))
    tables = plan([5, 6], quick=True)
    assert len(set(tables)) == 8
    assert {table.seed for table in tables[:4]} == {5}
    assert run(tables, tmp_path / "tables", budget=0) == 8
    assert run(tables[:3], tmp_path / "tables") == 0
    first = tmp_path / "tables" / tables[0].file
    first.write_text(json.dumps(np.ones((3, 10)).tolist()))
    words = ["--quick", "--seed", "5", "--out", str(tmp_path)]
    assert calibration.main(words) == 0
    # What is there is not measured again.
    assert load(tables, tmp_path / "tables")[tables[0]].tolist() == np.ones((3, 10)).tolist()
    assert capsys.readouterr().out == (tmp_path / "5-quick.md").read_text()
    assert calibration.main([*words, "--out", str(tmp_path / "other"), "--budget", "0"]) == 1
    assert "--budget" in capsys.readouterr().err


def test_the_page_says_which_bins_are_off():
    bins = np.zeros((3, 10))
    bins[:, 2] = 400, 100, 100
    bins[:, 7] = 1000, 750, 650
    bins[:, 9] = 10, 9.5, 1
    text = page({Table(6, 100, 1): bins, Table(6, 100, 2): bins})
    assert "| 0.7 to 0.8 | 2,000 | 0.750 | 0.650 | -0.100 (-0.100 to -0.100) |" in text
    assert "Of bins with 300 or more, 1 of 2 are within 0.05, the worst is off by 0.100" in text
