"""Long work shows how much of it is left: every stage that is told how long it is has just that length."""

import re

import pytest

import unless
from strategies import chained_columns
from unless.learners.registry import LEARNERS

QUICK = {
    "GSSL": {"n_draws": [200, 900], "prune": [1, 2], "prior": [unless.Laplace(2.0), unless.Laplace(4.0)]},
    "DTSL": {"kappa": [0.01, 0.1], "prior": [unless.Gaussian(0.5), unless.Gaussian(1.5)]},
}
# How many there will be shows only on the way.
OPEN = {
    "IBMAPHC": "flipping edges", "DTSL": "iterations of the last fit", "GSSL": "rounds of the last fit",
    "CSMPL": "moves",
}  # fmt: skip


class Drawn:
    """Stands for tqdm: keeps, for each stage of the work, how far the bar came and how long it was."""

    disable = False

    def __init__(self, total=None):
        self.total, self.title, self.stages = total, "", []
        self.reset(total)

    def set_description(self, title, refresh=True):
        self.title = title

    def reset(self, total):
        self.stages.append([self.title, 0, total])

    def update(self, n_steps):
        self.stages[-1][1] += n_steps
        self.stages[-1][2] = self.total

    def set_postfix_str(self, told, refresh=True):
        pass

    def refresh(self):
        pass

    def close(self):
        pass


@pytest.fixture(scope="module")
def table():
    return unless.read(chained_columns(14, 300))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("name", LEARNERS)
def test_every_stage_of_the_work_ends_where_it_was_said_to(name, n_jobs, table, monkeypatch):
    drawn = []

    def draw(total, desc, leave):
        drawn.append(Drawn(total))
        return drawn[-1]

    monkeypatch.setattr("tqdm.auto.tqdm", draw)
    LEARNERS[name](n_jobs=n_jobs, show_progress=True, **QUICK.get(name, {})).fit(table)
    (bar,) = drawn
    told = [stage for stage in bar.stages if OPEN.get(name, "nothing") not in stage[0]]
    # What is not counted is told as a share of 1.0.
    told = [stage for stage in told if stage[1:] != [0, None] and not isinstance(stage[2], float)]
    assert told
    for title, steps, total in told:
        assert steps == total, title


def test_parts_are_shown_where_they_are_many(table, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("unless.learners.grow_shrink.cohorts.SHARD_SIZE", 2**13)
    unless.CSPC(max_condition=1, work_dir=tmp_path, show_progress=True).fit(table)
    n_parts = len(list(tmp_path.glob("*.shard")))
    assert n_parts > 3
    assert re.search(rf"CSPC, parts: .*/{n_parts} \[", capsys.readouterr().err)


def test_fits_are_counted_where_priors_are_judged(table, capsys):
    features = unless.GSMN().fit(table).structure_.features()
    priors = [unless.Gaussian(1.0), unless.Gaussian(2.0)]
    unless.fit_weights(features, table, priors, validation=2, random_state=0, show_progress=True)
    assert re.search(r"fit_weights, fits: .*/4 \[", capsys.readouterr().err)
