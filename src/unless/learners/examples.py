"""Rows with labels, as classifiers are given them, and rows whose labels are to be predicted."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.columns import numbers as prepared
from unless.data.dataset import Dataset, Detail, Rows
from unless.data.domain import Domain, Kind, Variable, shorten
from unless.data.prepare import prepare
from unless.data.read import read
from unless.data.roles import FEW_ROWS, NATURAL_VALUES
from unless.data.settings import bases_of, stems
from unless.data.showing import to_label
from unless.data.sources.frames import is_missing
from unless.data.weighting import (
    as_table,
    columns_of,
    free_column,
    n_rows_of,
    whole_weights,
    with_columns,
)
from unless.errors import DataError, SettingError
from unless.inference.frames import values as typed_values
from unless.inference.tables import HOLE, Cells, read_cells
from unless.typing import Bools, Floats, Integers

Array = npt.NDArray[Any]
Numbers = Floats
# What the labels are called where neither the caller nor they have a name.
NAME = "y"
# With more columns of numbers than this, each is cut into so many groups at most: more of them predict a
# little better, and take many times as long (docs/decisions/0031-classifier.md).
MANY_NUMBERS, MOST_GROUPS = 12, 4
# Digits of a cut that a label shows, where they are enough to tell the cuts apart.
DIGITS = 4
MISSING = ("(missing)", "missing")


class Examples(NamedTuple):
    """A table with its target inside, and the labels that the levels of the target stand for."""

    data: Dataset
    target: str
    classes: Array


def read_examples(
    X: Any, y: Any, target: str | None, sample_weight: Any, show_progress: bool | None = None
) -> Examples:
    """Read rows and their labels: those of y, or of the column `target` of X.

    Missing values of other columns become a level. Columns of many numbers are cut at quantiles. Rows whose
    label is missing are left out if the labels are a column of X, and refused in y.
    """
    if y is None and target is None:
        raise SettingError(
            "UnlessClassifier requires y to be passed, but the target y is None; call fit(X, y), or name the "
            "column of the labels: UnlessClassifier(target='name').fit(X)."
        )
    if isinstance(X, Dataset) or _is_file(X):
        return _read_whole(X, y, target, sample_weight, show_progress)
    table = as_table(X)
    columns = columns_of(_checked(table))
    unlabelled = None
    if y is None:
        if target not in columns:
            raise DataError(
                f"The table has no column {target!r} to learn to predict; its columns are {shorten(columns)}."
            )
        y, unlabelled = _labelled(columns[target])
    name = _name_of(y, target, columns)
    features = {one: column for one, column in columns.items() if one != name}
    if not features:
        raise DataError("The table has no column to predict from; give one or more beside the labels.")
    classes, codes = read_labels(y)
    if len(codes) != n_rows_of(features):
        raise DataError(
            f"There are {len(codes):,} labels for {n_rows_of(features):,} rows; give one for each row."
        )
    more: dict[str, Array] = {name: codes}
    weights = None if sample_weight is None else _checked_weights(sample_weight, len(codes))
    count = None
    if unlabelled is not None:
        # A row that counts 0 times is left out.
        weights = np.where(unlabelled, 0, 1 if weights is None else weights)
    if weights is not None:
        count = free_column("sample_weight", [*columns, name])
        more[count] = weights
    joined = with_columns(table, columns, more, without=[name] if name in columns else [])
    how: dict[str, Any] = {"count_column": count, "missing": "level", "show_progress": show_progress}
    times = np.ones(len(codes)) if weights is None else weights
    if not _is_nameless(table) and len(codes) >= FEW_ROWS:
        data, cuts = _read_by_plan(joined, name, how, features, times)
    else:
        # Columns without names are found by their positions, so that all of them are used.
        cuts = find_cuts(features, times)
        data = read(joined, **how, bins=_bins(cuts), strict=True)
    made = _named(data, name, classes, cuts)
    if unlabelled is None:
        return made
    notes = [one for one in made.data.notes if not one.startswith("Left out rows that are counted 0 times")]
    notes.append(_left_out(int(unlabelled.sum()), name))
    return made._replace(data=replace(made.data, notes=tuple(notes)))


def _bins(cuts: Mapping[str, tuple[float, ...]]) -> dict[str, tuple[float, ...]]:
    """Write cuts as `read` takes them."""
    return {name: (-np.inf, *edges, np.inf) for name, edges in cuts.items()}


def _is_nameless(table: Any) -> bool:
    if isinstance(table, np.ndarray):
        return table.dtype.names is None
    return isinstance(table, Sequence) and not all(isinstance(row, Mapping) for row in table)


def _read_by_plan(
    table: Any, target: str, how: Mapping[str, Any], features: Mapping[str, Any], times: Array
) -> tuple[Dataset, dict[str, tuple[float, ...]]]:
    """Read a table by its plan; if that leaves nothing to predict from, all of its columns."""
    cuts: dict[str, tuple[float, ...]] = {}
    try:
        plan = prepare(table, roles={target: "category"}, **how)
        numbers = {one.name for one in plan.lines if one.role == "number" and one.name in features}
        if len(numbers) > MANY_NUMBERS:
            cuts = find_cuts({name: features[name] for name in numbers}, times)
        return read(table, roles={target: "category"}, bins=_bins(cuts), **how), cuts
    except DataError:
        # Nothing is left, or what is wrong is wrong in any reading.
        return read(table, **how, strict=True), {}


def _labelled(column: Any) -> tuple[Any, Bools | None]:
    """Return labels with any label in place of those that are missing, and where they are, if some are."""
    values = _array(column)
    if values.ndim != 1 or values.dtype.kind not in "fO":
        return column, None
    gone = np.array([is_missing(one) for one in values.tolist()], dtype=np.bool_)
    if not gone.any() or gone.all():
        return column, None
    filled = np.array(values, copy=True)
    filled[gone] = values[~gone][0]
    return filled, gone


def _left_out(n_rows: int, target: str) -> str:
    return f"Left out {n_rows:,} {'row' if n_rows == 1 else 'rows'} without a label in {target!r}."


def _is_file(X: Any) -> bool:
    if isinstance(X, str | os.PathLike):
        return True
    return isinstance(X, Sequence) and bool(X) and all(isinstance(one, str | os.PathLike) for one in X)


def _read_whole(
    X: Any, y: Any, target: str | None, sample_weight: Any, show_progress: bool | None
) -> Examples:
    """Read a Dataset or a file, which holds its labels."""
    if y is not None or target is None:
        raise DataError(
            "Labels beside a file or a Dataset would depend on the order of its rows; name their column: "
            "UnlessClassifier(target='name').fit(X)."
        )
    if sample_weight is not None:
        raise DataError("Weights go with rows in memory; a Dataset or a file has its own count_column.")
    if isinstance(X, Dataset):
        data = _with_labels(X, target)
    else:
        data = read(X, missing="level", roles={target: "category"}, show_progress=show_progress)
    variable = data.domain[target]
    if not isinstance(X, Dataset) and set(MISSING) & set(variable.levels):
        labels = read_cells(data.domain.select([target]), X, show_progress, unknown="mark")
        data = _without_unlabelled(data, target, int((labels == HOLE).sum()))
        variable = data.domain[target]
    if data.n_variables < 2:
        raise DataError("The table has no column to predict from; give one or more beside the labels.")
    if not data.n_rows:
        raise DataError("The table has no rows; there is nothing to learn from.")
    rows = data.rows if data.detail is None else data.detail.rows
    shown = np.unique(rows[:, data.domain.index(target)])
    return Examples(data, target, typed_values(variable, shown))


def _with_labels(data: Dataset, target: str) -> Dataset:
    """Leave out the rows whose label is missing."""
    place = data.index(target)
    if data.detail is None or target not in data.detail.missing:
        return data
    detail = data.detail
    known = ~detail.missing[target]
    finer = {name: codes[known] for name, codes in detail.finer.items()}
    missing = {name: holes[known] for name, holes in detail.missing.items() if name != target}
    design = None if detail.design is None else detail.design.taken(known)
    kept = Detail.of(detail.rows[known], detail.counts[known], finer, missing, design)
    note = _left_out(int(detail.counts[~known].sum()), data.names[place])
    return replace(data, detail=kept, notes=(*data.notes, note))


def _without_unlabelled(data: Dataset, target: str, n_gone: int) -> Dataset:
    """Leave out the rows whose label is missing, of which reading made a level; there are so many."""
    place, variable = data.index(target), data.domain[target]
    made = [
        label
        for label in MISSING
        if label in variable.levels
        and int(data.counts[data.rows[:, place] == variable.code(label)].sum()) == n_gone
    ]
    if not n_gone or not made:
        return data
    gone = variable.code(made[0])
    levels = tuple(label for label in variable.levels if label != made[0])
    domain = Domain(tuple(replace(one, levels=levels) if one.name == target else one for one in data.domain))

    def without(rows: Rows) -> tuple[Rows, Bools]:
        known = rows[:, place] != gone
        kept = rows[known].copy()
        kept[:, place] -= kept[:, place] > gone
        return kept, known

    rows, known = without(data.rows)
    chosen = Dataset.from_codes(domain, rows, data.counts[known], (*data.notes, _left_out(n_gone, target)))
    detail = None
    if data.detail is not None:
        rows, known = without(data.detail.rows)
        finer = {name: codes[known] for name, codes in data.detail.finer.items()}
        detail = Detail.of(rows, data.detail.counts[known], finer)
    return replace(chosen, detail=detail, plan=data.plan)


def _checked(table: Any) -> Any:
    """Refuse arrays that are no tables, in the words of scikit-learn."""
    if hasattr(table, "toarray"):
        raise DataError("Sparse data are not supported; give table.toarray(), whose cells are all there.")
    if not isinstance(table, np.ndarray) or table.dtype.names is not None:
        return table
    if table.ndim != 2:
        raise DataError(
            f"The array has {table.ndim} dimension(s), and rows and columns are needed. Reshape your data "
            "with X.reshape(-1, 1) if it is one column, or X.reshape(1, -1) if it is one row."
        )
    if table.dtype.kind == "c":
        raise DataError("Complex data not supported; give categories, such as texts or whole numbers.")
    if not table.shape[0]:
        raise DataError(f"0 sample(s) (shape={table.shape}) while a minimum of 1 is required.")
    if not table.shape[1]:
        raise DataError(f"0 feature(s) (shape={table.shape}) while a minimum of 1 is required.")
    return table


def _name_of(y: Any, target: str | None, columns: Mapping[str, Any]) -> str:
    if target is not None:
        return target
    name = getattr(y, "name", None)
    return free_column(name if isinstance(name, str) and name else NAME, columns)


def _checked_weights(sample_weight: Any, n_rows: int) -> Array:
    weights = whole_weights(sample_weight)
    if len(weights) != n_rows:
        raise DataError(f"There are {len(weights):,} weights for {n_rows:,} rows; give one for each row.")
    return weights


def _array(values: Any) -> Array:
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)


def read_labels(y: Any) -> tuple[Array, Integers]:
    """Return the different labels, sorted, and the position of each row's among them."""
    values = _array(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"The labels have the shape {values.shape}; give one label for each row.")
    if values.dtype.kind == "c":
        raise DataError("Complex data not supported; give labels such as texts or whole numbers.")
    _refuse_holes(values)
    try:
        classes, codes = np.unique(values, return_inverse=True)
    except TypeError:
        raise DataError("The labels are of several types; give texts alone or numbers alone.") from None
    if len({to_label(one) for one in classes}) < len(classes):
        raise DataError("Two different labels are written alike; give labels of one type.")
    return classes, codes.astype(np.int64)


