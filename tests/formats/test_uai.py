"""Tables of potentials."""

import math
import re

import numpy as np
import pytest

from benchmarks.mutants import UAI
from formats.models import log_potentials, same_distribution, small_model
from unless.data.domain import Domain, Variable
from unless.errors import FileFormatError, SettingError, TooLarge
from unless.formats.gather import factors_of
from unless.formats.uai import parse_uai, potentials, read_uai, uai_text, write_uai
from unless.inference.model import LogLinearModel
from unless.structures.graph import Condition, Feature, FeatureSet


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        (tmp_path / "x.uai").write_text(text)
        return read_uai(tmp_path / "x.uai")

    return read_text


def test_cells_are_indicators_with_the_log_of_their_potential(read):
    model = read(UAI)
    weights = {str(f): w for f, w in zip(model.features, model.weights, strict=True)}
    # The scope is (v2, v1): the last variable runs fastest.
    assert weights == {
        "v0 = 0": math.log(0.5),
        "v0 = 1": math.log(0.5),
        "v1 = 0 & v2 = 0": 0.0,
        "v1 = 1 & v2 = 0": math.log(0.25),
        "v1 = 0 & v2 = 1": math.log(1e-3),
        "v1 = 1 & v2 = 1": math.log(2.5),
        "v1 = 0 & v2 = 2": -math.inf,
        "v1 = 1 & v2 = 2": math.log(4.0),
    }


def test_a_bayesian_preamble_is_read_alike(read):
    assert read(UAI.replace("MARKOV", "BAYES")).features == read(UAI).features


def test_scopes_in_any_order_are_the_same_table(read):
    there = read("MARKOV\n2\n2 3\n1\n2 0 1\n6\n1 2 3 4 5 6\n")
    back = read("MARKOV\n2\n2 3\n1\n2 1 0\n6\n1 4 2 5 3 6\n")
    assert there.features == back.features
    np.testing.assert_array_equal(there.weights, back.weights)


def test_tables_of_one_scope_are_multiplied(read):
    twice = read("MARKOV\n1\n2\n2\n1 0\n1 0\n2\n0.5 0\n2\n4 3\n")
    np.testing.assert_allclose(twice.weights, [math.log(2), -math.inf])


def test_scopes_are_written_from_the_last_variable_to_the_first():
    text = uai_text(small_model())
    assert text.split("\n")[:7] == ["MARKOV", "3", "3 2 2", "3", "1 1", "2 1 0", "3 2 1 0"]


def test_features_of_one_scope_are_one_table():
    factors = factors_of(small_model())
    assert {scope: table.shape for scope, table in factors.items()} == {
        (1,): (2,),
        (0, 1): (3, 2),
        (0, 1, 2): (3, 2, 2),
    }
    assert factors[0, 1, 2][2, 1, 1] == factors[0, 1, 2].sum() == 2.0
    np.testing.assert_array_equal(factors[0, 1], [[0, 0], [-1.25, 0], [-1.25, 0]])


def test_a_variable_without_features_gets_an_even_table(read):
    domain = Domain((Variable("a", ("x", "y")), Variable("b", ("x", "y", "z")), Variable("c", ("x",))))
    model = LogLinearModel(FeatureSet(domain, [Feature([Condition("a", "x")])]), [1.0])
    assert factors_of(model)[1,].tolist() == [0, 0, 0]
    again = read(uai_text(model))
    np.testing.assert_allclose(log_potentials(again), log_potentials(model))


def test_too_many_cells_are_refused_with_the_number():
    domain = Domain(tuple(Variable(f"v{k}", ("0", "1")) for k in range(30)))
    feature = Feature([Condition(name, "1") for name in domain.names])
    with pytest.raises(TooLarge, match="1,073,741,824 cells"):
        uai_text(LogLinearModel(FeatureSet(domain, [feature]), [1.0]))
    wide = Domain(tuple(Variable(f"v{k}", ("0", "1")) for k in range(20_000)))
    feature = Feature([Condition(name, "1") for name in wide.names])
    with pytest.raises(TooLarge, match=r"about 10\^6021 cells"):
        uai_text(LogLinearModel(FeatureSet(wide, [feature]), [1.0]))


