"""Weights, clusters and strata of a survey, read beside its rows."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

from collections.abc import Mapping
from math import fsum

import numpy as np

from unless.data.columns.levels import missing_sql, number_sql, text_sql
from unless.data.dataset import Counts, Design
from unless.data.encode import first_row
from unless.data.settings import Settings
from unless.data.showing import count
from unless.data.sources.session import DuckDBSession, Field, Source
from unless.errors import DataError, SettingError
from unless.typing import Bools, Integers

# Weights are added up as whole numbers of this many bits at most: the same in any order of the rows.
_BITS = 40
# What notes on a survey begin with.
SURVEY = ("Rows are weighted by ", "Rows of one ")
# Rows that are left out: those without a value, and those that count nothing.
_LACKS, _ZERO = 1, 2


def design_sql(source: Source, how: Settings, times: str) -> str:
    """Check the weights; write in SQL how the rows that are counted together were drawn."""
    fields = {says: source.field(name) for says, name in how.design.items()}
    scaled = "1::HUGEINT"
    if "weight" in fields:
        number = number_sql(fields["weight"])
        unit = _largest_weight(source, fields["weight"], how) / 2**_BITS
        scaled = f"coalesce(round({number} / {unit!r}::DOUBLE), 0)::HUGEINT"
    lacks = " or ".join(missing_sql(one, how) for one in fields.values())
    wanted = [
        # Rows that do not count are told apart from others that hold the same.
        f"(case when {lacks} then {_LACKS} when {scaled} = 0 then {_ZERO} else 0 end)::UTINYINT as state",
        f"sum({scaled} * {times}) as w",
        f"sum({scaled} * {scaled} * {times}) as ww",
        # Rows that are counted together have weights of about the same size.
        f"floor(log2(greatest({scaled}, 1))) as size",
        *(f"{text_sql(fields[says])} as {says}" for says in ("cluster", "strata") if says in fields),
    ]
    return ", ".join(wanted)


def _largest_weight(source: Source, one: Field, how: Settings) -> float:
    """Refuse what is no weight, naming the first row; return the largest one."""
    number, missing = number_sql(one), missing_sql(one, how)
    bad = f"not {missing} and coalesce(not isfinite({number}) or {number} < 0, true)"
    found = first_row(source, bad, text_sql(one))
    if found is not None:
        raise DataError(
            f"Row {found[0]:,} of weight column {one.name!r} holds {found[1]!r}; weights are numbers, "
            "0 or more."
        )
    (largest,) = source.row(f"max({number})", f"where not {missing}")
    if not largest:
        raise DataError(f"No row of weight column {one.name!r} has a weight above 0; name another column.")
    return float(largest)


def fetch_design(
    columns: Mapping[str, str], counts: Counts, session: DuckDBSession
) -> tuple[Design, Bools, list[str]]:
    """Fetch the design of the collapsed rows: that of those with a weight, which these are, and notes.

    `columns` are those that say how rows were drawn, by what they say.
    """
    says = [one for one in ("cluster", "strata") if one in columns]
    # Names are told apart by 64 bits: a window function would change the order of the rows.
    hashed = "".join(f", hash({one})::UBIGINT as {one}" for one in says)
    found = session.arrays(f"select state, w::DOUBLE as w, ww::DOUBLE as ww{hashed} from collapsed")
    state, weights = np.asarray(found["state"]), np.asarray(found["w"], dtype=np.float64)
    there: Bools = state == 0
    if not there.any():
        listed = ", ".join(map(repr, columns.values()))
        raise DataError(f"No row has a value in each of {listed}; name other columns.")
    n_rows = int(counts[there].sum())
    scale = n_rows / fsum(weights[there].tolist())
    clusters, strata = (
        np.unique(np.asarray(found[one])[there], return_inverse=True)[1].astype(np.int64)
        if one in says
        else None
        for one in ("cluster", "strata")
    )
    squares = np.asarray(found["ww"], dtype=np.float64)[there] * scale * scale
    if clusters is not None and strata is not None:
        # Clusters of two strata may have the same name.
        clusters = np.unique(strata * (clusters.max() + 1) + clusters, return_inverse=True)[1]
    fourths = squares**2 / np.maximum(counts[there], 1)
    design = Design(weights[there] * scale, squares, fourths, clusters, strata, tuple(columns.values()))
    return design, there, _notes(design, columns, counts, state)


def _notes(design: Design, columns: Mapping[str, str], counts: Counts, state: Integers) -> list[str]:
    n_rows, notes = int(counts[state == 0].sum()), []
    if n_lacking := int(counts[state == _LACKS].sum()):
        listed = " or ".join(map(repr, columns.values()))
        notes.append(f"Left out {count(n_lacking, 'row')} without a value in {listed}.")
    if n_zero := int(counts[state == _ZERO].sum()):
        notes.append(f"Left out {count(n_zero, 'row')} whose weight is 0.")
    if "weight" in columns:
        effect = n_rows / max(design.n_effective, 1e-9)
        notes.append(
            f"Rows are weighted by {columns['weight']!r}: {n_rows:,} rows tell as much as "
            f"{design.n_effective:,.0f} drawn alike (design effect {effect:.2f})."
        )
    if design.n_clusters is not None:
        if design.n_clusters < 2 + _n_strata(design.strata):
            raise SettingError(
                f"There are {design.n_clusters:,} clusters in {columns['cluster']!r}, too few to tell "
                "how far rows of one are alike; take a column with more."
            )
        notes.append(
            f"Rows of one {columns['cluster']!r} are taken as a cluster: {design.n_clusters:,} of them "
            f"with {n_rows:,} rows; tests are corrected for it."
        )
    return notes


def _n_strata(strata: Integers | None) -> int:
    return 0 if strata is None else len(np.unique(strata)) - 1
