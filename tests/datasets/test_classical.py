import pytest

from unless.counting.reference import PlainCounts
from unless.datasets import catalogue, load, load_titanic, load_ucb_admissions
from unless.errors import UnknownName


def test_berkeley_has_4526_applicants_in_24_cells():
    admissions = load_ucb_admissions()
    assert (admissions.n_rows, admissions.n_distinct) == (4526, 24)
    assert {variable.name: variable.levels for variable in admissions.domain} == {
        "Admit": ("Admitted", "Rejected"),
        "Gender": ("Male", "Female"),
        "Dept": ("A", "B", "C", "D", "E", "F"),
    }
    assert PlainCounts(admissions).count(0, 1, {2: 0}).tolist() == [[512, 89], [313, 19]]
    assert PlainCounts(admissions).count(0, 1, {}).tolist() == [[1198, 557], [1493, 1278]]
    assert PlainCounts(admissions).count(2, 1, {}).sum(axis=1).tolist() == [933, 585, 918, 792, 584, 714]


def test_titanic_has_2201_people_and_no_child_among_the_crew():
    titanic = load_titanic()
    assert (titanic.n_rows, titanic.n_distinct) == (2201, 24)
    assert {variable.name: variable.levels for variable in titanic.domain} == {
        "Class": ("1st", "2nd", "3rd", "Crew"),
        "Sex": ("Male", "Female"),
        "Age": ("Child", "Adult"),
        "Survived": ("No", "Yes"),
    }
    assert PlainCounts(titanic).count(0, 2, {}).tolist() == [[6, 319], [24, 261], [79, 627], [0, 885]]
    assert PlainCounts(titanic).count(1, 3, {}).tolist() == [[1364, 367], [126, 344]]
    assert PlainCounts(titanic).count(0, 3, {}).tolist() == [[122, 203], [167, 118], [528, 178], [673, 212]]
    assert PlainCounts(titanic).count(0, 3, {2: 0})[:, 0].tolist() == [0, 0, 52, 0]


def test_the_catalogue_describes_what_it_loads():
    assert list(catalogue()) == ["ucb_admissions", "titanic"]
    for name, description in catalogue().items():
        dataset = load(name)
        assert (dataset.n_rows, dataset.n_variables) == (description.n_rows, description.n_columns)
        assert description.about.endswith(".")


def test_an_unknown_dataset_is_refused_with_the_names_there_are():
    with pytest.raises(UnknownName, match="ucb_admissions, titanic"):
        load("iris")
