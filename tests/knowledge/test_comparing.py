"""Two tables and the groups of one: what is said to differ, in words and plain values, by a test."""

import json

import numpy as np
import pytest

import unless
from studies.truth import laws
from unless.errors import SettingError, UnknownName
from unless.knowledge.comparing import compare_groups, compare_tables


def sample(n, seed, strength):
    rng = np.random.default_rng(seed)
    smoking, age = rng.integers(0, 2, n), rng.integers(0, 3, n)
    follows = rng.random(n) < strength
    pressure = np.where(follows, smoking, rng.integers(0, 2, n))
    names = {"Smoking": np.array(["no", "yes"]), "Pressure": np.array(["low", "high"])}
    return {
        "Smoking": names["Smoking"][smoking],
        "Pressure": names["Pressure"][pressure],
        "Age": np.array(["young", "middle", "old"])[age],
    }


def test_sentences_of_two_tables():
    weak, strong, none = (unless.read(sample(3_000, 1, strength)) for strength in (0.15, 0.4, 0.0))
    (said,) = compare_tables(weak, strong).differences
    assert said.sentence == (
        "Pressure and Smoking are linked more strongly in second (V = .41) than in first (V = .16; q = 8e-22)"
    )
    (said,) = compare_tables(strong, weak, names=("2023", "2024")).differences
    assert said.sentence == (
        "Pressure and Smoking are linked more strongly in 2023 (V = .41) than in 2024 (V = .16; q = 8e-22)"
    )
    found = compare_tables(none, strong)
    assert str(found).split("\n")[0] == (
        "Pressure and Smoking are linked in second (V = .41) but not in first (V at most .05; q = 4e-53)."
    )
    assert repr(found) == "<Comparison: 1 of 3 pairs differ>"
    assert compare_tables(strong, none).differences[0].kind == "lost"
    assert found.about("Smoking", "Pressure") is found.differences[0]
    assert found.about("Smoking", "x") is None
    assert "no difference shown" in str(found.about("Age", "Smoking"))


def test_which_table_comes_first_changes_the_words_only():
    without, with_it, pair = laws.link_in_one_group(np.random.default_rng(11))
    rng = np.random.default_rng(12)
    first, second = without.sample(1_000, rng), with_it.sample(1_000, rng)
    forth, back = compare_tables(first, second), compare_tables(second.select(second.names[::-1]), first)
    assert forth.differences[0].pair == pair
    kinds = {"gained": "lost", "stronger": "weaker", "other": "other", "not shown": "not shown"}
    assert [(one.pair, one.p, one.q, one.limit) for one in forth.changes] == [
        (one.pair, one.p, one.q, one.limit) for one in back.changes
    ]
    for one, other in zip(forth.changes, back.changes, strict=True):
        assert kinds[one.kind] == other.kind
        assert (one.first, one.second) == (other.second, other.first)


def test_the_evidence_is_that_of_each_table_alone():
    tables = [unless.read(sample(2_000, seed, strength)) for seed, strength in ((1, 0.0), (2, 0.4))]
    (said,) = compare_tables(*tables).differences
    for side, table in zip((said.first, said.second), tables, strict=True):
        assert (side.n_rows, side.where) == (2_000, ())
        alone = np.zeros((2, 2))
        place = [table.domain.index(name) for name in said.pair]
        np.add.at(alone, tuple(table.rows[:, place].T), table.counts)
        assert side.tables.sum(axis=0).tolist() == alone.tolist()
    assert said.second.contrast.high - said.second.contrast.low == pytest.approx(0.4, abs=0.05)


def test_plain_values():
    found = compare_tables(unless.read(sample(500, 1, 0.0)), unless.read(sample(500, 2, 0.5)))
    told = json.loads(json.dumps(found.to_dict()))
    assert told["sides"] == [{"name": "first", "n_rows": 500}, {"name": "second", "n_rows": 500}]
    assert told["settings"] == {"fdr": 0.05, "effect": 0.2, "correction": "Benjamini-Yekutieli"}
    first, *rest = told["pairs"]
    assert (first["kind"], first["where"]) == ("gained", ["in first", "in second"])
    assert "tables" not in first["first"]
    assert "tables" in found.to_dict(tables=True)["pairs"][0]["first"]
    assert [(one["first"], one["where"]) for one in rest] == [(None, None)] * 2


