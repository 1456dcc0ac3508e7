"""Tables in databases: a query is run on the user's connection, and its rows are copied to a spool.

A table is looked at more than once (profile, survey, collapse), and an answer can be fetched only once. So
the rows go, batch by batch, into a database file in the temporary folder, the spool, and are read from there.
What a driver gives as Arrow batches stays Arrow; rows of Python objects are written in columns whose types
are found out on the way. No package of a database is imported but DuckDB and sqlite3: others are known by
what they offer.
"""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; a user's query is run as it is)

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unless.data.columns.levels import MISSING_WORDS
from unless.data.domain import is_number, shorten
from unless.data.settings import Settings
from unless.data.showing import to_label
from unless.data.sources.frames import ArrowStream
from unless.data.sources.session import (
    DuckDBSession,
    Field,
    Source,
    TableFile,
    aliased,
    connect_to_file,
    form_of,
    table_names,
    typed_fields,
)
from unless.errors import DataError, SettingError, UnlessError
from unless.runtime.interrupts import interruptible

# About how many values are in memory at once between a database and the spool.
_BATCH = 200_000
# The least and the most rows of a batch.
_LEAST, _MOST = 2_000, 100_000
# Seconds a query is given to end after Ctrl-C.
_GRACE = 0.5
_SPOOLED = "spool.given"
# What messages call a query, and what to do about one that fails.
_QUERY = "The query", "correct the query"
_EXAMPLE = 'unless.read("select ...", connection=...)'


@dataclass(frozen=True)
class Query:
    """A query and the connection, or the file of a database, that it is run on."""

    text: Any
    connection: Any


def with_connection(source: object, connection: object) -> Query:
    """Join a query with its connection, checking both."""
    if isinstance(connection, str) and "://" in connection:
        # Not repeated: an address may hold a password.
        raise SettingError(
            "connection= is the address of a database; give a connection, such as "
            "sqlalchemy.create_engine(address)."
        )
    if not _is_connection(connection) and not isinstance(connection, str | os.PathLike):
        raise SettingError(
            f"connection= is an object of type {type(connection).__name__}, on which no query can be asked; "
            "give a connection of DuckDB, sqlite3, ADBC or SQLAlchemy, or the path of a database file."
        )
    is_statement = _is_sqlalchemy(source) and _is_sqlalchemy(connection)
    if not isinstance(source, str) and not is_statement:
        raise SettingError(
            f"With connection=, the table is a query in a text, and this is an object of type "
            f"{type(source).__name__}; write {_EXAMPLE}, or leave connection= out."
        )
    if isinstance(source, str) and not source.strip():
        raise SettingError(f"The query is empty; write {_EXAMPLE}.")
    if isinstance(source, str) and re.fullmatch(r'\s*"?[\w.]+"?\s*', source):
        raise SettingError(
            f"{source!r} is no query; for a table of this name write 'select * from {source.strip()}'."
        )
    return Query(source, connection)


def refuse_connection(source: object) -> None:
    """Say that a connection is no table."""
    if not isinstance(source, type) and _is_connection(source):
        raise DataError(
            f"An object of type {type(source).__name__} is a connection and no table; say what to ask it, in "
            f"{_EXAMPLE}."
        )


def is_relation(source: object) -> bool:
    """Tell whether this is a relation of DuckDB."""
    return _root(source) in ("duckdb", "_duckdb") and hasattr(source, "types") and hasattr(source, "columns")


def _root(thing: object) -> str:
    return type(thing).__module__.partition(".")[0]


def _is_connection(thing: object) -> bool:
    if isinstance(thing, ModuleType):
        # DuckDB's module is its default connection.
        return thing.__name__ == "duckdb"
    return callable(getattr(thing, "cursor", None)) or (
        _is_sqlalchemy(thing) and (hasattr(thing, "connect") or hasattr(thing, "execute"))
    )


def _is_sqlalchemy(thing: object) -> bool:
    # A class of the user may be derived from one of SQLAlchemy, as sessions are.
    return any(one.__module__.partition(".")[0] == "sqlalchemy" for one in type(thing).__mro__)