def test_what_must_hold_leaves_zeros_elsewhere():
    certain = LogLinearModel(small_model().features, [0, math.inf, 0])
    assert factors_of(certain)[0,].tolist() == [-math.inf, 0, 0]
    assert factors_of(certain)[1,].tolist() == [0, -math.inf]


def test_what_a_table_cannot_hold_is_refused(tmp_path):
    single = FeatureSet(Domain((Variable("a", ("x",)),)), [Feature([Condition("a", "x")])])
    with pytest.raises(SettingError, match="nothing is possible"):
        write_uai(LogLinearModel(single, [-math.inf]), tmp_path / "x.uai")
    with pytest.raises(SettingError, match="without variables"):
        uai_text(LogLinearModel(FeatureSet(Domain(())), []))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("weights", [[1000.0, 999.0], [-1000.0, -999.0], [0.0, -1000.0], [-math.inf, 5.0]])
def test_large_and_small_potentials_stay_possible_and_settle(weights, read):
    domain = Domain((Variable("a", ("x", "y")),))
    features = FeatureSet(domain, [Feature([Condition("a", "x")]), Feature([Condition("a", "y")])])
    model = LogLinearModel(features, weights)
    again = read(uai_text(model))
    assert same_distribution(model, again, floor=-700)
    assert np.isneginf(again.weights).tolist() == np.isneginf(weights).tolist()
    assert uai_text(again) == uai_text(model)


def test_potentials_settle_for_all_weights():
    rng = np.random.default_rng(3)
    for scale in (1e-3, 1, 10, 300):
        values = potentials(rng.normal(scale=scale, size=5000).clip(-700, 700))
        assert potentials(np.log(values).clip(-700, 700)) == pytest.approx(values, rel=1e-12)
        assert potentials(np.array([math.log(value) for value in values])) == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: 'MARKOV' or 'BAYES' should be here, not the end of the file"),
        ("GRAPH\n", "line 1: 'MARKOV' or 'BAYES' should be here, not 'GRAPH'"),
        ("MARKOV\nx", "line 2: 'x' is not a number of variables"),
        ("MARKOV\n2\n2", "line 3: a number of levels should be here, not the end"),
        ("MARKOV\n1\n0", "line 3: a variable has no levels"),
        ("MARKOV\n1\n70000", "line 3: a variable has more than 65,535 levels"),
        ("MARKOV\n1\n2\n1\n1 1\n2\n1 1", "line 5: there is no variable 1; the last is 0"),
        ("MARKOV\n1\n2\n1\n2 0 0\n4\n1 1 1 1", "line 5: a table names a variable twice"),
        ("MARKOV\n1\n2\n1\n1 0\n3\n1 1 1", "line 6: the table should have 2 cells, not 3"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1", "line 7: a potential should be here, not the end of the file"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 -1", "line 7: '-1' is negative, which a potential cannot be"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 nan", "line 7: 'nan' is not a potential"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 inf", "line 7: 'inf' is not a potential"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 1e-999", "line 7: '1e-999' is too small a number"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 1 1", "line 7: the end of the file should be here, not '1'"),
        ("MARKOV\n1\n2\n1\n0\n1\n0", "line 7: a table of one cell is zero, so nothing is possible"),
    ],
)
def test_trouble_is_told_by_file_and_line(read, text, message):
    with pytest.raises(FileFormatError, match=r"^'.*x\.uai', " + re.escape(message)):
        read(text)


def test_the_parser_needs_no_file():
    sizes, tables = parse_uai("MARKOV 1 2 1 1 0 2 1 1")
    assert sizes == [2]
    assert [(scope, table.tolist()) for scope, table in tables] == [((0,), [0, 0])]
