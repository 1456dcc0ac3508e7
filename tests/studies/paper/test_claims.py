"""Claims: cells counted for and against, and the verdicts they lead to."""

import numpy as np
import pytest

from studies.paper.claims import all_claims, find, findings, sign_test
from studies.paper.complexity import costs
from studies.paper.interpretations import holding_nowhere, interpretations
from studies.paper.methods import ASKING, CSPCS, METHODS, REFERENCES, RIVALS
from studies.paper.plan import Plan, Study
from studies.paper.results import Results, means_csv, networks_csv
from studies.paper.writing import claims_page, numbers_page

STUDY = Study(n_variables=(6, 7), sizes=tuple(range(10, 130, 10)), n_networks=10)
CLAIMS = {claim.key: claim for claim in all_claims()}


def made_up(value, study=STUDY):
    """Make results up: `value(run)` gives what differs from a plain record."""
    plan = Plan(study, None)
    plain = {"kl": 1.0, "n_tests": 100, "n_distinct_tests": 10, "n_contexts": 5, "max_degree": 3}
    records = {run: {**plain, **value(run)} for run in plan.runs()}
    return Results(plan, records, {run: {"learn_seconds": 1.0, "weigh_seconds": 0.5} for run in records})


def test_a_sign_test_is_that_of_a_fair_coin():
    assert sign_test(5, 0) == pytest.approx(2 / 2**5)
    assert sign_test(3, 3) == 1
    assert sign_test(0, 0) == 1
    assert sign_test(1, 8) == pytest.approx(2 * (1 + 9) / 2**9)


def test_a_claim_holds_where_all_cells_speak_for_it():
    results = made_up(lambda run: {"kl": 0.5} if run.method == "CSGS" else {})
    found = find(CLAIMS["CSGS-GSMN"], results, STUDY)
    assert found.signs[:2] == (24, 0)
    assert found.signs.settled_for == 24
    assert found.verdict == "holds"
    against = find(CLAIMS["CSPC-GSMN"], results, STUDY)
    # Ties are for nobody.
    assert against.signs[:2] == (0, 0)
    assert against.verdict == "does not hold"


def test_a_claim_may_hold_from_a_size():
    results = made_up(
        lambda run: {"n_tests": 10 * run.table.size} if run.method == "CSPC" else {"n_tests": 405}
    )
    found = find(CLAIMS["fewer"], results, STUDY)
    assert found.signs[:2] == (16, 8)
    assert found.verdict == "holds from N = 50"
    assert find(CLAIMS["growing"], results, STUDY).signs[:2] == (22, 0)


@pytest.mark.parametrize(("n_sizes", "verdict"), [(5, "too few cells"), (6, "holds")])
def test_cells_that_could_not_show_it_even_if_all_agreed_do_not_count_against_a_claim(n_sizes, verdict):
    study = Study(n_variables=(6,), sizes=STUDY.sizes[:n_sizes])
    results = made_up(lambda run: {"n_tests": run.table.size + 200} if run.method == "CSPC" else {}, study)
    assert find(CLAIMS["fewer"], results, study).verdict == verdict
    # The first size grows from nothing.
    assert find(CLAIMS["growing"], results, study).verdict == "too few cells"


def test_one_bad_network_does_not_settle_a_cell():
    def value(run):
        if run.method != "CSGS":
            return {}
        return {"kl": 100.0} if run.table.network == 0 else {"kl": 0.9}

    found = find(CLAIMS["CSGS-DTSL"], made_up(value), STUDY)
    # By the means of the figure all cells are against, by nine networks of ten all are for.
    assert found.signs[:2] == (0, 24)
    assert (found.signs.settled_for, found.signs.settled_against) == (24, 0)


@pytest.mark.parametrize(
    ("ratio", "verdicts"),
    [(1.2, ("holds", "holds")), (0.5, ("does not hold", "holds")), (2.0, ("does not hold", "does not hold"))],
)
def test_similar_is_within_a_quarter(ratio, verdicts):
    results = made_up(lambda run: {"kl": ratio} if run.method == "CSGS" else {})
    assert tuple(find(CLAIMS[key], results, STUDY).verdict for key in ("similar", "no-worse")) == verdicts


@pytest.mark.parametrize(("kl", "n_for"), [(1.05, 24), (1.3, 0)])
def test_bars_overlap_where_the_means_are_within_both_deviations(kl, n_for):
    def value(run):
        # Ten networks around their mean, with a standard deviation of .05 each.
        shift = 0.05 * np.sqrt(0.9) * (1 if run.table.network % 2 else -1)
        return {"kl": shift + (kl if run.method == "CSPC-independent" else 1.0)}

    results = made_up(value)
    found = {one.claim.key: one for one in findings(results, cspc="CSPC-independent")}["overlap"]
    assert found.signs == (n_for, 24 - n_for, sign_test(n_for, 24 - n_for), 0, 0)