def open_query(query: Query, session: DuckDBSession, how: Settings) -> Source:
    """Ask a query and keep its rows in the spool."""
    session.title, session.advice = _QUERY
    connection = query.connection
    session.stage("asking the database")
    if _is_sqlalchemy(connection):
        return _open_sqlalchemy(query.text, connection, session, how)
    name = connection.__name__ if isinstance(connection, ModuleType) else _root(connection)
    if name in ("duckdb", "_duckdb"):
        return _open_duckdb(query.text, connection, session, how)
    return _open_dbapi(query.text, connection, session, how)


# --- files -----------------------------------------------------------------------------------------------


def database_kind(path: Path) -> Literal["sqlite", "duckdb", ""]:
    """Return which database a file is of, by its first bytes."""
    with path.open("rb") as stream:
        start = stream.read(16)
    if start == b"SQLite format 3\0":
        return "sqlite"
    return "duckdb" if start[8:12] == b"DUCK" else ""


def open_database(file: TableFile, session: DuckDBSession, how: Settings, text: str | None = None) -> Source:
    """Open the file of a database to read only, and ask it the query, or take the only table it has."""
    session.stage("asking the database")
    kind = database_kind(file.path)
    if kind == "":
        raise DataError(f"{file.title} is neither a SQLite nor a DuckDB database; check that it is whole.")
    with closing(_connect(file, kind, session)) as connection:
        if text is None:
            session.title = file.title
            text = _only_table(file, _tables(connection, kind, file.title))
        else:
            session.title, session.advice = _QUERY
        return (_open_dbapi if kind == "sqlite" else _open_duckdb)(text, connection, session, how)


def _connect(file: TableFile, kind: str, session: DuckDBSession) -> Any:
    if kind == "sqlite":
        import sqlite3

        connection = sqlite3.connect(f"{file.path.as_uri()}?mode=ro", uri=True)
        # A file may come from anybody: its own functions and views are not trusted.
        connection.execute("pragma trusted_schema = off")
        return connection
    import duckdb

    try:
        return connect_to_file(file.path, session)
    except duckdb.Error as error:
        raise DataError(
            f"{file.title} cannot be opened ({first_line(error)}); close the program that holds it, or give "
            "its own connection with connection=."
        ) from None


def _tables(connection: Any, kind: str, title: str) -> list[tuple[str, ...]]:
    """List the tables of a file, or its views where it has no tables, with the schemas they are in."""
    if kind == "sqlite":
        listed = "select name from sqlite_master where type = '{}' and substr(name, 1, 7) <> 'sqlite_'"
        asked = [listed.format(one) for one in ("table", "view")]
    else:
        asked = [
            "select schema_name, table_name from duckdb_tables() where not internal and not temporary",
            "select schema_name, view_name from duckdb_views() where not internal and not temporary",
        ]
    for query in asked:
        with _refusing(title):
            rows = connection.execute(query).fetchall()
        if rows:
            return sorted(row if row[0] != "main" else row[1:] for row in rows)
    return []


def _only_table(file: TableFile, tables: Sequence[tuple[str, ...]]) -> str:
    if not tables:
        raise DataError(f"{file.title} has no tables; name another file.")
    if len(tables) > 1:
        names = [".".join(one) for one in tables]
        raise DataError(
            f"{file.title} has {len(tables):,} tables ({shorten(names)}); choose by a query, such as 'select "
            f"* from {names[0]}', with connection={file.title} in Python or --sql on the command line."
        )
    (table,) = tables
    return "select * from " + ".".join('"' + part.replace('"', '""') + '"' for part in table)


# --- connections -----------------------------------------------------------------------------------------


@contextmanager
def _refusing(title: str = "") -> Iterator[None]:
    """Say in one sentence what a database says in many ways."""
    try:
        yield
    except (UnlessError, MemoryError):
        raise
    except Exception as error:
        what = f"{title} cannot be read" if title else "The database refuses the query"
        way = "check that it is whole" if title else "correct it and ask again"
        raise DataError(f"{what} ({first_line(error)}); {way}.") from None


