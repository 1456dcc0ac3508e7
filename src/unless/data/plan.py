"""What is done with each column of a table before it is learned from: one line a column, kept as JSON."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any, Literal, get_args

from unless.data.columns.numbers import format_cuts
from unless.data.columns.texts import KNOWN_ORDERS, LEAST_ORDERED, NONE, SEPARATORS, name_of_choice
from unless.data.domain import Domain, shorten, sort_labels
from unless.data.settings import DESIGN, NO, YES, Settings, Shape
from unless.data.showing import html_table, visible
from unless.data.sources.session import Source
from unless.errors import DataError, FileFormatError
from unless.runtime.files import replacing

FORMAT, VERSION = "unless-plan", 1
# A plan of ten thousand columns of a hundred levels each has less.
_MOST_BYTES = 2**26

Role = Literal[
    "category",
    "ordered",
    "number",
    "date",
    "choices",
    "joined",
    "count",
    "weight",
    "cluster",
    "strata",
    "identifier",
    "text",
    "constant",
    "copy",
    "function",
    "empty",
    "nested",
    "excluded",
]
ROLES: tuple[str, ...] = get_args(Role)
AS_ASKED = "as asked"
# Reasons for columns that every reading leaves out, and tells.
ROW_NUMBERS, BLANK = "row numbers of pandas", "neither a name nor a value"
Part = Literal["year", "quarter", "month", "weekday", "hour"]
PARTS: tuple[str, ...] = get_args(Part)


@dataclass(frozen=True, kw_only=True)
class DatePart:
    """A column made of the dates of another: the years, months or days of the week that were seen.

    `ordered` says that the levels follow each other in time; months of several years do not.
    """

    part: Part
    levels: tuple[str, ...]
    cuts: tuple[float, ...] = ()
    ordered: bool = False

    def name_of(self, column: str) -> str:
        """Name the column that is made."""
        return f"{column} ({self.part})"

    def _repr_html_(self) -> str:
        return html_table(f"Part of a date: {self.part}", ("level",), [(level,) for level in self.levels])


@dataclass(frozen=True, kw_only=True)
class PlanLine:
    """What is done with one column, and why.

    Parameters
    ----------
    name, role
        The column, and what it was taken for.
    included
        Whether it is learned from.
    why
        The reason, where there is one to tell.
    levels
        The levels in their order; of numbers that are cut, the names of the groups.
    cuts
        Where numbers are cut: one belongs to the group after the last cut that is not above it.
    rare
        Levels seen in fewer rows than this were merged into one, the last of `levels`; 0 merges none.
    parts, written
        Of dates: the columns made of them, and how a date is written if it is not year, month, day. Of
        numbers in text: how 1234.5 is written, such as "$1,234.5"; what is no such number is missing.
    source
        Of a copy or function: the column that tells it; of a column that is joined with others: their name.
    missing
        Whether missing values are a level of this column; elsewhere learners leave their rows out.
        Of choices: whether a cell without any ticks none.
    choices, separator
        Of cells that hold several answers: the answers that get a column each, and what parts them.
    columns
        The columns that are joined into this one, which the table itself lacks.
    no_answers
        Labels that are read as missing, such as "don't know" in a scale.
    """

    name: str
    role: Role
    included: bool = True
    why: str = ""
    levels: tuple[str, ...] = ()
    cuts: tuple[float, ...] = ()
    rare: int = 0
    parts: tuple[DatePart, ...] = ()
    written: str = ""
    source: str | None = None
    missing: bool = False
    choices: tuple[str, ...] = ()
    separator: str = ""
    columns: tuple[str, ...] = ()
    no_answers: tuple[str, ...] = ()

    @property
    def made(self) -> tuple[str, ...]:
        """The names of the columns that are learned from in place of this one; its own if it is none."""
        parts = tuple(one.name_of(self.name) for one in self.parts)
        return parts or tuple(name_of_choice(self.name, one) for one in self.choices) or (self.name,)

    @property
    def is_plain(self) -> bool:
        """Whether the column is read as it stands, as a category."""
        if self.role in DONE or not self.included:
            return self.role in DONE and self.why == AS_ASKED
        shaped = self.cuts or self.rare or self.parts or self.missing or self.columns or self.no_answers
        return not shaped and self.why not in KNOWN_ORDERS and self.role in ("category", "ordered", "number")

    @property
    def done(self) -> str:
        """What is done with the column, in a few words."""
        if self.role in DONE:
            return DONE[self.role]
        if self.role == "joined":
            return f"joined into {self.source}"
        if not self.included and self.source is not None:
            return f"{self.role} of {self.source}, left out"
        if not self.included:
            return "left out" if self.role == "excluded" else f"{self.role}, left out"
        if self.choices:
            listed = ", ".join(self.choices)
            done = f"multiple choice, split into {len(self.choices):,} columns of yes and no: {listed}"
            return done + (", an empty cell ticks none" if self.missing else "")
        if self.parts:
            made = ", ".join(one.part for one in self.parts)
            done = f"date, kept as {made}"
        elif self.cuts and self.role == "number":
            done = f"number, cut at {', '.join(format_cuts(self.cuts))}"
        elif self.cuts:
            done = f"{self.role}, {len(self.levels):,} levels: {', '.join(self.levels)}"
        else:
            role = "category" if self.role == "function" else self.role
            done = role + (f", {len(self.levels):,} levels" if self.levels else "")
        if self.role == "function":
            done += f", a function of {self.source}"
        if self.why in KNOWN_ORDERS:
            done += f": {', '.join(self.levels)}"
        if self.no_answers:
            done += f", {', '.join(map(repr, self.no_answers))} read as missing"
        if self.columns:
            done += f", joined from {', '.join(self.columns)}"
        if self.rare:
            done += f", those in fewer than {self.rare:,} rows merged"
        return done + (", missing is a level" if self.missing else "")

    @property
    def description(self) -> str:
        """What is done with the column, and why."""
        return f"{self.done}{f' ({self.why})' if self.why else ''}"

    def __str__(self) -> str:
        return f"{self.name}: {self.description}"

    def _repr_html_(self) -> str:
        return html_table(str(self), (), ())


# What is done with columns that speak of rows, and are no columns to relate.
DONE = {
    "count": "counts the rows",
    "weight": "weights the rows",
    "cluster": "names clusters of rows",
    "strata": "names the strata of the sample",
}


@dataclass(frozen=True)
class Plan:
    """What is done with each column of a table; made by `unless.prepare`, used by `unless.read(plan=)`.

    Parameters
    ----------
    lines
        One for each column of the table, in its order.
    notes
        What concerns several columns: rows left out, rows that may not be independent, sets of columns.
    n_rows
        How many rows the table had.
    missing
        What is done with missing values; empty where there are none.

    Examples
    --------
    >>> import unless
    >>> table = {"id": range(1, 101), "sex": ["f", "m"] * 50, "age": [*range(20, 70), *range(20, 70)]}
    >>> plan = unless.prepare(table)
    >>> print(plan["age"])
    age: number, cut at 30, 45, 60
    >>> print(plan["id"])
    id: identifier, left out (a name of identifiers and a different value in each row)
    """

    lines: tuple[PlanLine, ...]
    notes: tuple[str, ...] = ()
    n_rows: int = field(default=0, compare=False)
    missing: str = ""

    def __getitem__(self, name: str) -> PlanLine:
        for one in self.lines:
            if one.name == name:
                return one
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(one.name == name for one in self.lines)

    @property
    def is_plain(self) -> bool:
        """Whether every column is read as it stands, as a category."""
        return not self.notes and not self.missing and all(one.is_plain for one in self.lines)

    @property
    def n_columns(self) -> int:
        """How many columns the table has; those joined from others are not among them."""
        return sum(not one.columns for one in self.lines)

    @property
    def count_column(self) -> str | None:
        """The column that counts the rows."""
        return next((one.name for one in self.lines if one.role == "count"), None)

    @property
    def design(self) -> dict[str, str]:
        """The columns that say how rows were drawn, by what they say: weight, cluster, strata."""
        return {one.role: one.name for one in self.lines if one.role in DESIGN}

    def sentences(self) -> list[str]:
        """Return what was done, without the columns that are read as they stand."""
        sentences = [
            f"{one.name!r}: {one.description}."
            for one in self.lines
            if not one.is_plain and one.why not in (ROW_NUMBERS, BLANK)
        ]
        return [*sentences, *self.notes, *([self.missing] if self.missing else [])]

    def without_levels(self) -> "Plan":
        """Return the plan for a table that may show other levels of its categories."""
        return replace(
            self,
            lines=tuple(
                one
                if one.cuts or one.parts or one.columns or one.why in KNOWN_ORDERS
                else replace(one, levels=())
                for one in self.lines
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        columns = []
        for one in self.lines:
            given = {name: value for name, value in asdict(one).items() if value not in ((), "", 0, None)}
            columns.append({**_plain(given), "included": one.included, "done": one.done})
        return {
            "format": FORMAT,
            "version": VERSION,
            "n_rows": self.n_rows,
            "columns": columns,
            "notes": list(self.notes),
            "missing": self.missing,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Plan":
        """Read what `to_dict` wrote."""
        return _read(document, "The plan")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON; `unless.Plan.load` reads it back."""
        with replacing(path) as stream:
            stream.write((json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n").encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Plan":
        """Read a plan that was saved."""
        title = repr(Path(path).name)
        try:
            with Path(path).open("rb") as stream:
                text = stream.read(_MOST_BYTES + 1)
        except OSError as error:
            raise DataError(
                f"The plan {title} cannot be opened ({error.strerror}); check its name."
            ) from None
        if len(text) > _MOST_BYTES:
            raise FileFormatError(f"{title} is larger than any plan; name a file that a plan was saved in.")
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise FileFormatError(f"{title} is no plan, as it is no JSON; save one with --save.") from None
        return _read(document, title)

    def __str__(self) -> str:
        rows = [(visible(one.name), visible(one.done), one.why and visible(one.why)) for one in self.lines]
        widths = [min(40, max((len(row[i]) for row in rows), default=0)) for i in range(2)]
        lines = [
            f"{name:<{widths[0]}}  {done:<{widths[1]}}{f'  ({why})' if why else ''}".rstrip()
            for name, done, why in rows
        ]
        return "\n".join([*lines, *map(visible, [*self.notes, self.missing] if self.missing else self.notes)])

    def __repr__(self) -> str:
        kept = sum(one.included and one.role not in DONE for one in self.lines)
        return f"<Plan: {self.n_columns:,} columns, {kept:,} of them learned from>"

    def _repr_html_(self) -> str:
        rows = [(one.name, one.done, one.why) for one in self.lines]
        return html_table(
            repr(self)[1:-1],
            ("column", "what is done", "why"),
            rows,
            [*self.notes, self.missing] if self.missing else self.notes,
        )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items() if one not in ((), [])}
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value


def _read(document: object, title: str) -> Plan:
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise FileFormatError(f"{title} is no plan; its format is not {FORMAT!r}.")
    version = document.get("version")
    if version != VERSION:
        raise FileFormatError(
            f"{title} is of version {version!r}, and this Unless reads version {VERSION}; make the plan anew."
        )
    try:
        lines = tuple(_line(one) for one in _listed(document.get("columns")))
        names = [one.name for one in lines]
        _check(len(set(names)) == len(names), "a column is named twice")
        for role, done in DONE.items():
            _check(sum(one.role == role for one in lines) <= 1, f"two columns are said to be one that {done}")
        notes = _texts(document.get("notes", []))
        n_rows, missing = _whole(document.get("n_rows", 0)), _text(document.get("missing", ""))
        return Plan(lines, notes, n_rows, missing)
    except _Wrong as error:
        raise FileFormatError(f"{title} is no plan that can be followed: {error}.") from None


class _Wrong(Exception):
    pass


def _check(holds: object, otherwise: str) -> None:
    if not holds:
        raise _Wrong(otherwise)


def _listed(value: object) -> list[Any]:
    _check(isinstance(value, list), "a list is missing")
    return value  # type: ignore[return-value]


def _text(value: object) -> str:
    _check(isinstance(value, str), "a text is missing")
    return value  # type: ignore[return-value]


def _whole(value: object) -> int:
    _check(
        isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63, "a number is missing"
    )
    return value  # type: ignore[return-value]


def _flag(value: object) -> bool:
    _check(isinstance(value, bool), "true or false is missing")
    return value  # type: ignore[return-value]


def _line(wire: object) -> PlanLine:
    _check(isinstance(wire, Mapping), "a column is no object")
    given = {str(name): value for name, value in wire.items() if name != "done"}  # type: ignore[attr-defined]
    if "kept" in given:
        # So it was called in plans that were saved before.
        given["included"] = given.pop("kept")
    unknown = sorted(given.keys() - PlanLine.__dataclass_fields__.keys())
    _check(not unknown, f"a column has the unknown key {unknown[:1]}")
    name, role = _text(given.get("name")), _text(given.get("role"))
    _check(role in ROLES, f"{name!r} has the unknown role {role!r}")
    parts = tuple(_date_part(one, name) for one in _listed(given.get("parts", [])))
    levels, cuts = _levels_and_cuts(given, name)
    if given.get("source") is None:
        given.pop("source", None)
    rest = {key: read(given[key]) for key, read in _READERS.items() if key in given}
    line = PlanLine(name=name, role=role, levels=levels, cuts=cuts, parts=parts, **rest)  # type: ignore[arg-type]
    has_separator = not line.choices or line.separator in SEPARATORS
    _check(has_separator, f"the choices of {name!r} have no known separator")
    is_joined = not line.columns or len(levels) - (NONE in levels) == len(line.columns)
    _check(is_joined, f"the levels of {name!r} are not its columns")
    return line


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_text(one) for one in _listed(value))


