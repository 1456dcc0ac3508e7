"""What every column of a table holds, in few passes: how many values, which ones, numbers, dates or words."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from datetime import datetime
from math import inf, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.choices import LEAST_SEVERAL, SEPARATORS, Choices, find_choices
from unless.data.cutting import Numbers
from unless.data.domain import Kind
from unless.data.levels import MISSING_WORDS, kind_of_labels, label_values
from unless.data.moments import FORMATS, formats_of, moment_sql, parse_moment, part_of, part_sql
from unless.data.settings import DAY_FIRST, Settings
from unless.data.sources.session import DuckDBSession, Field, Source, quoted
from unless.data.survey import missing_sql, number_sql, text_sql
from unless.data.written import (
    MOST_CELLS,
    Numerals,
    find_numerals,
    might_be_number_sql,
    number_in_sql,
    signature_sql,
)

# Values of a column are listed with their counts where they are about this many or fewer.
LISTED = 1000
# Rows looked at first: what they show not to be a number or a date needs no closer look.
HEAD = 1000
# Quantiles that stand for the numbers of a column with more values than are listed.
QUANTILES = 200
DATE_PARTS = ("year", "quarter", "month", "weekday", "hour")
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


def profile(
    source: Source, fields: Sequence[Field], how: Settings, session: DuckDBSession, weight: str
) -> dict[str, Profile]:
    """Look at all columns; `weight` is the SQL of how many rows a row of the relation stands for."""
    stored = [one for one in fields if one.form not in ("code", "unusable")]
    n_rows, about = _count_values(source, stored, session, weight)
    found = {one.name: Profile(one, n_rows) for one in fields}
    if not n_rows:
        return found
    for one in fields:
        if one.form == "code":
            _take_labels(found[one.name], _code_counts(source, one, weight, session), how)
    for start in range(0, len(stored), _BLOCK):
        block = [found[one.name] for one in stored[start : start + _BLOCK]]
        few = [each for each in block if about[each.name] <= LISTED]
        for each, counts in zip(few, _histograms(source, few, weight, session), strict=True):
            _take_labels(each, counts, how)
        many = [each for each in block if about[each.name] > LISTED]
        if many:
            _look_closer(source, many, about, how, session, weight)
    return found


def _count_values(
    source: Source, stored: Sequence[Field], session: DuckDBSession, weight: str
) -> tuple[int, dict[str, int]]:
    """Count the rows, and about how many values each column has."""
    wanted = [f"coalesce(try_cast(sum({weight}) as BIGINT), 0)"]
    wanted += [f"approx_count_distinct({one.column})" for one in stored]
    n_rows, *about = session.row(f"select {', '.join(wanted)} from {source.relation}")
    return int(n_rows), {one.name: int(n) for one, n in zip(stored, about, strict=True)}


def _look_closer(
    source: Source,
    many: list[Profile],
    about: Mapping[str, int],
    how: Settings,
    session: DuckDBSession,
    weight: str,
) -> None:
    """Look at columns whose values are too many to be listed."""
    for one in many:
        one.n_values = about[one.name]
    _sum_up(source, many, how, session, weight)
    _count_exactly(source, many, how, session)
    _find_quantiles(
        source, [one for one in many if one.is_number and not _numbers_rows(one, how)], how, session, weight
    )
    dated = [one for one in many if one.formats and not one.is_number]
    _look_at_dates(source, dated, how, session, weight)
    texts = [one for one in many if not one.is_number and not one.formats and not one.is_code]
    _look_at_texts(source, [one for one in texts if not _is_typed(one.field)], how, session, weight)


# Different texts of a column, at most, in which several answers are looked for, and ways of writing numbers.
_MOST_TEXTS, _MOST_SIGNATURES = 2**16, 1000


def _look_at_texts(
    source: Source, texts: Sequence[Profile], how: Settings, session: DuckDBSession, weight: str
) -> None:
    """Find columns of text that hold numbers with signs, or several answers in a cell."""
    if not texts:
        return
    # The others were counted with all else.
    unknown = [one for one in texts if one.signs is None]
    if unknown:
        inner = ", ".join(f"{text_or_null(one.field, how)} as t{place}" for place, one in enumerate(unknown))
        wanted = ", ".join(_signs_sql(f"t{place}") for place in range(len(unknown)))
        found = session.row(f"select {wanted} from (select {inner}, {weight} as w from {source.relation})")
        for one, signs in zip(unknown, found, strict=True):
            one.signs = tuple(signs)
    for one in texts:
        n_numbers, n_several, n_codes = one.signs or (0, 0, 0)
        if n_numbers >= MOST_CELLS * one.n_present and not n_codes:
            _find_numerals(source, one, how, session, weight)
        elif (n_several and n_several >= LEAST_SEVERAL * one.n_present) or how.roles.get(
            one.name
        ) == "choices":
            _find_choices(source, one, how, session, weight)


def _signs_sql(text: str) -> str:
    """Count rows that may be numbers, that may hold several answers, and codes with a zero first."""
    several = " or ".join(f"contains({text}, {quoted(sign)})" for sign in SEPARATORS)
    return (
        f"[coalesce(sum(w) filter (where {might_be_number_sql(text)}), 0)::BIGINT, "
        f"coalesce(sum(w) filter (where {several}), 0)::BIGINT, "
        f"count(*) filter (where case when {text} < ':' then regexp_matches({text}, '^[+-]?0[0-9]') end)]"
    )


def _find_numerals(source: Source, one: Profile, how: Settings, session: DuckDBSession, weight: str) -> None:
    """Find out how numbers are written, by texts with all digits alike, which are few."""
    text = text_or_null(one.field, how)
    relation = f"(select {text} as t, {weight} as w from {source.relation}) where t is not null"
    signatures = session.rows(
        f"select {signature_sql('t')} as s, sum(w)::BIGINT from {relation} group by 1 order by 1 "
        f"limit {_MOST_SIGNATURES}"
    )
    found = find_numerals({signature: int(n) for signature, n in signatures})
    if found is None or len(signatures) == _MOST_SIGNATURES:
        one.is_signed = found is None
        return
    number = number_in_sql("t", found.written)
    strays = session.rows(
        f"select t, sum(w)::BIGINT from {relation} and ({number}) is null group by 1 order by 2 desc, 1 "
        "limit 100"
    )
    limits = session.rows(
        f"select distinct t from {relation} and t[1] in ('<', '>', '≤', '≥') and ({number}) is not null "
        "order by 1 limit 100"
    )
    one.numerals = Numerals(
        found.written,
        {stray: int(n) for stray, n in strays},
        tuple(limit for (limit,) in limits),
        found.is_plain,
    )


def _find_choices(source: Source, one: Profile, how: Settings, session: DuckDBSession, weight: str) -> None:
    rows = session.rows(
        f"select t, sum(w)::BIGINT from (select {text_or_null(one.field, how)} as t, {weight} as w "
        f"from {source.relation}) where t is not null group by 1 order by 1 limit {_MOST_TEXTS + 1}"
    )
    if len(rows) <= _MOST_TEXTS:
        asked = how.roles.get(one.name) == "choices"
        one.choices = find_choices({text: int(n) for text, n in rows}, is_asked=asked)


def _code_counts(source: Source, one: Field, weight: str, session: DuckDBSession) -> dict[str, int]:
    rows = session.rows(
        f"select {one.column}, sum({weight})::BIGINT from {source.relation} where {one.column} >= 0 "
        "group by 1"
    )
    return {str(code): int(n) for code, n in sorted(rows)}


def text_or_null(one: Field, how: Settings, value: str | None = None) -> str:
    """Write a column's value as text, null where it is missing; `value` is its text if it is at hand."""
    if one.form != "words":
        text = text_sql(one) if value is None else value
        missing = (
            missing_sql(one, how)
            if value is None
            else f"{text} is null or trim({text}) in ({_holes(one, how)})"
        )
        return f"case when {missing} then null else {text} end"
    # Blanks are nearly always all that stands around a label; other layout is seen where labels are made.
    text = f"trim({one.column if value is None else value})"
    return f"case when {text} in ({_holes(one, how)}) then null else {text} end"


