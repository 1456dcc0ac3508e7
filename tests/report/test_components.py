"""Each part of the page is compared to the byte; `make golden` writes the snapshots anew."""

import os
from pathlib import Path

import pytest

from unless.report import html
from unless.report.html import render
from unless.report.layout import HEIGHT, box_width, positions
from unless.report.writing import gather

SNAPSHOTS = Path(__file__).parent / "snapshots"
PARTS = {
    "head.html": html.head,
    "findings.html": html.findings,
    "explorer.html": html.explorer,
    "what_if.html": html.what_if,
    "table.html": html.table,
    "foot.html": html.foot,
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_as_it_was(name, titanic_page):
    text = PARTS[name](titanic_page)
    if os.environ.get("UNLESS_REWRITE_GOLDEN") == "1":
        (SNAPSHOTS / name).write_text(text, encoding="utf-8")
    assert text == (SNAPSHOTS / name).read_text(encoding="utf-8")


def test_no_snapshot_is_forgotten():
    assert {path.name for path in SNAPSHOTS.iterdir()} == set(PARTS)


def test_every_part_is_on_the_page(titanic_page):
    text = render(titanic_page)
    assert all(part(titanic_page) in text for part in PARTS.values())


def test_a_page_says_what_was_left_out(titanic_page):
    assert "Left out" not in html.foot(titanic_page)
    short = type(titanic_page)(**{**fields(titanic_page), "left_out": ["<b>something</b>"]})
    assert "<li>&lt;b&gt;something&lt;/b&gt;</li>" in html.foot(short)


def fields(page):
    return {name: getattr(page, name) for name in page.__struct_fields__}


def test_boxes_do_not_overlap_and_stand_where_they_stood():
    edges = [(a, b) for a in range(30) for b in range(a + 1, 30) if (a * 7 + b * 3) % 5 == 0]
    widths = [box_width("a name of some length"[: 1 + place % 21]) for place in range(34)]
    places = positions(34, edges, widths)
    assert (places == positions(34, edges, widths)).all()
    for one in range(34):
        for other in range(one + 1, 34):
            dx, dy = abs(places[one] - places[other])
            assert dx >= (widths[one] + widths[other]) / 2 or dy >= HEIGHT


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_boxes_are_placed(n):
    assert positions(n, [(0, 1)] if n == 2 else [], [60.0] * n).shape == (n, 2)


def test_the_order_of_columns_only_moves_columns(titanic):
    other = titanic.data_.select(titanic.data_.names[::-1])
    est = type(titanic)().fit(other)
    page = gather(other, est.statements_)
    again = gather(titanic.data_, titanic.statements_)
    assert page.statements == again.statements
    assert page.charts == again.charts
    assert page.headline == again.headline
