"""Statements: what everybody can check, what is left open, and that nothing but the table matters."""

import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

import unless
from strategies import datasets
from unless.data.dataset import Dataset
from unless.data.domain import Domain, Variable
from unless.errors import DataError, SettingError, UnknownContext, UnknownName
from unless.knowledge import judging
from unless.knowledge.measures import corrected
from unless.knowledge.sentences import regions_text
from unless.knowledge.statements import Statements
from unless.learners.catalogue import LEARNERS

BERKELEY = unless.datasets.load_ucb_admissions()
TITANIC = unless.datasets.load_titanic()
QUICK = {"GSSL": {"n_draws": 500, "prune": 1}, "DTSL": {"kappa": 0.01}}


@pytest.fixture(scope="module")
def berkeley():
    return unless.CSGS().fit(BERKELEY)


@pytest.fixture(scope="module")
def titanic():
    return unless.CSGS().fit(TITANIC)


def gated(n_rows=4000, seed=0):
    """Make a table in which x and y depend on each other where g = on, u depends on g and v on nothing."""
    rng = np.random.default_rng(seed)
    g, x, v = (rng.integers(0, 2, n_rows) for _ in range(3))
    y = np.where((g == 1) & (rng.random(n_rows) < 0.6), x, rng.integers(0, 2, n_rows))
    u = np.where(rng.random(n_rows) < 0.4, g, rng.integers(0, 2, n_rows))
    return {"x": x, "g": np.array(["off", "on"])[g], "y": y, "u": u, "v": v}


def test_berkeley_in_one_sentence_and_its_evidence(berkeley):
    first = berkeley.statements_[0]
    told = "Admit depends on Gender only when Dept = A (933 of 4,526 rows, V = .14, q = 2e-4)"
    assert (str(first), first.pair, first.claim) == (told, ("Admit", "Gender"), "gated")
    assert (first.verdict, first.agrees, first.agreement) == ("dependent", True, 1.0)
    assert first.gate.to_dict() == {"linked": [{"Dept": ["A"]}], "not_linked": [{"Dept": list("BCDEF")}]}
    assert (first.linked.n_rows, first.linked.df, first.linked.n_choices) == (933, 1, 6)
    assert first.linked.statistic == pytest.approx(17.248, abs=0.001)
    assert (first.unlinked.answer, first.unlinked.given, first.unlinked.df) == ("independent", ("Dept",), 5)
    assert first.unlinked.cramers_v_limit < 0.06
    assert [one.pair for one in berkeley.statements_[1:]] == [("Dept", "Gender"), ("Admit", "Dept")]


def test_titanic_children_and_men(titanic):
    said = titanic.statements_.about("Survived", "Age")
    assert "only when Class in {1st, 2nd} and Sex = Male (359 of 2,201 rows" in said.sentence
    assert said.unlinked.answer == "independent"
    assert titanic.statements_[0] is said
    # Children of the first classes all survived: nothing varies there, which is no finding.
    survived = titanic.statements_.about("Sex", "Survived")
    assert (survived.unlinked.answer, survived.unlinked.df) == ("undecided", 0)
    assert "nothing varies" in survived.sentence


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_every_learner_has_statements_and_can_be_asked(learner, tmp_path):
    est = learner(**QUICK.get(learner.__name__, {})).fit(gated())
    assert isinstance(est.statements_, Statements)
    assert est.statements_ is est.statements_
    assert {one.pair for one in est.statements_} == {
        (a, b) for a in est.data_.names for b in est.data_.names if a < b
    }
    assert est.statements_.about("x", "y").is_dependent
    assert est.ask("x", "y", context={"g": "on"}).answer == "dependent"
    assert est.ask("x", "y", context={"g": "off"}).answer == "independent"
    first = est.statements_
    est.fit(gated(seed=1))
    assert est.statements_ is not first
    unless.save(est, tmp_path / "m.unless")
    back = unless.load(tmp_path / "m.unless")
    if isinstance(est.structure_, unless.CanonicalModel):
        assert str(back.statements_) == str(est.statements_)
    else:
        with pytest.raises(unless.errors.NotFitted, match=r"keeps no rows; call unless.explain"):
            back.statements_  # noqa: B018
        with pytest.raises(unless.errors.NotFitted, match="data="):
            back.ask("x", "y")
        assert back.ask("x", "y", data=gated()).data.n_rows == 4000
    assert unless.explain(back.structure_, est.data_)


