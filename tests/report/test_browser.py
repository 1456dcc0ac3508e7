"""The page in a browser: what is chosen by keyboard is what the model says."""

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import unless
from unless.knowledge.sentences import decimal

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
# How each link is drawn, as the canvas was told.
DRAWN = """id => {
  const cy = document.getElementById(id)._cyreg.cy;
  const name = node => node.data("label").split("\\n")[0];
  return cy.edges(".link").map(edge => [
    name(edge.source()), name(edge.target()), edge.data("kind"), edge.data("state"),
    edge.style("line-style"), edge.style("line-color"),
    cy.getElementById(edge.id().replace("e", "m")).style("shape"),
  ]);
}"""
STATES = ("holds", "holds in part", "absent", "not settled", "fixed")


def drawn(page, graph="graph"):
    """Return the state of each line that is drawn."""
    return {tuple(sorted((a, b))): state for a, b, _, state, *_ in page.evaluate(DRAWN, graph)}


def listed(page):
    """Return the state of each finding, as the lists beside the graph say."""
    return {
        tuple(text.split(" – ")): state
        for state in STATES
        for text in page.locator(f"#state-{state.replace(' ', '-')} button").all_inner_texts()
    }


def expected(statements, context):
    """Return the state of each finding, as the API says."""
    return {one.pair: one.state for one in statements.given(context) if one.statement.is_finding}


def without_fixed(states):
    return {pair: state for pair, state in states.items() if state != "fixed"}


def choose(page, name, label):
    """Choose a level as somebody would who has only a keyboard: go to its group, then press arrows."""
    legend = page.locator("legend bdi", has_text=re.compile(f"^{name}$"))
    group = page.get_by_role("group").filter(has=legend)
    group.get_by_role("radio", checked=True).focus()
    for _ in range(group.get_by_role("radio").count()):
        chip = page.evaluate("document.activeElement.nextElementSibling.querySelector('bdi')?.textContent")
        if chip == label:
            return
        page.keyboard.press("ArrowRight")
    raise AssertionError(f"no chip {label}")


def test_a_context_is_chosen_by_keyboard_alone(visit, titanic, titanic_file):
    page = visit(titanic_file)
    assert drawn(page) == listed(page) == expected(titanic.statements_, {})
    for context in ({"Sex": "Female"}, {"Sex": "Female", "Class": "2nd"}, {"Class": "Crew"}):
        page.keyboard.press("Control+Home")
        page.locator("#reset").press("Enter")
        for name, label in context.items():
            choose(page, name, label)
        states = expected(titanic.statements_, context)
        assert listed(page) == states
        # Columns that the context fixes have no links.
        assert drawn(page) == without_fixed(states)
        n_rows = titanic.structure_.given(context).n_rows
        assert f"{n_rows:,} of 2,201 rows. Findings: " in page.inner_text("#status")


def test_every_pair_shows_its_state_in_the_table(visit, titanic, titanic_file, kinds, kinds_file):
    for statements, path, context in (
        (titanic.statements_, titanic_file, {"Class": "Crew"}),
        (kinds[1], kinds_file, {"gate": "g1", "noise": "n0"}),
        (kinds[1], kinds_file, {"gate": "g0"}),
    ):
        page = visit(path)
        more = page.locator("#more-chips summary")
        if more.count():
            more.click()
        for name, label in context.items():
            choose(page, name, label)
        cells = page.locator("#statements tbody .state").all_inner_texts()
        assert cells == [
            one.state if one.bound is None else f"absent (V at most {decimal(one.bound)})"
            for one in statements.given(context)
        ]


def test_every_kind_has_a_line_of_its_own(visit, kinds, kinds_file):
    page = visit(kinds_file)
    looks = {}
    for *_, kind, _, _, colour, shape in page.evaluate(DRAWN, "graph"):
        looks.setdefault(kind, set()).add((colour, shape))
    assert set(looks) == {"linked", "gated", "differs", "partly", "determined"}
    assert len(set().union(*looks.values())) == 5
    states = expected(kinds[1], {})
    assert drawn(page) == listed(page) == states
    styles = {state: style for *_, state, style, _, _ in page.evaluate(DRAWN, "graph")}
    assert styles == {"holds": "solid", "holds in part": "dashed"}
    choose(page, "gate", "g0")
    styles = {state: style for *_, state, style, _, _ in page.evaluate(DRAWN, "graph")}
    assert styles["absent"] == "dashed"
    choose(page, "y", "y1")
    assert drawn(page) == without_fixed(expected(kinds[1], {"gate": "g0", "y": "y1"}))


