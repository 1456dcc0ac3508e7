"""Columns made of others: numbers in groups, parts of dates, choices; added to a table before it is read."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np

from unless.data.choices import (
    NO,
    NONE,
    SEPARATORS,
    TICKED,
    YES,
    answers,
    columns_of_levels,
    is_ticked,
    level_names,
    means_none,
)
from unless.data.domain import Kind
from unless.data.moments import formats_of, parse_moment, part_label, part_of
from unless.data.profile import HEAD, text_or_null
from unless.data.settings import MISSING_LABELS, Settings, Shape, bases_of
from unless.data.sources.session import DuckDBSession, Field, Source, quoted
from unless.data.survey import missing_sql, number_sql, text_sql
from unless.data.written import find_numerals, number_in_sql, parse_number
from unless.errors import DataError

# Forms whose label is their text, so that labels can be compared in SQL.
_TEXTS = ("words", "text", "json", "plain")


def with_shapes(source: Source, how: Settings, session: DuckDBSession) -> tuple[Source, Settings]:
    """Add the columns that are made of others, and give codes the names of their groups.

    The shapes that are left in the settings are those that the reader still has to apply: cuts and dates.
    """
    shapes = dict(how.shapes)
    fields = {one.name: one for one in source.fields}
    names = set(source.names)
    for name, shape in how.shapes.items():
        base = fields.get(shape.column)
        if (shape.choice or shape.columns) and name in names:
            # The table has the column itself.
            shapes.pop(name)
            continue
        before = source
        if shape.choice:
            shapes.pop(name)
            source = _with_choice(source, name, shape, how, session)
        elif shape.columns:
            shapes.pop(name)
            source = _with_joined(source, name, shape, session)
        elif base is None or (shape.part and name in names):
            # The table lacks the column, which is said where columns are chosen; or it has the part itself.
            shapes.pop(name)
        elif shape.missing or shape.others:
            shapes.pop(name)
            source = with_labels(source, base, shape, how, session)
        else:
            source, shapes[name] = _with_groups(source, name, base, shape, how, session)
        if source is not before:
            fields = {one.name: one for one in source.fields}
    return source, replace(how, shapes=shapes)


def _added(source: Source, made: Field, session: DuckDBSession, array: Any = None) -> Source:
    """Add a column, or put it in the place of the one of its name."""
    held = source.keep_alive
    if array is not None:
        arrays = {**source.keep_alive[0], made.column: array}  # type: ignore[dict-item]
        session.register("given", arrays)
        held = (arrays,)
    fields = [one for one in source.fields if one.name != made.name]
    names = source.names if made.name in source.names else (*source.names, made.name)
    return replace(source, names=names, fields=(*fields, made), keep_alive=held)


def _free_column(source: Source) -> str:
    """Return a name for a new array of a table in memory."""
    arrays: Any = source.keep_alive[0]
    return f"s{len(arrays)}"


def _with_groups(
    source: Source, name: str, base: Field, shape: Shape, how: Settings, session: DuckDBSession
) -> tuple[Source, Shape]:
    """Add a column of groups of numbers, or of a part of dates."""
    if shape.part and shape.written is None:
        shape = replace(shape, written=_written(source, base, how, session))
    elif not shape.part and base.form in (*_TEXTS, "code"):
        written = _numerals(source, base, shape, how, session) if shape.written is None else shape.written
        if written:
            source = with_numbers(source, base, written, how, session)
            base = source.field(base.name)
    made = replace(base, name=name)
    if base.form != "code":
        return _added(source, made, session), shape
    made, array = _recoded(source, made, shape, _free_column(source))
    return _added(source, made, session, array), shape


def with_numbers(source: Source, one: Field, written: str, how: Settings, session: DuckDBSession) -> Source:
    """Put the numbers that a column of text holds in its place; all other texts are missing."""
    if one.form == "code":
        numbers = [parse_number(label, written) for label in one.labels]
        lookup = np.array([*(np.nan if number is None else number for number in numbers), np.nan])
        array = lookup[source.keep_alive[0][one.column]]  # type: ignore[index]
        return _added(source, Field(one.name, _free_column(source), "float", "float"), session, array)
    if one.form not in _TEXTS:
        return source
    number = number_in_sql(text_or_null(one, how), written)
    return _added(source, Field(one.name, number, "float", "float"), session)


def _numerals(source: Source, base: Field, shape: Shape, how: Settings, session: DuckDBSession) -> str:
    """Find out how a table writes numbers that were cut in another; nothing if it writes them plainly."""
    texts = _first_texts(source, base, how, session)
    if all(text in shape.levels or _number(text) is not None for text in texts):
        return ""
    found = find_numerals(texts)
    return "" if found is None or set(texts) & set(shape.levels) else found.written


def _first_texts(source: Source, base: Field, how: Settings, session: DuckDBSession) -> Counter[str]:
    if base.form == "code":
        return Counter(label.strip() for label in base.labels if label.strip())
    rows = session.rows(f"select {text_or_null(base, how)} from {source.relation} limit {HEAD}")
    return Counter(row[0].strip() for row in rows if row[0] is not None and row[0].strip())


def _with_choice(source: Source, name: str, shape: Shape, how: Settings, session: DuckDBSession) -> Source:
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
        texts = _first_texts(source, base, how, session)
        separator = _separator(texts)
        has_level = bool(MISSING_LABELS & set(shape.levels))
        given = {one for text in texts for one in answers(text, separator)}
        is_none = not has_level and not any(map(means_none, given))
    if base.form == "code":
        words = how.missing_values or frozenset()
        ticked = [
            -1 if not label.strip() or label.strip() in words else int(choice in answers(label, separator))
            for label in base.labels
        ]
        lookup = np.array([*ticked, -1], dtype=np.int32)
        if is_none:
            lookup[lookup < 0] = 0
        array = lookup[source.keep_alive[0][base.column]]  # type: ignore[index]
        made = Field(name, _free_column(source), "code", "category", (NO, YES), (NO, YES))
        return _added(source, made, session, array)
    text = _label_sql(base, how)
    around = quoted(rf"\s*[{separator}]\s*")
    listed = f"regexp_replace({text}, {around}, {quoted(separator)}, 'g')"
    inside = f"{quoted(separator)} || trim({listed}) || {quoted(separator)}"
    ticked_sql = f"contains({inside}, {quoted(f'{separator}{choice}{separator}')})"
    empty = quoted(NO) if is_none else "null"
    value = (
        f"case when ({text}) is null then {empty} when {ticked_sql} then {quoted(YES)} else {quoted(NO)} end"
    )
    return _added(source, Field(name, f"({value})", "text", "category", levels=(NO, YES)), session)


def _label_sql(one: Field, how: Settings) -> str:
    """Write the label of a column of text, without any layout around it; null where it is missing."""
    return f"case when {missing_sql(one, how)} then null else {text_sql(one)} end"


def _separator(texts: Counter[str]) -> str:
    return next((sign for sign in SEPARATORS if any(sign in text for text in texts)), SEPARATORS[0])


def ticked_sql(one: Field) -> str:
    """Write whether a column of yes and no says yes; null where it is missing."""
    if one.form == "code":
        ticked = [str(code) for code, label in enumerate(one.labels) if is_ticked(label)]
        return f"(case when {one.column} >= 0 then {one.column} in ({', '.join([*ticked, '-2'])}) end)"
    if one.form == "boolean":
        return one.column
    if one.form in ("integer", "float", "decimal"):
        return f"({number_sql(one)} = 1)"
    text = f"lower(trim({one.column}::VARCHAR))"
    words = ", ".join(quoted(word) for word in (*sorted(TICKED), "1.0"))
    return f"(case when {text} <> '' then {text} in ({words}) end)"


def _with_joined(source: Source, name: str, shape: Shape, session: DuckDBSession) -> Source:
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
    _check_one_ticked(source, columns, ticks, name, session)
    steps = " ".join(f"when {tick} then {quoted(level)}" for tick, level in zip(ticks, levels, strict=True))
    hole = " or ".join(f"{tick} is null" for tick in ticks)
    value = f"case {steps} when {hole} then null else {quoted(NONE)} end"
    return _added(source, Field(name, f"({value})", "text", "category", levels=shape.levels), session)


def _check_one_ticked(
    source: Source, columns: Sequence[str], ticks: Sequence[str], name: str, session: DuckDBSession
) -> None:
    total = " + ".join(f"coalesce({tick}, false)::INTEGER" for tick in ticks)
    found = session.rows(
        f"select place from (select {source.row_number} as place, {total} as n from {source.relation}) "
        "where n > 1 order by place limit 1"
    )
    if found:
        raise DataError(
            f"Columns {', '.join(map(repr, columns))} cannot be joined into {name!r}, as row {found[0][0]:,} "
            "ticks more than one of them; leave out join=."
        )


def joined_levels(name: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Name the levels of a column that is joined from others."""
    return level_names(name.removesuffix(" (joined)"), columns)


