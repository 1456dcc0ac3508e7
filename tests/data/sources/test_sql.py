"""Tables in databases: DuckDB and SQLite always, ADBC and SQLAlchemy where they are installed."""

import datetime
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from data.tables import kinds_of, levels_of
from unless import learn, prepare, read
from unless.data.sources import sql
from unless.errors import DataError, SettingError

TYPES = """
    create table t as select
        i as id,
        i % 3 as k,
        i % 2 = 0 as b,
        date '2020-01-01' + (i % 2)::int as d,
        (['mid', 'lo', 'hi'])[i % 3 + 1]::enum('lo', 'mid', 'hi') as e,
        (i % 2) * 1.5 as x,
        case when i % 4 then 'a' end as holes
    from range(60) t(i)
"""
LEVELS = {
    "k": ("0", "1", "2"),
    "b": ("False", "True"),
    "d": ("2020-01-01", "2020-01-02"),
    "e": ("lo", "mid", "hi"),
    "x": ("0", "1.5"),
}


@pytest.fixture
def duck():
    with duckdb.connect() as connection:
        connection.execute(TYPES)
        yield connection


@pytest.fixture
def lite():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("create table t (n integer, s text, x real)")
        rows = [(i % 3, "ab"[i % 2], i % 2 * 0.5) for i in range(60)]
        connection.executemany("insert into t values (?, ?, ?)", rows)
        connection.commit()
        yield connection


def lite_table(*columns, rows):
    connection = sqlite3.connect(":memory:")
    connection.execute(f"create table t ({', '.join(columns)})")
    connection.executemany(f"insert into t values ({', '.join('?' * len(columns))})", rows)
    return closing(connection)


# --- DuckDB ----------------------------------------------------------------------------------------------


def test_a_query_of_duckdb_keeps_types_and_the_order_of_enums(duck):
    data = read("select k, b, d, e, x from t", connection=duck, strict=True)
    assert levels_of(data) == LEVELS
    assert kinds_of(data) == {"k": "integer", "b": "boolean", "d": "text", "e": "category", "x": "float"}
    assert data.n_rows == 60


def test_a_relation_is_a_table(duck):
    relation = duck.sql("select k, b, d, e, x from t")
    assert read(relation) == read("select k, b, d, e, x from t", connection=duck)
    assert levels_of(read(relation, strict=True)) == LEVELS
    assert relation.fetchall() == duck.execute("select k, b, d, e, x from t").fetchall()


def test_the_same_rows_of_a_frame_and_of_a_query_are_the_same_table(duck):
    frame = pd.DataFrame({"a": ["x", "y", None, "x"], "b": [1, 2, 3, 1], "c": [True, False, True, True]})
    duck.register("frame", frame)
    assert read("select * from frame", connection=duck, missing="level") == read(frame, missing="level")


def test_prepare_and_learn_take_queries(duck):
    plan = prepare("select * from t", connection=duck)
    assert plan["id"].role == "identifier"
    est = learn("select k, e, b from t", connection=duck)
    assert est.data_.names == ("k", "e", "b")


def test_sums_of_whole_numbers_count_rows(duck):
    data = read("select k, b, sum(1) as n from t group by all", connection=duck, count_column="n")
    assert data.n_rows == 60
    assert read("select k, b, sum(1) as n from t group by all", connection=duck, strict=True).domain[
        "n"
    ].kind == ("integer")


def test_only_the_columns_asked_for_are_kept(duck):
    assert read("select * from t", connection=duck, columns=["k", "e"]).names == ("k", "e")


def test_views_temporary_tables_and_settings_stay_as_they_are(duck):
    duck.execute("create temp table mine as select * from t")
    duck.execute("set threads = 3")
    before = duck.execute("select name, value from duckdb_settings() order by name").fetchall()
    tables = duck.execute("show all tables").fetchall()
    assert read("select k, b from mine", connection=duck).n_rows == 60
    assert duck.execute("select name, value from duckdb_settings() order by name").fetchall() == before
    assert duck.execute("show all tables").fetchall() == tables


def test_the_module_is_its_default_connection():
    assert read("select i % 2 as a, i % 3 as b from range(60) t(i)", connection=duckdb).n_rows == 60