def first_line(error: BaseException) -> str:
    """Return the first line of what a database says, without the classes of its errors."""
    line = next((one.strip() for one in str(error).splitlines() if one.strip()), type(error).__name__)
    line = re.sub(r"^\([\w.]+\)\s+|^[\w.]+(?:Error|Exception):\s+", "", line)
    return re.sub(r"^[\w ]+ Error: ", "", line).strip(" .:")[:200]


def _no_rows() -> DataError:
    return DataError("The statement gives no rows; give a query, such as select ... from ....")


# What a statement that reads rows begins with, and what changes them inside one that begins with WITH.
_READS = (
    "select", "with", "values", "table", "from", "show", "describe", "desc", "explain", "pragma", "call",
    "exec", "execute",
)  # fmt: skip
_CHANGES = re.compile(
    r"\b(insert\s+into|replace\s+into|update\s+\S+\s+set|delete\s+from|merge\s+into)\b", re.IGNORECASE
)
_QUOTED_OR_COMMENT = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)


def _check_reads(text: str) -> None:
    """Refuse a statement that changes a database, before it is run."""
    bare = _QUOTED_OR_COMMENT.sub(" ", text)
    first = re.match(r"[\s(]*(\w*)", bare)
    word = first[1] if first else ""
    if word.lower() not in _READS or (word.lower() == "with" and _CHANGES.search(bare)):
        raise DataError(
            f"The statement begins with {word!r} and may change the database; give a query, such as "
            "select ... from ...."
        )


def _open_duckdb(text: str, connection: Any, session: DuckDBSession, how: Settings) -> Source:
    with _refusing():
        statements = connection.extract_statements(text)
    # Looked at before anything is run: a statement that changes the database is refused.
    if len(statements) > 1:
        raise DataError(f"There are {len(statements):,} statements, and one is read; give a single query.")
    if not statements or [one.name for one in statements[-1].expected_result_type] != ["QUERY_RESULT"]:
        raise _no_rows()
    return open_relation(_ask_duckdb(connection, text), session, how, interrupt=connection.interrupt)


def _ask_duckdb(_connection: Any, _text: str) -> Any:
    # DuckDB looks for tables that it does not know among the variables here, so there are nearly none.
    with _refusing():
        return _interruptible(lambda: _connection.sql(_text), _connection.interrupt)


def _interruptible(work: Callable[[], Any], interrupt: Callable[[], object] | None) -> Any:
    """Let DuckDB work beside the main thread, which receives Ctrl-C."""
    return interruptible(work, stop=interrupt or (lambda: None), grace=_GRACE, daemon=interrupt is None)


def open_relation(
    relation: Any, session: DuckDBSession, how: Settings, interrupt: Callable[[], object] | None = None
) -> Source:
    """Keep the rows of a DuckDB relation in the spool, with the levels of its enums."""
    if interrupt is None:
        session.title, session.advice = "The relation", "correct its query"
        session.stage("asking the database")
    with _refusing():
        types = list(relation.types)
    # Before anything is run: a connection is not used again while rows are left to fetch.
    names = _names(relation.columns, how)
    with _refusing():
        # Its own batches have 100,000 rows and more, however many columns there are.
        stream = relation
        if find_spec("pyarrow") is not None:
            reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
            # A query that sorts or groups is at work before the first rows come.
            stream = _interruptible(lambda: reader(_batch_size(len(types))), interrupt)
    casts = {position: str(one) for position, one in enumerate(types) if one.id in ("hugeint", "uhugeint")}
    levels = {
        position: tuple(dict(one.children)["values"])
        for position, one in enumerate(types)
        if one.id == "enum"
    }
    with _closing(None if stream is relation else stream):
        return _spool_stream(stream, names, session, how, casts, levels, interrupt)


@contextmanager
def _closing(stream: Any) -> Iterator[None]:
    """Close a stream of rows; after Ctrl-C the database may still be fetching from it."""
    try:
        yield
    except Exception:
        with suppress(Exception):
            stream.close()
        raise
    with suppress(Exception):
        stream.close()


