"""Many tests of independence on one table, by names: what a learner, or a comparison of learners, asks."""

from collections.abc import Iterable
from functools import cached_property, partial
from threading import local
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from unless.counting.joint import JointCounter, JointTable
from unless.counting.strata import StrataTable, used_codes
from unless.data.dataset import Dataset
from unless.data.showing import html_table
from unless.errors import SettingError, UnknownName
from unless.independence.tails import tail, tails

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
_TWICE = "A variable appears twice in the question; give each variable one part in it."
# Three times as fast as calling the type.
_tuple = tuple.__new__
# How notebooks head the figures of a test.
_HEADS = ("statistic", "degrees of freedom", "p", "rows used")


class Tested(NamedTuple):
    """One test: p is 1 where df is 0; `rows_used` leaves out strata in which nothing varies."""

    statistic: float
    df: int
    p: float
    rows_used: int

    def _repr_html_(self) -> str:
        row = f"{self.statistic:.4g}", self.df, f"{self.p:.3g}", f"{self.rows_used:,}"
        return html_table("Test of one pair", _HEADS, [row])


class TestedAll(NamedTuple):
    """Tests of one variable and each of some others, in their order."""

    others: tuple[str, ...]
    statistic: Floats
    df: Integers
    p: Floats
    rows_used: Integers

    def _repr_html_(self) -> str:
        told = zip(self.others, self.statistic, self.df, self.p, self.rows_used, strict=True)
        rows = [(name, f"{x:.4g}", df, f"{p:.3g}", f"{used:,}") for name, x, df, p, used in told]
        return html_table(f"Tests of {len(rows):,} pairs", ("with", *_HEADS), rows)


class IndependenceTester:
    """Test one pair of variables after the other on one table, given some more whose strata are pooled.

    Built once, it answers in microseconds: statistics and degrees of freedom as `unless.ask` has them,
    without the other evidence of a verdict; p is always by chi-square. Asking about all others at once is
    faster than one by one.

    Parameters
    ----------
    data
        The table.
    test
        "pearson" or "likelihood_ratio".

    Examples
    --------
    >>> import unless
    >>> tester = unless.IndependenceTester(unless.datasets.load_ucb_admissions())
    >>> tester.ask("Admit", "Gender", given=["Dept"]).df
    6
    >>> tester.ask_all("Admit").others
    ('Gender', 'Dept')
    """

    def __init__(self, data: Dataset, *, test: Literal["pearson", "likelihood_ratio"] = "pearson") -> None:
        if test not in ("pearson", "likelihood_ratio"):
            raise SettingError(f'test must be "pearson" or "likelihood_ratio", not {test!r}; see unless.ask.')
        self.data = data
        self.test = test
        # By name: the order of the columns must not decide anything, not even the rounding.
        order = sorted(range(data.n_variables), key=lambda column: data.names[column])
        self._places = {data.names[column]: place for place, column in enumerate(order)}
        codes, n_used = used_codes(data, order)
        self._own = _Own(JointTable.of(codes, data.counts, n_used))
        self._is_ratio = test == "likelihood_ratio"

    def ask(self, a: str, b: str, given: Iterable[str] = ()) -> Tested:
        """Test whether a and b are independent given some variables."""
        places = self._places
        try:
            first, second = places[a], places[b]
            by = [places[name] for name in ((given,) if isinstance(given, str) else given)]
        except KeyError as unknown:
            raise self._unknown(unknown) from None
        by.sort()
        if first == second or first in by or second in by or (len(by) > 1 and len(set(by)) < len(by)):
            raise SettingError(_TWICE)
        answer = self._own.counter.ask_one(first, second, by, self._is_ratio)
        if answer is None:
            values, freedoms, used = self._by_strata(first, [second], by)
            answer = float(values[0]), int(freedoms[0]), int(used[0])
        statistic, df, rows_used = answer
        return _tuple(Tested, (statistic, df, tail(df, statistic), rows_used))

    def ask_all(self, a: str, given: Iterable[str] = (), *, others: Iterable[str] | None = None) -> TestedAll:
        """Test whether a is independent of each of the others (all that are left), given some variables."""
        conditions = (given,) if isinstance(given, str) else tuple(given)
        places = self._places
        if others is None:
            asked = tuple(name for name in self.data.names if name != a and name not in conditions)
        else:
            asked = (others,) if isinstance(others, str) else tuple(others)
        try:
            first, behind = places[a], [places[name] for name in asked]
            by = sorted([places[name] for name in conditions])
        except KeyError as unknown:
            raise self._unknown(unknown) from None
        if len({first, *by}) < len(by) + 1 or not {first, *by}.isdisjoint(behind):
            raise SettingError(_TWICE)
        answers, left_out = self._own.counter.ask_many(first, behind, by, self._is_ratio)
        if left_out:
            rest = self._by_strata(first, [behind[i] for i in left_out], by)
            answers[left_out] = np.stack(rest, axis=1)
        statistic, df = answers[:, 0].copy(), answers[:, 1].astype(np.int64)
        return TestedAll(asked, statistic, df, tails(df, statistic), answers[:, 2].astype(np.int64))

    def __repr__(self) -> str:
        return (
            f"<IndependenceTester: {self.test}, {self.data.n_rows:,} rows x {self.data.n_variables} columns>"
        )

    def _repr_html_(self) -> str:
        return html_table(repr(self)[1:-1], (), ())

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), test=self.test), (self.data,)

    def _unknown(self, error: KeyError) -> Exception:
        """Say which name is unknown, and what it may have been."""
        try:
            self.data.domain.index(error.args[0])
        except UnknownName as named:
            return named
        return error

    def _by_strata(self, a: int, others: list[int], given: list[int]) -> tuple[Floats, Integers, Integers]:
        """Answer where tables would be large and sparse."""
        table = self._strata
        desk = table.desk()
        pairs = [(a, b) for b in others]
        return table.chi_square(table.given(given, desk), pairs, desk, likelihood_ratio=self._is_ratio)

    @cached_property
    def _strata(self) -> StrataTable:
        return StrataTable.of(self.data.select(sorted(self.data.names)))


class _Own(local):
    """A counter for each thread: it has room for one question at a time."""

    def __init__(self, table: JointTable) -> None:
        self.counter = JointCounter(table)
