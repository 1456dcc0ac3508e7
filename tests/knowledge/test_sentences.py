"""Sentences of every kind, word for word."""

import numpy as np
import pytest

import unless
from unless.data.domain import Domain, Variable
from unless.knowledge import sentences as say
from unless.knowledge.evidence import Contrast, PairEvidence
from unless.knowledge.sentences import Gate

PAIR = ("Income", "Region")
DOMAIN = Domain(
    (
        Variable("Age", ("10", "20", "30", "40", "50"), "integer"),
        Variable("Sex", ("Female", "Male")),
        Variable("Job", ("clerk", "driver", "nurse", "other", "teacher", "writer")),
        Variable("it, too", ("", "a or b", "c")),
    )
)
NOTHING = np.zeros((0, 0, 0), dtype=np.int64)


def evidence(v=0.14, limit=0.3, n_rows=400, contrast=None, more_rows=None, p=0.2):
    return PairEvidence(
        where=(), n_rows=n_rows, statistic=20.0, df=1, p=p, q=0.01, information=0.1, cramers_v=v,
        cramers_v_limit=limit, contrast=contrast, more_rows=more_rows, method="regression", table_given=(),
        tables=NOTHING, strata=(),
    )  # fmt: skip


SHARES = Contrast("Income", "high", "Region", "north", 0.62, "south", 0.4321)
SIDES = (evidence(contrast=SHARES), evidence(v=0.02, limit=0.0489, n_rows=600))


def gated(write, clauses, given=(), sides=SIDES):
    gate = Gate.of(DOMAIN, clauses)
    return write(PAIR, gate, sides, given, 0.934, DOMAIN, 1000)


def where(clauses):
    """Return how a gate is worded, without figures."""
    return gated(say.gated_sentence, clauses).removeprefix("Income and Region are linked ").partition(" (")[0]


def test_a_link():
    told = say.linked_sentence(PAIR, evidence(contrast=SHARES, n_rows=1000), [], 0.9991, 1000, once=False)
    assert told == (
        "Income and Region are linked (Income = high: 62 % where Region = north against 43 % where south; "
        "V = .14; 1,000 rows; confidence .999)"
    )


@pytest.mark.parametrize(
    ("given", "once", "words"),
    [
        ([], True, "linked"),
        (["Vote"], True, "linked once Vote is known"),
        (["Vote", "Sex"], True, "linked once Vote and Sex are known"),
        (["Vote"], False, "linked, given Vote"),
        (["A", "B", "C", "D"], False, "linked, given A, B, C and D"),
        (["A", "B", "C", "D", "E"], False, "linked, given A, B, C and 2 more"),
        (["A", "B", "C", "D", "E"], True, "linked once A, B, C and 2 more are known"),
    ],
)
def test_what_is_given_is_named(given, once, words):
    told = say.linked_sentence(PAIR, evidence(), given, 0.9, 400, once)
    assert told == f"Income and Region are {words} (V = .14; 400 rows; confidence .90)"


@pytest.mark.parametrize(
    ("confidence", "words"),
    [
        (0.999, "are linked"),
        (0.795, "are linked"),
        (0.794, "are probably linked"),
        (0.5, "are probably linked"),
        (0.49, "may be linked"),
        (0.0, "may be linked"),
    ],
)
def test_a_sentence_is_as_sure_as_its_confidence(confidence, words):
    """By the digits that it shows: .795 is written .80."""
    gate = Gate.of(DOMAIN, [(1, (0,))])
    told = [
        say.linked_sentence(PAIR, evidence(), [], confidence, 400, once=False),
        *(
            write(PAIR, gate, SIDES, [], confidence, DOMAIN, 1000)
            for write in (say.gated_sentence, say.differs_sentence, say.partly_sentence)
        ),
    ]
    assert {one.startswith(f"Income and Region {words}") for one in told} == {True}


def test_groups_of_numbers_are_no_labels():
    """They are written as gates are, without quotes: "age is 45 or more"."""
    told = Contrast("Income", "high", "age", "45 or more", 0.62, "30 or 31", 0.4321, cut=("age",))
    assert (
        say.contrast_text(told) == "Income = high: 62 % where age is 45 or more against 43 % where 30 or 31"
    )
    told = Contrast("age", "45 or more", "Region", "a or b", 0.62, "south", 0.4321, cut=("age",))
    assert say.contrast_text(told) == (
        "age is 45 or more: 62 % where Region = 'a or b' against 43 % where south"
    )


