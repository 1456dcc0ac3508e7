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
    return {
        "data": est.data_,
        "estimator": est,
        "new estimator": unless.CSGS(alpha=0.01),
        "canonical model": model,
        "graph": model.given({}),
        "labelled graph": unless.GGS().fit(est.data_).structure_,
        "features": features_of(model, "cliques"),
        "statements": est.statements_,
        "network": est.network(est.data_),
        "distribution": est.network(est.data_).query(NASTY),
    }


KINDS = (
    "data", "estimator", "new estimator", "canonical model", "graph", "labelled graph", "features",
    "statements", "network", "distribution",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_small_static_and_escaped(things, kind):
    text = things[kind]._repr_html_()
    assert "<script" not in text
    assert "\u202e" not in text
    assert len(text) < 20_000
    assert "<" in text


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
