"""Each bad table: one sentence, exit code 2, no traceback, no file left behind."""

import pytest

# Name -> the bytes of the table, more options, a word the sentence must hold.
BAD = {
    "missing file": (None, [], "no file"),
    "empty file": (b"", [], "empty"),
    "header only": (b"a,b\n", [], "no rows"),
    "one column": (b"a\nx\ny\n", [], "one column"),
    "duplicate names": (b"a,b,a\n1,2,3\n4,5,6\n", [], "'a'"),
    "ragged rows": (b"a,b\n1,2\n1,2,3\n1\n", [], "Line 3"),
    "mixed encodings": ("a,b\né,1\n".encode() + "è,2\n".encode("latin-1"), [], "UTF-8"),
    "holes": (b"a,b\nx,\ny,1\nx,NA\n", ["--strict"], "'b'"),
    "holes, as asked": (b"a,b\nx,\ny,1\nx,NA\n", ["--missing", "error"], "--missing 'drop'"),
    "negative counts": (b"a,b,n\nx,y,3\ny,x,-1\n", ["--count-column", "n"], "-1"),
    "fractional counts": (b"a,b,n\nx,y,3\ny,x,1.5\n", ["--count-column", "n"], "1.5"),
    "counts that are no numbers": (b"a,b,n\nx,y,3\ny,x,many\n", ["--count-column", "n"], "many"),
    "unknown level": (b"a,b\nx,y\nz,y\n", ["--levels", "a=x,y"], "'z'"),
    "identifiers": (
        b"id,a,b\n" + b"".join(b"p%d,%d,%d\n" % (i, i % 2, i % 3) for i in range(50_000)),
        ["--strict"],
        "'id'",
    ),
    "too many columns": (
        b",".join(b"c%d" % i for i in range(3000)) + b"\n" + b",".join([b"1"] * 3000) + b"\n",
        ["--max-memory", "64 MB"],
        "--max-memory",
    ),
    "no such column": (b"a,b\n1,2\n", ["--columns", "a,c"], "'c'"),
    "no such count column": (b"a,b\n1,2\n", ["--count-column", "c"], "--count-column names 'c'"),
    "text to cut": (b"a,b\nx,2\ny,3\n", ["--bins", "a=3"], "'a'"),
    "not a table": (b"\x00\x01\x02\xff" * 99, [], "table.csv"),
}


@pytest.fixture(params=BAD)
def bad(request, tmp_path):
    content, options, word = BAD[request.param]
    table = tmp_path / "table.csv"
    if content is not None:
        table.write_bytes(content)
    return ["learn", table, "-o", tmp_path / "model.unless", *options], word, tmp_path


def is_one_sentence(text):
    lines = text.splitlines()
    return len(lines) == 1 and lines[0].startswith("unless: ") and lines[0].endswith((".", "?"))


def test_bad_input_is_refused_in_one_sentence(unless, bad):
    words, expected, folder = bad
    before = sorted(folder.iterdir())
    result = unless(*words)
    assert result.exit_code == 2
    assert is_one_sentence(result.stderr), result.stderr
    assert expected in result.stderr
    assert result.stdout == ""
    assert sorted(folder.iterdir()) == before


def test_bad_input_leaves_the_old_output_alone(unless, bad):
    words, _, folder = bad
    old = folder / "model.unless"
    old.write_text("old")
    assert unless(*words).exit_code == 2
    assert old.read_text() == "old"


@pytest.mark.parametrize("name", ["missing file", "ragged rows", "holes", "too many columns"])
def test_a_process_of_its_own_refuses_alike(process, tmp_path, name):
    content, options, word = BAD[name]
    if content is not None:
        (tmp_path / "table.csv").write_bytes(content)
    before = sorted(tmp_path.iterdir())
    result = process("learn", tmp_path / "table.csv", "-o", tmp_path / "model.unless", *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert is_one_sentence(result.stderr)
    assert word in result.stderr
    assert sorted(tmp_path.iterdir()) == before
