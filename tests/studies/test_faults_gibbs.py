"""The study of Gibbs sampling: its laws are possible, and its judge sees what is too far."""

import numpy as np
import pytest

from studies.faults import gibbs
from unless.inference.results import Distribution


@pytest.mark.parametrize("number", range(len(gibbs.FAMILIES)))
def test_laws_follow_from_their_seed_and_can_be_answered_exactly(number):
    one, again = gibbs.law(number, 1), gibbs.law(number, 1)
    assert one.model.weights.tolist() == again.model.weights.tolist()
    answer = one.model.query(one.asked, one.evidence, method="exact")
    assert answer.probabilities.sum() == pytest.approx(1)
    assert not set(one.asked) & set(one.evidence)


def test_the_judge_counts_stated_errors():
    variables = gibbs.law(0, 1).model.domain.variables[:1]
    exact = Distribution(variables, np.array([0.5, 0.5]))
    near = Distribution(variables, np.array([0.52, 0.48]), error=np.array([0.01, 0.01]))
    sure = Distribution(variables, np.array([0.0, 1.0]), error=np.zeros(2))
    assert gibbs.judge(near, exact) == pytest.approx(2, rel=1e-3)
    assert gibbs.judge(sure, exact) > 1e9
    assert gibbs.judge(exact, exact) == 0


def test_the_section_goes_on_from_finished_cells(tmp_path, monkeypatch):
    for number in range(15):
        told = {"far": 0.5, "warned": []}
        run = {"state": 0, "query": told, "marginals": {"raised": "NotConverged: no"}, "sample": told}
        (tmp_path / f"modes-3-{number}-2.json").write_text(
            gibbs.json.dumps({"law": f"law {number}", "runs": [run], "seconds": 1.0})
        )
    cell = {
        "held": 19,
        "cells": 20,
        "joint_held": 4,
        "joint_cells": 4,
        "tempered": 0,
        "far": 2.0,
        "seconds": 1,
    }
    for number in range(20):
        (tmp_path / f"ordinary-3-{number}.json").write_text(gibbs.json.dumps(cell))
    text = gibbs.study(tmp_path, 3, True, 1.0)
    assert text.startswith("## Gibbs sampling\n")
    assert "| all marginals | 0 of 15" in text
    assert "| of marginals | 380 of 400 (95.0 %;" in text
