"""From a structure and a table to statements: what is listed, what restricts it, and nothing else does."""

import json
import os
import random
import subprocess
import sys
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings

import unless
from strategies import datasets
from studies.truth import laws
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import DataError, SettingError, UnknownName
from unless.knowledge.statements import FINDINGS, Statements
from unless.learners.registry import LEARNERS

BERKELEY = unless.datasets.load_ucb_admissions()
TITANIC = unless.datasets.load_titanic()
QUICK = {"GSSL": {"n_draws": 500, "prune": 1}, "DTSL": {"kappa": 0.01}}


def complete(data):
    """Return the graph that links every pair: it restricts nothing."""
    return unless.Graph(data.domain, list(combinations(data.names, 2)))


def said_of(columns, **wanted):
    data = columns if isinstance(columns, Dataset) else unless.read(columns)
    return unless.explain(complete(data), data, **wanted)


def gated(n_rows=4000, seed=0):
    """Make a table in which x and y depend on each other where g = on, u depends on g and v on nothing."""
    rng = np.random.default_rng(seed)
    g, x, v = (rng.integers(0, 2, n_rows) for _ in range(3))
    y = np.where((g == 1) & (rng.random(n_rows) < 0.6), x, rng.integers(0, 2, n_rows))
    u = np.where(rng.random(n_rows) < 0.4, g, rng.integers(0, 2, n_rows))
    return {"x": x, "g": np.array(["off", "on"])[g], "y": y, "u": u, "v": v}


@pytest.fixture(scope="module")
def law():
    rng = np.random.default_rng(5)
    return laws.gated(rng).sample(500, rng)


def test_a_gate_a_link_and_nothing_else():
    said = said_of(gated())
    # Given y, x tells something of g: where they agree, the gate is more likely open. The gate is said once.
    assert [(one.kind, one.pair) for one in said.findings] == [
        ("gated", ("x", "y")), ("linked", ("g", "u")), ("linked", ("g", "x")), ("linked", ("g", "y"))
    ]  # fmt: skip
    assert said[0].gate.to_dict() == {"linked": [{"g": ["on"]}], "not_linked": [{"g": ["off"]}]}
    assert said[0].bound < 0.1
    assert {one.kind for one in said[4:]} == {"unlinked"}
    assert {one.pair for one in said} == set(combinations("guvxy", 2))
    assert said.settings == {"fdr": 0.05, "effect": 0.2}


def test_a_link_that_shows_only_once_others_are_known():
    rng = np.random.default_rng(0)
    cause, income = rng.integers(0, 2, (2, 4000))
    # Given the common effect both causes are linked; without it they are independent.
    common = (rng.random(4000) < 1 / (1 + np.exp(2 - 2.0 * (cause + income)))).astype(int)
    said = said_of({"Region": cause, "Income": income, "Vote": common}).about("Income", "Region")
    assert said.sentence.startswith("Income and Region are linked once Vote is known (")
    assert said.given == ("Vote",)


def test_columns_that_go_together_through_another_are_no_finding():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 4000)
    noisy = [np.where(rng.random(4000) < 0.7, z, rng.integers(0, 2, 4000)) for _ in range(2)]
    said = said_of({"a": noisy[0], "b": noisy[1], "z": z})
    one = said.about("a", "b")
    assert (one.kind, one.is_finding, one.confidence) == ("associated", False, None)
    assert one.sentence.startswith("a and b go together (V = .")
    assert ", but not once z is known (V at most ." in one.sentence
    assert [one.pair for one in said.findings] == [("a", "z"), ("b", "z")]


def test_copies_and_functions_are_said_apart_and_links_named_once():
    rng = np.random.default_rng(0)
    state = rng.integers(0, 6, 3000)
    twin = (5 - state).copy()
    land = state // 2
    land[:10] = (land[:10] + 1) % 3
    vote = np.where(rng.random(3000) < 0.5, land % 2, rng.integers(0, 2, 3000))
    said = said_of({"state": state, "twin": twin, "land": land, "vote": vote})
    told = {one.pair: (one.sentence, one.source, one.n_broken) for one in said.of_kind("determined")}
    assert told[("state", "twin")] == ("state and twin say the same in other words", "state", 0)
    assert told[("land", "state")] == (
        "land is nearly determined by state (10 of 3,000 rows break it)", "state", 10
    )  # fmt: skip
    assert said.of_kind("determined")[0].confidence > 0.99
    assert said.about("land", "vote").is_finding
    assert len({one.pair for one in said}) == len(said)


