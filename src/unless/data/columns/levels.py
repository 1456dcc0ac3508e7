"""Values become labels, labels become levels: in an order that no shuffle of the rows can change."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Counts
from unless.data.domain import MISSING_LABELS, Kind, Variable, is_number, listed, shorten, sort_labels
from unless.data.settings import Settings
from unless.data.showing import to_label
from unless.data.sources.session import Field, nested, quoted
from unless.errors import DataError, MissingValues

Codes = npt.NDArray[np.uint16]
# The code of a missing value, and of the many rare values merged before the collapse.
MISSING_CODE = int(np.iinfo(np.uint16).max)
MERGED = "\x01"

# A file without types must write a hole somehow; "None" and "-" are left out because people mean them.
MISSING_WORDS = frozenset({"?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "<NA>", "#N/A"})

_WHOLE_WITH_POINT = re.compile(r"\A([+-]?\d+)\.0*\Z")


_SPACES = "' ' || chr(9) || chr(10) || chr(13) || chr(160)"
NUMERIC = ("integer", "float", "decimal")


def missing_words(one: Field, how: Settings) -> frozenset[str]:
    """Return the words that stand for a missing value in a column, besides an empty cell."""
    if how.missing_values is not None:
        return how.missing_values
    return MISSING_WORDS if one.form == "words" else frozenset()


def number_sql(one: Field) -> str:
    """Write a field's value as a number; null where it is none."""
    if one.form in NUMERIC:
        return f"{one.column}::DOUBLE"
    if one.form in ("words", "text", "json"):
        return f"try_cast({text_sql(one)} as DOUBLE)"
    return "null::DOUBLE"


def text_sql(one: Field) -> str:
    """Write a field's value as text, without the layout around it."""
    if one.form == "json":
        return f"({one.column} ->> '$')"
    text = f"{one.column}::VARCHAR"
    return f"trim({text}, {_SPACES})" if one.form == "words" else text


def missing_sql(one: Field, how: Settings) -> str:
    """Write the condition under which a field's value is missing."""
    words = missing_words(one, how)
    if one.form == "code":
        blank = [str(code) for code, label in enumerate(one.labels) if label.strip() in words | {""}]
        return f"coalesce({one.column} in ({', '.join(['-1', *blank])}), true)"
    text = f"{text_sql(one)} in ({_listed_sql(words)})"
    if one.form in NUMERIC:
        numbers = [word for word in sorted(words) if word.lstrip("-").replace(".", "", 1).isdigit()]
        text = f"isnan({number_sql(one)}) or {number_sql(one)} in ({', '.join([*numbers, 'null'])})"
    return f"({one.column} is null or coalesce({text}, false))"


def is_missing(label: str, how: Settings) -> bool:
    """Tell whether a label of a table in memory stands for a missing value."""
    return not label.strip() or label.strip() in (how.missing_values or ())


def _listed_sql(words: frozenset[str]) -> str:
    return ", ".join(quoted(word) for word in sorted(words | {""}))


def text_or_null(one: Field, how: Settings, value: str | None = None) -> str:
    """Write a column's value as text, null where it is missing; `value` is its text if the caller has it."""
    listed = _listed_sql(missing_words(one, how))
    if one.form == "words":
        # Blanks are nearly always all that stands around a label; other layout is seen where labels are made.
        text = f"trim({one.column if value is None else value})"
        return f"case when {text} in ({listed}) then null else {text} end"
    if value is None:
        return label_sql(one, how)
    return f"case when {value} is null or trim({value}) in ({listed}) then null else {value} end"


def label_sql(one: Field, how: Settings) -> str:
    """Write a column's value as text without any layout around it, null where it is missing."""
    return f"case when {missing_sql(one, how)} then null else {text_sql(one)} end"


def number_or_null(one: Field, how: Settings) -> str:
    """Write the value of a column known to hold numbers, null where it is missing."""
    number = number_sql(one)
    if one.form == "words":
        # The database reads numbers with blanks around them.
        number = f"try_cast({one.column} as DOUBLE)"
    if how.missing_values is None:
        # No word for missing is a number but NaN.
        return number if one.form == "integer" else f"case when isnan({number}) then null else {number} end"
    return f"case when {missing_sql(one, how)} then null else {number} end"


