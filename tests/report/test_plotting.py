"""Figures draw what the model says, on axes that are given back."""

from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

import unless
from unless.knowledge.statements import FINDINGS
from unless.report import plotting

matplotlib.use("Agg")
from matplotlib import pyplot


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def lines(axes):
    """Return how each link is drawn, by its style and colour."""
    drawn = [line for line in axes.lines if len(line.get_xdata()) == 2]
    names = {"-": "solid", "--": "dashed", ":": "dotted"}
    return sorted((names.get(line.get_linestyle(), "dashed"), line.get_color()) for line in drawn)


def solid(axes):
    return sum(style == "solid" for style, _ in lines(axes))


def test_links_are_drawn_by_kind_and_by_what_they_say_in_the_context(berkeley):
    gated, linked = plotting.COLOURS["gated"], plotting.COLOURS["linked"]
    assert lines(unless.plot_links(berkeley)) == [("dashed", gated), ("solid", linked), ("solid", linked)]
    axes = unless.plot_links(berkeley, context={"Dept": "B"})
    # Dept is fixed and has no links.
    assert lines(axes) == [("dashed", plotting.GONE)]
    assert lines(unless.plot_links(berkeley, context={"Dept": "A"})) == [("solid", gated)]
    assert axes.get_title() == "Dept = B"
    assert {text.get_text() for text in axes.texts} >= {"Admit", "Dept", "Gender"}


def test_every_kind_has_its_colour_and_mark(kinds):
    data, statements = kinds
    learned = SimpleNamespace(structure_=unless.Graph(data.domain, []), data_=data, statements_=statements)
    axes = unless.plot_links(learned)
    counts = statements.counts()
    colours = [colour for _, colour in lines(axes)]
    assert {colour: colours.count(colour) for colour in colours} == {
        plotting.COLOURS[kind]: counts[kind] for kind in FINDINGS
    }
    marks = [line.get_marker() for line in axes.lines if len(line.get_xdata()) == 1]
    assert marks.count("D") == counts["gated"] + counts["partly"]
    assert marks.count("o") == counts["differs"]
    assert marks.count("s") == counts["determined"]
    legend = unless.plot_evidence(learned).get_legend()
    assert next(text.get_text() for text in legend.get_texts()) == "gated"


def test_an_arrow_comes_from_the_gate_to_the_middle_of_the_link(berkeley):
    axes = unless.plot_links(berkeley)
    (arrow,) = [text for text in axes.texts if not text.get_text()]
    spots = {text.get_text(): np.array(text.get_position()) for text in axes.texts if text.get_text()}
    assert np.allclose(arrow.xy, (spots["Admit"] + spots["Gender"]) / 2)
    assert np.allclose(arrow.get_position(), spots["Dept"])
    (gate,) = [line for line in axes.lines if line.get_marker() == "D"]
    assert gate.get_color() == plotting.COLOURS["gated"]


def test_small_multiples_share_a_layout(berkeley):
    axes = unless.plot_contexts(berkeley, by="Dept").ravel()
    assert [one.get_title() for one in axes] == [f"Dept = {level}" for level in "ABCDEF"]
    assert [solid(one) for one in axes] == [1, 0, 0, 0, 0, 0]
    assert [len(lines(one)) for one in axes] == [1] * 6
    places = [[text.get_position() for text in one.texts if text.get_text()] for one in axes]
    assert all(one == places[0] for one in places)


def test_evidence_is_that_of_the_statements(titanic):
    axes = unless.plot_evidence(titanic)
    sides = [side for one in titanic.statements_ for side in one.evidence]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert len(labels) == len(sides)
    assert labels[:2] == ["Age – Survived", "Age – Survived, elsewhere"]
    dots = [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 1]
    assert dots == [side.cramers_v for side in sides]


def test_a_network_is_drawn_by_its_features(titanic):
    network = titanic.network(titanic.data_)
    axes = unless.plot_network(network)
    assert solid(axes) == len(network.features.graph().edges)


def test_axes_are_taken_and_given_back(berkeley):
    _, mine = pyplot.subplots()
    assert unless.plot_links(berkeley, ax=mine) is mine
    assert unless.plot_evidence(berkeley, ax=pyplot.subplots()[1]) is not mine
    with pytest.raises(unless.errors.SettingError, match="6 levels"):
        unless.plot_contexts(berkeley, by="Dept", axes=[mine])


def test_a_structure_needs_its_table(berkeley):
    with pytest.raises(unless.errors.SettingError, match="Give the table"):
        unless.plot_links(berkeley.structure_)
    assert len(lines(unless.plot_links(berkeley.structure_, berkeley.data_))) == 3


def test_an_unseen_context_is_refused(titanic):
    with pytest.raises(unless.errors.SettingError, match="No row has"):
        unless.plot_links(titanic, context={"Class": "Crew", "Age": "Child"})


def test_a_name_is_no_formula():
    rows = [("$a", "$b")[k % 2] for k in range(40)]
    est = unless.GSMN().fit({"$x$ \\frac": rows, "$y": rows})
    axes = unless.plot_links(est)
    # A formula that is none would fail here, and one that is would be drawn as another name.
    axes.figure.canvas.draw()
    names = [text for text in axes.texts if text.get_text() in ("$x$ \\frac", "$y")]
    assert len(names) == 2
    assert not any(text.get_parse_math() for text in names)
    unless.plot_evidence(est).figure.canvas.draw()


def test_a_refused_context_leaves_no_empty_figure(titanic):
    with pytest.raises(unless.errors.SettingError, match="No row has"):
        unless.plot_links(titanic, context={"Class": "Crew", "Age": "Child"})
    assert pyplot.get_fignums() == []