def _holes(one: Field, how: Settings) -> str:
    words = how.missing_values
    if words is None:
        words = MISSING_WORDS if one.form == "words" else frozenset()
    return ", ".join(quoted(word) for word in sorted(words | {""}))


def number_or_null(one: Field, how: Settings) -> str:
    """Write the value of a column known to hold numbers, null where it is missing."""
    number = number_sql(one)
    if one.form == "words":
        # The database reads numbers with blanks around them.
        number = f"try_cast({one.column} as DOUBLE)"
    if how.missing_values is None:
        # No word for missing is a number but NaN.
        return number if one.form == "integer" else f"case when isnan({number}) then null else {number} end"
    return f"case when {missing_sql(one, how)} then null else {number} end"


def _is_typed(one: Field) -> bool:
    return one.form in ("integer", "float", "decimal")


def _sum_up(source: Source, block: list[Profile], how: Settings, session: DuckDBSession, weight: str) -> None:
    """Count values, numbers and dates, in columns where the first rows do not refute them."""
    heads = _heads(source, block, how, session)
    raw, inner, outer = [], [], []
    for place, one in enumerate(block):
        head = heads[place]
        one.is_number = _is_typed(one.field) or all(map(_is_plain_number, head))
        text = one.field.form not in ("integer", "float", "decimal", "boolean")
        one.formats = formats_of(head) if text and head else []
        # In steps, so that each is worked out once; a number is no word for missing.
        if _is_typed(one.field):
            raw.append(f"{number_or_null(one.field, how)} as r{place}")
            inner.append(f"r{place} as t{place}, r{place} as n{place}")
        elif one.is_number:
            given = one.field.column if one.field.form == "words" else text_sql(one.field)
            raw.append(f"try_cast({given} as DOUBLE) as n{place}, {given} as r{place}")
            plain = f"isfinite(n{place})" if how.missing_values is None else "false"
            value = f"case when {plain} then r{place} else {text_or_null(one.field, how, f'r{place}')} end"
            inner.append(f"{value} as t{place}, n{place}")
        else:
            raw.append(f"{text_or_null(one.field, how)} as t{place}")
            inner.append(f"t{place}")
        outer.append(_sums(place, one, weight))
    table = f"(select {', '.join(raw)}, {weight} as w from {source.relation})"
    found = iter(session.row(f"select {', '.join(outer)} from (select {', '.join(inner)}, w from {table})"))
    for one in block:
        _take_sums(one, found)