def test_an_open_transaction_is_seen_and_goes_on(duck):
    duck.execute("begin")
    duck.execute("insert into t select * from t")
    assert read("select k, b from t", connection=duck).n_rows == 120
    duck.execute("rollback")
    assert read("select k, b from t", connection=duck).n_rows == 60


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (
            "select * from nix",
            r"The database refuses the query \(Table with name nix does not exist!\); correct",
        ),
        ("selec 1", r"The database refuses the query \(syntax error at or near \"selec\"\); correct"),
        ("select k, error('too bad') as e from t", r"The database refuses the query \(too bad\); correct"),
        ("select k, k from t", "'k' appears more than once in the query; name one of them otherwise with AS"),
        ("select k from t", "one column, 'k',"),
        ("select * from t where false", "The query has columns but no rows"),
        ("drop table t", "The statement gives no rows; give a query"),
        ("insert into t select * from t", "The statement gives no rows; give a query"),
        ("-- nothing", "The statement gives no rows; give a query"),
    ],
)
def test_a_query_that_does_not_do_is_refused_in_one_sentence(duck, query, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        read(query, connection=duck)
    assert "\n" not in str(caught.value)
    # Nothing was run that changes a table.
    assert duck.execute("select count(*) from t").fetchone() == (60,)


def test_an_error_in_the_middle_of_the_rows_is_one_sentence(duck):
    late = "case when i = 900000 then error('late') else 'x' end"
    query = f"select i % 2 as a, {late} as b from range(1000000) t(i)"
    with pytest.raises(DataError, match=r"late") as caught:
        read(query, connection=duck)
    assert "\n" not in str(caught.value)


def test_without_pyarrow_rows_come_all_the_same(duck, monkeypatch):
    monkeypatch.setattr(sql, "find_spec", lambda name: None)
    assert levels_of(read("select k, b, d, e, x from t", connection=duck, strict=True)) == LEVELS


# --- SQLite ----------------------------------------------------------------------------------------------


def test_a_query_of_sqlite(lite):
    data = read("select * from t", connection=lite)
    assert levels_of(data) == {"n": ("0", "1", "2"), "s": ("a", "b"), "x": ("0", "0.5")}
    assert kinds_of(data) == {"n": "integer", "s": "text", "x": "float"}
    assert prepare("select * from t", connection=lite).n_rows == 60


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([1, "x", 2.5, 1], ("1", "2.5", "x")),
        ([1, 2, "NA", 2], ("1", "2", "missing")),
        ([1, 2, "", 2], ("1", "2", "missing")),
        ([1.0, 2.5, 1, None], ("1", "2.5", "missing")),
        ([2.0, "x", 2, None], ("2", "x", "missing")),
        ([b"raw", "x", 1, 1], ("1", "raw", "x")),
        ([2**62 + 1, 2**62 + 2, 1, 1], ("1", str(2**62 + 1), str(2**62 + 2))),
        (["01", "1", "01", None], ("01", "1", "missing")),
        (["NA", "x", "x", "x"], ("NA", "x")),
        (["NA", "2", "10", "10"], ("2", "10", "missing")),
        (["NA", "2", "", "x"], ("2", "NA", "x", "missing")),
        ([float("inf"), 1.0, 1.0, 1.0], ("1", "inf")),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 50_000])
def test_columns_of_several_types_are_read_however_rows_come(monkeypatch, values, levels, size):
    monkeypatch.setattr(sql, "_BATCH", size)
    monkeypatch.setattr(sql, "_LEAST", 1)
    rows = [(value, "ab"[place % 2]) for place, value in enumerate(values)]
    with lite_table("v", "w", rows=rows) as connection:
        data = read("select * from t", connection=connection, missing="level", strict=True)
    assert data.domain["v"].levels == levels
    assert data.n_rows == 4


def test_bytes_are_no_column():
    with (
        lite_table("v", "w", rows=[(b"x", 1), (None, 2)]) as connection,
        pytest.raises(DataError, match="Column 'v' holds lists, records or bytes"),
    ):
        read("select * from t", connection=connection, strict=True)


def test_a_connection_of_another_thread_is_not_needed():
    """sqlite3 refuses to be used by two threads: rows are fetched in the one that reads."""
    with lite_table("v", "w", rows=[(1, 2)] * 30 + [(2, 1)] * 30) as connection:
        assert read("select * from t", connection=connection).n_rows == 60


def test_no_other_statement_is_run_on_a_connection(lite):
    said = []
    lite.set_trace_callback(said.append)
    read("select n, s from t", connection=lite)
    assert said == ["select n, s from t"]