def test_columns_cut_alike_are_named_together():
    assert say.cut_text([("a", 4), ("b", 3), ("c", 4)]) == "; rests on b cut in 3, a and c cut in 4"
    assert say.cut_text([]) == ""


def test_a_gate_and_both_of_its_sides():
    assert gated(say.gated_sentence, [(1, (0,))], ["Age"]) == (
        "Income and Region are linked only when Sex = Female, given Age (Income = high: 62 % where "
        "Region = north against 43 % where south; V = .14; elsewhere V at most .05; 400 of 1,000 rows; "
        "confidence .93)"
    )


def test_exceptions_are_worded_as_exceptions():
    assert gated(say.gated_sentence, [(2, (0, 1, 2, 4, 5))], sides=(evidence(), SIDES[1])) == (
        "Income and Region are linked everywhere but where Job = other (V = .14; there V at most .05; "
        "400 of 1,000 rows; confidence .93)"
    )


@pytest.mark.parametrize(
    ("clauses", "words"),
    [
        ([(2, (1,))], "only when Job = driver"),
        ([(2, (0, 1))], "only when Job in {clerk, driver}"),
        ([(2, (0, 1, 2))], "only when Job in {clerk, driver, nurse}"),
        ([(2, (0, 1, 2, 3))], "everywhere but where Job in {teacher, writer}"),
        ([(0, (0, 1))], "only when Age is 20 or less"),
        ([(0, (3, 4))], "only when Age is 40 or more"),
        ([(0, (1, 2))], "only when Age is 20 to 30"),
        ([(0, (0, 2))], "only when Age in {10, 30}"),
        ([(0, (0, 1, 2))], "everywhere but where Age is 40 or more"),
        ([(0, (1, 2, 3, 4))], "everywhere but where Age = 10"),
        ([(1, (1,)), (2, (0, 1, 2, 4, 5))], "only when Job is not other and Sex = Male"),
        ([(0, (0, 1, 2)), (1, (0,))], "only when Age is 30 or less and Sex = Female"),
        ([(1, (1,)), (2, (0, 1, 2, 4))], "only when Job in {clerk, driver, nurse, teacher} and Sex = Male"),
        ([(3, (0,))], "only when 'it, too' = ''"),
        ([(3, (0, 2))], "everywhere but where 'it, too' = 'a or b'"),
    ],
)
def test_levels_are_said_briefly(clauses, words):
    assert where(clauses) == words


def test_no_gate_is_negated_twice():
    for column, variable in enumerate(DOMAIN.variables):
        n = len(variable.levels)
        for number in range(1, 2**n - 1):
            told = where([(column, [code for code in range(n) if number >> code & 1])])
            assert told.count("not") + told.count("but where") <= 1, told


def test_a_link_that_differs():
    stronger = (evidence(v=0.4, n_rows=300), evidence(v=0.1, n_rows=700))
    assert gated(say.differs_sentence, [(1, (0,))], ["Age"], stronger) == (
        "Income and Region are linked, more strongly when Sex = Female than elsewhere, given Age (V = .40; "
        "elsewhere V = .10; 300 of 1,000 rows; confidence .93)"
    )
    assert gated(say.differs_sentence, [(1, (0,))], (), stronger[::-1]) == (
        "Income and Region are linked, in another way when Sex = Female than elsewhere (V = .10; "
        "elsewhere V = .40; 700 of 1,000 rows; confidence .93)"
    )


def test_a_link_that_is_settled_on_one_side():
    sides = (evidence(n_rows=300), evidence(limit=0.123, n_rows=700))
    assert gated(say.partly_sentence, [(2, (0, 1, 2, 4, 5))], ["Age"], sides) == (
        "Income and Region are linked when Job is not other, given Age (V = .14; elsewhere not settled: "
        "V at most .12; 300 of 1,000 rows; confidence .93)"
    )


def test_copies_and_functions():
    assert say.determined_sentence("b", "a", True, 0, 5000) == "a and b say the same in other words"
    assert say.determined_sentence("a", "b", True, 3, 5000) == (
        "a and b say nearly the same in other words (3 of 5,000 rows break it)"
    )
    assert say.determined_sentence("Country", "State", False, 0, 5000) == "Country is determined by State"
    assert say.determined_sentence("Country", "State", False, 1200, 200_000) == (
        "Country is nearly determined by State (1,200 of 200,000 rows break it)"
    )