def _open_dbapi(text: str, connection: Any, session: DuckDBSession, how: Settings) -> Source:
    _check_reads(text)
    with _refusing():
        cursor = _cursor(connection)
    try:
        with _refusing():
            cursor.execute(text)
        if hasattr(cursor, "fetch_record_batch"):
            return _open_adbc(cursor, session, how)
        if not cursor.description:
            raise _no_rows()
        names = [one[0] for one in cursor.description]
        return _spool_rows(names, cursor.fetchmany, session, how, is_untyped=_is_sqlite(connection))
    finally:
        with suppress(Exception):
            cursor.close()


def _is_sqlite(connection: Any) -> bool:
    return any(one.__module__ == "sqlite3" for one in type(connection).__mro__)


def _cursor(connection: Any) -> Any:
    if _root(connection) == "psycopg" and not connection.autocommit:
        # A cursor with a name stays on the server: psycopg would fetch the whole answer otherwise.
        return connection.cursor(name="unless")
    return connection.cursor()


def _open_adbc(cursor: Any, session: DuckDBSession, how: Settings) -> Source:
    with _refusing():
        is_arrow = find_spec("pyarrow") is not None or not hasattr(cursor, "fetch_arrow")
        stream = cursor.fetch_record_batch() if is_arrow else cursor.fetch_arrow()
    schema = getattr(stream, "schema", None)
    if schema is None:
        names = _names([one[0] for one in cursor.description or ()], how)
        return _spool_stream(stream, names, session, how)
    if not len(schema):
        raise _no_rows()
    # PostgreSQL's numbers of any length come as text.
    is_numeric = [getattr(one.type, "type_name", None) == "numeric" for one in schema]
    casts = {position: "DOUBLE" for position, cast in enumerate(is_numeric) if cast}
    with _closing(stream):
        return _spool_stream(stream, _names(schema.names, how), session, how, casts)


def _open_sqlalchemy(text: Any, connection: Any, session: DuckDBSession, how: Settings) -> Source:
    if "asyncio" in type(connection).__module__:
        raise SettingError(
            "connection= is asynchronous, and reading waits for its rows; give an engine of "
            "sqlalchemy.create_engine(...)."
        )
    if isinstance(text, str):
        _check_reads(text)
    with _refusing():
        if hasattr(connection, "get_bind"):
            # A session of SQLAlchemy.
            opened, owned = connection.connection(), False
        elif hasattr(connection, "exec_driver_sql"):
            opened, owned = connection, False
        else:
            opened, owned = connection.connect(), True
    try:
        with _refusing():
            result = _ask_sqlalchemy(opened, text)
        try:
            if not result.returns_rows:
                raise _no_rows()
            is_untyped = opened.dialect.name == "sqlite"
            return _spool_rows(list(result.keys()), result.fetchmany, session, how, is_untyped=is_untyped)
        finally:
            result.close()
    finally:
        if owned:
            opened.close()


def _ask_sqlalchemy(connection: Any, text: Any) -> Any:
    driver = getattr(connection.connection, "driver_connection", None)
    options = connection.get_execution_options()
    is_automatic = (
        options.get("isolation_level") == "AUTOCOMMIT" or getattr(driver, "autocommit", None) is True
    )
    # Rows stay on the server until they are fetched, which needs a transaction.
    options = {} if is_automatic else {"stream_results": True}
    if isinstance(text, str):
        return connection.exec_driver_sql(text, execution_options=options)
    return connection.execute(text, execution_options=options)


# --- the spool -------------------------------------------------------------------------------------------


