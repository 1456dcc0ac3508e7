"""One look at the table before its rows are collapsed: is it there, is it countable, what must be refused."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from unless.data.dataset import MOST_ROWS
from unless.data.domain import MAX_LEVELS
from unless.data.levels import MISSING_WORDS
from unless.data.settings import Settings
from unless.data.sources.session import DuckDBSession, Field, Source, quoted
from unless.errors import DataError, TooLarge, TooManyLevels

_SPACES = "' ' || chr(9) || chr(10) || chr(13) || chr(160)"


@dataclass(frozen=True)
class Survey:
    """How many rows there are, about how many values each column has, and what the counts look like."""

    n_rows: int
    n_values: dict[str, int]
    n_bad_counts: int = 0
    total: float = 0.0


def survey(source: Source, fields: Sequence[Field], count: Field | None, session: DuckDBSession) -> Survey:
    """Pass once over the table."""
    columns = [one.column for one in fields]
    wanted = [
        f"coalesce(sum({source.times}), 0)::BIGINT",
        *(f"approx_count_distinct({column})" for column in columns),
    ]
    if count is not None:
        number = number_sql(count)
        wanted += [
            f"count(*) filter (where {_bad_count(number)})",
            f"coalesce(sum({number} * {source.times}), 0)",
        ]
    found = session.row(f"select {', '.join(wanted)} from {source.relation}")
    n_values = dict(zip((one.name for one in fields), found[1:], strict=False))
    return Survey(found[0], n_values, *found[1 + len(fields) :])


def _bad_count(number: str) -> str:
    # Neither NaN nor infinity is a finite number; NULL is none at all.
    return f"coalesce(not isfinite({number}) or {number} < 0 or {number} <> floor({number}), true)"


def number_sql(one: Field) -> str:
    """Write a field's value as a number; null where it is none."""
    if one.form in ("integer", "float", "decimal"):
        return f"{one.column}::DOUBLE"
    if one.form in ("words", "text"):
        return f"try_cast({text_sql(one)} as DOUBLE)"
    if one.form == "json":
        return f"try_cast(({one.column} ->> '$') as DOUBLE)"
    return "null::DOUBLE"


def text_sql(one: Field) -> str:
    """Write a field's value as text, without the layout around it."""
    if one.form == "json":
        return f"({one.column} ->> '$')"
    text = f"{one.column}::VARCHAR"
    return f"trim({text}, {_SPACES})" if one.form == "words" else text


def missing_sql(one: Field, how: Settings) -> str:
    """Write the condition under which a field's value is missing."""
    words = how.missing_values
    if words is None:
        words = MISSING_WORDS if one.form == "words" else frozenset()
    if one.form == "code":
        blank = [str(code) for code, label in enumerate(one.labels) if label.strip() in words | {""}]
        return f"coalesce({one.column} in ({', '.join(['-1', *blank])}), true)"
    listed = ", ".join(quoted(word) for word in sorted(words | {""}))
    text = f"{text_sql(one)} in ({listed})"
    if one.form in ("integer", "float", "decimal"):
        numbers = [word for word in sorted(words) if word.lstrip("-").replace(".", "", 1).isdigit()]
        text = f"isnan({number_sql(one)}) or {number_sql(one)} in ({', '.join([*numbers, 'null'])})"
    return f"({one.column} is null or coalesce({text}, false))"


def check_counts(source: Source, count: Field, found: Survey, session: DuckDBSession) -> None:
    """Refuse counts that are not whole numbers of 0 or more, naming the first."""
    if found.n_bad_counts:
        place, text = _first_bad_count(source, count, session)
        said = "nothing" if text is None else repr(text)
        raise DataError(
            f"Row {place:,} of count column {count.name!r} holds {said}; counts are whole numbers, 0 or more."
        )
    if found.total >= MOST_ROWS:
        raise TooLarge(
            f"The counts in {count.name!r} add up to {found.total:.3g}, more than can be counted exactly."
        )
    if found.n_rows and not found.total:
        raise DataError(
            f"All counts in {count.name!r} are 0, so the table has no rows; give some that are more."
        )


def _first_bad_count(source: Source, count: Field, session: DuckDBSession) -> tuple[int, str | None]:
    number = number_sql(count)
    row = session.row(
        f"select place, said from (select {source.row_number} as place, {text_sql(count)} as said, "
        f"{_bad_count(number)} as bad from {source.relation}) where bad order by place limit 1"
    )
    return row[0], row[1]


def check_numbers(source: Source, one: Field, how: Settings, session: DuckDBSession) -> str:
    """Return SQL for a column that is to be cut, or refuse it, naming the first value that is no number."""
    number, missing = number_sql(one), missing_sql(one, how)
    bad = f"not {missing} and ({number} is null or isnan({number}) or isinf({number}))"
    text = f"{one.column}::VARCHAR" if one.form not in ("words", "json") else text_sql(one)
    found = session.rows(
        f"select place, said from (select {source.row_number} as place, {text} as said, {bad} as bad "
        f"from {source.relation}) where bad order by place limit 1"
    )
    if found:
        said = one.labels[int(found[0][1])] if one.form == "code" else found[0][1]
        raise DataError(
            f"Column {one.name!r} cannot be cut into bins: row {found[0][0]:,} holds {said!r}, no number; "
            "take it out of bins=."
        )
    return f"case when {missing} then null else {number} end"


def find_row(source: Source, one: Field, raw: Sequence[str], session: DuckDBSession) -> int:
    """Return the first row whose value is written in one of these ways."""
    listed = ", ".join(quoted(text) for text in raw)
    found = session.rows(
        f"select place from (select {source.row_number} as place, {one.column}::VARCHAR as said "
        f"from {source.relation}) where said in ({listed}) order by place limit 1"
    )
    return int(found[0][0]) if found else 0


def check_levels(source: Source, one: Field, how: Settings, found: Survey, session: DuckDBSession) -> None:
    """Refuse a column of very many values before the collapse would have to hold them all."""
    limit = max(how.max_levels, len(how.levels.get(one.name, ())))
    if found.n_values[one.name] <= limit:
        return
    value, missing = text_sql(one), missing_sql(one, how)
    # "1" and "1.0" are one label, so numbers are compared by value; too low a count is caught later.
    spelled = (
        f"coalesce({number_sql(one)}::VARCHAR, {value})" if one.form in ("words", "json") else one.column
    )
    n_values, n_numbers = session.row(
        f"select count(distinct {spelled}), "
        f"count(distinct {spelled}) filter (where {number_sql(one)} is not null) "
        f"from {source.relation} where not {missing}"
    )
    if n_values > limit:
        refuse_levels(
            one.name, n_values, limit, numeric=n_numbers == n_values, unique=n_values == found.n_rows
        )


def refuse_levels(
    name: str, n_levels: int, limit: int, *, numeric: bool = False, unique: bool = False
) -> NoReturn:
    """Say why a column is no category, and what can be done."""
    what = "different numbers" if numeric else "levels"
    why = f"has {n_levels:,} {what}, more than {limit:,}"
    if unique:
        why = f"has a different value in each of its {n_levels:,} rows, as an identifier or a measurement has"
    ways = ["leave it out with exclude="]
    if numeric:
        ways.append(f"cut it into groups with bins={{{name!r}: 4}}")
    elif not unique:
        ways.append("merge its seldom levels with rare=")
    if n_levels <= MAX_LEVELS:
        ways.append(f"keep it with max_levels={n_levels}")
    raise TooManyLevels(f"Column {name!r} {why}; {', '.join(ways[:-1])}{' or ' * (len(ways) > 1)}{ways[-1]}.")
