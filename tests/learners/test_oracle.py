"""Learned from a known joint, canonical graphs are the true ones: plain models and gates of one variable.

A table that holds every context as often as the joint says, out of 2^52 rows, answers as the joint does:
a dependence of one in a million in the odds is worth thousands of chi-square, rounding none. That its
answers are those of the joint is checked for every question before anything is learned from them. So it is
the learners as they stand that are tested, counting and all.
"""

import re
from functools import cache
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from unless.counting.slices import PackedTable
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.independence.statistics import pearson_statistic
from unless.learners.csgs import CSGS
from unless.learners.cspc import CSPC

N_MODELS = 100
SMALLEST_LOG_ODDS_RATIO = 1e-8


def random_joint(seed, gated):
    """Draw potentials on the edges of a random graph; in half the models some edges have a gate.

    A gate is one other variable, at one level of which the edge's potential is flat.
    """
    rng = np.random.default_rng([seed, gated])
    n = int(rng.integers(4, 6))
    n_levels = rng.choice([2, 2, 3], n)
    axes = np.indices(n_levels)
    log_joint = sum(rng.normal(0, 0.5, size)[axis] for size, axis in zip(n_levels, axes, strict=True))
    edges = [pair for pair in combinations(range(n), 2) if rng.random() < 0.5] or [(0, 1)]
    for place, (a, b) in enumerate(edges):
        potential = rng.normal(0, 1, (n_levels[a], n_levels[b]))[axes[a], axes[b]]
        if gated and (place == 0 or rng.random() < 0.5):
            gate = rng.choice([other for other in range(n) if other not in (a, b)])
            potential = potential * (axes[gate] != rng.integers(n_levels[gate]))
        log_joint = log_joint + potential
    joint = np.exp(log_joint - log_joint.max())
    return joint / joint.sum()


def as_table(joint):
    """Return a table with every context of a joint, each as often as it says."""
    # Names that sort otherwise than the columns stand.
    domain = Domain(
        tuple(
            Variable("caebd"[place], tuple(map(str, range(size)))) for place, size in enumerate(joint.shape)
        )
    )
    counts = np.round(joint.ravel() * 2**52).astype(np.int64)
    return Dataset.from_codes(domain, np.array(list(np.ndindex(*joint.shape))), counts)


def marginal(joint, a, b, context):
    """Return the joint's table of a against b in a partial context."""
    others = tuple(axis for axis in range(joint.ndim) if axis not in (a, b, *context))
    summed = joint.sum(axis=others, keepdims=True)
    return summed[
        tuple(
            slice(None) if axis in (a, b) else slice(context.get(axis, 0), context.get(axis, 0) + 1)
            for axis in range(joint.ndim)
        )
    ].reshape(joint.shape[a], joint.shape[b])


def is_dependent(table):
    """Tell whether some log odds ratio of a table of probabilities is not zero."""
    logs = np.log(table)
    ratios = logs[:, :, None, None] + logs[None, None] - logs[:, None, None, :] - logs.T[None, :, :, None]
    return bool(np.abs(ratios).max() > SMALLEST_LOG_ODDS_RATIO)


def true_edges(joint, row):
    """Link the pairs that are dependent given all other values of a row."""
    n = joint.ndim
    return {
        (a, b)
        for a, b in combinations(range(n), 2)
        if is_dependent(marginal(joint, a, b, {w: row[w] for w in range(n) if w not in (a, b)}))
    }


def assert_table_answers_as_its_joint(joint, data):
    packed = PackedTable.of(data)
    for a, b in combinations(range(joint.ndim), 2):
        others = [range(-1, size) if w not in (a, b) else (-1,) for w, size in enumerate(joint.shape)]
        for levels in product(*others):
            context = {w: level for w, level in enumerate(levels) if level >= 0}
            statistic, df = pearson_statistic(packed.count(a, b, context))
            found = bool(statistic > special.chdtri(int(df), 0.05))
            assert found == is_dependent(marginal(joint, a, b, context))


