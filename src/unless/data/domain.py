"""Variables with their ordered levels, contexts and regions of them, and what a value is called.

`to_label` is the one rule that turns scalars into labels, `sort_labels` the order of labels, and `date_of`
reads from a name which date a column is a part of.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from unless.data.showing import html_table, to_label, visible
from unless.errors import DataError, SettingError, UnknownLevel, UnknownName
from unless.typing import Bools, Integers

Kind = Literal["text", "integer", "float", "boolean", "category"]
Code = np.uint16
MAX_LEVELS = int(np.iinfo(Code).max)
# What the level of missing values is called.
MISSING_LABELS = ("missing", "(missing)")
# The name of a column made of the dates of another.
DATE_PART = re.compile(r"(.+) \((year|quarter|month|weekday|hour)\)", re.DOTALL)
_WHOLE = re.compile(r"(-?(?:0|[1-9]\d*))(?:\.0+)?")


@dataclass(frozen=True, slots=True)
class Variable:
    """A name and its levels, in their order.

    `kind` remembers what the column held before it became labels, so that a sample can be given back as the
    same kind of values. `ordered` tells that the order of the levels means something, as of grades. `cuts`
    are the rising edges at which numbers were cut: a number belongs to the level after the last cut that is
    not above it; levels that stand for no numbers, such as that of missing values, follow.

    >>> age = Variable("age", ("under 30", "30 to 44", "45 or more"), "category", cuts=(30, 45))
    >>> age.code(44.5), age.code("30 to 44"), age.is_ordered
    (1, 1, True)
    """

    name: str
    levels: tuple[str, ...]
    kind: Kind = field(default="text", compare=False)
    ordered: bool = field(default=False, compare=False)
    cuts: tuple[float, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not self.levels:
            raise DataError(f"Column {self.name!r} has no levels; drop it or give it some with levels=.")
        if len(set(self.levels)) != len(self.levels):
            raise DataError(f"Column {self.name!r} names a level twice; give each level once.")
        if len(self.levels) > MAX_LEVELS:
            raise DataError(
                f"Column {self.name!r} has {len(self.levels):,} levels, more than {MAX_LEVELS:,}."
            )
        if len(self.cuts) >= len(self.levels) or any(not a < b for a, b in pairwise(self.cuts)):
            raise DataError(f"Column {self.name!r} is cut at {self.cuts}, which does not give its levels.")

    @property
    def is_ordered(self) -> bool:
        """Whether the order of the levels means something: it was said so, or they are numbers."""
        return self.ordered or bool(self.cuts) or self.kind in ("integer", "float")

    def code(self, value: object) -> int:
        """Return the position of a level, given by its label or by the scalar it came from."""
        label = value if type(value) is str else to_label(value)
        # Nearly always so, and asked for in every query.
        if label in self.levels:
            return self.levels.index(label)
        for spelling in _other_spellings(value, label):
            if spelling in self.levels:
                return self.levels.index(spelling)
        if self.cuts and (number := _as_number(value)) is not None:
            return bisect_right(self.cuts, number)
        raise UnknownLevel(
            f"{label!r} is not a level of {self.name!r}; its levels are {shorten(self.levels)}."
        )

    def _repr_html_(self) -> str:
        kind = f"ordered {self.kind}" if self.is_ordered else self.kind
        return html_table(f"{visible(self.name)}: {kind}", ("level",), [(level,) for level in self.levels])


def _as_number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _other_spellings(value: object, label: str) -> tuple[str, ...]:
    """Say in what other ways a level may be written: a table of text writes as it likes."""
    if label in ("True", "False") and not isinstance(value, str):
        return (label.lower(), label.upper())
    whole = _WHOLE.fullmatch(label)
    # 1 where the table says 1.0, and "1.0" where it was read as 1; but "01" and "1e0" are texts of their own.
    return (whole[1], f"{whole[1]}.0", str(value)) if whole else (str(value),)


class Context(Mapping[str, str]):
    """An assignment of labels to some variables: hashable, in the order of its domain."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[tuple[str, str]] | Mapping[str, str] = ()) -> None:
        self._items: dict[str, str] = dict(items)

    def __getitem__(self, name: str) -> str:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"Context({self._items!r})"

    def __str__(self) -> str:
        return ", ".join(f"{name} = {label}" for name, label in self._items.items())

    def _repr_html_(self) -> str:
        return html_table("Context", ("variable", "level"), list(self.items()))


