"""What a page reveals: with min_cell no small count is in the file, without rows no row is."""

import json
import re
from itertools import product

import numpy as np
import pytest
from click.testing import CliRunner

import unless
from unless.cli import main
from unless.errors import SettingError
from unless.report.disclosure import Disclosure, pair_table
from unless.report.html import render
from unless.report.page import Bars
from unless.report.writing import gather, without_small

N = 5


@pytest.fixture(scope="module")
def sparse():
    """Return a table with rare levels: most cells of some pairs hold few rows."""
    rng = np.random.default_rng(5)
    n = 400
    a = rng.choice(3, n, p=[0.6, 0.38, 0.02])
    b = np.where(rng.random(n) < 0.7, a, rng.integers(0, 3, n))
    c = rng.choice(2, n, p=[0.97, 0.03])
    return unless.learn({"a": a, "b": b, "c": c, "d": np.where(rng.random(n) < 0.99, b, 0)})


@pytest.fixture(scope="module")
def learned(titanic, sparse):
    return {"titanic": titanic, "sparse": sparse}


def parsed(text):
    """Return the data block of a page, and its text without scripts and styles."""
    block = re.search(r'id="page-data">(.*?)</script>', text, re.DOTALL)[1]
    shown = re.sub(r"<(script|style).*?</\1>", " ", text, flags=re.DOTALL)
    return json.loads(block), shown


def hidden_page(est):
    return parsed(render(gather(est.data_, est.statements_, disclosure=Disclosure(True, N))))