def test_rows_may_be_mappings(lite):
    lite.row_factory = sqlite3.Row
    assert read("select n, s from t", connection=lite).n_rows == 60


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (
            "select * from nix",
            r"The database refuses the query \(no such table: nix\); correct it and ask again",
        ),
        ("create table u (a)", "The statement begins with 'create' and may change the database"),
        ("select * from t where n > 7", "The query has columns but no rows"),
        ("select n from t; select s from t", "refuses the query"),
    ],
)
def test_a_query_that_sqlite_refuses(lite, query, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        read(query, connection=lite)
    assert "\n" not in str(caught.value)


# --- what Python drivers give ----------------------------------------------------------------------------


class Driver:
    """A connection of a driver that nobody knows."""

    def __init__(self, names, rows):
        self.description = [(name, *[None] * 6) for name in names]
        self.rows = list(rows)

    def cursor(self):
        return self

    def execute(self, query):
        self.query = query

    def fetchmany(self, size):
        taken, self.rows = self.rows[:size], self.rows[size:]
        return taken

    def close(self):
        pass


def test_objects_of_any_driver_have_their_types():
    rows = [
        (Decimal("2"), Decimal("1.50"), datetime.date(2020, 1, 2), True, {"a": 1}, 2**70, None),
        (Decimal("1"), Decimal("2"), datetime.date(2020, 1, 1), None, [1], 1, None),
        (None, Decimal("2"), None, False, None, 2, None),
    ]
    plan = prepare("select *", connection=Driver("abcdefg", rows))
    assert [one.name for one in plan.lines] == list("abcdefg")
    data = read(
        "select *", connection=Driver("abcdefg", rows), missing="level", columns=list("abcdf"), strict=True
    )
    assert levels_of(data) == {
        "a": ("1", "2", "missing"),
        "b": ("1.5", "2"),
        "c": ("2020-01-01", "2020-01-02", "missing"),
        "d": ("False", "True", "missing"),
        "f": ("1", "2", str(2**70)),
    }


def test_moments_have_a_zone_or_none():
    day, zone = datetime.datetime(2020, 1, 1), datetime.UTC
    rows = [
        (day, day.replace(tzinfo=zone), day),
        (day.replace(hour=5), day.replace(hour=5, tzinfo=zone), "soon"),
    ]
    data = read("select *", connection=Driver("abc", rows), strict=True)
    assert levels_of(data) == {
        "a": ("2020-01-01", "2020-01-01 05:00:00"),
        "b": ("2020-01-01 00:00:00+00:00", "2020-01-01 05:00:00+00:00"),
        "c": ("2020-01-01", "soon"),
    }


def test_an_error_of_any_driver_is_one_sentence():
    class Broken(Driver):
        def execute(self, query):
            raise RuntimeError("\nno room\nfor more\n")

    with pytest.raises(
        DataError, match=r"^The database refuses the query \(no room\); correct it and ask again.$"
    ):
        read("select *", connection=Broken("ab", []))


# --- SQLAlchemy and ADBC ---------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path, lite):
    with closing(sqlite3.connect(tmp_path / "t.db")) as other:
        lite.backup(other)
    return tmp_path / "t.db"


def test_sqlalchemy(file):
    alchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    orm = pytest.importorskip("sqlalchemy.orm")
    engine = alchemy.create_engine(f"sqlite:///{file}")
    expected = read(file)
    try:
        assert read("select * from t", connection=engine) == expected
        with engine.connect() as connection:
            assert read("select * from t", connection=connection) == expected
            assert read(alchemy.text("select * from t"), connection=connection) == expected
            table = alchemy.Table("t", alchemy.MetaData(), autoload_with=connection)
            assert read(alchemy.select(table), connection=connection) == expected
            with pytest.raises(
                DataError, match=r"The database refuses the query \(no such table: nix\); correct"
            ):
                read("select * from nix", connection=connection)
        with orm.Session(engine) as session:
            assert read("select * from t", connection=session) == expected
        with pytest.raises(DataError, match="begins with 'create' and may change the database"):
            read("create table u (a)", connection=engine)
        with pytest.raises(DataError, match="of type Engine is a connection and no table"):
            read(engine)
        automatic = engine.execution_options(isolation_level="AUTOCOMMIT")
        assert read("select * from t", connection=automatic) == expected
    finally:
        engine.dispose()


def test_adbc(file):
    adbc = pytest.importorskip("adbc_driver_sqlite.dbapi", reason="ADBC is not installed")
    with adbc.connect(str(file)) as connection:
        assert read("select * from t", connection=connection) == read(file)
        with pytest.raises(
            DataError, match=r"The database refuses the query \(.*no such table: nix.*\); correct"
        ):
            read("select * from nix", connection=connection)
        with pytest.raises(DataError, match="begins with 'create' and may change the database"):
            read("create table u (a)", connection=connection)


def test_nothing_of_them_is_imported():
    code = (
        "import sys, sqlite3, unless\n"
        "c = sqlite3.connect(':memory:')\n"
        "unless.read('select 1 as a, 2 as b', connection=c)\n"
        "print([name for name in sys.modules if name in ('sqlalchemy', 'adbc_driver_manager', 'psycopg')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# --- files -----------------------------------------------------------------------------------------------


@pytest.fixture
def ducks(tmp_path):
    with duckdb.connect(tmp_path / "t.duckdb") as connection:
        connection.execute('create table "order" as select i % 2 as a, i % 3 as b from range(60) t(i)')
    return tmp_path / "t.duckdb"


def test_the_only_table_of_a_file_is_read(file, ducks):
    assert read(file).names == ("n", "s", "x")
    assert read(ducks).names == ("a", "b")
    assert read(str(file)) == read("select * from t", connection=str(file))
    assert read('select * from "order"', connection=ducks) == read(ducks)


@pytest.mark.parametrize("name", ["x.sqlite", "x.sqlite3", "x.db3", "x.duckdb", "x", "x.table"])
def test_a_database_is_known_by_its_first_bytes(file, ducks, tmp_path, name):
    for found in (file, ducks):
        other = tmp_path / name
        other.write_bytes(found.read_bytes())
        assert read(other) == read(found)
        with other.open("rb") as stream:
            assert read(stream) == read(found)


def test_several_tables_are_named(file, ducks):
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("create table u (a)")
    with duckdb.connect(ducks) as connection:
        connection.execute("create schema s; create table s.u (a int)")
    with pytest.raises(
        DataError, match=r"'t.db' has 2 tables \('t', 'u'\); choose by a query, such as 'select \* from"
    ):
        read(file)
    with pytest.raises(DataError, match=r"'t.duckdb' has 2 tables \('order', 's.u'\); choose by a query"):
        read(ducks)
    assert read("select n, s from t", connection=file).n_rows == 60


def test_a_file_with_a_view_or_nothing(tmp_path):
    with closing(sqlite3.connect(tmp_path / "v.db")) as connection:
        connection.execute("create view v as select 1 as a, 2 as b union all select 2, 1")
    assert read(tmp_path / "v.db").n_rows == 2
    with closing(sqlite3.connect(tmp_path / "w.db")) as connection:
        connection.execute("create table t (a)")
        connection.execute("drop table t")
    with pytest.raises(DataError, match=r"'w.db' has no tables"):
        read(tmp_path / "w.db")


def test_a_file_is_opened_to_read_only(file, ducks):
    before = file.read_bytes(), ducks.read_bytes()
    with pytest.raises(DataError, match="begins with 'delete' and may change"):
        read("delete from t", connection=file)
    with pytest.raises(DataError, match="The statement gives no rows"):
        read('delete from "order"', connection=ducks)
    with pytest.raises(DataError, match="operations are disabled"):
        read("select * from read_csv('/etc/passwd')", connection=ducks)
    assert (file.read_bytes(), ducks.read_bytes()) == before
    assert sorted(one.name for one in file.parent.iterdir()) == ["t.db", "t.duckdb"]


@pytest.mark.parametrize("name", ["t.db", "t.sqlite", "t.duckdb"])
def test_what_is_no_database_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"a,b\n1,2\n")
    with pytest.raises(DataError, match=rf"'{name}' is neither a SQLite nor a DuckDB database"):
        read(tmp_path / name)
    for head in (b"SQLite format 3\0", b"\0" * 8 + b"DUCK"):
        (tmp_path / name).write_bytes(head + b"x" * 5_000)
        with pytest.raises(DataError, match=rf"'{name}' cannot be (read|opened)") as caught:
            read(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_a_query_needs_a_database_file(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"'t.csv' is neither a SQLite nor a DuckDB database"):
        read("select * from t", connection=tmp_path / "t.csv")
    with pytest.raises(DataError, match=r"There is no file '.*nix.db'"):
        read("select * from t", connection=str(tmp_path / "nix.db"))


def test_a_duckdb_file_that_is_open_here_is_read_by_its_connection(ducks):
    with duckdb.connect(ducks) as connection:
        with pytest.raises(
            DataError, match=r"'t.duckdb' cannot be opened .*; close the program that holds it, or give"
        ):
            read(ducks)
        assert read('select * from "order"', connection=connection).n_rows == 60


# --- arguments that do not fit together ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "connection", "sentence"),
    [
        (
            {"a": [1]},
            "lite",
            "With connection=, the table is a query in a text, and this is an object of type dict",
        ),
        ("", "lite", "The query is empty"),
        ("t", "lite", r"'t' is no query; for a table of this name write 'select \* from t'"),
        ("select 1", 7, "connection= is an object of type int, on which no query can be asked"),
        ("select 1", pd.DataFrame(), "connection= is an object of type DataFrame"),
        ("select 1", np.zeros(3), "connection= is an object of type ndarray"),
        ("select 1", os, "connection= is an object of type module"),
        (
            "select 1",
            "postgresql://me:secret@host/db",
            r"connection= is the address of a database; give a connection",
        ),
    ],
)
def test_a_connection_and_a_query_go_together(lite, source, connection, sentence):
    with pytest.raises(SettingError, match=sentence) as caught:
        read(source, connection=lite if isinstance(connection, str) and connection == "lite" else connection)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "query",
    [
        "select * from t",
        "  SELECT a, b\nFROM t",
        "with a as (select 1) select * from a",
        "select 1" + " + 1" * 999,
    ],
)
def test_a_query_without_a_connection_says_so(query):
    with pytest.raises(
        DataError, match=r"' ?[\w *,()+]+ \.\.\.' is a query; say which database to ask with connection="
    ):
        read(query)


