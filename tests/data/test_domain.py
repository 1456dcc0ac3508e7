import pytest

from unless.data.domain import Context, Domain, Variable, shorten
from unless.errors import DataError, UnknownLevel, UnknownName


@pytest.fixture
def domain():
    return Domain((Variable("age", ("1", "1.50", "2")), Variable("sick", ("false", "true"))))


def test_a_level_is_found_by_its_label_or_by_its_scalar(domain):
    assert domain["age"].code("2") == domain["age"].code(2) == domain["age"].code(2.0) == 2
    assert domain["sick"].code(True) == domain["sick"].code("true") == 1


def test_an_unknown_level_is_named_with_the_known_ones(domain):
    with pytest.raises(UnknownLevel, match=r"'3' is not a level of 'age'; its levels are '1', '1.50', '2'\."):
        domain["age"].code(3)


def test_an_unknown_name_is_answered_with_the_closest(domain):
    with pytest.raises(UnknownName, match="did you mean 'sick'"):
        domain.index("sik")


def test_encoding_and_decoding_are_inverse(domain):
    context = Context({"sick": "true", "age": "1"})
    assert domain.decode(domain.encode(context)) == context
    assert str(domain.decode([0, 1])) == "age = 1, sick = true"


@pytest.mark.parametrize("levels", [(), ("a", "a")])
def test_levels_are_some_and_distinct(levels):
    with pytest.raises(DataError, match="'x'"):
        Variable("x", levels)


def test_names_are_distinct():
    with pytest.raises(DataError, match="'x' appears more than once"):
        Domain((Variable("x", ("a",)), Variable("x", ("a",))))


def test_a_long_list_is_cut_and_says_so():
    assert shorten("abcdefghij", at_most=2) == "'a', 'b' and 8 more"


def test_a_number_finds_the_level_it_is_cut_into():
    age = Variable("age", ("under 30", "30 to 44", "45 or more", "missing"), "category", cuts=(30.0, 45.0))
    assert [age.code(one) for one in (-5, 29.9, 30, "44", 45, 1e9, "missing")] == [0, 0, 1, 1, 2, 2, 3]
    for nothing in ("old", float("nan"), float("inf"), None):
        with pytest.raises(UnknownLevel):
            age.code(nothing)
    with pytest.raises(DataError, match="is cut at"):
        Variable("age", ("a", "b"), cuts=(1.0, 2.0))


def test_numbers_and_what_is_said_to_be_ordered_are_ordered():
    assert Variable("a", ("low", "high"), ordered=True).is_ordered
    assert Variable("a", ("1", "2"), "integer").is_ordered
    assert not Variable("a", ("low", "high"), "category").is_ordered
