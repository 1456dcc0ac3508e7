from itertools import product

import numpy as np
import pytest

import unless
from unless.errors import SettingError
from unless.structures.structure import features_of

DOMAIN = unless.Domain(
    (
        unless.Variable("w", ("0", "1", "2")),
        unless.Variable("b", ("x", "y")),
        unless.Variable("a", ("x", "y")),
        unless.Variable("c", ("x", "y")),
    )
)


def region(**conditions):
    return unless.Region.of(DOMAIN, conditions)


def graph():
    return unless.LabelledGraph(
        DOMAIN,
        [
            unless.Link(("b", "a"), (region(w=["0", "2"], c=["x"]), region(w=["1"]))),
            unless.Link(("a", "c"), (region(b=["x"]), region(b=["y"]))),
        ],
    )


def holds(context, pair):
    if pair == ("a", "b"):
        return context["w"] == "1" or context["c"] == "x"
    return pair == ("a", "c")


def contexts():
    for values in product(*(variable.levels for variable in DOMAIN)):
        yield dict(zip(DOMAIN.names, values, strict=True))


def test_every_context_has_a_graph():
    for context in contexts():
        expected = {pair for pair in graph().edges if holds(context, pair)}
        assert graph().graph(context).edges == expected


def test_a_partial_context_unites_the_graphs_that_agree_with_it():
    for known in ({}, {"w": "0"}, {"w": "0", "c": "y"}, {"c": "y"}):
        agreeing = [context for context in contexts() if known.items() <= context.items()]
        expected = frozenset().union(*(graph().graph(context).edges for context in agreeing))
        assert graph().given(known).edges == expected
    assert graph().is_independent("a", "b", context={"w": "0", "c": "y"})


def test_a_link_whose_regions_cover_everything_is_everywhere():
    assert graph().has_edge("c", "a")
    assert not graph().has_edge("a", "b")
    assert graph().regions("b", "c") == ()
    assert graph().gates == ("b", "c", "w")


def test_the_canonical_model_of_a_table():
    rows = np.array([[DOMAIN[name].code(context[name]) for name in DOMAIN.names] for context in contexts()])
    data = unless.Dataset.from_codes(DOMAIN, rows)
    model = graph().to_canonical(data.select(["a", "b", "c", "w"]))
    assert len(model) == 24
    assert all(graph.edges == canonical.edges for context, canonical in model for graph in [made(context)])
    assert unless.compare_structures(model, graph(), contexts=data).distance == 0


def made(context):
    return graph().graph(context)


def test_comparison_by_regions_counts_all_contexts():
    found = unless.compare_structures(graph(), unless.LabelledGraph(DOMAIN))
    assert found.fn == sum(holds(context, pair) for context in contexts() for pair in graph().edges)
    assert unless.compare_structures(graph(), graph(), by="features").distance == 0


def test_features_are_of_low_order():
    features = features_of(graph())
    said = {str(feature) for feature in features}
    assert "a = x & b = y & w = 1" in said
    assert "a = x & b = y & c = x & w != 1" in said
    assert {"b = x & w = 0", "a = y & c = x"} <= said


def test_it_comes_back_from_a_file(tmp_path):
    unless.save(graph(), tmp_path / "g.unless")
    back = unless.load(tmp_path / "g.unless")
    assert back == graph()
    assert hash(back) == hash(graph())
    unless.save(back, tmp_path / "again.unless")
    assert (tmp_path / "again.unless").read_bytes() == (tmp_path / "g.unless").read_bytes()


def test_it_reads_well():
    assert repr(graph()) == "<LabelledGraph: 4 variables, 2 links, 2 of them gated>"
    assert [str(link) for link in graph()] == [
        "a - b where c = x and w in {0, 2} or w = 1",
        "a - c where b = x or b = y",
    ]


@pytest.mark.parametrize(
    ("links", "words"),
    [
        ([unless.Link(("a", "b")), unless.Link(("b", "a"))], "twice"),
        ([unless.Link(("a", "b"), (unless.Region((("a", ("x",)),)),))], "its own gate"),
        ([unless.Link(("a", "b"), ())], "nowhere"),
        ([unless.Link(("a", "b"), (unless.Region(), unless.Region((("w", ("0",)),))))], "overlap"),
    ],
)
def test_what_is_no_labelled_graph_is_refused(links, words):
    with pytest.raises(SettingError, match=words):
        unless.LabelledGraph(DOMAIN, links)


def test_links_that_are_only_weighed_change_features_and_nothing_else():
    weighed = [
        unless.Link(("b", "c"), (region(w=["1"]),)),
        unless.Link(("b", "a"), (region(w=["0"], c=["y"]),)),
    ]
    both = unless.LabelledGraph(DOMAIN, graph().links, weighed)
    assert both.links == graph().links
    assert [link.pair for link in both.weighed] == [("a", "b"), ("b", "c")]
    assert both != graph()
    assert hash(both) == hash(unless.LabelledGraph(DOMAIN, graph().links, reversed(weighed)))
    assert (both.edges, both.gates, str(both)) == (graph().edges, graph().gates, str(graph()))
    for context in contexts():
        assert both.graph(context) == graph().graph(context)
    assert unless.compare_structures(both, graph()).distance == 0
    # Their features are those that they would have if they were drawn.
    regions = (*graph().regions("a", "b"), region(w=["0"], c=["y"]))
    drawn = [unless.Link(("a", "b"), regions), unless.Link(("a", "c"), graph().regions("a", "c")), weighed[0]]
    assert set(both.features()) == set(unless.LabelledGraph(DOMAIN, drawn).features())
    assert set(graph().features()) < set(both.features())


def test_a_link_is_weighed_where_it_is_not_drawn():
    with pytest.raises(SettingError, match="overlap"):
        unless.LabelledGraph(DOMAIN, graph().links, [unless.Link(("a", "b"), (region(w=["1"], c=["x"]),))])