def _refuse_holes(values: Array) -> None:
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise DataError("Input y contains NaN or infinity; leave out the rows that have no label.")
        if (values != np.floor(values)).any():
            raise DataError(
                "Unknown label type: continuous; the labels are numbers with fractions. Cut them into "
                "groups, or give labels such as texts or whole numbers."
            )
    elif values.dtype.kind == "O" and any(map(is_missing, values)):
        raise DataError("Some labels are missing; leave out the rows that have no label.")


def find_cuts(columns: Mapping[str, Any], weights: Array) -> dict[str, tuple[float, ...]]:
    """Return where columns of many different numbers are cut, by name."""
    numbers = {name: found for name, column in columns.items() if (found := _numbers(column)) is not None}
    most = MOST_GROUPS if len(numbers) > MANY_NUMBERS else None
    cuts = {name: _cuts(found, weights, most) for name, found in numbers.items()}
    return {name: edges for name, edges in cuts.items() if edges}


def _numbers(column: Any) -> Numbers | None:
    """Return a column of numbers, with NaN for what is missing; None if it is no such column."""
    dtype: Any = getattr(column, "dtype", None)
    if hasattr(dtype, "is_numeric"):
        if not dtype.is_numeric():
            return None
        return np.array([np.nan if one is None else one for one in column.to_list()], dtype=np.float64)
    values = np.asarray(column)
    if values.ndim != 1 or values.dtype.kind not in "iufO":
        return None
    if values.dtype.kind == "O":
        known = [one for one in values if not is_missing(one)]
        if not known or not all(isinstance(one, int | float | np.number) for one in known):
            return None
        if any(isinstance(one, bool) for one in known):
            return None
        values = np.array([np.nan if is_missing(one) else float(one) for one in values])
    return values.astype(np.float64)