def test_a_file_may_be_called_like_a_query(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("select all").write_text("a,b\n1,2\n2,1\n")
    assert read("select all").n_rows == 2


@pytest.mark.parametrize("name", ["duck", "lite"])
def test_a_connection_is_no_table(request, name):
    with pytest.raises(
        DataError, match=r"is a connection and no table; say what to ask it, in unless.read\("
    ):
        read(request.getfixturevalue(name))


STOPPED = """
import os, signal, threading, time
import duckdb, unless

# A shell's background job would ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
connection = duckdb.connect(config={"max_temp_directory_size": "10MB"})
connection.execute("set enable_progress_bar = false")
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
many = "select hash(i) as a from range(20_000_000_000) t(i)"
try:
    unless.read(f"select a % 2 as x, count(*) as n from ({many}) group by all", connection=connection)
except KeyboardInterrupt:
    print(connection.execute("select 'still there'").fetchone()[0])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no such signal")
def test_ctrl_c_stops_a_query_before_its_first_rows():
    done = subprocess.run(
        [sys.executable, "-c", STOPPED], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.stdout, done.stderr) == ("still there\n", "")


# --- ten million rows ------------------------------------------------------------------------------------

CHILD = """
import json, os, sys
import duckdb, unless

connection = duckdb.connect(sys.argv[1], config={"memory_limit": "100MB"})
connection.execute("set enable_progress_bar = false")
columns = "i % 2 as a, (i % 9)::double as b, 'level ' || (i % 5) as c"
connection.execute(f"create table t as select {columns} from range(10_000_000) t(i)")
data = unless.read("select * from t", connection=connection, max_memory="200 MB")
peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) // 1024
connection.close()
print(json.dumps({"rows": data.n_rows, "distinct": data.n_distinct, "peak": peak}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no view of its own memory")
def test_ten_million_rows_of_a_query_stay_within_their_memory(tmp_path):
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "t.duckdb")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["rows"] == 10_000_000
    assert found["distinct"] == 90
    # What was allowed here, what the user's own connection was allowed, and Python with its packages.
    assert found["peak"] < 200 + 100 + 150
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "drop table t; select 1 as a",
        "delete from t",
        "/* a note */ update t set a = 1",
        "with u as (select 1) delete from t",
        "  insert into t values (1, 2)",
    ],
)
def test_no_statement_changes_a_database(text):
    with closing(sqlite3.connect(":memory:")) as lite, duckdb.connect() as ducks:
        for connection in (lite, ducks):
            connection.execute("create table t (a integer, b integer)")
            connection.execute("insert into t values (1, 2), (1, 3), (2, 3)")
            with pytest.raises(
                DataError, match=r"may change the database|gives no rows|There are 2 statements|one statement"
            ):
                read(text, connection=connection)
            assert connection.execute("select count(*) from t").fetchone()[0] == 3


def test_words_of_changes_in_texts_are_no_changes():
    with closing(sqlite3.connect(":memory:")) as lite:
        lite.execute("create table t (a text, b integer)")
        lite.executemany("insert into t values (?, ?)", [("delete from t", 1), ("x", 2), ("x", 1)] * 9)
        data = read(
            "with u as (select * from t) select a, b from u where a <> 'delete from x'", connection=lite
        )
        assert data.n_rows == 27
