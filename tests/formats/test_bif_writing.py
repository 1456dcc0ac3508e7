"""Models written as BIF: the same joint distribution, whatever the names, or a sentence why not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unless
from formats.models import log_probabilities, odd_models, same_distribution, small_model
from structures.models import steady
from unless.data.domain import Domain, Variable
from unless.errors import FileFormatError, ImpossibleEvidence, SettingError, TooLarge
from unless.formats.bif import bif_text, factorised, parse_bif, read_bif, write_bif
from unless.inference.model import LogLinearModel
from unless.structures.graph import Condition, Feature, FeatureSet

few = settings(steady, max_examples=40)


def binary(n):
    return Domain(tuple(Variable(f"v{place}", ("a", "b")) for place in range(n)))


def random_model(seed, n_variables=6, n_features=14):
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 4, n_variables)
    domain = Domain(
        tuple(Variable(f"v{place}", tuple("xyz"[:size])) for place, size in enumerate(sizes.tolist()))
    )
    features = set()
    while len(features) < n_features:
        scope = random.choice(n_variables, random.integers(1, 4), replace=False).tolist()
        conditions = []
        for place in scope:
            label = str(random.choice(domain.variables[place].levels))
            equal = bool(random.random() < 0.7) or len(domain.variables[place].levels) == 1
            conditions.append(Condition(f"v{place}", label, equal=equal))
        features.add(Feature(conditions))
    chosen = FeatureSet(domain, features)
    return LogLinearModel(chosen, random.normal(0, 2, len(chosen)))


@pytest.mark.parametrize("seed", range(25))
def test_the_joint_distribution_is_the_same_state_by_state(seed):
    model = random_model(seed)
    read = parse_bif(bif_text(model))
    assert read.domain == model.domain
    np.testing.assert_allclose(
        np.exp(log_probabilities(read.model)), np.exp(log_probabilities(model)), rtol=0, atol=1e-9
    )


@few
@given(model=odd_models(), order=st.booleans())
def test_odd_names_impossible_states_and_huge_weights_come_back(model, order):
    if log_probabilities(model) is None:
        with pytest.raises((ImpossibleEvidence, SettingError)):
            bif_text(model)
        return
    text = bif_text(model)
    read = parse_bif(text)
    assert [(v.name, v.levels, v.kind) for v in read.domain] == [
        (v.name, v.levels, v.kind) for v in model.domain
    ]
    np.testing.assert_allclose(
        np.exp(log_probabilities(read.model)), np.exp(log_probabilities(model)), rtol=0, atol=1e-9
    )
    # The same model gives the same bytes, and other programs read plain words alone.
    assert bif_text(model) == text
    assert text.isascii()


def test_order_and_cuts_are_kept():
    domain = Domain(
        (
            Variable("age", ("under 30", "30 to 44", "45 or more"), "category", cuts=(30, 45)),
            Variable("grade", ("low", "high"), ordered=True),
        )
    )
    model = LogLinearModel(FeatureSet(domain, [Feature([Condition("age", "30 to 44")])]), [1.0])
    age, grade = parse_bif(bif_text(model)).domain
    assert (age.cuts, age.levels, age.kind) == (
        (30.0, 45.0),
        ("under 30", "30 to 44", "45 or more"),
        "category",
    )
    assert grade.ordered
    assert not age.ordered


def test_parents_are_those_of_a_directed_graph_and_probabilities_sum_to_one():
    model = random_model(3)
    seen = set()
    for one in reversed(list(factorised(model))):
        assert set(one.parents) <= seen
        seen.add(one.child)
        np.testing.assert_allclose(one.table.sum(axis=-1), 1)
    assert seen == set(range(len(model.domain)))


def test_a_tree_has_one_parent_each():
    domain = binary(30)
    pairs = [
        Feature([Condition(f"v{place}", "a"), Condition(f"v{(place - 1) // 2}", "a")])
        for place in range(1, 30)
    ]
    model = LogLinearModel(FeatureSet(domain, pairs), np.linspace(-1, 1, 29))
    read = parse_bif(bif_text(model))
    assert max(map(len, read.parents.values())) == 1
    for name in ("v0", "v17", "v29"):
        np.testing.assert_allclose(
            read.model.query(name).probabilities, model.query(name).probabilities, atol=1e-12
        )


def test_what_is_too_wide_is_refused_before_any_table_is_made(tmp_path):
    domain = binary(60)
    everything = Feature([Condition(name, "a") for name in domain.names])
    model = LogLinearModel(FeatureSet(domain, [everything]), [1.0])
    with pytest.raises(TooLarge, match=r"'v\d+' would have 59 parents\); keep the model .* \.unless, \.mn"):
        write_bif(model, tmp_path / "x.bif")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TooLarge, match=r"has 18 probabilities, about .*, more than 4 "):
        bif_text(small_model(), at_most=4)


def test_a_model_in_which_nothing_is_possible_is_refused():
    domain = binary(1)
    both = [Feature([Condition("v0", "a")]), Feature([Condition("v0", "b")])]
    with pytest.raises(ImpossibleEvidence, match="no state possible"):
        bif_text(LogLinearModel(FeatureSet(domain, both), [-np.inf, -np.inf]))
    with pytest.raises(SettingError, match=r"without variables has no \.bif"):
        bif_text(LogLinearModel(FeatureSet(Domain(()), []), []))


def test_a_name_that_is_no_text_is_refused():
    domain = Domain((Variable("a\ud800", ("x", "y")),))
    with pytest.raises(SettingError, match="not valid Unicode text"):
        bif_text(LogLinearModel(FeatureSet(domain, []), []))


@pytest.mark.parametrize(
    ("said", "trouble"),
    [
        ("unless_levels = a ;", "unless_levels has 1 labels, not 2"),
        ("unless_levels = a,a ;", "names a level twice"),
        ("unless_kind = pink ;", "'pink' is not a kind of variable"),
        ("unless_cuts = many ;", "'many' is not a cut"),
    ],
)
def test_properties_are_not_believed(said, trouble):
    text = f"variable x {{ type discrete [ 2 ] {{ p, q }}; property {said} }}"
    with pytest.raises(FileFormatError, match=f"^line 1: .*{trouble}"):
        parse_bif(text + " probability ( x ) { table 0.5, 0.5; }")


def test_saved_and_read_by_the_ending_of_the_file(tmp_path):
    model = small_model()
    unless.save(model, tmp_path / "x.bif")
    unless.write_model(model, tmp_path / "y.bif")
    assert (tmp_path / "x.bif").read_bytes() == (tmp_path / "y.bif").read_bytes()
    assert same_distribution(unless.read_model(tmp_path / "x.bif"), model)


def awkward_model():
    """Names and labels that BIF has no letters for, beside plain ones."""
    domain = Domain(
        (
            Variable("the grass", ("wet", "a bit", "<5")),
            Variable("table", ("0", "1"), "integer"),
            Variable("Ärger", ("no", "yes")),
        )
    )
    features = [
        Feature([Condition("the grass", "<5"), Condition("table", "1")]),
        Feature([Condition("table", "0"), Condition("Ärger", "yes")]),
    ]
    return LogLinearModel(FeatureSet(domain, features), [1.5, -0.5])


def test_other_words_are_readable_and_differ():
    domain = Domain((Variable("a b", ("<5", ">5", "5")), Variable("a_b", ("x", "y"))))
    text = bif_text(LogLinearModel(FeatureSet(domain, []), []))
    assert "variable a_b_2 {\n  type discrete [ 3 ] { l_5, l_5_2, 5 };" in text
    assert "property unless_levels = %3C5,%3E5,5 ;" in text


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [small_model(), awkward_model(), random_model(1)])
def test_pgmpy_reads_it(model, tmp_path):
    readwrite = pytest.importorskip("pgmpy.readwrite", reason="pgmpy is not installed")
    inference = pytest.importorskip("pgmpy.inference")
    write_bif(model, tmp_path / "x.bif")
    network = readwrite.BIFReader(str(tmp_path / "x.bif")).get_model()
    assert network.check_model()
    asked = inference.VariableElimination(network)
    written = list(network.nodes)
    for name, variable in zip(written, read_bif(tmp_path / "x.bif").domain, strict=True):
        answer = asked.query([name], show_progress=False)
        np.testing.assert_allclose(answer.values, model.query(variable.name).probabilities, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [small_model(), awkward_model()])
def test_pyagrum_reads_it(model, tmp_path):
    gum = pytest.importorskip("pyagrum", reason="pyAgrum is not installed")
    write_bif(model, tmp_path / "x.bif")
    network = gum.loadBN(str(tmp_path / "x.bif"))
    text = (tmp_path / "x.bif").read_text()
    written = [line.split()[1] for line in text.splitlines() if line.startswith("variable ")]
    for name, variable in zip(written, model.domain, strict=True):
        answer = gum.getPosterior(network, target=name).tolist()
        np.testing.assert_allclose(answer, model.query(variable.name).probabilities, atol=1e-6)
