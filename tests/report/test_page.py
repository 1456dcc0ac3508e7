"""The numbers on the page are those of the API."""

import base64
import re
from dataclasses import replace
from itertools import product

import msgspec
import numpy as np
import pytest

import unless
from unless.data.domain import Region
from unless.knowledge.evidence import standardised_shares
from unless.knowledge.statements import FINDINGS
from unless.report import html
from unless.report.disclosure import Disclosure
from unless.report.html import render, to_json
from unless.report.page import Page
from unless.report.writing import charts_of, gather, pack_rows, what_if, wilson


def n_rows(page, context):
    """Count the rows of a context in the page's data as its script does."""
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
    return int(np.array(held.counts)[inside].sum())


def test_rows_of_every_context_are_those_of_the_table(titanic, titanic_page):
    data = titanic.data_
    for levels in product(*([None, *variable.levels] for variable in data.domain)):
        context = {name: label for name, label in zip(data.names, levels, strict=True) if label is not None}
        inside = Region.of(data.domain, {name: [label] for name, label in context.items()})
        expected = data.counts[inside.holds(data.domain, data.rows)].sum()
        assert n_rows(titanic_page, context) == expected


def test_statements_are_those_of_the_api(titanic, titanic_page):
    said = titanic.statements_.to_dict()
    assert titanic_page.statements == said["statements"]
    assert (titanic_page.settings, titanic_page.statement_note) == (said["settings"], said["note"])
    assert titanic_page.counts == titanic.statements_.counts()


def test_lines_are_findings_and_nothing_else(kinds):
    data, statements = kinds
    page = gather(data, statements)
    drawn = [tuple(sorted((data.names[link.a], data.names[link.b]))) for link in page.links]
    assert drawn == [one.pair for one in statements.findings]
    assert {page.statements[link.statement]["kind"] for link in page.links} == set(FINDINGS)
    for link in page.links:
        gate = statements[link.statement].gate
        assert [data.names[switch] for switch in link.switches] == list(gate.names if gate else ())


def test_headline_lists_and_legend_count_alike(kinds):
    data, statements = kinds
    page, counts = gather(data, statements), statements.counts()
    assert page.counts == counts
    assert all(counts.values())
    for kind, number in counts.items():
        assert re.search(rf"\b{number} {kind}\b", page.headline)
    assert page.headline.startswith(f"{len(statements.findings)} findings: ")
    text = html.findings(page)
    for kind in ("linked", "gated", "differs", "partly", "determined", "associated"):
        assert text.count(f'<li class="finding {kind}">') == counts[kind]
    assert f"{counts['associated']} pairs associated, no finding" in text
    assert f"{counts['open']} pairs open" in text
    assert f"{counts['unlinked']} pairs unlinked" in text
    legend = html.explorer(page)
    table = html.table(page)
    for kind, number in counts.items():
        assert (f"</svg> {kind} ({number})" in legend) == (kind in FINDINGS)
        assert f'<option value="{kind}">{kind} ({number})</option>' in table
        assert table.count(f'data-kind="{kind}"') == number


def test_findings_stand_first_and_what_is_no_finding_apart(kinds):
    text = html.findings(gather(*kinds))
    order = re.findall(r'<li class="finding (\w+)">', text)
    assert order[0] == "gated"
    assert order[-4:] == ["determined", "associated", "associated", "associated"]
    begin = text.index('<details id="associated"')
    assert "finding associated" not in text[:begin]
    assert "data-show" not in text[begin:]


def test_what_is_given_is_said_with_each_finding(kinds, berkeley_page):
    page = gather(*kinds)
    text = html.findings(page)
    assert (
        text.count('class="given"') == page.counts["associated"] + len(page.links) - page.counts["determined"]
    )
    assert "Given <bdi>a collider</bdi>, <bdi>second</bdi>, <bdi>x</bdi>, <bdi>y</bdi>." in text
    assert "Given no column beside its gate." in html.findings(berkeley_page)


