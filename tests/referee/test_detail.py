"""A number that is cut into few groups still varies inside each; tests hold finer groups of it fixed."""

from dataclasses import replace

import numpy as np
import pytest

import unless
from unless.data.dataset import Dataset, Detail
from unless.data.domain import Domain, Variable
from unless.referee.regressions import RegressionTable
from unless.referee.verdicts import look_again


def groups(values, n):
    return np.searchsorted(np.quantile(values, np.arange(1, n) / n), values, side="right")


def cut_table(columns, n_levels, times):
    """Cut columns into levels, each made of some finer groups."""
    names = sorted(columns)
    finer = {name: groups(columns[name], n_levels * times).astype(np.uint16) for name in names}
    rows = np.column_stack([finer[name] // times for name in names]).astype(np.uint16)
    levels = tuple(map(str, range(n_levels)))
    domain = Domain(tuple(Variable(name, levels, "integer") for name in names))
    data = Dataset.from_codes(domain, rows)
    return replace(data, detail=Detail.of(rows, np.ones(len(rows), dtype=np.int64), finer))


def followers(n_rows, seed, strength=0.8):
    """Two columns that follow a third, and nothing else."""
    rng = np.random.default_rng(seed)
    noise = np.sqrt(1 - strength**2)
    z = rng.normal(size=n_rows)
    x, y = (strength * z + noise * rng.normal(size=n_rows) for _ in range(2))
    return {"x": x, "y": y, "z": z}


def test_what_follows_a_cut_number_is_not_linked():
    falsely = {"with": 0, "without": 0}
    for seed in range(10):
        data = cut_table(followers(4_000, seed), 4, 3)
        for how, table in (("with", data), ("without", replace(data, detail=None))):
            found = [set(one.pair) for one in unless.learn(table).statements_.findings]
            assert {"x", "z"} in found
            assert {"y", "z"} in found
            falsely[how] += {"x", "y"} in found
    assert falsely["with"] == 0
    assert falsely["without"] >= 5


def test_selecting_columns_keeps_their_detail():
    data = cut_table(followers(500, 0), 3, 2)
    chosen = data.select(["z", "x"])
    assert set(chosen.detail.finer) == {"x", "z"}
    assert chosen.detail.counts.sum() == 500
    again = Dataset.from_codes(chosen.domain, chosen.detail.rows, chosen.detail.counts)
    assert again == chosen
    plain = replace(data, detail=replace(data.detail, finer={"y": data.detail.finer["y"]}))
    assert plain.select(["x", "z"]).detail is None


def test_regressions_hold_finer_groups_and_test_levels():
    data = cut_table(followers(1_000, 1), 3, 12)
    table = RegressionTable(data)
    found = table.likelihood_ratio(0, [(2,)], [(1,)])
    # The same with a column of nine levels in place of z: three in each level, of four neighbours each.
    domain = Domain((*data.domain.variables[:2], Variable("z", tuple(map(str, range(9))))))
    fine = np.column_stack([data.detail.rows[:, :2], data.detail.finer["z"] // 4])
    wanted = RegressionTable(Dataset.from_codes(domain, fine, data.detail.counts)).likelihood_ratio(
        0, [(2,)], [(1,)]
    )
    assert found.df == wanted.df == 4
    assert found.value == pytest.approx(wanted.value, rel=1e-3)


@pytest.mark.parametrize(("n_rows", "strength"), [(500, 0.95), (4_000, 0.95)])
def test_what_follows_a_number_closely_is_not_linked(n_rows, strength):
    """Groups of the number are too wide for columns that are nearly functions of it."""
    falsely = 0
    for seed in range(6):
        found = [
            set(one.pair) for one in unless.learn(followers(n_rows, seed, strength)).statements_.findings
        ]
        assert {"x", "z"} in found
        falsely += {"x", "y"} in found
    assert falsely == 0


def test_a_second_look_bears_out_what_is_linked():
    rng = np.random.default_rng(3)
    z, noise, more = rng.normal(size=(3, 2_000))
    columns = {"x": z + noise, "y": z + 0.5 * noise + more, "z": z}
    pairs = {one.pair: one for one in unless.learn(columns).statements_.findings}
    assert pairs["x", "y"].given == ("z",)
    table = RegressionTable(unless.read(columns))
    assert look_again(table, (0, 1), {0: [(2,)], 1: [(2,)]}, [None]) < 1e-12
    assert look_again(table, (0, 1), {0: [], 1: []}, [None]) is None


def test_without_a_link_a_second_look_is_a_fair_test():
    p_values = []
    for seed in range(60):
        data = unless.read(followers(600, seed, 0.9)).select(["x", "y", "z"])
        p_values.append(look_again(RegressionTable(data), (0, 1), {0: [(2,)], 1: [(2,)]}, [None]))
    assert sum(p < 0.05 for p in p_values) <= 8
    assert sum(p < 0.5 for p in p_values) >= 10
