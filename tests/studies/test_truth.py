"""The oracle against brute force on tiny laws, and the judge on sentences made by hand."""

import json
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest

from studies.truth import judge as judging
from studies.truth import laws, run, writing
from studies.truth.judge import exact_gates, function_recall, is_true, judge, link_recall, wilson
from studies.truth.laws import Law
from studies.truth.run import Cell
from unless.data.domain import Domain, Region, Variable


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def all_rows(law: Law):
    rows = np.array(list(product(*map(range, law.sizes))))
    return rows[law.joint[tuple(rows.T)] > 0]


def conditional_by_brute_force(law: Law, a: str, b: str, row, left_out=()):
    """p(a, b | the other values of a row), read off the joint table."""
    out = [law.domain.index(name) for name in left_out]
    i, j = law.domain.index(a), law.domain.index(b)
    where = [slice(None) if k in (i, j, *out) else int(code) for k, code in enumerate(row)]
    free = [k for k in range(len(law.sizes)) if isinstance(where[k], slice)]
    table = law.joint[tuple(where)]
    table = table.sum(axis=tuple(axis for axis, k in enumerate(free) if k in out))
    table = table if i < j else table.T
    return table / table.sum()


def statement(kind, pair, linked=None, **more):
    gate = None if linked is None else SimpleNamespace(linked=linked, unlinked=())
    return SimpleNamespace(**{"kind": kind, "pair": pair, "gate": gate, "confidence": 0.9, **more})


def gated_law():
    """x and y are linked only where g = 0; x and z everywhere, more where g = 0; w is alone."""
    domain = Domain(
        tuple(Variable(name, ("0", "1", "2")[:n]) for name, n in zip("xyzgw", (2, 2, 2, 3, 2), strict=True))
    )
    link = np.array([[1.0, -1.0], [-1.0, 1.0]])
    factors = [
        ((3,), np.array([0.1, 0.3, -0.2])),
        ((4,), np.array([0.5, -0.5])),
        ((0, 1, 3), 0.6 * link[..., None] * np.array([1.0, 0.0, 0.0])),
        ((0, 2, 3), link[..., None] * np.array([0.9, 0.5, 0.5])),
    ]
    gate = laws.TrueGate(("x", "y"), (("g", ("0",)),), (3,))
    return Law(domain, factors, gates=[gate])


def region(law, **levels):
    return Region.of(law.domain, levels)


SMALL = {
    "gated": gated_law,
    "independent": lambda: laws.independent(4, (2, 3), rng(1)),
    "rules": lambda: laws.rules(rng(3)),
    "pairwise": lambda: laws.pairwise(rng(2), n_columns=4),
    "confounded": lambda: laws.cut_confounder(rng(2), 2),
}


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
def test_information_is_that_of_the_joint_table(make) -> None:
    law = make()
    rows = rng(0).permutation(all_rows(law))[:60]
    for a, b in law.pairs:
        tables = np.array([conditional_by_brute_force(law, a, b, row) for row in rows])
        assert law.information(a, b, rows) == pytest.approx(laws.bits(tables), abs=1e-12)
        found, which = law.conditionals(a, b, rows)
        assert found[which] == pytest.approx(tables, abs=1e-12)


def test_columns_that_an_end_determines_are_summed_out() -> None:
    law = laws.with_determined(rng(4))
    assert law.functions == law.notes["functions"]
    rows = rng(0).permutation(all_rows(law))[:20]
    for a, b in law.pairs:
        out = law.left_out(a, b)
        tables = np.array([conditional_by_brute_force(law, a, b, row, out) for row in rows])
        assert law.information(a, b, rows) == pytest.approx(laws.bits(tables), abs=1e-12)
    source, column = sorted(law.functions)[0]
    assert is_true(law, statement("determined", laws.named(source, column), source=source, share_broken=0.0))
    other = next(name for name in law.names if (source, name) not in law.functions and name != source)
    assert not is_true(
        law, statement("determined", laws.named(source, other), source=source, share_broken=0.0)
    )
    assert function_recall(law, [])[1] == 3