# How the other entries of a line are read.
_READERS: dict[str, Callable[[object], Any]] = {
    "included": _flag, "why": _text, "rare": _whole, "written": _text, "source": _text, "missing": _flag,
    "choices": _texts, "separator": _text, "columns": _texts, "no_answers": _texts,
}  # fmt: skip


def _date_part(wire: object, name: str) -> DatePart:
    _check(isinstance(wire, Mapping), f"{name!r} has a part that is no object")
    part = wire.get("part")  # type: ignore[attr-defined]
    _check(part in get_args(Part), f"{name!r} has the unknown part {part!r}")
    levels, cuts = _levels_and_cuts(wire, name)  # type: ignore[arg-type]
    ordered = _flag(wire.get("ordered", False))  # type: ignore[attr-defined]
    return DatePart(part=part, levels=levels, cuts=cuts, ordered=ordered)


def _levels_and_cuts(wire: Mapping[str, Any], name: str) -> tuple[tuple[str, ...], tuple[float, ...]]:
    levels = _texts(wire.get("levels", []))
    cuts = _listed(wire.get("cuts", []))
    _check(all(isinstance(one, int | float) and not isinstance(one, bool) for one in cuts), "a cut is none")
    numbers = tuple(float(one) for one in cuts)
    rising = all(map(isfinite, numbers)) and all(a < b for a, b in pairwise(numbers))
    _check(len(set(levels)) == len(levels), f"{name!r} names a level twice")
    _check(
        rising and (not numbers or len(levels) == len(numbers) + 1),
        f"the cuts of {name!r} do not give its levels",
    )
    return levels, numbers


