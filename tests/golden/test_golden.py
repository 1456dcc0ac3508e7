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
    # Weights differ between machines in their last digits, so what is rounded is compared.
    "query.txt": ["query", "FITTED", "Survived", "Sex", "--given", "Class=Crew"],
    "query_map.txt": ["query", "FITTED", "--map", "--given", "Survived=Yes"],
    "sample.txt": ["sample", "FITTED", "-n", "12", "--given", "Sex=Female"],
    "score.txt": ["score", "FITTED", "TABLE", "--pll", "--by-variable"],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    table, model, fitted = (f"{folder}/titanic{end}" for end in (".csv", ".unless", ".json"))
    for words in (
        ["datasets", "titanic", "-o", table],
        ["learn", table, "-o", model],
        ["fit", model, table, "-o", fitted],
    ):
        assert CliRunner().invoke(main, words).exit_code == 0
    return {"TABLE": table, "MODEL": model, "FITTED": fitted}


@pytest.mark.parametrize("name", CASES)
def test_output_is_as_it_was(name, files):
    result = CliRunner().invoke(main, [files.get(word, word) for word in CASES[name]])
    assert result.exit_code == 0
    if os.environ.get("UNLESS_REWRITE_GOLDEN") == "1":
        (HERE / name).write_bytes(result.stdout_bytes)
    assert result.stdout_bytes == (HERE / name).read_bytes()


def test_no_golden_file_is_forgotten():
    assert {path.name for path in HERE.iterdir() if path.suffix in (".txt", ".json")} == set(CASES)