def _has_signs(head: Collection[str]) -> bool:
    return bool(head) and all(_SIGNED.fullmatch(text.strip()) for text in head)


def _heads(source: Source, block: list[Profile], how: Settings, session: DuckDBSession) -> list[list[str]]:
    wanted = ", ".join(f"{text_or_null(one.field, how)} as h{place}" for place, one in enumerate(block))
    rows = session.rows(f"select {wanted} from {source.relation} limit {HEAD}")
    return [[row[place] for row in rows if row[place] is not None] for place in range(len(block))]


def _is_plain_number(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text.strip())) and isfinite(float(text))


def _sums(place: int, one: Profile, weight: str) -> str:
    value = f"t{place}"
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
        number = f"n{place}"
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


def _take_sums(one: Profile, found: Iterable[Any]) -> None:
    numbers = iter(found)
    one.n_present = int(next(numbers))
    if not one.is_number:
        one.n_letters, one.n_words = int(next(numbers)), int(next(numbers))
        if not one.formats:
            one.signs = tuple(next(numbers))
    else:
        n_strange, low, high, n_broken = (next(numbers) for _ in range(4))
        n_codes = 0 if _is_typed(one.field) else next(numbers)
        one.is_code = n_codes > 0
        one.is_number = bool(one.n_present) and not n_strange and not n_codes
        one.is_whole = one.is_number and not n_broken
        if one.is_number:
            one.low, one.high = float(low), float(high)
    one.formats = [written for written in one.formats if next(numbers) == 0]
    one.kind = one.field.kind


def _histograms(
    source: Source, few: Sequence[Profile], weight: str, session: DuckDBSession
) -> list[Mapping[str, int]]:
    if not few:
        return []
    if weight == "1":
        held = {one.name: array for one in few if (array := _held(source, one.field)) is not None}
        asked = [one for one in few if one.name not in held]
        wanted = ", ".join(f"histogram({one.field.column}::VARCHAR)" for one in asked)
        counted = iter(session.row(f"select {wanted} from {source.relation}") if asked else ())
        return [_count_array(held[one.name]) if one.name in held else _as_dict(next(counted)) for one in few]
    return [
        dict(
            session.rows(
                f"select {one.field.column}::VARCHAR as v, sum({weight})::BIGINT from {source.relation} "
                "group by 1 having v is not null order by 1"
            )
        )
        for one in few
    ]


def _held(source: Source, one: Field) -> npt.NDArray[Any] | None:
    """Return the array of numbers of a column, if the table is in memory: the database takes longer."""
    arrays = source.keep_alive[0] if source.keep_alive and isinstance(source.keep_alive[0], dict) else {}
    array = arrays.get(one.column)
    return array if isinstance(array, np.ndarray) and array.dtype.kind in "iufb" else None


def _count_array(array: npt.NDArray[Any]) -> dict[str, int]:
    values, counts = np.unique(array, return_counts=True)
    return {str(value): int(n) for value, n in zip(values, counts, strict=True)}


def _as_dict(found: Any) -> dict[str, int]:
    if found is None:
        return {}
    # Older versions of the database give a map as two lists.
    if isinstance(found, dict) and set(found) == {"key", "value"} and isinstance(found["key"], list):
        return dict(zip(found["key"], found["value"], strict=True))
    return {str(key): int(n) for key, n in found.items()}


