"""Known networks from BIF files."""

import re
from itertools import permutations

import numpy as np
import pytest

from benchmarks.mutants import BIF
from formats.models import log_potentials, states
from unless.errors import FileFormatError
from unless.formats.bif import parse_bif, read_bif

TWO = "variable a { type discrete [2] { x, y }; }\nvariable b { type discrete [3] { p, q, r }; }\n"
A = "probability ( a ) { table 0.25, 0.75; }\n"


def conditional(network, child, level, **given):
    """Return p(child = level | given) by adding up states."""
    domain, table = network.domain, np.exp(log_potentials(network.model))
    rows = states(domain)
    kept = np.ones(len(rows), dtype=bool)
    for name, label in given.items():
        kept &= rows[:, domain.index(name)] == domain[name].levels.index(label)
    hit = kept & (rows[:, domain.index(child)] == domain[child].levels.index(level))
    return table[hit].sum() / table[kept].sum()


def test_a_network_is_read_with_names_levels_and_parents():
    network = parse_bif(BIF)
    assert network.domain.names == ("rain", "the grass", "shoes")
    assert network.domain["the grass"].levels == ("wet", "a bit", "dry")
    assert network.parents == {"rain": (), "the grass": ("rain",), "shoes": ("rain", "the grass")}
    assert network.arcs() == (("rain", "the grass"), ("rain", "shoes"), ("the grass", "shoes"))
    assert network.moral_graph().n_edges == 3
    assert np.exp(log_potentials(network.model)).sum() == pytest.approx(1)
    assert conditional(network, "rain", "yes") == pytest.approx(0.2)
    assert conditional(network, "the grass", "wet", rain="yes") == pytest.approx(0.8)
    assert conditional(network, "the grass", "dry", rain="no") == pytest.approx(0.7)
    assert conditional(network, "shoes", "on", rain="yes", **{"the grass": "wet"}) == pytest.approx(0.9)
    assert conditional(network, "shoes", "on", rain="no", **{"the grass": "wet"}) == pytest.approx(0.5)


def test_a_collider_marries_its_parents():
    text = "".join(f"variable {name} {{ type discrete [2] {{ x, y }}; }}\n" for name in "abc")
    rows = "".join(f"({a}, {b}) 0.5, 0.5;" for a in "xy" for b in "xy")
    alone = "".join(f"probability ( {name} ) {{ table 0.5, 0.5; }}" for name in "ab")
    network = parse_bif(f"{text}{alone}probability ( c | a, b ) {{ {rows} }}")
    assert network.moral_graph().edges == {("a", "b"), ("a", "c"), ("b", "c")}


def test_rows_find_their_place_by_labels_not_by_order():
    rows = ["(x) 0.1, 0.2, 0.7;", "(y) 0.6, 0.3, 0.1;", "property note (z);"]
    for ordered in permutations(rows):
        network = parse_bif(f"{TWO}{A}probability ( b | a ) {{ {' '.join(ordered)} }}")
        assert conditional(network, "b", "r", a="x") == pytest.approx(0.7)
        assert conditional(network, "b", "p", a="y") == pytest.approx(0.6)
        assert conditional(network, "a", "x") == pytest.approx(0.25)


def test_blocks_may_come_in_any_order():
    blocks = [*TWO.splitlines(), A, "probability ( b | a ) { (y) 0.6, 0.3, 0.1; (x) 0.1, 0.2, 0.7; }"]
    for ordered in permutations(blocks):
        network = parse_bif("\n".join(ordered))
        assert conditional(network, "b", "r", a="x") == pytest.approx(0.7)


def test_a_whole_table_counts_the_parents_fastest():
    for head in ("b | a", "b a", '"b", "a"'):
        network = parse_bif(f"{TWO}{A}probability ( {head} ) {{ table 0.1 0.6 0.2 0.3 0.7 0.1; }}")
        assert conditional(network, "b", "p", a="x") == pytest.approx(0.1)
        assert conditional(network, "b", "p", a="y") == pytest.approx(0.6)