def test_what_claims_nothing_is_found_in_the_table(visit, kinds, kinds_file):
    page = visit(kinds_file)
    counts = kinds[1].counts()
    for kind in ("open", "unlinked"):
        page.locator(f"button[data-filter={kind}]").press("Enter")
        assert page.locator("#statements tbody tr:visible").count() == counts[kind]
        assert page.evaluate("document.activeElement.id") == "table-kind"
    page.locator("#associated > summary").click()
    assert page.locator("#associated li:visible").count() == counts["associated"]


def test_a_link_seen_only_given_others_shows_its_picture_given_them(visit, kinds_file):
    page = visit(kinds_file)
    page.locator("#states button", has_text="first – noise").press("Enter")
    view = page.locator("#link-view")
    assert "linked once a collider, second, x and y are known" in view.inner_text()
    assert "given a collider" in view.locator(".slice").first.inner_text()
    assert "of 3,000, those where noise varies" in view.locator(".slice").first.inner_text()
    view.locator(".strata summary").click()
    assert view.locator(".strata .slice").count() > 2


def test_what_is_determined_says_by_what(visit, kinds_file):
    page = visit(kinds_file)
    page.locator("#determined summary").click()
    block = page.locator("#determined .finding-body")
    block.get_by_text("Told by").wait_for()
    assert "area" in block.inner_text()
    assert "0 of 3,000" in block.inner_text()


def test_tab_reaches_the_chips_from_the_top(visit, titanic_file):
    page = visit(titanic_file)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "variable-0":
            break
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#status").startswith("Class = 1st: 325 of 2,201 rows. Findings: ")


def test_the_status_line_says_what_changed(visit, berkeley, tmp_path):
    berkeley.report(tmp_path / "b.html")
    page = visit(tmp_path / "b.html")
    assert page.inner_text("#status") == "The whole table: 4,526 rows. Findings: 2 hold, 1 hold in part."
    choose(page, "Dept", "B")
    assert page.inner_text("#status") == (
        "Dept = B: 585 of 4,526 rows. Findings: 1 absent, 2 fixed. Changed: Admit – Gender absent."
    )
    choose(page, "Dept", "C")
    assert page.inner_text("#status").endswith("Findings: 1 absent, 2 fixed. Nothing changed.")
    page.get_by_role("group", name="Dept").get_by_label("A 933").check()
    assert page.inner_text("#status").endswith("Changed: Admit – Gender holds.")
    bound = berkeley.statements_.about("Admit", "Gender").bound
    choose(page, "Dept", "B")
    assert f"V at most {decimal(bound)}" in page.inner_text("#state-absent")
    assert page.locator("#status").get_attribute("aria-live") == "polite"


def test_a_link_opens_from_the_list_and_from_the_picture(visit, titanic, titanic_file):
    page = visit(titanic_file)
    page.locator("#states button", has_text="Age – Survived").press("Enter")
    view = page.locator("#link-view")
    sentence = titanic.statements_.about("Age", "Survived").sentence
    assert sentence in view.inner_text()
    assert page.inner_text("#link-state") == "The whole table: holds in part."
    assert page.evaluate("document.activeElement.id") == "link-title"
    for summary in view.locator(".strata summary").all():
        summary.click()
    assert view.locator(".slice").count() == 10
    assert "0 %, 0 of 154" in view.inner_text()
    choose(page, "Class", "3rd")
    assert page.inner_text("#link-state") == "Class = 3rd: absent (V at most .08)."
    page.locator("#reset").press("Enter")
    page.locator("#close-link").press("Escape")
    assert view.is_hidden()
    spot = page.evaluate("""() => {
      const cy = document.getElementById("graph")._cyreg.cy;
      const edge = cy.edges(".link").filter(one => one.source().data("label") === "Age" && one.target().data("label") === "Class")[0];
      const [a, b] = [edge.source().renderedPosition(), edge.target().renderedPosition()];
      return [0.3 * a.x + 0.7 * b.x, 0.3 * a.y + 0.7 * b.y];
    }""")  # noqa: E501
    page.locator("#graph").scroll_into_view_if_needed()
    page.locator("#graph").click(position={"x": spot[0], "y": spot[1]})
    assert "Age – Class" in view.inner_text()