def test_a_column_and_its_function_carry_the_same_links() -> None:
    law = laws.with_determined(rng(4))
    source, column = next(pair for pair in sorted(law.functions) if pair[::-1] not in law.functions)
    others = [
        name
        for name in law.names
        if name not in law.left_out(source, column) and name not in (source, column)
    ]
    linked = {name: law.strength(source, name) > 1e-7 for name in others}
    assert linked == {name: law.strength(column, name) > 1e-7 for name in others}
    assert any(linked.values())
    rows = law.fresh_rows(500)
    everything = law.left_out(source, others[0])
    assert not any(law.linked_rows(source, name, rows, keep=everything).any() for name in others), (
        "given its function"
    )


def test_strength_is_conditional_mutual_information() -> None:
    law = laws.pairwise(rng(5), n_columns=4)
    for a, b in law.pairs:
        rows = all_rows(law)
        by_hand = sum(
            law.joint[tuple(row)] * laws.bits(conditional_by_brute_force(law, a, b, row)[None])[0]
            for row in rows
        )
        assert law.strength(a, b) == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize("make", [laws.chain, laws.grid], ids=["chain", "grid"])
def test_elimination_agrees_with_the_joint_table(make, monkeypatch) -> None:
    law = make(rng(6), 3, 3) if make is laws.grid else make(rng(6), 6, 3)
    enumerated = {pair: law.marginal(pair) for pair in combinations(range(5), 2)}
    monkeypatch.setattr(laws, "MOST_CELLS", 300)
    again = Law(law.domain, law.factors)
    for pair, table in enumerated.items():
        assert again.marginal(pair) == pytest.approx(table, abs=1e-12)
    rows = again.sample_codes(40_000, rng(7))
    seen = np.zeros_like(enumerated[0, 1])
    np.add.at(seen, (rows[:, 0], rows[:, 1]), 1 / len(rows))
    assert seen == pytest.approx(enumerated[0, 1], abs=0.012)


BIF = """
network small { }
variable a { type discrete [ 2 ] { yes, no }; }
variable b { type discrete [ 3 ] { low, mid, high }; }
variable c { type discrete [ 2 ] { on, off }; }
variable d { type discrete [ 2 ] { u, v }; }
probability ( a ) { table 0.3, 0.7; }
probability ( b | a ) { (yes) 0.2, 0.5, 0.3; (no) 0.6, 0.3, 0.1; }
probability ( c | b ) { (low) 1.0, 0.0; (mid) 1.0, 0.0; (high) 0.0, 1.0; }
probability ( d | c, a ) { (on, yes) 0.9, 0.1; (off, yes) 0.2, 0.8; (on, no) 0.4, 0.6; (off, no) 0.4, 0.6; }
"""


@pytest.fixture
def small_network(tmp_path) -> Law:
    (tmp_path / "small.bif").write_text(BIF)
    return laws.network(tmp_path / "small.bif")


def test_a_network_is_the_product_of_its_tables(small_network) -> None:
    law = small_network
    assert law.joint.sum() == pytest.approx(1)
    assert law.joint[0, 1, 0, 1] == pytest.approx(0.3 * 0.5 * 1.0 * 0.1)
    rows = law.sample_codes(40_000, rng(1))
    seen = np.zeros(law.sizes)
    np.add.at(seen, tuple(rows.T), 1 / len(rows))
    assert seen == pytest.approx(law.joint, abs=0.012)
    # c is a function of b, so that c and d are linked whatever b is.
    assert law.functions == {("b", "c")}
    assert law.left_out("c", "d") == ("b",)
    c_d = statement("gated", ("c", "d"), (region(law, a=["yes"]),))
    assert is_true(law, c_d)
    assert not is_true(law, statement("gated", ("c", "d"), (region(law, a=["no"]),)))


def test_published_networks(request) -> None:
    folder = request.config.rootpath / laws.DATA / "networks"
    if not folder.exists():
        pytest.skip("the folder of networks is not here")
    law = laws.networks(["asia"], folder.parent)["asia"]
    linked = {pair for pair in law.pairs if is_true(law, statement("linked", pair))}
    assert ("lung", "smoke") in linked
    assert ("lung", "tub") in linked, "given their common effect"
    assert ("asia", "smoke") not in linked


