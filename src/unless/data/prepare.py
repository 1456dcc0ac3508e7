"""A plan for any table: one look at every column decides what is done with it."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from unless.data.columns.levels import missing_sql, number_or_null, number_sql
from unless.data.columns.numbers import format_cuts, group_sql, n_groups
from unless.data.columns.texts import (
    BUT_FOR,
    NONE,
    find_no_answer_codes,
    is_blank,
    is_tick_box,
    is_ticked,
    joined_levels,
)
from unless.data.dataset import Dataset
from unless.data.domain import listed, shorten
from unless.data.encode import ticked_sql, with_labels, with_numbers
from unless.data.plan import AS_ASKED, ROW_NUMBERS, Plan, PlanLine, Role
from unless.data.profile import Profile, profile
from unless.data.relations import Relation, find_relations, thresholds
from unless.data.roles import (
    FEW_ROWS,
    FEWEST_COUNTED,
    MANY_LEVELS,
    MOST_LEVELS,
    NATURAL_VALUES,
    cut_again,
    decide_role,
    is_count_name,
    is_sequence,
    may_count,
)
from unless.data.settings import (
    DEFAULT_LEVELS,
    Bins,
    Missing,
    Settings,
    Shape,
    check_names,
    make_settings,
    stems,
)
from unless.data.sources.opening import choose_columns, open_source, row_numbers
from unless.data.sources.session import DuckDBSession, Field, Source
from unless.data.sources.sql import with_connection
from unless.errors import DataError, SettingError
from unless.runtime.memory import memory_errors_explained
from unless.runtime.progress import BAR_DELAY, progress

# Columns of yes and no that are one column: at least so many with a common beginning.
_LEAST_ONE_HOT = 2
# Columns whose missing values are told apart; there are at most 2 to this power of patterns.
_TRACKED = 16
# Learners have at least this share of the rows, complete ones; until then missing values become levels.
LEAST_KEPT = 0.5
# A column is not asked of a level of another column if so many rows or more have this level, and at least
# this share of them lack the column.
LEAST_SKIPPED, SKIPPED_SHARE = 10, 0.95
# Columns that lack no more than this share of their values are not looked at for that.
FEW_HOLES = 0.20
# Columns named in a sentence, at most.
MOST_NAMED = 100


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
    how = make_settings({**locals(), "missing": missing or "auto"})
    if connection is not None:
        source = with_connection(source, connection)
    if isinstance(source, Dataset):
        raise SettingError("The table has been read already; pass its original to prepare it.")
    with (
        memory_errors_explained(),
        progress("Preparing", show_progress, after=BAR_DELAY) as bar,
        DuckDBSession(how.max_memory, bar) as session,
    ):
        opened, plan, _ = make_plan(open_source(source, session, how), how)
        return replace(plan, notes=(*opened.notes, *plan.notes))


def make_plan(source: Source, how: Settings) -> tuple[Source, Plan, dict[str, Profile]]:
    """Make the plan of an open table; one that the database refuses is made again from a cleaned copy."""
    _check_names(source, how)
    choose_columns(source, how, usable=False)
    planner = _Planner(source, how)
    try:
        plan = planner.make_plan()
    except DataError:
        if source.repair is None:
            raise
        planner = _Planner(source.repair(), how)
        plan = planner.make_plan()
    return planner.source, plan, planner.profiles


def _check_names(source: Source, how: Settings) -> None:
    given = {
        "columns=": how.columns or (),
        "exclude=": how.exclude,
        "roles=": how.roles,
        "ordered=": how.ordered,
        "join=": [name for columns in how.join.values() for name in columns],
        "levels=": how.levels,
        "bins=": how.bins,
        "rare=": how.rare if isinstance(how.rare, dict) else (),
        "count_column=": [how.count_column] if how.count_column else (),
    }
    for argument, names in given.items():
        check_names(names, source.names, argument)


@dataclass
class _Planner:
    """A plan in the making: what is known of the table so far, and the lines decided."""

    source: Source
    how: Settings
    # The column that counts the rows, and the SQL of how many rows one row stands for.
    count: str | None = None
    weight: str = "1"
    profiles: dict[str, Profile] = field(default_factory=dict)
    lines: dict[str, PlanLine] = field(default_factory=dict)

    def make_plan(self) -> Plan:
        """Look at the columns, decide what each of them is, then what is done with several together."""
        fields = self._look()
        if not any(one.n_rows for one in self.profiles.values()):
            return self._plan_of_no_rows(fields)
        self._read_numerals()
        self._find_count()
        self._decide_roles(fields)
        self._drop_no_answers()
        self._join_boxes()
        self._relate_numbers()
        self._check_two_left()
        missing = self._decide_missing()
        n_rows = next(iter(self.profiles.values())).n_rows
        return Plan(tuple(self._lines_in_order()), tuple(self._notes()), n_rows, missing)

    def _look(self) -> list[Field]:
        """Profile the columns that are not left out; return those that a plan has a line for."""
        how, source = self.how, self.source
        asked = [name for name in how.columns or source.names if name != how.count_column]
        asked += [name for name in how.design.values() if name not in asked]
        fields = [source.field(name) for name in asked]
        self.source.session.stage("looking at the columns")
        left_out = {*how.exclude, *(row_numbers(source) if how.columns is None else ())}
        looked = [one for one in fields if one.name not in left_out]
        by_role = next((name for name, role in how.roles.items() if role == "count"), None)
        self.count = how.count_column or by_role
        self.weight = source.times if self.count is None else self._count_sql(self.count)
        self._profile(looked)
        if fields and not looked:
            raise DataError("There is nothing to relate, as every column is left out; exclude fewer columns.")
        return fields

    def _profile(self, fields: Sequence[Field]) -> None:
        self.profiles |= profile(self.source, fields, self.how, self.weight)

    def _count_sql(self, name: str) -> str:
        # Bad counts are refused where the table is read.
        number = number_sql(self.source.field(name))
        return f"coalesce(try_cast({number} as BIGINT), 0) * {self.source.times}"

    def _plan_of_no_rows(self, fields: Sequence[Field]) -> Plan:
        # That there are none is said where the rows are read.
        lines = {one.name: PlanLine(name=one.name, role="category") for one in fields}
        if self.count is not None:
            lines[self.count] = PlanLine(name=self.count, role="count", included=False, why=AS_ASKED)
        return Plan(tuple(lines.values()))

    def _read_numerals(self) -> None:
        """Put numbers in the place of columns of text that hold them, where they are more than a few."""
        how, read = self.how, {}
        for name, one in self.profiles.items():
            if one.numerals is None or name in how.levels or name in how.ordered:
                continue
            asked = how.roles.get(name) == "number" or name in how.bins
            if not asked and (name in how.roles or one.n_rows < FEW_ROWS or one.n_values <= NATURAL_VALUES):
                continue
            self.source = with_numbers(self.source, one.field, one.numerals.written, how)
            read[name] = one.numerals
        if read:
            self._profile([self.source.field(name) for name in read])
        for name, numerals in read.items():
            self.profiles[name].numerals = numerals

    def _find_count(self) -> None:
        """Find the column that counts the rows of a contingency table, unless it is known.

        It is called so, it holds whole numbers, and the other columns, categories all, differ in every row.
        """
        if self.count is not None:
            return
        asked = {*self.how.roles, *(self.how.columns or ())}
        for name, one in self.profiles.items():
            if not is_count_name(name) or name in asked or not may_count(one):
                continue
            others = [other for other in self.profiles.values() if other.name != name]
            lines = {other.name: decide_role(other, self.how) for other in others}
            used = [other for other in others if lines[other.name].included]
            plain = all(lines[other.name].is_plain and other.n_values <= MANY_LEVELS for other in used)
            if len(used) < 2 or not plain or one.n_rows < FEWEST_COUNTED:
                continue
            columns = ", ".join(other.field.column for other in used)
            n_distinct = self.source.session.value(
                f"select count(*) from (select distinct {columns} from {self.source.relation})"
            )
            if n_distinct == one.n_rows:
                self.count, self.weight = name, self._count_sql(name)
                self._profile([self.source.field(other.name) for other in others])
                return

    def _decide_roles(self, fields: Sequence[Field]) -> None:
        """Give each column a line; of columns that look like weights only one weights the rows."""
        self.lines = {one.name: self._line(one.name) for one in fields}
        weights = [name for name, line in self.lines.items() if line.role == "weight"]
        chosen = self.how.design.get("weight") or next(iter(weights), None)
        for name in weights:
            if name != chosen:
                why = f"it looks like weights of rows, and {chosen} has them"
                self.lines[name] = PlanLine(name=name, role="excluded", included=False, why=why)
        if (name := self.how.count_column) is not None:  # type: ignore[assignment]
            self.lines[name] = PlanLine(name=name, role="count", included=False, why=AS_ASKED)

    def _line(self, name: str) -> PlanLine:
        if name in self.how.exclude:
            return PlanLine(name=name, role="excluded", included=False, why=AS_ASKED)
        if name not in self.profiles:
            return PlanLine(name=name, role="identifier", included=False, why=ROW_NUMBERS)
        if name == self.count:
            return PlanLine(name=name, role="count", included=False)
        for says, column in self.how.design.items():
            if name == column and not (says == "strata" and name in (self.how.columns or ())):
                return PlanLine(name=name, role=says, included=False, why=AS_ASKED)  # type: ignore[arg-type]
        return decide_role(self.profiles[name], self.how)

    def _drop_no_answers(self) -> None:
        """Count answers that have no position on a scale as missing."""
        changed = [line for line in self.lines.values() if line.no_answers]
        for line in changed:
            shape = Shape(line.name, line.levels, missing=line.no_answers)
            base = self.source.field(line.name)
            self.source = with_labels(self.source, base, shape, self.how)
        if changed:
            self._profile([self.source.field(line.name) for line in changed])

    def _join_boxes(self) -> None:
        """Join sets of columns of yes and no into one each: those asked for, and those found to be one."""
        taken = {one for columns in self.how.join.values() for one in columns}
        sets = [(name, columns, AS_ASKED) for name, columns in self.how.join.items()]
        if self.how.columns is None:
            boxes = [one for one in self._boxes() if one.name not in taken]
            sets += [(stem, names, "exactly one is yes in each row") for stem, names in self._one_hot(boxes)]
        for stem, columns, why in sets:
            name = stem if stem not in self.source.names else f"{stem} (joined)"
            levels = joined_levels(name, columns)
            if why == AS_ASKED:
                _check_boxes(stem, columns, self.profiles)
                none = " and ".join(f"not {ticked_sql(self.source.field(column))}" for column in columns)
                if self.source.row("count(*)", f"where {none}")[0]:
                    levels = (*levels, NONE)
            self.lines[name] = PlanLine(
                name=name, role="category", levels=levels, columns=tuple(columns), why=why
            )
            for column in columns:
                self.lines[column] = PlanLine(name=column, role="joined", included=False, source=name)

    def _boxes(self) -> list[Profile]:
        asked = {**self.how.roles, **self.how.levels, **self.how.ordered}
        return [
            one
            for name, one in self._kept_profiles()
            if not one.n_missing
            and one.n_rows >= FEW_ROWS
            and one.n_values == 2
            and one.labels is not None
            and (is_tick_box(one.labels) or set(one.labels) <= {"0", "1"})
            and name not in asked
        ]

    def _kept_profiles(self) -> list[tuple[str, Profile]]:
        known = self.profiles
        return [(name, known[name]) for name, line in self.lines.items() if line.included and name in known]

    def _one_hot(self, boxes: Sequence[Profile]) -> list[tuple[str, tuple[str, ...]]]:
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
            if not self.source.row("count(*)", f"where {total} <> 1")[0]:
                sets.append((stem, tuple(names)))
                taken.update(names)
        return sets

    def _relate_numbers(self) -> None:
        """Leave out copies of numbers, and cut numbers where columns that they determine change."""
        if self.how.columns is not None:
            return
        kept, lines = self._kept_profiles(), self.lines
        numbers = [
            one
            for name, one in kept
            if lines[name].role == "number" and lines[name].cuts and name not in self.how.roles
        ]
        numbers = [one for one in numbers if one.n_rows >= FEW_ROWS]
        asked = {**self.how.roles, **self.how.levels}
        few = [
            one for name, one in kept if lines[name].is_plain and one.labels is not None and name not in asked
        ]
        if not numbers or (len(numbers) < 2 and not few):
            return
        for relation in find_relations(self.source, numbers, few, self.how):
            name, by = relation.column, relation.source
            if not relation.steps:
                role: Role = "function"
                why = f"each value of {by} has one value of it"
                if relation.is_copy:
                    role, why = "copy", "the same order of rows"
                lines[name] = PlanLine(name=name, role=role, included=False, source=by, why=why)
                continue
            cuts = thresholds(relation, self.profiles[by].is_whole, lines[by].cuts)
            lines[by] = _cut_at(lines[by], self.profiles[by], cuts)
            lines[name] = replace(lines[name], role="function", source=by, why=_format_steps(relation, cuts))

    def _check_two_left(self) -> None:
        """Say in one sentence why nothing can be related where fewer than two columns are left."""
        kept = [one for one in self.lines.values() if one.included]
        if sum(len(one.made) for one in kept) >= 2 or len(self.lines) < 2:
            return
        gone = [f"{name!r} ({one.role})" for name, one in self.lines.items() if not one.included]
        have = f"only {kept[0].name!r} is" if kept else "no column is"
        raise DataError(
            f"There is nothing to relate, as {have} left to look at without {listed(gone, 8)}; exclude fewer "
            "columns, or say what they are with roles=."
        )

    def _decide_missing(self) -> str:
        """Decide what is done with missing values, unless the user did; return it in a sentence."""
        lines = self.lines
        lacking = [
            one
            for name, one in self._kept_profiles()
            if one.n_missing and not (lines[name].choices and lines[name].missing)
        ]
        if self.how.missing != "auto" or not lacking:
            return ""
        patterns = self._missing_patterns(lacking)
        forced = [one.name for one in lacking if lines[one.name].missing]
        doubtful = [
            one
            for one in lacking
            if patterns.lacking(one.name) > FEW_HOLES * patterns.n_rows and one.name not in forced
        ]
        policy = decide_policy([one.name for one in lacking], patterns, [*forced, *self._skipped(doubtful)])
        for name in policy.levels:
            lines[name] = replace(lines[name], missing=True)
        return format_policy(policy, patterns, forced)

    def _missing_patterns(self, lacking: Sequence[Profile]) -> "MissingPatterns":
        """Count rows by the columns that they lack; beyond the first sixteen, the rest count as one."""
        ranked = sorted(lacking, key=lambda one: (-one.n_missing, one.name))
        tracked, rest = ranked[:_TRACKED], ranked[_TRACKED:]
        flags = [self._missing_sql(one) for one in tracked]
        if rest:
            flags.append(" or ".join(self._missing_sql(one) for one in rest))
        names = [one.name for one in [*tracked, *rest[:1]]]
        wanted = ", ".join(f"({flag}) as m{position}" for position, flag in enumerate(flags))
        rows = self.source.rows(f"{wanted}, sum({self.weight})::BIGINT", "group by all")
        patterns: Counter[frozenset[str]] = Counter()
        for *lacks, n in rows:
            patterns[frozenset(name for name, flag in zip(names, lacks, strict=True) if flag)] += int(n or 0)
        return MissingPatterns(patterns)

    def _skipped(self, doubtful: Sequence[Profile]) -> list[str]:
        """Return the columns that (nearly) all rows with some level of another column lack.

        Where men are not asked for births, complete rows are of women: without the others, "man" is lost.
        """
        keys = [sql for name, one in self._kept_profiles() if (sql := self._level_sql(one, self.lines[name]))]
        if not doubtful or not keys:
            return []
        inner = [f"{sql} as y{position}" for position, sql in enumerate(keys)]
        inner += [f"({self._missing_sql(one)}) as h{position}" for position, one in enumerate(doubtful)]
        known = ", ".join(f"sum(case when h{i} then 0 else w end)::BIGINT" for i in range(len(doubtful)))
        shown = ", ".join(f"y{position}" for position in range(len(keys)))
        sets = ", ".join(f"(y{position})" for position in range(len(keys)))
        rows = self.source.session.rows(
            f"select coalesce({shown}, '') as label, sum(w)::BIGINT, {known} "
            f"from (select {', '.join(inner)}, {self.weight} as w from {self.source.relation}) "
            f"group by grouping sets ({sets})"
        )
        skipped = {
            one.name
            for label, n, *counts in rows
            for one, n_known in zip(doubtful, counts, strict=True)
            if label and n >= LEAST_SKIPPED and n_known <= (1 - SKIPPED_SHARE) * n
        }
        return [one.name for one in doubtful if one.name in skipped]

    def _level_sql(self, one: Profile, line: PlanLine) -> str:
        """Write the level of a column as text, empty where it is missing; nothing where it has too many."""
        if one.is_number and one.field.form != "code" and line.cuts:
            number = f"({number_or_null(one.field, self.how)})"
            return f"case when {number} is null then '' else ({group_sql(number, line.cuts)})::VARCHAR end"
        if one.n_values > MOST_LEVELS or line.choices or line.parts:
            return ""
        return f"case when {self._missing_sql(one)} then '' else {one.field.column}::VARCHAR end"

    def _missing_sql(self, one: Profile) -> str:
        if one.is_number and one.field.form != "code":
            return f"({number_or_null(one.field, self.how)}) is null"
        return missing_sql(one.field, self.how)

    def _lines_in_order(self) -> Iterator[PlanLine]:
        """Give the lines in the order of the table; a joined column comes before the first of its columns."""
        before = {line.columns[0]: line for line in self.lines.values() if line.columns}
        for name in self.source.names:
            if name in before:
                yield before[name]
            if name in self.lines and not self.lines[name].columns:
                yield self.lines[name]

    def _notes(self) -> Iterator[str]:
        """Say what concerns several columns, and what may be wrong."""
        lines, profiles = self.lines, self.profiles
        again = [name for name, line in lines.items() if "come again" in line.why]
        if again:
            yield (
                f"Rows with the same {' or '.join(map(repr, again[:3]))} may not be independent, and are "
                "taken to be; name the column with cluster_column= if they are not."
            )
        moments = [
            name for name, line in lines.items() if line.role == "date" and is_sequence(profiles[name])
        ]
        if moments:
            yield (
                f"Rows in sequence of time ({shorten(moments, MOST_NAMED)}) may not be independent, and are "
                "taken to be."
            )
        several = [
            name
            for name, line in lines.items()
            if name in profiles
            and line.role != "choices"
            and line.why != AS_ASKED
            and _holds_several(profiles[name])
        ]
        if several:
            yield (
                f"Cells of {shorten(several, MOST_NAMED)} may hold several answers at once; if so, split "
                f"them with roles={{{several[0]!r}: 'choices'}} (--as {several[0]}=choices)."
            )
        yield from _no_answer_notes(lines, profiles)


def _check_boxes(name: str, columns: Sequence[str], profiles: Mapping[str, Profile]) -> None:
    for column in columns:
        one = profiles.get(column)
        if one is None or not all(is_ticked(label) or is_blank(label) for label in one.labels or ("?",)):
            raise DataError(
                f"Column {column!r} of join={{{name!r}: ...}} does not hold yes and no, or 1 and 0; leave it "
                "out."
            )


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


def _format_steps(relation: Relation, at: Sequence[float]) -> str:
    labels = [label for label, _, _ in relation.steps]
    cuts = format_cuts(at)
    first = f"{labels[0]} where {relation.source} is under {cuts[0]}"
    return ", ".join([first, *(f"{label} from {cut}" for label, cut in zip(labels[1:], cuts, strict=True))])


def _no_answer_notes(lines: Mapping[str, PlanLine], profiles: Mapping[str, Profile]) -> Iterator[str]:
    """Name what may stand for no answer, and is read as any other level."""
    way = "name all that stands for missing with missing_values=."
    scales = [name for name, line in lines.items() if line.included and line.why.startswith(BUT_FOR)]
    if scales:
        labels = list(dict.fromkeys(lines[name].why.removeprefix(BUT_FOR) for name in scales))
        have = f"{shorten(scales, MOST_NAMED)} {'has' if len(scales) == 1 else 'have'}"
        yield f"{have} no order with {', '.join(labels[:3])} as a level; if it is to be missing, {way}"
    codes = {
        name: codes
        for name, line in lines.items()
        if line.included and AS_ASKED not in line.why and (codes := _no_answer_codes(profiles.get(name)))
    }
    if codes:
        texts = [f"{', '.join(map(str, some))} in {name!r}" for name, some in codes.items()]
        more = f" and in {len(texts) - 4:,} more columns" if len(texts) > 4 else ""
        yield f"{', '.join(texts[:4])}{more} may stand for no answer; if so, {way}"


def _no_answer_codes(one: Profile | None) -> tuple[int, ...]:
    if one is None or one.numbers is None or not one.is_whole or one.labels is None or one.n_rows < FEW_ROWS:
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


# What is done with missing values by default: rows left out where they are needed, or a level.


@dataclass(frozen=True)
class MissingPolicy:
    """The columns whose missing values are a level, and the rows left out."""

    levels: tuple[str, ...] = ()
    n_dropped: int = 0
    dropped_for: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class MissingPatterns:
    """How many rows lack each set of columns; the empty set is of complete rows."""

    patterns: Mapping[frozenset[str], int]

    @property
    def n_rows(self) -> int:
        """All rows."""
        return sum(self.patterns.values())

    def lacking(self, *names: str) -> int:
        """Return how many rows lack all of these columns."""
        return sum(n for lacks, n in self.patterns.items() if lacks.issuperset(names))

    def dropped(self, names: Iterable[str]) -> int:
        """Return how many rows lack any of these columns."""
        wanted = set(names)
        return sum(n for lacks, n in self.patterns.items() if lacks & wanted)


def decide_policy(
    names: Sequence[str], patterns: MissingPatterns, forced: Iterable[str] = ()
) -> MissingPolicy:
    """Decide what is done with the missing values of some columns; those `forced` have a level anyway.

    No level is made while at least half of the rows are complete; until then the column with the most
    missing values gets one. Learners leave the other rows out; tests and networks use what these rows have.
    To tests a level made here is no value.
    """
    levels = list(forced)
    rest = [name for name in names if name not in levels and patterns.lacking(name)]
    while patterns.dropped(rest) > (1 - LEAST_KEPT) * patterns.n_rows:
        most = max(rest, key=lambda name: (patterns.lacking(name), name))
        levels.append(most)
        rest.remove(most)
    dropped_for = tuple((name, patterns.lacking(name)) for name in rest)
    return MissingPolicy(tuple(name for name in names if name in levels), patterns.dropped(rest), dropped_for)


def format_policy(policy: MissingPolicy, patterns: MissingPatterns, forced: Iterable[str] = ()) -> str:
    """Say in one sentence what is done with missing values; nothing where there are none.

    Those `forced` have a level that is a value like any other.
    """
    parts = []
    if policy.n_dropped:
        one = policy.n_dropped == 1
        lack, them, have = ("lacks", "it", "it has") if one else ("lack", "them", "they have")
        parts.append(
            f"{policy.n_dropped:,} of {patterns.n_rows:,} rows {lack} {_columns(policy.dropped_for)}: "
            f"learners leave {them} out, tests and networks use what {have}"
        )
    ticked = set(forced)
    for is_value, more in ((False, ", which tests do not take for a value"), (True, "")):
        names = [name for name in policy.levels if (name in ticked) == is_value]
        if names:
            lacking = [(name, patterns.lacking(name)) for name in names]
            parts.append(f"missing values of {_columns(lacking)} are a level{more}")
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}." if parts else ""


def _columns(lacking: Iterable[tuple[str, int]]) -> str:
    return listed([f"{name!r} ({n:,})" for name, n in lacking], MOST_NAMED, " columns")
