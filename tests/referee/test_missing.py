"""A test takes the rows that have what it needs: missing values are no level, and link nothing."""

from dataclasses import replace

import numpy as np
import pytest

import unless
from unless.data.dataset import Dataset, Detail
from unless.data.domain import Domain, Variable
from unless.referee.regressions import RegressionTable


def with_holes(codes, holes, n_levels=3):
    """Make a table whose detail has missing values, and whose own rows are the complete ones."""
    names = [f"v{place}" for place in range(codes.shape[1])]
    domain = Domain(tuple(Variable(name, tuple(map(str, range(n_levels)))) for name in names))
    shown = np.where(holes, 0, codes).astype(np.uint16)
    complete = Dataset.from_codes(domain, codes[~holes.any(axis=1)])
    missing = {name: holes[:, place] for place, name in enumerate(names)}
    detail = Detail.of(shown, np.ones(len(codes), dtype=np.int64), None, missing)
    return replace(complete, detail=detail)


def chain(n_rows, seed, strength=0.5):
    """v0 - v1 - v2, and v3 alone."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 3, n_rows)]
    for _ in range(2):
        kept = rng.random(n_rows) < strength
        columns.append(np.where(kept, columns[-1], rng.integers(0, 3, n_rows)))
    return np.column_stack([*columns, rng.integers(0, 3, n_rows)])


def test_a_regression_takes_the_rows_that_have_its_columns():
    codes = chain(900, 0)
    holes = np.random.default_rng(1).random(codes.shape) < 0.2
    table = RegressionTable(with_holes(codes, holes))
    complete = ~holes[:, :3].any(axis=1)
    names = tuple(Variable(f"v{place}", ("0", "1", "2")) for place in range(3))
    wanted = RegressionTable(Dataset.from_codes(Domain(names), codes[complete][:, :3]))
    assert table.n_complete([0, 1, 2]) == complete.sum()
    for target, terms, more in ((0, [(1,)], [(2,)]), (1, [(0,)], [(2,)]), (2, [], [(0,), (1,)])):
        wide = {0, 1, 2} - {target} - {c for term in [*terms, *more] for c in term}
        found = table.fit(target, terms, needed=table.incomplete([0, 1, 2]))
        if not wide:
            ratio = table.likelihood_ratio(target, terms, more)
            again = wanted.likelihood_ratio(target, terms, more)
            assert ratio.df == again.df
            assert ratio.value == pytest.approx(again.value, rel=1e-2, abs=0.05)
        assert found.log_likelihood == pytest.approx(wanted.fit(target, terms).log_likelihood, rel=1e-3)
    scores = table.scores(0, table.fit(0, [(1,)], needed=table.incomplete([2])), [2])
    again = wanted.scores(0, wanted.fit(0, [(1,)]), [2])
    assert scores[0].df == again[0].df
    assert scores[0].value == pytest.approx(again[0].value, rel=1e-2, abs=0.05)


def test_questions_skipped_together_are_not_linked():
    falsely = found = by_complete_rows = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        codes = chain(800, 100 + seed, 0.3)
        # A third skips the last two questions, and each is skipped now and then.
        holes = rng.random(codes.shape) < 0.1
        holes[rng.random(len(codes)) < 0.33, 2:] = True
        data = with_holes(codes, holes)
        said = {one.pair for one in unless.learn(data).statements_.findings}
        falsely += len(said - {("v0", "v1"), ("v1", "v2")})
        found += len(said & {("v0", "v1"), ("v1", "v2")})
        plain = {one.pair for one in unless.learn(replace(data, detail=None)).statements_.findings}
        by_complete_rows += len(plain & {("v0", "v1"), ("v1", "v2")})
    assert falsely <= 1
    assert found >= by_complete_rows
