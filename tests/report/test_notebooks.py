"""What notebooks show is small, static and escaped."""

import inspect
import typing

import numpy as np
import pytest

import unless
from unless.data.dataset import Design
from unless.evaluation.stability import Support
from unless.inference.belief import BeliefReport
from unless.inference.chains import GibbsReport
from unless.inference.exact import ExactSolver
from unless.inference.scores import ConditionalScore
from unless.knowledge.asking import Asked, OddsRatio
from unless.knowledge.evidence import Contrast, Trend
from unless.knowledge.sentences import Gate
from unless.knowledge.statements import Direction, Statements
from unless.learners.base import Estimator
from unless.structures.structure import features_of
from unless.weights.report import Candidate

NASTY = "</td><script>alert(1)</script>"


@pytest.fixture(scope="module")
def things():
    values = [f"{NASTY}{k % 2}" for k in range(60)]
    est = unless.CSGS().fit({NASTY: values, "b\u202e": values, "c": ["x" * 10_000, "y", "z"] * 20})
    model = est.structure_
    network = est.network(est.data_)
    asked = est.ask(NASTY, "b\u202e", given=["c"])
    compared = unless.compare_groups(est.data_, "c")
    wrong = unless.compare_structures(model, unless.Graph(est.data_.domain, []))
    tester = unless.IndependenceTester(est.data_)
    stability = unless.Stability(unless.GGS(), n_resamples=2, random_state=0)
    return {
        "asked": asked,
        "evidence": asked.data,
        "verdict": unless.ask(est.data_, NASTY, "b\u202e"),
        "Bayesian verdict": unless.ask(est.data_, NASTY, "b\u202e", test="bayesian"),
        "fit report": network.fit_report,
        "marginals": network.marginals(),
        "most probable": network.map_query(),
        "score by variable": network.pseudo_log_likelihood(est.data_),
        "intervals": unless.weight_intervals(network, est.data_),
        "comparison of groups": compared,
        "one change": compared.changes[0],
        "comparison of structures": wrong,
        "divergence": unless.kl_divergence(network, network),
        "new stability": stability,
        "stability": unless.Stability(unless.GGS(), n_resamples=2, random_state=0).fit(est.data_),
        "statement": est.statements_[0],
        "evidence of a statement": next(one for one in est.statements_ if one.evidence).evidence[0],
        "statement in a context": est.statements_.given({"c": "y"})[0],
        "data": est.data_,
        "estimator": est,
        "new estimator": unless.CSGS(alpha=0.01),
        "canonical model": model,
        "graph": model.given({}),
        "labelled graph": unless.GGS().fit(est.data_).structure_,
        "features": features_of(model, "cliques"),
        "statements": est.statements_,
        "network": est.network(est.data_),
        "distribution": network.query([NASTY, "b\u202e", "c"]),
        "domain": est.data_.domain,
        "variable": est.data_.domain[NASTY],
        "context": unless.Context({NASTY: values[0]}),
        "condition": unless.Condition(NASTY, values[0]),
        "feature": unless.Feature.of({NASTY: values[0], "b\u202e": values[0]}),
        "link": unless.Link(("b\u202e", NASTY), (unless.Region((("c", ("<script>",)),)),)),
        "region": unless.Region(((NASTY, (values[0], values[1])),)),
        "gate": Gate((unless.Region(((NASTY, (values[0],)),)),), (unless.Region(((NASTY, (values[1],)),)),)),
        "contrast": Contrast(NASTY, values[0], "b\u202e", values[0], 0.9, values[1], 0.1),
        "trend": Trend(NASTY, "b\u202e", 0.5, 60),
        "odds ratio": OddsRatio(2.0, 1.0, None, ((NASTY, "b\u202e"), (NASTY, "b\u202e"))),
        "direction": Direction(Contrast(NASTY, values[0], "b\u202e", values[0], 0.9, values[1], 0.1), NASTY),
        "tester": tester,
        "one test": tester.ask(NASTY, "c"),
        "many tests": tester.ask_all("c"),
        "counts of a pair": next(iter(wrong.pairs.values())),
        "support": Support(0.5, None, 0.5, 2),
        "plan": unless.prepare({NASTY: values, "b\u202e": values}),
        "line of a plan": unless.prepare({NASTY: values, "b\u202e": values}).lines[0],
        "Gibbs report": GibbsReport(4, 100, 10, 1.0, 90.0),
        "belief report": BeliefReport(3, 0.0, True, True),
        "design of a survey": Design(np.ones(2), np.ones(2), np.ones(2), columns=(NASTY,)),
        "prior": unless.Gaussian(1.0) + unless.Laplace(2.0),
        "candidate": Candidate(unless.Gaussian(1.0), -1.0),
        "Pearson test": unless.PearsonTest(),
        "Bayesian test": unless.BayesianTest(),
        "findings": est.statements_.findings,
        "statements in a context": est.statements_.given({"c": "y"}),
        "classifier": unless.UnlessClassifier(target="c"),
    }


