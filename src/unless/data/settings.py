"""The arguments of `read`, checked once, before anything is read."""

import codecs
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, TypeVar

from unless.data.domain import DATE_PART, MAX_LEVELS, MISSING_LABELS, Domain, nearest, shorten
from unless.data.showing import to_label
from unless.errors import SettingError, UnknownName
from unless.runtime.memory import parse_memory

Missing = Literal["error", "drop", "level"]
# More levels than this are refused unless the user says otherwise.
DEFAULT_LEVELS = 256
# The roles of columns that say how rows were drawn, and are no columns to relate.
DESIGN = ("weight", "cluster", "strata")
# The role of dates such as 03/04/2020 that are meant to begin with the day.
DAY_FIRST = "day first"
# The roles that the user may give to a column (`data/plan.py` has them all).
CHOICES = (
    "category", "ordered", "number", "date", DAY_FIRST, "choices", "count", "weight", "cluster", "strata",
    "identifier", "text", "excluded",
)  # fmt: skip
# The levels of a column that says whether something was ticked.
YES, NO = "yes", "no"
# Marks between the name that a set of columns shares and what tells them apart.
MARKS = "_.:- "
# How columns are cut: a number of groups, ("width", n), or edges.
Bins = int | tuple[str, int] | Sequence[float]
T = TypeVar("T")


@dataclass(frozen=True)
class Shape:
    """What makes a variable of a column: cuts of its numbers, a part of its dates, one of its choices.

    `levels` are named by the groups; without a way in which dates or numbers are `written`, it is found out.
    A column that is `known` to hold nothing else is cut faster. `choice` is an answer among several in a
    cell, which `separator` parts; `is_none` says that missing cells tick none. `columns` are joined to one.
    `missing` are labels that stand for missing values; labels that are not among the levels become `others`.
    """

    column: str
    levels: tuple[str, ...] = ()
    cuts: tuple[float, ...] = ()
    part: str = ""
    written: str | None = None
    known: bool = False
    choice: str = ""
    separator: str = ""
    is_none: bool = False
    columns: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    others: str = ""


@dataclass(frozen=True)
class Settings:
    """What the caller asked for, and what a plan adds to it."""

    columns: tuple[str, ...] | None
    count_column: str | None
    missing: str
    missing_values: frozenset[str] | None
    levels: dict[str, tuple[str, ...]]
    bins: dict[str, Bins]
    rare: dict[str, int] | int | None
    max_levels: int
    max_memory: int
    delimiter: str | None
    header: bool
    encoding: str | None
    exclude: tuple[str, ...] = ()
    roles: dict[str, str] = field(default_factory=dict)
    ordered: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    # Made of the numbers and dates of columns, by the names of what is made.
    shapes: dict[str, Shape] = field(default_factory=dict)
    # The columns that are joined to one, by its name.
    join: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # The columns of which missing values are a level, whatever is done with the others.
    missing_levels: frozenset[str] = frozenset()
    # The sheet of a spreadsheet, by its name or its number from 1.
    sheet: str | int | None = None
    # The columns that say how rows were drawn, by what they say: weight, cluster, strata.
    design: dict[str, str] = field(default_factory=dict)

    def wants(self, name: str) -> bool:
        """Tell whether a column of the table is needed at all."""
        if self.columns is None or name in self._sources or name == self.count_column:
            return True
        if name in self.design.values() or self.roles.get(name) in DESIGN:
            return True
        # A set of columns that was joined is called by what their names begin with.
        return any(stem in self._sources for stem in stems(name))

    @cached_property
    def _sources(self) -> frozenset[str]:
        """The columns asked for, and those that they may be made of."""
        asked = self.columns or ()
        made = {column for one in asked for column in bases_of(one)}
        joined = {member for shape in self.shapes.values() for member in shape.columns}
        return frozenset(asked) | made | joined

    def rare_below(self, name: str) -> int:
        """Return the count below which a level of this column is rare."""
        if isinstance(self.rare, dict):
            return self.rare.get(name, 0)
        return self.rare or 0

    @property
    def numeric(self) -> frozenset[str]:
        """The columns that must be read as numbers."""
        counted = {self.count_column, self.design.get("weight")} - {None}
        return frozenset({*self.bins, *(name for name in counted if name is not None)})

    @property
    def reshapes(self) -> bool:
        """Whether anything but a choice of columns was asked for."""
        asked = self.count_column or self.levels or self.bins or self.rare or self.roles or self.ordered
        return bool(asked or self.exclude or self.join or self.design)