def _spool_stream(
    stream: Any,
    names: tuple[str, ...],
    session: DuckDBSession,
    how: Settings,
    casts: Mapping[int, str] | None = None,
    levels: Mapping[int, tuple[str, ...]] | None = None,
    interrupt: Callable[[], object] | None = None,
) -> Source:
    """Copy Arrow batches to the spool; `casts` and `levels` say more of some columns than Arrow does."""
    session.attach_spool()
    session.register("stream", ArrowStream(stream))
    types = [row[1] for row in session.rows("describe stream")]
    # Whole numbers beyond 64 bits come as decimals.
    made = [re.sub(r"^DECIMAL\(\d+,0\)$", "HUGEINT", one) for one in types]
    for position, cast in (casts or {}).items():
        made[position] = cast
    wanted = [position for position, name in enumerate(names) if how.wants(name)]
    selected = ", ".join(
        f"c{one}" if made[one] == types[one] else f"try_cast(c{one} as {made[one]}) as c{one}"
        for one in wanted
    )
    with session.interrupting(interrupt):
        rows = f"select {selected or '1 as none'} from {aliased('stream', len(names))}"
        session.run(f"create table {_SPOOLED} as {rows}")
    fields = typed_fields(names, made)
    for position, declared in (levels or {}).items():
        fields[position] = Field(names[position], f"c{position}", "text", "category", levels=declared)
    session.lock()
    return Source(session.title, _SPOOLED, names, tuple(fields[position] for position in wanted), session)


