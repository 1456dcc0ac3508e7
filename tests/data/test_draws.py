import numpy as np
import pytest

import unless
from unless.data.dataset import hold_out
from unless.errors import DataError, SettingError

FRAME = {"b": list("xyxyzzxyxy") * 7, "a": list("ppqqpqpqpp") * 7, "c": list("1234512345") * 7}


def as_rows(data):
    return {
        tuple(sorted(data.domain.decode(dict(enumerate(row.tolist()))).items())): count
        for row, count in zip(data.rows, data.counts.tolist(), strict=True)
    }


def test_the_two_sides_are_the_table():
    data = unless.read(FRAME)
    training, unseen = hold_out(data, 0.3, 0)
    assert (training.n_rows, unseen.n_rows) == (49, 21)
    assert training.domain == unseen.domain == data.domain
    both = np.concatenate([training.rows, unseen.rows]), np.concatenate([training.counts, unseen.counts])
    assert unless.Dataset.from_codes(data.domain, *both) == data


def test_the_order_of_rows_and_columns_has_no_say():
    data = unless.read(FRAME)
    turned = unless.read({name: FRAME[name][::-1] for name in sorted(FRAME)}, levels=data.domain)
    for first, second in zip(hold_out(data, 0.4, 7), hold_out(turned, 0.4, 7), strict=True):
        assert as_rows(first) == as_rows(second)
    assert as_rows(hold_out(data, 0.4, 8)[1]) != as_rows(hold_out(data, 0.4, 7)[1])


def test_every_row_is_as_likely_to_be_set_aside():
    data = unless.Dataset.from_codes(unless.read(FRAME).select(["a"]).domain, [[0], [1]], [3, 7])
    drawn = np.array([hold_out(data, 0.5, seed)[1].counts.sum() for seed in range(20)])
    assert (drawn == 5).all()
    sides = [hold_out(data, 0.5, seed)[0] for seed in range(400)]
    first = np.mean([side.counts[side.rows[:, 0] == 0].sum() for side in sides])
    assert first == pytest.approx(1.5, abs=0.15)


def test_tables_beyond_what_numpy_draws_from_are_split_too():
    data = unless.Dataset.from_codes(unless.read(FRAME).select(["a"]).domain, [[0], [1]], [10**12, 10**9])
    training, unseen = hold_out(data, 0.25, 0)
    assert training.n_rows + unseen.n_rows == data.n_rows
    assert unseen.n_rows / data.n_rows == pytest.approx(0.25, abs=1e-5)


@pytest.mark.parametrize("share", [0, 1, -0.5, True, "some", None, float("nan")])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(SettingError, match="validation="):
        hold_out(unless.read(FRAME), share)


def test_a_side_without_rows_is_refused():
    with pytest.raises(DataError, match="leaves none"):
        hold_out(unless.read({"a": ["x"], "b": ["y"]}), 0.3)