def make_settings(given: Mapping[str, Any]) -> Settings:
    """Check every argument of `read` or `prepare` that can be checked without the table.

    `given` may have other names as well; those that it lacks have the defaults of `read`.
    """
    given = defaultdict(lambda: None, {"header": True, "max_levels": DEFAULT_LEVELS, **given})
    levels, missing, roles = given["levels"], given["missing"], _roles(given["roles"])
    orders = _ordered(given["ordered"])
    orders |= {one.name: None for one in levels if one.ordered} if isinstance(levels, Domain) else {}
    count_column, sheet = given["count_column"], given["sheet"]
    return Settings(
        columns=_names(given["columns"]),
        count_column=None if count_column is None else str(count_column),
        missing="auto" if missing == "auto" else _one_of("missing", missing, ("error", "drop", "level")),
        missing_values=_words(given["missing_values"]),
        levels=_levels(levels) | {name: order for name, order in orders.items() if order is not None},
        bins=_mapping("bins", given["bins"]),
        rare=_rare(given["rare"]),
        max_levels=_whole("max_levels", given["max_levels"], 2, MAX_LEVELS),
        max_memory=parse_memory(given["max_memory"]),
        delimiter=_delimiter(given["delimiter"]),
        header=bool(given["header"]),
        encoding=_encoding(given["encoding"]),
        exclude=_names(given["exclude"], "exclude") or (),
        roles=roles,
        ordered=orders,
        join=_join(given["join"]),
        shapes=_shapes(levels, given["bins"] or ()) if isinstance(levels, Domain) else {},
        missing_levels=_with_missing(levels) if missing == "error" else frozenset(),
        sheet=sheet if sheet is None or isinstance(sheet, str) else _whole("sheet", sheet, 1),
        design=_design(roles, {says: given[f"{says}_column"] for says in DESIGN}),
    )


def _design(roles: Mapping[str, str], given: Mapping[str, object]) -> dict[str, str]:
    """Gather the columns that say how rows were drawn, by argument or by role."""
    design = {says: str(name) for says, name in given.items() if name is not None}
    for name, role in roles.items():
        if role in DESIGN and design.setdefault(role, name) != name:
            raise SettingError(f"Both {design[role]!r} and {name!r} are to be the {role} column; name one.")
    twice = next((name for name in design.values() if list(design.values()).count(name) > 1), None)
    if twice is not None:
        raise SettingError(f"{twice!r} cannot be two of weight, cluster and strata; name a column for each.")
    return design


def stems(name: str) -> list[str]:
    """Return what a set of columns with this one may be called: its beginnings before a mark.

    >>> stems("eye color_light blue")
    ['eye color_light', 'eye color', 'eye']
    """
    marks = [position for position, letter in enumerate(name) if letter in MARKS]
    beginnings = [name[:mark].rstrip(MARKS) for mark in reversed(marks) if name[mark:].strip(MARKS)]
    return [one for one in dict.fromkeys(beginnings) if one]


def bases_of(name: str) -> list[str]:
    """Return the columns that another may be made of, by its name: "day (year)", "tools: Excel"."""
    match = DATE_PART.fullmatch(name)
    pieces = name.split(": ")
    return [*([match[1]] if match else []), *(": ".join(pieces[:n]) for n in range(1, len(pieces)))]


def _with_missing(levels: Mapping[str, Iterable[object]] | Domain | None) -> frozenset[str]:
    """Return the variables of a model that have a level for missing values."""
    if not isinstance(levels, Domain):
        return frozenset()
    return frozenset(one.name for one in levels if {*MISSING_LABELS} & {*one.levels})


def _shapes(domain: Domain, bins: Iterable[str]) -> dict[str, Shape]:
    """Read a second table as the first one was read: numbers are cut where they were, dates have parts."""
    made = {}
    asked = set(bins)
    for one in domain:
        if one.name in asked:
            continue
        groups = one.levels[: len(one.cuts) + 1]
        match = DATE_PART.fullmatch(one.name)
        if match:
            made[one.name] = Shape(match[1], groups if one.cuts else one.levels, one.cuts, match[2])
        elif one.cuts:
            made[one.name] = Shape(one.name, groups, one.cuts)
        elif ": " in one.name and set(one.levels) - {*MISSING_LABELS} == {NO, YES}:
            made[one.name] = Shape(one.name, one.levels, choice=one.name)
        elif one.kind in ("text", "category") and len(one.levels) > 1:
            # Only if the table lacks the column, and has one for each of its levels.
            made[one.name] = Shape(one.name, one.levels, columns=one.levels)
    return made


def _roles(roles: Mapping[str, str] | None) -> dict[str, str]:
    given = _mapping("roles", roles)
    for name, role in given.items():
        is_date = set(str(role).split("+")) <= {"year", "quarter", "month", "weekday", "hour"}
        if not is_date and role not in CHOICES:
            hint = nearest(str(role), CHOICES, f"choose one of {', '.join(CHOICES)}.")
            raise SettingError(f"{role!r} is no role that roles= can give to column {name!r}; {hint}")
    return given


