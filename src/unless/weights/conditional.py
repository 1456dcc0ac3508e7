"""The conditional of one column given the others: a log-linear model fitted by its own likelihood alone.

It is a multinomial logistic regression with a Gaussian prior: a weight for each level of each other column
and each level of the target, and for the levels of two columns together where that pays. Which pairs may pay
is found by tests of what single columns leave unexplained, or proposed by the caller; whether they are used,
and how strong the prior is, is chosen by cross-validation on the rows given.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from unless.data.dataset import Dataset, distinct_rows
from unless.data.domain import Domain
from unless.data.showing import html_table
from unless.errors import TooLarge
from unless.independence.statistics import chi_square_tail
from unless.inference.randomness import make_rng
from unless.inference.results import Measure
from unless.runtime.memory import parse_memory, show_memory
from unless.typing import Bools, Floats, Integers
from unless.weights.optimise import Objective, StopRules, minimise
from unless.weights.priors import Gaussian

# Positions of columns: one, or two in ascending order.
Term = tuple[int, ...]
# Standard deviations of the prior, from strong to weak. Weaker ones are not tried once one is worse.
GRID = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
N_FOLDS = 5
# The intercept is measured in steps of this size, so that the prior has little effect on it.
INTERCEPT = 100.0
# Largest component of the gradient that is left, as a share of the rows: to judge priors, and at last.
ROUGH, FINE = 1e-5, 1e-7
MAX_ITERATIONS = 2_000
# The level of the tests of all pairs together (Bonferroni).
LEVEL = 0.05
# Cells in which fewer rows are uncertain are left out of the tests.
LEAST_SPREAD = 0.5
# Limits of what is tried: columns whose pairs are tested, pairs used, combinations of levels of a pair.
MOST_COLUMNS = 50
MOST_PAIRS = 100
MOST_COMBINATIONS = 4_096
# A fixed seed: the folds follow from the rows alone.
SEED = 0
HOLE = -1
# Draws that are averaged where a row hides several columns.
N_DRAWS = 256


@dataclass(frozen=True)
class Tried:
    """Terms and a prior that were tried, with the mean log-likelihood of rows that were set aside."""

    n_pairs: int
    sd: float
    log_likelihood: float

    def _repr_html_(self) -> str:
        row = self.n_pairs, f"{self.sd:.3g}", f"{self.log_likelihood:.4g}"
        return html_table("Tried", ("pairs", "sd", "log-likelihood"), [row])


@dataclass(frozen=True)
class ConditionalModel:
    """P(target | other columns), as one table of energies for each term.

    `shares` says how often each level of each column was seen. A column that a row hides, or of which it
    shows a level that was never seen, is averaged over: each level counts as often as it was seen, whatever
    the rest of the row shows. Of several such columns in a row, `N_DRAWS` draws are averaged.
    """

    domain: Domain
    terms: tuple[Term, ...]
    intercept: Floats
    tables: tuple[Floats, ...]
    shares: tuple[Floats, ...]
    sd: float
    tried: tuple[Tried, ...] = ()

    def _repr_html_(self) -> str:
        rows = [(one.n_pairs, f"{one.sd:.3g}", f"{one.log_likelihood:.4g}") for one in self.tried]
        title = f"Conditional model: {len(self.terms):,} terms, sd {self.sd:.3g}"
        return html_table(title, ("pairs tried", "sd", "log-likelihood"), rows)

    def probabilities(self, cells: Integers) -> Floats:
        """Return the probability of each level for rows of codes, with -1 for what is hidden."""
        cells = cells.copy()
        for column, share in enumerate(self.shares):
            never = np.append(share == 0, False)
            cells[never[cells[:, column]], column] = HOLE
        hidden = cells == HOLE
        n_hidden = hidden.sum(axis=1)
        answers = np.empty((len(cells), len(self.intercept)))
        whole = n_hidden == 0
        answers[whole] = self._probabilities(cells[whole])
        for column in np.flatnonzero(hidden[n_hidden == 1].any(axis=0)).tolist():
            rows = np.flatnonzero((n_hidden == 1) & hidden[:, column])
            answers[rows] = self._averaged(column, cells[rows])
        many = np.flatnonzero(n_hidden > 1)
        answers[many] = self._drawn(cells[many], hidden[many])
        return answers

    def _averaged(self, column: int, cells: Integers) -> Floats:
        total = np.zeros((len(cells), len(self.intercept)))
        for level, share in enumerate(self.shares[column].tolist()):
            if share:
                cells[:, column] = level
                total += share * self._probabilities(cells)
        return total

    def _drawn(self, cells: Integers, hidden: Bools) -> Floats:
        total = np.zeros((len(cells), len(self.intercept)))
        for drawn in self._draws if len(cells) else ():
            total += self._probabilities(np.where(hidden, drawn, cells)) / N_DRAWS
        return total

    @cached_property
    def _draws(self) -> Integers:
        """Levels in about the shares of each column, each column shuffled by itself."""
        rng = make_rng(SEED)
        middles = (np.arange(N_DRAWS) + 0.5) / N_DRAWS
        columns = [
            rng.permutation(np.minimum(np.searchsorted(np.cumsum(share), middles), len(share) - 1))
            for share in self.shares
        ]
        return np.column_stack(columns).astype(np.int64)

    def _probabilities(self, cells: Integers) -> Floats:
        energies = np.repeat(self.intercept[None, :], len(cells), axis=0)
        for term, table in zip(self.terms, self.tables, strict=True):
            energies += table[tuple(cells[:, column] for column in term)]
        return np.exp(_normalised(energies))


def fit_conditional(
    data: Dataset,
    target: str,
    proposed: Iterable[tuple[str, str]] = (),
    *,
    completed: tuple[Dataset, Floats] | None = None,
    max_memory: int | str | None = None,
    step: Callable[[], object] = lambda: None,
) -> ConditionalModel:
    """Fit the conditional of a target; `proposed` are pairs of other columns that may act together.

    The levels of the target are those that some row shows, in their order. Neither the order of the rows nor
    that of the columns changes a bit of the answer. `completed` are the rows of the table and those that were
    completed, with how much each counts: weights are fitted to them, and priors are judged by the rows of the
    table alone.
    """
    names = sorted(name for name in data.names if name != target)
    table, weighed = completed or (data, data.counts.astype(np.float64))
    columns, counts = _patterns(table, weighed, names, target)
    whole = counts if completed is None else _complete_counts(data, table, names, target)
    domain = data.domain.select(names)
    n_levels = tuple(int(n) for n in domain.n_levels)
    limit = parse_memory(max_memory)
    singles = ConditionalDesign(columns, n_levels, tuple((position,) for position in range(len(names))))
    _check(singles, counts, limit)
    folds = _folds(whole)
    judged = _judge_priors(singles, counts, folds, step)
    sd, weights = _final(singles, counts, judged)
    layout, tried = singles, [Tried(0, *one) for one in judged]
    wanted = {tuple(sorted(map(names.index, pair))) for pair in proposed}
    pairs = _promising(singles, counts, weights, wanted)
    with_pairs = ConditionalDesign(columns, n_levels, (*singles.terms, *pairs))
    if pairs and counts.shape[1] > 1 and with_pairs.need(counts.shape[1]) <= limit:
        more = _judge_priors(with_pairs, counts, folds, step)
        tried += [Tried(len(pairs), *one) for one in more]
        if max(one[1] for one in more) > max(one[1] for one in judged):
            layout = with_pairs
            sd, weights = _final(layout, counts, more)
    intercept, tables = layout.tables(weights, counts.shape[1])
    shares = singles.shares(counts)
    return ConditionalModel(domain, layout.terms, intercept, tables, shares, sd, tuple(tried))


def _patterns(data: Dataset, weighed: Floats, names: Sequence[str], target: str) -> tuple[Integers, Floats]:
    """Return the distinct rows without the target, and how often each has each level of it."""
    columns, pattern = distinct_rows(data.rows[:, [data.domain.index(name) for name in names]])
    level = data.rows[:, data.domain.index(target)]
    shown = np.unique(level)
    counts = np.zeros((len(columns), len(shown)))
    np.add.at(counts, (pattern, np.searchsorted(shown, level)), weighed)
    return columns.astype(np.int64), counts


def _complete_counts(data: Dataset, completed: Dataset, names: Sequence[str], target: str) -> Floats:
    """Return how often the rows of a table have each level, in the patterns of its completed rows."""
    _, pattern = distinct_rows(np.concatenate([completed.rows, data.rows]))
    counts = np.bincount(pattern[completed.n_distinct :], data.counts, completed.n_distinct)
    return _patterns(completed, counts.astype(np.float64), names, target)[1]


def _folds(counts: Floats) -> list[Floats]:
    """Share the rows out among folds at random, the same way for the same rows."""
    drawn = make_rng(SEED).multinomial(counts.astype(np.int64), np.full(N_FOLDS, 1 / N_FOLDS))
    return [drawn[:, :, fold].astype(np.float64) for fold in range(N_FOLDS)]


def _check(layout: "ConditionalDesign", counts: Floats, limit: int) -> None:
    need = layout.need(counts.shape[1])
    if need > limit:
        raise TooLarge(
            f"The probabilities of {counts.shape[1]:,} classes given {len(layout.n_levels):,} columns of "
            f"{len(counts):,} distinct rows would need {show_memory(need)}, and {show_memory(limit)} are "
            "allowed; use fewer columns or raise max_memory=."
        )


def _promising(
    singles: "ConditionalDesign", counts: Floats, weights: Floats, proposed: set[Term]
) -> tuple[Term, ...]:
    """Return the pairs of columns that single columns leave something unexplained of, and those proposed."""
    loss = ConditionalLoss(*singles.design, counts)
    logs = loss.log_probabilities(weights)
    probabilities = np.exp(logs)
    excess = counts - loss.totals * probabilities
    spread = loss.totals * probabilities * (1 - probabilities)
    strong = singles.strongest(weights, counts, MOST_COLUMNS)
    tested = set(combinations(strong, 2))
    tests = {
        pair: _unexplained(singles, pair, excess, spread)
        for pair in sorted(tested | proposed)
        if singles.size(pair) <= MOST_COMBINATIONS
    }
    passed = [pair for pair, (p, _) in tests.items() if pair in proposed or p * max(1, len(tested)) < LEVEL]
    passed.sort(key=lambda pair: (tests[pair], pair))
    return tuple(sorted(passed[:MOST_PAIRS]))


def _unexplained(
    layout: "ConditionalDesign", pair: Term, excess: Floats, spread: Floats
) -> tuple[float, float]:
    """Test what a pair of columns leaves unexplained: p, and minus the statistic by degree of freedom."""
    number, size, n_classes = layout.number(pair), layout.size(pair), excess.shape[1]
    statistic = 0.0
    for level in range(n_classes):
        left = np.bincount(number, excess[:, level], size)
        wide = np.bincount(number, spread[:, level], size)
        enough = wide > LEAST_SPREAD
        statistic += float((left[enough] ** 2 / wide[enough]).sum()) * (n_classes - 1) / n_classes
    shown = [len(np.unique(layout.columns[:, column])) - 1 for column in pair]
    df = max(1, int(np.prod(shown)) * (n_classes - 1))
    return chi_square_tail(df, statistic), -statistic / df


class ConditionalLoss:
    """Minus the log-likelihood of a target, for weights of column x level, laid out one after the other."""

    measure: ClassVar[Measure] = "pseudo_log_likelihood"

    def __init__(self, design: Any, turned: Any, counts: Floats) -> None:
        self.design, self.turned, self.counts = design, turned, counts
        self.totals = counts.sum(axis=1, keepdims=True)
        self._probabilities = np.empty((0, 0))

    @property
    def n_rows(self) -> float:
        """How many rows there are, by their counts."""
        return float(self.totals.sum())

    @property
    def n_features(self) -> int:
        """The number of weights."""
        return int(self.design.shape[1] * self.counts.shape[1])

    @property
    def work(self) -> float:
        """About how many steps one pass takes."""
        return float(2 * self.design.nnz * self.counts.shape[1])

    @property
    def hessian_work(self) -> float:
        """About how many steps the whole Hessian takes: in each row, all pairs of columns that are on."""
        n_rows, n_classes = self.counts.shape
        return float(self.design.nnz**2 / max(1, n_rows) * n_classes**2)

    def log_probabilities(self, weights: Floats) -> Floats:
        """Return the log of the probability of each level in each pattern."""
        return _normalised(self.design @ weights.reshape(self.design.shape[1], -1))

    def losses(self, weights: Floats) -> Floats:
        """Return the loss, as an array of one."""
        return np.array([-(self.counts * self.log_probabilities(weights)).sum()])

    def value_and_gradient(self, weights: Floats, keep: bool = False) -> tuple[float, Floats]:
        """Return the loss and its gradient; `keep` remembers the probabilities."""
        logs = self.log_probabilities(weights)
        probabilities = np.exp(logs)
        if keep:
            self._probabilities = probabilities
        gradient = self.turned @ (self.totals * probabilities - self.counts)
        return float(-(self.counts * logs).sum()), np.asarray(gradient).ravel()

    def product(self, direction: Floats) -> Floats:
        """Return the product of the Hessian with a vector, at the weights that were kept."""
        moved = self.design @ direction.reshape(self.design.shape[1], -1)
        probabilities = self._probabilities
        bent = probabilities * (moved - (probabilities * moved).sum(axis=1, keepdims=True))
        return np.asarray(self.turned @ (self.totals * bent)).ravel()

    def diagonal(self) -> Floats:
        """Return the diagonal of the Hessian at the weights that were kept."""
        probabilities = self._probabilities
        spread = self.totals * probabilities * (1 - probabilities)
        return np.asarray(self.turned.power(2) @ spread).ravel()

    def hessian(self) -> Floats:
        """Return the whole Hessian at the weights that were kept."""
        n_columns, n_classes = self.design.shape[1], self.counts.shape[1]
        matrix = np.zeros((n_columns, n_classes, n_columns, n_classes))
        for one in range(n_classes):
            for two in range(one + 1):
                spread = self._probabilities[:, one] * ((one == two) - self._probabilities[:, two])
                bent = self.design.multiply((self.totals[:, 0] * spread)[:, None])
                block = (self.turned @ bent.tocsr()).toarray()
                matrix[:, one, :, two] = block
                matrix[:, two, :, one] = block
        return matrix.reshape(n_columns * n_classes, -1)

    def tallies(self) -> tuple[Floats, Floats]:
        """Never asked for, because there is a prior."""
        raise NotImplementedError

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Use the caller's thread."""
        yield