def test_gates_are_found_from_canonical_models():
    said = unless.CSGS().fit(gated()).statements_
    assert said[0].sentence.startswith("x depends on y only when g = on (")
    assert said.about("g", "u").claim == "linked"
    assert said.about("u", "v").verdict == "independent"
    assert "never linked" in str(said)


def test_the_data_decide_where_a_structure_is_wrong():
    data = unless.read(gated())
    wrong = unless.explain(unless.Graph(data.domain, [("u", "v")]), data)
    linked, denied = wrong.about("u", "v"), wrong.about("g", "u")
    assert (linked.claim, linked.verdict, linked.agrees) == ("linked", "independent", False)
    assert "linked in the structure, but no dependence is seen" in linked.sentence
    assert (denied.claim, denied.verdict, denied.agrees) == ("never", "dependent", False)
    assert "though the structure does not link them" in denied.sentence


def test_a_gate_that_is_wrong_is_told():
    data = unless.read(gated())
    features = [
        unless.Feature.of({"x": x, "y": y, "v": "0", "g": "off"}) for x in ("0", "1") for y in ("0", "1")
    ]
    said = unless.explain(unless.FeatureSet(data.domain, features), data).about("x", "y")
    assert said.claim == "gated"
    assert (
        "are linked in the structure only when g = off and v = 0, but they depend elsewhere" in said.sentence
    )


@pytest.mark.parametrize(
    ("b", "words"),
    [
        ("y", "are linked in the structure unless k = r, but they depend there (1,000 of 3,000 rows"),
        ("z", "are linked in the structure unless k = r, but no dependence is seen elsewhere (2,000 of"),
    ],
)
def test_there_and_elsewhere_are_seen_from_the_contexts_named(b, words):
    rng = np.random.default_rng(0)
    k, x, z = np.repeat(["p", "q", "r"], 1000), rng.integers(0, 2, 3000), rng.integers(0, 2, 3000)
    y = np.where((k == "r") & (rng.random(3000) < 0.6), x, rng.integers(0, 2, 3000))
    data = unless.read({"k": k, "x": x, "y": y, "z": z})
    features = [
        unless.Feature.of({"x": one, b: other, "k": where})
        for one in "01"
        for other in "01"
        for where in "pq"
    ]
    assert words in unless.explain(unless.FeatureSet(data.domain, features), data).about("x", b).sentence


def test_names_and_levels_that_would_mislead_are_in_quotes():
    x, g, y, u, v = gated().values()
    names, levels = ("up = or down", "it's, say", "plain name", "v"), ("", "a, b", "c and d")
    variables = (*(Variable(name, ("0", "1")) for name in names), Variable("the {gate}", levels))
    domain = Domain(variables)
    data = Dataset.from_codes(domain, np.column_stack([x, y, u, v, np.where(g == "on", 0, 1 + v)]))
    region, rest = (unless.Region.of(domain, {"the {gate}": some}) for some in (levels[:1], levels[1:]))
    link = unless.Link(("it's, say", "up = or down"), (region,))
    assert str(link) == "\"it's, say\" - 'up = or down' where 'the {gate}' = ''"
    assert str(rest) == regions_text([rest], domain) == "'the {gate}' in {'a, b', 'c and d'}"
    graph = unless.LabelledGraph(domain, [link])
    said = unless.explain(graph, data)
    told = "\"it's, say\" depends on 'up = or down' only when 'the {gate}' = '' ("
    assert said[0].sentence.startswith(told)
    assert said.about("plain name", "v").sentence.startswith("plain name and v ")


def test_target_gates_and_forbidden_gates(berkeley):
    model = berkeley.structure_
    said = unless.explain(model, BERKELEY, target="Gender")
    assert [one.sentence.partition(" (")[0] for one in said] == [
        "Gender depends on Admit only when Dept = A", "Gender depends on Dept"
    ]  # fmt: skip
    for wanted in ({"gates": []}, {"gates": ["Gender"]}, {"forbidden_gates": ["Dept"]}, {"max_gate": 0}):
        assert unless.explain(model, BERKELEY, **wanted).about("Admit", "Gender").gate is None
    assert unless.explain(model, BERKELEY, gates=["Dept"]).about("Admit", "Gender").gate.names == ("Dept",)