@dataclass
class RawColumn:
    """A column on its way to a variable: its labels and, for each distinct row, which one it has."""

    field: Field
    labels: list[str]
    codes: Codes
    kind: Kind
    raw: list[list[str]]
    missing_words: frozenset[str] = frozenset()
    trimmed: bool = False
    missing_label: str | None = None
    cuts: tuple[float, ...] = ()
    notes: list[str] = attribute(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.field.name

    def seen(self) -> list[str]:
        """Return the labels that some row shows, rows counted zero times included."""
        present = np.bincount(self.codes, minlength=MISSING_CODE + 1)[: len(self.labels)] > 0
        return [label for label, here in zip(self.labels, present, strict=True) if here]

    def totals(self, counts: Counts) -> dict[str, int]:
        """Return how often each label occurs."""
        shown = self.codes != MISSING_CODE
        sums = np.zeros(MISSING_CODE, dtype=np.int64)
        np.add.at(sums, self.codes[shown], counts[shown])
        return {label: int(total) for label, total in zip(self.labels, sums[: len(self.labels)], strict=True)}


def label_column(one: Field, values: Sequence[str], codes: Codes, how: Settings) -> RawColumn:
    """Label the distinct values of a column; values that read alike become one."""
    labels, words = label_values(one, values, how)
    kind = one.kind or kind_of_labels(one, values, labels)
    distinct = list(dict.fromkeys(label for label in labels if label is not None))
    places = {label: place for place, label in enumerate(distinct)}
    lookup = np.full(MISSING_CODE + 1, MISSING_CODE, dtype=np.uint16)
    raw: list[list[str]] = [[] for _ in distinct]
    for position, (label, value) in enumerate(zip(labels, values, strict=True)):
        if label is not None:
            lookup[position] = places[label]
            raw[places[label]].append(value)
    trimmed = one.form == "words" and any(value != value.strip() for value in values)
    return RawColumn(one, distinct, lookup[codes], kind, raw, words, trimmed)


def label_values(one: Field, values: Sequence[str], how: Settings) -> tuple[list[str | None], frozenset[str]]:
    """Return the label of each value as the database writes it, None where missing; and words for missing."""
    label = _LABELLERS.get(one.form, str)
    if one.form == "code":
        label = _of_code(one.labels)
    if one.form == "json" and any(value[:1] in ("[", "{") for value in values):
        raise nested(one.name)
    labels = [MERGED if value == MERGED else label(value) for value in values]
    words = missing_words(one, how)
    found = frozenset(text for text in labels if text is not None and text.strip() in words)
    kept = [text if text and text.strip() and text not in found else None for text in labels]
    return (_without_points(kept) if one.form in ("words", "decimal") else kept), found


def _without_points(labels: list[str | None]) -> list[str | None]:
    """Write whole numbers without a point where all labels are numbers, as numbers in a typed table are."""
    if not all(label in (None, MERGED) or is_number(str(label)) for label in labels):
        return labels
    return [label and _WHOLE_WITH_POINT.sub(r"\1", label) for label in labels]


def _of_code(labels: tuple[str, ...]) -> Callable[[str], str]:
    return lambda value: labels[int(value)]


def _of_float(value: str) -> str | None:
    number = float(value)
    return None if number != number else to_label(number)  # noqa: PLR0124 (only NaN differs from itself)


def _of_moment(value: str) -> str:
    # DuckDB writes +00 where Python writes +00:00.
    return re.sub(r"(:\d\d(?:\.\d+)?[+-]\d\d)$", r"\1:00", value).removesuffix(" 00:00:00")


def _of_json(value: str) -> str | None:
    scalar = json.loads(value)
    return None if scalar is None else to_label(scalar)


_LABELLERS: dict[str, Callable[[str], str | None]] = {
    "words": str.strip,
    "float": _of_float,
    "boolean": str.capitalize,
    "moment": _of_moment,
    "json": _of_json,
}


def kind_of_labels(one: Field, values: Sequence[str], labels: Sequence[str | None]) -> Kind:
    """Guess what a column without a type holds, by the way its labels are written."""
    known = [label for label in labels if label is not None]
    if one.form == "json" and any(value.startswith('"') for value in values):
        return "text"
    if known and all(label in ("True", "False") for label in known):
        return "boolean"
    if known and all(re.fullmatch(r"0|-?[1-9]\d*", label) for label in known):
        return "integer"
    if known and all(is_number(label) and to_label(float(label)) == label for label in known):
        return "float"
    return "text"


def order_levels(column: RawColumn, given: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the levels of a column in their order: given, declared, or sorted."""
    return given if given is not None else levels_of(column.field, column.seen(), column.missing_words)


def levels_of(one: Field, seen: Iterable[str], missing: Collection[str] = ()) -> tuple[str, ...]:
    """Return the levels of a field that shows some labels: those declared in their order, or sorted."""
    if one.levels is None:
        return sort_labels(seen)
    known = [label for label in one.levels if label.strip() and label not in missing]
    return tuple(dict.fromkeys([*known, *seen])) if one.levels_are_ordered else sort_labels({*known, *seen})


def make_variable(
    column: RawColumn, levels: tuple[str, ...], merged: dict[str, str]
) -> tuple[Variable, Codes]:
    """Translate a column's codes to the levels; `merged` says which labels go by another name."""
    extra = bool(merged) or column.missing_label is not None
    if column.missing_label is not None and column.missing_label not in levels:
        levels = (*levels, column.missing_label)
    if not levels:
        raise DataError(f"Column {column.name!r} has no values at all; leave it out with exclude=.")
    places = {label: place for place, label in enumerate(levels)}
    lookup = np.zeros(MISSING_CODE + 1, dtype=np.uint16)
    for code, label in enumerate(column.labels):
        # A label that no row shows any more has no place, and needs none.
        lookup[code] = places.get(merged.get(label, label), 0)
    if column.missing_label is not None:
        lookup[MISSING_CODE] = places[column.missing_label]
    kind = "category" if extra and column.kind != "text" else column.kind
    ordered = column.field.is_ordered and not extra
    return Variable(column.name, levels, kind, ordered, column.cuts), lookup[column.codes]


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name for a new level that no other level has."""
    used = set(taken)
    while name in used:
        name = f"({name})"
    return name


def merge_rare(
    column: RawColumn, levels: tuple[str, ...], counts: Counts, threshold: int
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Merge levels seen fewer than `threshold` times into a last one; a single rare level keeps its name."""
    if threshold < 1:
        return levels, {}
    totals = column.totals(counts)
    rare = [level for level in levels if level == MERGED or totals.get(level, 0) < threshold]
    if len(rare) < 2 and MERGED not in rare:
        return levels, {}
    kept = [level for level in levels if level not in set(rare)]
    other = free_name("other", kept)
    column.notes.append(_note(column.name, [level for level in rare if level != MERGED], threshold, other))
    return (*kept, other), dict.fromkeys(rare, other)


def _note(name: str, rare: list[str], threshold: int, other: str) -> str:
    which = f" ({shorten(rare)})" if rare else ""
    return f"Merged the levels of {name!r} seen fewer than {threshold:,} times{which} into {other!r}."


def apply_policy(columns: Sequence[RawColumn], counts: Counts, how: Settings) -> tuple[Counts, list[str]]:
    """Refuse, drop or name the missing values of a table; returns the counts left and what was done."""
    counts = _forget_empty_holes(columns, counts)
    holes = {column.name: int(counts[column.codes == MISSING_CODE].sum()) for column in columns}
    holes = {name: n for name, n in holes.items() if n}
    if not holes:
        return counts, []
    written = _written(columns, holes)
    named = {name: n for name, n in holes.items() if how.missing == "level" or name in how.missing_levels}
    rest = {name: n for name, n in holes.items() if name not in named}
    if rest and how.missing == "error":
        raise MissingValues(_refusal(rest, written))
    done = [f"Read {written} as missing."] if written else []
    if named:
        done.append(_name_holes(columns, named, how))
    if rest:
        counts, note = _drop(columns, counts, rest)
        done.append(note)
    return counts, done


def _forget_empty_holes(columns: Sequence[RawColumn], counts: Counts) -> Counts:
    # A row counted zero times shows levels, not holes.
    hole = np.zeros(len(counts), dtype=bool)
    for column in columns:
        hole |= column.codes == MISSING_CODE
    return _keep(columns, counts, ~(hole & (counts == 0)))


def _drop(columns: Sequence[RawColumn], counts: Counts, holes: dict[str, int]) -> tuple[Counts, str]:
    whole = np.ones(len(counts), dtype=bool)
    for column in columns:
        if column.missing_label is None:
            whole &= column.codes != MISSING_CODE
    before = int(counts.sum())
    kept = _keep(columns, counts, whole)
    if not kept.sum():
        worst = max(holes, key=lambda name: holes[name])
        raise DataError(
            f"Every row has a missing value, {worst!r} most often ({holes[worst]:,}), so nothing is left; "
            "leave such columns out with exclude= or pass missing='level'."
        )
    gone = before - int(kept.sum())
    return kept, f"Dropped {gone:,} of {before:,} rows with missing values in {_columns(holes)}."


def _keep(
    columns: Sequence[RawColumn], counts: Counts, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Counts:
    if chosen.all():
        return counts
    for column in columns:
        column.codes = column.codes[chosen]
    return counts[chosen]


def _name_holes(columns: Sequence[RawColumn], holes: dict[str, int], how: Settings) -> str:
    names = set()
    for column in columns:
        if column.name in holes:
            # Levels that the user listed may have it already.
            given = [label for label in MISSING_LABELS if label in how.levels.get(column.name, ())]
            column.missing_label = given[0] if given else free_name("missing", column.labels)
            names.add(column.missing_label)
    return f"Made missing values in {_columns(holes)} a level, {' or '.join(map(repr, sorted(names)))}."


def _refusal(holes: dict[str, int], written: str) -> str:
    ways = "drop those rows with missing='drop'"
    if not written:
        return (
            f"There are missing values in {_columns(holes)}; {ways} or make them a level with "
            "missing='level'."
        )
    return (
        f"There are missing values, some written as {written}, in {_columns(holes)}; {ways}, make them a "
        "level with missing='level', or say with missing_values= what stands for missing."
    )


def _written(columns: Sequence[RawColumn], holes: dict[str, int]) -> str:
    found = {word for column in columns if column.name in holes for word in column.missing_words}
    return ", ".join(map(repr, sorted(found)[:4]))


def _columns(holes: dict[str, int]) -> str:
    return listed([f"{name!r} ({n:,})" for name, n in holes.items()], 6, " columns")
