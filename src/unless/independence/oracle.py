"""Many questions of independence about one table, given some variables, pooled over their strata.

`PooledOracle` answers by position, as learners ask; `IndependenceTester` by names, with statistics and p. The
functions below say how probable it is, by the Bayesian test, what a graph asserts about one variable.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from threading import local
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from unless.counting.strata import JointCounter, JointTable, StrataTable, used_codes
from unless.data.dataset import Dataset
from unless.data.showing import html_table
from unless.errors import SettingError, UnknownName
from unless.independence.power import critical_values, rows_needed
from unless.independence.statistics import PRIOR, log_tail, tail, tails
from unless.independence.tests import LOG_PROBABILITY_SLACK, Answer
from unless.kernels.strata import RowGroups, StrataWorkspace
from unless.typing import Bools, Floats, Integers

Scalar = TypeVar("Scalar", bound=np.generic)
Names = npt.NDArray[np.uint64]
# Degrees of freedom whose critical values are looked up, and how close to one a statistic must be for its p.
_MOST_CRITICAL, _CLOSE = 1024, 1e-9
# A fixed seed: the words only name questions, no answer depends on them.
_SEED = 2014
_TWICE = "A variable appears twice in the question; give each variable one part in it."
# Three times as fast as calling the type.
_tuple = tuple.__new__
# How notebooks head the figures of a test.
_HEADS = ("statistic", "degrees of freedom", "p", "rows used")


@dataclass(frozen=True)
class Associations:
    """How strongly every two variables depend on each other when nothing is given: n x n, symmetric."""

    # Log p, or the log of the probability of independence: the smaller, the stronger.
    log_p: Floats
    # The statistic, or the log of the probability of dependence: the larger, the stronger.
    strength: Floats
    is_dependent: Bools


@dataclass
class PooledOracle:
    """Answers questions about a table; each thread needs its own (`fresh`)."""

    table: StrataTable
    test: str = "pearson"
    alpha: float = 0.05
    effect: float = 0.3
    # Only a learner that treats "undecided" in its own way needs to know about power.
    weighs_power: bool = False
    # Answers most chi-square questions much faster than the table of strata does.
    joint: JointTable | None = None
    _counter: JointCounter | None = field(default=None, repr=False)
    _workspace: StrataWorkspace | None = field(default=None, repr=False)
    _last: tuple[frozenset[int], RowGroups] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, data: Dataset, test: str, alpha: float, effect: float, *, weighs_power: bool
    ) -> "PooledOracle":
        """Take a dataset that has some rows."""
        table = StrataTable.of(data)
        columns = table.columns
        joint = None if test == "bayesian" else JointTable.of(columns.codes, columns.counts, columns.n_used)
        return cls(table, test, alpha, effect, weighs_power, joint)

    @property
    def n_variables(self) -> int:
        """The number of variables."""
        return self.table.n_variables

    def fresh(self) -> "PooledOracle":
        """Return one that shares the table and nothing that is written to."""
        return replace(self, _counter=None, _workspace=None, _last=None)

    def ask(self, a: int, b: int, given: frozenset[int]) -> Answer:
        """Tell whether a and b are independent given the values of some variables."""
        if self.test == "bayesian":
            return self._ask_bayesian(a, b, given)
        counted = None
        if self.joint is not None:
            counter = self._counter = self._counter or JointCounter(self.joint)
            counted = counter.ask_one(a, b, sorted(given), self._is_ratio)
        if counted is None:
            work = self._workspace = self._workspace or self.table.workspace()
            strata = self._strata(given, work)
            statistic, df, used = self.table.chi_square(
                strata, [(a, b)], work, likelihood_ratio=self._is_ratio
            )
            counted = float(statistic[0]), int(df[0]), int(used[0])
        return self._answer(*counted)

    def _ask_bayesian(self, a: int, b: int, given: frozenset[int]) -> Answer:
        work = self._workspace = self._workspace or self.table.workspace()
        strata = self._strata(given, work)
        log_independent = float(self.table.bayesian(strata, a, [b], work)[0][0])
        if not _is_independent(log_independent):
            return "dependent"
        # Where nothing varies the Bayesian test always says "independent" (decision 16).
        return "undecided" if self.weighs_power and not self._df(strata, a, b, work) else "independent"

    def associations(self) -> Associations:
        """Ask about every two variables, given nothing."""
        work = self._workspace = self._workspace or self.table.workspace()
        n = self.n_variables
        if self.test == "bayesian":
            log_p, strength = self._log_probabilities(self.table.everything(), work)
            dependent = np.array([not _is_independent(value) for value in log_p], dtype=np.bool_)
        else:
            strength, df = self._statistics(work)
            log_p = log_tail(df, strength)
            dependent = tails(df, strength) < self.alpha
        return Associations(_symmetric(log_p, n), _symmetric(strength, n), _symmetric(dependent, n))

    def _statistics(self, work: StrataWorkspace) -> tuple[Floats, Integers]:
        """Return the statistic and df of every pair, given nothing."""
        n, everything = self.n_variables, self.table.everything()
        counter = None if self.joint is None else JointCounter(self.joint)
        found = []
        for a in range(n - 1):
            others = range(a + 1, n)
            counted, left = np.empty((len(others), 3)), list(range(len(others)))
            if counter is not None:
                counted, left = counter.ask_many(a, others, (), self._is_ratio)
            if left:
                pairs = [(a, others[i]) for i in left]
                rest = self.table.chi_square(everything, pairs, work, likelihood_ratio=self._is_ratio)
                counted[left] = np.stack(rest, axis=1)
            found.append(counted)
        counted = np.concatenate(found) if found else np.empty((0, 3))
        return counted[:, 0], counted[:, 1].astype(np.int64)

    def _log_probabilities(self, strata: RowGroups, work: StrataWorkspace) -> tuple[Floats, Floats]:
        n = self.n_variables
        answers = [self.table.bayesian(strata, a, range(a + 1, n), work) for a in range(n)]
        independent, dependent = (np.concatenate(side) for side in zip(*answers, strict=True))
        return independent, dependent

    def _strata(self, given: frozenset[int], work: StrataWorkspace) -> RowGroups:
        """Group the rows, from the last grouping where that only lacks one variable."""
        last = self._last
        if last is None or not last[0] <= given or len(given) - len(last[0]) > 1:
            strata = self.table.given(given, work)
        elif last[0] == given:
            return last[1]
        else:
            (added,) = given - last[0]
            strata = self.table.refined(last[1], added, work)
        self._last = (given, strata)
        return strata

    def _df(self, strata: RowGroups, a: int, b: int, work: StrataWorkspace) -> int:
        return int(self.table.chi_square(strata, [(a, b)], work, likelihood_ratio=False)[1][0])

    def _answer(self, statistic: float, df: int, rows_used: int) -> Answer:
        if df == 0:
            return "undecided"
        if self._is_beyond(statistic, df):
            return "dependent"
        if self.weighs_power and rows_used < _rows_enough(df, self.alpha, self.effect):
            return "undecided"
        return "independent"

    @property
    def _is_ratio(self) -> bool:
        return self.test == "likelihood_ratio"

    def _is_beyond(self, statistic: float, df: int) -> bool:
        """Tell whether p is below alpha, by a critical value unless that is too close."""
        if df <= _MOST_CRITICAL:
            critical = critical_values(self.alpha, _MOST_CRITICAL)[df]
            if abs(statistic - critical) > _CLOSE * critical:
                return bool(statistic > critical)
        return tail(df, statistic) < self.alpha


@lru_cache(maxsize=4096)
def _rows_enough(df: int, alpha: float, effect: float) -> int:
    """Return the fewest rows that show an effect four times in five."""
    return int(rows_needed(df, alpha, effect))


def _is_independent(log_probability: float) -> bool:
    return log_probability >= math.log(PRIOR) - LOG_PROBABILITY_SLACK


def _symmetric(by_pair: npt.NDArray[Scalar], n: int) -> npt.NDArray[Scalar]:
    matrix = np.zeros((n, n), dtype=by_pair.dtype)
    first, second = np.triu_indices(n, 1)
    matrix[first, second] = matrix[second, first] = by_pair
    return matrix


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
        figures = zip(self.others, self.statistic, self.df, self.p, self.rows_used, strict=True)
        rows = [(name, f"{x:.4g}", df, f"{p:.3g}", f"{used:,}") for name, x, df, p, used in figures]
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
        self._positions = {data.names[column]: position for position, column in enumerate(order)}
        codes, n_used = used_codes(data, order)
        self._thread = _ThreadCounter(JointTable.of(codes, data.counts, n_used))
        self._is_ratio = test == "likelihood_ratio"

    def ask(self, a: str, b: str, given: Iterable[str] = ()) -> Tested:
        """Test whether a and b are independent given some variables."""
        positions = self._positions
        try:
            first, second = positions[a], positions[b]
            by = [positions[name] for name in ((given,) if isinstance(given, str) else given)]
        except KeyError as unknown:
            raise self._unknown(unknown) from None
        by.sort()
        if first == second or first in by or second in by or (len(by) > 1 and len(set(by)) < len(by)):
            raise SettingError(_TWICE)
        answer = self._thread.counter.ask_one(first, second, by, self._is_ratio)
        if answer is None:
            values, freedoms, used = self._by_strata(first, [second], by)
            answer = float(values[0]), int(freedoms[0]), int(used[0])
        statistic, df, rows_used = answer
        return _tuple(Tested, (statistic, df, tail(df, statistic), rows_used))

    def ask_all(self, a: str, given: Iterable[str] = (), *, others: Iterable[str] | None = None) -> TestedAll:
        """Test whether a is independent of each of the others (all that are left), given some variables."""
        conditions = (given,) if isinstance(given, str) else tuple(given)
        positions = self._positions
        if others is None:
            asked = tuple(name for name in self.data.names if name != a and name not in conditions)
        else:
            asked = (others,) if isinstance(others, str) else tuple(others)
        try:
            first, behind = positions[a], [positions[name] for name in asked]
            by = sorted([positions[name] for name in conditions])
        except KeyError as unknown:
            raise self._unknown(unknown) from None
        if len({first, *by}) < len(by) + 1 or not {first, *by}.isdisjoint(behind):
            raise SettingError(_TWICE)
        answers, left_out = self._thread.counter.ask_many(first, behind, by, self._is_ratio)
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
        work = table.workspace()
        pairs = [(a, b) for b in others]
        return table.chi_square(table.given(given, work), pairs, work, likelihood_ratio=self._is_ratio)

    @cached_property
    def _strata(self) -> StrataTable:
        return StrataTable.of(self.data.select(sorted(self.data.names)))


class _ThreadCounter(local):
    """A counter for each thread: it has room for one question at a time."""

    def __init__(self, table: JointTable) -> None:
        self.counter = JointCounter(table)


# ---------------------------------------------------------------------- what a graph asserts


def terms_at(table: StrataTable, a: int, blanket: Sequence[int], work: StrataWorkspace) -> Floats:
    """Return the log probability of each assertion about a: 0 for a itself.

    A member of the blanket is asserted to be dependent given the other members, anyone else to be
    independent given all of them.
    """
    terms = np.zeros(table.n_variables)
    outside = _others(table, a, blanket)
    terms[outside] = table.bayesian(table.given(blanket, work), a, outside, work)[0]
    for d, rest in table.leaving_out(blanket, work):
        terms[d] = table.bayesian(rest, a, [d], work)[1][0]
    return terms


def scores_of_additions(
    table: StrataTable, a: int, blanket: Sequence[int], added: Sequence[int], work: StrataWorkspace
) -> dict[int, list[float]]:
    """Return, for each variable that might join the blanket, the terms of all outside it then."""
    outside, strata = _others(table, a, blanket), table.given(blanket, work)
    dependent = dict(zip(outside, table.bayesian(strata, a, outside, work)[1].tolist(), strict=True))
    terms = {}
    for c in added:
        rest = [e for e in outside if e != c]
        independent = table.bayesian(strata, a, rest, work, given=c)[0]
        terms[c] = [dependent[c], *independent.tolist()]
    return terms


def scores_beside(
    table: StrataTable,
    a: int,
    blanket: Sequence[int],
    member: int,
    flipped: Sequence[int],
    work: StrataWorkspace,
) -> dict[int, list[float]]:
    """Return, for each variable flipped into or out of the blanket, what one member then contributes.

    Where the member itself is flipped out, these are the terms of all who are outside then.
    """
    others = [b for b in blanket if b != member]
    strata, terms = table.given(others, work), {}
    for c in flipped:
        if c == member:
            terms[c] = table.bayesian(strata, a, _others(table, a, others), work)[0].tolist()
        elif c not in others:
            terms[c] = table.bayesian(strata, a, [member], work, given=c)[1].tolist()
    if any(c in others for c in flipped):
        for c, rest in table.leaving_out(others, work):
            if c in flipped:
                terms[c] = table.bayesian(rest, a, [member], work)[1].tolist()
    return terms


def add_up(parts: Iterable[dict[int, list[float]]]) -> dict[int, float]:
    """Sum the terms of each flip, exactly rounded: neither their order nor that of the parts matters."""
    terms: dict[int, list[float]] = {}
    for part in parts:
        for flip, values in part.items():
            terms.setdefault(flip, []).extend(values)
    return {flip: math.fsum(values) for flip, values in terms.items()}


def _others(table: StrataTable, a: int, blanket: Sequence[int]) -> list[int]:
    return [b for b in range(table.n_variables) if b != a and b not in blanket]


@dataclass
class DistinctCounter:
    """Counts distinct questions by random names of 128 bits: ({a, b}, given) is one from either side."""

    n_variables: int
    _known: Names = field(default_factory=lambda: np.empty((0, 2), dtype=np.uint64))
    _new: list[Names] = field(default_factory=list)
    _n_new: int = 0

    def __post_init__(self) -> None:
        words = np.random.default_rng(_SEED).integers(
            0, 2**64, size=(2 * self.n_variables, 2), dtype=np.uint64
        )
        self._as_end, self._as_given = words[: self.n_variables], words[self.n_variables :]

    def add(self, a: int, blanket: Iterable[int]) -> None:
        """Take note of all assertions about a under this blanket."""
        members = list(blanket)
        given = np.bitwise_xor.reduce(self._as_given[members], axis=0)
        names = (self._as_end + self._as_end[a]) ^ given
        # A member is asked about given the others.
        names[members] ^= self._as_given[members]
        self._new.append(np.delete(names, a, axis=0))
        self._n_new += self.n_variables - 1
        if self._n_new > max(2**16, len(self._known)):
            self._merge()

    @property
    def n_distinct(self) -> int:
        """The number of different questions so far."""
        self._merge()
        return len(self._known)

    def _merge(self) -> None:
        names = np.concatenate([self._known, *self._new])
        names = names[np.lexsort((names[:, 1], names[:, 0]))]
        fresh = np.ones(len(names), dtype=np.bool_)
        fresh[1:] = (names[1:] != names[:-1]).any(axis=1)
        self._known, self._new, self._n_new = names[fresh], [], 0