def test_kinds() -> None:
    law = gated_law()
    at_0, at_1 = (region(law, g=["0"]),), (region(law, g=["1"]),)
    assert is_true(law, statement("linked", ("x", "y")))
    assert not is_true(law, statement("linked", ("w", "y")))
    assert is_true(law, statement("gated", ("x", "y"), at_0))
    assert is_true(
        law, statement("gated", ("x", "y"), (region(law, g=["0"], w=["0"]), region(law, g=["0"], w=["1"])))
    )
    assert not is_true(law, statement("gated", ("x", "y"), at_1))
    assert not is_true(law, statement("gated", ("x", "y"), (region(law, g=["0"], w=["0"]),)))
    assert not is_true(law, statement("gated", ("x", "z"), at_0)), "linked everywhere"
    assert is_true(law, statement("partly", ("x", "z"), at_0))
    assert not is_true(law, statement("partly", ("x", "y"), at_1))
    assert is_true(law, statement("differs", ("x", "z"), at_0))
    assert not is_true(law, statement("differs", ("x", "z"), (region(law, w=["0"]),))), (
        "the same on both sides"
    )
    assert not is_true(law, statement("differs", ("x", "y"), at_0)), "absent on one side"
    assert is_true(law, statement("associated", ("x", "y"))) is None
    assert is_true(law, statement("open", ("x", "y"))) is None


def test_a_gate_may_leave_a_tenth_outside_by_the_rule() -> None:
    law = gated_law()
    domain, factors = law.domain, list(law.factors)
    weak = np.array([[1.0, -1.0], [-1.0, 1.0]])[..., None] * np.array([0.0, 0.05, 0.0])
    factors.append(((0, 1, 3), weak))
    verdict = judge(Law(domain, factors), statement("gated", ("x", "y"), (region(law, g=["0"]),)))
    assert verdict.strict is False
    assert verdict.rule is True
    assert 0 < verdict.outside < 0.1 * verdict.inside
    strong = judge(Law(domain, factors), statement("gated", ("x", "z"), (region(law, g=["0"]),)))
    assert strong.rule is False


def test_bounds_of_absence() -> None:
    law = gated_law()
    assert is_true(law, statement("unlinked", ("w", "y"), bound=0.01))
    verdict = judge(law, statement("unlinked", ("x", "y"), bound=0.1))
    assert not verdict.strict
    tables = [conditional_by_brute_force(law, "x", "y", row) for row in all_rows(law)]
    assert verdict.largest_v == pytest.approx(laws.cramers_v(np.array(tables)).max())
    assert verdict.covered == pytest.approx(1 - law.marginal([3])[0])
    assert is_true(law, statement("unlinked", ("x", "y"), bound=1.0))


def test_rows_may_be_given() -> None:
    law = gated_law()
    rows = np.zeros((4, 5), dtype=np.int64)
    rows[:, 3] = 1
    assert not is_true(law, statement("linked", ("x", "y")), rows)
    rows[0, 3] = 0
    assert is_true(law, statement("linked", ("x", "y")), rows)


def test_how_gates_were_said() -> None:
    law = gated_law()
    said = {
        "exact": statement("gated", ("x", "y"), (region(law, g=["0"]),)),
        "levels": statement("gated", ("x", "y"), (region(law, g=["0", "1"]),)),
        "added": statement("gated", ("x", "y"), (region(law, g=["0"], w=["1"]),)),
        "other": statement("gated", ("x", "y"), (region(law, w=["1"]),)),
        "partly": statement("partly", ("x", "y"), (region(law, g=["0"]),)),
        "linked": statement("linked", ("x", "y")),
        "missed": statement("associated", ("x", "y")),
    }
    for how, one in said.items():
        assert exact_gates(law, [one]) == [(law.gates[0], how)]
    assert judging.count_gates(law, list(said.values())) == {1: {"exact": 1}}


def test_recall_by_information() -> None:
    law = gated_law()
    assert law.strength("x", "y") > 0.01
    everything = [statement("linked", pair) for pair in law.pairs]
    links = {pair for pair in law.pairs if is_true(law, statement("linked", pair))}
    strong = {pair for pair in links if law.strength(*pair) >= 0.01}
    assert link_recall(law, everything) == {
        0.001: (sum(law.strength(*pair) >= 0.001 for pair in links),) * 2,
        0.01: (len(strong), len(strong)),
    }
    assert link_recall(law, [statement("associated", ("x", "y"))], (0.01,)) == {0.01: (0, len(strong))}


