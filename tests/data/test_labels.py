import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unless.data.domain import is_number, sort_labels
from unless.data.showing import to_label


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("01", "01"),
        (1, "1"),
        (1.0, "1"),
        (1.5, "1.5"),
        (True, "True"),
        (np.bool_(False), "False"),
        (np.int8(3), "3"),
        (np.float64(2.0), "2"),
        (np.float32(0.1), "0.1"),
        (np.str_("x"), "x"),
        (b"caf\xc3\xa9", "café"),
        (Decimal("2.00"), "2"),
        (Decimal("2.50"), "2.50"),
        (Decimal("Infinity"), "Infinity"),
        (datetime.date(2020, 1, 2), "2020-01-02"),
        (datetime.datetime(2020, 1, 2), "2020-01-02"),
        (datetime.datetime(2020, 1, 2, 3), "2020-01-02 03:00:00"),
        (np.datetime64("2020-01-02", "ns"), "2020-01-02"),
        (pd.Timestamp("2020-01-02"), "2020-01-02"),
        (float("inf"), "inf"),
    ],
)
def test_a_scalar_has_the_label_a_person_would_write(value, label):
    assert to_label(value) == label


def test_numbers_are_ordered_by_value_and_words_by_code_point():
    assert sort_labels(["10", "9", "-1", "1.5"]) == ("-1", "1.5", "9", "10")
    assert sort_labels(["b", "a", "B", "ä"]) == ("B", "a", "b", "ä")
    assert sort_labels(["10", "9", "x"]) == ("10", "9", "x")


def test_words_that_python_reads_as_numbers_are_words():
    assert not any(is_number(word) for word in ("nan", "inf", "1_000", "", "x"))


@given(st.permutations(["3", "20", "100", "1e2", "0.5"]))
def test_the_order_of_labels_does_not_depend_on_their_appearance(labels):
    assert sort_labels(labels) == ("0.5", "3", "20", "100", "1e2")


def test_infinities_are_ordered_among_numbers():
    assert sort_labels(["inf", "10", "9", "-inf"]) == ("-inf", "9", "10", "inf")
