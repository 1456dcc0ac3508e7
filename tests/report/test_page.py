"""The numbers on the page are those of the API."""

import base64
from itertools import product

import msgspec
import numpy as np
import pytest

import unless
from unless.report.build import MOST_STATEMENTS, build
from unless.report.contexts import hold
from unless.report.page import Page, to_json
from unless.report.whatif import what_if


def look(page, context):
    """Look up a context in the page's data as its script does; the naive twin of look() in contexts.js."""
    held = page.contexts
    codes = [
        np.frombuffer(base64.b64decode(text), f"<u{width}")
        for text, width in zip(held.codes, held.code_bytes, strict=True)
    ]
    names = [variable.name for variable in page.variables]
    inside = np.ones(held.n, dtype=bool)
    for name, label in context.items():
        place = names.index(name)
        inside &= codes[place] == page.variables[place].levels.index(label)
    graph = np.frombuffer(base64.b64decode(held.graph), "<u4")
    graphs = np.frombuffer(base64.b64decode(held.graphs), np.uint8).reshape(held.n_graphs, held.stride)
    bits = np.unpackbits(graphs, axis=1, bitorder="little", count=len(page.links))
    counts = np.array(held.counts)
    n_rows = int(counts[inside].sum())
    shares = (counts[inside] @ bits[graph[inside]]) / n_rows
    pairs = [tuple(sorted((names[link.a], names[link.b]))) for link in page.links]
    return n_rows, dict(zip(pairs, shares.tolist(), strict=True))


@pytest.mark.parametrize("learner", ["CSGS", "CSPC", "GSMN"])
def test_links_of_every_context_are_those_of_the_model(learner):
    data = unless.datasets.load_titanic()
    est = getattr(unless, learner)().fit(data)
    page = build(est.structure_, data, est.statements_)
    for levels in product(*([None, *variable.levels] for variable in data.domain)):
        context = {name: label for name, label in zip(data.names, levels, strict=True) if label is not None}
        if learner == "GSMN":
            n_rows, shares = look(page, {})
            assert {pair for pair, share in shares.items() if share} <= set(est.structure_.edges)
            assert n_rows == data.n_rows
            continue
        try:
            graph = est.structure_.given(context)
        except unless.errors.UnknownContext:
            continue
        n_rows, shares = look(page, context)
        assert n_rows == graph.n_rows
        for pair, share in shares.items():
            # The same sums of whole numbers, divided once: equal to the last bit.
            assert share == graph.shares.get(pair, 0.0)


def test_statements_are_those_of_the_api(titanic, titanic_page):
    said = titanic.statements_.to_dict()
    assert titanic_page.statements == said["statements"]
    assert (titanic_page.settings, titanic_page.statement_note) == (said["settings"], said["note"])
    drawn = {one.pair for one in titanic.statements_ if one.claim != "never" and one.is_dependent}
    names = titanic.data_.names
    assert {
        tuple(sorted((names[link.a], names[link.b]))) for link in titanic_page.links if link.drawn
    } == drawn


def test_the_file_holds_what_was_built(titanic, titanic_file, read_page):
    page = read_page(titanic_file)
    assert page.statements == titanic.statements_.to_dict()["statements"]
    assert page.n_rows == titanic.data_.n_rows
    assert dict(page.about)["Learner"] == "CSGS"
    assert "alpha = 0.05" in dict(page.about)["Its settings"]
    assert f"{titanic.n_tests_:,}" in dict(page.about)["Questions asked of the table"]


def test_bars_are_the_tables_of_the_data(berkeley, berkeley_page):
    data = berkeley.data_
    for statement, parts in zip(berkeley.statements_, berkeley_page.bars, strict=True):
        first, second = statement.pair
        for part in parts:
            where = dict([part.where.split(" = ")]) if part.where else {}
            asked = berkeley.ask(first, second, context=where)
            assert part.counts == asked.data.tables.sum(axis=0).tolist()
            assert (part.answer, part.n_rows, part.p) == (asked.data.answer, asked.data.n_rows, asked.data.p)
        assert sum(part.n_rows for part in parts) == data.n_rows


def test_sides_of_a_gate_are_those_of_the_statement(titanic, titanic_page):
    for statement, parts in zip(titanic.statements_, titanic_page.bars, strict=True):
        if statement.gate is not None:
            rows = sum(part.n_rows for part in parts if part.is_linked)
            assert rows == statement.linked.n_rows


def test_probabilities_are_those_of_the_network(titanic, titanic_page):
    network = titanic.network(titanic.data_)
    joint = np.frombuffer(base64.b64decode(titanic_page.what_if.joint), "<f8")
    answer = network.query(titanic.data_.names, method="exact")
    assert np.array_equal(joint, answer.probabilities.ravel())
    before = network.marginals()
    assert titanic_page.what_if.before == [p for name in before for p in before[name].probabilities]