def counts_in(value, path=()):
    """Give every whole number that counts rows, with its place."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from counts_in(one, (*path, key))
    elif isinstance(value, list):
        for one in value:
            yield from counts_in(one, path)
    elif (
        isinstance(value, int)
        and path[-1] in ("n_rows", "rows", "counts", "n_broken")
        and path[0] != "counts"
    ):
        yield path, value


@pytest.mark.parametrize("which", ["titanic", "sparse"])
def test_every_count_in_the_file_is_a_multiple_and_none_is_small(learned, which):
    data, shown = hidden_page(learned[which])
    told = [(path, count) for path, count in counts_in(data) if path[-1] != "n_broken" or count]
    assert len(told) > 20
    assert [(path, count) for path, count in told if count < N or count % N] == []
    assert data["contexts"]["n"] == 0
    assert data["contexts"]["counts"] == []
    assert set(data["contexts"]["codes"]) == {""}
    assert data["what_if"]["kind"] == "none"
    assert data["what_if"]["joint"] == ""
    for text in (shown, *(one["sentence"] for one in data["statements"])):
        for number in re.findall(r"(?<![\w.])([\d,]+)(?= rows| of [\d,]+ rows)", text):
            count = int(number.replace(",", ""))
            assert count >= N, text
            assert count % N == 0, text


@pytest.mark.parametrize("which", ["titanic", "sparse"])
def test_small_cells_are_hidden_with_their_shares(learned, which):
    est = learned[which]
    data, _ = hidden_page(est)
    plain = json.loads(
        re.search(r'id="page-data">(.*?)</script>', render(gather(est.data_, est.statements_)), re.DOTALL)[1]
    )
    n_hidden = 0
    for one, other in zip(plain["charts"], data["charts"], strict=True):
        for chart, told in zip(one, other, strict=True):
            parts = [(chart["whole"], told["whole"])]
            parts += [
                (part, next(each for each in told["strata"] if each["where"] == part["where"]))
                for part in chart["strata"]
                if part["n_rows"] >= N
            ]
            for part, guarded in parts:
                n_hidden += check_part(part, guarded)
    assert n_hidden > 5


def check_part(part, guarded):
    """Check one table: small cells and totals are gone; what is hidden cannot be computed from the others."""
    n_hidden = 0
    for place, total in enumerate(part["rows"]):
        assert (guarded["rows"][place] is None) == (total < N)
        if part["counts"] is None:
            continue
        cells = [row[place] for row in part["counts"]]
        told = [row[place] for row in guarded["counts"]]
        shares = [row[place] for row in guarded["shares"]]
        for cell, count, share in zip(cells, told, shares, strict=True):
            assert (count is None) == (cell < N)
            assert (share is None) == (count is None or total < N)
            n_hidden += cell < N
        if guarded["rows"][place] is not None:
            for cell in range(len(cells)):
                if told[cell] is None:
                    assert len(possible(told, guarded["rows"][place], cell)) > 1
    return n_hidden


def possible(told, total, asked):
    """List the values of a hidden cell that agree with all that is told of its line."""
    span = range(-(N // 2), N // 2 + 1)
    others = [place for place in range(len(told)) if place != asked]
    low = sum(0 if told[place] is None else told[place] + span[0] for place in others)
    high = sum(N - 1 if told[place] is None else told[place] + span[-1] for place in others)
    return [value for value in range(N) if total + span[0] - high <= value <= total + span[-1] - low]


@pytest.mark.parametrize("least", [*range(3, 13), 50])
def test_a_hidden_cell_is_left_open_by_its_rounded_line(least):
    """All pairs of a hidden and a shown cell that give the same page are gathered, by the rounding itself."""
    told = Disclosure(True, least)
    seen = {}
    for hidden, other in product(range(least), range(least, 8 * least)):
        key = told.shown(other), told.shown(hidden + other)
        seen.setdefault(key, set()).add(hidden)
    # At the end of the range some pairs are missing.
    assert min(len(values) for (other, _), values in seen.items() if other <= 6 * least) > 1


def test_figures_of_a_pair_with_a_small_count_are_left_out(titanic):
    data, _ = hidden_page(titanic)
    n_coarse = 0
    for one, plain in zip(titanic.statements_, data["statements"], strict=True):
        for side, told in zip(one.evidence, plain["evidence"], strict=True):
            table = pair_table(titanic.data_, one.pair, side)
            if (table < N).any():
                n_coarse += 1
                assert [told[name] for name in ("statistic", "p", "q", "information", "contrast")] == [
                    None
                ] * 5
                assert told["cramers_v"] == round(told["cramers_v"], 1)
                assert not re.search(r"V (=|at most|up to) \.\d\d| \d+ % ", plain["sentence"])
            else:
                assert told["cramers_v"] == pytest.approx(side.cramers_v, abs=0.005)
    assert n_coarse


def test_standardised_shares_of_a_column_are_hidden_together():
    bars = Bars(
        "",
        ["c"],
        40,
        [0, 1],
        [0, 1],
        [[0.1, 0.5], [0.9, 0.5]],
        None,
        [20, 20],
        [[0.0] * 2] * 2,
        [[1.0] * 2] * 2,
    )
    told = without_small(bars, np.array([[2, 10], [18, 10]]), Disclosure(True, N))
    assert told.shares == [[None, 0.5], [None, 0.5]]
    assert told.rows == [20, 20]


def test_notes_tell_no_small_counts():
    told = Disclosure(True, N)
    note = "Dropped 3 of 2,201 rows with missing values in 'age 7' (3), 'x' (118)."
    assert told.text(note) == (
        "Dropped fewer than 5 of 2,200 rows with missing values in 'age 7' (fewer than 5), 'x' (120)."
    )
    assert Disclosure().text(note) == note
    assert told.text("Cut 'age' at 18, 30 and 42.") == "Cut 'age' at 18, 30 and 42."


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({}, "This page holds 24 distinct rows with their counts."),
        ({"rows": False}, "This page holds no rows and no tables of counts"),
        (
            {"min_cell": 5},
            "Counts below 5 are hidden and others rounded to multiples of 5; no rows are kept.",
        ),
        ({"min_cell": 5, "rows": False}, "multiples of 5; no rows and no tables of counts are kept."),
    ],
)
def test_the_page_says_in_one_line_at_its_end_what_it_reveals(titanic, tmp_path, settings, line):
    kept = not settings
    titanic.report(tmp_path / "x.html", network=kept, **settings)
    data, shown = parsed((tmp_path / "x.html").read_text())
    assert line in data["reveals"]
    assert shown.rindex(line) > shown.rindex("it needs no network")
    assert (data["contexts"]["n"] == 24) is kept
    assert (data["what_if"]["kind"] == "joint") is kept
    assert any(data["charts"]) is settings.get("rows", True)


def test_pages_are_the_same_to_the_byte(titanic, tmp_path):
    for name in ("one", "two"):
        titanic.report(tmp_path / name, min_cell=7)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize(
    ("settings", "trouble"),
    [
        ({"min_cell": 2}, "min_cell=2 must be a whole number of 3 or more"),
        ({"min_cell": 2.5}, "must be a whole number"),
        ({"min_cell": True}, "must be a whole number"),
        ({"rows": None}, "rows=None must be True or False"),
        ({"min_cell": 5000}, "fewer rows than min_cell=5000"),
    ],
)
def test_what_cannot_be_is_refused(titanic, tmp_path, settings, trouble):
    with pytest.raises(SettingError, match=trouble):
        titanic.report(tmp_path / "x.html", **settings)
    assert list(tmp_path.iterdir()) == []


def test_probabilities_and_hidden_counts_do_not_go_together(titanic, tmp_path):
    for network, settings in product(
        (titanic.network(titanic.data_), True), ({"min_cell": 5}, {"rows": False})
    ):
        with pytest.raises(SettingError, match="computed from the probabilities of network="):
            titanic.report(tmp_path / "x.html", network=network, **settings)


def test_the_command_line_has_the_same_options(titanic, tmp_path):
    unless.save(titanic, tmp_path / "m.unless")
    page = tmp_path / "x.html"
    command = ["report", str(tmp_path / "m.unless"), "-o", str(page)]
    assert CliRunner().invoke(main, [*command, "--min-cell", "5"]).exit_code == 0
    assert "Counts below 5 are hidden" in parsed(page.read_text())[1]
    assert CliRunner().invoke(main, [*command, "--no-rows"]).exit_code == 0
    assert "no rows and no tables of counts" in parsed(page.read_text())[1]
    refused = CliRunner().invoke(main, [*command, "--min-cell", "2"])
    assert refused.exit_code == 2
    refused = CliRunner().invoke(main, [*command, "--no-rows", "--network", str(tmp_path / "m.unless")])
    assert refused.exit_code == 2
    assert "probabilities of --network; leave it out with --no-rows" in refused.stderr
    refused = CliRunner().invoke(main, [*command, "--min-cell", "5", "--what-if"])
    assert refused.exit_code == 2
    assert "probabilities of --what-if; leave it out with --min-cell" in refused.stderr


def test_a_browser_shows_it(titanic, tmp_path, visit):
    titanic.report(tmp_path / "x.html", min_cell=5)
    page = visit(tmp_path / "x.html")
    page.locator("details[data-statement] > summary").first.click()
    page.locator("details.strata > summary").first.click()
    assert "<5 of " in page.locator("details[data-statement]").first.inner_text()
    page.locator("#chip-0-0").check()
    assert "some of 2,200 rows" in page.locator("#status").inner_text()
    assert page.locator(".chip-rows").count() == 0
