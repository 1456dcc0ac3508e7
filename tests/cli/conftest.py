"""Run `unless` inside the test, or as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from unless.inference.model import LogLinearModel


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


@pytest.fixture(scope="session")
def contexts(berkeley_csv):
    """Keep a model with a graph for each context."""
    from unless.cli import main

    path = berkeley_csv.with_name("contexts.unless")
    words = ["learn", str(berkeley_csv), "-o", str(path), "--learner", "CSGS"]
    assert CliRunner().invoke(main, words).exit_code == 0
    return path


@pytest.fixture(scope="session")
def fitted(berkeley_csv, berkeley):
    from unless.cli import main

    path = berkeley.with_name("fitted.unless")
    words = ["fit", str(berkeley), str(berkeley_csv), "-o", str(path)]
    assert CliRunner().invoke(main, words).exit_code == 0
    return path


@pytest.fixture(scope="session")
def certain(tmp_path_factory):
    """Keep a model in which b is what a is, for certain."""
    import unless

    domain = unless.Domain((unless.Variable("a", ("0", "1")), unless.Variable("b", ("0", "1"))))
    features = [unless.Feature.of({"a": "0", "b": "1"}), unless.Feature.of({"a": "1", "b": "0"})]
    path = tmp_path_factory.mktemp("models") / "certain.unless"
    unless.save(LogLinearModel(unless.FeatureSet(domain, features), [-float("inf")] * 2), path)
    return path


@pytest.fixture(scope="session")
def wide(tmp_path_factory):
    """Keep a model too wide for 64 MB: 16 variables, all pairs of them linked."""
    from itertools import combinations

    import unless

    domain = unless.Domain(tuple(unless.Variable(f"v{i}", ("0", "1", "2")) for i in range(16)))
    features = [unless.Feature.of({a: "0", b: "0"}) for a, b in combinations(domain.names, 2)]
    path = tmp_path_factory.mktemp("models") / "wide.unless"
    unless.save(LogLinearModel(unless.FeatureSet(domain, features), [0.1] * len(features)), path)
    return path
