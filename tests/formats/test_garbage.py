"""Hostile files are refused in a sentence, soon, and without filling the memory."""

import gzip
import tracemalloc

import numpy as np
import pytest

from benchmarks.mutants import SEEDS, garbage, large, mutant, read, seconds_to_refuse
from unless.errors import FileFormatError

LONG = 300_000
HOSTILE = {
    "a billion levels.mn": b"1000000000,2\nMN {\n}\n",
    "many levels in all.mn": b"65535," * 1000 + b"2\nMN {\n}\n",
    "a number of many digits.mn": b"9" * LONG,
    "a weight of many digits.mn": b"2\nMN {\n" + b"9" * LONG + b" +v0_0\n}\n",
    "an enormous exponent.mn": b"2\nMN {\n1e99999999999 +v0_0\n}\n",
    "deep parentheses.mn": b"2\nMN {\ntree {\n" + b"(" * LONG,
    "a deep tree.mn": b"2\nMN {\ntree {\n" + b"(v0_0 " * (LONG // 6),
    "a deep tree of many variables.mn": b"2," * 50_000
    + b"2\nMN {\ntree {\n"
    + b"".join(b"(v%d_0 1 " % place for place in range(50_000))
    + b"1"
    + b")" * 50_000
    + b"}}",
    "deep braces.mn": b"2\nMN " + b"{" * LONG,
    "deep blocks.mn": b"2\nMN {" + b"features {" * (LONG // 10),
    "nothing but lines.mn": b"\n" * LONG,
    "no end of variables.uai": b"MARKOV\n999999999999\n2 2 2\n",
    "no end of tables.uai": b"MARKOV\n1\n2\n999999999999\n1 0\n",
    "a table beyond the file.uai": b"MARKOV\n40\n" + b"2 " * 40 + b"\n1\n40 "
    + b" ".join(b"%d" % k for k in range(40)) + b"\n1099511627776\n1 1 1\n",
    "a scope of many single levels.uai": b"MARKOV\n100010\n" + b"1 " * 100_000 + b"2 " * 10 + b"\n1\n100010 "
    + b" ".join(b"%d" % k for k in range(100_010)) + b"\n1024\n" + b"1 " * 1023 + b"x",
    "a default for many parents.bif":
    b"".join(b"variable v%d { type discrete [2] { a, b }; }\n" % k for k in range(40))
    + b"probability ( v0 | " + b", ".join(b"v%d" % k for k in range(1, 40)) + b") { default 0.5, 0.5; }\n"
    + b"".join(b"probability ( v%d ) { table 0.5, 0.5; }\n" % k for k in range(1, 40)),
    "comments that never end.bif": b"variable x { " + b" /* " * (LONG // 4),
    "quotes that never end.bif": b'" ' * (LONG // 2) + b'"',
    "deep lists.json": b"[" * LONG,
    "deep objects.json": b'{"format":' * (LONG // 10),
    "a string that never ends.json": b'{"format": "' + b'\\"' * (LONG // 2),
    "deep elements.graphml": b"<graphml>" + b"<a>" * (LONG // 3),
    "entities that unfold.graphml": b'<!DOCTYPE g [<!ENTITY a "aaaaaaaaaa">'
    b'<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;">]>'
    b"<graphml><graph>&b;</graph></graphml>",
    "many nodes.graphml": b'<graphml><graph edgedefault="undirected">'
    + b"".join(b'<node id="%d"/>' % k for k in range(50_000))
    + b"</graph></graphml>",
    "a huge code.data": b"0,1\n999999999999,0\n",
    "many levels in every column.data": b",".join([b"60000"] * 1000) + b"\n",
    "a long row and many short ones.data":
    b"0," * (LONG // 2) + b"0\n" + b"".join(b"%d\n" % k for k in range(9999)),
    "crumbs of data.graphml":
    b'<graphml><graph edgedefault="undirected"><data key="a">' + b"<b/>x" * (LONG // 5),
    "a heavy row.data": b"1e300|0,1\n",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_at_the_cost_of_their_size(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(HOSTILE[name])
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=r"line [0-9]+: "):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 40e6 + 250 * len(HOSTILE[name])
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("ending", SEEDS)
def test_bytes_that_are_no_text_are_named_by_line(ending, tmp_path):
    lines = SEEDS[ending].split(b"\n")
    lines[0] += b"\xff"
    path = tmp_path / f"x{ending}"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(FileFormatError, match="line 1: it is not text in UTF-8"):
        read(path)


def test_a_small_file_does_not_unfold_into_a_large_one(tmp_path):
    path = tmp_path / "x.mn.gz"
    path.write_bytes(gzip.compress(b"\n" * 60_000_000, mtime=0))
    with pytest.raises(FileFormatError, match="unpacks to more than 100 times its size"):
        read_gz(path)


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"plain", gzip.compress(b"x" * 1000, mtime=0)[:-9]])
def test_a_damaged_archive_is_refused(content, tmp_path):
    path = tmp_path / "x.uai.gz"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"x\.uai\.gz'"):
        read_gz(path)


def read_gz(path):
    from unless.formats.catalogue import read_model

    return read_model(path)


@pytest.mark.parametrize("ending", SEEDS)
def test_spoiled_files_are_read_or_refused(ending, tmp_path):
    rng = np.random.default_rng(list(ending.encode()))
    assert seconds_to_refuse(SEEDS[ending], ending, tmp_path) < 5
    for _ in range(700):
        assert seconds_to_refuse(mutant(rng, SEEDS[ending]), ending, tmp_path) < 5


@pytest.mark.parametrize("ending", [ending for ending in SEEDS if ending != ".schema"])
def test_large_files_are_read_in_time_and_a_fault_in_them_is_found(ending, tmp_path):
    rng = np.random.default_rng(1)
    content = large(rng, ending, LONG)
    (tmp_path / f"x{ending}").write_bytes(content)
    assert read(tmp_path / f"x{ending}") is not None
    for _ in range(2):
        assert seconds_to_refuse(mutant(rng, content), ending, tmp_path) < 10


@pytest.mark.parametrize("ending", SEEDS)
def test_garbage_is_refused(ending, tmp_path):
    rng = np.random.default_rng(list(ending.encode()))
    for size in (0, 1, 10, *[1000] * 60, *[30_000] * 8, 200_000, 200_000):
        assert seconds_to_refuse(garbage(rng, size), ending, tmp_path) < 10
