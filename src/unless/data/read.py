"""Read a table of categories from anywhere into a Dataset."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.collapse import collapse, fetch_codes, finer_plans, plan_columns
from unless.data.dataset import Counts, Dataset, Detail, Rows
from unless.data.design import Design
from unless.data.domain import Domain, Variable, shorten
from unless.data.drawing import fetch_design, plan_design
from unless.data.levels import NOTHING, Codes, Draft, draft_column, make_variable, order_levels
from unless.data.missing import apply_policy
from unless.data.plan import Plan
from unless.data.prepare import check_plan, cut_alike, follow, make_plan
from unless.data.profile import Profile
from unless.data.rare import merge_rare
from unless.data.settings import DEFAULT_LEVELS, Bins, Missing, Settings, check_names, make_settings
from unless.data.shaping import with_shapes
from unless.data.sources.opening import choose_columns, open_source, row_numbers
from unless.data.sources.session import DuckDBSession, Source
from unless.data.sources.sql import with_connection
from unless.data.survey import check_counts, find_row, number_sql, refuse_levels, survey
from unless.errors import DataError, SettingError, UnknownLevel
from unless.runtime.memory import memory_errors_explained
from unless.runtime.progress import BAR_DELAY, Bar, progress


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
    how = make_settings(
        columns=columns,
        count_column=count_column,
        missing=missing or ("error" if strict or isinstance(levels, Domain) else "auto"),
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
        return _read_again(source, how)
    if plan is None or isinstance(plan, Beside):
        decides = not strict and not isinstance(levels, Domain)
        return _read(source, how, None, plan, decides, show_progress)
    known = plan if isinstance(plan, Plan) else Plan.load(plan)
    return _read(source, how, known, None, False, show_progress)


@dataclass(frozen=True)
class Beside:
    """Stands for a plan of a table of its own, but for numbers, which are cut as in another table."""

    domain: Domain


def read_beside(source: object, domain: Domain, **settings: Any) -> Dataset:
    """Read a table to be compared with another one: numbers that were cut there are cut here alike."""
    return read(source, **settings) if "plan" in settings else read(source, **settings, plan=Beside(domain))


def _read(
    source: object,
    how: Settings,
    plan: Plan | None,
    beside: Beside | None,
    decides: bool,
    show_progress: bool | None,
) -> Dataset:
    is_open = how.missing == "auto"
    with memory_errors_explained(), progress("Reading", show_progress, after=BAR_DELAY) as bar:
        with DuckDBSession(how.max_memory, bar) as session, session.unchanged():
            opened = open_source(source, session, how)
            profiles: Mapping[str, Profile] = {}
            if decides:
                opened, plan, profiles = make_plan(opened, session, how)
            if plan is not None and beside is not None:
                plan, profiles = cut_alike(plan, beside.domain), {}
            if plan is not None:
                check_plan(plan, opened)
                how = follow(plan, how, is_new=decides and beside is None)
            elif how.exclude:
                how = _without(opened, how)
            drafts, counts, notes, whole = _collapse(opened, session, how, profiles)
        # Made of the drafts once the database has given its memory back.
        told = [*_told(plan, decides), *_other(notes, plan, decides)]
        data = _assemble(drafts, counts, told, how, bar, whole, keeps_holes=is_open)
        return replace(data, plan=plan)


def _told(plan: Plan | None, is_new: bool) -> list[str]:
    """Return what a plan says; of one made for another table, what it does with columns."""
    if plan is None or is_new:
        return [] if plan is None else plan.sentences()
    return [one for one in plan.sentences() if one != plan.missing and one not in plan.notes]


def _other(notes: list[str], plan: Plan | None, is_new: bool) -> list[str]:
    """Return the notes that a plan does not tell already."""
    if plan is None or not is_new or not plan.missing:
        return notes
    return [one for one in notes if not one.startswith(("Dropped ", "Made missing "))]


def _without(source: Source, how: Settings) -> Settings:
    check_names(how.exclude, source.names, "exclude=")
    asked = how.columns or [name for name in source.names if name not in row_numbers(source)]
    return replace(how, columns=tuple(name for name in asked if name not in how.exclude))


def _read_again(data: Dataset, how: Settings) -> Dataset:
    if how.reshapes:
        raise SettingError("The table has been read already; pass its original to read it in another way.")
    return data if how.columns is None else data.select(how.columns)


@dataclass(frozen=True)
class _Whole:
    """The rows before those with missing values were dropped: codes of each column, counts, finer groups."""

    codes: list[Codes]
    counts: Counts
    finer: dict[str, Codes]
    design: Design | None


def _collapse(
    source: Source, session: DuckDBSession, how: Settings, profiles: Mapping[str, Profile]
) -> tuple[list[Draft], Counts, list[str], _Whole | None]:
    asked = how
    source, how = with_shapes(source, how, session)
    fields, count = choose_columns(source, how)
    session.stage("looking at the values")
    # What a plan was made of need not be counted again.
    unknown = [one for one in fields if one.name not in profiles]
    try:
        found = survey(source, unknown, count, session)
    except DataError:
        if source.repair is None:
            raise
        source, how = with_shapes(source.repair(), asked, session)
        found = survey(source, unknown, count, session)
    found.n_values.update({one.name: one.n_values for one in profiles.values()})
    if not found.n_rows:
        raise DataError(f"{source.title} has columns but no rows; give at least one row.")
    weight = source.times
    if count is not None:
        check_counts(source, count, found, session)
        weight = f"{number_sql(count)}::BIGINT * {source.times}"
    session.stage("looking at single columns")
    plans = plan_columns(source, fields, weight, how, found, session)
    notes = [*source.notes, *(plan.note for plan in plans if plan.note)]
    if how.columns is None and row_numbers(source):
        notes.append(f"Left out {shorten(row_numbers(source))}, which holds row numbers of pandas.")
    numbers = {name: one.numbers for name, one in profiles.items() if one.numbers is not None}
    finer = finer_plans(fields, how, numbers, found.n_rows)
    fetched = [*plans, *finer.values()]
    drawn = plan_design(source, how, weight, session)
    n_distinct = collapse(source, fetched, weight, session, drawn)
    values, table, counts = fetch_codes(fetched, n_distinct, session)
    design = None
    if drawn is not None:
        design, there, told = fetch_design(drawn, counts, session)
        table, counts = table[there], counts[there]
        # Weights are added up in one order, whatever that of the rows was.
        order = np.lexsort([design.squares, design.weights, *design.keys(), *table.T[::-1]])
        table, counts, design = table[order], counts[order], design.taken(order)
        notes += told
    if (counts == 0).any():
        notes.append("Left out rows that are counted 0 times; their levels are kept.")
    drafts = [
        replace(draft_column(plan.field, listed, table[:, place], how), cuts=plan.cuts)
        for place, (plan, listed) in enumerate(zip(plans, values, strict=False))
    ]
    if how.columns is None:
        drafts, dropped = _without_blank(drafts)
        notes += dropped
    trimmed = [draft.name for draft in drafts if draft.trimmed]
    if trimmed:
        notes.append(f"Removed spaces around the labels of {shorten(trimmed)}.")
    groups = {name: table[:, len(plans) + place] for place, name in enumerate(finer)}
    whole = _Whole([draft.codes for draft in drafts], counts, groups, design)
    counts, done = apply_policy(drafts, counts, how)
    for draft in drafts:
        _check_known(source, draft, session, how)
    is_needed = design is not None or bool(groups) or int(counts.sum()) < int(whole.counts.sum())
    return drafts, counts, [*notes, *done], whole if is_needed else None


def _without_blank(drafts: list[Draft]) -> tuple[list[Draft], list[str]]:
    """Leave out columns with neither name nor value, which a delimiter at the end of every line makes."""
    blank = [one.name for one in drafts if re.fullmatch(r"column \d+", one.name) and not one.seen()]
    if not blank:
        return drafts, []
    kept = [one for one in drafts if one.name not in blank]
    return kept, [f"Left out {shorten(blank)}, which has neither a name nor a value."]


def _assemble(
    drafts: list[Draft],
    counts: Counts,
    notes: list[str],
    how: Settings,
    bar: Bar,
    whole: _Whole | None,
    keeps_holes: bool,
) -> Dataset:
    made: list[tuple[Variable, Codes]] = []
    all_rows: list[Codes] = []
    missing: dict[str, npt.NDArray[np.bool_]] = {}
    bar.begin("ordering levels", len(drafts))
    for place, draft in enumerate(drafts):
        bar()
        ordered = order_levels(draft, how.levels.get(draft.name))
        kept, merged = merge_rare(draft, ordered, counts, how.rare_below(draft.name))
        if len(kept) > how.max_levels and draft.name not in how.levels:
            numeric = draft.kind in ("integer", "float")
            refuse_levels(draft.name, len(kept), how.max_levels, numeric=numeric, unique=False)
        variable, codes = make_variable(draft, kept, merged)
        made.append((replace(variable, ordered=variable.ordered or draft.name in how.ordered), codes))
        notes += draft.notes
        if whole is not None:
            before = whole.codes[place]
            all_rows.append(make_variable(replace(draft, codes=before), kept, merged)[1])
            missing[draft.name] = _has_no_level(draft, before, {*kept, *merged})
    domain = Domain(tuple(variable for variable, _ in made))
    design = None if whole is None else whole.design
    weights = None if whole is None or design is None else _weights_left(whole, design, drafts)
    codes = np.column_stack([codes for _, codes in made])
    data = Dataset.from_codes(domain, codes, counts, weights=weights)
    detail = None if whole is None else _detail(whole, np.column_stack(all_rows), missing, keeps_holes)
    return replace(data, notes=(*notes, *_constant(data)), detail=detail)


def _weights_left(whole: _Whole, design: Design, drafts: list[Draft]) -> npt.NDArray[np.float64]:
    """Return the weights of the rows that `apply_policy` kept."""
    gone = np.zeros(len(whole.counts), dtype=np.bool_)
    for draft, codes in zip(drafts, whole.codes, strict=True):
        gone |= (codes == NOTHING) & ((whole.counts == 0) | (draft.missing_label is None))
    return design.weights[~gone]


def _detail(
    whole: _Whole, rows: Rows, missing: Mapping[str, npt.NDArray[np.bool_]], keeps_holes: bool
) -> Detail | None:
    """Put together the rows as tests read them; who asks for rows to be dropped gets them dropped."""
    there = whole.counts > 0
    if not keeps_holes:
        there &= ~np.logical_or.reduce(list(missing.values()))
    # What has no number is a group of its own, which the code of missing values is.
    finer = {
        name: np.unique(codes[there], return_inverse=True)[1].astype(np.uint16)
        for name, codes in whole.finer.items()
    }
    holes = {name: where[there] for name, where in missing.items() if where[there].any()}
    if not finer and not holes and whole.design is None:
        return None
    design = whole.design and whole.design.taken(there)
    return Detail.of(rows[there], whole.counts[there], finer, holes, design)


def _has_no_level(draft: Draft, codes: Codes, known: set[str]) -> npt.NDArray[np.bool_]:
    """Tell which rows lack a value, or have one that no complete row has."""
    has_level = np.zeros(NOTHING + 1, dtype=np.bool_)
    has_level[: len(draft.labels)] = [label in known for label in draft.labels]
    has_level[NOTHING] = draft.missing_label is not None
    return ~has_level[codes]


def _constant(data: Dataset) -> list[str]:
    still = data.constant_names
    if not still:
        return []
    if len(still) == 1:
        return [f"Column {still[0]!r} shows a single level; it is kept and linked to nothing."]
    return [f"Columns {shorten(still)} show a single level each; they are kept and linked to nothing."]


def _check_known(source: Source, draft: Draft, session: DuckDBSession, how: Settings) -> None:
    given = how.levels.get(draft.name)
    if given is None:
        return
    unknown = [label for label in draft.seen() if label not in given]
    if unknown:
        label = min(unknown)
        row = find_row(source, draft.field, draft.raw[draft.labels.index(label)], session)
        where = f" (row {row:,})" if row else ""
        listed = "the levels given by ordered=" if draft.name in how.ordered else "its levels="
        raise UnknownLevel(
            f"{label!r} in column {draft.name!r}{where} is not among {listed}{shorten(given)}; add it "
            "there or correct the table."
        )
