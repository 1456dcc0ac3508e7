"""A table becomes codes: columns are made of others, DuckDB groups equal rows, and only codes leave it."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from unless.data.columns.levels import (
    MERGED,
    MISSING_CODE,
    NUMERIC,
    is_missing,
    label_sql,
    missing_sql,
    number_or_null,
    number_sql,
    text_or_null,
    text_sql,
)
from unless.data.columns.numbers import Numbers, find_cuts, find_cutting, group_sql
from unless.data.columns.texts import (
    NONE,
    SEPARATORS,
    TICKED,
    answers,
    columns_of_levels,
    find_numerals,
    formats_of,
    is_ticked,
    label_in_sql,
    means_none,
    moment_sql,
    number_in_sql,
    parse_moment,
    parse_number,
    part_label,
    part_of,
    part_sql,
)
from unless.data.dataset import MOST_ROWS, Counts, Rows
from unless.data.domain import MAX_LEVELS, MISSING_LABELS, Kind, listed
from unless.data.profile import HEAD
from unless.data.settings import NO, YES, Settings, Shape, bases_of
from unless.data.sources.session import SHORT, DuckDBSession, Field, Source, nested, quoted
from unless.errors import DataError, TooLarge, TooManyLevels
from unless.runtime.memory import check_rows

# Forms whose label is their text, so that labels can be compared in SQL.
_TEXTS = ("words", "text", "json", "plain")
# Columns fetched at a time, at most: DuckDB was seen to crash on ten thousand lists of distinct values in one
# query. And cells: a table should not leave the database twice as a whole.
_BLOCK = 64
_BLOCK_CELLS = 2**22
# The rows that finer groups of numbers need, how many there are at most, the rows of each, and the share of
# the memory that rows told apart by them may take.
LEAST_FOR_FINER, MOST_FINER, ROWS_A_FINER_GROUP, FINER_SHARE = 100, 192, 10, 0.5


# Columns that are made of others.


def with_shapes(source: Source, how: Settings) -> tuple[Source, Settings]:
    """Add the columns that are made of others, and give codes the names of their groups.

    The shapes that are left in the settings are those that the reader still has to apply: cuts and dates.
    """
    shapes: dict[str, Shape] = {}
    fields = {one.name: one for one in source.fields}
    names = set(source.names)
    for name, shape in how.shapes.items():
        base, before = fields.get(shape.column), source
        if shape.choice or shape.columns:
            # The table may have the column itself.
            if name not in names and shape.choice:
                source = _with_choice(source, name, shape, how)
            elif name not in names:
                source = _with_joined(source, name, shape)
        elif base is None or (shape.part and name in names):
            # The table lacks the column, which is said where columns are chosen; or it has the part itself.
            continue
        elif shape.missing or shape.others:
            source = with_labels(source, base, shape, how)
        else:
            source, shapes[name] = _with_groups(source, name, base, shape, how)
        if source is not before:
            fields = {one.name: one for one in source.fields}
    return source, replace(how, shapes=shapes)


def _added(source: Source, made: Field) -> Source:
    """Add a column, or replace the one of its name."""
    fields = [one for one in source.fields if one.name != made.name]
    names = source.names if made.name in source.names else (*source.names, made.name)
    return replace(source, names=names, fields=(*fields, made))


def _recoded(source: Source, base: Field, made: Field, lookup: npt.NDArray[Any]) -> Source:
    """Add a column to a table in memory: what `lookup` has for each code of another column."""
    arrays: dict[str, Any] = source.keep_alive[0]  # type: ignore[assignment]
    column = f"s{len(arrays)}"
    arrays = {**arrays, column: lookup[arrays[base.column]]}
    source.session.register("given", arrays)
    return replace(_added(source, replace(made, column=column)), keep_alive=(arrays,))


def _positions(labels: Sequence[str], named: Sequence[str | None]) -> npt.NDArray[np.int32]:
    """Return the code among `labels` of each name, -1 where there is none; the last is of missing values."""
    code = {label: position for position, label in enumerate(labels)}
    return np.array([*(-1 if name is None else code[name] for name in named), -1], dtype=np.int32)


def _with_groups(source: Source, name: str, base: Field, shape: Shape, how: Settings) -> tuple[Source, Shape]:
    """Add a column of groups of numbers, or of a part of dates."""
    if shape.part and shape.written is None:
        written = next(iter(formats_of(_first_texts(source, base, how))), "")
        shape = replace(shape, written=written)
    elif not shape.part and base.form in (*_TEXTS, "code"):
        written = _numerals(source, base, shape, how) if shape.written is None else shape.written
        if written:
            source = with_numbers(source, base, written, how)
            base = source.field(base.name)
    if base.form != "code":
        return _added(source, replace(base, name=name)), shape
    groups = [group_name(label, shape) for label in base.labels]
    labels = tuple(dict.fromkeys([*shape.levels, *groups]))
    kind: Kind = "integer" if shape.part == "year" and not shape.cuts else "category"
    made = replace(base, name=name, kind=kind, labels=labels, levels=shape.levels or None)
    return _recoded(source, base, made, _positions(labels, groups)), shape


def group_name(label: str, shape: Shape) -> str:
    """Name the group of a label; what is neither a number nor a date keeps its name."""
    number: float | None
    if shape.part:
        moment = parse_moment(label, shape.written or "")
        number = None if moment is None else part_of(moment, shape.part)
    else:
        number = _number(label)
    if number is None:
        return label
    if shape.cuts:
        return shape.levels[bisect_right(shape.cuts, number)]
    return part_label(int(number), shape.part)


def _number(label: str) -> float | None:
    try:
        number = float(label)
    except ValueError:
        return None
    return number if isfinite(number) else None


def with_numbers(source: Source, one: Field, written: str, how: Settings) -> Source:
    """Put the numbers that a column of text holds in its place; all other texts are missing."""
    if one.form == "code":
        numbers = [parse_number(label, written) for label in one.labels]
        lookup = np.array([*(np.nan if number is None else number for number in numbers), np.nan])
        return _recoded(source, one, Field(one.name, "", "float", "float"), lookup)
    if one.form not in _TEXTS:
        return source
    return _added(source, Field(one.name, number_in_sql(text_or_null(one, how), written), "float", "float"))


def _numerals(source: Source, base: Field, shape: Shape, how: Settings) -> str:
    """Find out how a table writes numbers that were cut in another; nothing if it writes them plainly."""
    texts = _first_texts(source, base, how)
    if all(text in shape.levels or _number(text) is not None for text in texts):
        return ""
    found = find_numerals(texts)
    return "" if found is None or set(texts) & set(shape.levels) else found.written


def _first_texts(source: Source, base: Field, how: Settings) -> Counter[str]:
    if base.form == "code":
        return Counter(label.strip() for label in base.labels if label.strip())
    rows = source.rows(text_or_null(base, how), f"limit {HEAD}")
    return Counter(row[0].strip() for row in rows if row[0] is not None and row[0].strip())


def _with_choice(source: Source, name: str, shape: Shape, how: Settings) -> Source:
    """Add a column that says whether an answer was ticked."""
    known = {one.name: one for one in source.fields}
    column, choice = shape.column, shape.choice
    if column == choice:
        # Only the name of the variable is known.
        column = next((one for one in reversed(bases_of(name)) if one in known), "")
        choice = name.removeprefix(f"{column}: ")
    base = known.get(column)
    if base is None or base.form not in (*_TEXTS, "code"):
        return source
    separator, is_none = shape.separator, shape.is_none
    if not separator:
        texts = _first_texts(source, base, how)
        separator = next((sign for sign in SEPARATORS if any(sign in text for text in texts)), SEPARATORS[0])
        given = {one for text in texts for one in answers(text, separator)}
        is_none = not {*MISSING_LABELS} & set(shape.levels) and not any(map(means_none, given))
    empty = NO if is_none else None
    if base.form == "code":
        ticked = [
            empty if is_missing(label, how) else YES if choice in answers(label, separator) else NO
            for label in base.labels
        ]
        lookup = _positions((NO, YES), ticked)
        if is_none:
            lookup[lookup < 0] = 0
        made = Field(name, "", "code", "category", (NO, YES), (NO, YES))
        return _recoded(source, base, made, lookup)
    text = label_sql(base, how)
    around = quoted(rf"\s*[{separator}]\s*")
    spaced = f"regexp_replace({text}, {around}, {quoted(separator)}, 'g')"
    inside = f"{quoted(separator)} || trim({spaced}) || {quoted(separator)}"
    is_in = f"contains({inside}, {quoted(f'{separator}{choice}{separator}')})"
    value = (
        f"case when ({text}) is null then {'null' if empty is None else quoted(empty)} "
        f"when {is_in} then {quoted(YES)} else {quoted(NO)} end"
    )
    return _added(source, Field(name, f"({value})", "text", "category", levels=(NO, YES)))


def ticked_sql(one: Field) -> str:
    """Write whether a column of yes and no says yes; null where it is missing."""
    if one.form == "code":
        ticked = [str(code) for code, label in enumerate(one.labels) if is_ticked(label)]
        return f"(case when {one.column} >= 0 then {one.column} in ({', '.join([*ticked, '-2'])}) end)"
    if one.form == "boolean":
        return one.column
    if one.form in NUMERIC:
        return f"({number_sql(one)} = 1)"
    text = f"lower(trim({one.column}::VARCHAR))"
    words = ", ".join(quoted(word) for word in (*sorted(TICKED), "1.0"))
    return f"(case when {text} <> '' then {text} in ({words}) end)"


def _with_joined(source: Source, name: str, shape: Shape) -> Source:
    """Add a column that names the one of a set of columns that is ticked."""
    known = {one.name: one for one in source.fields}
    columns: Sequence[str] | None = shape.columns
    if shape.columns == shape.levels:
        # Only the variable is known; a table without such a set is read as it is.
        columns = columns_of_levels(name, shape.levels, known)
    if columns is None or any(column not in known for column in columns):
        return source
    levels = [level for level in shape.levels if level != NONE][: len(columns)]
    ticks = [ticked_sql(known[column]) for column in columns]
    total = " + ".join(f"coalesce({tick}, false)::INTEGER" for tick in ticks)
    if (several := first_row(source, f"({total}) > 1")) is not None:
        raise DataError(
            f"Columns {', '.join(map(repr, columns))} cannot be joined into {name!r}, as row {several[0]:,} "
            "ticks more than one of them; leave out join=."
        )
    steps = " ".join(f"when {tick} then {quoted(level)}" for tick, level in zip(ticks, levels, strict=True))
    lacks = " or ".join(f"{tick} is null" for tick in ticks)
    value = f"case {steps} when {lacks} then null else {quoted(NONE)} end"
    return _added(source, Field(name, f"({value})", "text", "category", levels=shape.levels))


def with_labels(source: Source, base: Field, shape: Shape, how: Settings) -> Source:
    """Read some labels of a column as missing, and all that are not among its levels as one."""
    known = [level for level in shape.levels if level != shape.others]
    if base.form == "code":
        named = [
            None
            if label in shape.missing or is_missing(label, how)
            else label
            if not shape.others or label in known
            else shape.others
            for label in base.labels
        ]
        labels = tuple(dict.fromkeys(label for label in named if label is not None))
        made = replace(base, labels=labels, levels=None, kind="text")
        return _recoded(source, base, made, _positions(labels, named))
    if base.form not in _TEXTS:
        return source
    text = value = label_sql(base, how)
    if shape.missing:
        absent = ", ".join(map(quoted, shape.missing))
        value = f"case when {text} in ({absent}) then null else {text} end"
    if shape.others:
        value = (
            f"case when ({value}) is null then null when {text} in ({', '.join(map(quoted, known))}) "
            f"then {text} else {quoted(shape.others)} end"
        )
    return _added(source, Field(base.name, f"({value})", "text", "text"))


# What is refused before rows are grouped.


def first_row(source: Source, condition: str, text: str = "null") -> tuple[int, Any] | None:
    """Return the number of the first row that meets a condition, and a text of it; None if none does."""
    rows = source.session.rows(
        f"select place, said from (select {source.row_number} as place, {text} as said, {condition} as bad "
        f"from {source.relation}) where bad order by place limit 1"
    )
    return rows[0] if rows else None


def check_counts(source: Source, count: Field) -> None:
    """Refuse counts that are not whole numbers of 0 or more, naming the first."""
    number = number_sql(count)
    # Neither NaN nor infinity is a finite number; NULL is none at all.
    bad = f"coalesce(not isfinite({number}) or {number} < 0 or {number} <> floor({number}), true)"
    n_rows, n_bad, total = source.row(
        f"count(*), count(*) filter (where {bad}), coalesce(sum({number} * {source.times}), 0)"
    )
    if n_bad:
        row, text = first_row(source, bad, text_sql(count)) or (0, None)
        said = "nothing" if text is None else repr(text)
        raise DataError(
            f"Row {row:,} of count column {count.name!r} holds {said}; counts are whole numbers, 0 or more."
        )
    if total >= MOST_ROWS:
        raise TooLarge(
            f"The counts in {count.name!r} add up to {total:.3g}, more than can be counted exactly."
        )
    if n_rows and not total:
        raise DataError(
            f"All counts in {count.name!r} are 0, so the table has no rows; give some that are more."
        )


def check_numbers(source: Source, one: Field, how: Settings) -> str:
    """Return SQL for a column that is to be cut, or refuse it, naming the first value that is no number."""
    number, missing = number_sql(one), missing_sql(one, how)
    bad = f"not {missing} and ({number} is null or isnan({number}) or isinf({number}))"
    found = first_row(source, bad, text_sql(one))
    if found is not None:
        row, text = found
        said = one.labels[int(text)] if one.form == "code" else text
        raise DataError(
            f"Column {one.name!r} cannot be cut into bins: row {row:,} holds {said!r}, no number; "
            "take it out of bins=."
        )
    return f"case when {missing} then null else {number} end"


def find_row(source: Source, one: Field, raw: Sequence[str]) -> int:
    """Return the first row whose value is written in one of these ways; 0 if there is none."""
    texts = ", ".join(quoted(text) for text in raw)
    found = first_row(source, f"{one.column}::VARCHAR in ({texts})")
    return 0 if found is None else found[0]


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


# How the value of each column is written in SQL.


@dataclass(frozen=True)
class Encoding:
    """A field and the SQL that gives its value."""

    field: Field
    expression: str
    note: str = ""
    # Where numbers were cut.
    cuts: tuple[float, ...] = ()


@dataclass(frozen=True)
class ColumnEncoder:
    """Decides how the values of columns are written; `weight` is the SQL of how often a row counts."""

    source: Source
    how: Settings
    weight: str
    n_rows: int

    def encode(self, fields: Sequence[Field], n_values: Mapping[str, int]) -> list[Encoding]:
        """Decide for every column how its value is written, refusing those with too many."""
        encodings: list[Encoding] = []
        refused: list[TooManyLevels] = []
        for one in fields:
            try:
                encodings.append(self._encode(one, n_values.get(one.name, 0)))
            except TooManyLevels as error:
                refused.append(error)
        if refused:
            raise _refuse_all(refused, self._lacking(fields))
        return encodings

    def _lacking(self, fields: Sequence[Field]) -> list[str]:
        """List the columns with missing values, where these would be refused next."""
        if self.how.missing != "error":
            return []
        wanted = ", ".join(
            f"coalesce(sum({self.weight}) filter (where {missing_sql(one, self.how)}), 0)::BIGINT"
            for one in fields
        )
        found = self.source.row(wanted)
        return [f"{one.name!r} ({n:,})" for one, n in zip(fields, found, strict=True) if n]

    def _encode(self, one: Field, n_values: int) -> Encoding:
        how = self.how
        if one.name in how.shapes:
            return encode_shape(one, how)
        if one.name in how.bins:
            value = check_numbers(self.source, one, how)
            cutting = find_cutting(one.name, how.bins[one.name], value, self.weight, self.source)
            note = f"Cut {one.name!r} {cutting.method} into {len(cutting.cuts) + 1} groups: "
            note += f"{', '.join(map(repr, cutting.labels))}."
            return _encode_groups(one, cutting.labels, f"({value})", cutting.cuts, note)
        threshold = how.rare_below(one.name)
        if threshold > 1 and one.name not in how.levels and n_values > how.max_levels:
            return self._encode_frequent(one, threshold)
        self._check_levels(one, n_values)
        return Encoding(one, f"nullif({one.column}, -1)" if one.form == "code" else one.column)

    def _check_levels(self, one: Field, n_values: int) -> None:
        """Refuse a column of very many values before the collapse would have to hold them all."""
        how = self.how
        limit = max(how.max_levels, len(how.levels.get(one.name, ())))
        if n_values <= limit:
            return
        number = number_sql(one)
        # "1" and "1.0" are one label, so numbers are compared by value; too low a count is caught later.
        is_text = one.form in ("words", "json")
        spelled = f"coalesce({number}::VARCHAR, {text_sql(one)})" if is_text else one.column
        n_values, n_numbers = self.source.row(
            f"count(distinct {spelled}), count(distinct {spelled}) filter (where {number} is not null)",
            f"where not {missing_sql(one, how)}",
        )
        if n_values > limit:
            refuse_levels(
                one.name, n_values, limit, numeric=n_numbers == n_values, unique=n_values == self.n_rows
            )

    def _encode_frequent(self, one: Field, threshold: int) -> Encoding:
        """Merge the rare values of a column with very many before they would make every row distinct."""
        value = one.column if one.form == "code" else text_sql(one)
        missing = missing_sql(one, self.how)
        frequent = f"kept_{one.column}"
        self.source.session.run(
            f"create temp table {frequent} as select {value} as v from {self.source.relation} "
            f"where not {missing} group by all having sum({self.weight}) >= {threshold}"
        )
        n_frequent = self.source.session.value(f"select count(*) from {frequent}")
        if n_frequent > self.how.max_levels:
            refuse_levels(one.name, n_frequent, self.how.max_levels)
        other = quoted(MERGED)
        if one.form == "code":
            one, other = replace(one, labels=(*one.labels, MERGED)), str(len(one.labels))
        elif one.form == "json":
            one = replace(one, form="decimal", kind="text")
        chosen = f"{value} in (select v from {frequent})"
        return Encoding(one, f"case when {missing} then null when {chosen} then {value} else {other} end")


def _refuse_all(refused: Sequence[TooManyLevels], lacking: Sequence[str]) -> TooManyLevels:
    """Say all that is wrong with a table in one message."""
    reasons = list(map(str, refused))
    if lacking:
        reasons.append(
            f"There are missing values in {listed(lacking, 6, ' columns')}; choose missing='drop' or 'level'."
        )
    if len(reasons) == 1:
        return refused[0]
    return TooManyLevels(
        f"The table cannot be read as it is, for {len(reasons):,} reasons. {' '.join(reasons)}"
    )


def _encode_groups(
    one: Field, labels: tuple[str, ...], number: str, cuts: tuple[float, ...], note: str = ""
) -> Encoding:
    """Write the group of a number that is known to be one, or null, as a code."""
    cut = replace(one, form="code", kind="category", labels=labels, levels=labels)
    group = f"case when {number} is null then null else {group_sql(number, cuts)} end"
    return Encoding(cut, group, note, cuts)


def encode_shape(one: Field, how: Settings) -> Encoding:
    """Write the group of a number, or the part of a date, in SQL; anything else stays as it is."""
    shape = how.shapes[one.name]
    if one.form == "code":
        # Their labels were given other names before.
        return Encoding(one, f"nullif({one.column}, -1)", "", shape.cuts)
    if one.form == "unusable":
        raise nested(one.name)
    if shape.known and shape.cuts and not shape.part:
        return _encode_groups(one, shape.levels, f"({number_or_null(one, how)})", shape.cuts)
    text, number = text_sql(one), number_sql(one)
    kind: Kind = "category"
    if shape.part:
        number = f"{part_sql(moment_sql(text, shape.written or ''), shape.part)}::DOUBLE"
        kind = "integer" if shape.part == "year" and not shape.cuts else kind
        text = f"coalesce({text}, '')"
    if shape.cuts:
        made = group_sql(f"({number})", shape.cuts, [quoted(level) for level in shape.levels])
    else:
        made = label_in_sql(f"({number})", shape.part)
    strange = f"({number}) is null or not isfinite({number})"
    value = f"case when {missing_sql(one, how)} then null when {strange} then {text} else {made} end"
    return Encoding(replace(one, form="text", kind=kind, levels=shape.levels or None), value, "", shape.cuts)


def encode_finer(
    fields: Sequence[Field], how: Settings, numbers: Mapping[str, Numbers], n_rows: int
) -> dict[str, Encoding]:
    """Cut numbers once more, each level into some groups, for tests that hold them fixed (`Detail`).

    Where rows are few, groups would be empty; where they are very many, memory decides.
    """
    shapes = {
        one.name: (one, how.shapes[one.name])
        for one in fields
        if one.name in how.shapes and one.name in numbers and one.form != "code"
    }
    need = n_rows * (10 * (len(fields) + len(shapes)) + 48)
    if n_rows < LEAST_FOR_FINER or need > FINER_SHARE * how.max_memory:
        return {}
    encodings = {}
    for name, (one, shape) in shapes.items():
        if not shape.known or not shape.cuts or shape.part:
            continue
        n_wanted = min(MOST_FINER, n_rows // ROWS_A_FINER_GROUP)
        cuts = tuple(sorted({*shape.cuts, *find_cuts(numbers[name], n_wanted)}))
        if len(cuts) > len(shape.cuts):
            labels = tuple(map(str, range(len(cuts) + 1)))
            encodings[name] = _encode_groups(one, labels, f"({number_or_null(one, how)})", cuts)
    return encodings


# Equal rows are grouped, and fetched as codes.


def collapse(source: Source, encodings: Sequence[Encoding], weight: str, beside: str = "") -> int:
    """Group equal rows in a table of their own, with more SQL beside each; return their number."""
    chosen = ", ".join(f"{one.expression} as v{position}" for position, one in enumerate(encodings))
    session = source.session
    session.stage("grouping equal rows")
    session.run(
        f"create temp table collapsed as select {chosen}, sum({weight})::BIGINT as n"
        f"{beside and f', {beside}'} from {source.relation} group by all"
    )
    n_distinct = int(session.value("select count(*) from collapsed"))
    check_rows(n_distinct, len(encodings), session.max_memory)
    return n_distinct


def fetch_codes(
    encodings: Sequence[Encoding], n_distinct: int, session: DuckDBSession
) -> tuple[list[list[str]], Rows, Counts]:
    """Pull the collapsed rows out: values of each column, positions in them (or MISSING_CODE), and counts."""
    table = np.empty((n_distinct, len(encodings)), dtype=np.uint16, order="F")
    counts = np.empty(n_distinct, dtype=np.int64)
    values: list[list[str]] = []
    width = min(_BLOCK, max(1, _BLOCK_CELLS // max(1, n_distinct)))
    session.stage("fetching columns", len(encodings))
    for start in range(0, len(encodings), width):
        block = encodings[start : start + width]
        values += _values(start, block, session, is_short=n_distinct <= SHORT)
        wanted = [_code_sql(start + i, one, values[start + i]) for i, one in enumerate(block)]
        found = session.arrays(f"select {', '.join(wanted if start else [*wanted, 'n'])} from collapsed")
        if not start:
            counts[:] = found["n"]
        for position in range(start, start + len(block)):
            table[:, position] = found[f"v{position}"]
            session.bar()
    return values, table, counts


def _values(
    start: int, block: Sequence[Encoding], session: DuckDBSession, *, is_short: bool
) -> list[list[str]]:
    unknown = [position for position, one in enumerate(block, start) if not _is_direct(one)]
    distinct: dict[int, list[str | None] | None] = {}
    if unknown:
        listed = "list_distinct(list({}))" if is_short else "list(distinct {})"
        wanted = ", ".join(f"list_sort({listed.format(f'v{position}::VARCHAR')})" for position in unknown)
        distinct = dict(zip(unknown, session.row(f"select {wanted} from collapsed"), strict=True))
    return [
        _checked(one, distinct[position])
        if position in distinct
        else [str(code) for code in range(len(one.field.labels))]
        for position, one in enumerate(block, start)
    ]


def _checked(one: Encoding, distinct: list[str | None] | None) -> list[str]:
    values = [value for value in distinct or () if value is not None]
    if len(values) >= MISSING_CODE:
        raise TooManyLevels(
            f"Column {one.field.name!r} has {len(values):,} different values, more than "
            f"{MISSING_CODE - 1:,}; leave it out with exclude= or merge some with bins= or rare=."
        )
    return values


def _is_direct(one: Encoding) -> bool:
    # More codes than fit must be numbered again: most of them may have been merged away.
    return one.field.form == "code" and len(one.field.labels) < MISSING_CODE


def _code_sql(position: int, one: Encoding, values: Sequence[str]) -> str:
    code = f"v{position}"
    if not values:
        code = "null"
    elif not _is_direct(one):
        # An ENUM looks values up by hash, but would need pandas to leave the database as itself.
        code = f"enum_code(v{position}::VARCHAR::ENUM({', '.join(map(quoted, values))}))::INTEGER"
    return f"coalesce({code}, {MISSING_CODE})::USMALLINT as v{position}"