def test_an_interpretation_is_worth_the_sentences_that_hold():
    study = Study(("headline", "w-first", "pairs"), n_variables=(6, 7), sizes=STUDY.sizes)

    def value(run):
        # All that the paper says, of CSPC with independent neighbours and W first alone.
        is_right = run.method == "CSPC-independent" and run.table.variant == "w-first"
        kl = {"generating": 0.1, "canonical": 9.0, "CSGS": 0.5}.get(run.method, 0.5 if is_right else 5.0)
        asked = 10 + run.table.size if is_right else 10
        # Networks differ: bars need a length.
        kl *= 1 + 0.001 * run.table.network
        return {"kl": kl, "n_tests": asked if run.method.startswith("CSPC") else 5}

    every = interpretations(made_up(value, study))
    # Three CSPCs and two references under each variant; of pairs there is no CSPC with sub-cliques.
    assert len(every) == 2 * (3 + 3 + 2)
    best = every[0]
    assert best[:3] == ("w-first", "CSPC-independent", "generating")
    assert (list(best.worths.values()), best.n_holding) == ([1.0] * 5, 20)
    assert len(best.found) == 20
    headline = next(one for one in every if one[:3] == ("headline", "CSPC", "generating"))
    # CSPC is as bad as the others: CSGS alone is better and nearer. It asks more, but not ever more.
    assert list(headline.worths.values()) == [0.0, 0.5, 0.5, 1.0, 0.0]
    assert holding_nowhere([headline]) == [
        *(one.claim.compares for one in headline.found[:2]),
        *(f"CSPC below {rival}" for rival in RIVALS),
        *(f"CSPC nearer than {rival} to the generating features" for rival in RIVALS),
        "CSPC - CSGS questions, above the size before",
    ]
    assert holding_nowhere(every[:1]) == []
    page = claims_page(made_up(value, study))
    assert (
        "| 1 | w-first | CSPC, independent | generating features | 1 | 1 | 1 | 1 | 1 | 5 | 20 of 20 |" in page
    )


def test_equals_are_in_the_order_of_the_rule():
    every = interpretations(made_up(lambda run: {}))
    assert [one[:3] for one in every] == [
        ("headline", cspc, reference) for cspc in CSPCS for reference in REFERENCES
    ]


def test_nearer_to_a_reference_may_be_from_below():
    value = {"generating": 1.0, "CSGS": 0.9, "GSMN": 1.2}
    results = made_up(lambda run: {"kl": value.get(run.method, 5.0)})
    assert find(CLAIMS["CSGS-GSMN-generating"], results, STUDY).verdict == "holds"


def test_a_variant_borrows_what_it_does_not_change():
    study = Study(("headline", "w-first"), n_variables=(6, 7), sizes=STUDY.sizes)

    def value(run):
        return {"kl": {"headline": 2.0, "w-first": 0.5}[run.table.variant]} if run.method == "CSGS" else {}

    results = made_up(value, study)
    assert find(CLAIMS["CSGS-GSMN"], results, study).verdict == "does not hold"
    assert find(CLAIMS["CSGS-GSMN"], results, study, "w-first").verdict == "holds"
    page = claims_page(results)
    line = next(line for line in page.splitlines() if line.startswith("| CSGS below GSMN |  | **holds**"))
    assert "24 : 0" in line


def test_the_bound_is_checked_in_every_cell():
    # m (n (n - 1) + n k) = 5 (30 + 18) = 240 for n = 6.
    results = made_up(lambda run: {"n_tests": 241 if run.table.network == 7 else 240})
    first, *others = next(iter(costs(results, STUDY, ASKING)))
    assert [one.method for one in (first, *others)] == list(ASKING)
    assert (first.n_variables, first.size, first.n_within, first.n_networks) == (6, 10, 9, 10)
    assert first.worst == pytest.approx(241 / 240)
    assert first.questions == first.distinct == 1


def test_claims_speak_only_of_those_who_ran():
    study = Study(n_variables=(6,), sizes=(20, 40), methods=("CSGS", "GSMN", "generating"))
    results = made_up(lambda run: {}, study)
    assert [one.claim.key for one in findings(results)] == ["CSGS-GSMN", "CSGS-GSMN-generating"]
    assert "were not both in the study" in claims_page(results)


def test_tables_have_a_line_for_every_run_and_mean():
    results = made_up(lambda run: {"kl": float(run.table.network)})
    lines = networks_csv(results).splitlines()
    assert len(lines) == 1 + len(results.records)
    head, first, *rest = means_csv(results).splitlines()
    told = dict(zip(head.split(","), first.split(","), strict=True))
    assert float(told["kl_mean"]) == 4.5
    assert float(told["kl_sd"]) == pytest.approx(np.std(range(10), ddof=1), rel=1e-5)
    assert len(rest) + 1 == 2 * len(STUDY.sizes) * len(METHODS)
    assert "4.5 (3)" in numbers_page(results)
