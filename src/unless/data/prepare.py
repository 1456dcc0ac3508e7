"""A plan for any table: one look at every column decides what is done with it."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from unless.data.cutting import n_groups, spoken_cut
from unless.data.dataset import Dataset
from unless.data.domain import Domain
from unless.data.duck import Workshop
from unless.data.holes import Holes, decide_holes, told
from unless.data.opening import choose_columns, open_source, row_numbers
from unless.data.plan import AS_ASKED, BLANK, DONE, ROW_NUMBERS, Plan, PlanLine, shown_names
from unless.data.profile import Profile, number_or_null, profile
from unless.data.progress import PATIENCE, progress
from unless.data.relations import Relation, find_relations, thresholds
from unless.data.roles import (
    FEW_ROWS,
    MANY_LEVELS,
    cut_again,
    decide_role,
    is_count_name,
    is_sequence,
    may_count,
)
from unless.data.settings import DEFAULT_LEVELS, Bins, Missing, Settings, Shape, check_names, make_settings
from unless.data.source import Field, Source
from unless.data.sql import with_connection
from unless.data.survey import missing_sql, number_sql
from unless.errors import DataError, SettingError
from unless.runtime.memory import memory_errors_told

# Whole numbers of so many values are a scale, a count or a grade; fewer may be codes of kinds, without order,
# so that no trend is looked for unless the order is given.
LEAST_ORDERED = 5
# Columns whose holes are told apart; there are at most 2 to this power of patterns.
_TRACKED = 16
# Columns of 0 and 1 that may be one column: at least so many with a common beginning.
_LEAST_ONE_HOT = 3


def prepare(  # noqa: PLR0913 (every argument is one answer about the table; they are independent)
    source: object,
    *,
    columns: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
    roles: Mapping[str, str] | None = None,
    ordered: Mapping[str, Iterable[object]] | Iterable[str] | None = None,
    count_column: str | None = None,
    weight_column: str | None = None,
    cluster_column: str | None = None,
    strata_column: str | None = None,
    missing: Missing | None = None,
    missing_values: Iterable[object] | None = None,
    levels: Mapping[str, Iterable[object]] | None = None,
    bins: Mapping[str, Bins] | None = None,
    rare: int | Mapping[str, int] | None = None,
    max_levels: int = DEFAULT_LEVELS,
    max_memory: int | str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    show_progress: bool | None = None,
    connection: object | None = None,
    sheet: str | int | None = None,
) -> Plan:
    """Look at a table and say what would be done with each column.

    Parameters
    ----------
    source
        Whatever `unless.read` understands.
    columns, exclude
        The columns to relate, or those to leave out.
    roles
        What some columns are: "category", "ordered", "number", "date", "count", "weight", "cluster",
        "strata", or "identifier", "text" and "excluded", which are left out.
    ordered
        The columns whose levels have an order: their names, or a mapping to their levels in order.
    count_column, weight_column, cluster_column, strata_column
        As in `unless.read`; a column that looks like weights of rows is taken for one.
    missing, missing_values, levels, bins, rare, max_levels
        As in `unless.read`: what is said there is not decided here.
    max_memory, delimiter, header, encoding, show_progress, connection, sheet
        As in `unless.read`.

    Examples
    --------
    >>> plan = prepare({"age": list(range(20, 80)) * 2, "sex": ["f", "m"] * 60, "Freq": [2, 3] * 60})
    >>> print(plan)
    age   number, cut at 35, 50, 65
    sex   category, 2 levels
    Freq  category, 2 levels
    """
    how = make_settings(
        columns=columns,
        count_column=count_column,
        missing=missing or "auto",
        missing_values=missing_values,
        levels=levels,
        bins=bins,
        rare=rare,
        max_levels=max_levels,
        max_memory=max_memory,
        delimiter=delimiter,
        header=header,
        encoding=encoding,
        exclude=exclude,
        roles=roles,
        ordered=ordered,
        sheet=sheet,
        weight_column=weight_column,
        cluster_column=cluster_column,
        strata_column=strata_column,
    )
    source = with_connection(source, connection)
    if isinstance(source, Dataset):
        raise SettingError("The table has been read already; pass its original to prepare it.")
    with (
        memory_errors_told(),
        progress("Preparing", show_progress, after=PATIENCE) as bar,
        Workshop(how.max_memory, bar) as shop,
    ):
        opened, plan, _ = make_plan(open_source(source, shop, how), shop, how)
        return replace(plan, notes=(*opened.notes, *plan.notes))


def make_plan(source: Source, shop: Workshop, how: Settings) -> tuple[Source, Plan, dict[str, Profile]]:
    """Make the plan of an open table; one that the database refuses is made again from a cleaned copy."""
    _check_names(source, how)
    choose_columns(source, how, usable=False)
    try:
        return source, *_make_plan(source, shop, how)
    except DataError:
        if source.repair is None:
            raise
        repaired = source.repair()
        return repaired, *_make_plan(repaired, shop, how)


def _make_plan(source: Source, shop: Workshop, how: Settings) -> tuple[Plan, dict[str, Profile]]:
    asked = [name for name in how.columns or source.names if name != how.count_column]
    asked += [name for name in how.design.values() if name not in asked]
    fields = [source.field(name) for name in asked]
    shop.stage("looking at the columns")
    numbers = [name for name in row_numbers(source) if how.columns is None]
    looked = [one for one in fields if one.name not in how.exclude and one.name not in numbers]
    count = how.count_column or next((name for name, role in how.roles.items() if role == "count"), None)
    weight = source.times if count is None else _count_sql(source, source.field(count))
    found = profile(source, looked, how, shop, weight)
    if not any(one.n_rows for one in found.values()):
        # Said in one sentence where the rows are read.
        return Plan(tuple(PlanLine(name=one.name, role="category") for one in fields)), found
    if count is None and (name := _find_count(source, found, how, shop)) is not None:
        count = name
        others = [one for one in looked if one.name != name]
        found |= profile(source, others, how, shop, _count_sql(source, source.field(name)))
    lines = {one.name: _line(one, found, count, numbers, how) for one in fields}
    _one_weight(lines, how)
    if how.count_column is not None:
        lines[how.count_column] = PlanLine(name=how.count_column, role="count", kept=False, why=AS_ASKED)
    _keep_apart(source, lines, found, how, shop)
    lines = _at_least_two(lines, found)
    missing, lines = _missing(source, lines, found, how, shop, count)
    notes = [*_notes(lines, found), *_one_hot(source, lines, found, shop)]
    n_rows = next(iter(found.values())).n_rows if found else 0
    named = [name for name in source.names if name in lines]
    return Plan(tuple(lines[name] for name in named), tuple(notes), n_rows, missing), found


def _check_names(source: Source, how: Settings) -> None:
    given = {
        "columns=": how.columns or (),
        "exclude=": how.exclude,
        "roles=": how.roles,
        "ordered=": how.ordered,
        "levels=": how.levels,
        "bins=": how.bins,
        "rare=": how.rare if isinstance(how.rare, dict) else (),
        "count_column=": [how.count_column] if how.count_column else (),
    }
    for argument, names in given.items():
        check_names(names, source.names, argument)


def _count_sql(source: Source, count: Field) -> str:
    # Bad counts are refused where the table is read.
    return f"coalesce(try_cast({number_sql(count)} as BIGINT), 0) * {source.times}"


def _line(
    one: Field, found: Mapping[str, Profile], count: str | None, numbers: Sequence[str], how: Settings
) -> PlanLine:
    if one.name in how.exclude:
        return PlanLine(name=one.name, role="excluded", kept=False, why=AS_ASKED)
    if one.name in numbers:
        return PlanLine(name=one.name, role="identifier", kept=False, why=ROW_NUMBERS)
    if one.name == count:
        return PlanLine(name=one.name, role="count", kept=False)
    for says, name in how.design.items():
        if one.name == name and not (says == "strata" and one.name in (how.columns or ())):
            return PlanLine(name=name, role=says, kept=False, why=AS_ASKED)  # type: ignore[arg-type]
    return decide_role(found[one.name], how)


def _one_weight(lines: dict[str, PlanLine], how: Settings) -> None:
    """Keep the weights that were asked for, or the first of those that look like some; leave others out."""
    found = [name for name, line in lines.items() if line.role == "weight"]
    chosen = how.design.get("weight") or next(iter(found), None)
    for name in found:
        if name != chosen:
            why = f"it looks like weights of rows, and {chosen} has them"
            lines[name] = PlanLine(name=name, role="excluded", kept=False, why=why)


def _find_count(source: Source, found: Mapping[str, Profile], how: Settings, shop: Workshop) -> str | None:
    """Find the column that counts the rows of a contingency table.

    It is called so, it holds whole numbers, and the other columns, categories all, differ in every row.
    """
    for name, one in found.items():
        if not is_count_name(name) or name in how.roles or not may_count(one):
            continue
        if how.columns is not None and name in how.columns:
            continue
        others = [other for other in found.values() if other.name != name]
        lines = {other.name: decide_role(other, how) for other in others}
        used = [other for other in others if lines[other.name].kept]
        plain = all(lines[other.name].is_plain and other.n_values <= MANY_LEVELS for other in used)
        if len(used) < 2 or not plain or one.n_rows < 4:
            continue
        listed = ", ".join(other.field.column for other in used)
        n_distinct = shop.value(f"select count(*) from (select distinct {listed} from {source.relation})")
        if n_distinct == one.n_rows:
            return name
    return None


def _keep_apart(
    source: Source, lines: dict[str, PlanLine], found: Mapping[str, Profile], how: Settings, shop: Workshop
) -> None:
    """Leave out copies of numbers, and cut numbers where columns that they tell change."""
    if how.columns is not None:
        return
    numbers = [
        found[name]
        for name, line in lines.items()
        if line.role == "number" and line.cuts and name not in how.roles and found[name].n_rows >= FEW_ROWS
    ]
    few = [
        found[name]
        for name, line in lines.items()
        if line.kept
        and line.is_plain
        and found[name].labels is not None
        and name not in {**how.roles, **how.levels}
    ]
    for relation in find_relations(source, numbers, few, how, shop):
        name, tells = relation.column, relation.source
        if not relation.steps:
            role = "copy" if relation.is_copy else "function"
            why = (
                "the same order of rows" if relation.is_copy else f"each value of {tells} has one value of it"
            )
            lines[name] = PlanLine(name=name, role=role, kept=False, source=tells, why=why)  # type: ignore[arg-type]
            continue
        at = thresholds(relation, found[tells].is_whole, lines[tells].cuts)
        lines[tells] = _cut_at(lines[tells], found[tells], at)
        lines[name] = replace(lines[name], role="function", source=tells, why=_steps_told(relation, at))


def _cut_at(line: PlanLine, one: Profile, at: Sequence[float]) -> PlanLine:
    """Cut a column where another one changes; a cut nearby gives way, so that groups stay as many."""
    cuts = set(line.cuts)
    most = max(n_groups(one.n_present) - 1, len(at))
    for cut in at:
        if cut not in cuts:
            own = [other for other in cuts if other not in at]
            if own and len(cuts) >= most:
                cuts.remove(min(own, key=lambda other: (abs(other - cut), other)))
            cuts.add(cut)
    return cut_again(line, one, tuple(sorted(cuts)))


def _steps_told(relation: Relation, at: Sequence[float]) -> str:
    labels = [label for label, _, _ in relation.steps]
    told = [f"{labels[0]} where {relation.source} is under {spoken_cut(at[0])}"]
    told += [f"{label} from {spoken_cut(cut)}" for label, cut in zip(labels[1:], at, strict=True)]
    return ", ".join(told)


def _at_least_two(lines: dict[str, PlanLine], found: Mapping[str, Profile]) -> dict[str, PlanLine]:
    """Say in one sentence why nothing can be related where fewer than two columns are left."""
    kept = [one for one in lines.values() if one.kept]
    made = sum(max(1, len(one.parts)) for one in kept)
    if made >= 2 or not found or len(lines) < 2:
        return lines
    gone = [f"{name!r} ({one.role})" for name, one in lines.items() if not one.kept]
    listed = ", ".join(gone[:8]) + (f" and {len(gone) - 8:,} more" if len(gone) > 8 else "")
    have = f"only {kept[0].name!r} is" if kept else "no column is"
    raise DataError(
        f"There is nothing to relate, as {have} left to look at without {listed}; name the columns to keep "
        "with columns= or say what they are with roles=."
    )


def _missing(
    source: Source,
    lines: dict[str, PlanLine],
    found: Mapping[str, Profile],
    how: Settings,
    shop: Workshop,
    count: str | None,
) -> tuple[str, dict[str, PlanLine]]:
    """Decide what is done with missing values, unless somebody said."""
    kept = [name for name, line in lines.items() if line.kept and found[name].n_missing]
    if how.missing != "auto" or not kept:
        return "", lines
    holes = _patterns(source, [found[name] for name in kept], how, shop, count)
    forced = [name for name in kept if lines[name].missing]
    policy = decide_holes(kept, holes, forced)
    changed = dict(lines)
    for name in policy.levels:
        changed[name] = replace(lines[name], missing=True)
    return told(policy, holes, forced), changed


def _patterns(
    source: Source, holed: Sequence[Profile], how: Settings, shop: Workshop, count: str | None
) -> Holes:
    """Count the rows by the columns that they lack; beyond the first sixteen, the rest count as the last."""
    ranked = sorted(holed, key=lambda one: (-one.n_missing, one.name))
    tracked, rest = ranked[:_TRACKED], ranked[_TRACKED:]
    flags = [_hole_sql(one, how) for one in tracked]
    if rest:
        flags.append(" or ".join(_hole_sql(one, how) for one in rest))
    names = [one.name for one in [*tracked, *rest[:1]]]
    listed = ", ".join(f"({flag}) as m{place}" for place, flag in enumerate(flags))
    weight = source.times if count is None else _count_sql(source, source.field(count))
    rows = shop.rows(f"select {listed}, sum({weight})::BIGINT from {source.relation} group by all")
    patterns: Counter[frozenset[str]] = Counter()
    for *lacks, n in rows:
        patterns[frozenset(name for name, flag in zip(names, lacks, strict=True) if flag)] += int(n or 0)
    return Holes(patterns)


def _hole_sql(one: Profile, how: Settings) -> str:
    if one.is_number and one.field.form != "code":
        return f"({number_or_null(one.field, how)}) is null"
    return missing_sql(one.field, how)


def _notes(lines: Mapping[str, PlanLine], found: Mapping[str, Profile]) -> list[str]:
    notes = []
    again = [name for name, line in lines.items() if "come again" in line.why]
    if again:
        listed = " or ".join(map(repr, again[:3]))
        notes.append(
            f"Rows with the same {listed} may not be independent, and are taken to be; name the column with "
            "cluster_column= if they are not."
        )
    moments = [name for name, line in lines.items() if line.role == "date" and is_sequence(found[name])]
    if moments:
        notes.append(
            f"Rows in sequence of time ({shown_names(moments)}) may not be independent, and are taken to be."
        )
    several = [name for name in lines if name in found and _holds_several(found[name])]
    if several:
        notes.append(
            f"Cells of {shown_names(several)} hold several answers at once; split them into columns of their "
            "own."
        )
    return notes


def _holds_several(one: Profile) -> bool:
    """Tell whether cells are lists such as "a;b;c", of answers that come again in other combinations."""
    if one.labels is None or one.is_number or one.dates is not None or one.n_values < 3:
        return False
    for sign in (";", "|"):
        joined = [label for label in one.labels if sign in label.strip(sign)]
        words = {word.strip() for label in one.labels for word in label.split(sign) if word.strip()}
        if len(joined) >= 2 and len(words) < one.n_values:
            return True
    return False


def _one_hot(
    source: Source, lines: Mapping[str, PlanLine], found: Mapping[str, Profile], shop: Workshop
) -> list[str]:
    """Name sets of columns of 0 and 1, called alike, of which exactly one is 1 in every row."""
    groups: dict[str, list[Profile]] = {}
    for name, line in lines.items():
        one = found.get(name)
        if one is None or not line.kept or one.field.form == "code" or one.n_missing:
            continue
        if one.is_number and one.is_whole and one.n_values == 2 and (one.low, one.high) == (0, 1):
            stem = max((name.rpartition(sign)[0] for sign in "_.: -"), key=len)
            groups.setdefault(stem, []).append(one)
    notes = []
    for stem, members in groups.items():
        ones = sum((one.labels or {}).get("1", 0) for one in members)
        # Their ones add up to the rows before any row is looked at.
        if not stem or len(members) < _LEAST_ONE_HOT or ones != members[0].n_rows:
            continue
        total = " + ".join(number_sql(one.field) for one in members)
        if not shop.value(f"select count(*) from {source.relation} where {total} <> 1"):
            listed = shown_names([one.name for one in members])
            notes.append(
                f"Columns {listed} are one column in {len(members):,}: exactly one of them is 1 in each row; "
                "join them, or leave one out."
            )
    return notes


def follow(plan: Plan, how: Settings, *, is_new: bool) -> Settings:
    """Turn a plan into settings of reading; what was asked for beside it comes first.

    A plan that `is_new` was made of this very table: its categories need no levels, and its numbers no check.
    """
    kept = [name for one in plan.lines if one.kept and one.role not in DONE for name in _made(one)]
    shapes: dict[str, Shape] = {}
    levels = dict(how.levels)
    ordered = dict(how.ordered)
    rare: dict[str, int] = {}
    for one in plan.lines:
        if not one.kept or one.name in how.bins or one.name in how.levels:
            continue
        if one.cuts:
            shapes[one.name] = Shape(one.name, one.levels, one.cuts, known=is_new)
        for part in one.parts:
            name = part.name_of(one.name)
            shapes[name] = Shape(one.name, part.levels, part.cuts, part.part, one.written, known=False)
        if one.rare and not how.rare_below(one.name):
            rare[one.name] = one.rare
        if not is_new and one.levels and not one.rare:
            levels[one.name] = one.levels
        is_asked = not is_new or one.why == AS_ASKED
        if one.role == "ordered" and not one.cuts and (is_asked or len(one.levels) >= LEAST_ORDERED):
            ordered.setdefault(one.name, None)
    left_out = [one for one in plan.lines if not one.kept and one.role not in DONE]
    same = not any(one.parts for one in plan.lines) and all(
        one.why in (ROW_NUMBERS, BLANK) for one in left_out
    )
    columns = how.columns if same and (is_new or how.columns is not None) else tuple(kept)
    if how.columns is not None:
        columns = _in_order(how.columns, plan)
    return replace(
        how,
        columns=columns,
        count_column=how.count_column or plan.count_column,
        design={**plan.design, **how.design},
        missing="drop" if how.missing == "auto" else how.missing,
        levels=levels,
        ordered=ordered,
        shapes={**shapes, **how.shapes},
        rare=how.rare if isinstance(how.rare, int) else {**rare, **(how.rare or {})} or None,
        missing_levels=frozenset(one.name for one in plan.lines if one.missing and how.missing == "auto"),
    )


def _made(line: PlanLine) -> list[str]:
    return [part.name_of(line.name) for part in line.parts] or [line.name]


def _in_order(columns: Sequence[str], plan: Plan) -> tuple[str, ...]:
    """Keep the columns that were asked for, in their order, but for those that cannot be related."""
    wanted: list[str] = []
    for name in columns:
        if name not in plan:
            wanted.append(name)
        elif plan[name].kept:
            wanted += _made(plan[name])
    return tuple(wanted)


def cut_alike(plan: Plan, domain: Domain) -> Plan:
    """Cut numbers and dates where another table was cut; categories may show other levels than here."""
    lines = []
    for line in plan.without_levels().lines:
        other = next((one for one in domain if one.name == line.name), None)
        if other is not None and other.cuts and line.role in ("number", "ordered", "category", "function"):
            groups = other.levels[: len(other.cuts) + 1]
            line = replace(line, role="number", kept=True, cuts=other.cuts, levels=groups)
        elif other is not None and line.cuts:
            # There every number is a level.
            line = replace(line, role="ordered", cuts=(), levels=())
        lines.append(line)
    return replace(plan, lines=tuple(lines))


def check_plan(plan: Plan, source: Source) -> None:
    """Refuse a table that lacks columns of a plan."""
    needed = [one.name for one in plan.lines if one.kept or one.role in DONE]
    gone = [name for name in needed if name not in source.names]
    if gone:
        raise DataError(
            f"The table has no column {shown_names(gone)}, which the plan needs; make a plan of this table."
        )
