import inspect

import pytest

from unless.cli import options
from unless.cli.commands.learn import LEARNING, command
from unless.cli.options import READING


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("a", ["a"]),
        ("a,b, c", ["a", "b", "c"]),
        ('"a,b",c', ["a,b", "c"]),
        ('"a ""b""",c', ['a "b"', "c"]),
        ('5" nail,c', ['5" nail', "c"]),
        ('"a"b,c', ['"a"b', "c"]),
    ],
)
def test_names(text, read):
    assert options.names(text) == read


@pytest.mark.parametrize(
    ("text", "read"), [("A:B", ("A", "B")), ('"a:b":c', ("a:b", "c")), ('a:"b:c"', ("a", "b:c"))]
)
def test_pairs(text, read):
    assert options.pair(text) == read


@pytest.mark.parametrize("text", ["A", "A:B:C", ":B", "A:", ""])
def test_no_pairs(text):
    with pytest.raises(ValueError, match="pair of names"):
        options.pair(text)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Dept=A", ("Dept", "A")),
        ("Dept=A=B", ("Dept", "A=B")),
        ('"a=b"=c', ("a=b", "c")),
        ('a="b=c"', ("a", "b=c")),
        ("a=", ("a", "")),
        ("a=b,c", ("a", "b,c")),
    ],
)
def test_assignments(text, read):
    assert options.assignment(text) == read


def test_levels():
    assert options.levels('"a=b"=x,"y,z"') == ("a=b", ["x", "y,z"])


@pytest.mark.parametrize(
    ("text", "read"),
    [("age=4", ("age", 4)), ("age=width:4", ("age", ("width", 4))), ("age=18,65", ("age", [18.0, 65.0]))],
)
def test_bins(text, read):
    assert options.bins(text) == read


@pytest.mark.parametrize("text", ["age", "age=", "age=x", "age=width:", "age=1,x", "age=1.5"])
def test_no_bins(text):
    with pytest.raises(ValueError, match="how to cut"):
        options.bins(text)


def test_rare():
    assert options.rare("5") == (None, 5)
    assert options.rare("Dept=5") == ("Dept", 5)


@pytest.mark.parametrize("text", [r"\t", "tab", "\t"])
def test_a_tab_can_be_typed(text):
    assert options.delimiter(text) == "\t"


def test_reading_options_are_the_arguments_of_read():
    from unless.data.read import read

    # What is shown is --quiet's to say; where the table is, FILE's, --sql's and --database's.
    offered = set(inspect.signature(read).parameters) - {"source", "connection", "weights", "show_progress"}
    assert set(READING) == offered
    assert offered <= {parameter.name for parameter in command.params}


def test_learning_options_are_settings_of_the_default_and_of_the_papers_learner():
    from unless.learners.csgs import CSGS
    from unless.learners.ggs import GGS
    from unless.learners.settings import KERNEL_TESTS

    assert set(LEARNING) - {"fdr"} | {"show_progress"} == set(CSGS.default_settings())
    assert {"alpha", "fdr", "max_blanket", "required_edges"} <= set(LEARNING) & set(GGS.default_settings())
    choices = {parameter.name: parameter.type for parameter in command.params}
    assert list(choices["test"].choices) == list(KERNEL_TESTS)
