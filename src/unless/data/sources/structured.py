"""Files that carry their own types: Parquet and JSON, read by DuckDB."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

from collections.abc import Sequence

from unless.data.settings import Settings
from unless.data.sources.session import (
    DuckDBSession,
    Source,
    TableFile,
    aliased,
    quoted,
    table_names,
    typed_fields,
)
from unless.errors import DataError, TooLarge


def open_parquet(files: Sequence[TableFile], session: DuckDBSession, how: Settings) -> Source:
    """Open Parquet files that share their columns and types."""
    first = files[0]
    schemas = [_parquet_schema(one, session) for one in files]
    for schema, one in zip(schemas[1:], files[1:], strict=True):
        if schema != schemas[0]:
            # DuckDB would cast to the first file's types and turn 1.5 into 2 on the way.
            raise DataError(
                f"{one.title} and {first.title} have different columns or types; read them one by one."
            )
    names = table_names([name for name, _ in schemas[0]], first.title, how)
    paths = ", ".join(quoted(str(one.path)) for one in files)
    relation = aliased(f"read_parquet([{paths}], {_PARQUET})", len(names))
    fields = typed_fields(names, [kind for _, kind in schemas[0]])
    return Source(first.title, relation, names, tuple(fields), session)


# Old writers leave text unmarked; folder names are not read as columns.
_PARQUET = "binary_as_string = true, hive_partitioning = false, union_by_name = false"


def _parquet_schema(file: TableFile, session: DuckDBSession) -> list[tuple[str, str]]:
    path = quoted(str(file.path))
    try:
        described = session.rows(f"describe select * from read_parquet([{path}], {_PARQUET})")
        tree = session.rows(f"select name, coalesce(num_children, 0) from parquet_schema({path})")
    except DataError:
        raise DataError(f"{file.title} is damaged or not a Parquet file; write it again.") from None
    # DuckDB renames a second "a" (or "A") silently, so the names are taken from the file itself.
    names = _top_level(tree)
    types = [row[1] for row in described]
    if len(names) != len(types):
        names = [row[0] for row in described]
    return list(zip(names, types, strict=True))


def _top_level(tree: list[tuple[str, int]]) -> list[str]:
    names: list[str] = []
    open_children: list[int] = []
    for depth_first, (name, n_children) in enumerate(tree):
        if len(open_children) == 1:
            names.append(name)
        if depth_first:
            open_children[-1] -= 1
        if n_children:
            open_children.append(n_children)
        while len(open_children) > 1 and open_children[-1] == 0:
            open_children.pop()
    return names


# Brackets that may be open at once, those inside of texts too.
_DEEPEST = 100_000
# Keys of an object, as far as they fill blocks of a megabyte.
_MOST_KEYS = 100_000


def open_json(files: Sequence[TableFile], session: DuckDBSession, how: Settings) -> Source:
    """Open JSON lines, or an array of objects; a key that a row lacks is missing there."""
    first = files[0]
    for one in files:
        _check_depth(one)
    paths = ", ".join(quoted(str(one.path)) for one in files)
    # Depth 1 keeps every value as it is written: its type is seen later, on the few distinct ones. And an
    # object of 200 keys is a row here, which DuckDB would take for a map.
    read = (
        f"read_json([{paths}], records = true, sample_size = -1, maximum_depth = 1, union_by_name = true, "
        "map_inference_threshold = -1)"
    )
    try:
        described = session.rows(f"describe select * from {read}")
    except DataError as error:
        if "records" in str(error):
            raise DataError(
                f"{first.title} holds no rows; give JSON objects, one in a line or in an array."
            ) from None
        raise
    names = table_names([row[0] for row in described], first.title, how)
    fields = typed_fields(names, ["JSON"] * len(names))
    return Source(first.title, aliased(read, len(names)), names, tuple(fields), session)


def _check_depth(file: TableFile) -> None:
    """Refuse brackets inside one another by the million, and an object with as many keys.

    They take fifty times their size in memory, or hours.
    """
    if file.compression:
        return
    depth = n_keys = 0
    with file.path.open("rb") as stream:
        while block := stream.read(2**20):
            # Of an object that ends in this block, only what is after its end counts.
            n_keys = block.count(b'":', block.rfind(b"}") + 1) + (n_keys if b"}" not in block else 0)
            if n_keys > _MOST_KEYS:
                raise TooLarge(
                    f"{file.title} has an object of more than {_MOST_KEYS:,} keys; make a table with fewer "
                    "columns."
                )
            depth += sum(map(block.count, (b"[", b"{"))) - sum(map(block.count, (b"]", b"}")))
            if depth > _DEEPEST:
                raise DataError(
                    f"{file.title} has more than {_DEEPEST:,} brackets open inside one another; give JSON "
                    "objects, one in a line or in an array."
                )