def test_only_a_context(berkeley):
    said = unless.explain(berkeley.structure_, BERKELEY, context={"Dept": "C"})
    assert [one.pair for one in said] == [("Admit", "Gender")]
    assert (said[0].claim, said[0].verdict, said[0].n_rows) == ("never", "independent", 918)


def test_another_table_than_the_one_learned_from(berkeley):
    other = Dataset(BERKELEY.domain, BERKELEY.rows[:20].copy(), BERKELEY.counts[:20] * 3)
    said = unless.explain(berkeley.structure_, other).about("Admit", "Gender")
    assert said.gate.names == ("Dept",)
    assert said.linked.n_rows == 3 * int(BERKELEY.counts[:20][BERKELEY.rows[:20, 2] == 0].sum())
    frame = {name: [] for name in BERKELEY.names}
    for row in other.rows:
        for name, label in BERKELEY.domain.decode(row).items():
            frame[name].append(label)
    assert unless.explain(berkeley.structure_, frame).settings["test"] == "pearson"


def test_q_is_over_all_pairs_and_pays_for_the_choice_of_a_gate(titanic):
    tests = [one.linked or one.unlinked for one in titanic.statements_]
    paid = [min(1.0, side.p * side.n_choices) for side in tests]
    assert [side.q for side in tests] == pytest.approx(corrected(paid, "benjamini-hochberg"))
    stricter = unless.explain(titanic.structure_, TITANIC, correction="benjamini-yekutieli")
    for one in stricter:
        same = titanic.statements_.about(*one.pair)
        assert one.linked.q >= same.linked.q


def test_bootstrap_is_asked_for_and_repeatable(berkeley):
    assert berkeley.statements_[0].support is None
    first, second = (
        unless.explain(berkeley.structure_, BERKELEY, n_bootstrap=30, random_state=7) for _ in range(2)
    )
    assert [one.support for one in first] == [one.support for one in second]
    assert all(0 <= one.support <= 1 for one in first)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[0, 1, 0], [1, 0, 1]], "2 rows"),
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
    data = unless.read({**gated(), "still": ["x"] * 4000})
    said = unless.CSGS().fit(data).statements_
    assert all("still" not in one.pair for one in said)
    assert "'still' shows a single level, so that nothing can be said of pairs with it." in said.note
    more = unless.read({**gated(), "still": ["x"] * 4000, "stiller": ["y"] * 4000})
    note = unless.explain(unless.Graph(more.domain), more).note
    assert note == "'still', 'stiller' show a single level, so that nothing can be said of pairs with them."


def test_of_very_many_pairs_only_the_linked_are_tested(monkeypatch):
    monkeypatch.setattr(judging, "MOST_PAIRS", 3)
    data = unless.read(gated())
    said = unless.explain(unless.Graph(data.domain, [("g", "u")]), data)
    assert [one.pair for one in said] == [("g", "u")]
    assert said.note.startswith("9 pairs that are never linked were not tested")
    # They count all the same: the link was picked from all ten pairs.
    assert said[0].linked.q == pytest.approx(10 * said[0].linked.p)


