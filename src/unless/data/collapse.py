"""DuckDB groups equal rows, and only small codes leave it."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unless.data.bins import find_cutting
from unless.data.cutting import Numbers, find_cuts
from unless.data.dataset import Counts, Rows
from unless.data.domain import Kind
from unless.data.drawing import Drawn
from unless.data.levels import MERGED, NOTHING
from unless.data.moments import label_in_sql, moment_sql, part_sql
from unless.data.profile import number_or_null
from unless.data.settings import Settings, Shape
from unless.data.sources.session import DuckDBSession, Field, Source, nested, quoted
from unless.data.survey import (
    Survey,
    check_levels,
    check_numbers,
    missing_sql,
    number_sql,
    refuse_levels,
    text_sql,
)
from unless.errors import TooManyLevels
from unless.runtime.memory import check_rows

# Columns fetched at a time, at most: DuckDB was seen to crash on ten thousand lists of distinct values in one
# query. And cells: a table should not leave the database twice as a whole.
_BLOCK = 64
_BLOCK_CELLS = 2**22


# The rows that finer groups of numbers need, how many there are at most, the rows of each, and the share of
# the memory that rows told apart by them may take.
LEAST_FOR_FINER, MOST_FINER, ROWS_A_FINER_GROUP, FINER_SHARE = 100, 192, 10, 0.5


@dataclass(frozen=True)
class Plan:
    """A field and the SQL that gives its value."""

    field: Field
    expression: str
    note: str = ""
    # Where numbers were cut.
    cuts: tuple[float, ...] = ()


def plan_columns(
    source: Source, fields: Sequence[Field], weight: str, how: Settings, found: Survey, session: DuckDBSession
) -> list[Plan]:
    """Decide for every column how its value is written, refusing those with too many."""
    plans: list[Plan] = []
    refused: list[TooManyLevels] = []
    for one in fields:
        try:
            plans.append(_plan(source, one, weight, how, found, session))
        except TooManyLevels as error:
            refused.append(error)
    if refused:
        raise _all_at_once(refused, _holed(source, fields, weight, how, session))
    return plans


def _holed(
    source: Source, fields: Sequence[Field], weight: str, how: Settings, session: DuckDBSession
) -> list[tuple[str, int]]:
    """Count missing values, where they would be refused next."""
    if how.missing != "error":
        return []
    wanted = ", ".join(
        f"coalesce(sum({weight}) filter (where {missing_sql(one, how)}), 0)::BIGINT" for one in fields
    )
    found = session.row(f"select {wanted} from {source.relation}")
    return [(one.name, int(n)) for one, n in zip(fields, found, strict=True) if n]


def _all_at_once(refused: Sequence[TooManyLevels], holed: Sequence[tuple[str, int]]) -> TooManyLevels:
    """Say all that is wrong with a table in one message."""
    told = list(map(str, refused))
    if holed:
        listed = ", ".join(f"{name!r} ({n:,})" for name, n in holed[:6])
        more = f" and {len(holed) - 6:,} more columns" if len(holed) > 6 else ""
        told.append(f"There are missing values in {listed}{more}; choose missing='drop' or 'level'.")
    if len(told) == 1:
        return refused[0]
    return TooManyLevels(f"The table cannot be read as it is, for {len(told):,} reasons. {' '.join(told)}")


def _plan(
    source: Source, one: Field, weight: str, how: Settings, found: Survey, session: DuckDBSession
) -> Plan:
    if one.name in how.shapes:
        return plan_shape(one, how)
    if one.name in how.bins:
        value = check_numbers(source, one, how, session)
        cutting = find_cutting(one.name, how.bins[one.name], value, weight, source.relation, session)
        groups = cutting.labels()
        cut = replace(one, form="code", kind="category", labels=groups, levels=groups)
        return Plan(cut, cutting.expression(f"({value})"), cutting.note(one.name), cutting.cuts)
    threshold = how.rare_below(one.name)
    if threshold > 1 and one.name not in how.levels and found.n_values[one.name] > how.max_levels:
        return _without_rare(source, one, threshold, weight, how, session)
    check_levels(source, one, how, found, session)
    return Plan(one, f"nullif({one.column}, -1)" if one.form == "code" else one.column)


def plan_shape(one: Field, how: Settings) -> Plan:
    """Write the group of a number, or the part of a date, in SQL; anything else stays as it is."""
    shape = how.shapes[one.name]
    if one.form == "code":
        # Their labels were given other names before.
        return Plan(one, f"nullif({one.column}, -1)", "", shape.cuts)
    if one.form == "unusable":
        raise nested(one.name)
    missing, text = missing_sql(one, how), text_sql(one)
    number, names = number_sql(one), _names_sql(shape)
    kind: Kind = "category"
    if shape.part:
        moment = moment_sql(text, shape.written or "")
        number = f"{part_sql(moment, shape.part)}::DOUBLE"
        kind = "integer" if shape.part == "year" and not shape.cuts else kind
        text = f"coalesce({text}, '')"
    if shape.known and shape.cuts and not shape.part:
        cut = replace(one, form="code", kind=kind, labels=shape.levels, levels=shape.levels)
        known = number_or_null(one, how)
        group = f"case when ({known}) is null then null else {_group_sql(f'({known})', shape.cuts)} end"
        return Plan(cut, group, "", shape.cuts)
    made = names.replace("?", f"({number})")
    strange = f"({number}) is null or not isfinite({number})"
    cut = replace(one, form="text", kind=kind, levels=shape.levels or None)
    return Plan(
        cut, f"case when {missing} then null when {strange} then {text} else {made} end", "", shape.cuts
    )


def finer_plans(
    fields: Sequence[Field], how: Settings, numbers: Mapping[str, Numbers], n_rows: int
) -> dict[str, Plan]:
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
    plans = {}
    for name, (one, shape) in shapes.items():
        if not shape.known or not shape.cuts or shape.part:
            continue
        n_wanted = min(MOST_FINER, n_rows // ROWS_A_FINER_GROUP)
        cuts = sorted({*shape.cuts, *find_cuts(numbers[name], n_wanted)})
        if len(cuts) > len(shape.cuts):
            known = number_or_null(one, how)
            group = f"case when ({known}) is null then null else {_group_sql(f'({known})', cuts)} end"
            labels = tuple(map(str, range(len(cuts) + 1)))
            plans[name] = Plan(replace(one, form="code", labels=labels, levels=labels), group)
    return plans


def _group_sql(number: str, cuts: Sequence[float], first: int = 0) -> str:
    """Write the group of a number as a tree of comparisons, which takes few of them."""
    if not cuts:
        return str(first)
    middle = len(cuts) // 2
    below = _group_sql(number, cuts[:middle], first)
    above = _group_sql(number, cuts[middle + 1 :], first + middle + 1)
    return f"case when {number} < {cuts[middle]!r}::DOUBLE then {below} else {above} end"


def _names_sql(shape: Shape) -> str:
    """Write the name of a group, or of a part, of the number that stands for ? in SQL."""
    if shape.cuts:
        steps = " ".join(
            f"when ? < {cut!r}::DOUBLE then {quoted(level)}"
            for cut, level in zip(shape.cuts, shape.levels, strict=False)
        )
        return f"case {steps} else {quoted(shape.levels[len(shape.cuts)])} end"
    return label_in_sql("?", shape.part)


def _without_rare(
    source: Source, one: Field, threshold: int, weight: str, how: Settings, session: DuckDBSession
) -> Plan:
    """Merge the rare values of a column with very many before they would make every row distinct."""
    value = one.column if one.form == "code" else text_sql(one)
    hole = missing_sql(one, how)
    kept = f"kept_{one.column}"
    session.run(
        f"create temp table {kept} as select {value} as v from {source.relation} where not {hole} "
        f"group by all having sum({weight}) >= {threshold}"
    )
    n_kept = session.value(f"select count(*) from {kept}")
    if n_kept > how.max_levels:
        refuse_levels(one.name, n_kept, how.max_levels)
    other = quoted(MERGED)
    if one.form == "code":
        one, other = replace(one, labels=(*one.labels, MERGED)), str(len(one.labels))
    elif one.form == "json":
        one = replace(one, form="decimal", kind="text")
    return Plan(
        one,
        f"case when {hole} then null when {value} in (select v from {kept}) then {value} else {other} end",
    )


def collapse(
    source: Source, plans: Sequence[Plan], weight: str, session: DuckDBSession, drawn: Drawn | None = None
) -> int:
    """Group equal rows, and of a survey of one cluster, in a table of their own; return their number."""
    chosen = ", ".join(f"{plan.expression} as v{place}" for place, plan in enumerate(plans))
    session.stage("grouping equal rows")
    beside = "" if drawn is None else f", {drawn.sql}"
    session.run(
        f"create temp table collapsed as select {chosen}, sum({weight})::BIGINT as n{beside} "
        f"from {source.relation} group by all"
    )
    n_distinct = int(session.value("select count(*) from collapsed"))
    check_rows(n_distinct, len(plans), session.max_memory)
    return n_distinct


def fetch_codes(
    plans: Sequence[Plan], n_distinct: int, session: DuckDBSession
) -> tuple[list[list[str]], Rows, Counts]:
    """Pull the collapsed rows out: each column's values, positions into them (or NOTHING), and the counts."""
    table = np.empty((n_distinct, len(plans)), dtype=np.uint16, order="F")
    counts = np.empty(n_distinct, dtype=np.int64)
    values: list[list[str]] = []
    width = min(_BLOCK, max(1, _BLOCK_CELLS // max(1, n_distinct)))
    session.stage("fetching columns", len(plans))
    for start in range(0, len(plans), width):
        block = plans[start : start + width]
        values += _values(start, block, session)
        wanted = [_code_sql(start + i, plan, values[start + i]) for i, plan in enumerate(block)]
        found = session.arrays(f"select {', '.join(wanted if start else [*wanted, 'n'])} from collapsed")
        if not start:
            counts[:] = found["n"]
        for place in range(start, start + len(block)):
            table[:, place] = found[f"v{place}"]
            session.bar()
    return values, table, counts


def _values(start: int, block: Sequence[Plan], session: DuckDBSession) -> list[list[str]]:
    listed = [place for place, plan in enumerate(block, start) if not _is_direct(plan)]
    found: dict[int, list[str | None] | None] = {}
    if listed:
        wanted = ", ".join(f"list_sort(list(distinct v{place}::VARCHAR))" for place in listed)
        found = dict(zip(listed, session.row(f"select {wanted} from collapsed"), strict=True))
    return [
        _checked(plan, found[place])
        if place in found
        else [str(code) for code in range(len(plan.field.labels))]
        for place, plan in enumerate(block, start)
    ]


def _checked(plan: Plan, listed: list[str | None] | None) -> list[str]:
    values = [value for value in listed or () if value is not None]
    if len(values) >= NOTHING:
        raise TooManyLevels(
            f"Column {plan.field.name!r} has {len(values):,} different values, more than {NOTHING - 1:,}; "
            "leave it out with exclude= or merge some with bins= or rare=."
        )
    return values


def _is_direct(plan: Plan) -> bool:
    # More codes than fit must be numbered again: most of them may have been merged away.
    return plan.field.form == "code" and len(plan.field.labels) < NOTHING


def _code_sql(place: int, plan: Plan, values: Sequence[str]) -> str:
    code = f"v{place}"
    if not values:
        code = "null"
    elif not _is_direct(plan):
        # An ENUM looks values up by hash, but would need pandas to leave the database as itself.
        listed = ", ".join(map(quoted, values))
        code = f"enum_code(v{place}::VARCHAR::ENUM({listed}))::INTEGER"
    return f"coalesce({code}, {NOTHING})::USMALLINT as v{place}"
