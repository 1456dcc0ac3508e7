"""One question, two answers; the findings everybody can check in the embedded tables."""

import json

import pytest

import unless
from unless.errors import SettingError, UnknownContext, UnknownName
from unless.independence.statistics import tail
from unless.knowledge.asking import ask

# Published statements about the embedded tables: pair, given, context, answer, rows, df and p by Pearson.
PUBLISHED = [
    ("titanic", "Age", "Sex", [], {"Class": "Crew"}, "undecided", 885, 0, 1.0),
    ("titanic", "Age", "Survived", ["Sex"], {"Class": "Crew"}, "undecided", 885, 0, 1.0),
    ("titanic", "Age", "Survived", [], {"Class": "2nd", "Sex": "Female"}, "independent", 106, 1, 0.1501),
    ("titanic", "Age", "Survived", [], {"Class": "2nd", "Sex": "Male"}, "dependent", 179, 1, 1.948e-17),
    ("titanic", "Age", "Class", [], {"Sex": "Female", "Survived": "No"}, "independent", 126, 3, 0.2948),
    ("titanic", "Age", "Class", [], {"Sex": "Male", "Survived": "No"}, "dependent", 1364, 3, 2.801e-17),
    ("ucb_admissions", "Admit", "Gender", [], {"Dept": "A"}, "dependent", 933, 1, 3.28e-05),
    ("ucb_admissions", "Admit", "Gender", [], {"Dept": "B"}, "independent", 585, 1, 0.6145),
    ("ucb_admissions", "Admit", "Gender", [], {"Dept": "C"}, "independent", 918, 1, 0.3854),
    ("ucb_admissions", "Admit", "Gender", [], {"Dept": "D"}, "independent", 792, 1, 0.5852),
    ("ucb_admissions", "Admit", "Gender", [], {"Dept": "E"}, "independent", 584, 1, 0.3171),
    ("ucb_admissions", "Admit", "Gender", [], {"Dept": "F"}, "independent", 714, 1, 0.5354),
]


@pytest.fixture(scope="module")
def learned():
    tables = unless.datasets.catalogue()
    return {name: unless.CSGS().fit(tables[name].load()) for name in ("titanic", "ucb_admissions")}


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: f"{case[1]}-{case[2]} {case[4]}")
def test_published_findings_are_agreed_to(learned, case):
    name, a, b, given, context, answer, n_rows, df, p = case
    asked = learned[name].ask(a, b, given=given, context=context)
    assert (asked.answer, asked.data.n_rows, asked.data.df) == (answer, n_rows, df)
    assert tail(asked.data.df, asked.data.statistic) == pytest.approx(p, rel=1e-3)
    if df:
        verdict = unless.ask(unless.datasets.catalogue()[name].load(), a, b, given=given, context=context)
        # One rule: p by chi-square where the cells are full enough, else by permutations, in both.
        assert (verdict.answer, verdict.p, verdict.method) == (asked.answer, asked.data.p, asked.data.method)
        if verdict.method == "chi-square":
            assert verdict.p == pytest.approx(p, rel=1e-3)


def test_data_and_model_side_by_side(learned):
    asked = learned["ucb_admissions"].ask("Admit", "Gender", context={"Dept": "A"})
    assert (asked.separated, asked.share, asked.agrees) == (False, 1.0, True)
    assert str(asked).splitlines() == [
        "Admit and Gender where Dept = A",
        "  data:  dependent (933 of 4,526 rows, V = .14, p = 3e-5, odds ratio 0.35 (0.21 to 0.58))",
        "  model: dependent (a link in 100 % of these rows)",
        "",
        "            Male  Female",
        "  Admitted   512      89",
        "  Rejected   313      19",
    ]
    elsewhere = learned["ucb_admissions"].ask("Admit", "Gender", context={"Dept": "B"})
    assert (elsewhere.separated, elsewhere.agrees) == (True, True)
    told = json.loads(json.dumps(asked.to_dict()))
    assert told["data"]["tables"] == [{"given": {}, "counts": [[512, 89], [313, 19]]}]
    assert told["model"] == {"separated": False, "share": 1.0}


def test_given_pools_strata_and_a_single_name_is_a_list_of_one(learned):
    one, other = (
        learned["ucb_admissions"].ask("Gender", "Admit", given=given) for given in ("Dept", ["Dept"])
    )
    assert one.data.df == other.data.df == 6
    assert str(one).count("Dept = ") == 6
    assert "Gender and Admit given Dept" in str(one)
    # In department A the model links them, so that it does not say independent of all departments.
    assert one.separated is False


def test_separation_needs_the_paths_between():
    data = unless.datasets.load_ucb_admissions()
    graph = unless.Graph(data.domain, [("Admit", "Dept"), ("Dept", "Gender")])
    assert ask(graph, data, "Admit", "Gender").separated is False
    assert ask(graph, data, "Admit", "Gender", given=["Dept"]).separated is True
    assert ask(graph, data, "Admit", "Gender", context={"Dept": "B"}).agrees is True


def test_too_few_rows_are_said_where_they_are_missing():
    data = unless.read({"a": [0, 1] * 20, "b": [0, 0, 1, 1] * 10, "c": [0] * 20 + [1] * 20})
    graph = unless.Graph(data.domain)
    assert "; about 48 more rows would settle it" in str(ask(graph, data, "a", "b"))
    assert "; about 68 more rows there would settle it" in str(ask(graph, data, "a", "b", context={"c": 1}))
    assert "; about 1 more row would settle it" in str(ask(graph, data, "a", "b", effect=0.44))


def test_a_degenerate_question_is_undecided_in_words(learned):
    asked = learned["titanic"].ask("Age", "Sex", context={"Class": "Crew"})
    assert asked.agrees is None
    assert "undecided, for nothing varies (885 of 2,201 rows)" in str(asked)


@pytest.mark.parametrize(
    ("words", "error", "sentence"),
    [
        ({"a": "Age", "b": "Age"}, SettingError, "'Age' appears twice"),
        ({"a": "Age", "b": "Sex", "given": ["Sex"]}, SettingError, "'Sex' appears twice"),
        ({"a": "Age", "b": "Sex", "given": None}, SettingError, "given=None is no list"),
        ({"a": "Age", "b": "Sexx"}, UnknownName, "Sexx"),
        (
            {"a": "Sex", "b": "Survived", "context": {"Age": "Child", "Class": "Crew"}},
            UnknownContext,
            "No row",
        ),
    ],
)
def test_wrong_questions_get_one_sentence(learned, words, error, sentence):
    with pytest.raises(error, match=sentence):
        learned["titanic"].ask(words.pop("a"), words.pop("b"), **words)


def test_few_rows_do_not_make_a_dependence():
    few = unless.read({"a": ["x", "x", "x", "y", "y"], "b": ["p", "p", "p", "q", "q"]})
    asked = unless.GSMN().fit(few).ask("a", "b")
    # Chi-square says .025; given the margins, one arrangement of ten is as extreme.
    assert tail(asked.data.df, asked.data.statistic) < 0.05
    assert (asked.answer, asked.data.method) == ("undecided", "permutations")
    assert asked.data.p == pytest.approx(0.1, abs=0.03)
    assert "by permutations" in str(asked)
