import copy
import pickle
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structures.models import assignments, contexts, domains, feature_lists, is_separated, steady
from unless.data.domain import Context, Domain, Variable
from unless.errors import SettingError, UnknownLevel, UnknownName
from unless.structures.graph import Condition, Feature, FeatureSet
from unless.structures.structure import FeatureArrays

DOMAIN = Domain(
    (
        Variable("Dept", ("A", "B", "C")),
        Variable("Gender", ("Female", "Male")),
        Variable("Admit", ("no", "yes")),
    )
)
A = Condition("Dept", "A")
NOT_A = Condition("Dept", "A", equal=False)
NOT_B = Condition("Dept", "B", equal=False)
IS_C = Condition("Dept", "C")
MALE = Condition("Gender", "Male")
NOT_MALE = Condition("Gender", "Male", equal=False)


def truth(domain, feature):
    return frozenset(Context(x) for x in assignments(domain) if feature.matches(x))


def test_a_feature_reads_like_a_sentence_in_one_order():
    feature = Feature([NOT_MALE, A, A])
    assert str(feature) == "Dept = A & Gender != Male"
    assert repr(feature) == "<Feature: Dept = A & Gender != Male>"
    assert feature == Feature([A, NOT_MALE])
    assert hash(feature) == hash(Feature([A, NOT_MALE]))
    assert feature.scope == ("Dept", "Gender")
    assert list(feature) == [A, NOT_MALE]
    assert len(feature) == 2
    assert A in feature


def test_a_feature_matches_where_all_its_conditions_hold():
    feature = Feature([A, NOT_MALE])
    assert feature.matches({"Dept": "A", "Gender": "Female"})
    assert not feature.matches({"Dept": "A", "Gender": "Male", "Admit": "no"})
    assert Feature([Condition("n", 2)]).matches({"n": 2.0})
    with pytest.raises(SettingError, match="speaks of 'Gender'"):
        feature.matches({"Dept": "A"})


@steady
@given(st.data())
def test_a_set_holds_each_indicator_once_whatever_its_wording(data):
    domain = data.draw(domains(max_variables=4))
    listed = data.draw(feature_lists(domain))
    features = FeatureSet(domain, listed)
    kept = [truth(domain, feature) for feature in features]
    assert set(kept) == {truth(domain, feature) for feature in listed}
    assert all(feature in features for feature in listed)
    # Over a variable of one level different words are always true together; elsewhere no two are.
    if all(len(variable.levels) > 1 for variable in domain):
        assert len(kept) == len(set(kept))


@steady
@given(st.data())
def test_the_order_of_features_and_columns_is_forgotten(data):
    domain = data.draw(domains(max_variables=4))
    listed = data.draw(feature_lists(domain))
    features = FeatureSet(domain, listed)
    again = FeatureSet(domain, data.draw(st.permutations(listed + listed)))
    assert again == features
    assert [str(feature) for feature in again] == [str(feature) for feature in features]
    moved = FeatureSet(domain.select(data.draw(st.permutations(domain.names))), listed)
    assert moved == features
    assert hash(moved) == hash(features)
    assert (FeatureSet(domain, listed[1:]) == features) == (
        len(listed) == 0 or listed[0] in FeatureSet(domain, listed[1:])
    )


@steady
@given(st.data())
def test_given_links_what_interacts_in_some_completion_of_the_context(data):
    domain = data.draw(domains(max_variables=4))
    features = FeatureSet(domain, data.draw(feature_lists(domain)))
    context = data.draw(contexts(domain))
    expected = set()
    for x in assignments(domain):
        if all(x[name] == label for name, label in context.items()):
            active = [feature for feature in features if feature.matches(x)]
            expected |= {pair for feature in active for pair in combinations(feature.scope, 2)}
    graph = features.given(context)
    assert graph.edges == expected
    assert graph.context == context
    assert features.graph().edges == {pair for feature in features for pair in combinations(feature.scope, 2)}


