"""Databases, sheets and labelled files on the command line."""

import sqlite3
from contextlib import closing

import duckdb
import pandas as pd
import pytest

QUERY = "select city, bought, g from orders"


@pytest.fixture
def shop(tmp_path):
    """A SQLite database of two tables, one of 400 rows."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute("create table orders (age int, city text, bought text, g text)")
        rows = [
            (20 + i % 40, "AB"[i % 2], "yn"[(i % 2 + (i % 7 == 0)) % 2], "pq"[i % 3 == 0]) for i in range(400)
        ]
        connection.executemany("insert into orders values (?, ?, ?, ?)", rows)
        connection.execute("create table other (a)")
        connection.commit()
    return tmp_path / "shop.db"


def test_a_query_is_learned_from(unless, shop, tmp_path):
    first, second = tmp_path / "a.unless", tmp_path / "b.unless"
    done = unless("learn", "--database", shop, "--sql", QUERY, "-o", first)
    assert done.exit_code == 0, done.output
    assert "bought and city are linked" in done.stdout
    assert unless("learn", shop, "--sql", QUERY, "-o", second).exit_code == 0
    assert first.read_bytes() == second.read_bytes()


def test_the_only_table_is_learned_from(unless, tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("create table t as select i % 2 as a, i % 2 as b, i % 3 as c from range(300) t(i)")
    for words in ([path], ["--database", path]):
        done = unless("learn", *words, "-o", tmp_path / "m.unless")
        assert done.exit_code == 0, done.output


def test_every_command_that_takes_a_table_takes_a_query(unless, shop, tmp_path):
    model, fitted = tmp_path / "m.unless", tmp_path / "f.unless"
    asked = ["--database", shop, "--sql", QUERY]
    unless("learn", *asked, "-o", model)
    commands = [
        ["check", *asked],
        ["fit", model, *asked, "-o", fitted],
        ["score", fitted, *asked],
        ["ask", model, "city", "bought", *asked],
        ["show", model, *asked],
        ["report", model, *asked, "-o", tmp_path / "r.html"],
        ["compare", *asked, "--by", "g"],
        ["compare", shop, "--sql", QUERY, "--by", "g"],
        ["compare", model, model, *asked],
    ]
    for command in commands:
        done = unless(*command)
        assert done.exit_code == 0, (command, done.output)


def test_an_age_of_a_database_is_cut_where_it_was(unless, shop, tmp_path):
    model, asked = tmp_path / "m.unless", ["--database", shop, "--sql", "select * from orders"]
    unless("learn", *asked, "-o", model)
    done = unless(
        "ask", model, "age", "city", "--database", shop, "--sql", "select * from orders where age < 50"
    )
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["SHOP"], "'shop.db' has 2 tables ('orders', 'other'); choose by a query"),
        (["--database", "SHOP"], "'shop.db' has 2 tables ('orders', 'other'); choose by a query"),
        (["--sql", QUERY], "--sql needs a database; name its file with --database"),
        (["SHOP", "--database", "SHOP"], "a table is given by FILE and by --database; give one of them"),
        (["--database", "nix.db"], "There is no file 'nix.db'"),
        (["--database", __file__], "is neither a SQLite nor a DuckDB database"),
        ([__file__, "--sql", QUERY], "is neither a SQLite nor a DuckDB database"),
        (["SHOP", __file__, "--sql", QUERY], "--sql asks one database, and 2 files are named"),
        (["SHOP", "--sql", "select nix from orders"], "The database refuses the query (no such column: nix)"),
        (["SHOP", "--sql", "drop table orders"], "begins with 'drop' and may change the database"),
        (["SHOP", "--sql", "orders"], "'orders' is no query; for a table of this name write"),
        ([QUERY], "is a query; say which database to ask"),
        ([], "Missing argument 'FILE...'"),
        (["SHOP", "--sql", QUERY, "--sheet", "1"], "is for spreadsheets"),
    ],
)
def test_what_does_not_fit_together_is_refused_in_one_sentence(unless, shop, tmp_path, words, sentence):
    named = [shop if word == "SHOP" else word for word in words]
    done = unless("learn", *named, "-o", tmp_path / "m.unless")
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "m.unless").exists()


def test_a_database_is_not_written_over(unless, shop):
    before = shop.read_bytes()
    done = unless("learn", "--database", shop, "--sql", QUERY, "-o", shop)
    assert "is the table itself; write to another file" in done.stderr
    assert shop.read_bytes() == before


def test_a_sheet_is_chosen(unless, tmp_path):
    with pd.ExcelWriter(tmp_path / "t.xlsx", engine="xlsxwriter") as writer:
        for name in ("first", "second"):
            pd.DataFrame({f"{name} a": [1, 2] * 20, f"{name} b": [1, 1, 2, 2] * 10}).to_excel(
                writer, sheet_name=name, index=False
            )
    assert "second a" in unless("check", tmp_path / "t.xlsx", "--sheet", "second").stdout
    assert "second a" in unless("check", tmp_path / "t.xlsx", "--sheet", "2").stdout
    done = unless("learn", tmp_path / "t.xlsx", "-o", tmp_path / "m.unless")
    assert "Read sheet 'first'; another sheet is 'second' (choose with --sheet)." in done.stderr
    done = unless("check", tmp_path / "t.xlsx", "--sheet", "third")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "'t.xlsx' has no sheet 'third'; its sheets are 'first', 'second'." in done.stderr
