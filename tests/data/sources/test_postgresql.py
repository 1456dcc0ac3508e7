"""A PostgreSQL server of the tests' own: started here on a socket in a temporary folder, and stopped."""

import getpass
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from data.tables import kinds_of, levels_of
from unless import prepare, read
from unless.errors import DataError

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
TABLE = """
    create type mood as enum ('low', 'high');
    create table answers as select
        i as id,
        (i % 3)::int as k,
        i % 2 = 0 as b,
        date '2020-01-01' + (i % 2)::int as d,
        (case when i % 2 = 0 then 'low' else 'high' end)::mood as m,
        (i % 4 * 0.5)::numeric(6, 2) as x,
        '{"a": 1}'::jsonb as j,
        case when i % 5 <> 0 then 'text' end as holes
    from generate_series(1, 3000) t(i);
"""


def program(name):
    places = [shutil.which(name), *sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))]
    return next((str(place) for place in places if place), None)


def account():
    """PostgreSQL does not run as root: take the account of the server, or that of nobody."""
    if os.geteuid() != 0:
        return getpass.getuser()
    known = {one.pw_name for one in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


@pytest.fixture(scope="module")
def server():
    initdb, postgres, user = program("initdb"), program("postgres"), account()
    if initdb is None or postgres is None or user is None:
        pytest.skip("no PostgreSQL server is installed")
    # The path of a socket has at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="postgresql-", dir="/tmp"))
    as_user = (
        {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    )
    process = None
    try:
        if as_user:
            shutil.chown(folder, user)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        made = subprocess.run(
            [initdb, "-D", folder / "data", "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
            check=False,
            **quiet,
            **as_user,
        )
        if made.returncode:
            pytest.skip("initdb does not run here")
        process = subprocess.Popen(
            [
                postgres,
                "-D",
                folder / "data",
                "-k",
                folder,
                "-c",
                "listen_addresses=",
                "-c",
                "fsync=off",
                "-c",
                "temp_file_limit=64MB",
            ],
            **quiet,
            **as_user,
        )
        address = f"host={folder} user=tester dbname=postgres"
        for _ in range(300):
            try:
                with psycopg.connect(address) as connection:
                    connection.execute(TABLE)
                break
            except psycopg.OperationalError:
                if process.poll() is not None:
                    pytest.skip("the PostgreSQL server does not start here")
                time.sleep(0.1)
        else:
            pytest.skip("the PostgreSQL server does not answer")
        yield folder
    finally:
        if process is not None:
            process.send_signal(signal.SIGINT)
            process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["psycopg", "psycopg, automatic", "sqlalchemy", "sqlalchemy, automatic", "adbc"])
def connection(request, server):
    """One connection to the same tables for each driver."""
    kind, _, automatic = request.param.partition(", ")
    if kind == "psycopg":
        with psycopg.connect(
            f"host={server} user=tester dbname=postgres", autocommit=bool(automatic)
        ) as made:
            yield made
    elif kind == "sqlalchemy":
        alchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
        more = {"isolation_level": "AUTOCOMMIT"} if automatic else {}
        engine = alchemy.create_engine(f"postgresql+psycopg://tester@/postgres?host={server}", **more)
        yield engine
        engine.dispose()
    else:
        adbc = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="ADBC is not installed")
        with adbc.connect(f"postgresql:///postgres?host={server}&user=tester") as made:
            yield made


def test_types_are_kept(connection):
    data = read(
        "select k, b, d, m, x, holes from answers", connection=connection, missing="level", strict=True
    )
    assert levels_of(data) == {
        "k": ("0", "1", "2"),
        "b": ("False", "True"),
        "d": ("2020-01-01", "2020-01-02"),
        "m": ("high", "low"),
        "x": ("0", "0.5", "1", "1.5"),
        "holes": ("text", "missing"),
    }
    assert {name: kinds_of(data)[name] for name in "kbx"} == {"k": "integer", "b": "boolean", "x": "float"}
    assert data.n_rows == 3_000


def test_every_column_of_a_table_has_a_role(connection):
    plan = prepare("select * from answers", connection=connection)
    assert plan.n_rows == 3_000
    assert not plan["id"].included
    assert [plan[name].included for name in "kbmx"] == [True] * 4


def test_sums_count_rows(connection):
    query = "select k, b, sum(id::bigint * 0 + 1) as n from answers group by k, b"
    assert read(query, connection=connection, count_column="n").n_rows == 3_000


def test_an_error_of_the_server_is_one_sentence(connection):
    with pytest.raises(
        DataError, match=r'The database refuses the query \(.*relation "nix" does not exist'
    ) as caught:
        read("select * from nix", connection=connection)
    assert "\n" not in str(caught.value)


def test_psycopg_leaves_rows_on_the_server_until_they_are_fetched(server):
    """Without a name, a cursor of psycopg has the whole answer in memory when a query has been asked."""
    with psycopg.connect(f"host={server} user=tester dbname=postgres") as made:
        named = []

        class Watched(psycopg.ServerCursor):
            def __init__(self, *words, **more):
                named.append(True)
                super().__init__(*words, **more)

        made.server_cursor_factory = Watched
        assert read("select k, b from answers", connection=made).n_rows == 3_000
        assert named == [True]
        with pytest.raises(DataError, match="division by zero"):
            read("select k, 1 / (2900 - id) as b from answers", connection=made)
        made.rollback()
        assert made.execute("select 1").fetchone() == (1,)
