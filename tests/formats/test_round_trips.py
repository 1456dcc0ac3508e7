"""Whatever is written is read as it was, and written again byte by byte."""

import contextlib
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.models import log_probabilities, odd_domains, odd_models, same_distribution
from strategies import datasets
from structures.models import canonical_models, contexts, graphs, steady
from unless.data.dataset import Dataset
from unless.errors import SettingError
from unless.formats.catalogue import read_model, write_model
from unless.formats.graphml import read_graphml, write_graphml
from unless.formats.json_model import names_path
from unless.formats.libra import read_data, write_data
from unless.structures.graph import Graph

# Trips of files are slower than most examples, and few words are odd enough to matter.
few = settings(steady, max_examples=40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("trips")


def trip(model, folder, ending):
    first, second = folder / f"one{ending}", folder / f"two{ending}"
    write_model(model, first)
    read = read_model(first)
    write_model(read, second)
    assert first.read_bytes() == second.read_bytes()
    assert [(v.name, v.levels, v.kind) for v in read.domain] == [
        (v.name, v.levels, v.kind) for v in model.domain
    ]
    if names_path(first).exists():
        assert names_path(first).read_bytes() == names_path(second).read_bytes()
    return read


@pytest.mark.parametrize("ending", [".unless", ".mn", ".json"])
@few
@given(model=odd_models())
def test_formats_of_features_keep_every_feature_and_bit(folder, ending, model):
    read = trip(model, folder, ending)
    assert read.features == model.features
    np.testing.assert_array_equal(read.weights, model.weights)


@few
@given(model=odd_models())
def test_tables_keep_the_distribution(folder, model):
    if log_probabilities(model) is None:
        with contextlib.suppress(SettingError):
            trip(model, folder, ".uai")
        return
    # What is less likely than the smallest double is still possible, but not how little.
    assert same_distribution(trip(model, folder, ".uai"), model, floor=-690)


@few
@given(st.data())
def test_graphs_come_back_in_their_roles(folder, data):
    domain = data.draw(odd_domains())
    model = data.draw(canonical_models(max_variables=4))
    context, canonical = next(iter(model))
    partial = {name: context[name] for name in list(context)[:1]}
    for graph in (
        data.draw(graphs(domain)),
        canonical,
        model.given(partial),
        model.features().given(data.draw(contexts(model.domain))),
    ):
        write_graphml(graph, folder / "one.graphml")
        read = read_graphml(folder / "one.graphml")
        write_graphml(read, folder / "two.graphml")
        assert (folder / "one.graphml").read_bytes() == (folder / "two.graphml").read_bytes()
        assert read == graph
        assert read.domain == graph.domain
        assert type(read) is type(graph)
        for said in ("context", "n_rows", "shares"):
            assert getattr(read, said, None) == getattr(graph, said, None)


@few
@given(data=datasets(max_rows=30))
def test_tables_of_rows_come_back(folder, data):
    write_data(data, folder / "one.data")
    read = read_data(folder / "one.data")
    write_data(read, folder / "two.data")
    assert read == data
    assert (folder / "one.data").read_bytes() == (folder / "two.data").read_bytes()


@few
@given(domain=odd_domains())
def test_odd_names_come_back_with_rows(folder, domain):
    data = Dataset.from_codes(domain, np.zeros((2, len(domain)), dtype=np.uint16))
    write_data(data, folder / "odd.data")
    assert read_data(folder / "odd.data").domain == domain


def test_networkx_reads_what_is_written(tmp_path):
    networkx = pytest.importorskip("networkx")
    from formats.models import small_model

    model = small_model()
    write_model(model, tmp_path / "x.graphml")
    read = networkx.read_graphml(tmp_path / "x.graphml")
    names = dict(read.nodes(data="name"))
    assert dict(read.nodes(data="label")) == names == {"n0": "Dept", "n1": "Admit", "n2": "Sex"}
    assert {frozenset((names[a], names[b])) for a, b in read.edges} == set(
        map(frozenset, model.features.graph().edges)
    )


def test_a_graph_written_without_labels_is_still_read(tmp_path):
    from formats.models import small_model

    graph = small_model().features.graph()
    write_graphml(graph, tmp_path / "new.graphml")
    text = (tmp_path / "new.graphml").read_text()
    old = "".join(
        re.sub(r'<data key="label">.*?</data>', "", line) for line in text.splitlines(keepends=True)
    )
    old = old.replace('<key id="label" for="node" attr.name="label" attr.type="string"/>\n', "")
    assert "label" not in old
    (tmp_path / "old.graphml").write_text(old)
    assert read_graphml(tmp_path / "old.graphml") == graph


def test_labels_of_other_programs_are_no_names(tmp_path):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph([("a", "b")])
    networkx.set_node_attributes(graph, "same", "label")
    networkx.write_graphml(graph, tmp_path / "x.graphml")
    assert read_graphml(tmp_path / "x.graphml").edges == {("a", "b")}


def test_what_networkx_writes_is_read(tmp_path):
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph([("a b", "c"), ("c", "d")])
    networkx.write_graphml(graph, tmp_path / "x.graphml")
    read = read_graphml(tmp_path / "x.graphml")
    assert isinstance(read, Graph)
    assert read.edges == {("a b", "c"), ("c", "d")}
