"""Tables drawn from known laws, and exact questions to those laws.

A law is a product of factors: the tables of a Bayesian network, or the interactions of a log-linear model.
Given all other columns, the law of two columns needs only the factors that hold one of them, so that a
question about a pair is exact and cheap whatever the number of columns.

>>> rng = np.random.default_rng(0)
>>> law = gated(rng)
>>> data = law.sample(2_000, rng)
>>> a, b = law.gates[0].pair
>>> law.linked_rows(a, b, law.fresh_rows(100)).any()
np.True_
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.data.domain import Domain, Kind, Variable
from unless.inference.model import LogLinearModel

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]
# Positions of columns, and log potentials with one axis for each.
Factor = tuple[tuple[int, ...], Floats]
Named = tuple[str, str]

# A pair is linked in a row if the two share more than this many bits given all other values.
LEAST_BITS = 1e-7
# Joint tables up to this size are written out.
MOST_CELLS = 2_000_000
# Where the settings of the other columns are too many to list, pairs are judged over this many rows.
FRESH_ROWS, FRESH_SEED = 20_000, 977
DATA = Path("../shared/data")
# How `unless.read` names the level of missing values.
MISSING = "missing"


@dataclass(frozen=True)
class TrueGate:
    """A pair that is linked only where each of some columns has one of some levels."""

    pair: Named
    where: tuple[tuple[str, tuple[str, ...]], ...]
    n_levels: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that gate, sorted."""
        return tuple(name for name, _ in self.where)