def _cuts(numbers: Numbers, weights: Array, most: int | None) -> tuple[float, ...]:
    """Cut numbers as a plan does, into `most` groups; where rows are too few for that, at plain quantiles."""
    known = ~np.isnan(numbers) & (weights > 0)
    distinct, place = np.unique(numbers[known], return_inverse=True)
    if len(distinct) <= NATURAL_VALUES:
        return ()
    rows = np.bincount(place, weights[known]).astype(np.float64)
    is_whole = bool((distinct == np.floor(distinct)).all())
    if np.isfinite(distinct).all():
        groups = prepared.n_groups(float(rows.sum()))
        cuts = prepared.find_cuts(prepared.Numbers(distinct, rows, is_whole), min(groups, most or groups))
        if cuts:
            return cuts
    return _quantiles(distinct, rows)


def _quantiles(distinct: Numbers, rows: Numbers) -> tuple[float, ...]:
    below, total = np.cumsum(rows) - rows, rows.sum()
    n_groups = int(min(MOST_GROUPS, max(2, round(total ** (1 / 3)))))
    # The smallest values with at least 1/n, 2/n, ... of the rows below them.
    places = [int(np.searchsorted(below * n_groups, total * part)) for part in range(1, n_groups)]
    exact = sorted({float(distinct[min(place, len(distinct) - 1)]) for place in places})
    rounded = [float(f"{cut:.{DIGITS}g}") for cut in exact]
    is_fine = len(set(rounded)) == len(exact) and distinct[0] < rounded[0] and rounded[-1] <= distinct[-1]
    return tuple(rounded if is_fine else exact)