def test_too_few_rows_leave_it_open():
    one = said_of({"a": [0, 1] * 15, "b": [0, 0, 1, 1, 0, 1] * 5}).about("a", "b")
    assert (one.kind, one.is_finding) == ("open", False)
    assert one.more_rows > 0
    assert "more rows would settle it" in one.sentence


def test_a_smaller_fdr_lists_fewer_and_one_lists_all(law):
    found = [{one.pair for one in said_of(law, fdr=fdr).findings} for fdr in (1e-6, 0.01, 0.05, 0.2, 0.5, 1)]
    for fewer, more in pairwise(found):
        assert fewer <= more
    everything = said_of(law, fdr=1)
    kinds = {"linked", "gated", "differs", "partly"}
    assert len(found[-1]) == len(everything.of_kind(*kinds)) > len(found[1]) > 0
    assert all(0 <= one.confidence <= 1 for one in everything.findings)
    # The expected share of false findings is at most what is asked for.
    for fdr in (0.01, 0.05, 0.2):
        doubts = [1 - one.confidence for one in said_of(law, fdr=fdr).findings]
        assert np.mean(doubts) <= fdr


def test_a_gate_that_is_not_sure_leaves_its_link():
    strict = said_of(BERKELEY, fdr=0.03).about("Admit", "Gender")
    assert (strict.kind, strict.gate.linked[0].to_dict()) == ("partly", {"Dept": ["A"]})
    assert "elsewhere not settled" in strict.sentence
    assert said_of(BERKELEY).about("Admit", "Gender").kind == "gated"


def test_target_gates_and_forbidden_gates():
    said = said_of(BERKELEY, target="Gender")
    assert [one.pair for one in said] == [("Dept", "Gender"), ("Admit", "Gender")]
    whole = said_of(BERKELEY)
    assert all(str(one) == str(whole.about(*one.pair)) for one in said)
    for wanted in ({"gates": []}, {"gates": ["Gender"]}, {"forbidden_gates": ["Dept"]}):
        assert said_of(BERKELEY, **wanted).about("Admit", "Gender").gate is None
    for wanted in ({"gates": ["Dept"]}, {"gates": ("Dept", "Admit"), "forbidden_gates": {"Admit"}}):
        assert said_of(BERKELEY, **wanted).about("Admit", "Gender").gate is not None


def test_a_structure_only_restricts():
    data = unless.read(gated())
    whole = said_of(data)
    for edges in ([], [("g", "u")], [("x", "y")], [("u", "v"), ("x", "y")]):
        said = unless.explain(unless.Graph(data.domain, edges), data)
        wanted = {one.pair for one in whole.findings} & set(edges)
        assert {one.pair for one in said.findings} == wanted
        for one in said:
            other = whole.about(*one.pair)
            if one.pair in wanted or not other.is_finding:
                assert str(one) == str(other)
            else:
                assert one.kind in ("associated", "open")
                assert "more rows" not in one.sentence


def test_a_pair_linked_in_some_rows_is_proposed():
    data = unless.read(gated())
    features = [unless.Feature.of({"x": x, "y": y, "v": "0", "g": "off"}) for x in "01" for y in "01"]
    said = unless.explain(unless.FeatureSet(data.domain, features), data)
    # The structure's own gate is wrong; what is said is the referee's.
    assert said.about("x", "y").gate.to_dict()["linked"] == [{"g": ["on"]}]
    assert not said.about("g", "u").is_finding


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_every_learner_has_statements(learner):
    est = learner(**QUICK.get(learner.__name__, {})).fit(gated())
    assert isinstance(est.statements_, Statements)
    assert est.statements_ is est.statements_
    assert {one.pair for one in est.statements_} == set(combinations("guvxy", 2))
    # Without gates x and y agree so little that IBMAPHC does not propose them.
    assert est.statements_.about("x", "y").is_finding or learner is unless.IBMAPHC
    first = est.statements_
    est.fit(gated(seed=1))
    assert est.statements_ is not first


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        ({"fdr": 0}, SettingError, "fdr=0 must be"),
        ({"fdr": 1.5}, SettingError, "fdr=1.5 must be"),
        ({"fdr": True}, SettingError, "fdr=True"),
        ({"fdr": "0.05"}, SettingError, "fdr='0.05'"),
        ({"fdr": float("nan")}, SettingError, "fdr=nan"),
        ({"effect": -1}, SettingError, "effect"),
        ({"effect": None}, SettingError, "effect"),
        ({"gates": "Dept"}, SettingError, "gates='Dept' is one name"),
        ({"gates": 5}, SettingError, "gates=5 is no list"),
        ({"forbidden_gates": "Dept"}, SettingError, "forbidden_gates='Dept' is one name"),
        ({"gates": ["Dep"]}, UnknownName, "did you mean 'Dept'"),
        ({"forbidden_gates": ["Dep"]}, UnknownName, "did you mean 'Dept'"),
        ({"target": "Sex"}, UnknownName, "Sex"),
    ],
)
def test_wrong_settings_get_one_sentence(wanted, error, words):
    with pytest.raises(error, match=words) as caught:
        unless.explain(complete(BERKELEY), BERKELEY, **wanted)
    assert str(caught.value).count("\n") == 0


