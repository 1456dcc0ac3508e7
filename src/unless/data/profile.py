"""What every column of a table holds, in few passes: how many values, which ones, numbers, dates or words."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as attribute
from datetime import datetime
from math import inf, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.columns.levels import (
    NUMERIC,
    kind_of_labels,
    label_values,
    number_or_null,
    text_or_null,
    text_sql,
)
from unless.data.columns.numbers import Numbers
from unless.data.columns.texts import (
    FORMATS,
    LEAST_SEVERAL,
    MOST_CELLS,
    SEPARATORS,
    Choices,
    Numerals,
    find_choices,
    find_numerals,
    formats_of,
    might_be_number_sql,
    moment_sql,
    number_in_sql,
    parse_moment,
    part_of,
    part_sql,
    signature_sql,
)
from unless.data.domain import Kind
from unless.data.settings import DAY_FIRST, Settings
from unless.data.sources.session import SHORT, Field, Source, quoted

# Values of a column are listed with their counts where they are about this many or fewer.
LISTED = 1000
# Rows looked at first: what they show not to be a number or a date needs no closer look.
HEAD = 1000
# Quantiles that stand for the numbers of a column with more values than are listed.
QUANTILES = 200
DATE_PARTS = ("year", "quarter", "month", "weekday", "hour")
# Different texts of a column, at most, in which several answers are looked for, and ways of writing numbers.
_MOST_TEXTS, _MOST_SIGNATURES = 2**16, 1000
# Columns in one query: each pass over a text file takes much time, and each of its sums some memory.
_BLOCK = 200
# Numbers that one query sorts, and distinct values that it counts.
_CELLS = 2**25
# With a sign before or behind, and separators between digits.
_SIGNED = re.compile(r"[-+(]?[^\w\s.,()+-]{0,3}\s?[0-9][0-9., ']*\s?([^\w\s.,()+-]{0,3}|EUR|USD|GBP|CHF)\)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
# A code, such as 01234, whose zeros mean something.
_CODE = re.compile(r"[+-]?0\d+", re.ASCII)


@dataclass
class Dates:
    """The moments of a column: how they are written, the first and last, and how often each part occurs."""

    written: str
    first: datetime
    last: datetime
    n_days: int
    n_moments: int
    parts: dict[str, dict[int, int]]


@dataclass
class Profile:
    """What one column holds.

    `labels` are its values with their counts where they are few, else None; `n_values` is then about right
    unless `n_exact` says it. Missing values are no values.
    """

    field: Field
    n_rows: int
    n_present: int = 0
    n_values: int = 0
    n_exact: int | None = None
    labels: dict[str, int] | None = None
    kind: Kind | None = None
    is_number: bool = False
    is_whole: bool = False
    is_code: bool = False
    is_signed: bool = False
    # Of text: rows that may be numbers, that may hold several answers, and codes with a zero first.
    signs: tuple[int, ...] | None = None
    # How the numbers of a column of text are written, if it holds such, and the choices in its cells.
    numerals: Numerals | None = None
    choices: Choices | None = None
    low: float = inf
    high: float = -inf
    numbers: Numbers | None = None
    dates: Dates | None = None
    n_letters: int = 0
    n_words: int = 0
    formats: list[str] = attribute(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.field.name

    @property
    def n_missing(self) -> int:
        """How many rows have no value."""
        return self.n_rows - self.n_present

    @property
    def is_unique(self) -> bool:
        """Whether each row has a value, and none has that of another."""
        return self.n_exact == self.n_rows == self.n_present


def count_values(source: Source, fields: Sequence[Field], weight: str) -> tuple[int, dict[str, int]]:
    """Count the rows, and about how many values each column has."""
    wanted = [f"coalesce(try_cast(sum({weight}) as BIGINT), 0)"]
    wanted += [f"approx_count_distinct({one.column})" for one in fields]
    n_rows, *about = source.row(", ".join(wanted))
    return int(n_rows), {one.name: int(n) for one, n in zip(fields, about, strict=True)}


def profile(source: Source, fields: Sequence[Field], how: Settings, weight: str) -> dict[str, Profile]:
    """Look at all columns; `weight` is the SQL of how many rows a row of the relation stands for."""
    return _Profiler(source, how, weight).profile(fields)


@dataclass(frozen=True)
class _Profiler:
    """The table that is looked at."""

    source: Source
    how: Settings
    weight: str

    def profile(self, fields: Sequence[Field]) -> dict[str, Profile]:
        """List the values of columns that have few; look closer at the others."""
        stored = [one for one in fields if one.form not in ("code", "unusable")]
        n_rows, about = count_values(self.source, stored, self.weight)
        profiles = {one.name: Profile(one, n_rows) for one in fields}
        if not n_rows:
            return profiles
        for one in fields:
            if one.form == "code":
                _take_labels(profiles[one.name], self._code_counts(one), self.how)
        for start in range(0, len(stored), _BLOCK):
            block = [profiles[one.name] for one in stored[start : start + _BLOCK]]
            few = [each for each in block if about[each.name] <= LISTED]
            for each, counts in zip(few, self._histograms(few, is_short=n_rows <= SHORT), strict=True):
                _take_labels(each, counts, self.how)
            many = [each for each in block if about[each.name] > LISTED]
            for each in many:
                each.n_values = about[each.name]
            if many:
                self._look_closer(many)
        return profiles

    def _code_counts(self, one: Field) -> dict[str, int]:
        array = self._array(one) if self.weight == "1" else None
        if array is not None:
            return _count_array(array[array >= 0])
        wanted = f"{one.column}, sum({self.weight})::BIGINT"
        rows = self.source.rows(wanted, f"where {one.column} >= 0 group by 1")
        return {str(code): int(n) for code, n in sorted(rows)}

    def _histograms(self, few: Sequence[Profile], *, is_short: bool) -> list[Mapping[str, int]]:
        """Count the values of columns that have few, as the database writes them."""
        if not few:
            return []
        if self.weight == "1":
            arrays = {one.name: array for one in few if (array := self._array(one.field)) is not None}
            asked = [one for one in few if one.name not in arrays]
            counts = "list_aggregate(list({}), 'histogram')" if is_short else "histogram({})"
            wanted = ", ".join(counts.format(f"{one.field.column}::VARCHAR") for one in asked)
            counted = iter(self.source.row(wanted) if asked else ())
            return [
                _count_array(arrays[one.name]) if one.name in arrays else _as_dict(next(counted))
                for one in few
            ]
        return [
            dict(
                self.source.rows(
                    f"{one.field.column}::VARCHAR as v, sum({self.weight})::BIGINT",
                    "group by 1 having v is not null order by 1",
                )
            )
            for one in few
        ]

    def _array(self, one: Field) -> npt.NDArray[Any] | None:
        """Return the array of numbers of a column, if the table is in memory: the database takes longer."""
        arrays = self.source.keep_alive[0] if self.source.keep_alive else None
        array = arrays.get(one.column) if isinstance(arrays, dict) else None
        return array if isinstance(array, np.ndarray) and array.dtype.kind in "iufb" else None

    def _look_closer(self, many: Sequence[Profile]) -> None:
        """Look at columns whose values are too many to be listed."""
        self._sum_up(many)
        self._count_exactly(many)
        self._find_quantiles([one for one in many if one.is_number and not self._numbers_rows(one)])
        for one in many:
            if one.formats and not one.is_number:
                self._look_at_dates(one)
        texts = [one for one in many if not one.is_number and not one.formats and not one.is_code]
        self._look_at_texts([one for one in texts if not _is_typed(one.field)])

    def _sum_up(self, block: Sequence[Profile]) -> None:
        """Count values, numbers and dates, in columns where the first rows do not refute them."""
        raw, inner, outer = [], [], []
        for i, (one, head) in enumerate(zip(block, self._heads(block), strict=True)):
            one.is_number = _is_typed(one.field) or all(map(_is_plain_number, head))
            is_text = one.field.form not in (*NUMERIC, "boolean")
            one.formats = formats_of(head) if is_text and head else []
            # In steps, so that each is worked out once; a number never stands for a missing value.
            if _is_typed(one.field):
                raw.append(f"{number_or_null(one.field, self.how)} as r{i}")
                inner.append(f"r{i} as t{i}, r{i} as n{i}")
            elif one.is_number:
                given = one.field.column if one.field.form == "words" else text_sql(one.field)
                raw.append(f"try_cast({given} as DOUBLE) as n{i}, {given} as r{i}")
                plain = f"isfinite(n{i})" if self.how.missing_values is None else "false"
                text = text_or_null(one.field, self.how, f"r{i}")
                inner.append(f"case when {plain} then r{i} else {text} end as t{i}, n{i}")
            else:
                raw.append(f"{text_or_null(one.field, self.how)} as t{i}")
                inner.append(f"t{i}")
            outer.append(_sums(i, one, self.weight))
        table = f"(select {', '.join(raw)}, {self.weight} as w from {self.source.relation})"
        found = self.source.session.row(
            f"select {', '.join(outer)} from (select {', '.join(inner)}, w from {table})"
        )
        sums = iter(found)
        for one in block:
            _take_sums(one, sums)

    def _heads(self, block: Sequence[Profile]) -> list[list[str]]:
        """Return the values of the first rows of each column that are not missing."""
        wanted = ", ".join(f"{text_or_null(one.field, self.how)} as h{i}" for i, one in enumerate(block))
        rows = self.source.rows(wanted, f"limit {HEAD}")
        return [[row[i] for row in rows if row[i] is not None] for i in range(len(block))]

    def _count_exactly(self, many: Sequence[Profile]) -> None:
        """Count the values of columns that may have a different one in each row."""
        near = [
            one
            for one in many
            # The approximate count is rarely off by more than a tenth.
            if one.n_values >= 0.8 * one.n_present
            and (not one.is_number or (one.is_whole and one.high - one.low < 2 * one.n_present))
        ]
        for block in _blocks(near):
            wanted = ", ".join(f"count(distinct {text_or_null(one.field, self.how)})" for one in block)
            found = self.source.row(wanted)
            for one, n_values in zip(block, found, strict=True):
                one.n_exact = one.n_values = int(n_values)

    def _numbers_rows(self, one: Profile) -> bool:
        return one.is_unique and one.high - one.low + 1 == one.n_rows and one.name not in self.how.roles

    def _find_quantiles(self, many: Sequence[Profile]) -> None:
        """Let quantiles stand for numbers; where rows have counts, all numbers with their rows."""
        shares = ", ".join(f"{(step + 0.5) / QUANTILES:.5f}" for step in range(QUANTILES))
        for block in _blocks(many) if self.weight == "1" else ():
            wanted = ", ".join(
                f"quantile_disc({number_or_null(one.field, self.how)}, [{shares}])" for one in block
            )
            found = self.source.row(wanted)
            for one, quantiles in zip(block, found, strict=True):
                values, repeats = np.unique(np.array(quantiles, dtype=np.float64), return_counts=True)
                share = one.n_present / QUANTILES
                one.numbers = Numbers(values, repeats.astype(np.float64) * share, one.is_whole)
        for one in many if self.weight != "1" else ():
            rows = self.source.session.arrays(
                f"select {number_or_null(one.field, self.how)} as v, sum({self.weight})::DOUBLE as w "
                f"from {self.source.relation} group by 1 having v is not null order by 1"
            )
            one.numbers = Numbers(np.asarray(rows["v"], float), np.asarray(rows["w"], float), one.is_whole)

    def _look_at_dates(self, one: Profile) -> None:
        written = _chosen_format(one, self.how)
        moment = moment_sql(text_or_null(one.field, self.how), written)
        relation = f"(select {moment} as m, {self.weight} as w from {self.source.relation})"
        counted = ", ".join(f"histogram({part_sql('m', part)})" for part in DATE_PARTS)
        first, last, n_days, n_moments, *counts = self.source.session.row(
            f"select min(m), max(m), count(distinct m::DATE), count(distinct m), {counted} from {relation}"
        )
        if self.weight != "1":
            counts = [
                dict(
                    self.source.session.rows(
                        f"select {part_sql('m', part)} as p, sum(w)::BIGINT from {relation} group by 1"
                    )
                )
                for part in DATE_PARTS
            ]
        parts = {
            part: dict(sorted((int(number), int(n)) for number, n in one_part.items() if number is not None))
            for part, one_part in zip(DATE_PARTS, counts, strict=True)
        }
        one.dates = Dates(written, first, last, int(n_days), int(n_moments), parts)

    def _look_at_texts(self, texts: Sequence[Profile]) -> None:
        """Find columns of text that hold numbers with signs, or several answers in a cell."""
        # The others were counted with all else.
        unknown = [one for one in texts if one.signs is None]
        if unknown:
            inner = ", ".join(f"{text_or_null(one.field, self.how)} as t{i}" for i, one in enumerate(unknown))
            wanted = ", ".join(_signs_sql(f"t{i}") for i in range(len(unknown)))
            found = self.source.session.row(
                f"select {wanted} from (select {inner}, {self.weight} as w from {self.source.relation})"
            )
            for one, signs in zip(unknown, found, strict=True):
                one.signs = tuple(signs)
        for one in texts:
            n_numbers, n_several, n_codes = one.signs or (0, 0, 0)
            asked = self.how.roles.get(one.name) == "choices"
            if n_numbers >= MOST_CELLS * one.n_present and not n_codes:
                self._find_numerals(one)
            elif asked or (n_several and n_several >= LEAST_SEVERAL * one.n_present):
                self._find_choices(one, asked)

    def _texts_sql(self, one: Profile) -> str:
        """Write the texts of a column that are not missing, t, and their rows, w."""
        text = text_or_null(one.field, self.how)
        return f"(select {text} as t, {self.weight} as w from {self.source.relation}) where t is not null"

    def _find_numerals(self, one: Profile) -> None:
        """Find out how numbers are written, by texts with all digits alike, which are few."""
        texts = self._texts_sql(one)
        signatures = self.source.session.rows(
            f"select {signature_sql('t')} as s, sum(w)::BIGINT from {texts} group by 1 order by 1 "
            f"limit {_MOST_SIGNATURES}"
        )
        found = find_numerals({signature: int(n) for signature, n in signatures})
        if found is None or len(signatures) == _MOST_SIGNATURES:
            one.is_signed = found is None
            return
        number = number_in_sql("t", found.written)
        strays = self.source.session.rows(
            f"select t, sum(w)::BIGINT from {texts} and ({number}) is null group by 1 order by 2 desc, 1 "
            "limit 100"
        )
        limits = self.source.session.rows(
            f"select distinct t from {texts} and t[1] in ('<', '>', '≤', '≥') and ({number}) is not null "
            "order by 1 limit 100"
        )
        one.numerals = replace(
            found, strays={text: int(n) for text, n in strays}, limits=tuple(text for (text,) in limits)
        )

    def _find_choices(self, one: Profile, is_asked: bool) -> None:
        rows = self.source.session.rows(
            f"select t, sum(w)::BIGINT from {self._texts_sql(one)} group by 1 order by 1 "
            f"limit {_MOST_TEXTS + 1}"
        )
        if len(rows) <= _MOST_TEXTS:
            one.choices = find_choices({text: int(n) for text, n in rows}, is_asked=is_asked)


def _is_typed(one: Field) -> bool:
    return one.form in NUMERIC


def _blocks(columns: Sequence[Profile]) -> Iterator[Sequence[Profile]]:
    """Give as many columns at a time as one query can sort."""
    width = max(1, _CELLS // max([1, *(one.n_rows for one in columns)]))
    return (columns[start : start + width] for start in range(0, len(columns), width))


def _signs_sql(text: str) -> str:
    """Count rows that may be numbers, that may hold several answers, and codes with a zero first."""
    several = " or ".join(f"contains({text}, {quoted(sign)})" for sign in SEPARATORS)
    return (
        f"[coalesce(sum(w) filter (where {might_be_number_sql(text)}), 0)::BIGINT, "
        f"coalesce(sum(w) filter (where {several}), 0)::BIGINT, "
        f"count(*) filter (where case when {text} < ':' then regexp_matches({text}, '^[+-]?0[0-9]') end)]"
    )


def _sums(position: int, one: Profile, weight: str) -> str:
    value = f"t{position}"
    rows = f"count({value})" if weight == "1" else f"coalesce(sum(w) filter (where {value} is not null), 0)"
    sums = [f"{rows}::BIGINT"]
    if not one.is_number:
        # They tell free text from labels.
        spaces = f"length({value}) - length(replace({value}, ' ', ''))"
        sums += [
            f"coalesce(sum({count} * w), 0)::BIGINT" for count in (f"length({value})", f"({spaces} + 1)")
        ]
        if not one.formats:
            sums.append(_signs_sql(value))
    if one.is_number:
        number = f"n{position}"
        sums += [
            f"count(*) filter (where {value} is not null and coalesce(not isfinite({number}), true))",
            f"min({number})",
            f"max({number})",
            f"count(*) filter (where {number} <> floor({number}))",
        ]
        if not _is_typed(one.field):
            # Between 00 and 0 with the letter after 9.
            sums.append(f"count(*) filter (where {value} >= '00' and {value} < '0:')")
    sums += [
        f"count(*) filter (where {value} is not null and {moment_sql(value, written)} is null)"
        for written in one.formats
    ]
    return ", ".join(sums)


def _take_sums(one: Profile, sums: Iterator[Any]) -> None:
    one.n_present = int(next(sums))
    if not one.is_number:
        one.n_letters, one.n_words = int(next(sums)), int(next(sums))
        if not one.formats:
            one.signs = tuple(next(sums))
    else:
        n_strange, low, high, n_broken = (next(sums) for _ in range(4))
        n_codes = 0 if _is_typed(one.field) else next(sums)
        one.is_code = n_codes > 0
        one.is_number = bool(one.n_present) and not n_strange and not n_codes
        one.is_whole = one.is_number and not n_broken
        if one.is_number:
            one.low, one.high = float(low), float(high)
    one.formats = [written for written in one.formats if next(sums) == 0]
    one.kind = one.field.kind


def _is_plain_number(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text.strip())) and isfinite(float(text))


def _count_array(array: npt.NDArray[Any]) -> dict[str, int]:
    values, counts = np.unique(array, return_counts=True)
    return {str(value): int(n) for value, n in zip(values, counts, strict=True)}


def _as_dict(counted: Any) -> dict[str, int]:
    if counted is None:
        return {}
    # Older versions of the database give a map as two lists.
    if isinstance(counted, dict) and set(counted) == {"key", "value"} and isinstance(counted["key"], list):
        return dict(zip(counted["key"], counted["value"], strict=True))
    return {str(key): int(n) for key, n in counted.items()}


def _take_labels(one: Profile, counts: Mapping[str, int], how: Settings) -> None:
    """Learn all of a column from its values, each with the rows that have it."""
    values = sorted(counts)
    is_nested = one.field.form == "json" and any(value[:1] in ("[", "{") for value in values)
    labels = [] if is_nested else label_values(one.field, values, how)[0]
    totals: Counter[str] = Counter()
    for value, label in zip(values, labels, strict=False):
        if label is not None:
            totals[label] += counts[value]
    one.kind = one.field.kind or kind_of_labels(one.field, values, labels)
    one.n_present, one.n_values = sum(totals.values()), len(totals)
    one.n_exact = len(totals)
    one.labels = dict(totals) if len(totals) <= LISTED else None
    one.n_letters = sum(len(label) * n for label, n in totals.items())
    one.n_words = sum((label.count(" ") + 1) * n for label, n in totals.items())
    one.is_code = any(map(_CODE.fullmatch, totals))
    numeric = bool(totals) and one.kind != "boolean" and all(map(_is_plain_number, totals))
    one.is_number = numeric and not one.is_code
    if one.is_number:
        _take_numbers(one, totals)
    if totals and not one.is_number and one.kind not in ("integer", "float", "boolean"):
        one.formats = formats_of(totals)
    if one.formats:
        one.dates = _dates(totals, _chosen_format(one, how))
    if not one.is_number and not one.formats and not one.is_code and one.kind != "boolean":
        one.is_signed = bool(totals) and all(_SIGNED.fullmatch(text.strip()) for text in totals)
        one.numerals = find_numerals(totals)
        if len(totals) <= _MOST_TEXTS:
            one.choices = find_choices(totals, is_asked=how.roles.get(one.name) == "choices")


def _take_numbers(one: Profile, totals: Mapping[str, int]) -> None:
    numbers: Counter[float] = Counter()
    for label, n in totals.items():
        numbers[float(label)] += n
    values = np.array(sorted(numbers))
    weights = np.array([numbers[value] for value in values.tolist()], dtype=np.float64)
    one.is_whole = bool((values == np.floor(values)).all())
    one.low, one.high = float(values[0]), float(values[-1])
    one.numbers = Numbers(values, weights, one.is_whole)


def _chosen_format(one: Profile, how: Settings) -> str:
    """Choose how dates are written: the month before the day where both fit, unless it was said."""
    fitting = [known for known in FORMATS if known in one.formats]
    if how.roles.get(one.name) == DAY_FIRST:
        fitting.sort(key=lambda known: not known.startswith("%d"))
    return fitting[0]


def _dates(totals: Mapping[str, int], written: str) -> Dates:
    parts: dict[str, Counter[int]] = {part: Counter() for part in DATE_PARTS}
    moments = []
    for label, n in totals.items():
        moment = parse_moment(label, written)
        if moment is not None:
            moments.append(moment)
            for part, counted in parts.items():
                counted[part_of(moment, part)] += n
    days = {moment.date() for moment in moments}
    listed = {part: dict(sorted(one.items())) for part, one in parts.items()}
    return Dates(written, min(moments), max(moments), len(days), len(totals), listed)
