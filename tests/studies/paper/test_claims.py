"""Claims: cells counted for and against, and the verdicts they lead to."""

import numpy as np
import pytest

from studies.paper.claims import all_claims, find, findings, sign_test
from studies.paper.complexity import costs
from studies.paper.plan import Plan, Study
from studies.paper.readings import CONTESTANTS
from studies.paper.results import Results, means_csv, networks_csv
from studies.paper.writing import claims_page, numbers_page

STUDY = Study(n_variables=(6, 7), sizes=tuple(range(10, 130, 10)), n_networks=10)
CLAIMS = {claim.key: claim for claim in all_claims()}


def made_up(value, study=STUDY):
    """Make results up: `value(cell)` gives what differs from a plain record."""
    plan = Plan(study, None)
    plain = {"kl": 1.0, "n_tests": 100, "n_distinct_tests": 10, "n_contexts": 5, "max_degree": 3}
    records = {cell: {**plain, **value(cell)} for cell in plan.cells()}
    return Results(plan, records, {cell: {"learn_seconds": 1.0, "weigh_seconds": 0.5} for cell in records})


def test_a_sign_test_is_that_of_a_fair_coin():
    assert sign_test(5, 0) == pytest.approx(2 / 2**5)
    assert sign_test(3, 3) == 1
    assert sign_test(0, 0) == 1
    assert sign_test(1, 8) == pytest.approx(2 * (1 + 9) / 2**9)


def test_a_claim_holds_where_all_cells_speak_for_it():
    results = made_up(lambda cell: {"kl": 0.5} if cell.contestant == "CSGS" else {})
    found = find(CLAIMS["CSGS-GSMN"], results, STUDY)
    assert found.tally[:2] == (24, 0)
    assert found.tally.settled_for == 24
    assert found.verdict == "holds"
    against = find(CLAIMS["CSPC-GSMN"], results, STUDY)
    # Ties are for nobody.
    assert against.tally[:2] == (0, 0)
    assert against.verdict == "does not hold"


def test_a_claim_may_hold_from_a_size():
    results = made_up(
        lambda cell: {"n_tests": 10 * cell.site.size} if cell.contestant == "CSPC" else {"n_tests": 405}
    )
    found = find(CLAIMS["fewer"], results, STUDY)
    assert found.tally[:2] == (16, 8)
    assert found.verdict == "holds from N = 50"
    assert find(CLAIMS["growing"], results, STUDY).tally[:2] == (22, 0)


@pytest.mark.parametrize(("n_sizes", "verdict"), [(5, "too few cells"), (6, "holds")])
def test_cells_that_could_not_show_it_even_if_all_agreed_do_not_count_against_a_claim(n_sizes, verdict):
    study = Study(n_variables=(6,), sizes=STUDY.sizes[:n_sizes])
    results = made_up(
        lambda cell: {"n_tests": cell.site.size + 200} if cell.contestant == "CSPC" else {}, study
    )
    assert find(CLAIMS["fewer"], results, study).verdict == verdict
    # The first size grows from nothing.
    assert find(CLAIMS["growing"], results, study).verdict == "too few cells"


def test_one_bad_network_does_not_settle_a_cell():
    def value(cell):
        if cell.contestant != "CSGS":
            return {}
        return {"kl": 100.0} if cell.site.network == 0 else {"kl": 0.9}

    found = find(CLAIMS["CSGS-DTSL"], made_up(value), STUDY)
    # By the means of the figure all cells are against, by nine networks of ten all are for.
    assert found.tally[:2] == (0, 24)
    assert (found.tally.settled_for, found.tally.settled_against) == (24, 0)


@pytest.mark.parametrize(
    ("ratio", "verdicts"),
    [(1.2, ("holds", "holds")), (0.5, ("does not hold", "holds")), (2.0, ("does not hold", "does not hold"))],
)
def test_similar_is_within_a_quarter(ratio, verdicts):
    results = made_up(lambda cell: {"kl": ratio} if cell.contestant == "CSGS" else {})
    assert tuple(find(CLAIMS[key], results, STUDY).verdict for key in ("similar", "no-worse")) == verdicts


def test_nearer_to_a_reference_may_be_from_below():
    value = {"generating": 1.0, "CSGS": 0.9, "GSMN": 1.2}
    results = made_up(lambda cell: {"kl": value.get(cell.contestant, 5.0)})
    assert find(CLAIMS["CSGS-GSMN-generating"], results, STUDY).verdict == "holds"


def test_a_reading_borrows_what_it_does_not_change():
    study = Study(("headline", "w-first"), n_variables=(6, 7), sizes=STUDY.sizes)

    def value(cell):
        return (
            {"kl": {"headline": 2.0, "w-first": 0.5}[cell.site.reading]} if cell.contestant == "CSGS" else {}
        )

    results = made_up(value, study)
    assert find(CLAIMS["CSGS-GSMN"], results, study).verdict == "does not hold"
    assert find(CLAIMS["CSGS-GSMN"], results, study, "w-first").verdict == "holds"
    page = claims_page(results)
    line = next(line for line in page.splitlines() if line.startswith("| CSGS below GSMN | **holds**"))
    assert "24 : 0" in line


def test_the_bound_is_checked_in_every_cell():
    # m (n (n - 1) + n k) = 5 (30 + 18) = 240 for n = 6.
    results = made_up(lambda cell: {"n_tests": 241 if cell.site.network == 7 else 240})
    first = next(iter(costs(results, STUDY)))
    assert (first.n_variables, first.size, first.n_within, first.n_networks) == (6, 10, 9, 10)
    assert first.worst == pytest.approx(241 / 240)
    assert first.questions == first.distinct == 1


def test_claims_speak_only_of_those_who_ran():
    study = Study(n_variables=(6,), sizes=(20, 40), contestants=("CSGS", "GSMN", "generating"))
    results = made_up(lambda cell: {}, study)
    assert [one.claim.key for one in findings(results)] == ["CSGS-GSMN", "CSGS-GSMN-generating"]
    assert "were not both in the run" in claims_page(results)


def test_tables_have_a_line_for_every_cell_and_mean():
    results = made_up(lambda cell: {"kl": float(cell.site.network)})
    lines = networks_csv(results).splitlines()
    assert len(lines) == 1 + len(results.records)
    head, first, *rest = means_csv(results).splitlines()
    told = dict(zip(head.split(","), first.split(","), strict=True))
    assert float(told["kl_mean"]) == 4.5
    assert float(told["kl_sd"]) == pytest.approx(np.std(range(10), ddof=1), rel=1e-5)
    assert len(rest) + 1 == 2 * len(STUDY.sizes) * len(CONTESTANTS)
    assert "4.5 (3)" in numbers_page(results)
