"""The page in a browser: what is chosen by keyboard is what the model says."""

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import unless

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
# What is drawn as a link, and what has faded, as the canvas was told.
DRAWN = """id => {
  const cy = document.getElementById(id)._cyreg.cy;
  const name = node => node.data("label").split("\\n")[0];
  return cy.edges(".link").map(edge => [name(edge.source()), name(edge.target()), edge.data("dash")]);
}"""


def drawn(page, graph="graph"):
    return {tuple(sorted((a, b))) for a, b, dash in page.evaluate(DRAWN, graph) if dash != "dashed"}


def faded(page, graph="graph"):
    return {tuple(sorted((a, b))) for a, b, dash in page.evaluate(DRAWN, graph) if dash == "dashed"}


def listed(page, where):
    return {tuple(text.split(" – ")) for text in page.locator(f"{where} button").all_inner_texts()}


def expected(est, context):
    """Return the links that the data bear out, and those of them that the model has in a context."""
    found = {one.pair for one in est.statements_ if one.claim != "never" and one.is_dependent}
    return found, found & est.structure_.given(context, at_least=0.1).edges


def choose(page, name, label):
    """Choose a level as somebody would who has only a keyboard: go to its group, then press arrows."""
    group = page.get_by_role("group", name=name)
    group.get_by_role("radio", checked=True).focus()
    for _ in range(group.get_by_role("radio").count()):
        chip = page.evaluate("document.activeElement.nextElementSibling.querySelector('bdi')?.textContent")
        if chip == label:
            return
        page.keyboard.press("ArrowRight")
    raise AssertionError(f"no chip {label}")


def test_a_context_is_chosen_by_keyboard_alone(visit, titanic, titanic_file):
    page = visit(titanic_file)
    whole, _ = expected(titanic, {})
    assert drawn(page) == listed(page, "#linked-here") == whole
    for context in ({"Sex": "Female"}, {"Sex": "Female", "Class": "2nd"}, {"Class": "Crew"}):
        page.keyboard.press("Control+Home")
        page.locator("#reset").press("Enter")
        for name, label in context.items():
            choose(page, name, label)
        found, here = expected(titanic, context)
        assert drawn(page) == listed(page, "#linked-here") == here
        assert faded(page) == listed(page, "#independent-here") == found - here
        n_rows = titanic.structure_.given(context).n_rows
        assert f"{n_rows:,} of 2,201 rows left, {len(here)} of {len(found)} links." in page.inner_text(
            "#status"
        )


def test_tab_reaches_the_chips_from_the_top(visit, titanic_file):
    page = visit(titanic_file)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "variable-0":
            break
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#status").startswith("Class = 1st: 325 of 2,201 rows left")


def test_the_status_line_says_what_changed(visit, berkeley, tmp_path):
    berkeley.report(tmp_path / "b.html")
    page = visit(tmp_path / "b.html")
    choose(page, "Dept", "B")
    assert page.inner_text("#status") == (
        "Dept = B: 585 of 4,526 rows left, 2 of 3 links. Gone: Admit – Gender."
    )
    choose(page, "Dept", "C")
    assert page.inner_text("#status").endswith("2 of 3 links. No link changed.")
    page.get_by_role("group", name="Dept").get_by_label("A 933").check()
    assert page.inner_text("#status").endswith("Back: Admit – Gender.")
    assert page.locator("#status").get_attribute("aria-live") == "polite"