def test_a_larger_network_is_asked_about_single_gate_levels(titanic, monkeypatch):
    monkeypatch.setattr("unless.report.whatif.MOST_STATES", 10)
    network, domain = titanic.network(titanic.data_), titanic.data_.domain
    answer = what_if(network, domain, [0, 1])
    assert (answer.kind, len(answer.given)) == ("gates", 6)
    for one in answer.given:
        variable = domain.variables[one.variable]
        marginals = network.marginals({variable.name: variable.levels[one.code]})
        assert one.marginals == [p for name in domain.names for p in marginals[name].probabilities]


def test_a_network_of_another_table_is_refused(titanic, berkeley, tmp_path):
    with pytest.raises(unless.errors.SettingError, match="other variables or levels"):
        titanic.report(tmp_path / "r.html", network=berkeley.network(berkeley.data_))
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("setting", [{"network": True}, {"title": 5}])
def test_a_wrong_setting_is_named(setting, titanic, tmp_path):
    with pytest.raises(unless.errors.SettingError, match=f"{next(iter(setting))}="):
        titanic.report(tmp_path / "r.html", **setting)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_no_text_is_refused_in_a_sentence(tmp_path):
    domain = unless.Domain((unless.Variable("a\ud800", ("x", "y")), unless.Variable("b", ("x", "y"))))
    data = unless.Dataset.from_codes(domain, [[0, 0], [1, 1]], [30, 30])
    with pytest.raises(unless.errors.SettingError, match="not valid Unicode"):
        unless.write_report(unless.Graph(domain, [("a\ud800", "b")]), data, tmp_path / "r.html")


def test_what_reading_did_is_said_of_the_table_shown(titanic, tmp_path, read_page):
    domain = titanic.data_.domain
    other = unless.Dataset.from_codes(domain, titanic.data_.rows, titanic.data_.counts, ["Read another way."])
    titanic.report(tmp_path / "a.html", data=other)
    unless.write_report(titanic.structure_, other, tmp_path / "b.html")
    for name in ("a.html", "b.html"):
        assert read_page(tmp_path / name).notes[0] == "Read another way."


def test_a_page_without_network_says_so(titanic):
    assert what_if(None, titanic.data_.domain, []).kind == "none"


def test_the_same_page_gives_the_same_bytes(titanic, tmp_path):
    again = unless.CSGS().fit(unless.datasets.load_titanic())
    paths = tmp_path / "a.html", tmp_path / "b.html"
    for est, path in zip((titanic, again), paths, strict=True):
        est.report(path, title="Titanic")
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_saved_model_gives_the_same_page(titanic, titanic_file, tmp_path):
    unless.save(titanic, tmp_path / "m.unless")
    unless.load(tmp_path / "m.unless").report(tmp_path / "m.html", title="Titanic")
    assert (tmp_path / "m.html").read_bytes() == titanic_file.read_bytes()


def test_json_comes_back_as_it_was(titanic_page):
    assert msgspec.json.decode(to_json(titanic_page), type=Page) == titanic_page


def test_too_many_contexts_leave_the_rarest_out_and_say_so(titanic):
    pairs = [one.pair for one in titanic.statements_]
    held = hold(titanic.structure_, titanic.data_, pairs, most_bytes=130)
    assert held.contexts.n == 130 // (4 + 8 + 1)
    assert sum(held.contexts.counts) == sum(sorted(titanic.data_.counts)[-held.contexts.n :])
    assert "10 most frequent of 24 contexts" in held.left_out[0]
    assert held.contexts.note == held.left_out[0]


def test_too_many_statements_leave_the_least_telling_out_and_say_so():
    rng = np.random.default_rng(0)
    data = unless.read({f"v{k:02d}": rng.integers(0, 2, 60).astype(str) for k in range(33)})
    est = unless.GSMN().fit(data)
    assert len(est.statements_) == 528
    page = build(est.structure_, data, est.statements_)
    assert len(page.statements) == MOST_STATEMENTS
    assert "500 most telling of 528 statements" in page.left_out[-1]


def test_a_table_that_says_nothing_still_gives_a_page(tmp_path):
    est = unless.CSGS().fit({"a": ["x", "y"], "b": ["x", "y"]})
    est.report(tmp_path / "two.html")
    assert "fewer than 5 say nothing" in (tmp_path / "two.html").read_text()


@pytest.mark.parametrize("learner", ["GGS", "GSMN", "DTSL"])
def test_other_structures_are_shown_by_their_table(learner, tmp_path, read_page):
    data = unless.datasets.load_ucb_admissions()
    est = getattr(unless, learner)().fit(data)
    est.report(tmp_path / "r.html")
    page = read_page(tmp_path / "r.html")
    assert page.n_rows == 4526
    assert [one["pair"] for one in page.statements] == [list(one.pair) for one in est.statements_]
