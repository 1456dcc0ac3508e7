"""Models as JSON for other programs."""

import json
import math
import re

import pytest

from benchmarks.mutants import JSON
from formats.models import small_model
from unless.data.domain import Domain, Variable
from unless.errors import FileFormatError, SettingError
from unless.formats.json_model import json_text, line_of, parse_json, read_json
from unless.inference.model import LogLinearModel
from unless.structures.graph import FeatureSet


def test_the_file_is_plain_json():
    plain = json.loads(json_text(small_model()))
    assert plain["format"] == "unless-log-linear"
    assert plain["version"] == 1
    assert plain["variables"][0] == {"name": "Dept", "levels": ["A", "B", "C"], "kind": "category"}
    assert plain["features"][1] == {
        "weight": -1.25,
        "conditions": [
            {"variable": "Dept", "level": "A", "equal": False},
            {"variable": "Admit", "level": "no", "equal": True},
        ],
    }


def test_infinite_weights_are_words():
    model = LogLinearModel(small_model().features, [math.inf, -math.inf, 0])
    plain = json.loads(json_text(model))
    assert [feature["weight"] for feature in plain["features"]] == ["inf", "-inf", 0.0]
    assert parse_json(json_text(model)).weights.tolist() == [math.inf, -math.inf, 0]


def test_a_file_may_be_laid_out_in_any_way():
    squeezed = json.dumps(json.loads(JSON), separators=(",", ":"))
    spread = json.dumps(json.loads(JSON), indent=3, sort_keys=True)
    for text in (squeezed, spread):
        model = parse_json(text)
        assert model.features == parse_json(JSON).features
        assert model.weights.tolist() == [0.5, -math.inf]


def test_an_empty_domain_is_a_model_too():
    model = LogLinearModel(FeatureSet(Domain(())), [])
    assert len(parse_json(json_text(model)).domain) == 0


def test_names_that_are_no_text_are_refused():
    with pytest.raises(SettingError, match="not valid Unicode"):
        json_text(LogLinearModel(FeatureSet(Domain((Variable("\ud800", ("a",)),))), []))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("unless-log-linear", "other", "line 1: the format is not 'unless-log-linear'"),
        ('"version": 1', '"version": 2', "line 1: version 2 is not known here, only 1"),
        ('"version": 1,', "", "line 1: Object missing required field `version`"),
        ("integer", "number", "line 4: Invalid enum value 'number'"),
        ('"1","2","3"', '"1","2","2"', "line 4: Column 'c' names a level twice"),
        ('"1","2","3"', "", "line 4: Column 'c' has no levels"),
        ('"name":"c"', '"name":"a b"', "line 4: 'a b' appears twice"),
        ("0.5", '"five"', "line 7: Invalid enum value 'five'"),
        ("0.5", "NaN", "line 7: it is not JSON (JSON is malformed"),
        ("0.5", "1e999", "line 7: Number out of range"),
        ("0.5", "null", "line 7: Expected `float | str`, got `null`"),
        ('{"variable":"c"', '{"variable":"d"', "line 9: there is no 'd'"),
        ('"level":"3"', '"level":"4"', "line 9: '4' is not a level of 'c'"),
        ('"level":"3"', '"level":3', "line 9: Expected `str`, got `int`"),
        ('"equal":false', '"equal":0', "line 9: Expected `bool`, got `int`"),
        ('"equal":false', '"size":0', "line 9: Object contains unknown field `size`"),
        ("]}\n]}", "]}", "line 9: it is not JSON (Input data was truncated)"),
        ("\n]}\n", "\n]} more\n", "line 10: it is not JSON"),
        (
            '{"weight":0.5,"conditions":[{"variable":"a b","level":"x"}]}',
            '{"weight":"-inf","conditions":[]}',
            "line 7: a feature that always holds has the weight -inf",
        ),
    ],
)
def test_trouble_is_told_by_file_and_line(tmp_path, old, new, message):
    assert old in JSON
    (tmp_path / "x.json").write_text(JSON.replace(old, new))
    with pytest.raises(FileFormatError, match=r"^'.*x\.json', " + re.escape(message)):
        read_json(tmp_path / "x.json")


def test_opposite_infinities_have_no_sum():
    text = JSON.replace("0.5", '"inf"').replace(
        '\n{"weight":"-inf"',
        '\n{"weight":"-inf","conditions":[{"variable":"a b","level":"x"}]},\n{"weight":1',
    )
    with pytest.raises(FileFormatError, match=r"^line 8: the weights of this feature"):
        parse_json(text)


def test_places_are_found_in_any_layout():
    text = '{"a":\n[1,\n{"b": "]}\\"",\n"c": [\n[],\n{}, 5]}\n], "d":\n{"a": 6}}'
    for path, line in {
        "$": 1, "$.a": 2, "$.a[0]": 2, "$.a[1]": 3, "$.a[1].b": 3, "$.a[1].c": 4, "$.a[1].c[0]": 5,
        "$.a[1].c[1]": 6, "$.a[1].c[2]": 6, "$.d": 8, "$.d.a": 8, "$.a[1].nothing": 3, "$.x": 1,
    }.items():  # fmt: skip
        assert line_of(text, path) == line, path
