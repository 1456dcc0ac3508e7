import json

import pytest

from unless.cli.output import either, of, probability_text
from unless.data.showing import count, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [red]name[/red]", "plain [red]name[/red]"),
        ("été 日本", "été 日本"),
        ("a\x1b[31m\tb\n", r"a\x1b[31m\tb\n"),
        ("right\u202eleft", r"right\u202eleft"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("", "''"),
    ],
)
def test_what_cannot_be_seen_is_escaped(text, shown):
    assert visible(text) == shown


def test_numbers_carry_what_they_count():
    assert count(1, "row") == "1 row"
    assert count(4526, "row") == "4,526 rows"
    assert of(1, 1, "pair") == "1 of 1 pair"


def test_alternatives():
    assert [either([*"ABC"[:n]]) for n in (1, 2, 3)] == ["A", "A or B", "A, B or C"]


@pytest.mark.parametrize(
    ("probability", "written"),
    [(0, "0"), (1, "1"), (1e-9, "<0.0001"), (1 - 1e-9, ">0.9999"), (0.0001, "0.0001"), (0.5, "0.5000")],
)
def test_only_certainty_is_1(probability, written):
    assert probability_text(probability) == written


def test_json_holds_no_character_that_a_terminal_obeys(unless, tmp_path):
    nasty = "a\x9b2J\u202eb\U000e0041"
    path = tmp_path / "t.csv"
    path.write_text(f"{nasty},c\n" + "x,0\ny,1\n" * 40, encoding="utf-8")
    result = unless("learn", path, "-o", tmp_path / "m.unless", "--json")
    assert result.exit_code == 0
    assert [one for one in result.stdout if not one.isprintable() and one != "\n"] == []
    assert "\\u009b" in result.stdout
    assert "\\udb40\\udc41" in result.stdout
    assert json.loads(result.stdout)["variables"][0]["name"] == nasty
