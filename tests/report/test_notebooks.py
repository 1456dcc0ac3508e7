"""What notebooks show is small, static and escaped."""

import pytest

import unless
from unless.structures.featuring import features_of

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
    }


KINDS = (
    "asked", "evidence", "verdict", "Bayesian verdict", "fit report", "marginals", "most probable",
    "score by variable", "intervals", "comparison of groups", "one change", "comparison of structures",
    "divergence", "new stability", "stability", "statement", "evidence of a statement",
    "statement in a context", "data", "estimator", "new estimator", "canonical model", "graph",
    "labelled graph", "features", "statements", "network", "distribution",
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