def test_findings_open_to_their_evidence(visit, titanic_file):
    page = visit(titanic_file)
    first = page.locator("#found li").first
    first.locator("summary").press("Enter")
    # Browsers tell of an opened fold a moment later.
    first.get_by_text("Confidence", exact=True).wait_for()
    # p and q are there, one fold further down.
    assert not first.get_by_text("p, q").is_visible()
    first.locator(".tests summary").press("Enter")
    first.get_by_text("p, q").wait_for()
    assert "χ² = " in first.inner_text()
    first.get_by_role("button", name="Show in the graph").press("Enter")
    assert page.locator("#link-view").is_visible()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "Show in the graph"
    # Where what opened it is gone, the focus is not lost either.
    page.locator("#states button", has_text="Age – Class").press("Enter")
    choose(page, "Sex", "Male")
    page.locator("#close-link").press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "Age – Class"


def test_two_contexts_are_compared_on_one_layout(visit, titanic, titanic_file):
    page = visit(titanic_file)
    choose(page, "Sex", "Female")
    page.locator("#pin").press("Enter")
    choose(page, "Sex", "Male")
    choose(page, "Class", "Crew")
    a, b = ({"Sex": "Female"}, {"Sex": "Male", "Class": "Crew"})
    states = [expected(titanic.statements_, context) for context in (a, b)]
    assert [drawn(page, graph) for graph in ("pinned-graph", "graph")] == [*map(without_fixed, states)]
    rows = [row.split("\t") for row in page.locator("#compared tbody tr").all_inner_texts()]
    assert {tuple(pair.strip().split(" – ")): (in_a, in_b) for pair, _, in_a, in_b in rows} == {
        pair: tuple("absent (V at most .08)" if side[pair] == "absent" else side[pair] for side in states)
        for pair in states[0]
    }
    text = page.inner_text("#compared")
    assert "No new test was run" in text
    assert not {"gained", "lost", "only in"} & set(text.lower().split())
    places = "id => document.getElementById(id)._cyreg.cy.nodes('.box').map(node => node.position())"
    assert page.evaluate(places, "graph") == page.evaluate(places, "pinned-graph")
    page.locator("#unpin").press("Enter")
    assert page.locator("#pinned").is_hidden()


def test_boxes_never_move(visit, titanic_file):
    page = visit(titanic_file)
    places = (
        "() => document.getElementById('graph')._cyreg.cy.nodes('.box').map(node => node.renderedPosition())"
    )
    before = page.evaluate(places)
    choose(page, "Class", "3rd")
    assert page.evaluate(places) == before


def test_what_if_equals_the_network(visit, titanic, titanic_file):
    page = visit(titanic_file)
    choose(page, "Class", "3rd")
    choose(page, "Sex", "Female")
    answer = titanic.network(titanic.data_).query("Survived", {"Class": "3rd", "Sex": "Female"})
    card = page.locator("#what-if .card", has=page.get_by_role("heading", name="Survived"))
    widths = card.locator(".probability-fill").evaluate_all(
        "all => all.map(one => parseFloat(one.style.width))"
    )
    assert widths == pytest.approx(100 * answer.probabilities, abs=1e-4)
    assert page.locator("#what-if .card").count() == 2
    assert "Given Class = 3rd, Sex = Female" in page.inner_text("#what-if")


def test_what_if_of_a_larger_model_says_what_was_worked_out(visit, titanic, tmp_path, monkeypatch):
    monkeypatch.setattr("unless.report.writing.MOST_STATES", 10)
    network = titanic.network(titanic.data_)
    titanic.report(tmp_path / "gates.html", network=network)
    page = visit(tmp_path / "gates.html")
    assert "worked out beforehand" in page.inner_text("#what-if")
    choose(page, "Class", "Crew")
    card = page.locator("#what-if .card", has=page.get_by_role("heading", name="Survived"))
    widths = card.locator(".probability-fill").evaluate_all(
        "all => all.map(one => parseFloat(one.style.width))"
    )
    assert widths == pytest.approx(100 * network.query("Survived", {"Class": "Crew"}).probabilities, abs=1e-4)
    choose(page, "Age", "Adult")
    assert "Not worked out for Class = Crew, Age = Adult" in page.inner_text("#what-if")


