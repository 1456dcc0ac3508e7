"""The .mn files of Libra."""

import math
import re

import numpy as np
import pytest

from formats.models import same_distribution, small_model, states
from unless.data.domain import Domain
from unless.errors import FileFormatError, SettingError
from unless.formats.json_model import names_path
from unless.formats.libra import mn_text, parse_mn, read_mn, write_mn
from unless.inference.model import LogLinearModel
from unless.structures.graph import FeatureSet


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        (tmp_path / "x.mn").write_text(text)
        return read_mn(tmp_path / "x.mn")

    return read_text


def features_of(model):
    return {str(feature): weight for feature, weight in zip(model.features, model.weights, strict=True)}


def test_feature_lines_are_weights_and_conditions(read):
    model = read("2,3\nMN {\n1.5 +v0_1 -v1_2\n-2e-1 -v0_1\n}\n")
    assert model.domain.names == ("v0", "v1")
    assert [variable.levels for variable in model.domain] == [("0", "1"), ("0", "1", "2")]
    # Of two levels, "not 1" is "0".
    assert features_of(model) == {"v0 = 0": -0.2, "v0 = 1 & v1 != 2": 1.5}


def test_blocks_of_features_and_tables_are_lines_too(read):
    lines = "0.5 +v0_0 +v1_0\n0.25 +v0_1 +v1_1\n"
    alone = read(f"2,2\nMN {{\n{lines}}}")
    for block in ("features", "table", "FEATURES"):
        model = read(f"2,2\nmn\n{{\n\n{block} {{\n{lines}}}\n}}\n")
        assert features_of(model) == features_of(alone)
        assert features_of(read(f"2,2\nMN {{ {block} {{ {lines} }} }}")) == features_of(alone)


def test_repeated_features_are_one_with_their_sum(read):
    model = read("2,2\nMN {\n0.5 +v0_0 +v1_0\nfeatures {\n0.25 -v1_1 +v0_0\n-inf +v1_0\n}\n1 +v1_0\n}\n")
    assert features_of(model) == {"v0 = 0 & v1 = 0": 0.75, "v1 = 0": -math.inf}


def test_a_tree_is_its_leaves(read):
    tree = "(v1_2\n  (v0_0 0.5 -0.5)\n  (v1_0 2 (v0_1 -inf 1e-3)))"
    model = read(f"2,3\nMN {{\ntree {{\n{tree}\n}}\n}}\n")
    lines = """0.5 +v1_2 +v0_0
    -0.5 +v1_2 -v0_0
    2 -v1_2 +v1_0
    -inf -v1_2 -v1_0 +v0_1
    1e-3 -v1_2 -v1_0 -v0_1"""
    assert features_of(model) == features_of(read(f"2,3\nMN {{\n{lines}\n}}\n"))
    by_hand = [2, 1e-3, 0.5, 2, -math.inf, -0.5]
    np.testing.assert_allclose(model.log_potentials(states(model.domain)), by_hand)


def test_random_trees_and_their_features_are_the_same_distribution(read):
    rng = np.random.default_rng(5)
    sizes = (2, 3, 2, 4)

    def grow(depth, path, lines):
        if not depth or rng.random() < 0.2:
            weight = repr(float(rng.normal()))
            lines.append(" ".join([weight, *path]))
            return weight
        variable = rng.integers(len(sizes))
        name = f"v{variable}_{rng.integers(sizes[variable])}"
        yes = grow(depth - 1, [*path, f"+{name}"], lines)
        return f"({name} {yes}\n {grow(depth - 1, [*path, f'-{name}'], lines)})"

    for _ in range(20):
        lines = []
        trees = [f"tree {{\n{grow(5, [], lines)}\n}}\n" for _ in range(3)]
        in_trees = read(f"2,3,2,4\nMN {{\n{''.join(trees)}}}\n")
        in_lines = read("2,3,2,4\nMN {\n" + "\n".join(lines) + "\n}\n")
        assert features_of(in_trees) == features_of(in_lines)
        assert same_distribution(in_trees, in_lines)


def test_what_is_always_or_never_true_changes_nothing(read):
    assert not len(read("2,1\nMN {\n3\ntree {\n2\n}\n1 +v0_0 -v0_0\n1 -v1_0\n1 +v0_0 +v0_1\n}").features)


def test_numbers_of_shared_weights_mean_nothing(read):
    model = read("2\nMN {\nw 7 0.25\n7 0.5 +v0_0\n3 +v0_1\n1 2 +v0_1\n}")
    assert features_of(model) == {"v0 = 0": 0.5, "v0 = 1": 5.0}


def test_comments_blank_lines_and_any_line_ending_are_layout(read):
    model = read("# c\r\n\r\n2, 2 // c\r\nMN { # c\r\n\r\n1 +v0_0 # c\r\n}\r\n# c")
    assert features_of(model) == {"v0 = 0": 1.0}


