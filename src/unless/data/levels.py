"""Values become labels, labels become levels in an order that no shuffle of the rows can change."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Counts
from unless.data.domain import Kind, Variable
from unless.data.labels import is_number, sort_labels, to_label
from unless.data.settings import Settings
from unless.data.sources.session import Field, nested
from unless.errors import DataError

Codes = npt.NDArray[np.uint16]
# The code of a missing value, and of the many rare values merged before the collapse.
NOTHING = int(np.iinfo(np.uint16).max)
MERGED = "\x01"

# A file without types must write a hole somehow; "None" and "-" are left out because people mean them.
MISSING_WORDS = frozenset({"?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "<NA>", "#N/A"})

_WHOLE_WITH_POINT = re.compile(r"([+-]?\d+)\.0*")


@dataclass
class Draft:
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
        present = np.bincount(self.codes, minlength=NOTHING + 1)[: len(self.labels)] > 0
        return [label for label, here in zip(self.labels, present, strict=True) if here]

    def totals(self, counts: Counts) -> dict[str, int]:
        """Return how often each label occurs."""
        shown = self.codes != NOTHING
        sums = np.zeros(NOTHING, dtype=np.int64)
        np.add.at(sums, self.codes[shown], counts[shown])
        return {label: int(total) for label, total in zip(self.labels, sums[: len(self.labels)], strict=True)}


def draft_column(one: Field, values: Sequence[str], codes: Codes, how: Settings) -> Draft:
    """Label the distinct values of a column; values that read alike become one."""
    labels, words = label_values(one, values, how)
    kind = one.kind or kind_of_labels(one, values, labels)
    distinct = list(dict.fromkeys(label for label in labels if label is not None))
    places = {label: place for place, label in enumerate(distinct)}
    lookup = np.full(NOTHING + 1, NOTHING, dtype=np.uint16)
    raw: list[list[str]] = [[] for _ in distinct]
    for position, (label, value) in enumerate(zip(labels, values, strict=True)):
        if label is not None:
            lookup[position] = places[label]
            raw[places[label]].append(value)
    trimmed = one.form == "words" and any(value != value.strip() for value in values)
    return Draft(one, distinct, lookup[codes], kind, raw, words, trimmed)


def label_values(one: Field, values: Sequence[str], how: Settings) -> tuple[list[str | None], frozenset[str]]:
    """Return the label of each value as the database writes it, None where missing; and words for missing."""
    label = _LABELLERS.get(one.form, str)
    if one.form == "code":
        label = _of_code(one.labels)
    if one.form == "json" and any(value[:1] in ("[", "{") for value in values):
        raise nested(one.name)
    labels = [MERGED if value == MERGED else label(value) for value in values]
    words = how.missing_values
    if words is None:
        words = MISSING_WORDS if one.form == "words" else frozenset()
    found = frozenset(text for text in labels if text is not None and text.strip() in words)
    kept = [text if text and text.strip() and text not in found else None for text in labels]
    return (_without_points(kept) if one.form in ("words", "decimal") else kept), found


def _without_points(labels: list[str | None]) -> list[str | None]:
    """Write whole numbers without a point where all labels are numbers, as numbers in a typed table are."""
    if not all(label in (None, MERGED) or is_number(str(label)) for label in labels):
        return labels
    return [label and _without_point(label) for label in labels]


def _without_point(label: str) -> str:
    match = _WHOLE_WITH_POINT.fullmatch(label)
    return match[1] if match else label


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


def order_levels(draft: Draft, given: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the levels of a column in their order: given, declared, or sorted."""
    seen = draft.seen()
    if given is not None:
        return given
    declared = draft.field.levels
    if declared is None:
        return sort_labels(seen)
    known = [label for label in declared if label.strip() and label not in draft.missing_words]
    if not draft.field.levels_are_ordered:
        return sort_labels({*known, *seen})
    return tuple(dict.fromkeys([*known, *seen]))


def make_variable(draft: Draft, levels: tuple[str, ...], merged: dict[str, str]) -> tuple[Variable, Codes]:
    """Translate a draft's codes to the levels; `merged` says which labels go by another name."""
    extra = bool(merged) or draft.missing_label is not None
    if draft.missing_label is not None and draft.missing_label not in levels:
        levels = (*levels, draft.missing_label)
    if not levels:
        raise DataError(f"Column {draft.name!r} has no values at all; leave it out with exclude=.")
    places = {label: place for place, label in enumerate(levels)}
    lookup = np.zeros(NOTHING + 1, dtype=np.uint16)
    for code, label in enumerate(draft.labels):
        # A label that no row shows any more has no place, and needs none.
        lookup[code] = places.get(merged.get(label, label), 0)
    if draft.missing_label is not None:
        lookup[NOTHING] = places[draft.missing_label]
    kind = "category" if extra and draft.kind != "text" else draft.kind
    ordered = draft.field.is_ordered and not extra
    return Variable(draft.name, levels, kind, ordered, draft.cuts), lookup[draft.codes]


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name for a new level that no other level has."""
    used = set(taken)
    while name in used:
        name = f"({name})"
    return name
