"""What people and programs read is compared to the byte; `make golden` writes it anew."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from unless.cli import main

HERE = Path(__file__).parent
CASES = {
    "demo.txt": ["demo"],
    "demo.json": ["demo", "--json"],
    "datasets.txt": ["datasets"],
    "show.txt": ["show", "MODEL"],
    "show.json": ["show", "MODEL", "--json"],
    "show_context.txt": ["show", "MODEL", "--context", "Class=Crew"],
    "show_context.json": ["show", "MODEL", "--context", "Class=Crew", "--json"],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    for words in (["datasets", "titanic", "-o"], ["learn", f"{folder}/titanic.csv", "-o"]):
        name = "titanic.csv" if words[0] == "datasets" else "titanic.unless"
        assert CliRunner().invoke(main, [*words, f"{folder}/{name}"]).exit_code == 0
    return f"{folder}/titanic.unless"


@pytest.mark.parametrize("name", CASES)
def test_output_is_as_it_was(name, model):
    words = [model if word == "MODEL" else word for word in CASES[name]]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0
    if os.environ.get("UNLESS_REWRITE_GOLDEN") == "1":
        (HERE / name).write_bytes(result.stdout_bytes)
    assert result.stdout_bytes == (HERE / name).read_bytes()


def test_no_golden_file_is_forgotten():
    assert {path.name for path in HERE.iterdir() if path.suffix in (".txt", ".json")} == set(CASES)