def test_what_is_no_structure():
    with pytest.raises(SettingError, match="its structure_"):
        unless.explain(unless.CSGS().fit(TITANIC), TITANIC)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[0, 1, 0], [1, 0, 1]], "2 rows"),
        ([[0, 1, 0]], "Fewer than two variables vary"),
        ([[0, 1, 1]] * 50, "Fewer than two variables vary"),
        ([[0, 1, 1], [1, 1, 1]] * 50, "Fewer than two variables vary"),
    ],
)
def test_nothing_to_say_is_said(rows, words):
    domain = Domain(tuple(Variable(name, ("0", "1")) for name in "abc"))
    data = Dataset.from_codes(domain, rows)
    for structure in (unless.Graph(domain, [("a", "b")]), unless.CSGS().fit(data).structure_):
        said = unless.explain(structure, data)
        assert (len(said), list(said), str(said)) == (0, [], said.note)
        assert words in said.note
        assert said.to_dict()["statements"] == []


def test_one_variable_is_no_pair():
    domain = Domain((Variable("a", ("0", "1")),))
    said = unless.explain(unless.Graph(domain), Dataset.from_codes(domain, [[0], [1]] * 20))
    assert (len(said), "one variable" in said.note) == (0, True)
    with pytest.raises(DataError):
        unless.CSGS().fit(Dataset.from_codes(domain, np.empty((0, 1), dtype=int)))


def test_constant_columns_are_left_out_and_named():
    said = said_of(unless.read({**gated(), "still": ["x"] * 4000}, strict=True))
    assert all("still" not in one.pair for one in said)
    assert said.note == "'still' shows a single level, so that nothing can be said of pairs with it."
    assert said.findings
    two = {**gated(), "still": ["x"] * 4000, "stiller": ["y"] * 4000}
    more = said_of(unless.read(two, strict=True))
    assert more.note == (
        "'still', 'stiller' show a single level, so that nothing can be said of pairs with them."
    )