@dataclass(frozen=True)
class Domain:
    """The variables of a table, in column order: names and labels outside, positions and codes inside."""

    variables: tuple[Variable, ...]

    def __post_init__(self) -> None:
        if len(self._positions) != len(self.variables):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise DataError(f"Column name {twice!r} appears more than once; rename one of them.")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names, in column order."""
        return tuple(variable.name for variable in self.variables)

    @cached_property
    def n_levels(self) -> Integers:
        """The number of levels of each variable."""
        return np.array([len(variable.levels) for variable in self.variables], dtype=np.int64)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {variable.name: position for position, variable in enumerate(self.variables)}

    def __len__(self) -> int:
        return len(self.variables)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.variables)

    def __getitem__(self, name: str) -> Variable:
        return self.variables[self.index(name)]

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    def index(self, name: str) -> int:
        """Return the position of a variable."""
        try:
            return self._positions[name]
        except KeyError:
            hint = nearest(str(name), self.names, f"the variables are {shorten(self.names)}.")
            raise UnknownName(f"There is no variable {name!r}; {hint}") from None

    def encode(self, context: Mapping[str, object] | None) -> dict[int, int]:
        """Turn name -> label into position -> code, in column order; None says nothing."""
        if context is not None and not isinstance(context, Mapping):
            raise SettingError(
                f"{context!r} gives no labels to variables; give a dictionary from names to labels."
            )
        given = {} if context is None else dict(context)
        codes = {self.index(name): self[name].code(value) for name, value in given.items()}
        return dict(sorted(codes.items()))

    def decode(self, codes: Mapping[int, int] | Iterable[int]) -> Context:
        """Turn position -> code, or one code per variable, into a context."""
        pairs = codes.items() if isinstance(codes, Mapping) else enumerate(codes)
        named = ((self.variables[position], int(code)) for position, code in sorted(pairs))
        return Context((variable.name, variable.levels[code]) for variable, code in named)

    def select(self, names: Iterable[str]) -> "Domain":
        """Keep these variables, in this order."""
        return Domain(tuple(self[name] for name in names))

    def _repr_html_(self) -> str:
        return html_table(f"Domain: {len(self)} variables", ("variable", "levels", ""), level_rows(self))


# What would be read as a part of the sentence that a name or level stands in, or not be seen at all.
_MISLEADING = re.compile(r"^$|^\s|\s$|[,{}\n]| (?:and|or) | = ")


def quote_label(text: str) -> str:
    """Write a name or level as it is, in quotes where it would be misread: 'a, b' and ''."""
    if not _MISLEADING.search(text):
        return text
    quote = '"' if "'" in text else "'"
    return f"{quote}{text}{quote}"


@dataclass(frozen=True)
class Region:
    """All contexts in which each of some variables has one of some levels; without conditions, all there are.

    Conditions are in the order of names, their levels in the order of the domain: equal regions are equal.
    """

    conditions: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, domain: Domain, conditions: Mapping[str, Iterable[object]]) -> "Region":
        """Name the levels that variables may have; one that may have all says nothing and is left out."""
        kept = []
        for name in sorted(conditions):
            codes = sorted({domain[name].code(label) for label in conditions[name]})
            if not codes:
                raise SettingError(f"{name!r} is left no level; give at least one.")
            if len(codes) < len(domain[name].levels):
                kept.append((name, tuple(domain[name].levels[code] for code in codes)))
        return cls(tuple(kept))

    @property
    def names(self) -> tuple[str, ...]:
        """The variables with a condition."""
        return tuple(name for name, _ in self.conditions)

    def holds(self, domain: Domain, rows: npt.NDArray[np.uint16]) -> Bools:
        """Tell, for each row of codes, whether it is in here."""
        inside = np.ones(len(rows), dtype=np.bool_)
        for name, labels in self.conditions:
            variable = domain[name]
            allowed = np.zeros(len(variable.levels), dtype=np.bool_)
            allowed[[variable.levels.index(label) for label in labels]] = True
            inside &= allowed[rows[:, domain.index(name)]]
        return inside

    def to_dict(self) -> dict[str, list[str]]:
        """Return plain values: the levels of each variable with a condition."""
        return {name: list(labels) for name, labels in self.conditions}

    def __str__(self) -> str:
        return " and ".join(
            f"{quote_label(name)} = {quote_label(labels[0])}"
            if len(labels) == 1
            else f"{quote_label(name)} in {{{', '.join(map(quote_label, labels))}}}"
            for name, labels in self.conditions
        )

    def _repr_html_(self) -> str:
        rows = [(name, ", ".join(map(quote_label, labels))) for name, labels in self.conditions]
        return html_table("Region" if rows else "Region: everywhere", ("variable", "levels"), rows)


def any_agrees(regions: Iterable[Region], known: Mapping[str, str]) -> bool:
    """Tell whether a context in which some variables have these labels can be in one of the regions."""
    return any(
        all(known.get(name, labels[0]) in labels for name, labels in region.conditions) for region in regions
    )


def level_rows(domain: Domain) -> list[tuple[str, int, str]]:
    """Return a row for each variable: its name, how many levels it has, and the first of them."""
    return [
        (one.name, len(one.levels), ", ".join(one.levels[:8]) + ", ..." * (len(one.levels) > 8))
        for one in domain
    ]


def nearest(name: str, known: Sequence[str], otherwise: str) -> str:
    """Ask whether the known name that is nearest was meant; where none is near, say something else."""
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else otherwise


def shorten(words: Iterable[str], at_most: int = 8) -> str:
    """Quote and join words for a message, cutting a long list short and saying how much was cut."""
    return listed([repr(word) for word in words], at_most)


def listed(texts: Sequence[str], at_most: int, what: str = "") -> str:
    """Join texts, cutting a long list short; `what` says what the others are.

    >>> listed(["a", "b", "c"], 2, " columns")
    'a, b and 1 more columns'
    """
    more = f" and {len(texts) - at_most:,} more{what}" if len(texts) > at_most else ""
    return ", ".join(texts[:at_most]) + more


def sort_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Order labels by value where all are numbers, else by code point; never by appearance."""
    distinct = set(labels)
    # Infinities of a column of floats are ordered among its numbers.
    numbers = {label: float(label) if label in ("inf", "-inf") else _number(label) for label in distinct}
    if any(math.isnan(number) for number in numbers.values()):
        return tuple(sorted(distinct))
    return tuple(sorted(distinct, key=lambda label: (numbers[label], label)))


def is_number(label: str) -> bool:
    """Tell whether a person would read this label as a number."""
    return not math.isnan(_number(label))


def _number(label: str) -> float:
    # float() also reads "1_000", "nan" and "inf", which are words to a person.
    if not label or "_" in label or not any(character.isdigit() for character in label):
        return math.nan
    try:
        return float(label)
    except ValueError:
        return math.nan


def date_of(name: str) -> str | None:
    """Return the date that a column is a part of, by its name; None of an hour, which no calendar gives.

    >>> date_of("day (year)"), date_of("day (hour)"), date_of("day")
    ('day', None, None)
    """
    match = DATE_PART.fullmatch(name)
    return None if match is None or match[2] == "hour" else match[1]