@cache
def known_model(seed, gated):
    """Return a table of a random joint and the true edges of each of its rows."""
    joint = random_joint(seed, gated)
    data = as_table(joint)
    return data, [named(true_edges(joint, row), data.names) for row in data.rows]


def named(edges, names):
    return {tuple(sorted((names[a], names[b]))) for a, b in edges}


LEARNERS = {
    "CSGS": CSGS(),
    "CSGS in column order": CSGS(order="columns"),
    "CSGS, blankets alone, or": CSGS(blankets="independent", rule="or"),
    "CSGS, blankets alone, and": CSGS(blankets="independent", rule="and"),
    "CSPC, shared": CSPC(adjacency="shared"),
    "CSPC, shared, in column order": CSPC(adjacency="shared", order="columns"),
    "CSPC, neighbours alone, or": CSPC(rule="or"),
    "CSPC, neighbours alone, and": CSPC(rule="and"),
}


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
def test_tables_answer_every_question_as_their_joints_do(gated):
    for seed in range(N_MODELS // 2):
        joint = random_joint(seed, gated)
        assert_table_answers_as_its_joint(joint, as_table(joint))


# CSPC has one way only.
WAYS = [
    pytest.param(learner, by_cube, id=f"{name}-{'cube' if by_cube else 'cohorts'}")
    for name, learner in LEARNERS.items()
    for by_cube in ((True, False) if name.startswith("CSGS") else (False,))
]


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
@pytest.mark.parametrize(("learner", "by_cube"), WAYS)
def test_a_known_joint_gives_the_true_graphs(learner, gated, by_cube, monkeypatch):
    monkeypatch.setattr("unless.learners.csgs.fits_cube", lambda n_levels: by_cube)
    for seed in range(N_MODELS // 2):
        data, truth = known_model(seed, gated)
        assert [graph.edges for _, graph in learner.fit(data).structure_] == truth


def test_gates_show_in_most_of_the_gated_models():
    graphs_of_models = [known_model(seed, gated=True)[1] for seed in range(N_MODELS // 2)]
    several = sum(any(edges != truth[0] for edges in truth) for truth in graphs_of_models)
    assert several > 0.9 * N_MODELS // 2


@pytest.fixture(scope="module")
def page():
    """Run docs/limits.md and return its names."""
    text = (Path(__file__).parents[2] / "docs" / "limits.md").read_text()
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        exec(block, names)
    return names


def truth_of(weights, row, names):
    joint = weights / weights.sum()
    assert_table_answers_as_its_joint(joint, as_table(joint))
    return named(true_edges(joint, row), names)


def test_a_gate_of_two_variables_misleads_both_learners(page):
    a, b, g, h = np.indices((2, 2, 2, 2))
    weights = np.exp((a == b) * (1 - g * h) + 0.5 * a + 0.3 * b)
    assert truth_of(weights, (0, 1, 0, 0), "ABGH") == {("A", "B")}
    assert page["by_csgs"] == {("A", "B"), ("A", "G"), ("A", "H"), ("B", "G"), ("B", "H")}
    assert page["by_cspc"] == {("A", "B"), ("G", "H")}


def test_effects_that_cancel_mislead_both_learners(page):
    a, b, g = np.indices((2, 2, 2))
    weights = np.exp((a == b) * (1.0 - g))
    every = {("A", "B"), ("A", "G"), ("B", "G")}
    assert truth_of(weights, (0, 0, 0), "ABG") == every
    assert truth_of(weights, (0, 0, 1), "ABG") == every - {("A", "B")}
    csgs, cspc, opened, shut = (page[name] for name in ("csgs", "cspc", "open_gate", "shut_gate"))
    assert (csgs.graph(opened).edges, csgs.graph(shut).edges) == (every, frozenset())
    assert cspc.graph(opened).edges == cspc.graph(shut).edges == {("A", "B")}