def with_labels(source: Source, base: Field, shape: Shape, how: Settings, session: DuckDBSession) -> Source:
    """Read some labels of a column as missing, and all that are not among its levels as one."""
    if base.form == "code":
        kept = {label: label for label in shape.levels if label != shape.others}
        words = how.missing_values or frozenset()
        blank = {label for label in base.labels if not label.strip() or label.strip() in words}
        named = [
            None if label in shape.missing or label in blank else kept.get(label, shape.others or label)
            for label in base.labels
        ]
        labels = tuple(dict.fromkeys(label for label in named if label is not None))
        places = {label: place for place, label in enumerate(labels)}
        lookup = np.array([*(-1 if label is None else places[label] for label in named), -1], dtype=np.int32)
        array = lookup[source.keep_alive[0][base.column]]  # type: ignore[index]
        made = replace(base, column=_free_column(source), labels=labels, levels=None, kind="text")
        return _added(source, made, session, array)
    if base.form not in _TEXTS:
        return source
    text = _label_sql(base, how)
    absent = ", ".join(quoted(word) for word in shape.missing)
    value = f"case when {text} in ({absent}) then null else {text} end" if absent else text
    if shape.others:
        listed = ", ".join(quoted(level) for level in shape.levels if level != shape.others)
        other = quoted(shape.others)
        value = (
            f"case when ({value}) is null then null when {text} in ({listed}) then {text} else {other} end"
        )
    return _added(source, Field(base.name, f"({value})", "text", "text"), session)


