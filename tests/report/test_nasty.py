"""Names and levels are data, never markup, script or formula."""

import csv
import io
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import unless
from unless.data.showing import visible
from unless.report.html import shown

NASTY = (
    "</script><img src=x onerror=alert(1)>",
    "\"'`<b>&amp;</b>{{7*7}}${7*7}",
    "=HYPERLINK(\"http://x\",'a')",
    "\u202egnorw\u2066\u200f",
    "line\u2028break\u2029\r\n\ttab\x07",
    "x" * 10_000,
    "<!--<script>",
    "名前",
    "no\u00a0break\ufffe\U000e0001\x85.",
)


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    """Write a report of a table whose names and levels are the worst there are, and whose columns depend."""
    base = [row for _ in range(40) for row in ((0, 0), (0, 0), (1, 1), (1, 1), (0, 1))]
    columns = {
        name: [(f"{name}!" if row[place % 2] else name) for row in base] for place, name in enumerate(NASTY)
    }
    est = unless.GSMN(required_edges=[(NASTY[0], NASTY[1]), (NASTY[2], NASTY[3])]).fit(unless.read(columns))
    path = tmp_path_factory.mktemp("nasty") / "nasty.html"
    est.report(path, title=NASTY[0])
    return est, path


def test_no_name_becomes_markup(nasty):
    text = nasty[1].read_text(encoding="utf-8")
    assert "<img" not in text
    assert "</script><" not in text.replace("</script>\n", "")
    assert text.count("<script") == text.count("</script>") == 3
    for character in ("\u2028", "\u2029", "\u202e", "\u2066", "\x07"):
        assert character not in text


def test_the_policy_lets_in_only_what_the_page_brought(nasty):
    text = nasty[1].read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert " style=" not in text
    assert not re.search(r"<[^>]* on[a-z]+=", text.split("<script", 1)[0])


def test_a_browser_shows_them_as_text_and_runs_nothing(nasty, visit):
    page = visit(nasty[1])
    page.evaluate("() => { window.alert = () => { throw new Error('a name was run') } }")
    for summary in page.locator("#found > ol > li > details > summary").all()[:4]:
        summary.click()
    if page.locator("#states button").count():
        page.locator("#states button").first.click()
    page.locator("#chips input[type=radio]").nth(1).check()
    assert page.locator("img").count() == 0
    assert page.locator("h1").inner_text() == NASTY[0]
    assert page.locator("#chips").get_by_text("\\u202egnorw\\u2066\\u200f").count() > 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_name_is_spelt_alike_by_the_script_and_in_the_sentences(nasty, visit):
    page = visit(nasty[1])
    names = set(page.locator("#chips legend bdi").all_text_contents())
    assert names == {cut if len(cut := visible(name)) <= 40 else f"{cut[:39]}…" for name in NASTY}


def test_a_picture_is_xml_whatever_the_names(nasty, visit):
    page = visit(nasty[1])
    with page.expect_download() as waiting:
        page.locator("#save-svg").click()
    picture = ElementTree.parse(waiting.value.path())
    assert {text.text[:17] for text in picture.iter("{http://www.w3.org/2000/svg}text")} == {
        visible(name)[:17] for name in NASTY
    }


def test_a_spreadsheet_runs_no_formula_of_a_download(nasty, visit):
    page = visit(nasty[1])
    with page.expect_download() as waiting:
        page.locator("#save-csv").click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8-sig")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len({len(row) for row in rows}) == 1
    cells = [cell for row in rows[1:] for cell in row]
    assert not [cell for cell in cells if cell[:1] in "=+-@\t\r" and cell and not is_number(cell)]
    assert f"'{NASTY[2]}" in cells


def test_no_character_that_begins_a_formula_is_forgotten(visit, tmp_path):
    starts = ("=", "+", "-", "@", "\t", "\r", "\n", " =", "\u00a0@", "＝", "＋", "－", "＠")
    domain = unless.Domain(tuple(unless.Variable(f"{start}1", ("x", "y")) for start in starts))
    data = unless.Dataset.from_codes(domain, [[0] * len(starts), [1] * len(starts)], [30, 30])
    unless.write_report(unless.Graph(domain, []), data, tmp_path / "r.html")
    page = visit(tmp_path / "r.html")
    with page.expect_download() as waiting:
        page.locator("#save-csv").click()
    text = Path(waiting.value.path()).read_bytes().decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert {name for row in rows for name in (row["a"], row["b"])} == {f"'{start}1" for start in starts}
    assert all(row["sentence"].startswith("'") for row in rows)


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_nothing_is_lost_of_a_name_in_the_data(nasty, read_page):
    page = read_page(nasty[1])
    assert {variable.name for variable in page.variables} == set(NASTY)


@pytest.mark.parametrize("name", NASTY)
def test_escaped_names_hold_no_markup(name):
    assert not set("<>\"'") & set(shown(name))


def test_scripts_build_no_markup_from_strings():
    folder = Path(unless.__file__).parent / "report" / "assets" / "js"
    for script in folder.glob("*.js"):
        text = script.read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
        )
        assert len(text.splitlines()) <= 350