def _join(join: Mapping[str, Iterable[object]] | None) -> dict[str, tuple[str, ...]]:
    found = {name: _names(listed, "join") or () for name, listed in _mapping("join", join).items()}
    short = next((name for name, listed in found.items() if len(listed) < 2), None)
    if short is not None:
        raise SettingError(f"join={{{short!r}: ...}} names fewer than two columns; name all of the set.")
    seen: set[str] = set()
    for listed in found.values():
        twice = next((one for one in listed if one in seen), None)
        if twice is not None:
            raise SettingError(f"join= names {twice!r} in two sets; name each column once.")
        seen.update(listed)
    return found


def _ordered(
    ordered: Mapping[str, Iterable[object]] | Iterable[object] | None,
) -> dict[str, tuple[str, ...] | None]:
    if ordered is None:
        return {}
    if isinstance(ordered, Mapping):
        return {name: tuple(listed) for name, listed in _levels(ordered).items()}
    return dict.fromkeys(_names(ordered, "ordered") or ())


def made_up_names(n_columns: int, how: Settings) -> tuple[str, ...]:
    """Name the columns of a table without names: as columns= says, if it says as many, or x0, x1, ..."""
    numbered = tuple(f"x{position}" for position in range(n_columns))
    given = how.columns or ()
    return given if len(given) == n_columns and not set(given) <= set(numbered) else numbered


def check_names(wanted: Iterable[str], names: Sequence[str], argument: str) -> None:
    """Refuse names the table does not have, with the closest one it has."""
    known = set(names)
    for name in wanted:
        if name not in known:
            hint = nearest(name, names, f"its columns are {shorten(names)}.")
            raise UnknownName(f"{argument} names {name!r}, which is not a column of the table; {hint}")


def _names(columns: Iterable[object] | None, argument: str = "columns") -> tuple[str, ...] | None:
    if columns is None:
        return None
    if isinstance(columns, str):
        raise SettingError(
            f"{argument}={columns!r} is a text; give a list of names, such as {argument}=[{columns!r}, ...]."
        )
    names = tuple(str(name) for name in columns)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingError(f"{argument}= names {twice!r} twice; name each column once.")
    return names


def _words(values: Iterable[object] | None) -> frozenset[str] | None:
    if values is None:
        return None
    listed = [values] if isinstance(values, str) else list(values)
    return frozenset(to_label(value).strip() for value in listed)


def _levels(levels: Mapping[str, Iterable[object]] | Domain | None) -> dict[str, tuple[str, ...]]:
    if isinstance(levels, Domain):
        return {variable.name: variable.levels for variable in levels}
    given = _mapping("levels", levels)
    text = next((name for name, listed in given.items() if isinstance(listed, str)), None)
    if text is not None:
        raise SettingError(f"levels={{{text!r}: {given[text]!r}}} is a text; give a list of levels.")
    return {name: tuple(dict.fromkeys(map(to_label, listed))) for name, listed in given.items()}


def _rare(rare: int | Mapping[str, int] | None) -> dict[str, int] | int | None:
    if rare is None:
        return None
    if isinstance(rare, Mapping):
        return {str(name): _whole("rare", count, 1) for name, count in rare.items()}
    return _whole("rare", rare, 1)


def _mapping(argument: str, given: Mapping[str, T] | None) -> dict[str, T]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise SettingError(
            f"{argument}={given!r} does not say for which column; give {argument}={{'column': ...}}."
        )
    return {str(name): value for name, value in given.items()}


def _one_of(argument: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise SettingError(f"{argument}={value!r} is not known; choose one of {shorten(allowed)}.")
    return value


def _whole(argument: str, value: object, least: int, most: int | None = None) -> int:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or int(value) < least or (most is not None and int(value) > most):  # type: ignore[call-overload]
        span = f"of {least:,} or more" if most is None else f"from {least:,} to {most:,}"
        raise SettingError(f"{argument}={value!r} is out of range; give a whole number {span}.")
    return int(value)  # type: ignore[call-overload, no-any-return]


def _delimiter(delimiter: str | None) -> str | None:
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise SettingError(
            f"delimiter={delimiter!r} cannot separate fields; give one character, such as ';' or '\\t'."
        )
    return delimiter


def _encoding(encoding: str | None) -> str | None:
    if encoding is None:
        return None
    try:
        found = codecs.lookup(encoding)
    except (LookupError, TypeError, ValueError):
        found = None
    # Python also has codecs from bytes to bytes, such as "zip", and from text to text, such as "rot13".
    if found is None or not getattr(found, "_is_text_encoding", True):
        raise SettingError(
            f"encoding={encoding!r} is not known as an encoding of text; try 'utf-8', 'utf-16', 'cp1252' "
            "or 'latin-1'."
        )
    return found.name
