"""The same table gives the same bytes, whatever the machine and the order of rows."""

import os
import subprocess
import sys

import numpy as np
import pytest

from unless.counting.slices import fits_cube

N_LEVELS = [2, 3] * 8


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Write 2,000 rows of 16 chained variables, three times in different orders."""
    assert not fits_cube(np.array(N_LEVELS)), "the cohorts must be at work here"
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, (2000, len(N_LEVELS)))
    for column in range(1, len(N_LEVELS)):
        copied = rng.random(2000) < 0.5
        codes[copied, column] = codes[copied, column - 1]
    rows = [",".join(f"L{code}" for code in row) for row in (codes % N_LEVELS).tolist()]
    names = ",".join(f"V{column}" for column in range(len(N_LEVELS)))
    folder = tmp_path_factory.mktemp("orders")
    for order in range(3):
        (folder / f"{order}.csv").write_text("\n".join([names, *rows]) + "\n")
        rng.shuffle(rows)
    return folder


WAYS = {
    "--learner GGS": 3,
    "--learner CSGS --blankets shared": 2,
    "--learner CSGS --blankets independent": 2,
}
# One process for each order of the rows: most of what it takes is to load what learns.
LEARN = """
import contextlib, sys
from pathlib import Path
from unless.__main__ import main

table, seed, jobs, *ways = sys.argv[1:]
for way in ways:
    output = Path(table).with_name(f"{way} {seed}.unless")
    sys.argv = ["unless", "learn", table, "-o", str(output), *way.split(), "--jobs", jobs]
    with output.with_suffix(".txt").open("w") as stream, contextlib.redirect_stdout(stream):
        try:
            main()
        except SystemExit as ended:
            assert not ended.code, ended
"""


@pytest.fixture(scope="module")
def learned(tables):
    """Learn in every way from every order of the rows, in processes of other seeds and numbers of threads."""
    for seed, jobs in enumerate((1, 2, 2)):
        ways = [way for way, n_orders in WAYS.items() if seed < n_orders]
        command = [sys.executable, "-c", LEARN, str(tables / f"{seed}.csv"), str(seed), str(jobs), *ways]
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        subprocess.run(command, env=environment, check=True, text=True)
    return tables


@pytest.mark.parametrize("way", WAYS)
def test_the_saved_model_is_the_same_to_the_byte(learned, way):
    made = [
        ((learned / f"{way} {seed}.unless").read_bytes(), (learned / f"{way} {seed}.txt").read_bytes())
        for seed in range(WAYS[way])
    ]
    assert len(set(made)) == 1
    assert all(made[0])
