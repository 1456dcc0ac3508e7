"""Read a table of categories from anywhere into a Dataset."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unless.data.columns.levels import (
    MISSING_CODE,
    Codes,
    RawColumn,
    apply_policy,
    label_column,
    make_variable,
    merge_rare,
    number_sql,
    order_levels,
)
from unless.data.dataset import Counts, Dataset, Design, Detail, Rows
from unless.data.domain import Domain, Variable, shorten
from unless.data.encode import (
    ColumnEncoder,
    check_counts,
    collapse,
    encode_finer,
    fetch_codes,
    find_row,
    refuse_levels,
    with_shapes,
)
from unless.data.plan import Plan, check_plan, cut_alike, follow
from unless.data.prepare import make_plan
from unless.data.profile import Profile, count_values, profile
from unless.data.roles import FEWEST_COUNTED, is_count_name, may_count
from unless.data.settings import DEFAULT_LEVELS, Bins, Missing, Settings, check_names, make_settings
from unless.data.sources.opening import choose_columns, open_source, row_numbers
from unless.data.sources.session import DuckDBSession, Source
from unless.data.sources.sql import with_connection
from unless.data.survey import design_sql, fetch_design
from unless.errors import DataError, SettingError, UnknownLevel
from unless.runtime.memory import memory_errors_explained
from unless.runtime.progress import BAR_DELAY, Bar, progress
from unless.typing import Bools


def read(  # noqa: PLR0913 (every argument is one answer about the table; they are independent)
    source: object,
    *,
    columns: Iterable[str] | None = None,
    count_column: str | None = None,
    weight_column: str | None = None,
    cluster_column: str | None = None,
    strata_column: str | None = None,
    missing: Missing | None = None,
    missing_values: Iterable[object] | None = None,
    levels: Mapping[str, Iterable[object]] | Domain | None = None,
    bins: Mapping[str, Bins] | None = None,
    rare: int | Mapping[str, int] | None = None,
    max_levels: int = DEFAULT_LEVELS,
    max_memory: int | str | None = None,
    delimiter: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    show_progress: bool | None = None,
    exclude: Iterable[str] | None = None,
    roles: Mapping[str, str] | None = None,
    ordered: Mapping[str, Iterable[object]] | Iterable[str] | None = None,
    join: Mapping[str, Iterable[str]] | None = None,
    plan: "Plan | Beside | str | os.PathLike[str] | None" = None,
    strict: bool = False,
    connection: object | None = None,
    sheet: str | int | None = None,
) -> Dataset:
    r"""Read a table and collapse it to distinct rows with counts.

    What is not said is decided by a plan (`unless.prepare`): numbers are cut into groups, identifiers and
    free text are left out, and so on. The plan is kept as `plan`, and told in `notes`.

    Parameters
    ----------
    source
        A path, a glob, "-" for standard input, a binary file that is open, or a list of them (CSV, TSV,
        Parquet, JSON, ARFF, Excel, Stata, SPSS, SQLite, DuckDB; packed as .gz, .zst, .bz2, .xz or .zip), a
        pandas, polars, Arrow or Dask table, a DuckDB relation, a NumPy array, a dictionary of columns, a list
        of rows, or a Dataset. A Dask DataFrame is collapsed on its cluster: only distinct rows come here.
        With `connection`, a query.
    columns
        The columns to keep, in this order. For a table without names, their names.
    count_column
        The column that says how often each row occurs, as in a contingency table.
    weight_column, cluster_column, strata_column
        How the rows of a survey were drawn: a weight of 0 or more for each row; clusters, such as households
        or patients with several visits, whose rows are not independent; strata that were sampled one by one.
        Estimates are weighted, and tests corrected for the design effect. These columns are not related to
        others; strata are if `columns` names them.
    missing
        What to do with missing values: "error", "drop" the rows, or make them a "level"; by default as the
        plan says, and with `strict` "error".
    missing_values
        What stands for a missing value besides an empty cell. By default, in files without types (text and
        Excel): ?, NA, N/A, n/a, #N/A, NaN, nan, NULL, null and <NA>; elsewhere nothing else. ``[]`` makes
        them all labels.
    levels
        The levels of some columns, in order: wins over every other order. A Domain gives the levels of all
        its variables, so that a second table is read like a first one.
    bins
        How to cut columns of numbers: a number of groups of about equal size, ``("width", n)`` for groups of
        equal width, or a list of edges; a value on an edge belongs to the group above it.
    rare
        Merge the levels seen fewer times than this, in all columns or by column, into a last one.
    max_levels
        Refuse a column with more levels than this.
    max_memory
        Bytes, or a text such as "2 GB"; by default 60 % of what the machine, the container and the limits of
        the process leave, at most 4 GB. Python and its packages
        take about 100 MB more. What does not fit while rows are collapsed goes to the system's folder for
        temporary files, which TMPDIR may move, and is removed afterwards.
    delimiter, header, encoding
        How a text file is written; by default found out, with a header, in UTF-8.
    show_progress
        Whether to show how far reading is, once it has taken a second; by default on a terminal or in a
        notebook.
    exclude, roles, ordered, join
        Columns to leave out; what some columns are; columns whose levels have an order; sets of columns that
        are one (`unless.prepare`).
    plan
        A plan, or the file of one, made of this table or of another that is read in the same way. What the
        other arguments say comes before it.
    strict
        Decide nothing: refuse a table with too many levels or with missing values, unless it is said what to
        do with them.
    connection
        Where `source` is a query: a connection of DuckDB, sqlite3, ADBC or SQLAlchemy (an engine, too), or
        the path of a SQLite or DuckDB file. Rows are fetched in batches and kept in a temporary file.
    sheet
        Which sheet of a spreadsheet to read: its name, or its number from 1; by default the first that has
        a table.

    Examples
    --------
    >>> data = read({"sex": ["f", "m", "f"], "age": [30, 41, 30]})
    >>> data
    <Dataset: 3 rows (2 distinct) x 2 columns>
    >>> data.domain["age"].levels
    ('30', '41')
    """
    is_matched = isinstance(levels, Domain)
    unsaid = "error" if strict or is_matched else "auto"
    how = make_settings({**locals(), "missing": missing or unsaid})
    if connection is not None:
        source = with_connection(source, connection)
    if isinstance(source, Dataset):
        return _read_again(source, how)
    beside = plan.domain if isinstance(plan, Beside) else None
    decides = (plan is None or beside is not None) and not strict and not is_matched
    known = plan if plan is None or isinstance(plan, Plan | Beside) else Plan.load(plan)
    followed = known if isinstance(known, Plan) else None
    with memory_errors_explained(), progress("Reading", show_progress, after=BAR_DELAY) as bar:
        with DuckDBSession(how.max_memory, bar) as session, session.unchanged():
            opened = open_source(source, session, how)
            profiles: Mapping[str, Profile] = {}
            if is_matched and how.count_column is None and not how.design:
                how = replace(how, count_column=_count_beside(opened, how))
            if decides:
                opened, followed, profiles = make_plan(opened, how)
            if followed is not None and beside is not None:
                followed, profiles = cut_alike(followed, beside), {}
            chosen = _follow(followed, opened, how, is_new=decides and beside is None)
            rows = _encode(opened, chosen, profiles)
        # Made of the codes once the database has given its memory back.
        rows.notes = [*_plan_notes(followed, decides), *_other_notes(rows.notes, followed, decides)]
        data = _make_dataset(rows, chosen, bar, keeps_missing=how.missing == "auto")
        return replace(data, plan=followed)


@dataclass(frozen=True)
class Beside:
    """Stands for a plan of a table of its own, but for numbers, which are cut as in another table."""

    domain: Domain


def read_beside(source: object, domain: Domain, **settings: Any) -> Dataset:
    """Read a table to be compared with another one: numbers that were cut there are cut here alike."""
    return read(source, **settings) if "plan" in settings else read(source, **settings, plan=Beside(domain))


def _read_again(data: Dataset, how: Settings) -> Dataset:
    if how.reshapes:
        raise SettingError("The table has been read already; pass its original to read it in another way.")
    return data if how.columns is None else data.select(how.columns)


def _follow(plan: Plan | None, source: Source, how: Settings, *, is_new: bool) -> Settings:
    """Return the settings of reading: those given, and what a plan adds to them."""
    if plan is not None:
        check_plan(plan, source)
        return follow(plan, how, is_new=is_new)
    if not how.exclude:
        return how
    check_names(how.exclude, source.names, "exclude=")
    asked = how.columns or [name for name in source.names if name not in row_numbers(source)]
    return replace(how, columns=tuple(name for name in asked if name not in how.exclude))


def _plan_notes(plan: Plan | None, is_new: bool) -> list[str]:
    """Return what a plan says; of one made for another table, what it does with columns."""
    if plan is None or is_new:
        return [] if plan is None else plan.sentences()
    return [one for one in plan.sentences() if one != plan.missing and one not in plan.notes]


def _other_notes(notes: list[str], plan: Plan | None, is_new: bool) -> list[str]:
    """Return the notes that a plan does not have already."""
    if plan is None or not is_new or not plan.missing:
        return notes
    return [one for one in notes if not one.startswith(("Dropped ", "Made missing "))]


def _count_beside(source: Source, how: Settings) -> str | None:
    """Find the column that counts the rows, beside columns that a model knows: by what a plan would go by."""
    columns = how.columns or ()
    if not set(columns) <= {*source.names}:
        return None
    for name in source.names:
        if is_count_name(name) and name not in columns:
            looked = profile(source, [source.field(name)], how, source.times)[name]
            known = ", ".join(source.field(one).column for one in columns)
            if looked.n_rows < FEWEST_COUNTED or not may_count(looked):
                continue
            n_distinct = source.session.value(
                f"select count(*) from (select distinct {known} from {source.relation})"  # noqa: S608
            )
            if n_distinct == looked.n_rows:
                return name
    return None


@dataclass
class _EncodedRows:
    """The distinct rows of a table as codes of labels, on their way to a Dataset.

    `counts` are those of the rows that are left once missing values were dropped; `all_codes` and
    `all_counts` those of all rows, `finer` their finer groups of cut numbers and `design` their weights.
    """

    columns: list[RawColumn]
    counts: Counts
    notes: list[str]
    all_codes: list[Codes]
    all_counts: Counts
    finer: dict[str, Codes]
    design: Design | None

    @property
    def has_detail(self) -> bool:
        """Whether all rows say more than those that are left."""
        fewer = int(self.counts.sum()) < int(self.all_counts.sum())
        return self.design is not None or bool(self.finer) or fewer


def _encode(source: Source, how: Settings, profiles: Mapping[str, Profile]) -> _EncodedRows:
    """Group equal rows in the database and fetch them: codes of labels, counts, and what was done."""
    asked, session = how, source.session
    source, how = with_shapes(source, how)
    fields, count = choose_columns(source, how)
    session.stage("looking at the values")
    # What a plan was made of need not be counted again.
    unknown = [one for one in fields if one.name not in profiles]
    try:
        n_rows, n_values = count_values(source, unknown, source.times)
    except DataError:
        if source.repair is None:
            raise
        source, how = with_shapes(source.repair(), asked)
        n_rows, n_values = count_values(source, unknown, source.times)
    n_values |= {one.name: one.n_values for one in profiles.values()}
    if not n_rows:
        raise DataError(f"{source.title} has columns but no rows; give at least one row.")
    weight = source.times
    if count is not None:
        check_counts(source, count)
        weight = f"{number_sql(count)}::BIGINT * {source.times}"
    session.stage("looking at single columns")
    encodings = ColumnEncoder(source, how, weight, n_rows).encode(fields, n_values)
    notes = [*source.notes, *(one.note for one in encodings if one.note)]
    if how.columns is None and row_numbers(source):
        notes.append(f"Left out {shorten(row_numbers(source))}, which holds row numbers of pandas.")
    numbers = {name: one.numbers for name, one in profiles.items() if one.numbers is not None}
    finer = encode_finer(fields, how, numbers, n_rows)
    fetched = [*encodings, *finer.values()]
    beside = design_sql(source, how, weight) if how.design else ""
    n_distinct = collapse(source, fetched, weight, beside)
    values, table, counts = fetch_codes(fetched, n_distinct, session)
    design = None
    if how.design:
        design, has_weight, said = fetch_design(how.design, counts, session)
        table, counts = table[has_weight], counts[has_weight]
        # Weights are added up in one order, whatever that of the rows was.
        order = np.lexsort([design.squares, design.weights, *design.keys(), *table.T[::-1]])
        table, counts, design = table[order], counts[order], design.taken(order)
        notes += said
    if (counts == 0).any():
        notes.append("Left out rows that are counted 0 times; their levels are kept.")
    columns = [
        replace(label_column(one.field, texts, table[:, position], how), cuts=one.cuts)
        for position, (one, texts) in enumerate(zip(encodings, values, strict=False))
    ]
    if how.columns is None:
        columns = _without_blank(columns, notes)
    trimmed = [column.name for column in columns if column.trimmed]
    if trimmed:
        notes.append(f"Removed spaces around the labels of {shorten(trimmed)}.")
    groups = {name: table[:, len(encodings) + position] for position, name in enumerate(finer)}
    all_codes = [column.codes for column in columns]
    left, done = apply_policy(columns, counts, how)
    for column in columns:
        _check_known(source, column, how)
    return _EncodedRows(columns, left, [*notes, *done], all_codes, counts, groups, design)


def _without_blank(columns: list[RawColumn], notes: list[str]) -> list[RawColumn]:
    """Leave out columns with neither name nor value, which a delimiter at the end of every line makes."""
    blank = [one.name for one in columns if re.fullmatch(r"column \d+", one.name) and not one.seen()]
    if blank:
        notes.append(f"Left out {shorten(blank)}, which has neither a name nor a value.")
    return [one for one in columns if one.name not in blank]


def _check_known(source: Source, column: RawColumn, how: Settings) -> None:
    """Refuse labels that are not among the levels that were given."""
    given = how.levels.get(column.name)
    unknown = [] if given is None else [label for label in column.seen() if label not in given]
    if given is not None and unknown:
        label = min(unknown)
        row = find_row(source, column.field, column.raw[column.labels.index(label)])
        where = f" (row {row:,})" if row else ""
        named = "the levels given by ordered=" if column.name in how.ordered else "its levels="
        raise UnknownLevel(
            f"{label!r} in column {column.name!r}{where} is not among {named}{shorten(given)}; add it "
            "there or correct the table."
        )


def _make_dataset(rows: _EncodedRows, how: Settings, bar: Bar, *, keeps_missing: bool) -> Dataset:
    """Order the levels of each column, merge rare ones, and collapse rows that are then alike."""
    made: list[tuple[Variable, Codes]] = []
    whole: list[Codes] = []
    missing: dict[str, Bools] = {}
    notes = list(rows.notes)
    has_detail = rows.has_detail
    bar.begin("ordering levels", len(rows.columns))
    for column, all_codes in zip(rows.columns, rows.all_codes, strict=True):
        bar()
        ordered = order_levels(column, how.levels.get(column.name))
        levels, merged = merge_rare(column, ordered, rows.counts, how.rare_below(column.name))
        if len(levels) > how.max_levels and column.name not in how.levels:
            refuse_levels(
                column.name, len(levels), how.max_levels, numeric=column.kind in ("integer", "float")
            )
        variable, codes = make_variable(column, levels, merged)
        made.append((replace(variable, ordered=variable.ordered or column.name in how.ordered), codes))
        notes += column.notes
        if has_detail:
            whole.append(make_variable(replace(column, codes=all_codes), levels, merged)[1])
            missing[column.name] = _has_no_level(column, all_codes, {*levels, *merged})
    domain = Domain(tuple(variable for variable, _ in made))
    weights = None if rows.design is None else rows.design.weights[_is_left(rows)]
    data = Dataset.from_codes(
        domain, np.column_stack([codes for _, codes in made]), rows.counts, weights=weights
    )
    detail = _detail(rows, np.column_stack(whole), missing, keeps_missing) if has_detail else None
    return replace(data, notes=(*notes, *_constant(data)), detail=detail)


def _is_left(rows: _EncodedRows) -> Bools:
    """Tell which rows `apply_policy` kept."""
    gone = np.zeros(len(rows.all_counts), dtype=np.bool_)
    for column, codes in zip(rows.columns, rows.all_codes, strict=True):
        gone |= (codes == MISSING_CODE) & ((rows.all_counts == 0) | (column.missing_label is None))
    return ~gone


def _detail(
    rows: _EncodedRows, codes: Rows, missing: Mapping[str, Bools], keeps_missing: bool
) -> Detail | None:
    """Put together the rows as tests read them; who asks for rows to be dropped gets them dropped."""
    counted = rows.all_counts > 0
    if not keeps_missing:
        counted &= ~np.logical_or.reduce(list(missing.values()))
    # What has no number is a group of its own, which the code of missing values is.
    finer = {
        name: np.unique(groups[counted], return_inverse=True)[1].astype(np.uint16)
        for name, groups in rows.finer.items()
    }
    holes = {name: where[counted] for name, where in missing.items() if where[counted].any()}
    if not finer and not holes and rows.design is None:
        return None
    design = rows.design and rows.design.taken(counted)
    return Detail.of(codes[counted], rows.all_counts[counted], finer, holes, design)


def _has_no_level(column: RawColumn, codes: Codes, known: set[str]) -> Bools:
    """Tell which rows lack a value, or have one that no complete row has."""
    has_level = np.zeros(MISSING_CODE + 1, dtype=np.bool_)
    has_level[: len(column.labels)] = [label in known for label in column.labels]
    has_level[MISSING_CODE] = column.missing_label is not None
    return ~has_level[codes]


def _constant(data: Dataset) -> list[str]:
    still = data.constant_names
    if not still:
        return []
    if len(still) == 1:
        return [f"Column {still[0]!r} shows a single level; it is kept and linked to nothing."]
    return [f"Columns {shorten(still)} show a single level each; they are kept and linked to nothing."]