@dataclass(frozen=True)
class ConditionalDesign:
    """Terms over the distinct rows of a table without its target."""

    columns: Integers
    n_levels: tuple[int, ...]
    terms: tuple[Term, ...]

    def number(self, term: Term) -> Integers:
        """Return the number of the combination of levels of a term that each row has."""
        number = np.zeros(len(self.columns), dtype=np.int64)
        for column in term:
            number = number * self.n_levels[column] + self.columns[:, column]
        return number

    def size(self, term: Term) -> int:
        """Return the number of combinations of levels of a term."""
        return int(np.prod([self.n_levels[column] for column in term]))

    def need(self, n_classes: int) -> int:
        """Return about how many bytes a fit needs: the design twice, and tables of rows x classes."""
        n_rows = len(self.columns)
        weights = sum(map(self.size, self.terms)) * n_classes
        by_class = (3 * N_FOLDS + 8) * n_rows * n_classes
        return 8 * (5 * n_rows * (len(self.terms) + 1) + by_class + 40 * weights)

    @cached_property
    def design(self) -> tuple[Any, Any]:
        """The design matrix and its transpose: an intercept, and a column for each combination seen."""
        from scipy.sparse import csr_array

        n_rows, n_terms = len(self.columns), len(self.terms)
        columns_of = np.zeros((n_rows, n_terms + 1), dtype=np.int64)
        begin = 1
        for position, term in enumerate(self.terms, 1):
            seen, rank = np.unique(self.number(term), return_inverse=True)
            columns_of[:, position] = begin + rank
            begin += len(seen)
        values = np.ones((n_rows, n_terms + 1))
        values[:, 0] = INTERCEPT
        starts = np.arange(n_rows + 1) * (n_terms + 1)
        made = csr_array((values.ravel(), columns_of.ravel(), starts), shape=(n_rows, begin))
        return made, made.T.tocsr()

    def strongest(self, weights: Floats, counts: Floats, most: int) -> list[int]:
        """Return the columns whose energies differ most between rows, as many as wanted, in their order."""
        _, tables = self.tables(weights, counts.shape[1])
        rows = counts.sum(axis=1)
        spread = []
        for term, table in zip(self.terms, tables, strict=True):
            energies = table[self.columns[:, term[0]]]
            mean = (rows[:, None] * energies).sum(axis=0) / rows.sum()
            spread.append(float((rows[:, None] * (energies - mean) ** 2).sum()))
        order = sorted(range(len(spread)), key=lambda position: (-spread[position], position))
        return sorted(order[:most])

    def tables(self, weights: Floats, n_classes: int) -> tuple[Floats, tuple[Floats, ...]]:
        """Return the intercept and, for each term, the energies of its levels; zero where no row has them."""
        shaped = weights.reshape(-1, n_classes)
        made, begin = [], 1
        for term in self.terms:
            seen = np.unique(self.number(term))
            energies = np.zeros((self.size(term), n_classes))
            energies[seen] = shaped[begin : begin + len(seen)]
            begin += len(seen)
            made.append(energies.reshape(*(self.n_levels[column] for column in term), n_classes))
        return shaped[0] * INTERCEPT, tuple(made)

    def shares(self, counts: Floats) -> tuple[Floats, ...]:
        """Return, for each column, how often each level is seen, as a share of the rows."""
        rows = counts.sum(axis=1)
        shown = (np.bincount(self.columns[:, c], rows, n) for c, n in enumerate(self.n_levels))
        return tuple(seen / rows.sum() for seen in shown)


