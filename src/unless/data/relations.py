"""Columns of numbers that are copies of each other, or of which another column is a function."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np

from unless.data.columns.levels import is_missing, number_or_null, text_or_null
from unless.data.columns.numbers import roundest
from unless.data.domain import sort_labels
from unless.data.profile import Profile
from unless.data.settings import Settings
from unless.data.sources.session import Source
from unless.typing import Floats

# Rows that refute most pairs, and those that refute nearly all; what is left is checked on every row.
FIRST_ROWS, MORE_ROWS = 500, 5_000
# A function of a number with more steps than this is told by the statements about it.
MOST_STEPS = 8
# Two columns of fewer different numbers may rise together by chance.
LEAST_VALUES = 10
# A copy is left out if it has a number in very few rows where the other has none.
MOST_ALONE = 0.05
# Rows of each level that a step must part.
LEAST_OF_LEVEL = 5
# Pairs checked on every row, at most.
MOST_CHECKS = 300


@dataclass(frozen=True)
class Relation:
    """A column that another one tells: `is_copy` where each tells the other.

    `steps` are, of a column of few levels, the levels in the order of the numbers of the source, each with
    the largest number below it and the smallest number at it.
    """

    source: str
    column: str
    is_copy: bool
    steps: tuple[tuple[str, float, float], ...] = ()


def find_relations(
    source: Source, numbers: Sequence[Profile], few: Sequence[Profile], how: Settings
) -> list[Relation]:
    """Find the columns of numbers, and those of few levels, that a column of numbers tells.

    `numbers` are in the order of the table: of two copies the first is the source.
    """
    table = _fetch(source, [*numbers, *few], {one.name for one in few}, how)
    whole = len(table[numbers[0].name]) < MORE_ROWS
    checker = _Checker(source, how, table, whole)
    relations: dict[str, Relation] = {}
    for position, one in enumerate(numbers):
        if one.name in relations:
            continue
        later = {other.name for other in numbers[position + 1 :]}
        for other in _rising(one, [*numbers[:position], *numbers[position + 1 :]], table):
            if other not in relations:
                relation = checker.monotone(one.name, other, other in later)
                if relation is not None:
                    relations[other] = relation
    determined = set(relations)
    for column in few:
        for one in numbers:
            if one.name not in determined and (relation := checker.steps(one, column)) is not None:
                relations[column.name] = relation
                break
    return list(relations.values())


def _fetch(source: Source, columns: Sequence[Profile], few: Set[str], how: Settings) -> dict[str, Floats]:
    """Return the first rows: numbers, and positions among the sorted labels of columns of few levels."""
    wanted = []
    for position, one in enumerate(columns):
        if one.field.form == "code":
            value = f"{one.field.column}::VARCHAR"
        elif one.is_number and one.field.form in ("integer", "float", "decimal"):
            value = number_or_null(one.field, how)
        else:
            value = text_or_null(one.field, how)
        wanted.append(f"{value} as v{position}")
    found = source.rows(", ".join(wanted), f"limit {MORE_ROWS}")
    listed: dict[str, Floats] = {}
    for position, one in enumerate(columns):
        values = [row[position] for row in found]
        if one.field.form == "code":
            values = [None if value in (None, "-1") else one.field.labels[int(value)] for value in values]
            values = [None if value is not None and is_missing(value, how) else value for value in values]
        if one.name in few:
            positions = _positions(one)
            listed[one.name] = np.array([positions.get(_key(one, value), np.nan) for value in values], float)
        else:
            listed[one.name] = np.array([np.nan if value is None else float(value) for value in values])
    return listed


def _positions(one: Profile) -> dict[str | float, int]:
    """Return the position of each level, by its number if it is one: 1.0 and 1 are one level."""
    return {_key(one, label): position for position, label in enumerate(_labels(one))}


def _key(one: Profile, value: Any) -> str | float:
    if one.is_number and value is not None:
        return float(value)
    # A column of booleans is written as Python writes it.
    return str(value).capitalize() if one.field.form == "boolean" else str(value)


def _labels(one: Profile) -> tuple[str, ...]:
    return sort_labels(one.labels or ())


def _rising(one: Profile, others: Sequence[Profile], table: Mapping[str, Floats]) -> list[str]:
    """Return the columns that only rise, or only fall, with one, as far as the first rows show."""
    x = table[one.name][:FIRST_ROWS]
    if not others:
        return []
    order = np.argsort(x, kind="stable")
    order = order[~np.isnan(x[order])]
    values = np.column_stack([table[other.name][:FIRST_ROWS][order] for other in others])
    steps = np.diff(values, axis=0)
    is_step = (np.diff(x[order]) > 0)[:, None]
    both: list[bool] = np.atleast_1d(
        ((steps > 0) & is_step).any(axis=0) & ((steps < 0) & is_step).any(axis=0)
    ).tolist()
    return [other.name for other, refuted in zip(others, both, strict=True) if not refuted]


@dataclass
class _Checker:
    source: Source
    how: Settings
    table: Mapping[str, Floats]
    is_whole: bool
    n_checks: int = 0

    def monotone(self, source: str, column: str, is_later: bool) -> Relation | None:
        """Return the relation if the column only rises or only falls with the source, on every row."""
        seen = self._pair(source, column)
        # Where each determines the other, the first of the table is kept.
        if seen is None or (seen.is_copy and not is_later):
            return None
        if not self.is_whole:
            seen = self._on_all_rows(source, column, falls=seen.falls)
        if seen is None or (seen.is_copy and not is_later):
            return None
        return Relation(source, column, seen.is_copy)

    def _pair(self, source: str, column: str) -> "_Monotone | None":
        x, y = self.table[source], self.table[column]
        present = ~np.isnan(x) & ~np.isnan(y)
        alone = np.count_nonzero(~np.isnan(y) & np.isnan(x))
        if alone > MOST_ALONE * max(1, int(np.count_nonzero(~np.isnan(y)))):
            return None
        x, y = x[present], y[present]
        if len(np.unique(y)) < LEAST_VALUES or len(np.unique(x)) < LEAST_VALUES:
            return None
        order = np.lexsort((y, x))
        up, across = np.diff(y[order]), np.diff(x[order])
        if ((up != 0) & (across == 0)).any():
            return None
        rises, falls = bool((up > 0).any()), bool((up < 0).any())
        if rises == falls:
            return None
        return _Monotone(not ((up == 0) & (across > 0)).any(), falls)

    def _on_all_rows(self, source: str, column: str, *, falls: bool) -> "_Monotone | None":
        if self.n_checks >= MOST_CHECKS:
            return None
        x, y = (self._sql(name) for name in (source, column))
        if x is None or y is None:
            return None
        self.n_checks += 1
        sign = "-" if falls else ""
        pair = f"(select {x} as x, {sign}({y}) as y from {self.source.relation})"
        torn, broken, flat, alone, n = self.source.session.row(
            "select count(*) filter (where x is not null and low <> high), "
            "count(*) filter (where x is not null and low < before), "
            "count(*) filter (where x is not null and low = before), "
            "coalesce(sum(n) filter (where x is null), 0), sum(n) from (select x, n, low, high, "
            "lag(high) over (order by x nulls last) as before from (select x, count(*) as n, min(y) as low, "
            f"max(y) as high from {pair} where y is not null group by x))"
        )
        if broken or torn or (alone or 0) > MOST_ALONE * max(1, n):
            return None
        return _Monotone(not flat, falls)

    def _sql(self, name: str) -> str | None:
        one = self.source.field(name)
        return None if one.form == "code" else number_or_null(one, self.how)

    def steps(self, source: Profile, column: Profile) -> Relation | None:
        """Return the relation if each level of the column is one range of the source's numbers."""
        x, y = self.table[source.name], self.table[column.name]
        labels = _labels(column)
        if not 2 <= len(labels) <= MOST_STEPS or min((column.labels or {}).values()) < LEAST_OF_LEVEL:
            return None
        present = ~np.isnan(x) & ~np.isnan(y)
        ranges = [
            (float(x[present & (y == position)].min()), float(x[present & (y == position)].max()), position)
            for position in range(len(labels))
            if (present & (y == position)).any()
        ]
        if not _are_separate(ranges):
            return None
        if not self.is_whole:
            number = self._sql(source.name)
            one = self.source.field(column.name)
            if number is None or one.form == "code" or self.n_checks >= MOST_CHECKS:
                return None
            self.n_checks += 1
            positions = _positions(column)
            rows = self.source.session.rows(
                f"select min(x), max(x), y from (select {number} as x, {text_or_null(one, self.how)} as y "
                f"from {self.source.relation}) where x is not null and y is not null group by y order by y"
            )
            keyed = [(low, high, _key(column, label)) for low, high, label in rows]
            ranges = [(low, high, positions[key]) for low, high, key in keyed if key in positions]
            if len(ranges) != len(rows) or not _are_separate(ranges):
                return None
        if len(ranges) != len(labels):
            return None
        ordered = sorted(ranges)
        below = [-inf, *(high for _, high, _ in ordered)]
        steps = tuple(
            (labels[position], before, low)
            for (low, _, position), before in zip(ordered, below, strict=False)
        )
        return Relation(source.name, column.name, is_copy=False, steps=steps)


@dataclass(frozen=True)
class _Monotone:
    is_copy: bool
    falls: bool


def _are_separate(ranges: Sequence[tuple[float, float, int]]) -> bool:
    ordered = sorted(ranges)
    return len(ordered) > 1 and all(first[1] < second[0] for first, second in pairwise(ordered))


def thresholds(relation: Relation, whole: bool, cuts: Sequence[float]) -> tuple[float, ...]:
    """Return the numbers at which the levels of a function change: cuts that are there, or readable ones."""
    return tuple(
        next((cut for cut in cuts if below < cut <= at), roundest(below, at, whole))
        for _, below, at in relation.steps[1:]
    )
