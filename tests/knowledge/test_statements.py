"""Statements: what each says in a context, and the list as sentences, counts, frames and plain values."""

import json
from itertools import product

import numpy as np
import pytest

import unless
from unless.data.domain import Domain, Region, Variable
from unless.errors import UnknownLevel, UnknownName
from unless.knowledge.evidence import PairEvidence
from unless.knowledge.sentences import Gate
from unless.knowledge.statements import FINDINGS, KINDS, InContext, Statement, Statements

DOMAIN = Domain(
    (
        Variable("a", ("0", "1")),
        Variable("b", ("0", "1")),
        Variable("g", ("p", "q", "r")),
        Variable("h", ("s", "t")),
        Variable("other", ("u", "v")),
    )
)
GATES = {
    "none": None,
    "one level": [(2, (1,))],
    "two levels": [(2, (0, 2))],
    "two columns": [(2, (0, 2)), (3, (1,))],
}


def evidence(limit=0.05, more_rows=None, n_rows=40):
    return PairEvidence(
        where=(), n_rows=n_rows, statistic=9.0, df=1, p=0.0027, q=0.01, information=0.1, cramers_v=0.3,
        cramers_v_limit=limit, contrast=None, more_rows=more_rows, method="regression", table_given=(),
        tables=np.zeros((0, 0, 0), dtype=np.int64), strata=(),
    )  # fmt: skip


def statement(kind, gate=None, pair=("a", "b"), **fields):
    if isinstance(gate, list):
        gate = Gate.of(DOMAIN, gate)
    is_finding = kind in FINDINGS
    return Statement(
        **{
            "kind": kind, "pair": pair, "gate": gate, "given": ("h",),
            "confidence": 0.9 if is_finding else None,
            "evidence": (evidence(0.4, 7),) if gate is None else (evidence(0.4), evidence(0.06)),
            "n_rows": 100,
            "sentence": f"{pair[0]} {kind} {pair[1]}", "is_finding": is_finding, **fields,
        }
    )  # fmt: skip


def contexts():
    """Yield every context: each column has one of its levels, or is left open."""
    choices = [[None, *variable.levels] for variable in DOMAIN]
    for labels in product(*choices):
        yield {name: label for name, label in zip(DOMAIN.names, labels, strict=True) if label is not None}


def by_rows(kind, clauses, context):
    """Look at every row of the context: what is said in each, put together."""
    if "a" in context or "b" in context:
        return "fixed"
    inside = set()
    for row in product(*(variable.levels for variable in DOMAIN)):
        labels = dict(zip(DOMAIN.names, row, strict=True))
        if any(labels[name] != label for name, label in context.items()):
            continue
        is_open = all(
            labels[DOMAIN.names[column]] in [DOMAIN.variables[column].levels[code] for code in codes]
            for column, codes in clauses or []
        )
        if kind in ("linked", "differs", "determined"):
            inside.add("holds")
        elif kind in ("associated", "open"):
            inside.add("not settled")
        elif kind == "unlinked":
            inside.add("absent")
        else:
            inside.add("holds" if is_open else {"gated": "absent", "partly": "not settled"}[kind])
    return inside.pop() if len(inside) == 1 else "holds in part"


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_state_in_a_context_is_that_of_its_rows(kind, gate):
    needs_gate = kind in ("gated", "differs", "partly")
    if needs_gate != (gate != "none"):
        return
    one = statement(kind, GATES[gate])
    for context in contexts():
        assert one.state_in(context) == by_rows(kind, GATES[gate], context), context


def test_given_reads_every_statement_and_bounds_what_is_absent():
    said = Statements(
        (
            statement("gated", GATES["one level"]),
            statement("partly", GATES["one level"], ("a", "other")),
            statement("unlinked", None, ("b", "other"), evidence=(evidence(0.11),)),
        ),
        domain=DOMAIN,
    )
    there = said.given({"g": "p"})
    assert [(one.state, one.bound) for one in there] == [
        ("absent", 0.06),
        ("not settled", None),
        ("absent", 0.11),
    ]
    assert list(map(str, there)) == [
        "a and b: absent (V at most .06)",
        "a and other: not settled",
        "b and other: absent (V at most .11)",
    ]
    assert [one.state for one in said.given({"g": "q"})] == ["holds", "holds", "absent"]
    assert [one.state for one in said.given({})] == ["holds in part", "holds in part", "absent"]
    assert there[0].to_dict() == {
        "pair": ["a", "b"], "kind": "gated", "state": "absent", "bound": 0.06, "is_finding": True,
        "sentence": "a gated b",
    }  # fmt: skip
    with pytest.raises(UnknownName, match="gg"):
        said.given({"gg": "p"})
    with pytest.raises(UnknownLevel, match="zz"):
        said.given({"g": "zz"})


def test_a_context_takes_values_as_the_table_has_them():
    said = unless.CSGS().fit({"x": [0, 1] * 100, "y": [0, 1, 1, 1] * 50, "z": [1, 2] * 100}).statements_
    assert {one.state for one in said.given({"z": 1}) if "z" in one.pair} == {"fixed"}