def test_what_is_no_finding():
    assert say.associated_sentence(PAIR, 0.31, ["Vote"], True, 0.04) == (
        "Income and Region go together (V = .31), but not once Vote is known (V at most .04)"
    )
    for given, is_settled in (([], True), (["Vote"], False)):
        assert say.associated_sentence(PAIR, 0.31, given, is_settled, 0.4) == (
            "Income and Region go together (V = .31); whether beyond what other columns account for is not "
            "settled"
        )
    assert say.unlinked_sentence(PAIR, evidence(limit=0.06), ["Vote"]) == (
        "Income and Region are not linked, given Vote (V at most .06)"
    )
    assert say.open_sentence(PAIR, evidence(limit=0.6, more_rows=1234), []) == (
        "Income and Region: not enough data (V up to .60 is not ruled out, p = .2); about 1,234 more "
        "rows would settle it"
    )
    assert say.open_sentence(PAIR, evidence(limit=0.1), ["Vote"]) == (
        "Income and Region: not enough data, given Vote (V up to .10 is not ruled out, p = .2)"
    )
    assert say.unproposed_sentence(PAIR, evidence(limit=0.6, more_rows=9, p=1e-9), ["Vote"]) == (
        "Income and Region: nothing is claimed, for the structure does not propose them, given Vote "
        "(V up to .60 is not ruled out)"
    )


def test_long_names_are_cut_and_misleading_ones_quoted():
    long = "How satisfied were you with the service that you got, all in all, last year?"
    cut = "'How satisfied were you with the service that you got, all...'"
    assert say.unlinked_sentence((long, "x and y"), evidence(), [long]) == (
        f"{cut} and 'x and y' are not linked, given {cut} (V at most .30)"
    )
    contrast = Contrast(long, "no, never", "x and y", " a", 0.004, "it's, b", 0.0001)
    told = say.linked_sentence((long, "x and y"), evidence(contrast=contrast), [], 0.5, 400, False)
    assert told == (
        f"{cut} and 'x and y' are probably linked ({cut} = 'no, never': 0.4 % where 'x and y' = ' a' "
        'against 0 % where "it\'s, b"; V = .14; 400 rows; confidence .50)'
    )


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (say.decimal, 0.144, ".14"),
        (say.decimal, 0.9949, ".99"),
        (say.decimal, 0.995, "1"),
        (say.decimal, 0.0, ".00"),
        (say.percent, 1.0, "100 %"),
        (say.percent, 0.625, "62 %"),
        (say.percent, 0.0096, "1.0 %"),
        (say.percent, 0.004, "0.4 %"),
        (say.percent, 0.0004, "0 %"),
        (say.sure, 0.5, "confidence .50"),
        (say.sure, 0.9931, "confidence .99"),
        (say.sure, 0.9951, "confidence .995"),
        (say.sure, 0.99951, "confidence over .999"),
        (say.sure, 1.0, "confidence over .999"),
        (lambda p: say.chance("p", p), 0.05, "p = .05"),
        (lambda p: say.chance("p", p), 3e-5, "p = 3e-5"),
        (lambda p: say.chance("q", p), 0.0, "q < 1e-300"),
    ],
)
def test_numbers(write, value, text):
    assert write(value) == text


def test_berkeley():
    assert str(unless.CSGS().fit(unless.datasets.load_ucb_admissions()).statements_).splitlines() == [
        "Admit and Gender are linked only when Dept = A (Admit = Admitted: 82 % where Gender = Female "
        "against 62 % where Male; V = .14; elsewhere V at most .04; 933 of 4,526 rows; confidence .89).",
        "Dept and Gender are linked, given Admit (Gender = Male: 96 % where Dept = B against 33 % where E; "
        "V = .50; 4,526 rows; confidence over .999).",
        "Admit and Dept are linked, given Gender (Admit = Admitted: 70 % where Dept = A against 6 % where F; "
        "V = .41; 4,526 rows; confidence over .999).",
    ]


def test_titanic():
    said = unless.CSGS().fit(unless.datasets.load_titanic()).statements_
    assert str(said[0]) == (
        "Age and Survived are linked only when Class in {1st, 2nd}, given Sex (Age = Child: 18 % where "
        "Survived = Yes against 0 % where No; V = .29; elsewhere V at most .08; 610 of 2,201 rows; "
        "confidence .98)"
    )
    assert str(said.about("Sex", "Survived")).startswith(
        "Sex and Survived are linked, more strongly when Class in {1st, 2nd} than elsewhere, given Age ("
    )
    assert said.lines()[-1] == (
        "Age and Sex go together (V = .11), but not once Class and Survived are known (V at most .06)."
    )