def test_names_lie_beside_the_file(tmp_path):
    model = small_model()
    write_mn(model, tmp_path / "x.mn")
    assert read_mn(tmp_path / "x.mn").domain == model.domain
    text = (tmp_path / "x.mn").read_text()
    (tmp_path / "x.mn").write_text(text.replace("3,2,2", "3,2,3"))
    assert read_mn(tmp_path / "x.mn").domain.names == ("v0", "v1", "v2")
    names_path(tmp_path / "x.mn").write_text("{\n\n}")
    with pytest.raises(FileFormatError, match=r"x\.mn\.names\.json', line 1: .*missing"):
        read_mn(tmp_path / "x.mn")
    names_path(tmp_path / "x.mn").unlink()
    assert read_mn(tmp_path / "x.mn").domain.names == ("v0", "v1", "v2")


def test_an_empty_domain_has_no_file():
    with pytest.raises(SettingError, match="without variables"):
        mn_text(LogLinearModel(FeatureSet(Domain(())), []))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: '' is not a number of levels"),
        ("2,,2\nMN {\n}", "line 1: '' is not a number of levels"),
        ("2,x", "line 1: 'x' is not a number of levels"),
        ("2,0\nMN {\n}", "line 1: variable v1 has no levels"),
        ("2\nBN {\n}", "line 2: 'MN {' should be here, not 'BN'"),
        ("2\nMN\n1 +v0_0", "line 3: '{' should be here, not '1'"),
        ("2\nMN {\n\n", "line 2: a feature or '}' should be here, not the end of the file"),
        ("2\nMN {\none +v0_0\n}", "line 3: 'one' is not a weight"),
        ("2\nMN {\nnan +v0_0\n}", "line 3: 'nan' is not a weight"),
        ("2\nMN {\n1e999 +v0_0\n}", "line 3: '1e999' is too large a number"),
        ("2 2 3\nMN {\n1 +v0_1\n}", "line 1: '2 2 3' is not a number of levels"),
        ("# c\n70000\nMN {\n1 +v0_1\n}", "line 2: variable v0 has more than 65,535 levels"),
        ("2\nMN {\n1 v0_0\n}", "line 3: 'v0_0' is not a condition such as +v0_1 or -v0_1"),
        ("2,2\nMN {\n2 +v0_0, +v1_0\n}", "line 3: '+v0_0,' is not a condition such as +v0_1 or -v0_1"),
        ("2\nMN {\n1.0 v0_0\n}", "line 3: 'v0_0' is not a condition such as +v0_1 or -v0_1"),
        ("2\nMN {\n1 +v1_0\n}", "line 3: there is no variable v1; the last is v0"),
        ("2\nMN {\n1 +v0_2\n}", "line 3: v0 has no level 2; the last is 1"),
        ("2\nMN {\n1 +v0_0\n}\n}", "line 5: the end of the file should be here, not '}'"),
        ("2\nMN {\ntable {\n1 +v0_0\n2 +v0_0\n}\n}", "line 5: a row of the table appears twice"),
        ("2\nMN {\ntree {\n(v0_0 1\n}\n}", "line 5: a weight or '(' should be here, not '}'"),
        ("2\nMN {\ntree {\n(v0_0 1 2 3)\n}\n}", "line 4: ')' should be here, not '3'"),
        ("2\nMN {\ntree {\n(+v0_0 1 2)\n}\n}", "line 4: a split such as v0_1 should be here, not '+v0_0'"),
        ("2\nMN {\ntree {\n1 2\n}\n}", "line 4: '}' should be here, not '2'"),
        ("2\nMN {\ninf +v0_0\n-inf +v0_0\n}", "line 4: the weights of this feature, here and above, have"),
        ("2\nMN {\n1e308 +v0_0\n1e308 +v0_0\n}", "line 4: the weights of this feature, here and above, have"),
        ("2\nMN {\n-inf\n}", "line 3: a feature that always holds has the weight -inf"),
        ("2\nMN {\ninf +v0_0 +v0_1\n}", "line 3: a feature that never holds has the weight inf"),
        ("2\nMN {\nw x 1\n}", "line 3: 'x' is not the number of a shared weight"),
    ],
)  # fmt: skip
def test_trouble_is_told_by_file_and_line(read, text, message):
    with pytest.raises(FileFormatError, match=r"^'.*x\.mn', " + re.escape(message)):
        read(text)


def test_the_parser_needs_no_file():
    sizes, pieces = parse_mn("2\nMN {\n1 +v0_1\n}")
    assert (sizes, pieces) == ([2], [(((0, 1, True),), 1.0, 3)])