def test_names_that_mislead_are_quoted_in_a_context():
    one = statement("linked", None, ("a = b", "c, d"))
    assert str(InContext(one, "holds")) == "'a = b' and 'c, d': holds"


def test_bounds_shares_and_missing_rows():
    assert statement("gated", GATES["one level"]).bound == 0.06
    assert statement("unlinked").bound == 0.4
    assert statement("linked").bound is None
    assert statement("determined", evidence=()).bound is None
    assert (statement("open").more_rows, statement("linked").more_rows) == (7, None)
    assert statement("determined", n_broken=3, evidence=()).share_broken == 0.03
    assert statement("determined", n_rows=0, evidence=()).share_broken == 0


@pytest.fixture
def some():
    pairs = list(product("abgh", ["other", "x"]))
    kinds = ("linked", "gated", "determined", "associated", "unlinked", "unlinked", "open", "partly")
    return Statements(
        tuple(
            statement(
                kind,
                GATES["one level"] if kind in ("gated", "partly") else None,
                pair,
                **({"evidence": ()} if kind == "determined" else {}),
            )
            for kind, pair in zip(kinds, pairs, strict=True)
        ),
        note="A note.",
        settings={"fdr": 0.05},
        domain=DOMAIN,
    )


def test_lists_by_kind(some):
    assert [one.kind for one in some.findings] == ["linked", "gated", "determined", "partly"]
    assert [one.pair for one in some.of_kind("unlinked")] == [("g", "other"), ("g", "x")]
    assert [one.kind for one in some.of_kind("open", "linked")] == ["linked", "open"]
    assert some.counts() == {
        "linked": 1, "gated": 1, "differs": 0, "partly": 1, "determined": 1, "associated": 1, "unlinked": 2,
        "open": 1,
    }  # fmt: skip
    assert some.about("x", "a") is some[1]
    assert some.about("a", "b") is None
    assert (len(some), [*some][2], some[:2]) == (8, some[2], (some[0], some[1]))


def test_lines_say_findings_then_what_is_determined_then_the_rest(some):
    rest = (
        "Other pairs: 1 associated only through others, or for want of a test, 2 not linked, "
        "1 open for want of data."
    )
    assert some.lines() == [
        "a linked other.", "a gated x.", "h partly x.", "b determined other.", rest, "A note."
    ]  # fmt: skip
    assert some.lines(1) == ["a linked other.", "... and 2 more.", "b determined other.", rest, "A note."]
    assert str(some) == "\n".join(some.lines())
    assert repr(some) == "<Statements: 8>"
    few = Statements(some.statements[:1] + some.statements[4:5])
    assert few.lines() == ["a linked other.", "g unlinked other."]
    assert Statements().lines() == []


def test_plain_values_are_json_and_hold_everything(some):
    told = json.loads(json.dumps(some.to_dict(), allow_nan=False))
    assert (told["settings"], told["note"]) == ({"fdr": 0.05}, "A note.")
    assert told["statements"][1] == {
        "kind": "gated",
        "pair": ["a", "x"],
        "gate": {"linked": [{"g": ["q"]}], "not_linked": [{"g": ["p", "r"]}]},
        "given": ["h"],
        "confidence": 0.9,
        "is_finding": True,
        "sentence": "a gated x",
        "source": None,
        "n_broken": 0,
        "bound": 0.06,
        "more_rows": None,
        "support": None,
        "n_rows": 100,
        "evidence": [side.to_dict(tables=False) for side in some[1].evidence],
    }
    assert some.to_dict(tables=True)["statements"][0]["evidence"][0]["tables"] == []


def test_frames_have_a_row_for_each_test(some):
    plain = some.to_frame("dict")
    assert plain["kind"] == [one.kind for one in some for _ in one.evidence]
    assert plain["where"][:3] == ["everywhere", "linked", "elsewhere"]
    assert plain["cramers_v_limit"][:3] == [0.4, 0.4, 0.06]
    for backend in ("pandas", "polars", "pyarrow"):
        assert some.to_frame(backend).shape == (len(plain["a"]), len(plain))
    assert Statements().to_frame("pandas").empty


def test_notebooks_show_a_table(some):
    page = some._repr_html_()
    assert "a linked other." in page
    assert "A note." in page


def test_a_gate_has_all_rows_on_one_of_its_sides():
    for clauses in (one for one in GATES.values() if one):
        gate = Gate.of(DOMAIN, clauses)
        rows = np.array(list(product(*(range(len(variable.levels)) for variable in DOMAIN))))
        sides = [
            np.logical_or.reduce([region.holds(DOMAIN, rows) for region in side])
            for side in (gate.linked, gate.unlinked)
        ]
        assert (sides[0] ^ sides[1]).all()
        wanted = np.logical_and.reduce([np.isin(rows[:, column], codes) for column, codes in clauses])
        assert (sides[0] == wanted).all()
    assert Gate.of(DOMAIN, GATES["two columns"]).names == ("g", "h")
    assert Gate.of(DOMAIN, GATES["two columns"]).unlinked == (
        Region((("g", ("q",)),)),
        Region((("h", ("s",)),)),
    )
