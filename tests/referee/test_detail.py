"""A number that is cut into few groups still varies inside each; tests hold finer groups of it fixed."""

from dataclasses import replace

import numpy as np
import pytest

import unless
from unless.data.dataset import Dataset, Detail
from unless.data.domain import Domain, Variable
from unless.referee.regressions import Table


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
    data = cut_table(followers(1_000, 1), 3, 4)
    table = Table(data)
    found = table.likelihood_ratio(0, [(2,)], [(1,)])
    # The same with a column of twelve levels in place of z.
    domain = Domain((*data.domain.variables[:2], Variable("z", tuple(map(str, range(12))))))
    fine = np.column_stack([data.detail.rows[:, :2], data.detail.finer["z"]])
    wanted = Table(Dataset.from_codes(domain, fine, data.detail.counts)).likelihood_ratio(0, [(2,)], [(1,)])
    assert found.df == wanted.df == 4
    assert found.value == pytest.approx(wanted.value, rel=1e-3)