@steady
@given(st.data())
def test_independence_is_separation_given_the_context(data):
    domain = data.draw(domains(min_variables=2, max_variables=5))
    features = FeatureSet(domain, data.draw(feature_lists(domain)))
    full = data.draw(contexts(domain, complete=True))
    roles = {name: data.draw(st.sampled_from("abgw")) for name in domain.names}
    a, b, between, fixed = ([name for name in roles if roles[name] == role] for role in "abgw")
    context = {name: full[name] for name in fixed}
    if a and b:
        expected = is_separated(features.given(context).edges, domain.names, a, b, between + fixed)
        assert features.is_independent(a, b, given=between, context=context) == expected


def test_a_feature_outside_the_context_acts_in_every_context():
    features = FeatureSet(DOMAIN, [Feature([MALE, Condition("Admit", "yes")]), Feature([A, MALE])])
    assert features.given({"Dept": "B"}).edges == {("Admit", "Gender")}
    assert features.is_independent("Dept", "Admit", given="Gender")
    assert not features.is_independent("Dept", "Admit")


def test_the_normal_wording_is_equality_where_one_level_is_left():
    features = FeatureSet(
        DOMAIN, [Feature([NOT_MALE]), Feature([NOT_A, NOT_B]), Feature([IS_C]), Feature([NOT_A])]
    )
    assert [str(feature) for feature in features] == ["Dept != A", "Dept = C", "Gender = Female"]
    assert Feature([IS_C, NOT_A]) in features
    assert Feature([A]) not in features
    assert "Dept = C" not in features
    assert repr(features) == "<FeatureSet: 3 features over 3 variables>"


@pytest.mark.parametrize(
    "conditions", [[A, NOT_A], [A, IS_C], [NOT_A, NOT_B, Condition("Dept", "C", equal=False)]]
)
def test_a_contradiction_is_refused_and_is_in_no_set(conditions):
    with pytest.raises(SettingError, match="contradicts itself"):
        FeatureSet(DOMAIN, [Feature(conditions)])
    assert Feature(conditions) not in FeatureSet(DOMAIN, [Feature([A])])


def test_features_that_do_not_fit_the_domain_are_refused():
    with pytest.raises(SettingError, match="always true"):
        FeatureSet(DOMAIN, [Feature([])])
    with pytest.raises(UnknownName):
        FeatureSet(DOMAIN, [Feature([Condition("Age", "9")])])
    with pytest.raises(UnknownLevel):
        FeatureSet(DOMAIN, [Feature([Condition("Dept", "Z")])])
    assert Feature([Condition("Dept", "Z")]) not in FeatureSet(DOMAIN)
    for variable, level in ((3, 0), (-1, 0), (1, 2)):
        with pytest.raises(SettingError, match="outside the domain"):
            FeatureSet.from_arrays(DOMAIN, FeatureArrays.of([[(variable, level, True)]]))


def test_arrays_follow_one_another_in_order_and_do_not_change():
    features = FeatureSet(DOMAIN, [Feature([MALE, A]), Feature([NOT_A]), Feature([MALE])])
    start, variable, level, equal = features.arrays
    assert start.tolist() == [0, 1, 2, 4]
    assert variable.tolist() == [0, 1, 0, 1]
    assert level.tolist() == [0, 1, 0, 1]
    assert equal.tolist() == [False, True, True, True]
    assert [array.dtype for array in features.arrays] == [np.int64, np.int32, np.uint16, np.bool_]
    with pytest.raises(ValueError, match="read-only"):
        level[0] = 1
    with pytest.raises(AttributeError, match="does not change"):
        features.domain = None
    assert FeatureSet.from_arrays(DOMAIN, features.arrays) == features
    assert pickle.loads(pickle.dumps(features)) == copy.deepcopy(features) == features


def test_an_empty_set_has_an_empty_graph():
    empty = FeatureSet(DOMAIN)
    assert len(empty) == 0
    assert list(empty) == []
    assert empty.graph().edges == empty.given({"Dept": "A"}).edges == frozenset()
    assert empty != FeatureSet(DOMAIN, [Feature([A])])
    assert empty != FeatureSet(DOMAIN.select(["Dept"]))
    assert empty != "nothing"
