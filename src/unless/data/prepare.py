"""A plan for any table: one look at every column decides what is done with it."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from unless.data.choices import NO, NONE, YES, is_blank, is_tick_box, is_ticked, name_of_choice, stems
from unless.data.cutting import format_cuts, n_groups
from unless.data.dataset import Dataset
from unless.data.domain import Domain
from unless.data.holes import Holes, decide_holes, is_skipped, may_be_skipped, told
from unless.data.labels import sort_labels
from unless.data.plan import AS_ASKED, BLANK, DONE, ROW_NUMBERS, Plan, PlanLine, shown_names
from unless.data.profile import Profile, number_or_null, profile
from unless.data.relations import Relation, find_relations, thresholds
from unless.data.roles import (
    FEW_ROWS,
    MANY_LEVELS,
    MOST_LEVELS,
    NATURAL_VALUES,
    cut_again,
    decide_role,
    is_count_name,
    is_sequence,
    may_count,
)
from unless.data.scales import BUT_FOR, KNOWN_ORDERS, LEAST_ORDERED, find_no_answer_codes
from unless.data.settings import DEFAULT_LEVELS, Bins, Missing, Settings, Shape, check_names, make_settings
from unless.data.shaping import joined_levels, ticked_sql, with_labels, with_numbers
from unless.data.sources.opening import choose_columns, open_source, row_numbers
from unless.data.sources.session import DuckDBSession, Field, Source
from unless.data.sources.sql import with_connection
from unless.data.survey import missing_sql, number_sql
from unless.errors import DataError, SettingError
from unless.runtime.memory import memory_errors_explained
from unless.runtime.progress import BAR_DELAY, progress

# Columns whose holes are told apart; there are at most 2 to this power of patterns.
_TRACKED = 16
# Columns of yes and no that are one column: at least so many with a common beginning.
_LEAST_ONE_HOT = 2


def prepare(  # noqa: PLR0913 (every argument is one answer about the table; they are independent)
    source: object,
    *,
    columns: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
    roles: Mapping[str, str] | None = None,
    ordered: Mapping[str, Iterable[object]] | Iterable[str] | None = None,
    join: Mapping[str, Iterable[str]] | None = None,
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
        What some columns are: "category", "ordered", "number", "date", "day first" (a date such as
        03/04/2020 that begins with the day), "choices" (cells that hold several answers), "count", "weight",
        "cluster", "strata", or "identifier", "text" and "excluded", which are left out. Instead of "date",
        its parts: "year", "quarter", "month", "weekday" and "hour", several with a + between them.
    ordered
        The columns whose levels have an order: their names, or a mapping to their levels in order.
    join
        Sets of columns of yes and no, of which one at most is yes in each row, by the name of the column that
        they become: ``join={"color": ["color_red", "color_blue"]}``. Sets that are called alike, and of which
        exactly one is yes in each row, are joined without being named, unless one has a role.
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
        join=join,
        sheet=sheet,
        weight_column=weight_column,
        cluster_column=cluster_column,
        strata_column=strata_column,
    )
    source = with_connection(source, connection)
    if isinstance(source, Dataset):
        raise SettingError("The table has been read already; pass its original to prepare it.")
    with (
        memory_errors_explained(),
        progress("Preparing", show_progress, after=BAR_DELAY) as bar,
        DuckDBSession(how.max_memory, bar) as session,
    ):
        opened, plan, _ = make_plan(open_source(source, session, how), session, how)
        return replace(plan, notes=(*opened.notes, *plan.notes))


def make_plan(
    source: Source, session: DuckDBSession, how: Settings
) -> tuple[Source, Plan, dict[str, Profile]]:
    """Make the plan of an open table; one that the database refuses is made again from a cleaned copy."""
    _check_names(source, how)
    choose_columns(source, how, usable=False)
    try:
        return _make_plan(source, session, how)
    except DataError:
        if source.repair is None:
            raise
        return _make_plan(source.repair(), session, how)


def _make_plan(
    source: Source, session: DuckDBSession, how: Settings
) -> tuple[Source, Plan, dict[str, Profile]]:
    asked = [name for name in how.columns or source.names if name != how.count_column]
    asked += [name for name in how.design.values() if name not in asked]
    fields = [source.field(name) for name in asked]
    session.stage("looking at the columns")
    numbers = [name for name in row_numbers(source) if how.columns is None]
    looked = [one for one in fields if one.name not in how.exclude and one.name not in numbers]
    count = how.count_column or next((name for name, role in how.roles.items() if role == "count"), None)
    weight = source.times if count is None else _count_sql(source, source.field(count))
    found = profile(source, looked, how, session, weight)
    if not any(one.n_rows for one in found.values()):
        if fields and not looked:
            raise DataError("There is nothing to relate, as every column is left out; exclude fewer columns.")
        # Said in one sentence where the rows are read.
        lines = {one.name: PlanLine(name=one.name, role="category") for one in fields}
        if count is not None:
            lines[count] = PlanLine(name=count, role="count", kept=False, why=AS_ASKED)
        return source, Plan(tuple(lines.values())), found
    source = _read_numerals(source, found, how, session, weight)
    if count is None and (name := _find_count(source, found, how, session)) is not None:
        count = name
        weight = _count_sql(source, source.field(name))
        others = [source.field(one.name) for one in looked if one.name != name]
        found |= profile(source, others, how, session, weight)
    lines = {one.name: _line(one, found, count, numbers, how) for one in fields}
    _one_weight(lines, how)
    if how.count_column is not None:
        lines[how.count_column] = PlanLine(name=how.count_column, role="count", kept=False, why=AS_ASKED)
    source = _without_no_answers(source, lines, found, how, session, weight)
    lines |= _joined(source, lines, found, how, session)
    _keep_apart(source, lines, found, how, session)
    lines = _at_least_two(lines, found)
    missing, lines = _missing(source, lines, found, how, session, count)
    n_rows = next(iter(found.values())).n_rows if found else 0
    plan = Plan(tuple(_in_place(source.names, lines)), tuple(_notes(lines, found)), n_rows, missing)
    return source, plan, found


def _in_place(names: Sequence[str], lines: Mapping[str, PlanLine]) -> Iterator[PlanLine]:
    """Give the lines in the order of the table; a joined column stands before the first of its columns."""
    before = {line.columns[0]: line for line in lines.values() if line.columns}
    for name in names:
        if name in before:
            yield before[name]
        if name in lines and not lines[name].columns:
            yield lines[name]


def _read_numerals(
    source: Source, found: dict[str, Profile], how: Settings, session: DuckDBSession, weight: str
) -> Source:
    """Put numbers in the place of columns of text that hold them, where they are more than a few."""
    read = []
    for name, one in found.items():
        if one.numerals is None or name in how.levels or name in how.ordered:
            continue
        asked = how.roles.get(name) == "number" or name in how.bins
        if not asked and (name in how.roles or one.n_rows < FEW_ROWS or one.n_values <= NATURAL_VALUES):
            continue
        source = with_numbers(source, one.field, one.numerals.written, how, session)
        read.append(name)
    if read:
        for name, one in profile(source, [source.field(name) for name in read], how, session, weight).items():
            one.numerals = found[name].numerals
            found[name] = one
    return source


def _without_no_answers(
    source: Source,
    lines: Mapping[str, PlanLine],
    found: dict[str, Profile],
    how: Settings,
    session: DuckDBSession,
    weight: str,
) -> Source:
    """Count answers that are no place on a scale as missing."""
    aside = [line for line in lines.values() if line.no_answers]
    for line in aside:
        shape = Shape(line.name, line.levels, missing=line.no_answers)
        source = with_labels(source, source.field(line.name), shape, how, session)
    if aside:
        found |= profile(source, [source.field(line.name) for line in aside], how, session, weight)
    return source


def _check_names(source: Source, how: Settings) -> None:
    given = {
        "columns=": how.columns or (),
        "exclude=": how.exclude,
        "roles=": how.roles,
        "ordered=": how.ordered,
        "join=": [name for listed in how.join.values() for name in listed],
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


def _find_count(
    source: Source, found: Mapping[str, Profile], how: Settings, session: DuckDBSession
) -> str | None:
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
        n_distinct = session.value(f"select count(*) from (select distinct {listed} from {source.relation})")
        if n_distinct == one.n_rows:
            return name
    return None


def _keep_apart(
    source: Source,
    lines: dict[str, PlanLine],
    found: Mapping[str, Profile],
    how: Settings,
    session: DuckDBSession,
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
    for relation in find_relations(source, numbers, few, how, session):
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
    cuts = format_cuts(at)
    told = [f"{labels[0]} where {relation.source} is under {cuts[0]}"]
    told += [f"{label} from {cut}" for label, cut in zip(labels[1:], cuts, strict=True)]
    return ", ".join(told)


def _at_least_two(lines: dict[str, PlanLine], found: Mapping[str, Profile]) -> dict[str, PlanLine]:
    """Say in one sentence why nothing can be related where fewer than two columns are left."""
    kept = [one for one in lines.values() if one.kept]
    made = sum(len(one.made) for one in kept)
    if made >= 2 or not found or len(lines) < 2:
        return lines
    gone = [f"{name!r} ({one.role})" for name, one in lines.items() if not one.kept]
    listed = ", ".join(gone[:8]) + (f" and {len(gone) - 8:,} more" if len(gone) > 8 else "")
    have = f"only {kept[0].name!r} is" if kept else "no column is"
    raise DataError(
        f"There is nothing to relate, as {have} left to look at without {listed}; exclude fewer columns, or "
        "say what they are with roles=."
    )


def _missing(
    source: Source,
    lines: dict[str, PlanLine],
    found: Mapping[str, Profile],
    how: Settings,
    session: DuckDBSession,
    count: str | None,
) -> tuple[str, dict[str, PlanLine]]:
    """Decide what is done with missing values, unless somebody said."""
    kept = [
        name
        for name, line in lines.items()
        if line.kept and name in found and found[name].n_missing and not (line.choices and line.missing)
    ]
    if how.missing != "auto" or not kept:
        return "", lines
    holes = _patterns(source, [found[name] for name in kept], how, session, count)
    forced = [name for name in kept if lines[name].missing]
    holed = [found[name] for name in may_be_skipped(kept, holes) if name not in forced]
    skipped = _skipped(source, holed, lines, found, how, session, count)
    policy = decide_holes(kept, holes, [*forced, *skipped])
    changed = dict(lines)
    for name in policy.levels:
        changed[name] = replace(lines[name], missing=True)
    return told(policy, holes, forced), changed


def _patterns(
    source: Source, holed: Sequence[Profile], how: Settings, session: DuckDBSession, count: str | None
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
    rows = session.rows(f"select {listed}, sum({weight})::BIGINT from {source.relation} group by all")
    patterns: Counter[frozenset[str]] = Counter()
    for *lacks, n in rows:
        patterns[frozenset(name for name, flag in zip(names, lacks, strict=True) if flag)] += int(n or 0)
    return Holes(patterns)


def _skipped(
    source: Source,
    holed: Sequence[Profile],
    lines: Mapping[str, PlanLine],
    found: Mapping[str, Profile],
    how: Settings,
    session: DuckDBSession,
    count: str | None,
) -> list[str]:
    """Return the columns that (nearly) all rows with some level of another column lack.

    Where men are not asked for births, complete rows are of women: leaving the others out would lose "man".
    """
    kept = [(found[name], line) for name, line in lines.items() if line.kept and name in found]
    keys = [sql for one, line in kept if (sql := _level_sql(one, line, how))]
    if not holed or not keys:
        return []
    weight = source.times if count is None else _count_sql(source, source.field(count))
    inner = [f"{sql} as y{place}" for place, sql in enumerate(keys)]
    inner += [f"({_hole_sql(one, how)}) as h{place}" for place, one in enumerate(holed)]
    known = ", ".join(f"sum(case when h{place} then 0 else w end)::BIGINT" for place in range(len(holed)))
    shown = ", ".join(f"y{place}" for place in range(len(keys)))
    sets = ", ".join(f"(y{place})" for place in range(len(keys)))
    rows = session.rows(
        f"select coalesce({shown}, '') as label, sum(w)::BIGINT, {known} "
        f"from (select {', '.join(inner)}, {weight} as w from {source.relation}) "
        f"group by grouping sets ({sets})"
    )
    met = set[str]()
    for label, n, *counts in rows:
        if label:
            met |= {one.name for one, n_known in zip(holed, counts, strict=True) if is_skipped(n, n_known)}
    return [one.name for one in holed if one.name in met]


def _level_sql(one: Profile, line: PlanLine, how: Settings) -> str:
    """Write the level of a column as text, empty where it is missing; nothing where it has too many."""
    if one.is_number and one.field.form != "code" and line.cuts:
        number = f"({number_or_null(one.field, how)})"
        steps = " + ".join(f"({number} >= {cut!r})::INT" for cut in line.cuts)
        return f"coalesce(({steps})::VARCHAR, '')"
    if one.n_values > MOST_LEVELS or line.choices or line.parts:
        return ""
    return f"case when {_hole_sql(one, how)} then '' else {one.field.column}::VARCHAR end"


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
    several = [
        name
        for name, line in lines.items()
        if name in found and line.role != "choices" and line.why != AS_ASKED and _holds_several(found[name])
    ]
    if several:
        notes.append(
            f"Cells of {shown_names(several)} may hold several answers at once; if so, split them with "
            f"roles={{{several[0]!r}: 'choices'}} (--as {several[0]}=choices)."
        )
    return [*notes, *_no_answer_notes(lines, found)]


def _no_answer_notes(lines: Mapping[str, PlanLine], found: Mapping[str, Profile]) -> Iterator[str]:
    """Name what may stand for no answer, and is read as any other level."""
    way = "name all that stands for missing with missing_values=."
    scales = [name for name, line in lines.items() if line.kept and line.why.startswith(BUT_FOR)]
    if scales:
        labels = list(dict.fromkeys(lines[name].why.removeprefix(BUT_FOR) for name in scales))
        have = f"{shown_names(scales)} {'has' if len(scales) == 1 else 'have'}"
        yield f"{have} no order with {', '.join(labels[:3])} as a level; if it is to be missing, {way}"
    codes = {
        name: codes
        for name, line in lines.items()
        if line.kept and AS_ASKED not in line.why and (codes := _no_answer_codes(found.get(name)))
    }
    if codes:
        told = [f"{', '.join(map(str, some))} in {name!r}" for name, some in codes.items()]
        more = f" and in {len(told) - 4:,} more columns" if len(told) > 4 else ""
        yield f"{', '.join(told[:4])}{more} may stand for no answer; if so, {way}"


def _no_answer_codes(one: Profile | None) -> tuple[int, ...]:
    if one is None or one.numbers is None or not one.is_whole or one.labels is None:
        return ()
    if one.n_rows < FEW_ROWS:
        return ()
    return find_no_answer_codes(one.numbers.values.tolist())


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


def _joined(
    source: Source,
    lines: Mapping[str, PlanLine],
    found: Mapping[str, Profile],
    how: Settings,
    session: DuckDBSession,
) -> dict[str, PlanLine]:
    """Join sets of columns of yes and no into one each: those asked for, and those that are one column."""
    changed: dict[str, PlanLine] = {}
    taken = {one for listed in how.join.values() for one in listed}
    sets = [(name, columns, AS_ASKED) for name, columns in how.join.items()]
    if how.columns is None:
        found_sets = _one_hot(
            source, [one for one in _boxes(lines, found, how) if one.name not in taken], session
        )
        sets += [(name, columns, "exactly one is yes in each row") for name, columns in found_sets]
    for stem, columns, why in sets:
        asked = why == AS_ASKED
        if asked:
            _check_boxes(stem, columns, found)
        name = stem if stem not in source.names else f"{stem} (joined)"
        levels = joined_levels(name, columns)
        if asked and _some_row_ticks_none(source, columns, session):
            levels = (*levels, NONE)
        changed[name] = PlanLine(name=name, role="category", levels=levels, columns=tuple(columns), why=why)
        for column in columns:
            changed[column] = PlanLine(name=column, role="joined", kept=False, source=name)
    return changed


def _check_boxes(name: str, columns: Sequence[str], found: Mapping[str, Profile]) -> None:
    for column in columns:
        one = found.get(column)
        if one is None or not all(is_ticked(label) or is_blank(label) for label in one.labels or ("?",)):
            raise DataError(
                f"Column {column!r} of join={{{name!r}: ...}} does not hold yes and no, or 1 and 0; leave it "
                "out."
            )


def _some_row_ticks_none(source: Source, columns: Sequence[str], session: DuckDBSession) -> bool:
    none = " and ".join(f"not {ticked_sql(source.field(column))}" for column in columns)
    return bool(session.value(f"select count(*) from {source.relation} where {none}"))


def is_box(one: Profile) -> bool:
    """Tell whether a column says yes or no, in whatever words."""
    return one.labels is not None and (is_tick_box(one.labels) or set(one.labels) <= {"0", "1"})


def _boxes(lines: Mapping[str, PlanLine], found: Mapping[str, Profile], how: Settings) -> list[Profile]:
    kept = [found[name] for name, line in lines.items() if line.kept and name in found]
    return [
        one
        for one in kept
        if not one.n_missing
        and one.n_rows >= FEW_ROWS
        and one.n_values == 2
        and is_box(one)
        and one.name not in {**how.roles, **how.levels, **how.ordered}
    ]


def _one_hot(
    source: Source, boxes: Sequence[Profile], session: DuckDBSession
) -> list[tuple[str, tuple[str, ...]]]:
    """Find sets of columns of yes and no, called alike, of which exactly one is yes in every row."""
    groups: dict[str, list[Profile]] = {}
    for one in boxes:
        for stem in stems(one.name):
            groups.setdefault(stem, []).append(one)
    sets = []
    taken: set[str] = set()
    for stem, members in sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        names = [one.name for one in members]
        ones = sum(n for one in members for label, n in (one.labels or {}).items() if is_ticked(label))
        # Their ones add up to the rows before any row is looked at.
        if len(names) < _LEAST_ONE_HOT or taken & set(names) or ones != members[0].n_rows:
            continue
        total = " + ".join(f"{ticked_sql(one.field)}::INTEGER" for one in members)
        if not session.value(f"select count(*) from {source.relation} where {total} <> 1"):
            sets.append((stem, tuple(names)))
            taken.update(names)
    return sets


def follow(plan: Plan, how: Settings, *, is_new: bool) -> Settings:
    """Turn a plan into settings of reading; what was asked for beside it comes first.

    A plan that `is_new` was made of this very table: its categories need no levels, and its numbers no check.
    """
    kept = [name for one in plan.lines if one.kept and one.role not in DONE for name in one.made]
    shapes: dict[str, Shape] = {}
    levels = dict(how.levels)
    ordered = dict(how.ordered)
    rare: dict[str, int] = {}
    for one in plan.lines:
        if not one.kept or one.name in how.bins or one.name in how.levels:
            continue
        shapes |= _shapes(one, is_new)
        merged = one.name in shapes and bool(shapes[one.name].others)
        if one.rare and not merged and not how.rare_below(one.name):
            rare[one.name] = one.rare
        plain = bool(one.levels) and (merged or not one.rare)
        if plain and not one.columns and (not is_new or one.levels != sort_labels(one.levels)):
            levels[one.name] = one.levels
        ordered |= {part.name_of(one.name): None for part in one.parts if part.ordered}
        if one.role == "ordered" and not one.cuts and _is_in_order(one, is_new):
            ordered.setdefault(one.name, None)
    left_out = [one for one in plan.lines if not one.kept and one.role not in DONE]
    same = not any(one.made != (one.name,) or one.columns for one in plan.lines) and all(
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


def _shapes(one: PlanLine, is_new: bool) -> dict[str, Shape]:
    """Return what makes the columns of a line, by their names."""
    made: dict[str, Shape] = {}
    if one.cuts:
        made[one.name] = Shape(one.name, one.levels, one.cuts, written=one.written or None, known=is_new)
    for part in one.parts:
        name = part.name_of(one.name)
        made[name] = Shape(one.name, part.levels, part.cuts, part.part, one.written, known=False)
    for choice in one.choices:
        name = name_of_choice(one.name, choice)
        made[name] = Shape(
            one.name, (NO, YES), choice=choice, separator=one.separator, is_none=one.missing, known=is_new
        )
    if one.columns:
        made[one.name] = Shape(one.name, one.levels, columns=one.columns)
    if one.no_answers:
        made[one.name] = Shape(one.name, one.levels, missing=one.no_answers)
    if one.rare and one.levels:
        made[one.name] = Shape(one.name, one.levels, others=one.levels[-1])
    return made


def _is_in_order(one: PlanLine, is_new: bool) -> bool:
    return not is_new or one.why in (AS_ASKED, *KNOWN_ORDERS) or len(one.levels) >= LEAST_ORDERED


def _in_order(columns: Sequence[str], plan: Plan) -> tuple[str, ...]:
    """Keep the columns that were asked for, in their order, but for those that cannot be related."""
    wanted: list[str] = []
    for name in columns:
        if name not in plan:
            wanted.append(name)
        elif plan[name].kept:
            wanted += plan[name].made
        elif plan[name].role == "joined":
            wanted.append(str(plan[name].source))
    return tuple(dict.fromkeys(wanted))


def cut_alike(plan: Plan, domain: Domain) -> Plan:
    """Cut numbers and dates where another table was cut; categories may show other levels than here."""
    lines = []
    for line in plan.without_levels().lines:
        other = next((one for one in domain if one.name == line.name), None)
        if other is not None and other.cuts and line.role in ("number", "ordered", "category", "function"):
            groups = other.levels[: len(other.cuts) + 1]
            line = replace(line, role="number", kept=True, cuts=other.cuts, levels=groups)
        elif other is not None and line.rare and other.levels[-1].strip("()") == "other":
            line = replace(line, levels=other.levels)
        elif other is not None and line.cuts:
            # There every number is a level.
            line = replace(line, role="ordered", cuts=(), levels=())
        lines.append(line)
    return replace(plan, lines=tuple(lines))


def check_plan(plan: Plan, source: Source) -> None:
    """Refuse a table that lacks columns of a plan."""
    used = [one for one in plan.lines if one.kept or one.role in DONE]
    needed = [name for one in used for name in (one.columns or (one.name,))]
    gone = [name for name in needed if name not in source.names]
    if gone:
        raise DataError(
            f"The table has no column {shown_names(gone)}, which the plan needs; make a plan of this table."
        )