def test_the_table_is_sorted_filtered_and_searched(visit, titanic_file):
    page = visit(titanic_file)
    rows = page.locator("#statements tbody tr:visible")
    page.get_by_role("columnheader", name="Rows").get_by_role("button").click()
    numbers = [
        int(text.replace(",", ""))
        for text in page.locator("#statements tbody td:nth-child(5)").all_inner_texts()
    ]
    assert numbers == sorted(numbers)
    page.get_by_role("columnheader", name="Rows").get_by_role("button").click()
    assert page.locator("#statements thead [aria-sort=descending]").inner_text() == "Rows"
    page.locator("#table-kind").select_option("associated")
    assert [text.split("\t")[0] for text in rows.all_inner_texts()] == ["Age – Sex"]
    page.locator("#table-kind").select_option("")
    page.locator("#table-search").fill("ONLY WHEN")
    assert rows.count() == 1
    assert page.inner_text("#table-count") == "1 of 6 statements shown"
    page.locator("#statements button[aria-expanded=false]:visible").first.click()
    assert page.locator("#statements .evidence").count() == 1


def taken(page, button):
    with page.expect_download() as waiting:
        page.locator(button).click()
    return Path(waiting.value.path()).read_bytes()


def test_what_is_downloaded_can_be_read(visit, titanic, titanic_file):
    page = visit(titanic_file)
    assert json.loads(taken(page, "#save-json")) == titanic.statements_.to_dict()
    rows = list(csv.DictReader(io.StringIO(taken(page, "#save-csv").decode("utf-8-sig"))))
    frame = titanic.statements_.to_frame("pandas")
    assert [row["sentence"] for row in rows] == list(frame["sentence"])
    assert [float(row["p"]) for row in rows] == pytest.approx(list(frame["p"]), rel=1e-9)
    for name in ("a", "b", "kind", "where"):
        assert [row[name] for row in rows] == list(frame[name])
    assert [float(row["confidence"]) for row in rows if row["confidence"]] == pytest.approx(
        list(frame["confidence"].dropna()), rel=1e-9
    )
    assert rows[0]["context"] == "Class in {1st, 2nd}"
    choose(page, "Class", "Crew")
    picture = ElementTree.fromstring(taken(page, "#save-svg"))
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert set(texts) == {"Class", "= Crew", "Sex", "Age", "Survived"}
    lines = [line.get("stroke-dasharray") for line in picture.findall("{http://www.w3.org/2000/svg}line")]
    states = list(expected(titanic.statements_, {"Class": "Crew"}).values())
    assert (lines.count(None), lines.count("5 6")) == (states.count("holds"), states.count("absent"))
    assert len(lines) == len(states) - states.count("fixed")
    assert taken(page, "#save-png").startswith(b"\x89PNG")


def test_colours_are_dark_where_the_system_or_the_reader_says_so(visit, titanic_file):
    ground = "getComputedStyle(document.body).backgroundColor"
    light = visit(titanic_file, color_scheme="light")
    assert light.evaluate(ground) == "rgb(245, 246, 248)"
    light.locator("#theme").click()
    assert light.evaluate(ground) == "rgb(14, 19, 26)"
    assert light.inner_text("#theme") == "Light colours"
    box = "document.getElementById('graph')._cyreg.cy.nodes('.box')[0].style('background-color')"
    assert light.evaluate(box) == "rgb(32,41,53)"
    dark = visit(titanic_file, color_scheme="dark")
    assert dark.evaluate(ground) == "rgb(14, 19, 26)"


@pytest.mark.parametrize("width", [360, 768, 3840])
def test_nothing_is_wider_than_the_screen(visit, titanic_file, width):
    page = visit(titanic_file, width=width, height=900 if width < 2000 else 2160)
    page.locator("#states button").first.click()
    page.locator("#pin").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.getElementById('graph').getBoundingClientRect().width") > 200