KINDS = (
    "asked", "evidence", "verdict", "Bayesian verdict", "fit report", "marginals", "most probable",
    "score by variable", "intervals", "comparison of groups", "one change", "comparison of structures",
    "divergence", "new stability", "stability", "statement", "evidence of a statement",
    "statement in a context", "data", "estimator", "new estimator", "canonical model", "graph",
    "labelled graph", "features", "statements", "network", "distribution", "domain", "variable", "context",
    "condition", "feature", "link", "region", "gate", "contrast", "trend", "odds ratio", "direction",
    "tester", "one test", "many tests", "counts of a pair", "support", "plan", "line of a plan",
    "Gibbs report", "belief report", "prior", "candidate", "Pearson test", "Bayesian test", "findings",
    "statements in a context", "classifier", "design of a survey",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_small_static_and_escaped(things, kind):
    text = things[kind]._repr_html_()
    assert "<script" not in text
    assert "\u202e" not in text
    assert len(text) < 20_000
    assert "<" in text


def test_every_kind_is_looked_at(things):
    assert sorted(KINDS) == sorted(things)


# What results are made of, and nobody looks at.
INNER = {"Detail", "ExactSolver", "FeatureArrays", "StructureView"}


def own_classes(hint):
    """Return the classes of the library in a type."""
    if inspect.isclass(hint) and not typing.get_args(hint):
        return {hint} if hint.__module__.startswith("unless.") else set()
    return set().union(*map(own_classes, typing.get_args(hint)))


def results_of(thing):
    """Return the classes of what a function returns, or of what an object of a class has and returns."""
    named = {one.__name__: one for one in (Asked, ConditionalScore, Estimator, ExactSolver, Statements)}
    named |= {name: getattr(unless, name) for name in unless.__all__}
    if not inspect.isclass(thing):
        return own_classes(typing.get_type_hints(thing, localns=named).get("return"))
    fields = typing.get_type_hints(thing, localns=named)
    found = set().union(*(own_classes(hint) for name, hint in fields.items() if not name.startswith("_")))
    for name, member in inspect.getmembers(thing):
        function = getattr(member, "fget", None) or getattr(member, "func", member)
        if not name.startswith("_") and inspect.isroutine(function) and hasattr(function, "__annotations__"):
            found |= results_of(function)
    return found


def test_whatever_the_library_gives_a_user_has_a_form_for_notebooks():
    public = {getattr(unless, name) for name in unless.__all__}
    waiting, seen = {one for one in public if not inspect.ismodule(one)}, set()
    while waiting:
        thing = waiting.pop()
        seen.add(thing)
        waiting |= {one for one in results_of(thing) if one.__name__ not in INNER} - seen
    classes = {one for one in seen if inspect.isclass(one)}
    assert {Asked, Statements, Gate, Contrast, unless.Domain} <= classes
    assert sorted(one.__name__ for one in classes if not hasattr(one, "_repr_html_")) == []


def test_an_answer_shows_data_model_and_tables(berkeley):
    text = berkeley.ask("Admit", "Gender", context={"Dept": "A"})._repr_html_()
    assert "Admit and Gender where Dept = A" in text
    assert "data: dependent (933 of 4,526 rows" in text
    assert "model: dependent" in text
    assert "<td><bdi>Admitted</bdi></td><td><bdi>512</bdi></td><td><bdi>89</bdi></td>" in text


def test_a_fit_report_says_how_it_ended(berkeley):
    text = berkeley.network(berkeley.data_).fit_report._repr_html_()
    assert "Converged." in text
    assert "iterations" in text


def test_statements_are_listed_with_their_kinds(berkeley):
    text = berkeley.statements_._repr_html_()
    assert "Admit and Gender are linked only when Dept = A" in text
    assert "gated" in text


def test_an_estimator_shows_what_it_learned(berkeley):
    text = berkeley._repr_html_()
    assert "CSGS()" in text
    assert f"{berkeley.n_tests_:,} questions" in text
    assert "21 %" in text


def test_long_lists_are_cut_and_say_so():
    domain = unless.Domain(tuple(unless.Variable(f"v{k}", ("a", "b")) for k in range(30)))
    graph = unless.Graph(domain, [(f"v{k}", f"v{k + 1}") for k in range(29)])
    assert "... and 9 more" in graph._repr_html_()
    assert graph.features()._repr_html_().count("<tr>") == 21


def test_the_heaviest_features_come_first(titanic):
    network = titanic.network(titanic.data_)
    text = network._repr_html_()
    heaviest = list(network.features)[int(abs(network.weights).argmax())]
    first = text.split("<tbody>")[1].split("</tr>")[0]
    assert str(heaviest).replace("&", "&amp;") in first