def _written(source: Source, base: Field, how: Settings, session: DuckDBSession) -> str:
    if base.form == "code":
        return next(iter(formats_of(label for label in base.labels if label.strip())), "")
    rows = session.rows(f"select {text_or_null(base, how)} from {source.relation} limit {HEAD}")
    return next(iter(formats_of(row[0] for row in rows if row[0] is not None)), "")


def _recoded(source: Source, made: Field, shape: Shape, column: str) -> tuple[Field, object]:
    name_of = shaper(shape)
    groups = [name_of(label) for label in made.labels]
    labels = tuple(dict.fromkeys([*shape.levels, *groups]))
    places = {label: place for place, label in enumerate(labels)}
    lookup = np.array([*(places[group] for group in groups), -1], dtype=np.int32)
    codes = source.keep_alive[0][made.column]  # type: ignore[index]
    kind: Kind = "integer" if shape.part == "year" and not shape.cuts else "category"
    field = replace(made, column=column, kind=kind, labels=labels, levels=shape.levels or None)
    return field, lookup[codes]


def shaper(shape: Shape) -> Callable[[str], str]:
    """Return what names the group of a label; what is neither a number nor a date keeps its name."""

    def name_of(label: str) -> str:
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

    return name_of


def _number(label: str) -> float | None:
    try:
        number = float(label)
    except ValueError:
        return None
    return number if isfinite(number) else None
