"""The evidence of a pair: shares for the same mix of strata, strength, limits and rows that are missing."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins.naive_statements as naive
import unless
from structures.models import steady
from unless.data.domain import Region
from unless.independence.statistics import Statistic
from unless.knowledge.evidence import EvidenceBuilder, standardised_shares
from unless.referee.regressions import LinkEstimate

BERKELEY = unless.datasets.load_ucb_admissions().select(["Admit", "Dept", "Gender"])
ADMIT, DEPT, GENDER = range(3)


def shares_by_hand(tables):
    """Average the shares of each stratum, weighted by its rows; strata with one column say nothing."""
    useful = [table for table in tables if sum(column.any() for column in table.T) >= 2]
    if not useful:
        return None
    shares = np.full(useful[0].shape, np.nan)
    for level in range(shares.shape[1]):
        seen = [table for table in useful if table[:, level].sum()]
        if seen:
            weights = [table.sum() for table in seen]
            within = [table[:, level] / table[:, level].sum() for table in seen]
            shares[:, level] = sum(w * one for w, one in zip(weights, within, strict=True)) / sum(weights)
    return shares


@steady
@given(st.lists(st.lists(st.sampled_from([0, 0, 1, 5, 40]), min_size=6, max_size=6), min_size=1, max_size=4))
def test_shares_are_averaged_over_the_same_mix(cells):
    tables = np.array(cells, dtype=np.int64).reshape(-1, 2, 3)
    wanted, found = shares_by_hand(tables), standardised_shares(tables)
    if wanted is None:
        assert found is None
    else:
        assert np.allclose(found, wanted, equal_nan=True)


def test_shares_of_two_strata_by_hand():
    # In the first stratum 20 % against 40 %, in the second 60 % against 80 %; 100 rows against 300.
    tables = np.array([[[10, 20], [40, 30]], [[60, 160], [40, 40]]])
    shares = standardised_shares(tables)
    assert shares[0] == pytest.approx([(0.2 * 100 + 0.6 * 300) / 400, (0.4 * 100 + 0.8 * 300) / 400])
    # Crossed without strata they would be 47 % and 72 %.
    assert tables.sum(axis=0)[0] / tables.sum(axis=(0, 1)) == pytest.approx([70 / 150, 180 / 250])


def evidence(statistic=30.0, df=1, given_=(DEPT,), where=(), with_tables=True, effect=0.2):
    rows = BERKELEY.n_rows
    if where:
        rows = sum(BERKELEY.counts[region.holds(BERKELEY.domain, BERKELEY.rows)].sum() for region in where)
    side = LinkEstimate(Statistic(statistic, df), float(rows), 1)
    return EvidenceBuilder(BERKELEY, effect).of(
        (ADMIT, GENDER), side, given_, where=where, p=0.01, q=0.02, with_tables=with_tables
    )


def test_strength_is_what_is_beyond_chance():
    one = evidence()
    assert (one.n_rows, one.statistic, one.df, one.p, one.q) == (4526, 30.0, 1, 0.01, 0.02)
    assert one.information == pytest.approx(29 / (2 * math.log(2) * 4526))
    assert one.cramers_v == pytest.approx(math.sqrt(29 / 4526))
    assert one.cramers_v < one.cramers_v_limit < 0.15
    weak = evidence(statistic=0.3)
    assert (weak.information, weak.cramers_v) == (0, 0)
    assert weak.cramers_v_limit == evidence(statistic=1.0).cramers_v_limit > 0
    nothing = evidence(statistic=0.0, df=0)
    assert (nothing.cramers_v_limit, nothing.more_rows) == (1, None)


def test_tables_are_those_of_the_strata():
    one = evidence()
    wanted = naive.strata(BERKELEY, "Admit", "Gender", ["Dept"])
    assert one.table_given == ("Dept",)
    assert dict(zip(one.strata, one.tables.tolist(), strict=True)) == {
        key: table.tolist() for key, table in wanted.items()
    }
    shares = shares_by_hand(list(wanted.values()))
    contrast = one.contrast
    high, low = (BERKELEY.domain["Gender"].code(label) for label in (contrast.at_high, contrast.at_low))
    level = BERKELEY.domain["Admit"].code(contrast.level)
    assert (contrast.column, contrast.other) == ("Admit", "Gender")
    assert (contrast.high, contrast.low) == pytest.approx((shares[level, high], shares[level, low]))
    assert contrast.high > contrast.low


def test_a_side_has_its_own_rows():
    there = (Region.of(BERKELEY.domain, {"Dept": ["A"]}),)
    one = evidence(where=there, given_=())
    assert (one.n_rows, one.tables.tolist()) == (933, [[[512, 89], [313, 19]]])
    assert one.contrast.to_dict() == {
        "column": "Admit", "level": "Admitted", "other": "Gender", "at_high": "Female",
        "high": pytest.approx(89 / 108), "at_low": "Male", "low": pytest.approx(512 / 825),
    }  # fmt: skip
    plain = json.loads(json.dumps(one.to_dict(), allow_nan=False))
    assert plain["where"] == [{"Dept": ["A"]}]
    assert plain["tables"] == [{"given": {}, "counts": [[512, 89], [313, 19]]}]
    assert "tables" not in one.to_dict(tables=False)


def test_rows_are_asked_for_until_the_limit_is_the_effect():
    assert evidence(statistic=1.0, with_tables=False).more_rows is None
    assert evidence(statistic=1.0, effect=0.02).more_rows is None
    open_one = evidence(statistic=1.0, effect=0.02, with_tables=False)
    larger = 4526 + open_one.more_rows
    side = LinkEstimate(Statistic(1.0, 1), float(larger), 1)
    assert side.largest_v == pytest.approx(0.02, rel=1e-3)
    assert evidence(statistic=1.0, effect=1e-9, with_tables=False).more_rows == 10**9


def test_levels_with_few_rows_are_no_contrast():
    few = unless.read({"a": ["x", "y"] * 9, "b": ["u", "v"] * 9})
    side = LinkEstimate(Statistic(9.0, 1), 18.0, 1)
    one = EvidenceBuilder(few, 0.2).of((0, 1), side, (), p=0.1, q=0.1, with_tables=True)
    assert (one.contrast, one.tables.tolist()) == (None, [[[9, 0], [0, 9]]])
    without = EvidenceBuilder(few, 0.2).of((0, 1), side, (), p=0.1, q=0.1, with_tables=False)
    assert (without.contrast, without.tables.size, without.strata) == (None, 0, ())