# How a plan is followed: it becomes settings of reading.


def follow(plan: Plan, how: Settings, *, is_new: bool) -> Settings:
    """Turn a plan into settings of reading; what was asked for beside it comes first.

    A plan that `is_new` was made of this very table: its categories need no levels, and its numbers no check.
    """
    kept = [name for one in plan.lines if one.included and one.role not in DONE for name in one.made]
    shapes: dict[str, Shape] = {}
    levels = dict(how.levels)
    ordered = dict(how.ordered)
    rare: dict[str, int] = {}
    for one in plan.lines:
        if not one.included or one.name in how.bins or one.name in how.levels:
            continue
        shapes |= _shapes_of(one, is_new)
        merged = one.name in shapes and bool(shapes[one.name].others)
        if one.rare and not merged and not how.rare_below(one.name):
            rare[one.name] = one.rare
        plain = bool(one.levels) and (merged or not one.rare)
        if plain and not one.columns and (not is_new or one.levels != sort_labels(one.levels)):
            levels[one.name] = one.levels
        ordered |= {part.name_of(one.name): None for part in one.parts if part.ordered}
        if one.role == "ordered" and not one.cuts and _is_in_order(one, is_new):
            ordered.setdefault(one.name, None)
    left_out = [one for one in plan.lines if not one.included and one.role not in DONE]
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


def _shapes_of(one: PlanLine, is_new: bool) -> dict[str, Shape]:
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
        elif plan[name].included:
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
            line = replace(line, role="number", included=True, cuts=other.cuts, levels=groups)
        elif other is not None and line.rare and other.levels[-1].strip("()") == "other":
            line = replace(line, levels=other.levels)
        elif other is not None and line.cuts:
            # There every number is a level.
            line = replace(line, role="ordered", cuts=(), levels=())
        lines.append(line)
    return replace(plan, lines=tuple(lines))


def check_plan(plan: Plan, source: Source) -> None:
    """Refuse a table that lacks columns of a plan."""
    used = [one for one in plan.lines if one.included or one.role in DONE]
    needed = [name for one in used for name in (one.columns or (one.name,))]
    gone = [name for name in needed if name not in source.names]
    if gone:
        raise DataError(
            f"The table has no column {shorten(gone, 100)}, which the plan needs; make a plan of this table."
        )
