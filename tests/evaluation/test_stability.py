"""Stability: the learner learns again, and every statement is held against what it then says."""

import json
from dataclasses import astuple

import numpy as np
import pytest

import unless
from unless.data.dataset import Dataset, resample
from unless.errors import DataError, SettingError
from unless.evaluation import stability
from unless.knowledge.sentences import Gate
from unless.knowledge.statements import FINDINGS, Statement

DOMAIN = unless.Domain(tuple(unless.Variable(name, ("a", "b")) for name in "gxy"))


@pytest.fixture(scope="module")
def berkeley():
    return unless.datasets.load_ucb_admissions()


def says_linked(statement, labels):
    """Tell whether a statement claims a link in a row."""
    if statement.kind in ("associated", "unlinked", "open"):
        return False
    if statement.kind in ("linked", "differs", "determined"):
        return True
    return any(
        all(labels[name] in levels for name, levels in region.conditions) for region in statement.gate.linked
    )


def naive_support(statement, estimator, data, n_resamples, seed, share=None):
    """Learn again, and go through the rows one by one."""
    same = told = 0
    for one in np.random.SeedSequence(seed).spawn(n_resamples):
        drawn = resample(data, np.random.default_rng(one), share)
        other = type(estimator)(**estimator.get_params()).fit(drawn).statements_.about(*statement.pair)
        sides = {True: [0, 0], False: [0, 0]}
        for row, count in zip(drawn.rows, drawn.counts.tolist(), strict=True):
            labels = drawn.domain.decode(row)
            side = sides[says_linked(statement, labels)]
            side[0] += count
            side[1] += count * says_linked(other, labels)
        wanted = {"gated": (True, False), "unlinked": (False,), "associated": (False,), "open": (False,)}
        asked = wanted.get(statement.kind, (True,))
        if any(sides[side][0] == 0 for side in asked):
            continue
        told += 1
        same += all((sides[side][1] / sides[side][0] >= 0.5) == side for side in asked)
    return same / told, told


@pytest.mark.parametrize("name", ["ucb_admissions", "titanic"])
@pytest.mark.parametrize("share", [None, 0.4])
def test_support_is_that_of_learning_again_by_hand(name, share):
    est, data = unless.CSGS(), getattr(unless.datasets, f"load_{name}")()
    found = unless.Stability(est, 6, sample_fraction=share, random_state=3).fit(data)
    assert len(found.statements_) == {"ucb_admissions": 3, "titanic": 6}[name]
    for statement, support in zip(found.statements_, found.supports_, strict=True):
        assert (support.support, support.n_told) == naive_support(statement, est, data, 6, 3, share)
        assert statement.support == support.support
    assert not hasattr(est, "structure_")


