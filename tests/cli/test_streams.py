"""Tables and models by standard input, pipes and process substitution."""

import gzip
import os
import subprocess
from threading import Thread

import pytest

import unless as library
from unless.errors import FileFormatError


@pytest.fixture
def piped(program):
    def run(content, *words):
        command = [program, *map(str, words)]
        return subprocess.run(command, input=content, capture_output=True, check=False)

    return run


def through_a_fifo(path, content):
    os.mkfifo(path)
    Thread(target=path.write_bytes, args=(content,), daemon=True).start()
    return path


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_what_is_learned_from_a_pipe_has_the_bytes_of_the_file(piped, berkeley_csv, berkeley, tmp_path, name):
    content = berkeley_csv.read_bytes()
    for place, sent in enumerate((content, gzip.compress(content))):
        output = tmp_path / f"{place}.unless"
        ran = piped(sent, "learn", name, "-o", output, "-q")
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
        assert output.read_bytes() == berkeley.read_bytes()


def test_process_substitution_is_a_file(program, berkeley_csv, berkeley, tmp_path):
    line = f"{program} learn <(cat {berkeley_csv}) -o {tmp_path / 'm.unless'} -q"
    subprocess.run(["bash", "-c", line], check=True)
    assert (tmp_path / "m.unless").read_bytes() == berkeley.read_bytes()


def test_models_come_by_pipes_too(piped, unless, berkeley, berkeley_csv, tmp_path):
    model, fitted = berkeley.read_bytes(), tmp_path / "fitted.unless"
    named = unless("show", berkeley)
    assert piped(model, "show", "-").stdout.decode() == named.stdout
    assert piped(model, "fit", "-", berkeley_csv, "-o", fitted, "-q").returncode == 0
    assert piped(model, "report", "-", "-o", tmp_path / "r.html").returncode == 0
    asked = unless("query", fitted, "Admit")
    for ending in ("unless", "json", "uai", "mn"):
        other = tmp_path / f"other.{ending}"
        assert unless("convert", fitted, other).exit_code == 0
        answer = piped(other.read_bytes(), "query", "-", "v0" if ending in ("uai", "mn") else "Admit")
        assert answer.returncode == 0
        if ending in ("unless", "json"):
            assert answer.stdout.decode() == asked.stdout
    graph = tmp_path / "graph.graphml"
    assert unless("convert", fitted, graph).exit_code == 0
    assert piped(graph.read_bytes(), "convert", "-", tmp_path / "again.graphml").returncode == 0
    assert (tmp_path / "again.graphml").read_bytes() == graph.read_bytes()


def test_a_table_by_a_pipe_is_compared_with_a_model(piped, unless, fitted, berkeley_csv):
    scored = piped(berkeley_csv.read_bytes(), "score", fitted, "-")
    assert scored.stdout.decode() == unless("score", fitted, berkeley_csv).stdout != ""


def test_a_model_is_loaded_from_a_fifo(berkeley, tmp_path):
    content = berkeley.read_bytes()
    loaded = library.load(through_a_fifo(tmp_path / "one", content))
    assert loaded.structure_ == library.load(berkeley).structure_
    packed = library.load(through_a_fifo(tmp_path / "two", gzip.compress(content)))
    assert packed.structure_ == loaded.structure_


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"", "is empty"), (b"PK\3\4 and nothing more", "damaged"), (gzip.compress(bytes(2**25)), "100 times")],
)
def test_a_stream_that_is_no_model(tmp_path, content, sentence):
    with pytest.raises(FileFormatError, match=sentence):
        library.load(through_a_fifo(tmp_path / "fifo", content))


@pytest.mark.parametrize(("words", "sentence"), [
    (("learn", "-", "-", "-o", "m.unless"), "given twice"),
    (("learn", "-", "-o", "m.unless"), "standard input is empty"),
    (("show", "-"), "is empty"),
])  # fmt: skip
def test_an_empty_or_repeated_standard_input(piped, words, sentence):
    ran = piped(b"", *words)
    assert ran.returncode == 2
    assert sentence in ran.stderr.decode()
    assert ran.stderr.count(b"\n") == 1
