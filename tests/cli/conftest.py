"""Run `unless` inside the test, or as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner


@pytest.fixture
def unless():
    from unless.cli import main

    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="session")
def program():
    return str(Path(sys.executable).with_name("unless"))


@pytest.fixture
def process(program):
    def run(*words, **environment):
        command = [program, *map(str, words)]
        return subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **environment}, check=False
        )

    return run


@pytest.fixture(scope="session")
def berkeley_csv(tmp_path_factory):
    from unless.cli import main

    path = tmp_path_factory.mktemp("tables") / "berkeley.csv"
    assert CliRunner().invoke(main, ["datasets", "ucb_admissions", "-o", str(path)]).exit_code == 0
    return path


@pytest.fixture(scope="session")
def berkeley(berkeley_csv):
    from unless.cli import main

    path = berkeley_csv.with_name("berkeley.unless")
    assert CliRunner().invoke(main, ["learn", str(berkeley_csv), "-o", str(path)]).exit_code == 0
    return path
