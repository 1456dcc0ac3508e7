"""The results in docs/paper are those that the code gives, and docs/paper.md tells of them."""

import csv
import os
from pathlib import Path

import pytest

from unless.experiments.measuring import measure
from unless.experiments.plan import FULL, Cell, Site

DOCS = Path(__file__).parents[2] / "docs"
BEGIN, END = "<!-- from paper/claims.md -->\n", "<!-- end -->\n"
# Few rows and few variables, one of each contestant: these take no time.
CHECKED = {(6, 0, 100), (7, 3, 200), (8, 9, 40)}


def lines():
    with (DOCS / "paper" / "networks.csv").open() as stream:
        return list(csv.DictReader(stream))


def test_cells_measured_again_come_out_the_same():
    kept = [
        line
        for line in lines()
        if line["shape"] == "complete"
        and (int(line["n_variables"]), int(line["network"]), int(line["size"])) in CHECKED
    ]
    assert len(kept) == 10 * len(CHECKED)
    for line in kept:
        site = Site("headline", "complete", *(int(line[key]) for key in ("n_variables", "network", "size")))
        found, _ = measure(Cell(site, line["contestant"]))
        assert float(line["kl"]) == pytest.approx(found["kl"], rel=1e-4)
        for key in ("n_tests", "n_distinct_tests", "n_contexts", "n_features", "graphs_fp", "features_fn"):
            assert int(line[key]) == found[key]


def test_every_cell_of_the_plan_is_there():
    n_headline = sum(cell.site.reading == "headline" for cell in FULL.cells())
    assert len(lines()) == n_headline
    assert all(line["kl"] or line["why"] for line in lines())


def test_the_page_has_the_claims_as_they_were_found():
    page = (DOCS / "paper.md").read_text()
    claims = (DOCS / "paper" / "claims.md").read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = f"{before}{BEGIN}{claims}{END}{after}"
    if os.environ.get("UNLESS_REWRITE_GOLDEN") == "1":
        (DOCS / "paper.md").write_text(wanted)
    assert (DOCS / "paper.md").read_text() == wanted


def test_figures_named_on_the_page_are_there():
    page = (DOCS / "paper.md").read_text()
    drawn = {path.name for path in (DOCS / "paper").glob("*.svg")}
    assert drawn
    assert all(f"(paper/{name})" in page for name in drawn)