def test_a_table_whose_order_the_sums_do_not_tell_is_refused():
    text = "".join(f"variable {name} {{ type discrete [3] {{ x, y, z }}; }}\n" for name in "ab")
    first = "probability ( a ) { table 0.25, 0.25, 0.5; }\n"
    circulant = "0.2 0.3 0.5  0.5 0.2 0.3  0.3 0.5 0.2"
    with pytest.raises(FileFormatError, match=r"^line 4: the order of the table is ambiguous"):
        parse_bif(f"{text}{first}probability ( b | a ) {{ table {circulant}; }}")
    symmetric = "0.2 0.3 0.5  0.3 0.5 0.2  0.5 0.2 0.3"
    network = parse_bif(f"{text}{first}probability ( b | a ) {{ table {symmetric}; }}")
    assert conditional(network, "b", "x", a="y") == pytest.approx(0.3)


def test_rounded_rows_are_evened_out():
    network = parse_bif(f"{TWO}{A}probability ( b | a ) {{ (x) .333 .333 .333; (y) 0 0 1; }}")
    assert np.exp(log_potentials(network.model)).sum() == pytest.approx(1, abs=1e-12)
    assert conditional(network, "b", "q", a="x") == pytest.approx(1 / 3)
    assert conditional(network, "b", "q", a="y") == 0


def test_variables_of_one_level_and_words_of_the_format_are_names_too():
    text = """variable table { type discrete [1] { default }; }
    variable variable { type discrete [2] { type, probability }; }
    probability ( table ) { table 1; }
    probability ( variable | table ) { (default) 0.25, 0.75; }"""
    network = parse_bif(text)
    assert conditional(network, "variable", "type") == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: a variable should be here, not the end of the file"),
        ("net x {}", "line 1: 'network' or 'variable' or 'probability' should be here, not 'net'"),
        ("network x { prop; }", "line 1: a property or '}' should be here, not 'prop'"),
        ("variable a { }", "line 1: the type of the variable should be here, not '}'"),
        ("variable a {\n type continuous; }", "line 2: 'discrete' should be here, not 'continuous'"),
        ("variable a {\n type discrete [ 3 ] { x, y }; }", "line 2: there should be 3 levels, not 2"),
        ("variable a {\n type discrete [ 2 ] { x, x }; }", "line 2: a level appears twice"),
        (TWO + TWO, "line 3: variable 'a' appears twice"),
        (TWO + A, "line 3: there is no table for variable 'b'"),
        (TWO + A + A, "line 4: 'a' has two tables"),
        (TWO + A + "probability ( c ) { table 1; }", "line 4: there is no table for variable 'b'"),
        (TWO + A + "probability ( b | c ) {\n}", "line 4: there is no variable 'c'"),
        (TWO + A + "probability ( b | b ) {\n}", "line 4: a table names a variable twice"),
        (TWO + A + "probability ( b ) { table 0.1 0.9; }", "line 4: there should be 3 probabilities, not 2"),
        (TWO + A + "probability ( b ) { table 0.1 0.9 x; }", "line 4: 'x' is not a probability"),
        (TWO + A + "probability ( b ) { table 0.1 1.9 -1; }", "line 4: '-1' is negative, which"),
        (TWO + A + "probability ( b ) { table 0.1 0.8 0.2; }", "line 4: the probabilities of 'b' do not"),
        (TWO + A + "probability ( b | a ) {\n(x) 1 0 0;\n}", "line 4: the table of 'b' has no row for some"),
        (TWO + A + "probability ( b | a ) {\n(x) 1 0 0;\n(x) 1 0 0; }", "line 6: the row (x) appears twice"),
        (TWO + A + "probability ( b | a ) {\n(z) 1 0 0;\n}", "line 5: 'z' is not a level of 'a'"),
        (TWO + A + "probability ( b | a ) {\n(x, y) 1 0 0;\n}", "line 5: the row names 2 labels"),
        (TWO + A + "probability ( b | a ) {\n(x) 1 0 0.5;\n}", "line 5: the probabilities sum to 1.5, not"),
        (TWO + A + "probability ( b ) {\ntable 1 0 0; default 1 0 0; }", "line 5: there are rows beside"),
        (
            TWO + "probability ( a | b ) { default 1 0; }\nprobability ( b | a ) { default 1 0 0; }",
            "line 3: 'a' is among its own ancestors",
        ),
    ],
)  # fmt: skip
def test_trouble_is_told_by_file_and_line(tmp_path, text, message):
    (tmp_path / "x.bif").write_text(text)
    with pytest.raises(FileFormatError, match=r"^'.*x\.bif', " + re.escape(message)):
        read_bif(tmp_path / "x.bif")