class Law:
    """A known joint law of categorical columns, as a product of factors.

    Parameters
    ----------
    domain
        The columns and their levels.
    factors
        Scopes (positions of columns) with log potentials; -inf where something cannot happen.
    parents
        For a Bayesian network the parents of each column; the factors are then its conditional tables, in
        the order of the columns.
    gates
        The gates the law was built with.
    by_rows
        Judge over fresh rows rather than over every setting of the other columns.
    notes
        What a study must know besides, such as pairs that go together only by being missing together.
    """

    def __init__(
        self,
        domain: Domain,
        factors: Iterable[Factor],
        *,
        parents: Sequence[tuple[int, ...]] | None = None,
        gates: Iterable[TrueGate] = (),
        by_rows: bool = False,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        self.domain = domain
        self.factors: tuple[Factor, ...] = tuple(
            (tuple(scope), np.asarray(table, dtype=np.float64)) for scope, table in factors
        )
        self.parents = parents
        self.gates = tuple(gates)
        self.by_rows = by_rows
        self.notes = dict(notes or {})
        # Answers that are asked for again and again: rows, marginals, what judges need of a pair.
        self.cache: dict[object, Any] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.domain.names

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """The labels of each column."""
        return tuple(variable.levels for variable in self.domain)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of levels of each column."""
        return tuple(len(variable.levels) for variable in self.domain)

    @property
    def pairs(self) -> list[Named]:
        """All pairs of columns, each sorted by name."""
        return [named(a, b) for a, b in combinations(self.names, 2)]

    # ------------------------------------------------------------------ samples

    def sample(self, n: int, rng: np.random.Generator) -> Dataset:
        """Draw a table; levels that do not occur are not in its domain, as in one read from a file."""
        return dataset_of(self.domain, self.sample_codes(n, rng))

    def sample_codes(self, n: int, rng: np.random.Generator) -> Codes:
        """Draw rows of codes: parents first, from the whole joint table, or by elimination."""
        if self.parents is not None:
            return self._ancestral(n, rng)
        if self._is_small:
            cells = rng.choice(self.joint.size, size=n, p=self.joint.ravel())
            return np.stack(np.unravel_index(cells, self.sizes), axis=1).astype(np.int64)
        return self._backward(n, rng)

    def fresh_rows(self, n: int = FRESH_ROWS) -> Codes:
        """Return rows drawn for judging, always the same."""
        if ("rows", n) not in self.cache:
            self.cache["rows", n] = self.sample_codes(n, np.random.default_rng(FRESH_SEED))
        rows: Codes = self.cache["rows", n]
        return rows

    def _ancestral(self, n: int, rng: np.random.Generator) -> Codes:
        assert self.parents is not None  # noqa: S101 (told to the type checker)
        rows = np.zeros((n, len(self.sizes)), dtype=np.int64)
        for child in _parents_first(self.parents):
            scope, table = self.factors[child]
            by_child = np.moveaxis(np.exp(table), scope.index(child), -1)
            others = [place for place in scope if place != child]
            rows[:, child] = _draw(by_child[tuple(rows[:, place] for place in others)], n, rng)
        return rows

    def _backward(self, n: int, rng: np.random.Generator) -> Codes:
        """Sum columns out one by one, then draw them in the opposite order given those summed out later."""
        rows = np.zeros((n, len(self.sizes)), dtype=np.int64)
        steps: list[tuple[int, Factor]] = []
        _eliminate(self._potentials(), (), self.sizes, steps)
        for column, (scope, table) in reversed(steps):
            by_column = np.moveaxis(table, scope.index(column), -1)
            others = [place for place in scope if place != column]
            rows[:, column] = _draw(by_column[tuple(rows[:, place] for place in others)], n, rng)
        return rows

    # ------------------------------------------------------------------ probabilities

    @property
    def _is_small(self) -> bool:
        return float(np.prod(np.array(self.sizes, dtype=np.float64))) <= MOST_CELLS

    @cached_property
    def joint(self) -> Floats:
        """The whole joint table, one axis for each column, where it is small enough."""
        if not self._is_small:
            raise ValueError("the joint table has too many cells")
        energy = np.zeros(self.sizes)
        for scope, table in self.factors:
            energy = energy + _aligned(scope, table, range(len(self.sizes)))
        joint = np.exp(energy - energy.max())
        return np.asarray(joint / joint.sum())

    def _potentials(self, wanted: Iterable[int] | None = None) -> list[Factor]:
        """Return the factors as potentials; of a network only those of the wanted columns' ancestors."""
        keep = set(range(len(self.factors)))
        if self.parents is not None and wanted is not None:
            waiting, keep = list(wanted), set()
            while waiting:
                column = waiting.pop()
                if column not in keep:
                    keep.add(column)
                    waiting.extend(self.parents[column])
        return [
            (scope, np.exp(table - table.max())) for k, (scope, table) in enumerate(self.factors) if k in keep
        ]

    def marginal(self, columns: Iterable[int]) -> Floats:
        """Return the exact law of some columns, one axis for each in ascending order of position."""
        wanted = tuple(sorted(set(columns)))
        if wanted not in self.cache:
            if self._is_small:
                rest = tuple(place for place in range(len(self.sizes)) if place not in wanted)
                table = self.joint.sum(axis=rest)
            else:
                table = _eliminate(self._potentials(wanted), wanted, self.sizes)
            self.cache[wanted] = table / table.sum()
        marginal: Floats = self.cache[wanted]
        return marginal

    # ------------------------------------------------------------------ columns that determine others

    @cached_property
    def functions(self) -> frozenset[Named]:
        """All (source, column) such that the column is a function of the source, and not constant."""
        if all(np.isfinite(table).all() for _, table in self.factors):
            return frozenset()
        rows = self.fresh_rows()
        found = set()
        for i, source in enumerate(self.names):
            for j, column in enumerate(self.names):
                # Rows refute most candidates quickly; the law itself confirms the others.
                if i != j and _seems_function(rows[:, i], rows[:, j], self.sizes[i], self.sizes[j]):
                    share, majority = self.broken(source, column)
                    if share <= 1e-12 < majority:
                        found.add((source, column))
        return frozenset(found)

    def broken(self, source: str, column: str) -> tuple[float, float]:
        """Return the share of rows that the best function of the source, and a constant, get wrong."""
        i, j = self.domain.index(source), self.domain.index(column)
        table = self.marginal((i, j))
        by_source = table if i < j else table.T
        return float(1 - by_source.max(axis=1).sum()), float(1 - by_source.sum(axis=0).max())

    def left_out(self, a: str, b: str) -> tuple[str, ...]:
        """Return the other columns that an end determines or is determined by: no condition of the pair."""
        ends = {a, b}
        near = {other for pair in self.functions if ends & set(pair) for other in pair}
        return tuple(sorted(near - ends))

    # ------------------------------------------------------------------ pairs

    def _relevant(self, a: str, b: str, keep: Iterable[str]) -> tuple[list[int], list[int], list[Factor]]:
        """Return the columns summed out, those conditioned on and the factors that matter to a pair."""
        ends = {self.domain.index(a), self.domain.index(b)}
        out = {self.domain.index(name) for name in self.left_out(a, b) if name not in set(keep)}
        near = [factor for factor in self.factors if set(factor[0]) & (ends | out)]
        given = {place for scope, _ in near for place in scope} - ends - out
        return sorted(out), sorted(given), near

    def given(self, a: str, b: str, keep: Iterable[str] = ()) -> list[int]:
        """Return the positions of the columns on which p(a, b | all others) may depend."""
        return self._relevant(a, b, keep)[1]

    def is_apart(self, a: str, b: str, keep: Iterable[str] = ()) -> bool:
        """Tell whether no factor joins two columns, so that they are nowhere linked."""
        i, j = self.domain.index(a), self.domain.index(b)
        out, _, near = self._relevant(a, b, keep)
        return not out and not any(i in scope and j in scope for scope, _ in near)

    def conditionals(self, a: str, b: str, rows: Codes, keep: Iterable[str] = ()) -> tuple[Floats, Codes]:
        """Return the distinct tables p(a, b | all others of a row), and which one each row has.

        The columns of `left_out` are summed out, but for those to `keep`.
        """
        i, j = self.domain.index(a), self.domain.index(b)
        out, given, near = self._relevant(a, b, keep)
        which, settings = distinct_settings(rows[:, given], [self.sizes[place] for place in given])
        axes = (i, j, *out)
        energy = np.zeros((len(settings), *(self.sizes[place] for place in axes)))
        for scope, table in near:
            free = [place for place in axes if place in scope]
            fixed = [place for place in scope if place not in axes]
            ordered = table.transpose([scope.index(place) for place in (*fixed, *free)])
            picked = (
                ordered[tuple(settings[:, given.index(place)] for place in fixed)] if fixed else ordered[None]
            )
            shape = [self.sizes[place] if place in free else 1 for place in axes]
            energy += picked.reshape(picked.shape[0], *shape)
        top = energy.max(axis=tuple(range(1, energy.ndim)), keepdims=True)
        tables = np.exp(energy - top).sum(axis=tuple(range(3, energy.ndim)))
        return tables / tables.sum(axis=(1, 2), keepdims=True), which

    def settings(self, a: str, b: str, keep: Iterable[str] = ()) -> tuple[Codes, Floats]:
        """Return rows over which a pair is judged, with their probabilities.

        They are all settings of the columns that matter to the pair, and of those to `keep`; for networks,
        and where these are too many, fresh rows.
        """
        wanted = {*self._relevant(a, b, keep)[1], *(self.domain.index(name) for name in keep)}
        n_cells = float(np.prod([float(self.sizes[place]) for place in wanted]))
        if self.by_rows or n_cells > MOST_CELLS:
            rows = self.fresh_rows()
            return rows, np.full(len(rows), 1 / len(rows))
        table = self.marginal(wanted)
        cells = np.argwhere(table > 0)
        rows = np.zeros((len(cells), len(self.sizes)), dtype=np.int64)
        rows[:, sorted(wanted)] = cells
        return rows, table[table > 0]

    def information(self, a: str, b: str, rows: Codes, keep: Iterable[str] = ()) -> Floats:
        """Return, for each row, the bits that two columns share given all its other values."""
        if self.is_apart(a, b, keep):
            return np.zeros(len(rows))
        tables, which = self.conditionals(a, b, rows, keep)
        return np.asarray(bits(tables)[which])

    def linked_rows(self, a: str, b: str, rows: Codes, keep: Iterable[str] = ()) -> Bools:
        """Tell, for each row, whether p(a, b | all its other values) is no product."""
        return np.asarray(self.information(a, b, rows, keep) > LEAST_BITS)

    def effects(self, a: str, b: str, rows: Codes, keep: Iterable[str] = ()) -> Floats:
        """Return, for each row, the log odds ratios of all pairs of levels of a and of b."""
        tables, which = self.conditionals(a, b, rows, keep)
        return log_odds_ratios(tables)[which]

    def conditional_v(self, a: str, b: str, rows: Codes, keep: Iterable[str] = ()) -> Floats:
        """Return, for each row, Cramér's V of two columns given all its other values."""
        tables, which = self.conditionals(a, b, rows, keep)
        return cramers_v(tables)[which]

    def strength(self, a: str, b: str) -> float:
        """Return I(a; b | all others) in bits."""
        key = ("strength", *named(a, b))
        if key not in self.cache:
            rows, weights = (np.zeros((0, len(self.sizes)), dtype=np.int64), np.zeros(0))
            if not self.is_apart(a, b):
                rows, weights = self.settings(a, b)
            self.cache[key] = float(self.information(a, b, rows) @ weights)
        return float(self.cache[key])


# ---------------------------------------------------------------------- measures of tables p(a, b)


def bits(tables: Floats) -> Floats:
    """Return the mutual information of each table."""
    product = tables.sum(axis=2, keepdims=True) * tables.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(tables > 0, tables * np.log2(tables / product), 0.0)
    return np.asarray(np.maximum(terms.sum(axis=(1, 2)), 0.0))


def cramers_v(tables: Floats) -> Floats:
    """Return Cramér's V of each table, over the levels that can occur in it."""
    of_a, of_b = tables.sum(axis=2, keepdims=True), tables.sum(axis=1, keepdims=True)
    product = of_a * of_b
    with np.errstate(divide="ignore", invalid="ignore"):
        phi2 = np.where(product > 0, (tables - product) ** 2 / product, 0.0).sum(axis=(1, 2))
    least = np.minimum((of_a > 0).sum(axis=(1, 2)), (of_b > 0).sum(axis=(1, 2))) - 1
    return np.asarray(np.sqrt(phi2 / np.maximum(least, 1)))


def log_odds_ratios(tables: Floats) -> Floats:
    """Return the log odds ratios of all pairs of levels; nan where both products of a ratio are zero."""
    first = list(combinations(range(tables.shape[1]), 2))
    second = list(combinations(range(tables.shape[2]), 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(tables)
        ratios = [
            logs[:, i, j] + logs[:, k, m] - (logs[:, i, m] + logs[:, k, j])
            for i, k in first
            for j, m in second
        ]
    return np.stack(ratios, axis=1) if ratios else np.zeros((len(tables), 0))


# ---------------------------------------------------------------------- generators


def independent(n_columns: int, levels: Sequence[int], rng: np.random.Generator) -> Law:
    """Columns that share nothing: numbers of levels out of `levels`, shares from Dirichlet(3)."""
    sizes = [int(size) for size in rng.choice(np.asarray(levels), size=n_columns)]
    factors = [((k,), np.log(rng.dirichlet(np.full(size, 3.0)))) for k, size in enumerate(sizes)]
    return Law(domain_of(sizes), factors)


def pairwise(rng: np.random.Generator, n_columns: int = 8) -> Law:
    """Draw a law without gates: each pair is linked with probability 2/7, on average one link a column."""
    sizes = _sizes(rng, n_columns, (2, 3))
    factors = _unary(rng, sizes, 0.4)
    for a, b in combinations(range(n_columns), 2):
        if rng.random() < 2 / 7:
            factors.append(((a, b), interaction(rng, sizes[a], sizes[b], rng.uniform(0.35, 0.9))))
    return Law(domain_of(sizes), factors)


def gated(rng: np.random.Generator, gate_levels: tuple[int, int] = (2, 4)) -> Law:
    """Draw 8 columns with three pairs linked only at some levels of one of two gates, and five plain links.

    Parameters
    ----------
    rng
        Where the randomness comes from.
    gate_levels
        The least and the largest number of levels of a gate.
    """
    columns = rng.permutation(8)
    gate_columns, others = sorted(columns[:2].tolist()), sorted(columns[2:].tolist())
    sizes = _sizes(rng, 8, (2, 3))
    for gate in gate_columns:
        sizes[gate] = int(rng.integers(gate_levels[0], gate_levels[1] + 1))
    domain = domain_of(sizes)
    factors = _unary(rng, sizes, 0.3)
    gates = []
    switched = _choose(rng, list(combinations(others, 2)), 3)
    for a, b in switched:
        gate = int(rng.choice(gate_columns))
        open_at = proper_subset(rng, sizes[gate])
        factors.append(_switched(rng, sizes, (a, b), {gate: open_at}))
        gates.append(_true_gate(domain, (a, b), {gate: open_at}))
    factors += _plain(rng, sizes, switched, 5)
    return Law(domain, factors, gates=gates)


def gated_by_two(rng: np.random.Generator) -> Law:
    """Draw 8 columns with two pairs linked only where two of three gates allow, and four plain links."""
    columns = rng.permutation(8)
    gate_columns, others = sorted(columns[:3].tolist()), sorted(columns[3:].tolist())
    sizes = _sizes(rng, 8, (2, 3))
    domain = domain_of(sizes)
    factors = _unary(rng, sizes, 0.3)
    gates = []
    switched = _choose(rng, list(combinations(others, 2)), 2)
    for a, b in switched:
        both = sorted(rng.choice(gate_columns, size=2, replace=False).tolist())
        open_at = {gate: proper_subset(rng, sizes[gate]) for gate in both}
        factors.append(_switched(rng, sizes, (a, b), open_at))
        gates.append(_true_gate(domain, (a, b), open_at))
    factors += _plain(rng, sizes, switched, 4)
    return Law(domain, factors, gates=gates)


def rules(rng: np.random.Generator, noise: float = 0.0) -> Law:
    """Draw six columns and a class that follows a rule: g in S, or h in T and x in U.

    So x and the class are linked only where g is not in S and h in T, and h and the class only where g is
    not in S and x in U. Two columns take no part. With `noise`, that share of the classes is flipped.
    """
    sizes = [*_sizes(rng, 6, (2, 4)), 2]
    order = rng.permutation(7)
    sizes = [sizes[k] for k in order]
    y = int(np.flatnonzero(order == 6)[0])
    g, h, x = (int(k) for k in rng.choice([k for k in range(7) if k != y], size=3, replace=False))
    domain = domain_of(sizes)
    factors: list[Factor] = [
        ((k,), np.log(rng.dirichlet(np.full(sizes[k], 3.0)))) for k in range(7) if k != y
    ]
    in_s, in_t, in_u = (proper_subset(rng, sizes[k]) for k in (g, h, x))
    holds = in_s[:, None, None] | (in_t[:, None] & in_u)
    true_share = np.where(holds, 1 - noise, noise)
    with np.errstate(divide="ignore"):
        factors.append(((g, h, x, y), np.log(np.stack([1 - true_share, true_share], axis=-1))))
    gates = [
        _true_gate(domain, (x, y), {g: ~in_s, h: in_t}),
        _true_gate(domain, (h, y), {g: ~in_s, x: in_u}),
    ]
    return Law(domain, factors, gates=gates)


def chain(rng: np.random.Generator, n_columns: int = 20, levels: int = 2) -> Law:
    """Draw columns in a row, each linked to the next."""
    return _pairwise_on(rng, [levels] * n_columns, [(k, k + 1) for k in range(n_columns - 1)])


def grid(rng: np.random.Generator, n_rows: int = 4, n_across: int = 5, levels: int = 2) -> Law:
    """Draw columns on a grid, each linked to those beside, above and below it."""
    place = np.arange(n_rows * n_across).reshape(n_rows, n_across)
    across = list(zip(place[:, :-1].ravel().tolist(), place[:, 1:].ravel().tolist(), strict=True))
    down = list(zip(place[:-1].ravel().tolist(), place[1:].ravel().tolist(), strict=True))
    return _pairwise_on(rng, [levels] * place.size, [*across, *down])


def band(rng: np.random.Generator, n_columns: int = 100, levels: tuple[int, int] = (2, 5)) -> Law:
    """Draw a wide table: each column is linked to one or two of the three before it."""
    sizes = _sizes(rng, n_columns, levels)
    links = []
    for column in range(1, n_columns):
        before = np.arange(max(0, column - 3), column)
        chosen = rng.choice(before, size=min(len(before), int(rng.integers(1, 3))), replace=False)
        links += [(int(other), column) for other in np.sort(chosen)]
    return _pairwise_on(rng, sizes, links)


def network(path: str | Path) -> Law:
    """Read a Bayesian network from a BIF file; pairs are judged over fresh rows."""
    from unless.formats.bif import read_bif

    known = read_bif(path)
    domain = known.domain
    parents = [tuple(domain.index(name) for name in known.parents[child]) for child in domain.names]
    by_scope = dict(factors_of(known.model))
    factors = []
    for child, above in enumerate(parents):
        # Columns of one level are in no table of the reader.
        scope = tuple(place for place in sorted((child, *above)) if len(domain.variables[place].levels) > 1)
        factors.append((scope, by_scope[scope]) if child in scope else ((child,), np.zeros(1)))
    return Law(domain, factors, parents=parents, by_rows=True)


def networks(names: Iterable[str], data: str | Path = DATA) -> dict[str, Law]:
    """Read the published networks of these names from the folder of data."""
    return {name: network(Path(data) / "networks" / f"{name}.bif.gz") for name in names}


def csi(seed: int, n_columns: int = 6) -> Law:
    """Return the domain of `make_csi`, whose gate W switches all other links, as a law."""
    from unless.datasets.synthetic import make_csi

    made = make_csi(n_columns, random_state=seed)
    return Law(made.domain, factors_of(made))


def missing_together(rng: np.random.Generator, share: float = 0.1) -> Law:
    """Draw 6 columns of which two questions, v0 and v1, were skipped together and share nothing else.

    The level of a skipped question is that of `unless.read(missing="level")`. The pair is linked, but only
    its missing values are: `notes["missing"]` names it.
    """
    sizes = [4, 4, *_sizes(rng, 4, (2, 3))]
    skipped = np.zeros((4, 4))
    skipped[3, 3] = share
    answered = np.zeros((4, 4))
    answered[:3, :3] = np.outer(rng.dirichlet(np.full(3, 3.0)), rng.dirichlet(np.full(3, 3.0)))
    with np.errstate(divide="ignore"):
        factors: list[Factor] = [((0, 1), np.log(skipped + (1 - share) * answered))]
    factors += [((k,), rng.normal(0, 0.4, sizes[k])) for k in range(2, 6)]
    for a, b in ((2, 3), (3, 4), (4, 5)):
        factors.append(((a, b), interaction(rng, sizes[a], sizes[b], rng.uniform(0.35, 0.9))))
    labels = [("0", "1", "2", MISSING)] * 2 + [tuple(map(str, range(size))) for size in sizes[2:]]
    domain = Domain(tuple(Variable(f"v{k}", levels, "text") for k, levels in enumerate(labels)))
    return Law(domain, factors, notes={"missing": {("v0", "v1")}})


def cut_confounder(rng: np.random.Generator, bins: int) -> Law:
    """Draw x and y that depend on nothing but a continuous z, which the table has cut at its quantiles.

    What is left of z inside a bin links x and y in the table; `notes["spurious"]` names that pair. Two other
    columns, u and w, are linked to each other.
    """
    z = np.linspace(-6, 6, 24_001)
    density = np.exp(-(z**2) / 2)
    density /= density.sum()
    which = np.minimum((np.cumsum(density) - density / 2) * bins, bins - 1).astype(np.int64)
    sizes = _sizes(rng, 2, (2, 3))
    given_z = []
    for size in sizes:
        slope = rng.choice([-1, 1]) * rng.uniform(1.2, 1.8)
        energy = rng.normal(0, 0.3, size)[:, None] + slope * np.linspace(-1, 1, size)[:, None] * z
        shares = np.exp(energy - energy.max(axis=0))
        given_z.append(shares / shares.sum(axis=0))
    joint = np.zeros((sizes[0], sizes[1], bins))
    for level in range(bins):
        inside = which == level
        joint[:, :, level] = np.einsum(
            "iz,jz,z->ij", given_z[0][:, inside], given_z[1][:, inside], density[inside]
        )
    factors: list[Factor] = [((0, 1, 2), np.log(joint))]
    factors += [((3,), rng.normal(0, 0.4, 2)), ((4,), rng.normal(0, 0.4, 2))]
    factors.append(((3, 4), interaction(rng, 2, 2, rng.uniform(0.35, 0.9))))
    labels = zip(("x", "y", "z", "u", "w"), (*sizes, bins, 2, 2), strict=True)
    domain = Domain(tuple(Variable(name, tuple(map(str, range(size))), "integer") for name, size in labels))
    return Law(domain, factors, notes={"spurious": {("x", "y")}, "given_z": (z, given_z)})


def read_missing(law: Law, n: int, rng: np.random.Generator) -> Dataset:
    """Draw a table with empty cells and read it with `missing="level"`, as a person would."""
    import unless

    codes = law.sample_codes(n, rng)
    columns = {}
    for k, variable in enumerate(law.domain):
        labels = np.array([None if label == MISSING else label for label in variable.levels], dtype=object)
        columns[variable.name] = labels[codes[:, k]].tolist()
    return unless.read(columns, missing="level")


def read_cut(law: Law, n: int, rng: np.random.Generator) -> Dataset:
    """Draw a table in which z of `cut_confounder` is a number, and let `unless.read` cut it at quantiles."""
    import unless

    z, given_z = law.notes["given_z"]
    drawn = np.clip(rng.normal(size=n), z[0], z[-1])
    nearest = np.round((drawn - z[0]) / (z[1] - z[0])).astype(np.int64)
    codes = law.sample_codes(n, rng)
    columns: dict[str, Any] = {
        name: _draw(shares[:, nearest].T, n, rng).astype(str).tolist()
        for name, shares in zip(("x", "y"), given_z, strict=True)
    }
    columns |= {
        "z": drawn.tolist(),
        "u": codes[:, 3].astype(str).tolist(),
        "w": codes[:, 4].astype(str).tolist(),
    }
    return unless.read(columns, bins={"z": law.sizes[2]})


def with_determined(rng: np.random.Generator) -> Law:
    """Draw 8 columns of which one is a function of another, and one a copy of that other.

    `notes["functions"]` lists (source, column). Other columns hang on the function as on any column.
    """
    order = rng.permutation(8)
    a, b, copy = (int(k) for k in order[:3])
    others = [int(k) for k in order[3:]]
    sizes = _sizes(rng, 8, (2, 3))
    sizes[a] = sizes[copy] = int(rng.integers(4, 7))
    sizes[b] = int(rng.integers(2, 4))
    groups = rng.permutation(np.arange(sizes[a]) % sizes[b])
    renamed = rng.permutation(sizes[a])
    factors = _unary(rng, sizes, 0.3)
    with np.errstate(divide="ignore"):
        factors.append(((a, b), np.log((groups[:, None] == np.arange(sizes[b])).astype(np.float64))))
        factors.append(((a, copy), np.log((renamed[:, None] == np.arange(sizes[a])).astype(np.float64))))
    for first, second in [(b, others[0]), (b, others[1]), *_choose(rng, list(combinations(others, 2)), 4)]:
        strength = rng.uniform(0.35, 0.9)
        factors.append(((first, second), interaction(rng, sizes[first], sizes[second], strength)))
    domain = domain_of(sizes)
    names = domain.names
    functions = {
        (names[a], names[b]),
        (names[copy], names[b]),
        (names[a], names[copy]),
        (names[copy], names[a]),
    }
    return Law(domain, factors, notes={"functions": functions})


def one_law_twice(law: Law, n: int, rng: np.random.Generator) -> tuple[Dataset, Dataset]:
    """Draw two tables from one law: whatever is said to differ between them is false."""
    return law.sample(n, rng), law.sample(n, rng)


def link_in_one_group(rng: np.random.Generator, least_v: float = 0.2) -> tuple[Law, Law, Named]:
    """Draw two laws that are the same but for one pair, linked in the second only; returns the pair too."""
    sizes = _sizes(rng, 6, (2, 3))
    domain = domain_of(sizes)
    pairs = list(combinations(range(6), 2))
    linked = _choose(rng, pairs, 5)
    shared = _unary(rng, sizes, 0.3)
    for a, b in linked[:4]:
        shared.append(((a, b), interaction(rng, sizes[a], sizes[b], rng.uniform(0.35, 0.9))))
    a, b = linked[4]
    name_a, name_b = domain.names[a], domain.names[b]
    shape = interaction(rng, sizes[a], sizes[b], 1.0)
    strength = 0.2
    while True:
        other = Law(domain, [*shared, ((a, b), strength * shape)])
        rows, weights = other.settings(name_a, name_b)
        # Pooled over the settings of the others, as a learner sees it.
        if float(np.sqrt(other.conditional_v(name_a, name_b, rows) ** 2 @ weights)) >= least_v:
            return Law(domain, shared), other, named(name_a, name_b)
        strength *= 1.05


# ---------------------------------------------------------------------- parts of generators


def interaction(rng: np.random.Generator, n_first: int, n_second: int, strength: float) -> Floats:
    """Return a doubly centred normal table whose root mean square is `strength`."""
    table = rng.normal(size=(n_first, n_second))
    table = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return np.asarray(table * strength / np.sqrt((table**2).mean()))


def proper_subset(rng: np.random.Generator, n_levels: int) -> Bools:
    """Choose some levels, not none and not all, each such set as likely as any other."""
    number = int(rng.integers(1, 2**n_levels - 1))
    return np.array([number >> level & 1 for level in range(n_levels)], dtype=np.bool_)


def named(a: str, b: str) -> Named:
    """Return a pair with its names sorted."""
    return (a, b) if a < b else (b, a)


def domain_of(sizes: Sequence[int]) -> Domain:
    """Name columns v0, v1, ... with levels 0, 1, ..."""
    return Domain(
        tuple(Variable(f"v{k}", tuple(map(str, range(size))), "integer") for k, size in enumerate(sizes))
    )


def dataset_of(domain: Domain, codes: Codes) -> Dataset:
    """Collapse rows to a table whose columns have the levels that occur."""
    columns, variables = [], []
    for k, variable in enumerate(domain):
        seen, recoded = np.unique(codes[:, k], return_inverse=True)
        labels = tuple(variable.levels[code] for code in seen.tolist()) or variable.levels[:1]
        kind: Kind = variable.kind
        columns.append(recoded.ravel())
        variables.append(Variable(variable.name, labels, kind))
    return Dataset.from_codes(Domain(tuple(variables)), np.stack(columns, axis=1))


def factors_of(model: LogLinearModel) -> list[Factor]:
    """Return the features of a model as tables of log potentials, one for each scope."""
    sizes = model.domain.n_levels.tolist()
    tables: dict[tuple[int, ...], Floats] = {}
    for literals, weight in zip(model.features.arrays.literals(), model.weights.tolist(), strict=True):
        scope = tuple(sorted({variable for variable, _, _ in literals}))
        table = tables.setdefault(scope, np.zeros([sizes[place] for place in scope]))
        holds = np.ones(table.shape, dtype=np.bool_)
        for variable, level, equal in literals:
            axis = scope.index(variable)
            levels = np.arange(sizes[variable]).reshape([-1 if k == axis else 1 for k in range(len(scope))])
            holds &= (levels == level) == bool(equal)
        table[holds] += weight
    return list(tables.items())


def _sizes(rng: np.random.Generator, n: int, bounds: tuple[int, int]) -> list[int]:
    return [int(size) for size in rng.integers(bounds[0], bounds[1] + 1, size=n)]


def _unary(rng: np.random.Generator, sizes: Sequence[int], deviation: float) -> list[Factor]:
    return [((k,), rng.normal(0, deviation, size)) for k, size in enumerate(sizes)]


def _choose(rng: np.random.Generator, pairs: list[tuple[int, int]], n: int) -> list[tuple[int, int]]:
    return [pairs[k] for k in rng.choice(len(pairs), size=n, replace=False).tolist()]


def _plain(
    rng: np.random.Generator, sizes: Sequence[int], but: list[tuple[int, int]], n: int
) -> list[Factor]:
    left = [pair for pair in combinations(range(len(sizes)), 2) if pair not in but]
    return [
        ((a, b), interaction(rng, sizes[a], sizes[b], rng.uniform(0.35, 0.9)))
        for a, b in _choose(rng, left, n)
    ]


def _switched(
    rng: np.random.Generator, sizes: Sequence[int], pair: tuple[int, int], open_at: Mapping[int, Bools]
) -> Factor:
    """Return an interaction that is there only where every gate is at one of its open levels."""
    a, b = pair
    table = interaction(rng, sizes[a], sizes[b], rng.uniform(0.6, 1.1))
    for levels in open_at.values():
        table = table[..., None] * levels
    return (a, b, *open_at), table


def _true_gate(domain: Domain, pair: tuple[int, int], open_at: Mapping[int, Bools]) -> TrueGate:
    variables = domain.variables
    where = {
        variables[gate].name: tuple(np.array(variables[gate].levels)[levels].tolist())
        for gate, levels in open_at.items()
    }
    return TrueGate(
        named(variables[pair[0]].name, variables[pair[1]].name),
        tuple(sorted(where.items())),
        tuple(len(domain[name].levels) for name in sorted(where)),
    )


def _pairwise_on(rng: np.random.Generator, sizes: list[int], links: list[tuple[int, int]]) -> Law:
    factors = _unary(rng, sizes, 0.4)
    for a, b in links:
        factors.append(((a, b), interaction(rng, sizes[a], sizes[b], rng.uniform(0.35, 0.9))))
    return Law(domain_of(sizes), factors)


# ---------------------------------------------------------------------- arithmetic of factors


def _aligned(scope: Sequence[int], table: Floats, axes: Iterable[int]) -> Floats:
    """Give a table one axis for each of `axes` (ascending), of length 1 where it lacks that column."""
    ordered = table.transpose(np.argsort(np.asarray(scope, dtype=np.int64), kind="stable"))
    size_of = dict(zip(sorted(scope), ordered.shape, strict=True))
    return ordered.reshape([size_of.get(axis, 1) for axis in axes])


def _eliminate(
    factors: list[Factor],
    keep: tuple[int, ...],
    sizes: Sequence[int],
    steps: list[tuple[int, Factor]] | None = None,
) -> Floats:
    """Sum all columns out but those to keep, the cheapest first; `steps` gets the product before each sum."""
    left = {place for scope, _ in factors for place in scope} - set(keep)
    while left:
        column = min(sorted(left), key=lambda one: _cells(factors, one, sizes))
        left.discard(column)
        scope, table = _product([factor for factor in factors if column in factor[0]])
        factors = [factor for factor in factors if column not in factor[0]]
        if steps is not None:
            steps.append((column, (scope, table)))
        summed = table.sum(axis=scope.index(column))
        factors.append((tuple(place for place in scope if place != column), summed / summed.max()))
    scope, table = _product(factors)
    return np.broadcast_to(_aligned(scope, table, keep), [sizes[place] for place in keep])


def _product(factors: list[Factor]) -> Factor:
    scope = tuple(sorted({place for one, _ in factors for place in one}))
    table = np.ones([1] * len(scope))
    for one, values in factors:
        table = table * _aligned(one, values, scope)
    return scope, table


def _cells(factors: list[Factor], column: int, sizes: Sequence[int]) -> float:
    together = {place for scope, _ in factors if column in scope for place in scope}
    return float(np.prod([float(sizes[place]) for place in together]))


def _draw(shares: Floats, n: int, rng: np.random.Generator) -> Codes:
    """Draw a code for each row from its own shares, or from the same for all."""
    below = np.cumsum(shares, axis=-1)
    points = rng.random(n)[:, None] * below[..., -1:]
    # Zero shares are never drawn: a point equals no bound but zero.
    drawn = (points >= below).sum(axis=-1).astype(np.int64)
    return np.asarray(np.minimum(drawn, shares.shape[-1] - 1))


def distinct_settings(rows: Codes, sizes: Sequence[int]) -> tuple[Codes, Codes]:
    """Return, for each row, the number of its setting, and the distinct settings."""
    if not rows.shape[1] or not len(rows):
        return np.zeros(len(rows), dtype=np.int64), np.zeros(
            (min(len(rows), 1), rows.shape[1]), dtype=np.int64
        )
    code = np.zeros(len(rows), dtype=np.int64)
    n_codes = 1
    for column, size in enumerate(sizes):
        if n_codes * size >= 2**62:
            # Renumber: there are no more settings than rows.
            code, n_codes = np.unique(code, return_inverse=True)[1].ravel(), len(rows)
        code, n_codes = code * size + rows[:, column], n_codes * size
    _, first, which = np.unique(code, return_index=True, return_inverse=True)
    return which.ravel().astype(np.int64), rows[first]


def _seems_function(source: Codes, column: Codes, n_source: int, n_column: int) -> bool:
    counts = np.bincount(source * n_column + column, minlength=n_source * n_column).reshape(
        n_source, n_column
    )
    return bool(((counts > 0).sum(axis=1) <= 1).all())


def _parents_first(parents: Sequence[tuple[int, ...]]) -> list[int]:
    ordered: list[int] = []
    placed: set[int] = set()
    while len(ordered) < len(parents):
        ready = [k for k, above in enumerate(parents) if k not in placed and placed.issuperset(above)]
        ordered += ready
        placed.update(ready)
    return ordered