def _batch_size(n_columns: int) -> int:
    return min(max(_BATCH // max(n_columns, 1), _LEAST), _MOST)


def _names(columns: Sequence[object], how: Settings) -> tuple[str, ...]:
    return table_names(columns, "the query", how, "name one of them otherwise with AS")


def _spool_rows(
    columns: Sequence[object],
    fetch: Callable[[int], Sequence[Sequence[Any]]],
    session: DuckDBSession,
    how: Settings,
    *,
    is_untyped: bool = False,
) -> Source:
    """Copy rows of Python objects to the spool, batch by batch, in the thread that asked for them.

    In a database that `is_untyped`, numbers may be written as text, as they are after an import of CSV.
    """
    names = _names(columns, how)
    spooled = [
        _SpooledColumn(name, position, is_untyped) for position, name in enumerate(names) if how.wants(name)
    ]
    session.attach_spool()
    # Of a transaction that is never ended, nothing is left.
    session.run("begin")
    first = ", ".join(f"{one.column} VARCHAR" for one in spooled) or "none INTEGER"
    session.run(f"create table {_SPOOLED} ({first})")
    size = _batch_size(len(names))
    while True:
        with _refusing():
            rows = fetch(size)
        if not rows:
            break
        _insert(rows, spooled, session)
        session.bar.share(-1.0)
    session.run("commit")
    session.lock()
    return Source(session.title, _SPOOLED, names, tuple(one.field() for one in spooled), session)


def _insert(
    rows: Sequence[Sequence[Any]], spooled: "Sequence[_SpooledColumn]", session: DuckDBSession
) -> None:
    values = list(zip(*rows, strict=True))
    batch: dict[str, npt.NDArray[Any]] = {}
    for one in spooled:
        before = one.type
        batch[one.column] = one.take(values[one.position])
        if one.type != before:
            session.run(
                f"alter table {_SPOOLED} alter {one.column} type {one.type} using ({one.as_before(before)})"
            )
    if not batch:
        batch["none"] = np.zeros(len(rows), dtype=np.int64)
    session.register("batch", batch)
    casts = ", ".join(f"cast({one.column} as {one.type})" for one in spooled) or "none"
    session.run(f"insert into {_SPOOLED} select {casts} from batch")


_TYPES = {
    "": "VARCHAR",
    "boolean": "BOOLEAN",
    "integer": "BIGINT",
    "huge": "HUGEINT",
    "float": "DOUBLE",
    "date": "DATE",
    "moment": "TIMESTAMP",
    "zoned": "TIMESTAMPTZ",
}
_NUMBERS = ("integer", "huge", "float")
_NO_VALUE = MISSING_WORDS | {""}


class _SpooledColumn:
    """A column of the spool: the kind of all values so far, and of text whether numbers came too."""

    def __init__(self, name: str, position: int, is_untyped: bool) -> None:
        self.name, self.position, self.column = name, position, f"c{position}"
        self.kind = ""
        self.is_mixed = False
        # Whether all text so far is numbers and words for missing values.
        self.may_be_numbers = is_untyped

    @property
    def type(self) -> str:
        """The type of the column in the spool."""
        return _TYPES.get(self.kind, "VARCHAR")

    def take(self, values: Sequence[Any]) -> npt.NDArray[Any]:
        """Return some values as an array that can be cast to the type of the column, widened if need be."""
        kinds = {_kind_of(one) for one in {type(value) for value in values}} - {""}
        # Decimals first: they may turn out to be integers.
        for kind, refine in (
            ("decimal", _kind_of_decimals),
            ("moment", _kind_of_moments),
            ("integer", _kind_of_integers),
        ):
            if kind in kinds:
                kinds = kinds - {kind} | {refine(values)}
        self._widen(kinds)
        if self.may_be_numbers and "text" in kinds:
            texts = {value for value in values if isinstance(value, str)}
            self.may_be_numbers = all(is_number(one) or one.strip() in _NO_VALUE for one in texts)
        if self.kind == "integer" and None not in values:
            return np.array([int(value) for value in values], dtype=np.int64)
        if self.kind == "float":
            # A value that is not a number is missing, as elsewhere.
            return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
        return np.array([None if value is None else _written(value) for value in values], dtype=object)

    def _widen(self, kinds: set[str]) -> None:
        known = kinds | {self.kind} - {""}
        if len(known) < 2:
            self.kind = next(iter(known), "")
        elif known <= {*_NUMBERS}:
            self.kind = "float" if "float" in known else "huge"
        elif "nested" in known:
            self.kind = "nested"
        else:
            self.is_mixed = self.is_mixed or bool(known & {*_NUMBERS})
            self.kind = "text"

    def as_before(self, before: str) -> str:
        """Write the values there are in the new type, numbers as they would be labelled."""
        if self.type != "VARCHAR":
            return f"{self.column}::{self.type}"
        if before == "DOUBLE":
            whole = f"{self.column} = trunc({self.column}) and abs({self.column}) < 1e18"
            text = f"nullif({self.column}::VARCHAR, 'nan')"
            return f"case when {whole} then {self.column}::BIGINT::VARCHAR else {text} end"
        if before == "BOOLEAN":
            return f"case when {self.column} then 'True' when not {self.column} then 'False' end"
        return f"{self.column}::VARCHAR"

    def field(self) -> Field:
        """Return the field of this column, which now has all its values."""
        if self.kind in ("bytes", "nested"):
            return Field(self.name, self.column, "unusable")
        if self.is_mixed or (self.kind == "text" and self.may_be_numbers):
            # As in files without types, where NA among numbers stands for a missing one.
            return Field(self.name, self.column, "words")
        return Field(self.name, self.column, *form_of(self.type))


def _kind_of(kind: type) -> str:
    # A boolean is an integer, and a moment a date, so the order matters.
    known: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (type(None), ""),
        (str, "text"),
        ((bool, np.bool_), "boolean"),
        ((int, np.integer), "integer"),
        ((float, np.floating), "float"),
        (Decimal, "decimal"),
        (datetime, "moment"),
        (date, "date"),
        ((bytes, bytearray, memoryview), "bytes"),
        ((list, tuple, dict, set, np.ndarray), "nested"),
    )
    return next((name for one, name in known if issubclass(kind, one)), "text")


def _kind_of_decimals(values: Sequence[Any]) -> str:
    whole = (
        not isinstance(one, Decimal) or (one.is_finite() and one == one.to_integral_value()) for one in values
    )
    return "integer" if all(whole) else "float"


def _kind_of_moments(values: Sequence[Any]) -> str:
    zones = {one.tzinfo is not None for one in values if isinstance(one, datetime)}
    return "text" if len(zones) > 1 else ("zoned" if zones == {True} else "moment")


def _kind_of_integers(values: Sequence[Any]) -> str:
    largest = max(abs(int(one)) for one in values if isinstance(one, int | np.integer | Decimal))
    if largest < 2**63:
        return "integer"
    return "huge" if largest < 2**127 else "text"


def _written(value: Any) -> str:
    if isinstance(value, datetime):
        return str(value) if value.tzinfo is not None else to_label(value)
    if isinstance(value, memoryview | bytearray):
        value = bytes(value)
    return to_label(value)
