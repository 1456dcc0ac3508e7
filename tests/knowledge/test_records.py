"""What files keep beside the structure: statements with evidence, and the table."""

import dataclasses
import os
import stat

import msgspec
import numpy as np
import pytest

import unless
from unless.errors import FileFormatError, NotFitted, SettingError
from unless.formats.record import read_container, write_container
from unless.knowledge.evidence import PairEvidence
from unless.knowledge.records import statements_from_record, statements_to_record
from unless.knowledge.statements import Statement, Statements
from unless.learners.registry import LEARNERS
from unless.structures.canonical import CanonicalModel

EVERY = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
QUICK = {
    "GSSL": {"n_draws": 500, "prune": 1, "prior": unless.Gaussian(1) + unless.Laplace(1)},
    "DTSL": {"kappa": 0.01},
}


def learned(learner, data=None):
    data = unless.datasets.load_titanic() if data is None else data
    return learner(**QUICK.get(learner.__name__, {})).fit(data)


def evidence(statements):
    """Return all that equality leaves out."""
    return [[(side.tables.tolist(), side.strata) for side in one.evidence] for one in statements]


@pytest.fixture
def saved(tmp_path):
    """Save what GGS learns, and return where."""
    unless.save(learned(unless.GGS), tmp_path / "m.unless")
    return tmp_path / "m.unless"


def change(path, edit):
    """Edit the first statement of a file, as plain values."""
    members = read_container(path)
    text = msgspec.json.decode(members["model.json"])
    edit(text["statements"]["statements"][0])
    write_container(path, {**members, "model.json": msgspec.json.encode(text)})


@EVERY
def test_statements_and_table_come_back_without_a_test(learner, tmp_path, monkeypatch):
    est = learned(learner)
    said = est.statements_
    path = tmp_path / "m.unless"
    unless.save(est, path)
    monkeypatch.setattr("unless.knowledge.explaining.explain", None)
    back = unless.load(path)
    assert back.statements_ == said
    assert evidence(back.statements_) == evidence(said)
    assert (back.data_, back.data_.notes) == (est.data_, est.notes_)
    assert str(back.ask("Age", "Survived", given=["Class"])) == str(
        est.ask("Age", "Survived", given=["Class"])
    )
    unless.save(back, tmp_path / "again.unless")
    assert (tmp_path / "again.unless").read_bytes() == path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@EVERY
def test_rows_can_be_left_out(learner, tmp_path):
    est = learned(learner)
    path = tmp_path / "m.unless"
    if learner.kept_structure is CanonicalModel:
        with pytest.raises(SettingError, match="cannot be saved without rows"):
            unless.save(est, path, rows=False)
        assert not path.exists()
        return
    unless.save(est, path, rows=False)
    back = unless.load(path)
    assert [one.sentence for one in back.statements_] == [one.sentence for one in est.statements_]
    assert [one.gate for one in back.statements_] == [one.gate for one in est.statements_]
    assert all(not len(side.tables) and not side.strata for one in back.statements_ for side in one.evidence)
    assert "counts.npy" not in read_container(path)
    assert stat.S_IMODE(path.stat().st_mode) != 0o600 or os.umask(0o022) != 0o022
    with pytest.raises(NotFitted, match=r"keeps no rows; call est\.ask\(\.\.\., data=data\)"):
        back.ask("Age", "Sex")
    assert back.ask("Age", "Sex", data=est.data_).n_rows == 2201
    # What is saved once more is the same file.
    unless.save(back, tmp_path / "again.unless")
    assert (tmp_path / "again.unless").read_bytes() == path.read_bytes()


def test_rows_is_yes_or_no(tmp_path):
    with pytest.raises(SettingError, match="rows='no' must be True or False"):
        unless.save(learned(unless.GGS), tmp_path / "m.unless", rows="no")