def test_a_link_opens_from_the_list_and_from_the_picture(visit, titanic, titanic_file):
    page = visit(titanic_file)
    page.locator("#linked-here button", has_text="Age – Survived").press("Enter")
    view = page.locator("#link-view")
    sentence = titanic.statements_.about("Age", "Survived").sentence
    assert sentence in view.inner_text()
    assert page.evaluate("document.activeElement.id") == "link-title"
    assert view.locator(".slice").count() == 8
    assert "not enough data" in view.inner_text()
    assert "44 %, 11 of 25" in view.inner_text()
    page.locator("#close-link").press("Escape")
    assert view.is_hidden()
    spot = page.evaluate("""() => {
      const cy = document.getElementById("graph")._cyreg.cy;
      const edge = cy.edges(".link").filter(one => one.source().data("label") === "Class" && one.target().data("label") === "Age")[0];
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
    first.get_by_text("χ² = 81.98, 2 degrees of freedom").wait_for()
    first.get_by_role("button", name="Show in the graph").press("Enter")
    assert page.locator("#link-view").is_visible()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "Show in the graph"
    # Where what opened it is gone, the focus is not lost either.
    page.locator("#draw-all").check()
    page.locator("#independent-here button, #linked-here button", has_text="Age – Sex").press("Enter")
    page.locator("#draw-all").uncheck()
    page.locator("#close-link").press("Enter")
    assert page.evaluate("document.activeElement.id") == "reset"


def test_two_contexts_are_compared_on_one_layout(visit, titanic, titanic_file):
    page = visit(titanic_file)
    choose(page, "Sex", "Female")
    page.locator("#pin").press("Enter")
    choose(page, "Sex", "Male")
    choose(page, "Class", "Crew")
    _, a = expected(titanic, {"Sex": "Female"})
    _, b = expected(titanic, {"Sex": "Male", "Class": "Crew"})
    assert (drawn(page, "pinned-graph"), drawn(page)) == (a, b)
    assert listed(page, "#difference-only-a") == a - b
    assert listed(page, "#difference-only-b") == b - a
    assert listed(page, "#difference-both") == a & b
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
    monkeypatch.setattr("unless.report.whatif.MOST_STATES", 10)
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
    page.locator("#table-kind").select_option("undecided")
    assert [text.split("\t")[0] for text in rows.all_inner_texts()] == ["Age – Sex"]
    page.locator("#table-kind").select_option("")
    page.locator("#table-search").fill("SURVIVED")
    assert rows.count() == 3
    assert page.inner_text("#table-count") == "3 of 6 statements shown"
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
    assert [(row["a"], row["b"], row["answer"]) for row in rows] == list(
        zip(frame["a"], frame["b"], frame["answer"], strict=True)
    )
    assert rows[0]["where"] == "Class in {1st, 2nd} and Sex = Male"
    choose(page, "Class", "Crew")
    picture = ElementTree.fromstring(taken(page, "#save-svg"))
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert set(texts) == {"Class", "= Crew", "Sex", "Age", "Survived"}
    lines = [line.get("stroke-dasharray") for line in picture.findall("{http://www.w3.org/2000/svg}line")]
    found, here = expected(titanic, {"Class": "Crew"})
    assert (lines.count(None), lines.count("7 6")) == (len(here), len(found - here))
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
    page.locator("#linked-here button").first.click()
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
    assert "χ²" in page.locator("#found").inner_text()
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("#print-graph svg").count() == 0
    # What the reader had opened stays open.
    assert page.locator("#found details[open]").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_violation(visit, titanic_file, scheme):
    page = visit(titanic_file, color_scheme=scheme)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    page.locator("#found summary").first.click()
    page.locator("#linked-here button").first.click()
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


def test_links_that_the_data_do_not_bear_out_are_drawn_on_request(visit, titanic_file):
    page = visit(titanic_file)
    assert ("Age", "Sex") not in drawn(page)
    page.locator("#draw-all").check()
    assert ("Age", "Sex") in drawn(page)


def test_an_unseen_context_says_so(visit, titanic_file):
    page = visit(titanic_file)
    choose(page, "Class", "Crew")
    choose(page, "Age", "Child")
    assert page.inner_text("#status") == "Class = Crew, Age = Child: no row of the table is like this."
    # Nor does the page say that anything is independent there.
    assert drawn(page) == listed(page, "#independent-here") == set()
    assert page.inner_text("#gone-count") == "0"
    assert "Unknown" in page.inner_text("#independent-here")
    page.locator("#pin").press("Enter")
    assert page.evaluate("document.activeElement.id") == "unpin"
    choose(page, "Age", "Adult")
    assert "Back" not in page.inner_text("#status")
    assert "nothing to compare: of A, no row" in page.inner_text("#differences")


def test_a_page_without_links_or_statements_opens(visit, tmp_path):
    unless.CSGS().fit({"a": ["x", "y"], "b": ["x", "y"]}).report(tmp_path / "two.html")
    page = visit(tmp_path / "two.html")
    assert "The structure links no pair" in page.inner_text("main")
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
    monkeypatch.setattr("unless.report.whatif.MOST_STATES", 10)
    data = unless.datasets.load_titanic()
    est = unless.GSMN().fit(data)
    est.report(tmp_path / "r.html", network=est.network(data))
    page = visit(tmp_path / "r.html")
    assert "no column decides about links" in page.inner_text("#what-if")
    assert page.inner_text("#what-if-context") == "Nothing is given."
    choose(page, "Class", "Crew")
    assert page.inner_text("#what-if-answer") == "Not worked out for Class = Crew."


def test_many_levels_scroll_by_keyboard_and_tiny_chances_are_written_once(visit, tmp_path):
    rows = [(f"L{place % 40}", str(place % 2)) for place in range(4000)]
    table = {"many": [one for one, _ in rows], "odd": [one for _, one in rows]}
    unless.GSMN().fit(table).report(tmp_path / "r.html")
    page = visit(tmp_path / "r.html")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    page.locator("#linked-here button").first.click()
    assert "p < 1e-300" in page.inner_text("#link-view .slice")
    assert serious(page) == []


def test_contexts_of_another_table_are_named_as_such(visit, titanic, tmp_path):
    few = unless.Dataset.from_codes(titanic.data_.domain, titanic.data_.rows[:10], [4] * 10)
    titanic.report(tmp_path / "r.html", data=few)
    page = visit(tmp_path / "r.html")
    assert "2,201 rows that the model was learned from" in page.inner_text("main")
    assert "40 rows looked at here" in page.inner_text("main")