def _take_labels(one: Profile, counts: Mapping[str, int], how: Settings) -> None:
    """Learn all of a column from its values, each with the rows that have it."""
    values = sorted(counts)
    labels, _ = label_values(one.field, values, how) if not _is_nested(one.field, values) else ([], ())
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
    one.formats = [] if one.is_number or one.kind in ("integer", "float", "boolean") else _formats(totals)
    if one.formats:
        one.dates = _dates(totals, _chosen_format(one, how))
    if not one.is_number and not one.formats and not one.is_code and one.kind != "boolean":
        one.is_signed = _has_signs(totals)
        one.numerals = find_numerals(totals)
        if len(totals) <= _MOST_TEXTS:
            one.choices = find_choices(totals, is_asked=how.roles.get(one.name) == "choices")


def _is_nested(one: Field, values: Sequence[str]) -> bool:
    return one.form == "json" and any(value[:1] in ("[", "{") for value in values)


def _formats(totals: Mapping[str, int]) -> list[str]:
    return formats_of(totals) if totals else []


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
    found = {part: dict(sorted(one.items())) for part, one in parts.items()}
    return Dates(written, min(moments), max(moments), len(days), len(totals), found)


def _count_exactly(source: Source, many: Sequence[Profile], how: Settings, session: DuckDBSession) -> None:
    """Count the values of columns that may have a different one in each row."""
    near = [
        one
        for one in many
        # The approximate count is seldom off by more than a tenth.
        if one.n_values >= 0.8 * one.n_present
        and (not one.is_number or (one.is_whole and one.high - one.low < 2 * one.n_present))
    ]
    width = _at_once(near)
    for start in range(0, len(near), width):
        block = near[start : start + width]
        wanted = ", ".join(f"count(distinct {text_or_null(one.field, how)})" for one in block)
        found = session.row(f"select {wanted} from {source.relation}")
        for one, n_values in zip(block, found, strict=True):
            one.n_exact = one.n_values = int(n_values)


def _numbers_rows(one: Profile, how: Settings) -> bool:
    return one.is_unique and one.high - one.low + 1 == one.n_rows and one.name not in how.roles


def _at_once(columns: Sequence[Profile]) -> int:
    return max(1, _CELLS // max([1, *(one.n_rows for one in columns)]))


def _find_quantiles(
    source: Source, many: Sequence[Profile], how: Settings, session: DuckDBSession, weight: str
) -> None:
    shares = ", ".join(f"{(step + 0.5) / QUANTILES:.5f}" for step in range(QUANTILES))
    width = _at_once(many)
    for start in range(0, len(many), width):
        block = many[start : start + width]
        if weight == "1":
            wanted = ", ".join(
                f"quantile_disc({number_or_null(one.field, how)}, [{shares}])" for one in block
            )
            for one, listed in zip(
                block, session.row(f"select {wanted} from {source.relation}"), strict=True
            ):
                values, repeats = np.unique(np.array(listed, dtype=np.float64), return_counts=True)
                share = one.n_present / QUANTILES
                one.numbers = Numbers(values, repeats.astype(np.float64) * share, one.is_whole)
            continue
        for one in block:
            rows = session.arrays(
                f"select {number_or_null(one.field, how)} as v, sum({weight})::DOUBLE as w "
                f"from {source.relation} group by 1 having v is not null order by 1"
            )
            one.numbers = Numbers(np.asarray(rows["v"], float), np.asarray(rows["w"], float), one.is_whole)


def _look_at_dates(
    source: Source, many: Sequence[Profile], how: Settings, session: DuckDBSession, weight: str
) -> None:
    for one in many:
        written = _chosen_format(one, how)
        moment = moment_sql(text_or_null(one.field, how), written)
        relation = f"(select {moment} as m, {weight} as w from {source.relation})"
        counted = ", ".join(f"histogram({part_sql('m', part)})" for part in DATE_PARTS)
        first, last, n_days, n_moments, *counts = session.row(
            f"select min(m), max(m), count(distinct m::DATE), count(distinct m), {counted} from {relation}"
        )
        if weight != "1":
            counts = [
                dict(
                    session.rows(
                        f"select {part_sql('m', part)} as p, sum(w)::BIGINT from {relation} group by 1"
                    )
                )
                for part in DATE_PARTS
            ]
        seen = {
            part: dict(sorted(_plain_keys(one_part).items()))
            for part, one_part in zip(DATE_PARTS, counts, strict=True)
        }
        one.dates = Dates(written, first, last, int(n_days), int(n_moments), seen)


def _plain_keys(counted: dict[Any, int]) -> dict[int, int]:
    return {int(number): int(n) for number, n in counted.items() if number is not None}
