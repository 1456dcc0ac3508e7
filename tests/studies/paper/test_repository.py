"""The results in docs/paper are those that the code gives, and docs/paper.md tells of them."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from studies.paper.measuring import measure
from studies.paper.methods import METHODS
from studies.paper.plan import FULL, Run, Table

DOCS = Path(__file__).parents[3] / "docs"
BEGIN, END = "<!-- from paper/claims.md -->\n", "<!-- end -->\n"
# Few rows and few variables, one of each method: these take no time.
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
    assert len(kept) == len({line["method"] for line in kept}) * len(CHECKED)
    for line in kept:
        table = Table("headline", "complete", *(int(line[key]) for key in ("n_variables", "network", "size")))
        found, _ = measure(Run(table, line["method"]))
        assert float(line["kl"]) == pytest.approx(found["kl"], rel=1e-4)
        for key in ("n_tests", "n_distinct_tests", "n_contexts", "n_features", "graphs_fp", "features_fn"):
            assert int(line[key]) == found[key]


def test_every_run_of_the_methods_is_there():
    methods = {line["method"] for line in lines()}
    n_runs = sum(run.table.variant == "headline" and run.method in methods for run in FULL.runs())
    assert len(lines()) == n_runs
    assert all(line["kl"] or line["why"] for line in lines())


def test_every_method_is_there():
    assert {line["method"] for line in lines()} == set(METHODS)


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


def over_networks(shape, method, key):
    """Return numbers by (n, N), one for each network."""
    found = {}
    for line in lines():
        if (line["shape"], line["method"]) == (shape, method):
            place = int(line["n_variables"]), int(line["size"])
            found.setdefault(place, []).append(float(line[key] or "nan"))
    return {place: np.array(numbers) for place, numbers in found.items()}


def ratios(shape, one, other):
    """Return the ratio of mean divergences by (n, N), where both have one."""
    mine, theirs = (over_networks(shape, who, "kl") for who in (one, other))
    found = {place: mine[place].mean() / theirs[place].mean() for place in mine}
    return {place: ratio for place, ratio in found.items() if np.isfinite(ratio)}


def drawn_though_absent(method):
    """Return the smallest and the largest mean share of absent interactions drawn from N = 5,000 on."""
    wrong, right = (over_networks("complete", method, f"graphs_{kind}") for kind in ("fp", "tn"))
    shares = [(wrong[p] / (wrong[p] + right[p])).mean() for p in wrong if p[1] >= 5_000]
    return f"{100 * min(shares):.0f}-{100 * max(shares):.0f} %"


@pytest.mark.parametrize("cspc", ["CSPC", "CSPC-independent"])
def test_the_page_tells_how_far_cspc_is_from_csgs(cspc):
    behind = ratios("complete", cspc, "CSGS")
    least, most = min(behind, key=behind.get), max(behind, key=behind.get)
    assert (
        f"from {behind[least]:.2f} times (n = {least[0]}, N = {least[1]:,}) "
        f"to {behind[most]:.3g} times (n = {most[0]}, N = {most[1]:,}), "
        f"{np.median(list(behind.values())):.2f} times in the median cell"
    ) in in_short()


def test_the_page_tells_of_the_numbers_in_the_tables():
    page = in_short()
    shared, independent = (drawn_though_absent(one) for one in ("CSPC", "CSPC-independent"))
    assert (
        "draws {} of the absent interactions (CSGS {}, ".format(
            *(drawn_though_absent(one) for one in ("GSMN", "CSGS"))
        )
        + f"CSPC {shared} if shared and {independent} if independent, GGS {drawn_though_absent('GGS')})"
        in page
    )
    costs = [r for shape in ("chain", "grid") for r in ratios(shape, "CSGS", "CSGS-association").values()]
    assert f"a factor of {min(costs):.1f} to {max(costs):.1f} in KL" in page
    far = {p: ratio for p, ratio in ratios("complete", "canonical", "CSGS").items() if p[0] == 9}
    assert f"up to {max(far.values()):.0f} times as far as CSGS at n = 9" in page
    medians = ", ".join(
        f"{np.median(list(ratios('complete', one, 'CSGS').values())):.2f} for {one}"
        for one in ("GGS", "CSIBMAP", "CSGSSL", "CSMPL")
    )
    assert f"as a multiple of that of CSGS, is {medians}." in page


def in_short():
    """Return what the page says before the tables that the study writes, in one line."""
    return " ".join((DOCS / "paper.md").read_text().partition(BEGIN)[0].split())
