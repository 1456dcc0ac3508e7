import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structures.models import canonical_models
from unless.cli.links import Extent, look
from unless.cli.telling import sentence, where_text
from unless.data.domain import Domain, Variable
from unless.errors import UnknownContext
from unless.structures.canonical import CanonicalModel


def model_of(rows, linked, n_levels, counts=None):
    """Make a model whose only possible link is that of the first two variables."""
    domain = Domain(tuple(Variable(f"V{i}", tuple("abcdefghijklmn"[:n])) for i, n in enumerate(n_levels)))
    rows = np.array(rows, dtype=np.uint16)
    edges = np.array(linked, dtype=np.uint8)[:, None]
    return CanonicalModel.from_edges(domain, rows, np.array(counts or [1] * len(rows)), edges)


def told(model, context=None):
    view = look(model, context)
    return [(where_text(link, view), sentence(link, view)) for link in view.links]


def test_one_variable_decides():
    rows = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in range(4)]
    model = model_of(rows, [c == 2 for *_, c in rows], [2, 2, 4])
    assert told(model) == [("only where V2 = c", "V0 - V1: linked only where V2 = c (4 of 16 rows)")]
    model = model_of(rows, [c in (0, 2) for *_, c in rows], [2, 2, 4])
    assert told(model)[0][0] == "only where V2 is a or c"
    model = model_of(rows, [c != 2 for *_, c in rows], [2, 2, 4])
    assert told(model) == [("unless V2 = c", "V0 - V1: linked unless V2 = c (12 of 16 rows)")]


def test_two_variables_decide_together():
    rows = [(a, b, c, d) for a in (0, 1) for b in (0, 1) for c in (0, 1) for d in (0, 1)]
    model = model_of(rows, [c and d for *_, c, d in rows], [2, 2, 2, 2])
    assert told(model) == [("in some contexts", "V0 - V1: linked in 25 % of rows (4 of 16 rows)")]
    assert told(model, {"V2": "b"})[0][0] == "only where V3 = b"
    assert told(model, {"V2": "a"})[0][0] == "not here"
    assert told(model, {"V2": "b", "V3": "b"})[0][0] == "everywhere here"


def test_a_pair_is_not_its_own_reason():
    rows = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    assert told(model_of(rows, [a == 1 for a, *_ in rows], [2, 2, 2]))[0][0] == "in some contexts"


def test_a_long_list_of_levels_is_no_reason():
    rows = [(a, 0, c) for a in (0, 1) for c in range(12)]
    assert told(model_of(rows, [c % 2 for *_, c in rows], [2, 2, 12]))[0][0] == "in some contexts"


def test_the_variable_of_fewest_levels_is_named():
    rows = [(a, a, c, c % 2) for a in (0, 1) for c in range(4)]
    assert told(model_of(rows, [c % 2 for _, _, c, _ in rows], [2, 2, 4, 2]))[0][0] == "only where V3 = b"


def test_rows_are_counted_and_not_contexts():
    rows = [(0, 0, 0), (0, 0, 1)]
    view = look(model_of(rows, [1, 0], [2, 2, 2], counts=[30, 70]))
    assert view.links[0].here == Extent(30, 1)
    assert view.whole == Extent(100, 2)


def test_a_rare_exception_among_many_contexts_is_seen():
    # The few contexts looked at first may agree with V2 while another does not.
    rows = [(a, b, c, d) for a in range(8) for b in range(8) for c in range(2) for d in range(14)]
    linked = [c == 1 for _, _, c, _ in rows]
    n_levels = [8, 8, 2, 14]
    assert told(model_of(rows, linked, n_levels))[0][0] == "only where V2 = b"
    for exception in (1, 40, 701, 1791):
        other = [linked[place] != (place == exception) for place in range(len(rows))]
        assert told(model_of(rows, other, n_levels))[0][0] == "in some contexts"


@given(canonical_models(), st.data())
def test_extents_agree_with_the_graphs_one_by_one(model, data):
    graphs = list(model)
    if not graphs:
        with pytest.raises(UnknownContext):
            look(model)
        return
    anchor = data.draw(st.sampled_from(graphs))[0]
    names = data.draw(st.sets(st.sampled_from(list(anchor))))
    context = {name: anchor[name] for name in names}
    view = look(model, context)
    agreeing = [(c, g) for c, g in graphs if all(c[name] == label for name, label in context.items())]
    assert view.here == Extent(sum(g.n_rows for _, g in agreeing), len(agreeing))
    assert [link.pair for link in view.links] == sorted({edge for _, g in graphs for edge in g.edges})
    for link in view.links:
        inside = [(c, g) for c, g in agreeing if link.pair in g.edges]
        assert link.here == Extent(sum(g.n_rows for _, g in inside), len(inside))
        if link.gate:
            assert all(
                (c[link.gate.variable] in link.gate.linked) == (link.pair in g.edges) for c, g in agreeing
            )