def test_a_column_that_another_determines_comes_again():
    rng = np.random.default_rng(0)
    state = rng.integers(0, 6, 1_000)
    data = unless.read({"state": state, "land": state // 2, "other": rng.integers(0, 2, 1_000)})
    found = unless.Stability(unless.CSGS(), 5, random_state=0).fit(data)
    (one,) = found.statements_.of_kind("determined")
    assert (one.pair, one.support) == (("land", "state"), 1.0)


def test_each_kind_says_where_it_is_linked_and_where_not():
    region, rest = (unless.Region.of(DOMAIN, {"g": levels}) for levels in (["a"], ["b"]))
    everywhere = (unless.Region(),)
    for kind, sides in {
        "linked": (everywhere, None),
        "differs": (everywhere, None),
        "determined": (everywhere, None),
        "gated": ((region,), (rest,)),
        "partly": ((region,), None),
        "associated": (None, everywhere),
        "unlinked": (None, everywhere),
        "open": (None, everywhere),
    }.items():
        gate = Gate((region,), (rest,)) if kind in ("gated", "differs", "partly") else None
        one = Statement(
            kind=kind, pair=("x", "y"), gate=gate, given=(), confidence=None, evidence=(), n_rows=9,
            sentence="", is_finding=kind in FINDINGS,
        )  # fmt: skip
        assert stability._sides(one) == sides


@pytest.mark.parametrize("learner", [unless.GSMN(), unless.DTSL(kappa=0.01, prior=unless.Gaussian(1.0))])
def test_graphs_and_features_have_support_too(berkeley, learner):
    found = unless.Stability(learner, 5, random_state=0).fit(berkeley)
    assert all(
        0 <= one.support <= 1 and support.n_told == 5
        for one, support in zip(found.statements_, found.supports_, strict=True)
    )
    assert found.statements_.about("Admit", "Dept").support == 1


def test_a_resample_that_loses_a_level_does_not_matter():
    # One row has the level C of the gate: most subsamples have none.
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (400, 3)).astype(np.uint16)
    rows[:, 1] = np.where(rng.random(400) < 0.9, rows[:, 0], 1 - rows[:, 0])
    rows[0, 2] = 2
    domain = unless.Domain(
        tuple(unless.Variable(name, tuple("abc"[:k])) for name, k in (("x", 2), ("y", 2), ("g", 3)))
    )
    data = Dataset.from_codes(domain, rows)
    found = unless.Stability(unless.CSGS(), 10, sample_fraction=0.3, random_state=1).fit(data)
    assert found.statements_.about("x", "y").support == 1
    assert {"x", "y", "g"} == {name for one in found.statements_ for name in one.pair}


def test_the_order_of_rows_columns_and_workers_changes_nothing(berkeley):
    turned = berkeley.select(sorted(berkeley.names, reverse=True))
    shuffled = Dataset.from_codes(turned.domain, turned.rows[::-1].copy(), turned.counts[::-1].copy())
    made = [
        unless.Stability(unless.CSGS(), 6, random_state=5, n_jobs=n_jobs).fit(table)
        for table, n_jobs in ((berkeley, 1), (shuffled, 2))
    ]
    assert [one.sentence for one in made[0].statements_] == [one.sentence for one in made[1].statements_]
    assert list(map(astuple, made[0].supports_)) == list(map(astuple, made[1].supports_))


def test_draws_keep_the_domain_and_the_number_of_rows(berkeley):
    rng = np.random.default_rng(0)
    drawn = [resample(berkeley, rng) for _ in range(200)]
    assert all(one.n_rows == berkeley.n_rows and one.domain == berkeley.domain for one in drawn)
    mean = np.mean([one.counts.max() for one in drawn])
    assert mean == pytest.approx(berkeley.counts.max(), rel=0.05)
    part = resample(berkeley, rng, 0.25)
    assert part.n_rows == round(0.25 * berkeley.n_rows)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"estimator": unless.CSGS}, "is no learner"),
        ({"estimator": 3}, "is no learner"),
        ({"n_resamples": 0}, "n_resamples=0 must be a whole number, 1 or more"),
        ({"sample_fraction": 2}, "sample_fraction=2 must be a share"),
    ],
)
def test_bad_settings_get_a_sentence(berkeley, settings, sentence):
    with pytest.raises(SettingError, match=sentence):
        unless.Stability(**{"estimator": unless.CSGS(), **settings}).fit(berkeley)


def test_an_empty_table_is_refused(berkeley):
    empty = Dataset.from_codes(berkeley.domain, berkeley.rows[:0], berkeley.counts[:0])
    with pytest.raises(DataError, match="no rows"):
        unless.Stability(unless.CSGS(), 2).fit(empty)


def test_a_table_that_says_nothing_has_no_statements():
    data = Dataset.from_codes(
        unless.Domain((unless.Variable("x", ("a", "b")),)), np.array([[0], [1]], dtype=np.uint16)
    )
    found = unless.Stability(unless.CSGS(), 2, random_state=0).fit(data)
    assert len(found.statements_) == len(found.supports_) == 0
    assert found.statements_.note


def test_resamples_too_small_to_tell_are_no_number_in_json(berkeley):
    found = unless.Stability(unless.CSGS(), 2, sample_fraction=0.0003, random_state=0).fit(berkeley)
    assert found.supports_[0].n_told == 0
    told = json.loads(json.dumps(found.statements_.to_dict(), allow_nan=False))
    assert told["statements"][0]["support"] is None


def test_settings_can_be_read_changed_cloned_and_shown():
    from sklearn.base import clone

    found = unless.Stability(unless.CSGS(alpha=0.01), n_resamples=5)
    assert repr(found) == "Stability(CSGS(alpha=0.01), n_resamples=5)"
    assert repr(clone(found)) == repr(found)
    assert found.get_params()["estimator__alpha"] == 0.01
    assert found.set_params(estimator__alpha=0.1, random_state=3) is found
    assert (found.estimator.alpha, found.random_state) == (0.1, 3)
    with pytest.raises(SettingError, match="n_resample'"):
        found.set_params(n_resample=3)


@pytest.mark.parametrize("seed", ["dice", -1, 1.5, True])
def test_a_seed_that_is_none_gets_one_sentence(berkeley, seed):
    with pytest.raises(SettingError, match="random_state"):
        unless.Stability(unless.CSGS(), n_resamples=2, random_state=seed).fit(berkeley)
