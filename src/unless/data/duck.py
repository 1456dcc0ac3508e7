"""One locked-down DuckDB connection for one reading, with a temporary folder that goes with it."""

import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy.typing as npt

from unless.data.memory import show_memory
from unless.data.source import quoted
from unless.errors import DataError, TooLarge

# The rest is for what is pulled out while the database still holds it: a fifth of what `check_rows` allows.
DATABASE_SHARE = 0.8


class Workshop:
    """A fresh connection and a fresh folder; both are gone when the work is done, whatever happened."""

    def __init__(self, max_memory: int) -> None:
        self.max_memory = max_memory

    def __enter__(self) -> Self:
        import duckdb

        self._n_places = 0
        self.title = "The table"
        self._owned = tempfile.TemporaryDirectory(prefix="unless-", ignore_cleanup_errors=True)
        self.folder = Path(self._owned.name).resolve()
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect(
            ":memory:",
            config={
                # DuckDB fetches extensions from the network unless told not to.
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "temp_directory": str(self.folder / "spill"),
                "memory_limit": f"{int(DATABASE_SHARE * self.max_memory) // 2**20}MiB",
            },
        )
        # It would be drawn on standard output, which belongs to the caller.
        self.connection.execute("set enable_progress_bar = false")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()
        self._owned.cleanup()

    def place(self, suffix: str) -> Path:
        """Return a new path inside the temporary folder."""
        self._n_places += 1
        return self.folder / f"{self._n_places}{suffix}"

    def lock(self, files: Iterable[Path] = ()) -> None:
        """Allow these files and the temporary folder, nothing else, from now on."""
        allowed = ", ".join(quoted(str(path)) for path in files)
        self.connection.execute(f"set allowed_directories = [{quoted(str(self.folder))}]")
        if allowed:
            self.connection.execute(f"set allowed_paths = [{allowed}]")
        # Labels of moments must not depend on where the machine stands.
        self.connection.execute("set TimeZone = 'UTC'")
        self.connection.execute("set enable_external_access = false")
        self.connection.execute("set lock_configuration = true")

    def register(self, name: str, table: object) -> None:
        """Let the database read an object in place."""
        with self._in_one_sentence():
            self.connection.register(name, table)

    def run(self, query: str) -> None:
        """Run a query that gives no answer."""
        with self._in_one_sentence():
            self.connection.execute(query)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return all rows of a small answer."""
        with self._in_one_sentence():
            return self.connection.execute(query).fetchall()

    def arrays(self, query: str) -> dict[str, npt.NDArray[Any]]:
        """Return an answer as arrays by name."""
        with self._in_one_sentence():
            return self.connection.execute(query).fetchnumpy()

    def row(self, query: str) -> tuple[Any, ...]:
        """Return the only row of an answer."""
        return self.rows(query)[0]

    def value(self, query: str) -> Any:
        """Return the only value of an answer."""
        return self.row(query)[0]

    @contextmanager
    def _in_one_sentence(self) -> Iterator[None]:
        import duckdb

        try:
            yield
        except RuntimeError as error:
            # The database's way to say Ctrl-C.
            if "interrupted" in str(error).lower():
                raise KeyboardInterrupt from None
            raise
        except duckdb.OutOfMemoryException:
            raise self._too_large() from None
        except duckdb.NotImplementedException as error:
            raise DataError(
                f"{self.title} has a column of a type that cannot be read ({_reason(error)})."
            ) from None
        except duckdb.Error as error:
            reason = _reason(error)
            raise DataError(f"{self.title} cannot be read ({reason}); check that it is whole.") from None

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"{self.title} does not fit into the {show_memory(self.max_memory)} allowed while its rows are "
            "collapsed; choose fewer columns with columns=, merge levels with bins= or rare=, or raise "
            "max_memory=."
        )


def _reason(error: Exception) -> str:
    line = str(error).strip().partition("\n")[0]
    # "Invalid Input Error: ..." tells the class of the error and the path is known, so neither is repeated.
    head, _, tail = line.partition("Error: ")
    return re.sub(r' in file "[^"]*"', "", tail or head).strip(" .")[:200]