RNG = np.random.default_rng(0)
ODD = {
    "five rows": {"a": [0, 1, 0, 1, 0], "b": [1, 1, 0, 0, 1], "c": [0, 0, 1, 1, 2]},
    "two equal columns": {"a": [0, 1] * 200, "b": [0, 1] * 200, "c": [0, 0, 1, 1] * 100},
    "two equal columns of few rows": {"a": [0, 1] * 10, "b": [0, 1] * 10, "c": [0, 0, 1, 1] * 5},
    "all values distinct": {
        "i": np.arange(200), "b": RNG.integers(0, 2, 200), "c": RNG.integers(0, 3, 200)
    },
    "two columns of distinct values": {
        "i": np.arange(200), "j": np.arange(200)[::-1], "c": RNG.integers(0, 3, 200)
    },
    "300 levels": {name: RNG.integers(0, 300, 3000) for name in "abc"},
    "300 levels, 300 rows": {
        "a": RNG.integers(0, 300, 300), "b": RNG.integers(0, 300, 300), "c": RNG.integers(0, 2, 300)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_tables_are_answered(name):
    data = unless.read(ODD[name], max_levels=300)
    said = said_of(data)
    assert {one.pair for one in said} == set(combinations(sorted(data.names), 2))
    assert not [one for one in said.findings if one.kind != "determined" and one.pair != ("a", "b")]


def test_counts_stand_for_rows():
    cells = {"a": ["x", "y", "x", "y"], "b": ["u", "u", "v", "v"]}
    counted = said_of(unless.read({**cells, "n": [100, 50, 50, 100]}, count_column="n"))
    times = [100, 50, 50, 100]
    written = said_of({name: np.repeat(labels, times) for name, labels in cells.items()})
    assert counted.to_dict(tables=True) == written.to_dict(tables=True)
    assert counted[0].n_rows == 300
    huge = unless.read({**cells, "n": [10**12, 10**11, 10**11, 10**12]}, count_column="n")
    assert [one.kind for one in said_of(huge)] == ["linked"]


def test_levels_that_no_row_shows_change_nothing():
    domain = Domain(tuple(Variable(v.name, (*v.levels, "never")) for v in BERKELEY.domain))
    wide = Dataset.from_codes(domain, BERKELEY.rows, BERKELEY.counts)
    one, other = (said_of(data).about("Admit", "Gender") for data in (BERKELEY, wide))
    assert (one.kind, one.confidence) == (other.kind, other.confidence)
    assert one.sentence == other.sentence


def as_bytes(data):
    return json.dumps(said_of(data).to_dict(tables=True), sort_keys=True, allow_nan=False)


def moved(data, seed):
    """Return the same table with its columns and rows in another order."""
    names = list(data.names)
    random.Random(seed).shuffle(names)
    data = data.select(names)
    order = np.random.default_rng(seed).permutation(data.n_distinct)
    return Dataset.from_codes(data.domain, data.rows[order].copy(), data.counts[order].copy())


@settings(deadline=None, derandomize=True, max_examples=25)
@given(datasets(min_variables=2, max_variables=5, max_levels=4))
def test_rows_and_columns_in_any_order_give_the_same_bytes(data):
    assert as_bytes(data) == as_bytes(moved(data, 1))


@pytest.mark.parametrize(
    "data", [BERKELEY, TITANIC, unless.read(gated())], ids=["berkeley", "titanic", "made"]
)
def test_known_tables_in_any_order_give_the_same_bytes(data):
    assert {as_bytes(moved(data, seed)) for seed in range(3)} == {as_bytes(data)}


def test_threads_and_hash_seeds_give_the_same_bytes():
    code = (
        "import sys, json, unless; d = unless.datasets.load_titanic();"
        "print(json.dumps(unless.CSGS(n_jobs=int(sys.argv[1])).fit(d).statements_.to_dict(tables=True)))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code, jobs], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": jobs, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for jobs in ("1", "2")
    }  # fmt: skip
    assert len(printed) == 1


@pytest.mark.parametrize("data", [BERKELEY, TITANIC], ids=["berkeley", "titanic"])
def test_json_holds_everything(data):
    said = said_of(data)
    told = json.loads(json.dumps(said.to_dict(tables=True), allow_nan=False))
    for plain, one in zip(told["statements"], said, strict=True):
        assert (tuple(plain["pair"]), plain["sentence"]) == (one.pair, one.sentence)
        if one.kind in FINDINGS:
            for side in plain["evidence"]:
                assert sum(np.sum(table["counts"]) for table in side["tables"]) == side["n_rows"]
            assert sum(side["n_rows"] for side in plain["evidence"]) == data.n_rows


def test_findings_are_ranked_and_come_first():
    for data in (BERKELEY, TITANIC, unless.read(gated())):
        said = said_of(data)
        assert said[: len(said.findings)] == said.findings
        is_gated = [one.kind == "gated" for one in said.findings]
        assert is_gated == sorted(is_gated, reverse=True)
        for group in (True, False):
            worth = [
                one.confidence * one.evidence[0].n_rows * one.evidence[0].information
                for one in said.findings
                if (one.kind == "gated") == group
            ]
            assert worth == sorted(worth, reverse=True)


def test_a_learner_bounds_the_memory_of_its_statements(monkeypatch):
    seen = []
    monkeypatch.setattr("unless.knowledge.explaining.parse_memory", seen.append)
    assert unless.CSGS(max_memory="3 GB").fit(BERKELEY).statements_
    assert seen == ["3 GB"]


def test_what_is_no_amount_of_memory_is_refused_whatever_the_structure():
    graph = unless.Graph(BERKELEY.domain, [])
    with pytest.raises(SettingError, match="not an amount of memory"):
        unless.explain(graph, BERKELEY, max_memory="much")


def test_an_unsure_finding_is_said_unsurely_in_text_page_and_json(tmp_path):
    """With fdr=1 all candidates are listed, however unlikely they are."""
    rng = np.random.default_rng(4)
    data = unless.read({name: rng.integers(0, 2, 300).astype(str) for name in "abcdefgh"})
    pairs = list(combinations(data.names, 2))
    said = unless.explain(unless.Graph(data.domain, pairs), data, fdr=1)
    unsure = [one for one in said.findings if one.confidence < 0.495]
    assert unsure
    page = tmp_path / "page.html"
    unless.write_report(unless.Graph(data.domain, pairs), data, page, statements=said)
    plain = {tuple(one["pair"]): one["sentence"] for one in said.to_dict()["statements"]}
    for one in unsure:
        start = f"{one.pair[0]} and {one.pair[1]} may be linked"
        assert str(one).startswith(start)
        assert plain[one.pair].startswith(start)
        assert start in page.read_text()


def test_all_columns_of_a_single_level_are_named():
    table = {f"c{place}": ["x"] * 60 for place in range(12)} | {
        "a": ["u", "v"] * 30,
        "b": ["p", "q", "q"] * 20,
    }
    data = unless.read(table, strict=True)
    note = unless.explain(unless.Graph(data.domain, [("a", "b")]), data).note
    assert all(repr(f"c{place}") in note for place in range(12))
    assert "more" not in note


def test_nothing_is_said_of_two_parts_of_one_date():
    rng = np.random.default_rng(3)
    days = np.datetime64("2019-03-01") + np.sort(rng.integers(0, 1_000, 1_000))
    late = days >= np.datetime64("2020-01-01")
    table = {
        "day": [str(day) for day in days],
        "g": np.where(late, "x", rng.choice(["x", "y"], 1_000)).tolist(),
    }
    learned = unless.learn(table)
    assert {"day (month)", "day (year)"} < {*learned.structure_.domain.names}
    said = {one.pair for one in learned.statements_}
    assert ("day (month)", "day (year)") not in said
    assert [one.pair for one in learned.statements_.findings] == [("day (year)", "g")]
    assert learned.statements_.note == "Nothing is said of pairs of parts of 'day': the calendar links them."


def test_a_quarter_is_not_said_to_be_told_by_its_month():
    days = np.datetime64("2020-01-01") + np.arange(300)
    table = {"day": [str(day) for day in days], "g": ["x", "y"] * 150}
    found = unless.learn(table, roles={"day": "quarter+month"}).statements_
    assert {one.pair for one in found} == {("day (month)", "g"), ("day (quarter)", "g")}


def pairs_of(statements):
    return [one.pair for one in statements]


def test_nothing_is_said_of_a_forbidden_pair_wherever_it_is_said(tmp_path):
    never = ("Admit", "Gender")
    est = unless.GGS(forbidden_edges=[never]).fit(BERKELEY)
    said = est.statements_
    assert pairs_of(said) == [("Dept", "Gender"), ("Admit", "Dept")]
    # The rest is what is said where it is not forbidden.
    everything = unless.GGS().fit(BERKELEY).statements_
    assert [one.to_dict() for one in said] == [one.to_dict() for one in everything if one.pair != never]
    assert said.note == "Nothing is said of what is forbidden: 'Admit - Gender'."
    assert pairs_of(said.given({"Dept": "A"})) == pairs_of(said)
    unless.save(est, tmp_path / "ggs.unless")
    loaded = unless.load(tmp_path / "ggs.unless")
    assert pairs_of(loaded.statements_) == pairs_of(said)
    loaded._statements = None
    assert pairs_of(loaded.statements_) == pairs_of(said)
    for data in (None, BERKELEY):
        est.report(tmp_path / "page.html", data=data, network=False)
        assert "Admit and Gender" not in (tmp_path / "page.html").read_text()


def test_a_forbidden_pair_is_no_copy_either():
    rows = [[i % 2, i % 2, (i // 2) % 2] for i in range(80)]
    data = unless.read([{"a": a, "b": b, "c": c} for a, b, c in rows])
    assert ("a", "b") in pairs_of(unless.GGS().fit(data).statements_)
    assert ("a", "b") not in pairs_of(unless.GGS(forbidden_edges=[("b", "a")]).fit(data).statements_)


def test_what_is_linked_with_neither_end_is_no_gate():
    data = unless.GGS().fit(BERKELEY)
    wanted = {"forbidden_edges": [("Dept", "Admit"), ("Gender", "Dept")]}
    assert data.statements_[0].gate is not None
    said = unless.explain(complete(BERKELEY), BERKELEY, **wanted)
    assert pairs_of(said) == [("Admit", "Gender")]
    assert said[0].gate is None
    assert all(one.gate is None for one in unless.GGS(forbidden_gates=["Dept"]).fit(BERKELEY).statements_)


@pytest.mark.parametrize(
    "edges", ["Admit", None, [("Admit", "Admit")], ["Admit"], [7], [("Admit", "Dept", "Gender")]]
)
def test_forbidden_edges_that_are_no_pairs_are_refused(edges):
    with pytest.raises(SettingError, match=r"forbidden_edges=.* (a pair of two|pairs of) "):
        unless.explain(complete(BERKELEY), BERKELEY, forbidden_edges=edges)