def test_levels_and_columns_that_only_one_table_has():
    first, second = sample(2_000, 1, 0.0), sample(2_000, 2, 0.4)
    first["here"], second["there"] = first["Age"], second["Age"]
    # Nobody is old in the second: the level is missing, and nothing else.
    second["Age"] = np.where(second["Age"] == "old", "young", second["Age"])
    # The name of the column that tells the tables apart gives way.
    first["table"], second["table"] = (sample(2_000, seed, 0.0)["Smoking"] for seed in (3, 4))
    found = compare_tables(first, second)
    assert found.notes == ("Only in first, left out: here.", "Only in second, left out: there.")
    assert ("Pressure", "Smoking") in {one.pair for one in found.differences}
    assert found.about("Age", "Pressure").df == 1
    assert {name for one in found.changes for name in one.pair} == {"Age", "Pressure", "Smoking", "table"}


def test_few_rows_ask_for_more():
    found = compare_tables(sample(60, 1, 0.3), sample(60, 2, 0.3))
    assert found.differences == ()
    assert all(one.more_rows for one in found.changes)
    (line,) = found.lines()
    most = max(one.more_rows for one in found.changes)
    assert line == (
        f"No difference is shown for 3 pairs: 3 need more rows to tell (about {most:,} more for all)."
    )
    found = compare_tables(sample(60, 1, 0.3), sample(10, 2, 0.3))
    assert (found.changes, found.notes) == ((), ("Fewer than 20 rows, too few to compare: second.",))


def test_groups_of_a_table():
    found = compare_groups(unless.datasets.load_ucb_admissions(), "Dept")
    assert [str(one) for one in found.differences] == [
        "Admit and Gender are linked where Dept = A (V = .14) but not where Dept is not A (V at most .04; "
        "q = .0027)"
    ]
    (one,) = found.differences
    assert (one.kind, one.first.n_rows, one.second.n_rows) == ("lost", 933, 3_593)
    assert [name for name, _ in found.sides] == [f"Dept = {label}" for label in "ABCDEF"]
    assert found.settings["by"] == "Dept"


def test_groups_that_differ_in_no_cut_that_is_sure():
    # The sign of the link goes with the group, a little: all together are not alike, and no cut is sure.
    rng = np.random.default_rng(5)
    strengths = (-0.14, -0.08, 0.0, 0.0, 0.08, 0.14)
    parts = []
    for place, strength in enumerate(strengths):
        x = rng.integers(0, 2, 500)
        follows = rng.random(500) < abs(strength)
        parts.append((x, np.where(follows, x if strength > 0 else 1 - x, rng.integers(0, 2, 500)), place))
    table = {
        "x": np.concatenate([x for x, _, _ in parts]),
        "y": np.concatenate([y for _, y, _ in parts]),
        "g": np.repeat(list("abcdef"), 500),
    }
    (one,) = compare_groups(table, "g", fdr=0.5).changes
    assert one.kind == "other"
    if one.where is None:
        assert one.sentence.startswith("x and y are not linked alike at all levels of g (q = ")
        assert one.first is one.second is None


def test_what_cannot_be_compared_gets_one_sentence():
    table = sample(100, 1, 0.3)
    with pytest.raises(SettingError, match="share fewer than two columns"):
        compare_tables(table, {"a": [0, 1] * 50, "b": [0, 1] * 50})
    with pytest.raises(SettingError, match="give two names"):
        compare_tables(table, table, names=("a", "a"))
    with pytest.raises(UnknownName, match="did you mean 'Age'"):
        compare_groups(table, "Agee")
    with pytest.raises(SettingError, match="makes one group"):
        compare_groups(unless.read({**table, "one": ["x"] * 100}, strict=True), "one")
    with pytest.raises(UnknownName, match="'one' is not in the table as it was read: constant, left out"):
        compare_groups({**table, "one": ["x"] * 100}, "one")
    for wrong in ({"fdr": 0}, {"fdr": True}, {"effect": -1}):
        with pytest.raises(SettingError):
            compare_tables(table, table, **wrong)


def test_all_columns_that_are_left_out_are_named():
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, 2, 200).astype(str) for name in ("a", "b", "group")}
    table |= {f"c{place}": ["x"] * 200 for place in range(12)}
    notes = " ".join(unless.compare_groups(unless.read(table, strict=True), "group").notes)
    assert all(f"c{place}" in notes for place in range(12))
    assert "more" not in notes


def test_the_note_of_a_survey_names_its_table_whichever_was_read_before():
    plain, weights = sample(600, 2, 0.2), np.random.default_rng(3).uniform(0.5, 2, 600)
    survey = unless.read({**sample(600, 1, 0.2), "w": weights}, weight_column="w")
    (note,) = [one for one in compare_tables(plain, survey).notes if "is a survey" in one]
    assert note.startswith("second")