def _judge_priors(
    layout: ConditionalDesign, everything: Floats, folds: Sequence[Floats], step: Callable[[], object]
) -> list[tuple[float, float]]:
    """Return, for each prior tried, the mean log-likelihood of the rows of each fold given the others."""
    n_judged = max(1.0, float(np.sum(folds)))
    losses = [ConditionalLoss(*layout.design, everything - fold) for fold in folds]
    weights = [np.zeros(one.n_features) for one in losses]
    judged: list[tuple[float, float]] = []
    for sd in GRID:
        total = 0.0
        for position, (loss, fold) in enumerate(zip(losses, folds, strict=True)):
            weights[position] = _fitted(loss, sd, weights[position], ROUGH)
            total += float((fold * loss.log_probabilities(weights[position])).sum())
            step()
        judged.append((sd, total / n_judged))
        if len(judged) > 1 and judged[-1][1] <= judged[-2][1]:
            break
    return judged


def _final(
    layout: ConditionalDesign, counts: Floats, judged: Sequence[tuple[float, float]]
) -> tuple[float, Floats]:
    """Fit all rows under the best prior."""
    sd = max(judged, key=lambda one: one[1])[0]
    loss = ConditionalLoss(*layout.design, counts)
    return sd, _fitted(loss, sd, np.zeros(loss.n_features), FINE)


def _fitted(loss: ConditionalLoss, sd: float, start: Floats, share: float) -> Floats:
    objective = Objective(loss, Gaussian(sd), lambda: None)
    tolerance = max(1e-9, share * loss.n_rows)
    return minimise(objective, start, StopRules(tolerance, MAX_ITERATIONS)).weights


def _normalised(energies: Floats) -> Floats:
    energies = energies - energies.max(axis=1, keepdims=True)
    return np.asarray(energies - np.log(np.exp(energies).sum(axis=1, keepdims=True)))
