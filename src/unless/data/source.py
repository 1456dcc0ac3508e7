"""What every kind of table is turned into before it is counted: one relation and the fields it holds."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from unless.data.domain import Kind, shorten
from unless.errors import DataError

# How the values of a field are written when they leave the database as text.
Form = Literal[
    "words",  # text of a file without types: spaces around it are layout, and some words mean "missing"
    "text",
    "integer",
    "float",
    "decimal",
    "boolean",
    "moment",
    "plain",  # any other type: its text is its label
    "json",
    "code",  # positions into `labels`, -1 where missing
    "unusable",
]


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a source: its name outside, its name inside, and how to read its values."""

    name: str
    column: str
    form: Form
    kind: Kind | None = None
    labels: tuple[str, ...] = ()
    levels: tuple[str, ...] | None = None
    levels_are_ordered: bool = True
    # Whether the table itself says that the order of the levels means something.
    is_ordered: bool = False


@dataclass(frozen=True)
class Source:
    """A relation the database can read as often as needed.

    `names` are all columns of the table; `fields` may leave out those nobody asked for. `repair` gives the
    same table from a cleaned copy, or says in one sentence what is wrong with it.
    """

    title: str
    relation: str
    names: tuple[str, ...]
    fields: tuple[Field, ...]
    nameless: bool = False
    notes: tuple[str, ...] = ()
    repair: Callable[[], "Source"] | None = None
    # How many rows of the table a row of the relation stands for, and which of them is the first.
    times: str = "1"
    place: str = "row_number() over ()"
    # Arrays and frames the database reads in place: they must live as long as the relation.
    held: tuple[object, ...] = field(default=(), repr=False)

    def field(self, name: str) -> Field:
        """Return the field of this name, which is known to be there."""
        return next(one for one in self.fields if one.name == name)


def form_of(duck_type: str) -> tuple[Form, Kind | None]:
    """Say how a type of the database is read, and which kind of variable it makes."""
    base = duck_type.partition("(")[0].strip('"').upper()
    if duck_type.endswith("]") or base in {"STRUCT", "MAP", "UNION", "VARIANT", "BLOB", "BIT", "GEOMETRY"}:
        return "unusable", None
    if base.endswith(("INT", "INTEGER")):
        return "integer", "integer"
    if base.startswith("TIMESTAMP"):
        return "moment", "text"
    known: dict[str, tuple[Form, Kind | None]] = {
        "FLOAT": ("float", "float"),
        "DOUBLE": ("float", "float"),
        "DECIMAL": ("decimal", "float"),
        "BOOLEAN": ("boolean", "boolean"),
        "VARCHAR": ("text", "text"),
        "ENUM": ("text", "text"),
        "JSON": ("json", None),
    }
    return known.get(base, ("plain", "text"))


def nested(name: str) -> DataError:
    """Say that a column holds more than one value in a cell."""
    return DataError(
        f"Column {name!r} holds lists, records or bytes; give one plain value in each cell, or leave it out "
        "with exclude=."
    )


def aliased(relation: str, n_columns: int) -> str:
    """Name the columns of a relation by position: the database folds case, so the real names may clash."""
    return f"{relation} as t({', '.join(column_names(n_columns))})"


def column_names(n_columns: int) -> list[str]:
    """Return the inner names c0, c1, ..."""
    return [f"c{position}" for position in range(n_columns)]


def quoted(text: str) -> str:
    """Write a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def outer_names(names: Iterable[object], title: str, hint: str = "rename one of them") -> tuple[str, ...]:
    """Turn the names of a table into distinct texts; a column without a name is called by its place."""
    given = [str(name).strip() for name in names]
    named = tuple(name or f"column {place}" for place, name in enumerate(given, start=1))
    if len(set(named)) == len(named):
        return named
    seen: set[str] = set()
    twice = sorted({name for name in named if name in seen or seen.add(name)})  # type: ignore[func-returns-value]
    if len(twice) == 1:
        raise DataError(f"Column name {twice[0]!r} appears more than once in {title}; {hint}.")
    raise DataError(f"Column names {shorten(twice)} appear more than once in {title}; {hint}.")