def test_tables_of_many_levels_take_the_room_of_their_rows():
    levels = tuple(map(str, range(250)))
    domain = unless.Domain(
        (*(unless.Variable(name, levels) for name in "ab"), unless.Variable("c", ("x", "y")))
    )
    tables = np.zeros((2, 250, 250), dtype=np.int64)
    tables[:, range(250), range(250)] = 3
    side = PairEvidence(
        where=(), n_rows=1500, statistic=9.0, df=1, p=0.1, q=0.2, information=0.5, cramers_v=0.3,
        cramers_v_limit=0.4, contrast=None, more_rows=None, method="regression", table_given=("c",),
        tables=tables, strata=(("x",), ("y",)),
    )  # fmt: skip
    said = Statement(
        kind="linked", pair=("a", "b"), gate=None, given=("c",), confidence=0.9, evidence=(side,),
        n_rows=1500, sentence="a and b are linked", is_finding=True,
    )  # fmt: skip
    statements = Statements((said,), "", {"fdr": 0.05}, domain)
    kept = statements_to_record(statements)
    # A position and a count for each of 500 cells, not 125,000 cells.
    assert sum(map(len, kept.members.values())) < 16 * 500 + 5 * 256
    back = statements_from_record(kept, domain)
    assert back == statements
    assert evidence(back) == evidence(statements)


def test_numbers_that_json_has_no_word_for_come_back(tmp_path):
    est = learned(unless.GGS)
    first, *others = est.statements_.statements
    odd = dataclasses.replace(first.evidence[0], statistic=float("inf"))
    odd = dataclasses.replace(first, evidence=(odd, *first.evidence[1:]))
    est._statements = dataclasses.replace(est.statements_, statements=(odd, *others))
    unless.save(est, tmp_path / "m.unless")
    assert unless.load(tmp_path / "m.unless").statements_ == est.statements_


def n_given(one):
    return len(one["evidence"][0]["table_given"])


@pytest.mark.parametrize(
    ("edit", "trouble"),
    [
        (lambda one: one.update(kind="maybe"), "no kind of statement 'maybe'"),
        (lambda one: one.update(pair=["Survived", "Age"]), "not two names in order"),
        (lambda one: one.update(pair=["Age", "Agee"]), "no variable 'Agee'"),
        (lambda one: one.update(given=["Nobody"]), "no variable 'Nobody'"),
        (lambda one: one.update(confidence=1.5), "no probability"),
        (lambda one: one.update(source="Class"), "not of its pair"),
        (lambda one: one["gate"]["linked"][0][0].update(levels=["9th"]), "'9th' is not a level"),
        (lambda one: one["gate"]["linked"][0][0].update(levels=["2nd", "1st"]), "not said in the usual way"),
        (lambda one: one["evidence"][0].update(n_cells=10**9), "another type or size"),
        (lambda one: one["evidence"][0].update(n_strata=10**9), "another type or size"),
        (
            lambda one: one["evidence"][0].update(table_given=["Nobody"] * n_given(one)),
            "no variable 'Nobody'",
        ),
        (lambda one: one["evidence"][0]["contrast"].update(level="Old"), "levels that are not there"),
        (lambda one: one["evidence"][0]["contrast"].update(other="Sex"), "not of its pair"),
        (lambda one: one["evidence"].append(one["evidence"][0]), "another type or size"),
        (lambda one: one.update(extra=1), "unknown field `extra`"),
    ],
)
def test_damaged_statements_are_refused(saved, edit, trouble):
    change(saved, edit)
    with pytest.raises(FileFormatError, match=trouble) as caught:
        unless.load(saved)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("member", ["cells", "counts", "figures", "numbers", "strata"])
def test_damaged_arrays_are_noticed_or_valid(saved, member):
    members = read_container(saved)
    content = members[f"statements_{member}.npy"]
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        write_container(saved, {**members, f"statements_{member}.npy": bytes(damaged)})
        try:
            assert len(unless.load(saved).statements_) == 6
        except FileFormatError:
            continue


def test_a_missing_member_is_noticed(saved):
    members = read_container(saved)
    del members["statements_cells.npy"]
    write_container(saved, members)
    with pytest.raises(FileFormatError, match=r"statements_cells\.npy is missing"):
        unless.load(saved)
