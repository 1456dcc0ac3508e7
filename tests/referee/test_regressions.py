"""Regressions on patterns equal regressions on rows; searches equal those that try everything."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

import twins.naive_regression as naive
from studies.truth import laws
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.referee.counted import WideTester
from unless.referee.gates import PairProblem
from unless.referee.models import Models, find_blanket, screen
from unless.referee.regressions import RegressionTable, mean_of
from unless.referee.verdicts import agreed

# The least gain that Newton's method goes on for is 1e-3.
LIKELIHOOD, STATISTIC = 1e-3, 0.01


def made(seed, n_levels=(2, 3, 2, 3), n=300):
    """Draw a table whose columns follow one another, with a product in the last."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, n_levels[0], n)]
    for size in n_levels[1:]:
        shares = rng.dirichlet(np.full(size, 3.0), size=(n_levels[0], 3))
        before = shares[columns[0], columns[-1] % 3]
        columns.append((rng.random(n)[:, None] > before.cumsum(axis=1)[:, :-1]).sum(axis=1))
    domain = Domain(tuple(Variable(f"v{k}", tuple(map(str, range(size)))) for k, size in enumerate(n_levels)))
    return Dataset.from_codes(domain, np.column_stack(columns))


TERMS = ([], [(1,)], [(1,), (2,)], [(1,), (2,), (1, 2)], [(1,), (2,), (3,), (1, 3), (2, 3)])


@pytest.mark.parametrize("seed", range(5))
def test_a_fit_is_that_of_a_general_optimiser(seed):
    data = made(seed)
    rows, table = naive.expanded(data), RegressionTable(data)
    for terms in TERMS:
        fitted, slow = table.fit(0, terms), naive.regress(rows, 0, terms)
        assert fitted.log_likelihood == pytest.approx(slow.log_likelihood, abs=LIKELIHOOD)
        assert (len(fitted.owners), fitted.n_free) == (slow.n_columns, slow.shown.shape[1])
    # A target of three levels.
    assert table.fit(3, [(0,), (1,)]).log_likelihood == pytest.approx(
        naive.regress(rows, 3, [(0,), (1,)]).log_likelihood, abs=LIKELIHOOD
    )


