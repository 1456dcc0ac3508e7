"""What GGS costs, with one thread of linear algebra: the child of `accuracy`."""

from functools import partial

import unless
from benchmarks.timing import interleave, measured, median, ratios, timed

# Turns, after one that compiles.
REPEATS = 7


def against_csgs(path: str) -> dict[str, float | list[float]]:
    """Learn one table by GGS and by CSGS in turns; return CPU times and their ratios."""
    data = unless.read(path)
    learners = {"CSGS": unless.CSGS(n_jobs=1), "GGS": unless.GGS(n_jobs=1)}
    ways = {name: measured(partial(learner.fit, data)) for name, learner in learners.items()}
    samples = interleave(ways, REPEATS)
    spent = {name: median(taken) for name, taken in samples.items()}
    return {**spent, "ratios": ratios(samples["GGS"], samples["CSGS"])}


def of_many_variables() -> dict[str, float]:
    """Learn a hundred variables by two workers; return the minutes it took."""
    law = unless.datasets.make_csi(100, shape="chain", n_gates=4, random_state=0)
    table = law.sample(15_000, random_state=1)
    _, taken = timed(lambda: unless.GGS(n_jobs=2).fit(table))
    return {"minutes": taken.wall / 60}