def test_columns_of_very_many_levels_are_left_to_others():
    codes = np.arange(12_000)
    columns = {"a": codes % 2, "b": codes // 6_000, "i": codes % 6_000, "j": codes % 5_999}
    data = unless.read(columns, max_levels=6_000)
    said = unless.explain(unless.Graph(data.domain, [("a", "i"), ("b", "i")]), data)
    assert said.note.startswith("Pairs of columns with too many levels to be tested: 1;")
    assert said.about("a", "b") is not None
    assert said.about("i", "j") is None


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        ({"alpha": 0}, SettingError, "alpha"),
        ({"fdr": 1}, SettingError, "fdr"),
        ({"effect": -1}, SettingError, "effect"),
        ({"correction": "bonferroni"}, SettingError, "correction='bonferroni'"),
        ({"max_gate": -1}, SettingError, "max_gate"),
        ({"n_bootstrap": 1.5}, SettingError, "n_bootstrap"),
        ({"gates": "Dept"}, SettingError, "gates='Dept' is one name"),
        ({"gates": 5}, SettingError, "gates=5 is no list"),
        ({"alpha": "0.05"}, SettingError, "alpha"),
        ({"effect": None}, SettingError, "effect"),
        ({"gates": ["Dep"]}, UnknownName, "did you mean 'Dept'"),
        ({"target": "Sex"}, UnknownName, "Sex"),
        ({"context": {"Dept": "A", "Gender": "Male", "Admit": "x"}}, DataError, "'x'"),
    ],
)
def test_wrong_settings_get_one_sentence(berkeley, wanted, error, words):
    with pytest.raises(error, match=words) as caught:
        unless.explain(berkeley.structure_, BERKELEY, **wanted)
    assert str(caught.value).count("\n") == 0


def test_what_is_no_structure_and_what_no_row_shows(titanic):
    with pytest.raises(SettingError, match="its structure_"):
        unless.explain(titanic, TITANIC)
    with pytest.raises(UnknownContext, match="No row has"):
        unless.explain(titanic.structure_, TITANIC, context={"Class": "Crew", "Age": "Child"})


def test_a_context_that_only_the_table_shows_is_none_of_the_model(titanic):
    crew = TITANIC.rows[:, TITANIC.domain.index("Class")] == TITANIC.domain["Class"].code("Crew")
    ashore = Dataset(TITANIC.domain, TITANIC.rows[~crew].copy(), TITANIC.counts[~crew].copy())
    with pytest.raises(UnknownContext, match="The structure has no context with Class = Crew"):
        unless.explain(unless.CSGS().fit(ashore).structure_, TITANIC, context={"Class": "Crew"})


def test_a_target_that_the_context_holds_is_told(titanic):
    said = unless.explain(titanic.structure_, TITANIC, context={"Class": "1st"}, target="Class")
    assert str(said) == "The context holds 'Class' at one level, so that nothing can be said of it."


def shuffled(data, seed):
    """Return the same table with its columns, and nothing else, in another order."""
    names = list(data.names)
    random.Random(seed).shuffle(names)
    return data.select(names)


@settings(deadline=None, derandomize=True, max_examples=25)
@given(datasets(min_variables=2, max_variables=5, max_levels=4))
def test_columns_in_any_order_give_the_same_bytes(data):
    first, second = (
        json.dumps(unless.CSGS().fit(table).statements_.to_dict(tables=True), sort_keys=True)
        for table in (data, shuffled(data, 1))
    )
    assert first == second


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


def test_frames_of_all_kinds(titanic):
    plain = titanic.statements_.to_frame("dict")
    n_tests = sum(len(one.evidence) for one in titanic.statements_)
    assert {len(column) for column in plain.values()} == {n_tests}
    assert plain["where"][0] == "Class in {1st, 2nd} and Sex = Male"
    for backend in ("pandas", "polars", "pyarrow"):
        frame = titanic.statements_.to_frame(backend)
        assert frame.shape == (n_tests, len(plain))
    assert list(titanic.statements_.to_frame()["answer"]) == plain["answer"]
    assert Statements().to_frame("pandas").empty


def test_json_holds_everything(titanic):
    told = json.loads(json.dumps(titanic.statements_.to_dict(tables=True), allow_nan=False))
    for plain, one in zip(told["statements"], titanic.statements_, strict=True):
        assert (tuple(plain["pair"]), plain["sentence"]) == (one.pair, one.sentence)
        for side in (plain["linked"], plain["not_linked"]):
            if side:
                assert sum(np.sum(table["counts"]) for table in side["tables"]) == side["n_rows"]


def test_a_learner_bounds_the_memory_of_its_statements(monkeypatch):
    seen = []
    monkeypatch.setattr("unless.knowledge.presence.parse_memory", lambda memory: seen.append(memory) or 10**9)
    assert unless.CSGS(max_memory="3 GB").fit(BERKELEY).statements_
    assert seen == ["3 GB"]