@pytest.mark.parametrize("seed", range(3))
def test_gates_that_laws_are_built_with_are_true_and_no_others(seed) -> None:
    for law in (
        laws.gated(rng(seed)), laws.gated(rng(seed), (3, 8)), laws.gated_by_two(rng(seed)),
        laws.rules(rng(seed)), laws.rules(rng(seed), 0.05),
    ):  # fmt: skip
        for gate in law.gates:
            (name, levels), *rest = gate.where
            assert is_true(law, statement("gated", gate.pair, (region(law, **dict(gate.where)),)))
            flipped = {name: set(law.domain[name].levels) - set(levels), **dict(rest)}
            assert not is_true(law, statement("gated", gate.pair, (region(law, **flipped),)))
            assert not is_true(law, statement("partly", gate.pair, (region(law, **flipped),)))
    assert not any(
        is_true(law, statement("linked", pair))
        for law in [laws.independent(5, (2, 3), rng(seed))]
        for pair in law.pairs
    )


def test_interactions_are_centred_and_scaled() -> None:
    table = laws.interaction(rng(0), 3, 4, 0.7)
    assert table.sum(axis=0) == pytest.approx(0, abs=1e-12)
    assert table.sum(axis=1) == pytest.approx(0, abs=1e-12)
    assert np.sqrt((table**2).mean()) == pytest.approx(0.7)


def test_a_cut_confounder_leaves_less_in_finer_bins() -> None:
    two, four = (laws.cut_confounder(rng(0), bins) for bins in (2, 4))
    assert two.strength("x", "y") > four.strength("x", "y") > 0
    assert two.marginal([2]) == pytest.approx([0.5, 0.5], abs=1e-3)


def test_missing_together_is_a_link_of_missing_values_only() -> None:
    law = laws.missing_together(rng(0))
    table = law.marginal([0, 1])
    assert table[3, 3] == pytest.approx(0.1)
    assert laws.bits(table[None, :3, :3] / 0.9)[0] == pytest.approx(0, abs=1e-12)
    assert is_true(law, statement("linked", ("v0", "v1")))


def test_a_link_in_one_group_only() -> None:
    without, with_it, pair = laws.link_in_one_group(rng(1))
    assert without.strength(*pair) == 0
    rows, weights = with_it.settings(*pair)
    assert np.sqrt(with_it.conditional_v(*pair, rows) ** 2 @ weights) >= 0.2


def test_samples_depend_on_the_seed_alone() -> None:
    for make in (laws.gated, laws.chain, laws.grid):
        first, second = (make(rng(8)).sample(300, rng(9)) for _ in range(2))
        assert first == second
        assert first != make(rng(8)).sample(300, rng(10))
    law = laws.csi(3)
    one, other = laws.one_law_twice(law, 1_500, rng(0))
    assert one.n_rows == other.n_rows == 1_500
    assert one != other


def test_levels_that_do_not_occur_are_left_out_of_a_sample() -> None:
    law = laws.independent(3, (50,), rng(0))
    data = law.sample(30, rng(1))
    for variable in data.domain:
        assert len(variable.levels) <= 30
        assert set(variable.levels) <= set(law.domain[variable.name].levels)


def test_wilson() -> None:
    assert wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson(10, 10)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)


class Told(SimpleNamespace):
    """A statement, or a fitted learner that says two things: one link and no gate."""

    def __str__(self):
        return f"{self.kind} {self.pair}"


def stub(learner, data):
    names = data.names
    linked = Told(kind="linked", pair=laws.named(*names[:2]), gate=None, confidence=0.97)
    absent = Told(kind="unlinked", pair=laws.named(*names[1:3]), gate=None, confidence=None, bound=1.0)
    return SimpleNamespace(statements_=[linked, absent], structure_=None)


@pytest.fixture
def stubbed(monkeypatch):
    monkeypatch.setattr(run, "fitted", stub)
    monkeypatch.setattr(run, "said_by", lambda estimator, data, fdr=run.FDR: estimator.statements_)
    monkeypatch.setattr(run, "differences_of", lambda first, second: {("v0", "v1"): "gained"})


def test_the_plan_names_each_cell_once_and_is_short_if_quick() -> None:
    whole, quick = run.plan(), run.plan(quick=True)
    assert len({cell.key for cell in whole}) == len(whole)
    assert {cell.key for cell in quick} < {cell.key for cell in whole}
    assert len(quick) < len(whole) / 10
    assert {cell.domain for cell in whole} >= {*run.DOMAINS, *run.NETWORKS}
    assert (
        sum(
            cell.domain == "pairwise" and 500 <= cell.n <= 10_000 and cell.learner == "default"
            for cell in whole
        )
        == 200
    )