def test_no_test_is_run_and_no_table_counted_for_a_page(kinds, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the page is built from finished values")

    monkeypatch.setattr("unless.knowledge.evidence._Rows.of", refuse)
    monkeypatch.setattr("unless.knowledge.asking.evidence_of", refuse)
    monkeypatch.setattr("unless.structures.structure.link_shares", refuse)
    assert gather(*kinds).charts


def test_a_page_is_made_of_its_values_alone(titanic_page):
    # As JSON keeps them: nothing else is known to what makes the file.
    again = msgspec.json.decode(msgspec.json.encode(titanic_page), type=Page)
    assert render(again) == render(titanic_page)


def test_the_file_holds_what_was_built(titanic, titanic_file, read_page):
    page = read_page(titanic_file)
    assert page.statements == titanic.statements_.to_dict()["statements"]
    assert page.n_rows == titanic.data_.n_rows
    assert dict(page.about)["Learner"] == "CSGS"
    assert "alpha = 0.05" in dict(page.about)["Its settings"]
    assert f"{titanic.n_tests_:,}" in dict(page.about)["Questions asked of the table"]


def test_bars_are_the_tables_of_the_evidence(berkeley, berkeley_page):
    for statement, charts in zip(berkeley.statements_, berkeley_page.charts, strict=True):
        assert [chart.evidence for chart in charts] == list(range(len(statement.evidence)))
        for chart, side in zip(charts, statement.evidence, strict=True):
            tables = side.tables.transpose(0, 2, 1) if chart.column else side.tables
            plain = chart.strata or [chart.whole]
            assert [part.counts for part in plain] == tables.tolist()
            assert sum(part.n_rows for part in plain) == chart.whole.n_rows == side.n_rows
            for part, table in zip(plain, tables, strict=True):
                assert np.allclose(part.shares, table / table.sum(axis=0), atol=1e-6)
            assert chart.whole.given == (list(side.table_given) if len(tables) > 1 else [])
            assert np.allclose(chart.whole.shares, standardised_shares(tables), atol=1e-6)


def test_the_figures_of_a_sentence_are_bars(kinds):
    data, statements = kinds
    n_told = 0
    for one, charts in zip(statements, gather(data, statements).charts, strict=True):
        for chart in charts:
            told = one.evidence[chart.evidence].contrast
            if told is None:
                continue
            column, other = (data.domain[one.pair[end]] for end in (chart.column, 1 - chart.column))
            assert (column.name, other.name) == (told.column, told.other)
            row = chart.whole.a.index(column.levels.index(told.level))
            for label, share in ((told.at_high, told.high), (told.at_low, told.low)):
                place = chart.whole.b.index(other.levels.index(label))
                assert chart.whole.shares[row][place] == pytest.approx(share, abs=1e-6)
                assert chart.whole.low[row][place] <= share <= chart.whole.high[row][place]
                n_told += 1
    assert n_told > 10


def test_a_link_seen_only_given_others_has_its_picture_given_them(kinds):
    data, statements = kinds
    page = gather(data, statements)
    place = next(k for k, one in enumerate(statements) if one.pair == ("first", "noise"))
    (chart,) = page.charts[place]
    assert statements[place].sentence.startswith("first and noise are linked once a collider")
    assert "a collider" in chart.whole.given
    crude = data.select(["first", "noise"])
    table = np.zeros((2, 2))
    np.add.at(table, tuple(crude.rows.T), crude.counts)
    shares = (table / table.sum(axis=0))[0]
    # Alone they show nothing; the bars, given the others, do.
    assert abs(shares[0] - shares[1]) < 0.05
    assert abs(chart.whole.shares[0][0] - chart.whole.shares[0][1]) > 0.3


def test_limits_of_a_mix_are_wider_than_those_of_as_many_rows():
    tables = np.array([[[90, 1], [10, 9]], [[5, 40], [5, 60]]])
    graph, data = _pair_given(tables)
    one = unless.explain(graph, data)[0]
    side = replace(one.evidence[0], tables=tables, table_given=("c",), strata=(("x",), ("y",)), contrast=None)
    (chart,) = charts_of(replace(one, evidence=(side,)), data.domain, Disclosure())
    whole = chart.whole
    shares, rows = np.array(whole.shares), np.array(whole.rows)
    low, high = wilson(shares * rows, np.broadcast_to(rows, (2, 2)))
    assert (np.array(whole.low) <= low + 1e-6).all()
    assert (np.array(whole.high) >= high - 1e-6).all()
    assert np.allclose(shares.sum(axis=0), 1)


def _pair_given(tables):
    domain = unless.Domain(tuple(unless.Variable(name, ("x", "y")) for name in "abc"))
    codes = [(a, b, c) for c in (0, 1) for a in (0, 1) for b in (0, 1)]
    data = unless.Dataset.from_codes(domain, codes, tables.ravel())
    return unless.Graph(domain, [("a", "b")]), data


def test_probabilities_are_those_of_the_network(titanic, titanic_page):
    network = titanic.network(titanic.data_)
    joint = np.frombuffer(base64.b64decode(titanic_page.what_if.joint), "<f8")
    answer = network.query(titanic.data_.names, method="exact")
    assert np.array_equal(joint, answer.probabilities.ravel())
    before = network.marginals()
    assert titanic_page.what_if.before == [p for name in before for p in before[name].probabilities]


def test_a_larger_network_is_asked_about_single_gate_levels(titanic, monkeypatch):
    monkeypatch.setattr("unless.report.writing.MOST_STATES", 10)
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


@pytest.mark.parametrize("setting", [{"network": 5}, {"title": 5}])
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


def test_probabilities_are_worked_out_where_they_are_asked_for(titanic, tmp_path, read_page):
    for network in (None, False):
        titanic.report(tmp_path / "without.html", network=network)
        answer = read_page(tmp_path / "without.html").what_if
        assert (answer.kind, answer.joint) == ("none", "")
        assert "est.report(path, network=True)" in answer.how
        assert "unless report --what-if" in answer.how
    titanic.report(tmp_path / "given.html", network=titanic.network(titanic.data_))
    titanic.report(tmp_path / "asked.html", network=True)
    assert (tmp_path / "asked.html").read_bytes() == (tmp_path / "given.html").read_bytes()
    unless.write_report(titanic.structure_, titanic.data_, tmp_path / "structure.html", network=True)
    assert read_page(tmp_path / "structure.html").what_if == read_page(tmp_path / "asked.html").what_if


def test_the_same_page_gives_the_same_bytes(titanic, tmp_path):
    again = unless.CSGS().fit(unless.datasets.load_titanic())
    paths = tmp_path / "a.html", tmp_path / "b.html"
    for est, path in zip((titanic, again), paths, strict=True):
        est.report(path, title="Titanic")
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_saved_model_gives_the_same_page(titanic, titanic_file, tmp_path):
    unless.save(titanic, tmp_path / "m.unless")
    unless.load(tmp_path / "m.unless").report(tmp_path / "m.html", title="Titanic", network=True)
    assert (tmp_path / "m.html").read_bytes() == titanic_file.read_bytes()


def test_json_comes_back_as_it_was(titanic_page):
    assert msgspec.json.decode(to_json(titanic_page), type=Page) == titanic_page


def test_too_many_contexts_leave_the_rarest_out_and_say_so(titanic):
    held = pack_rows(titanic.data_, most_bytes=80)
    assert held.n == 80 // (4 + 4)
    assert sum(held.counts) == sum(sorted(titanic.data_.counts)[-held.n :])
    assert "10 most frequent of 24 contexts" in held.note


def test_too_many_statements_leave_the_last_out_and_say_so(monkeypatch):
    monkeypatch.setattr("unless.report.writing.MOST_STATEMENTS", 500)
    rng = np.random.default_rng(0)
    data = unless.read({f"v{k:02d}": rng.integers(0, 2, 60).astype(str) for k in range(33)})
    est = unless.GSMN().fit(data)
    assert len(est.statements_) == 528
    page = gather(data, est.statements_)
    assert len(page.statements) == 500
    assert sum(page.counts.values()) == 528
    assert "lists the first 500 of 528 statements" in page.left_out[-1]


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


def test_rows_of_a_survey_are_said_to_be_those_of_the_file(tmp_path, read_page):
    rng = np.random.default_rng(4)
    sex = rng.choice(["f", "m"], 300)
    vote = np.where(rng.random(300) < 0.8, sex, "x")
    table = {"sex": list(sex), "vote": list(vote), "w": rng.uniform(0.2, 3, 300).round(3).tolist()}
    learned = unless.learn(table, weight_column="w")
    learned.report(tmp_path / "one.html")
    text = (tmp_path / "one.html").read_text()
    assert "300 rows of a survey and 2 columns were looked at; numbers of rows are those of the table" in text
    unless.save(learned, tmp_path / "m.unless")
    loaded = unless.load(tmp_path / "m.unless")
    kept = loaded.data_.n_rows
    assert kept < 300
    loaded.report(tmp_path / "two.html")
    text = (tmp_path / "two.html").read_text()
    assert (
        f"300 rows of a survey and 2 columns were looked at; numbers of rows under a chosen context are of "
        f"{kept} rows drawn alike" in text
    )
    assert ["Table", f"300 rows of a survey (kept as {kept} drawn alike), 2 columns, 4 different rows"] in [
        list(one) for one in read_page(tmp_path / "two.html").about
    ]
    assert f"{kept} rows and" not in text