def _named(data: Dataset, target: str, classes: Array, cuts: Mapping[str, tuple[float, ...]]) -> Examples:
    """Name the levels of the target by its labels, and record where columns were cut."""
    variables = []
    shown = np.unique(data.rows[:, data.domain.index(target)])
    positions = [int(label) for label in data.domain[target].levels]
    for variable in data.domain:
        if variable.name == target:
            labels = tuple(to_label(classes[position]) for position in positions)
            variables.append(Variable(target, labels, _kind(classes)))
        elif variable.name in cuts:
            variables.append(replace(variable, ordered=True, cuts=cuts[variable.name]))
        else:
            variables.append(variable)
    seen = classes[[positions[code] for code in shown.tolist()]]
    return Examples(replace(data, domain=Domain(tuple(variables))), target, seen)


def _kind(classes: Array) -> Kind:
    kinds: dict[str, Kind] = {"i": "integer", "u": "integer", "f": "float", "b": "boolean"}
    return kinds.get(classes.dtype.kind, "text")


def read_features(domain: Domain, X: Any, learner: str, show_progress: bool | None = None) -> Cells:
    """Read rows to predict for, as codes of a domain; -1 where a row hides a column or its level is unknown.

    Missing values are the level that they were while learning, if they were one.
    """
    X = check_columns(X, domain, learner)
    cells = read_cells(domain, X, show_progress, unknown="mark")
    for place, variable in enumerate(domain):
        label = next((label for label in MISSING if label in variable.levels), None)
        if label is not None:
            cells[cells[:, place] == HOLE, place] = variable.levels.index(label)
    return np.maximum(cells, HOLE)


def check_columns(X: Any, domain: Domain, learner: str) -> Any:
    """Refuse a table that lacks columns that were learned from; return it as `read` takes it."""
    if isinstance(X, Dataset):
        _check_names(X.names, domain, learner)
    if isinstance(X, Dataset) or _is_file(X):
        return X
    table = _checked(as_table(X))
    names = list(columns_of(table))
    nameless = _is_nameless(table)
    if nameless and len(names) != len(domain):
        raise DataError(
            f"X has {len(names)} features, but {learner} is expecting {len(domain)} features as input."
        )
    if not nameless:
        _check_names(names, domain, learner)
    return table


def _check_names(names: Sequence[str], domain: Domain, learner: str) -> None:
    known = {*names, *(stem for name in names for stem in stems(name))}
    if missing := [name for name in domain.names if not known & {name, *bases_of(name)}]:
        raise DataError(
            f"The table has no column {shorten(missing)}, which {learner} learned from; add it, with "
            "missing values if they are not known."
        )


def read_true_labels(
    X: Any, y: Any, target: str, domain: Domain, show_progress: bool | None = None
) -> tuple[Any, Array, Numbers]:
    """Return a table to predict for, the true label of each of its rows, and how often each row counts."""
    if y is None and _is_file(X):
        # Columns that a plan made, such as parts of dates, are made again where the rows are predicted.
        codes = read_cells(domain.select([target]), X, show_progress, unknown="mark")[:, 0]
        known = codes > HOLE
        found = np.full(len(codes), None, dtype=object)
        found[known] = typed_values(domain[target], codes[known].astype(np.int64))
        return X, found, np.ones(len(codes))
    if isinstance(X, Dataset):
        if y is not None:
            raise DataError("A Dataset knows no order of rows; score(X) takes its labels from its target.")
        variable = X.domain[target]
        return X, typed_values(variable, X.rows[:, X.domain.index(target)]), X.counts.astype(np.float64)
    if y is None:
        columns = columns_of(as_table(X))
        if target not in columns:
            raise DataError(f"The table has no column {target!r} with the true labels; give them as y.")
        y = columns[target]
    labels = _array(y).ravel()
    return X, labels, np.ones(labels.size)