@pytest.mark.parametrize("domain", [*run.DOMAINS, "one law twice", "one group"])
def test_cells_are_measured_and_written_once(domain, stubbed, tmp_path) -> None:
    task = {"one law twice": "twice", "one group": "one group"}.get(domain, "judge")
    cell = Cell(domain, 100, "default", 1, task)
    assert run.done(cell, tmp_path) is None
    run.run_cell(cell, tmp_path, 5, "")
    (found,) = run.load(tmp_path)
    assert "error" not in found
    assert run.done(cell, tmp_path) == found
    again = json.loads(json.dumps(run.measure(cell, 5, "")))
    again["seconds"] = found.get("seconds")
    assert {**found, **again} == {**found, "seconds": found.get("seconds")}


def test_a_cell_that_fails_is_recorded_and_tried_again(monkeypatch, tmp_path) -> None:
    def refuse(learner, data):
        raise MemoryError("too large")

    monkeypatch.setattr(run, "fitted", refuse)
    cell = Cell("pairwise", 100, "default", 0)
    run.run_cell(cell, tmp_path, 5, "")
    assert run.load(tmp_path)[0]["error"] == "MemoryError: too large"
    assert run.done(cell, tmp_path) is None
    page = writing.write(run.load(tmp_path), tmp_path / "out", seed=5).read_text()
    assert "MemoryError: too large" in page


def test_a_refusal_is_a_result_and_any_other_error_is_none() -> None:
    told = ["TooLarge: 4.1 GiB", "MemoryError: too large", "TypeError: one argument is missing"]
    records = [{"error": one} for one in told] + [{"found": 1}]
    assert run.broken(records) == ["TypeError: one argument is missing"]


@pytest.mark.parametrize("learner", ["default", "CSGS", "GSMN"])
def test_all_candidates_are_said_beside_the_findings(learner) -> None:
    data = laws.pairwise(np.random.default_rng(1), 6).sample(1500, np.random.default_rng(2))
    estimator = run.fitted(learner, data)
    findings, everything = (
        {one.pair for one in run.said_by(estimator, data, fdr) if one.is_finding} for fdr in (run.FDR, 1)
    )
    assert findings <= everything
    assert everything


def test_the_page_has_counts_shares_and_intervals(stubbed, tmp_path) -> None:
    for domain, task in (
        ("pairwise", "judge"),
        ("gated 2-4", "judge"),
        ("one law twice", "twice"),
        ("one group", "one group"),
    ):
        for index in range(3):
            run.run_cell(Cell(domain, 500, "default", index, task), tmp_path / "cells", 5, "")
    records = run.load(tmp_path / "cells")
    page = writing.write(records, tmp_path, seed=run.SEED).read_text()
    n_true = sum(said[2] for one in records if "findings" in one for said in one["findings"])
    assert "| findings true, gated and pairwise, 500 rows" in page
    assert writing.share(n_true, 6) in page
    assert writing.share(3, 3) in page, "three pairs of tables are said to differ"
    assert "base seed 27182" in page
    assert "none of them is to be reported" in writing.write(records, tmp_path, seed=5).read_text()
    drawing = (tmp_path / "accuracy" / "reliability.svg").read_text()
    assert drawing.startswith("<svg")
    assert "links (6 candidates)" in drawing


def test_shares_are_written_short() -> None:
    assert writing.share(42, 115) == "42 of 115 = .365 (.283 to .456)"
    assert writing.share(10, 10).startswith("10 of 10 = 1 (")
    assert writing.share(0, 0) == "none said"


def test_labels_do_not_break_tables() -> None:
    lines = writing.table(("a", "b"), [("x | y", "two\nlines")]).splitlines()
    assert lines[2] == "| x \\| y | two lines |"


def test_gates_that_contradict_what_was_published() -> None:
    gate = SimpleNamespace(linked=(Region((("g", ("0",)),)),), unlinked=(Region((("g", ("1", "2")),)),))
    said = SimpleNamespace(kind="gated", pair=("x", "y"), gate=gate)
    stated = {"a": "y", "b": "x", "context": {"g": "0"}, "expected": "independent"}
    assert run._contradicts(said, stated)
    assert not run._contradicts(said, {**stated, "context": {"g": "1"}})
    assert run._contradicts(said, {**stated, "context": {"g": "1"}, "expected": "dependent"})
    assert not run._contradicts(SimpleNamespace(kind="linked", pair=("x", "y"), gate=None), stated)
