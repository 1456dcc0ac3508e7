"""The same table gives the same bytes, whatever the machine and the order of rows."""

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


@pytest.mark.parametrize(
    ("how", "threads"),
    [
        ("--learner GGS", (1, 2, 2)),
        ("--learner CSGS --blankets shared", (1, 2)),
        ("--learner CSGS --blankets independent", (1, 2)),
    ],
)
def test_the_saved_model_is_the_same_to_the_byte(process, tables, tmp_path, how, threads):
    made = set()
    for seed, jobs in enumerate(threads):
        output = tmp_path / f"{seed}.unless"
        result = process(
            "learn", tables / f"{seed}.csv", "-o", output, *how.split(), "--jobs", jobs,
            PYTHONHASHSEED=str(seed),
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        made.add((output.read_bytes(), result.stdout))
    assert len(made) == 1
