"""A table of categories as distinct rows and counts, how its rows were drawn, and draws from them.

At the end: the distinct rows of matrices of integers, in lexicographic order or as they come.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum, log2
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unless.data.domain import MISSING_LABELS, Code, Domain, level_rows
from unless.data.showing import html_table
from unless.errors import DataError, SettingError, UnknownName
from unless.kernels.compiling import plain_if_small
from unless.typing import Bools, Floats, Integers

Matrix = npt.NDArray[Any]
Positions = npt.NDArray[np.intp]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Design:
    """Weights, clusters and strata of rows that are counted together.

    `weights`, `squares` and `fourths` are the sums of the weights, of their squares and (nearly) of their
    fourth powers over the rows that are counted together; a weight is 1 on average. `clusters` and `strata`
    number those of each row; None where every row is a cluster of its own, or where there is one stratum.
    `columns` names the columns that say so.
    """

    weights: Floats
    squares: Floats
    fourths: Floats
    clusters: Integers | None = None
    strata: Integers | None = None
    columns: tuple[str, ...] = ()

    @property
    def n_effective(self) -> float:
        """The rows of a plain sample with the same error of a mean, by the weights alone (Kish 1965)."""
        return effective_size(self.weights, self.squares)

    @property
    def n_clusters(self) -> int | None:
        """The number of clusters; None where every row is one."""
        return None if self.clusters is None else len(np.unique(self.clusters))

    def _repr_html_(self) -> str:
        rows = [("rows of a plain sample, by the weights", f"{self.n_effective:,.0f}")]
        if self.n_clusters is not None:
            rows.append(("clusters", f"{self.n_clusters:,}"))
        return html_table("Design of a survey", ("", ""), rows, [f"From {', '.join(self.columns)}."])

    def keys(self) -> list[Integers]:
        """Return what tells rows apart beside their levels."""
        return [one for one in (self.strata, self.clusters) if one is not None]

    def taken(self, rows: Bools | Integers) -> "Design":
        """Keep some rows, or put them into another order."""
        clusters, strata = (None if one is None else one[rows] for one in (self.clusters, self.strata))
        sums = self.weights[rows], self.squares[rows], self.fourths[rows]
        return Design(*sums, clusters, strata, self.columns)

    def joined(self, order: Integers, starts: Integers) -> "Design":
        """Sort the rows and add up those between two starts, which are of one cluster and stratum."""
        clusters, strata = (
            None if one is None else one[order][starts] for one in (self.clusters, self.strata)
        )
        weights, squares, fourths = (
            np.add.reduceat(one[order], starts) for one in (self.weights, self.squares, self.fourths)
        )
        return Design(weights, squares, fourths, clusters, strata, self.columns)


def effective_size(weights: Floats, squares: Floats) -> float:
    """Return the square of the sum of weights by the sum of their squares.

    >>> effective_size(np.array([1.0, 3.0]), np.array([1.0, 9.0]))
    1.6
    """
    # Rounded once, the sums are the same in any order.
    total = fsum(weights.tolist())
    return total * total / fsum(squares.tolist()) if total else 0.0


def whole_numbers(weights: Sequence[float] | Floats) -> Integers:
    """Round weights to whole numbers that add up to their sum, in proportion in every run of rows.

    This is systematic sampling with probability proportional to the weight, from half a step on: rows that
    are left out and rows that are counted say nothing of what they hold but through the weight.

    >>> whole_numbers([0.5, 0.5, 1.0, 0.25, 2.75]).tolist()
    [0, 1, 1, 0, 3]
    """
    ends = np.floor(np.cumsum(np.asarray(weights, dtype=np.float64)) + 0.5 - 1e-9)
    return np.diff(ends, prepend=0.0).astype(np.int64)


if TYPE_CHECKING:
    from unless.data.plan import Plan

Rows = npt.NDArray[np.uint16]
Counts = Integers
# Beyond this a share of the rows is no longer exact.
MOST_ROWS = 2**53


@dataclass(frozen=True, eq=False)
class Detail:
    """The rows of a table as tests read them: with finer groups of cut numbers, and with missing values.

    A number that is cut into a few groups still varies inside each, so that columns which both follow it look
    linked though they are not. Tests hold the finer groups fixed instead: `finer` gives, by name of a cut
    column, the finer group of each row; each lies inside one level. `missing` tells, by name of a column with
    missing values, in which rows they are (the code there means nothing): a test takes the rows that have
    what it needs. `design` has the weights, clusters and strata of the rows of a survey. Rows are sorted,
    with their counts; two of them may have the same levels.
    """

    rows: Rows
    counts: Counts
    finer: Mapping[str, Rows] = field(default_factory=dict)
    missing: Mapping[str, Bools] = field(default_factory=dict)
    design: Design | None = None

    @classmethod
    def of(
        cls,
        rows: Rows,
        counts: Counts,
        finer: Mapping[str, Rows] | None = None,
        missing: Mapping[str, Bools] | None = None,
        design: Design | None = None,
    ) -> "Detail":
        """Collapse rows that are alike in all of these."""
        finer, missing = finer or {}, {name: holes for name, holes in (missing or {}).items() if holes.any()}
        width, n_finer = rows.shape[1], len(finer)
        beside = [*(finer[name] for name in sorted(finer)), *(missing[name] for name in sorted(missing))]
        whole = np.column_stack([rows, *beside]).astype(Code)
        if design is None:
            whole, counts = _collapse(whole, counts)
        else:
            keys = design.keys()
            order = np.lexsort([*keys[::-1], *whole.T[::-1]])
            whole, counts = whole[order], counts[order]
            changes = (whole[1:] != whole[:-1]).any(axis=1)
            for key in keys:
                changes |= np.diff(key[order]) != 0
            starts = np.flatnonzero(np.r_[True, changes])
            whole, counts = np.ascontiguousarray(whole[starts]), np.add.reduceat(counts, starts)
            design = design.joined(order, starts)
        groups = {name: whole[:, width + place] for place, name in enumerate(sorted(finer))}
        holes = {name: whole[:, width + n_finer + place] > 0 for place, name in enumerate(sorted(missing))}
        return cls(whole[:, :width], counts, groups, holes, design)

    def select(self, positions: list[int], names: Iterable[str]) -> "Detail | None":
        """Keep some columns; None where no more is known of them than their levels."""
        kept = set(names)
        finer = {name: codes for name, codes in self.finer.items() if name in kept}
        missing = {name: holes for name, holes in self.missing.items() if name in kept}
        if not finer and not missing and self.design is None:
            return None
        return Detail.of(self.rows[:, positions], self.counts, finer, missing, self.design)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Distinct rows of level codes with their counts, sorted: the order of the table's rows is forgotten.

    Made by `unless.read` or `Dataset.from_codes`. `notes` says, in sentences, what reading did to the table;
    `plan`, if there is one, what it does with each column, so that another table can be read the same way.
    `detail` has the rows as tests read them, where numbers were cut, values are missing, or rows have
    weights, clusters or strata. `weights`, if there are any, are the sums of the weights of the rows that
    are counted together, 1 for each row on average.
    """

    domain: Domain
    rows: Rows
    counts: Counts
    notes: tuple[str, ...] = ()
    detail: Detail | None = None
    plan: "Plan | None" = None
    weights: Floats | None = None

    @classmethod
    def from_codes(
        cls,
        domain: Domain,
        codes: npt.ArrayLike,
        counts: npt.ArrayLike | None = None,
        notes: Iterable[str] = (),
        weights: Floats | None = None,
    ) -> "Dataset":
        """Collapse rows of codes, each worth its count, to distinct rows in lexicographic order.

        `weights` are those of a survey: of each row all that it counts.
        """
        table = _checked_codes(domain, np.asarray(codes))
        worth = _checked_counts(np.ones(len(table)) if counts is None else np.asarray(counts), len(table))
        there = worth > 0
        made = cls(domain, *_collapse(table[there], worth[there]), tuple(notes))
        return made if weights is None else replace(made, weights=_collapse(table[there], weights[there])[1])

    def __post_init__(self) -> None:
        # Models are filed under these rows, and may share them.
        self.rows.setflags(write=False)
        self.counts.setflags(write=False)
        if self.weights is not None:
            self.weights.setflags(write=False)

    @property
    def design(self) -> Design | None:
        """The weights, clusters and strata of the rows that tests read, if there are any."""
        return None if self.detail is None else self.detail.design

    def self_weighting(self, design_effect: float = 1.0) -> "Dataset":
        """Return rows that all count the same: a sample of these, by weight, of their effective size.

        For what needs whole numbers of rows. It is drawn systematically from the sorted rows, and is always
        the same; a design effect beyond that of the weights makes it smaller. A table without weights is
        itself.
        """
        if self.weights is None or self.design is None:
            return self
        share = self.design.n_effective / float(self.design.weights.sum()) / max(1.0, design_effect)
        counts = whole_numbers(self.weights * share)
        made = Dataset.from_codes(self.domain, self.rows, counts, self.notes)
        return replace(made, plan=self.plan)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables, in column order."""
        return self.domain.names

    @property
    def n_variables(self) -> int:
        """The number of columns."""
        return len(self.domain)

    @property
    def n_distinct(self) -> int:
        """The number of distinct rows."""
        return len(self.rows)

    @cached_property
    def n_rows(self) -> int:
        """The number of rows of the table, repeated ones included."""
        return int(self.counts.sum())

    @cached_property
    def constant_names(self) -> tuple[str, ...]:
        """The variables that show a single level."""
        if not len(self.rows):
            return self.names
        still = (self.rows == self.rows[0]).all(axis=0)
        return tuple(name for name, constant in zip(self.names, still, strict=True) if constant)

    def index(self, name: str) -> int:
        """Return the position of a column; for one that was left out in reading, say why it was."""
        if self.plan is not None and name not in self.domain and name in self.plan:
            line = self.plan[name]
            made = [one for one in (*line.made, line.source) if one in self.domain]
            way = f"name {made[0]!r}" if made else "say what it is with roles= to keep it"
            raise UnknownName(
                f"Column {name!r} is not in the table as it was read: {line.description}; {way}."
            )
        return self.domain.index(name)

    def select(self, names: Iterable[str]) -> "Dataset":
        """Keep these columns, in this order, and collapse again."""
        wanted = tuple(names)
        positions = [self.domain.index(name) for name in wanted]
        chosen = Dataset.from_codes(
            self.domain.select(wanted), self.rows[:, positions], self.counts, self.notes, self.weights
        )
        detail = self.detail and self.detail.select(positions, wanted)
        return replace(chosen, plan=self.plan, detail=detail)

    def __len__(self) -> int:
        return self.n_rows

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Dataset)
            and self.domain == other.domain
            and np.array_equal(self.rows, other.rows)
            and np.array_equal(self.counts, other.counts)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Dataset: {self.n_rows:,} rows ({self.n_distinct:,} distinct) x {self.n_variables} columns>"

    def _repr_html_(self) -> str:
        rows = level_rows(self.domain)
        return html_table(repr(self)[1:-1], ("column", "levels", ""), rows, self.notes)


def _checked_codes(domain: Domain, codes: npt.NDArray[Any]) -> Rows:
    if codes.ndim != 2 or codes.shape[1] != len(domain):
        raise DataError(f"The codes have the shape {codes.shape}; give rows of {len(domain)} codes each.")
    # Whole numbers need not become floats to show that they are whole.
    whole = codes.dtype.kind in "iub" or bool((codes == np.floor(codes)).all())
    if codes.size and not (whole and ((codes >= 0) & (codes < domain.n_levels)).all()):
        raise DataError("A code is outside the levels of its variable; give codes from 0 to levels - 1.")
    return np.ascontiguousarray(codes, dtype=Code)


def _checked_counts(counts: npt.NDArray[Any], n_rows: int) -> Counts:
    if counts.shape != (n_rows,):
        raise DataError(f"There are {counts.size:,} counts for {n_rows:,} rows; give one for each row.")
    if not ((counts >= 0) & (counts == np.floor(counts))).all():
        raise DataError("A count is negative or no whole number; give counts of 0 or more.")
    if counts.sum(dtype=np.float64) >= MOST_ROWS:
        raise DataError("The counts add up to 2^53 or more, which cannot be counted exactly; divide them.")
    return counts.astype(np.int64)


def _collapse(rows: Rows, weights: npt.NDArray[Any]) -> tuple[Rows, npt.NDArray[Any]]:
    if not len(rows):
        return rows, weights
    order = code_order(rows)
    rows, weights = rows[order], weights[order]
    starts = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)])
    return np.ascontiguousarray(rows[starts]), np.add.reduceat(weights, starts)


def unknown_levels(data: Dataset) -> dict[str, int]:
    """Return the columns whose missing values the plan made a level, for want of complete rows, and its code.

    The level keeps rows for learners and models. To tests it is no value: they take other rows. A column that
    was ticked or not, or whose level was asked for, is not among these.
    """
    found = {}
    for line in () if data.plan is None else data.plan.lines:
        if line.included and line.missing and line.name in data.domain:
            levels = data.domain[line.name].levels
            codes = [code for code, level in enumerate(levels) if level in MISSING_LABELS]
            if len(codes) == 1 and len(levels) > 2:
                found[line.name] = codes[0]
    return found


# numpy draws without putting back from no more rows than this.
_MOST_ROWS = 10**9


def hold_out(data: Dataset, share: float, random_state: Any = None) -> tuple[Dataset, Dataset]:
    """Cut a table in two: the rows to learn from, and a share of all rows, drawn at random, to judge by.

    The order of the rows and of the columns has no say in the draw.
    """
    check_share(share)
    n_aside = round(share * data.n_rows)
    order, aside = _settled_order(data), np.empty_like(data.counts)
    if data.n_rows:
        aside[order] = _draw(np.random.default_rng(random_state), data.counts[order], n_aside)
    if not 0 < aside.sum() < data.n_rows:
        raise DataError(
            f"Setting {share:g} of {data.n_rows:,} rows aside leaves none on one side; give more rows, "
            "another share, or a single setting that needs no judging."
        )
    return _take(data, data.counts - aside), _take(data, aside)


def resample(data: Dataset, rng: np.random.Generator, share: float | None = None) -> Dataset:
    """Draw as many rows as there are, each put back; or a share of them, none put back.

    The domain is kept: a level that no row drawn has is still one. The order of the rows and of the columns
    has no say in the draw.
    """
    order, counts = _settled_order(data), np.empty_like(data.counts)
    settled = data.counts[order]
    if share is None:
        counts[order] = rng.multinomial(data.n_rows, settled / data.n_rows)
    else:
        counts[order] = _draw(rng, settled, max(1, round(share * data.n_rows)))
    return _take(data, counts)


def _settled_order(data: Dataset) -> npt.NDArray[np.intp]:
    by_name = np.argsort(np.array(data.names, dtype=object), kind="stable")
    return code_order(data.rows[:, by_name])


def check_share(share: object, setting: str = "validation") -> None:
    """Refuse what is no share of rows."""
    if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0 < float(share) < 1:
        raise SettingError(f"{setting}={share!r} must be a share of the rows between 0 and 1, such as 0.3.")


def check_seed(seed: object) -> None:
    """Refuse what is no seed of draws."""
    is_seed = isinstance(seed, int | np.integer) and not isinstance(seed, bool) and int(seed) >= 0
    if seed is not None and not is_seed:
        raise SettingError(f"random_state={seed!r} must be a whole number of 0 or more, or None.")


def _draw(rng: np.random.Generator, counts: Integers, n_aside: int) -> Integers:
    total = int(counts.sum())
    if total < _MOST_ROWS:
        return rng.multivariate_hypergeometric(counts, n_aside, method="marginals")
    return rng.binomial(counts, n_aside / total)


def _take(data: Dataset, counts: Integers) -> Dataset:
    present = counts > 0
    return Dataset.from_codes(data.domain, data.rows[present], counts[present], data.notes)


def regression_steps(data: Dataset) -> float:
    """Return about how many scalar steps it takes to regress every column on the others."""
    n_rows = data.n_distinct if data.detail is None else max(data.n_distinct, len(data.detail.rows))
    return 30.0 * n_rows * float(np.maximum(1, data.domain.n_levels - 1).sum()) ** 2


def distinct_rows(matrix: Matrix) -> tuple[Matrix, Positions]:
    """Return the distinct rows, sorted, and for every row of the matrix its position among them."""
    first, group = _groups(matrix)
    return _in_order(matrix[first], group)


def distinct_bytes(matrix: Bytes) -> tuple[Bytes, Positions]:
    """Return the distinct rows as they come first, and for every row its position among them."""
    # Imported here: kernels are slow to load, and most that reads structures does not need them.
    from unless.kernels.bits import number_rows

    first, numbers = np.empty((2, len(matrix)), dtype=np.intp)
    slots = np.full(1 << (2 * len(matrix)).bit_length(), -1, dtype=np.int32)
    with plain_if_small(10.0 * matrix.size):
        n_distinct = number_rows(_as_words(matrix), slots, first, numbers)
    return matrix[first[:n_distinct]], numbers


def are_distinct(matrix: Bytes) -> bool:
    """Tell whether no row is there twice."""
    return len(_groups(_as_words(matrix))[0]) == len(matrix)


def come_in_order(numbers: npt.NDArray[Any]) -> bool:
    """Tell whether whole numbers from 0 on come first in their order."""
    most = np.maximum.accumulate(numbers)
    return not len(most) or bool(most[0] == 0 and (np.diff(most) <= 1).all())


def row_set(matrix: Matrix) -> Matrix:
    """Return the distinct rows, sorted; faster than `distinct_rows` where a row fits into one integer."""
    radices = [int(top) + 1 for top in matrix.max(axis=0, initial=0)]
    if sum(map(log2, radices)) > 62:
        return distinct_rows(matrix)[0]
    keys = np.zeros(len(matrix), dtype=np.int64)
    for column, radix in zip(matrix.T, radices, strict=True):
        keys = keys * radix + column.astype(np.int64)
    keys = np.unique(keys)
    rows = np.empty((len(keys), len(radices)), dtype=matrix.dtype)
    for position, radix in reversed(list(enumerate(radices))):
        keys, rows[:, position] = np.divmod(keys, radix)
    return rows


def row_order(matrix: Matrix) -> Positions:
    """Return the positions that sort the rows lexicographically."""
    if not matrix.shape[1]:
        return np.arange(len(matrix))
    if matrix.dtype == np.uint8:
        # Rows of bytes sort as strings do, which takes one pass instead of one a column.
        return np.argsort(np.ascontiguousarray(matrix).view(f"S{matrix.shape[1]}").ravel(), kind="stable")
    if matrix.dtype == np.uint16:
        return code_order(matrix)
    return np.lexsort(matrix.T[::-1])


def code_order(rows: npt.NDArray[np.uint16]) -> npt.NDArray[np.intp]:
    """Return the order of `np.lexsort`, by the first column first, in calls that Ctrl-C can interrupt."""
    widths = rows.max(axis=0, initial=0).astype(np.int64) + 1
    order = None
    end = rows.shape[1]
    while end > 0:
        # As many columns at a time as 16 bits hold, which numpy sorts digit by digit.
        begin, width = end - 1, int(widths[end - 1])
        while begin > 0 and width * int(widths[begin - 1]) <= 2**16:
            begin -= 1
            width *= int(widths[begin])
        key = rows[:, begin].astype(np.uint32)
        for column in range(begin + 1, end):
            key = key * np.uint32(widths[column]) + rows[:, column]
        short = key.astype(np.uint16)
        order = short.argsort(kind="stable") if order is None else order[short[order].argsort(kind="stable")]
        end = begin
    return np.arange(len(rows)) if order is None else order


def rows_increase(matrix: Matrix) -> bool:
    """Tell whether every row is lexicographically larger than the one before it."""
    if matrix.shape[1] and matrix.dtype in (np.uint8, np.uint16):
        # As texts, which are compared by their bytes, the highest first.
        wide = matrix.astype(matrix.dtype.newbyteorder(">"), order="C")
        texts = wide.view(f"S{wide.itemsize * wide.shape[1]}").ravel()
        return bool((texts[:-1] < texts[1:]).all())
    before, after = matrix[:-1], matrix[1:]
    differ = before != after
    if not differ.any(axis=1).all():
        return False
    where = differ.argmax(axis=1)[:, None] if matrix.shape[1] else np.zeros((0, 1), dtype=np.intp)
    return bool((np.take_along_axis(before, where, 1) < np.take_along_axis(after, where, 1)).all())


def _as_words(matrix: Bytes) -> npt.NDArray[np.uint64]:
    """Return bytes as words, eight at a time."""
    width = matrix.shape[1]
    padded = np.zeros((len(matrix), -(-width // 8) * 8), dtype=np.uint8)
    padded[:, :width] = matrix
    return padded.view(np.uint64)


def _in_order(rows: Matrix, group: Positions) -> tuple[Matrix, Positions]:
    order = row_order(rows)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rows[order], rank[group]


def _groups(matrix: Matrix) -> tuple[Positions, Positions]:
    # Sorting one hash per row is several times faster than sorting rows; the comparison makes it exact.
    hashes = _hashes(matrix)
    # Not a stable sort, which is slower: it does not matter which of equal rows is met first.
    first, group = _runs(np.argsort(hashes), hashes[:, None])
    if all(np.array_equal(column[first][group], column) for column in matrix.T):
        return first, group
    return _runs(row_order(matrix), matrix)


def _runs(order: Positions, matrix: Matrix) -> tuple[Positions, Positions]:
    """Return the first of each run of equal rows, which an order brings together, and the run of each row."""
    ordered = matrix[order]
    starts = np.ones(len(order), dtype=np.bool_)
    starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    group = np.empty_like(order)
    group[order] = np.cumsum(starts) - 1
    return order[starts], group


def _hashes(matrix: Matrix) -> npt.NDArray[np.uint64]:
    hashes = np.zeros(len(matrix), dtype=np.uint64)
    for column in matrix.T:
        hashes ^= column.astype(np.uint64)
        hashes *= np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    return hashes


def checked_rows(domain: Domain, rows: npt.ArrayLike) -> Rows:
    """Refuse what are no rows of codes of a domain."""
    codes: npt.NDArray[Any] = np.asarray(rows)
    if codes.ndim != 2 or codes.shape[1] != len(domain) or codes.dtype.kind not in "iu":
        raise DataError(
            f"Codes of the shape {codes.shape} and type {codes.dtype} are no rows of this model; give "
            f"rows of {len(domain)} whole numbers."
        )
    if codes.size and ((codes < 0) | (codes >= domain.n_levels)).any():
        raise DataError("A code is outside the levels of its variable; give codes from 0 to levels - 1.")
    return np.ascontiguousarray(codes, dtype=Code)