@pytest.mark.parametrize("seed", range(5))
def test_ratios_are_those_of_two_fits(seed):
    data = made(seed)
    rows, table = naive.expanded(data), RegressionTable(data)
    for target, terms, more in (
        (0, [], [(1,)]),
        (0, [(1,)], [(2,), (3,)]),
        (0, [(1,), (2,)], [(1, 2)]),
        (3, [(0,), (1,)], [(0, 1)]),
        (2, [(0,), (1,), (3,)], [(0, 1), (0, 1, 3)]),
    ):
        found, slow = (
            table.likelihood_ratio(target, terms, more),
            naive.likelihood_ratio(rows, target, terms, more),
        )
        assert found.df == slow[1]
        assert found.value == pytest.approx(slow[0], rel=STATISTIC, abs=2 * LIKELIHOOD)
        assert found.p == pytest.approx(chi2.sf(found.value, found.df), rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_slopes_by_their_variance(seed):
    data = made(seed)
    rows, table = naive.expanded(data), RegressionTable(data)
    for target, terms, columns in ((0, [], [1, 2, 3]), (0, [(1,)], [2, 3]), (3, [(0,), (2,)], [1])):
        for column, found in zip(
            columns, table.scores(target, table.fit(target, terms), columns), strict=True
        ):
            slow = naive.score(rows, target, terms, (column,))
            assert found.df == slow[1]
            assert found.value == pytest.approx(slow[0], rel=STATISTIC, abs=0.02)
    for target, terms, products in (
        (0, [(1,), (2,), (3,)], [(1, 2), (1, 3), (2, 3)]),
        (3, [(0,), (1,), (2,)], [(0, 1), (0, 2)]),
    ):
        tests = table.product_scores(target, table.fit(target, terms), products)
        for product, found in zip(products, tests, strict=True):
            slow = naive.score(rows, target, terms, product)
            assert found.df == slow[1]
            assert found.value == pytest.approx(slow[0], rel=STATISTIC, abs=0.02)


def test_counts_are_rows_and_order_is_no_matter():
    data = made(1)
    doubled = Dataset.from_codes(data.domain, data.rows, 7 * data.counts)
    slow = naive.regress(np.repeat(naive.expanded(data), 7, axis=0), 0, [(1,), (2,)])
    assert RegressionTable(doubled).fit(0, [(1,), (2,)]).log_likelihood == pytest.approx(
        slow.log_likelihood, abs=LIKELIHOOD
    )
    one, other = RegressionTable(data), RegressionTable(data)
    other.fit(0, [(3,)])
    # A fit that starts from another one's weights ends where it does from none.
    assert one.fit(0, [(1,), (3,)]).log_likelihood == pytest.approx(
        other.fit(0, [(3,), (1,)]).log_likelihood, abs=LIKELIHOOD
    )


def test_indicators_and_their_complements():
    table = RegressionTable(made(0))
    inside = table.indicator([(1, (0, 2)), (2, (1,))])
    wanted = np.isin(table.codes[1], (0, 2)) & (table.codes[2] == 1)
    assert (table.codes[inside] == wanted).all()
    assert table.indicator([(2, [1]), (1, [2, 0])]) == inside
    outside = table.complement(inside)
    assert (table.codes[outside] == 1 - wanted).all()
    assert table.sources([(inside,)]) == (1, 2)
    # Many of them: the room for columns grows, and nothing moves.
    for level in range(100):
        table.indicator([(1, (level,)), (2, (0,))])
    assert (table.codes[inside] == wanted).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_blanket_is_that_of_the_plain_search(seed):
    data = made(seed, (2, 3, 2, 2), 400)
    rows, table = naive.expanded(data), RegressionTable(data)
    for target in range(4):
        others = [c for c in range(4) if c != target]
        assert list(find_blanket(table, target, others, 0.05)) == naive.blanket(rows, target, 0.05)


def test_a_fit_of_many_rounds_is_the_optimum():
    # Levels that almost settle the target: weights go far, and matrices of earlier rounds serve badly.
    rng = np.random.default_rng(5)
    cause = rng.integers(0, 3, 500)
    effect = np.where(rng.random(500) < 0.02, rng.integers(0, 3, 500), cause)
    data = Dataset.from_codes(
        Domain(tuple(Variable(name, ("0", "1", "2")) for name in "abc")),
        np.column_stack([effect, cause, rng.integers(0, 3, 500)]),
    )
    rows, table = naive.expanded(data), RegressionTable(data)
    for terms in ([(1,)], [(1,), (2,)], [(1,), (2,), (1, 2)]):
        slow = naive.regress(rows, 0, terms)
        # From nothing, and from what the one before has found.
        for made in (table, RegressionTable(data)):
            # Far weights gain little by little: what one more round would gain, at most, is left.
            assert made.fit(0, terms).log_likelihood == pytest.approx(slow.log_likelihood, abs=0.01)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n", [60, 3000])
def test_products_are_screened_as_by_counting_rows(seed, n):
    # Few rows have about as many patterns as rows, many have few.
    data = made(seed, (2, 3, 2, 3), n)
    rows, table = naive.expanded(data), RegressionTable(data)
    for target, terms in ((0, [(1,), (2,)]), (3, [(0,), (1,)])):
        fitted = table.fit(target, terms)
        seconds, thirds = [c for (c,) in terms], [c for c in range(4) if c != target]
        found = screened(table, target, fitted, seconds, thirds)
        for s, second in enumerate(seconds):
            for t, third in enumerate(thirds):
                if second != third:
                    slow = naive.screen(rows, target, terms, second, third)
                    assert found[s, t] == pytest.approx(slow, rel=STATISTIC, abs=0.02)


def screened(table, target, fitted, seconds, thirds):
    """Turn p of a screen back into its statistics."""
    p_values = screen(table, target, fitted, seconds, thirds)
    free = [len(table.used_levels(c)) - 1 for c in range(table.n_columns)]
    statistics = np.zeros((len(seconds), len(thirds)))
    for (second, third), p in p_values.items():
        df = free[target] * free[second] * free[third]
        statistics[seconds.index(second), thirds.index(third)] = chi2.isf(p, df)
    return statistics


@pytest.mark.parametrize("seed", range(2))
def test_in_a_wide_table_blankets_are_those_of_asking_every_column(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 2, (600, 30))
    for column in range(1, 30):
        near = table[:, rng.integers(max(0, column - 4), column)]
        table[:, column] = np.where(rng.random(600) < 0.5, near, table[:, column])
    data = Dataset.from_codes(Domain(tuple(Variable(f"v{k}", ("0", "1")) for k in range(30))), table)
    wide, every = RegressionTable(data), RegressionTable(data)
    found = [find_blanket(wide, c, [other for other in range(30) if other != c], 0.02) for c in range(30)]
    monkeypatch.setattr("unless.referee.models.FEW_NEAR", 30)
    assert found == [
        find_blanket(every, c, [other for other in range(30) if other != c], 0.02) for c in range(30)
    ]


def problem(data, pair, gate):
    """Put all columns into the regressions of both ends, as the plain form does."""
    table = RegressionTable(data)
    n = table.n_columns
    allowed = ~np.eye(n, dtype=bool)
    models = Models(table, allowed, [{c for c in range(n) if c != one} for one in range(n)])
    models._with_products = lambda target, terms: frozenset(terms)
    return PairProblem(models, *pair, [gate])


@pytest.mark.parametrize("seed", range(4))
def test_levels_by_strength_find_the_best_of_all_sets(seed):
    rng = np.random.default_rng(seed)
    n, n_levels = 1500, 4
    gate = rng.integers(0, n_levels, n)
    is_open = np.isin(gate, rng.permutation(n_levels)[: 1 + seed % 3])
    a, noise = rng.integers(0, 2, n), rng.integers(0, 2, n)
    b = np.where(is_open & (rng.random(n) < 0.6), a, rng.integers(0, 2, n))
    domain = Domain(
        tuple(
            Variable(name, tuple("0123"[:size]))
            for name, size in zip("abgn", (2, 2, n_levels, 2), strict=True)
        )
    )
    data = Dataset.from_codes(domain, np.column_stack([a, b, gate, noise]))
    account = problem(data, (0, 1), 2).best_gate(2)
    best = naive.best_levels(naive.expanded(data), (0, 1), 2)
    assert account.clauses == ((2, best),)
    assert set(best) == set(gate[is_open].tolist())
    assert account.is_sure


def test_both_sides_of_an_account_are_tested_from_both_ends():
    data = laws.gated(np.random.default_rng(3)).sample(1000, np.random.default_rng(3))
    rows, one = naive.expanded(data), problem(data, (0, 1), 2)
    levels = np.unique(rows[:, 2])[:1]
    inside = np.isin(rows[:, 2], levels)
    if 20 <= inside.sum() <= len(inside) - 20:
        found = one.account([(2, tuple(levels.tolist()))], 0.0, 0.0)
        slow = [naive.link_inside(rows, end, other, inside) for end, other in ((0, 1), (1, 0))]
        assert found.inside.statistic.value == pytest.approx(
            sum(s[0] for s in slow) / 2, rel=STATISTIC, abs=0.02
        )
        assert found.inside.n_rows == inside.sum()
        assert found.inside.n_rows + found.outside.n_rows == len(rows)


def test_ends_that_disagree_are_not_believed():
    from unless.independence.statistics import NOTHING, Statistic

    strong, weak = Statistic(60.0, 2), Statistic(1.0, 2)
    assert mean_of([strong, weak]).value == 30.5
    assert agreed([strong, weak]) == pytest.approx(weak.p**3)
    assert agreed([strong, strong]) == pytest.approx(strong.p)
    assert agreed([strong, NOTHING]) == pytest.approx(strong.p)
    assert agreed([NOTHING, NOTHING]) == 1


def test_the_table_of_a_pair_alone():
    from scipy.stats import chi2_contingency

    data = made(2)
    rows, tester = naive.expanded(data), WideTester(RegressionTable(data))
    for a, b in combinations(range(4), 2):
        counts = np.zeros((3, 3))
        np.add.at(counts, (rows[:, a], rows[:, b]), 1)
        counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
        wanted = chi2_contingency(counts, correction=False)
        found = tester.alone(a, b)
        assert found.statistic == pytest.approx(wanted.statistic)
        assert found.df == wanted.dof
        beyond_chance = max(0.0, wanted.statistic - wanted.dof)
        smaller = min(counts.shape) - 1
        assert tester.estimate(a, b, found).v == pytest.approx(np.sqrt(beyond_chance / (len(rows) * smaller)))
        if found.method == "chi-square":
            assert found.p == pytest.approx(wanted.pvalue, rel=1e-6)
