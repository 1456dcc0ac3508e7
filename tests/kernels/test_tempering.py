"""Tempering against its readable twin, which knows only the sum of weights of a state, and exact answers."""

import numpy as np
import pytest

from inference.models import domain_of, model_of, random_model
from twins import brute_force
from unless.inference.chains import CellLayout, Chains, standard_errors
from unless.inference.gibbs import search, witness
from unless.inference.tempering import Tempering

INF = float("inf")


def islands(rng):
    """Draw a model with states that are forbidden, in islands."""
    weighted = [([(0, i, True), (1, 1 - i, True)], -INF) for i in range(2)]
    weighted += [([(1, i, True), (2, j, True)], float(rng.normal(0, 2))) for i in range(2) for j in range(3)]
    return model_of(domain_of([2, 2, 3]), weighted)


class Uniform:
    """The same random numbers as the kernels', by whole numbers without bounds."""

    def __init__(self, seed):
        self.state = int(seed)

    def __call__(self):
        state = self.state
        self.state = (state & 0xFFFFFFFF) * 4294883355 + (state >> 32)
        return (((state ^ (state >> 32)) & 0xFFFFFFFF) + 0.5) * 2.0**-32


def twin(model, ladder, is_hard, states, random, n_rounds, sums):
    """Sweep and exchange as the kernel does, with potentials of whole states."""
    literals = list(model.plain[0].literals())
    at, was_hot, n_arrivals = list(range(len(states))), [False] * len(states), 0

    def holding(codes):
        return np.array([all((codes[v] == x) == same for v, x, same in one) for one in literals])

    def potential(codes, level):
        return ladder.weights[level][holding(codes)].sum()

    for turn in range(n_rounds):
        for level, replica in enumerate(at):
            codes, first = states[replica], 0
            for variable, size in enumerate(model.domain.n_levels):
                logs = np.empty(size)
                for code in range(size):
                    codes[variable] = code
                    logs[code] = potential(codes, level)
                shares = np.exp(logs - logs.max())
                shares /= shares.sum()
                codes[variable] = min(int((np.cumsum(shares) <= random()).sum()), size - 1)
                if level == len(at) - 1:
                    sums[first : first + size] += shares
                first += size
        for low in range(turn % 2, len(at) - 1, 2):
            a, b = states[at[low]], states[at[low + 1]]
            stays = potential(a, low) + potential(b, low + 1)
            changes = potential(b, low) + potential(a, low + 1)
            if random() < np.exp(min(0.0, changes - stays)):
                at[low], at[low + 1] = at[low + 1], at[low]
        was_hot[at[0]] = True
        n_arrivals += was_hot[at[-1]]
        was_hot[at[-1]] = False
    return at, n_arrivals


@pytest.mark.parametrize("kind", ["finite", "forbidden"])
def test_rounds_equal_those_of_the_twin(kind):
    rng = np.random.default_rng(3)
    model = random_model(rng, 4, max_levels=3, scale=2.0) if kind == "finite" else islands(rng)
    walk = Chains(model, {}, 0, 1, 100, 0)
    pool = np.array([walk.possible_start().codes for _ in range(5)])
    tempering = Tempering(walk, CellLayout.of(walk.n_levels), pool, 0.1, None)
    one = tempering._ensemble(tempering.ensembles[0].states.copy(), np.array([77], dtype=np.uint64))
    states, random = one.states.copy(), Uniform(77)
    sums, squares = np.zeros((3, tempering.asked.n_cells)), np.zeros((3, tempering.asked.n_cells))
    rows = np.zeros((6, len(walk.n_levels)), dtype=np.uint16)
    tempering._call(one, 10, sums, squares, rows)
    expected = np.zeros(tempering.asked.n_cells)
    at, n_arrivals = twin(model, tempering.ladder, walk.is_hard, states, random, 30, expected)
    assert one.at.tolist() == at
    assert one.states.tolist() == states.tolist()
    assert one.n_arrivals == n_arrivals
    assert sums.sum(axis=0) == pytest.approx(expected, abs=1e-9)
    assert rows[-1].tolist() == states[at[-1]].tolist()
    assert one.random[0] == random.state


@pytest.mark.parametrize("seed", range(6))
def test_the_coldest_level_has_the_law_of_the_model(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, 5, max_levels=3, scale=3.0) if seed % 2 else islands(rng)
    walk = Chains(model, {}, seed, 4, 100, 0)
    pool = np.array([walk.possible_start().codes for _ in range(5)])
    tempering = Tempering(walk, CellLayout.of(walk.n_levels), pool, 0.1, None)
    for _ in range(2):
        tempering.go_on()
    means, errors = tempering.trace.means.mean(axis=(0, 1)), standard_errors(tempering.trace)
    truth = np.concatenate([brute_force.joint(model, [v]) for v in range(len(walk.n_levels))])
    assert (np.abs(means - truth) <= 5 * errors + 1e-3).all()
    assert tempering.log_partition == pytest.approx(brute_force.log_partition(model), abs=0.15)


def test_the_mass_near_a_state_is_that_of_its_mode():
    # Two modes of four equal variables, and a free one: each has its own mass, whatever the other has.
    weighted = [([(v, i, True), (v + 1, i, True)], 20.0) for v in range(3) for i in range(2)]
    model = model_of(domain_of([2] * 5), [*weighted, ([(0, 1, True)], -2.0), ([(4, 1, True)], 0.7)])
    walk = Chains(model, {}, 0, 1, 100, 0)
    for level, field in ((0, 0.0), (1, -2.0)):
        met = witness(walk, np.array([level] * 4 + [0]))
        mass = 60 + field + np.log(1 + np.exp(0.7))
        assert met.log_met == pytest.approx(mass, abs=1e-6)
        assert met.log_mass == pytest.approx(mass, abs=0.1)
        assert len(met.states) == 2


def test_the_search_finds_modes_of_little_mass_and_one_deep_state():
    weighted = [([(v, i, True), (v + 1, i, True)], 25.0) for v in range(5) for i in range(3)]
    weighted += [([(0, 2, True)], -8.0), ([(6 + v, 1, True) for v in range(12)], 12.0)]
    model = model_of(domain_of([3] * 6 + [2] * 12), weighted)
    walk = Chains(model, {}, 1, 4, 100, 0)
    states = search(walk, CellLayout.of(walk.n_levels)).states
    assert {0, 1, 2} <= set(states[(states[:, :6] == states[:, :1]).all(axis=1), 0].tolist())
    assert states[:, 6:].all(axis=1).any()