def test_a_printed_page_unfolds_the_findings(visit, titanic_file):
    page = visit(titanic_file)
    page.locator("#found summary").first.click()
    # At once, for the browser does not wait for what comes later.
    filled = page.evaluate("""() => {
      window.dispatchEvent(new Event("beforeprint"));
      return [...document.querySelectorAll("#found > ol .finding-body")].every(one => one.childElementCount);
    }""")
    assert filled
    page.emulate_media(media="print")
    assert page.locator("#print-graph svg").is_visible()
    assert page.locator("#chips").is_hidden()
    assert "Confidence" in page.locator("#found").inner_text()
    assert not page.locator("#found .tests > summary").first.is_visible()
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("#print-graph svg").count() == 0
    # What the reader had opened stays open.
    assert page.locator("#found details[open]").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(visit, titanic_file, scheme):
    page = visit(titanic_file, color_scheme=scheme)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    page.locator("#found summary").first.click()
    page.locator("#states button").first.click()
    if scheme == "light":
        assert serious(page) == []
    choose(page, "Sex", "Female")
    page.locator("#pin").click()
    choose(page, "Class", "Crew")
    assert serious(page) == []


def serious(page):
    found = page.evaluate("axe.run().then(answer => answer.violations)")
    return [
        (one["id"], [node["html"][:120] for node in one["nodes"]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def test_an_unseen_context_says_so(visit, titanic_file):
    page = visit(titanic_file)
    choose(page, "Class", "Crew")
    choose(page, "Age", "Child")
    assert page.inner_text("#status") == "Class = Crew, Age = Child: no row of the table is like this."
    # Nor does the page say that anything holds or is absent there.
    assert listed(page) == {}
    assert set(drawn(page).values()) == {"not settled"}
    assert "Unknown" in page.inner_text("#states")
    assert set(page.locator("#statements tbody .state").all_inner_texts()) == {"–"}
    page.locator("#pin").press("Enter")
    assert page.evaluate("document.activeElement.id") == "unpin"
    choose(page, "Age", "Adult")
    assert "hanged" not in page.inner_text("#status")
    assert "nothing to compare: of A, no row" in page.inner_text("#compared")


def test_a_page_without_links_or_statements_opens(visit, tmp_path):
    unless.CSGS().fit({"a": ["x", "y"], "b": ["x", "y"]}).report(tmp_path / "two.html", network=True)
    page = visit(tmp_path / "two.html")
    assert "There are no findings" in page.inner_text("main")
    assert page.inner_text("#what-if-context") == "Nothing is given."
    assert page.locator("#what-if .card").count() == 2
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")


def test_a_page_without_network_promises_no_probabilities(visit, titanic, tmp_path):
    titanic.report(tmp_path / "r.html", network=False)
    page = visit(tmp_path / "r.html")
    choose(page, "Class", "Crew")
    assert page.inner_text("#what-if-context") == ""
    assert page.locator("#what-if .card").count() == 0


def test_a_graph_without_gates_says_what_is_not_worked_out(visit, tmp_path, monkeypatch):
    monkeypatch.setattr("unless.report.writing.MOST_STATES", 10)
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 500)
    b = np.where(rng.random(500) < 0.7, a, rng.integers(0, 4, 500))
    data = unless.read({"a": a.astype(str), "b": b.astype(str)})
    est = unless.GSMN().fit(data)
    est.report(tmp_path / "r.html", network=est.network(data))
    page = visit(tmp_path / "r.html")
    assert "no column decides about links" in page.inner_text("#what-if")
    assert page.inner_text("#what-if-context") == "Nothing is given."
    choose(page, "a", "1")
    assert page.inner_text("#what-if-answer") == "Not worked out for a = 1."


def test_many_levels_scroll_by_keyboard_and_tiny_chances_are_written_once(visit, tmp_path):
    rows = [(f"L{place % 40}", str((place + (place % 33 == 0)) % 2)) for place in range(4000)]
    table = {"many": [one for one, _ in rows], "odd": [one for _, one in rows]}
    unless.GSMN().fit(table).report(tmp_path / "r.html")
    page = visit(tmp_path / "r.html")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    page.locator("#states button").first.click()
    page.locator("#link-view .tests summary").click()
    assert "< 1e-300" in page.inner_text("#link-view .tests")
    assert serious(page) == []
