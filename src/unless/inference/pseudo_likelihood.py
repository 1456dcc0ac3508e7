"""The conditional of every variable given the others, over the cases that a table shows.

Rows are collapsed, for each variable, to the cases its features can tell apart; the sum over all rows of
log P(x_v | the other variables) and its derivatives are then sums over cases.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.errors import TooLarge
from unless.inference.results import Measure
from unless.kernels.pseudo_likelihood import (
    DIAGONAL,
    PRODUCT,
    VALUE,
    Cases,
    Conditions,
    Slots,
    list_cases,
    sweep,
)
from unless.runtime.interrupts import n_workers
from unless.runtime.memory import parse_memory, show_memory
from unless.runtime.progress import Look, unseen
from unless.structures.structure import FeatureArrays
from unless.typing import Floats, Integers

Codes = npt.NDArray[np.uint16]
Words = npt.NDArray[np.uint64]
# Whole numbers, or shares of rows.
Counts = Integers | Floats
# Cases of a block: their scores fit the second cache, and their numbers two bytes.
_BLOCK = 2**13
# Scores of a block of a variable with many levels.
_MOST_SCORES = 2**17
# A slot that holds in more than one case of so many is found faster from bitmaps than read from a list.
_SPARSE = 4
# Steps in one call that lists cases, about a tenth of a second; those that a list takes, even an empty one.
_STEPS_OF_A_LISTING = 1.5e7
_STEPS_OF_A_LIST = 8
# A fixed seed: the keys only name cases, and every name is checked.
_KEY_SEED = 1604
# Below this many steps a pass takes less time than waking a thread.
_WORTH_SHARING = 500_000
# Steps in one call of a kernel: some tens of milliseconds, after which Ctrl-C takes effect.
_AT_ONCE = 15_000_000
# Rows of a matrix of thousands that numpy turns at once.
_ROWS_AT_ONCE = 256
_STEPS_OF_A_LOOK, _STEPS_OF_A_PROBABILITY = 4, 8
_NOTHING = np.empty(0)


class _CasesOfOne(NamedTuple):
    """The cases of one variable: a row that shows each, and what the variable is in them."""

    rows: Integers | None  # None where cases are the table's rows themselves
    observed: Integers
    level: Codes
    counts: Floats


def lay_out_slots(features: FeatureArrays, n_variables: int) -> Slots:
    """Pair every variable with every feature that speaks of it; no cases yet."""
    start, variable, _, _ = features
    feature = np.repeat(np.arange(len(start) - 1), np.diff(start))
    new = np.r_[True, (feature[1:] != feature[:-1]) | (variable[1:] != variable[:-1])][: len(variable)]
    low = np.flatnonzero(new)
    high = np.r_[low[1:], len(variable)][: len(low)]
    order = np.argsort(variable[low], kind="stable")
    low, high = low[order], high[order]
    n_slots = np.bincount(variable[low], minlength=n_variables)
    return Slots(
        start=_sums(n_slots),
        feature=feature[low].astype(np.int32),
        low=low.astype(np.int64),
        high=high.astype(np.int64),
        listed=np.zeros(len(low), dtype=np.bool_),
        lists=np.zeros(n_variables + 1, dtype=np.int64),
        bounds=np.zeros(1, dtype=np.int64),
        entries=np.empty(0, dtype=np.uint16),
    )


def lay_out_cases(
    features: FeatureArrays,
    data: Dataset,
    slots: Slots,
    max_bytes: int,
    look: Look = unseen,
    counts: Counts | None = None,
) -> tuple[Cases, int]:
    """Collapse the rows for each variable; returns the cases and the bytes that are left.

    `counts` are used in place of those of the table; they need not be whole numbers.
    """
    counts = data.counts if counts is None else counts
    codes = np.ascontiguousarray(data.rows.T)
    levels = data.domain.n_levels
    blankets = _blankets(features, len(levels))
    keys = _Keys(codes, levels)
    tables: list[_CasesOfOne] = []
    bitmap = np.zeros((len(levels), len(levels)), dtype=np.int64)
    words = _Words(codes, levels)
    used = int(codes.nbytes + slots.feature.nbytes * 9)
    for variable, blanket in enumerate(blankets):
        table = _collapse(codes, counts, variable, blanket, keys)
        bitmap[variable, blanket] = words.add(table.rows, blanket)
        tables.append(table)
        used += sum(array.nbytes for array in table[1:]) + words.n_new * 8
        # While they are put together the parts stand beside the whole.
        _check(2 * used, len(features.start) - 1, data, max_bytes)
        look((variable + 1) / len(blankets))
    sizes = np.array([len(table.observed) for table in tables], dtype=np.int64)
    observed = np.concatenate([table.observed for table in tables])
    cases = Cases(
        n_levels=np.array(levels),
        block=np.clip(_MOST_SCORES // levels // 64 * 64, 64, _BLOCK).astype(np.int64),
        start=_sums(sizes),
        observed=_sums(observed),
        level=np.concatenate([table.level for table in tables]),
        counts=np.concatenate([table.counts for table in tables]),
        words=words.joined(),
        bitmap=bitmap,
    )
    # Some of the rest is for the optimiser and for what the process holds already.
    return cases, int(0.75 * max_bytes) - 2 * used


class Call(NamedTuple):
    """What one call of a kernel does: some variables, and of each the blocks of cases from begin to end."""

    variables: Integers
    begin: int
    end: int


def short_calls(steps: Floats, n_blocks: Integers, most: float) -> list[list[Call]]:
    """Cut a pass over all variables, which take so many steps each, into calls of about `most` steps.

    The calls of a list are made one after the other; different lists may be made at the same time.
    """
    runs = np.split(np.arange(len(steps)), np.flatnonzero(np.diff(np.cumsum(steps) // most)) + 1)
    calls = []
    for run in runs:
        long = run[steps[run] > most]
        together = run[steps[run] <= most]
        calls += [[Call(together, 0, int(n_blocks[together].max()))]] if len(together) else []
        for v in long.tolist():
            at_once = max(1, int(n_blocks[v] * most / steps[v]))
            pieces = range(0, int(n_blocks[v]), at_once)
            calls.append([Call(np.array([v]), begin, begin + at_once) for begin in pieces])
    return calls


def list_slots(
    conditions: Conditions,
    cases: Cases,
    slots: Slots,
    max_bytes: int,
) -> Slots:
    """List the cases of sparse slots, the sparsest first, within a number of bytes."""
    n_cases, n_slots = np.diff(cases.start), np.diff(slots.start)
    n_blocks = -(-n_cases // cases.block)
    lists = _sums(n_blocks * n_slots)
    if max_bytes < 16 * lists[-1]:
        # Empty lists, none of which is read.
        return slots._replace(lists=lists, bounds=np.zeros(int(lists[-1]) + 1, dtype=np.int64))
    bounds = np.zeros(int(lists[-1]) + 1, dtype=np.int64)
    counting = slots._replace(lists=lists, bounds=bounds)
    calls = _calls_to_list(conditions, cases, slots, n_blocks)
    for call in calls:
        list_cases(*call, conditions, cases, counting, False)
    # Of each variable, a view of what its slots hold in each block.
    held = [bounds[1:][lists[v] : lists[v + 1]].reshape(n_blocks[v], n_slots[v]) for v in range(len(n_cases))]
    sizes = np.concatenate([of_blocks.sum(axis=0) for of_blocks in held])
    sparsest = np.argsort(sizes, kind="stable")
    fits = np.zeros(len(sizes), dtype=np.bool_)
    fits[sparsest] = np.cumsum(sizes[sparsest]) * 2 + 16 * lists[-1] <= max_bytes
    listed = fits & (sizes * _SPARSE < np.repeat(n_cases, n_slots))
    for v, of_blocks in enumerate(held):
        of_blocks[:, ~listed[slots.start[v] : slots.start[v + 1]]] = 0
    np.cumsum(bounds, out=bounds)
    entries = np.empty(int(bounds[-1]), dtype=np.uint16)
    filled = slots._replace(lists=lists, bounds=bounds, listed=listed, entries=entries)
    for call in calls:
        list_cases(*call, conditions, cases, filled, True)
    return filled


def _calls_to_list(conditions: Conditions, cases: Cases, slots: Slots, n_blocks: Integers) -> list[Call]:
    """Return the calls that list cases: a bitmap is read, a word after the other, for each condition."""
    width = np.diff(conditions.start)[slots.feature] + 1
    n_conditions = np.diff(np.concatenate([[0], np.cumsum(width)])[slots.start])
    steps = n_conditions * (n_blocks * _STEPS_OF_A_LIST + np.diff(cases.start) / 64)
    return [call for calls in short_calls(steps, n_blocks, _STEPS_OF_A_LISTING) for call in calls]


class _Keys:
    """Names of cases: sums of one random word for each level of each variable."""

    def __init__(self, codes: Codes, levels: Integers) -> None:
        rng = np.random.default_rng(_KEY_SEED)
        self.codes = codes
        self.words = [rng.integers(0, 2**64, size=size, dtype=np.uint64) for size in levels]
        self.everything = self._sum(np.arange(len(levels)))

    def of(self, blanket: Integers) -> Words:
        rest = np.setdiff1d(np.arange(len(self.words)), blanket)
        return self._sum(blanket) if len(blanket) <= len(rest) else self.everything - self._sum(rest)

    def _sum(self, variables: Integers) -> Words:
        total = np.zeros(self.codes.shape[1], dtype=np.uint64)
        for variable in variables:
            total += self.words[variable][self.codes[variable]]
        return total


class _Words:
    """Bitmaps over cases; variables whose cases are the table's rows share theirs."""

    def __init__(self, codes: Codes, levels: Integers) -> None:
        self.codes, self.levels = codes, levels
        self.parts: list[Words] = []
        self.size = 0
        self.n_new = 0
        self.shared: Integers | None = None

    def add(self, rows: Integers | None, blanket: Integers) -> Integers:
        """Make the bitmaps of a blanket over some cases; returns where those of each variable begin."""
        before = self.size
        if rows is None:
            if self.shared is None:
                self.shared = np.array([self._pack(u, None) for u in range(len(self.levels))], dtype=np.int64)
            begins: Integers = self.shared[blanket]
        else:
            begins = np.array([self._pack(u, rows) for u in blanket], dtype=np.int64)
        self.n_new = self.size - before
        return begins

    def joined(self) -> Words:
        return np.concatenate([np.empty(0, dtype=np.uint64), *self.parts])

    def _pack(self, variable: int, rows: Integers | None) -> int:
        column = self.codes[variable] if rows is None else self.codes[variable, rows]
        begin, n_words = self.size, (len(column) + 63) // 64
        padded = np.zeros((self.levels[variable], n_words * 64), dtype=np.bool_)
        padded[column, np.arange(len(column))] = True
        self.parts.append(np.packbits(padded, axis=1, bitorder="little").view(np.uint64).ravel())
        self.size += len(self.parts[-1])
        return begin


def _collapse(codes: Codes, counts: Counts, variable: int, blanket: Integers, keys: _Keys) -> _CasesOfOne:
    """Put the rows together that agree in the blanket, where that saves at least half of them."""
    _, rows, case = np.unique(keys.of(blanket), return_index=True, return_inverse=True)
    level = codes[variable]
    same = 2 * len(rows) <= len(case) and all((codes[u] == codes[u][rows][case]).all() for u in blanket)
    if not same:
        ones = np.ones(len(case), dtype=np.int64)
        return _CasesOfOne(None, ones, np.array(level), counts.astype(np.float64))
    order = np.lexsort((level, case))
    case, level = case[order], level[order]
    first = np.flatnonzero(np.r_[True, (case[1:] != case[:-1]) | (level[1:] != level[:-1])])
    told = np.add.reduceat(counts[order], first).astype(np.float64)
    return _CasesOfOne(rows, np.bincount(case[first], minlength=len(rows)), level[first], told)


def _blankets(features: FeatureArrays, n_variables: int) -> list[Integers]:
    """Return, for each variable, the others it shares a feature with."""
    together = np.zeros((n_variables, n_variables), dtype=np.bool_)
    for _, where in features.by_size():
        scopes = features.variable[where]
        for column in range(scopes.shape[1]):
            together[scopes[:, column : column + 1], scopes] = True
    np.fill_diagonal(together, False)
    return [np.flatnonzero(row) for row in together]


def _sums(sizes: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _check(need: int, n_features: int, data: Dataset, max_bytes: int) -> None:
    if need > max_bytes:
        raise TooLarge(
            f"{n_features:,} features over {data.n_distinct:,} distinct rows of {data.n_variables:,} columns "
            f"would need more than {show_memory(need)}, and {show_memory(max_bytes)} are allowed; use fewer "
            "features or raise max_memory=."
        )


def mirror(matrix: Floats) -> None:
    """Write the lower triangle of a matrix over the upper one, some rows after another."""
    for begin in range(0, len(matrix), _ROWS_AT_ONCE):
        end = begin + _ROWS_AT_ONCE
        corner = matrix[begin:end, begin:end]
        corner[:] = np.tril(corner) + np.tril(corner, -1).T
        matrix[begin:end, end:] = matrix[end:, begin:end].T


@dataclass
class Conditionals:
    """Sums over all rows of log P(x_v | the other variables), for any weights of a set of features.

    Bit for bit the same whatever the number of threads: each variable is one thread's alone, and what
    variables say of one feature is added up in their order.
    """

    measure: ClassVar[Measure] = "pseudo_log_likelihood"

    conditions: Conditions
    cases: Cases
    slots: Slots
    n_jobs: int | None = None
    _probabilities: Floats = field(default_factory=lambda: _NOTHING)
    _pool: Any = None

    @property
    def n_features(self) -> int:
        """The number of features, and so of weights."""
        return len(self.conditions.start) - 1

    @property
    def n_rows(self) -> float:
        """How many rows there are, by their counts: each variable counts them all."""
        return float(self.cases.counts.sum()) / len(self.cases.n_levels)

    @classmethod
    def of(
        cls,
        features: FeatureArrays,
        data: Dataset,
        *,
        n_jobs: int | None = None,
        max_memory: int | str | None = None,
        once: bool = False,
        look: Look = unseen,
        counts: Counts | None = None,
    ) -> "Conditionals":
        """Lay out features over a table of their domain; `once` saves the lists that only pay when reused.

        `counts` are used in place of those of the table; they need not be whole numbers.
        """
        # Copies, because numba would compile once more for arrays that cannot be written.
        conditions = Conditions(*map(np.array, features))
        max_bytes = parse_memory(max_memory)
        slots = lay_out_slots(features, data.n_variables)
        cases, left = lay_out_cases(features, data, slots, max_bytes, look, counts)
        made = cls(conditions, cases, slots, n_jobs)
        made.slots = list_slots(conditions, cases, slots, 0 if once else left)
        return made

    def losses(self, weights: Floats, look: Look = unseen) -> Floats:
        """Return, for each variable, minus the sum of the logs of its conditional probabilities."""
        return self._sweep(VALUE, weights, _NOTHING, look=look)

    def value_and_gradient(self, weights: Floats, keep: bool = False) -> tuple[float, Floats]:
        """Return the loss of all variables and its gradient; `keep` remembers the probabilities."""
        if keep and not len(self._probabilities):
            self._probabilities = np.empty(int(self._first_kept[-1]))
        sums = np.zeros(len(self.slots.feature))
        losses = self._sweep(VALUE, weights, sums, self._probabilities if keep else _NOTHING)
        return float(losses.sum()), self._by_feature(sums)

    def product(self, direction: Floats) -> Floats:
        """Return the product of the Hessian with a vector, at the weights that were kept."""
        sums = np.zeros(len(self.slots.feature))
        self._sweep(PRODUCT, direction, sums, self._probabilities)
        return self._by_feature(sums)

    def diagonal(self) -> Floats:
        """Return the diagonal of the Hessian at the weights that were kept, or a little more."""
        sums = np.zeros(len(self.slots.feature))
        self._sweep(DIAGONAL, np.zeros(self.n_features), sums, self._probabilities)
        return self._by_feature(sums)

    def hessian(self, step: Callable[[], object] = lambda: None) -> Floats:
        """Return the whole Hessian at the weights that were kept; `step` is called after each variable."""
        from unless.kernels.pseudo_likelihood import add_hessian

        matrix = np.zeros((self.n_features, self.n_features))
        layout = (self._first_kept, self._probabilities, self.conditions, self.cases, self.slots, matrix)
        n_blocks = -(-np.diff(self.cases.start) // self.cases.block)
        steps = self._entering**2 / np.maximum(np.diff(self.cases.start), 1)
        for v, last in enumerate(n_blocks.tolist()):
            at_once = max(1, int(last * _AT_ONCE / max(steps[v], 1.0)))
            for begin in range(0, last, at_once):
                add_hessian(v, begin, begin + at_once, *layout)
            step()
        mirror(matrix)
        return matrix

    def tallies(self) -> tuple[Floats, Floats]:
        """Return, for each feature, how often it could be true or false, and how often it then was true.

        A row counts once for each variable that alone decides there, as in the pseudo-likelihood.
        """
        self.value_and_gradient(np.zeros(self.n_features), keep=True)
        excess, spread = np.zeros(len(self.slots.feature)), np.zeros(len(self.slots.feature))
        nothing = np.zeros(self.n_features)
        self._sweep(VALUE, nothing, excess)
        self._sweep(DIAGONAL, nothing, spread, self._probabilities)
        levels = np.repeat(self.cases.n_levels, np.diff(self.slots.start)).astype(np.float64)
        told = (self.slots.high - self.slots.low).astype(np.float64)
        # At zero weights all levels are equally likely, so that both sums are known multiples of the rows.
        columns = np.where(levels == 2, 1.0, told)
        rows = spread / np.maximum(columns * (1 - 1 / levels) / levels, 1e-300)
        share = np.where(self.conditions.equal[self.slots.low], 1.0, levels - told) / levels
        return self._by_feature(rows), self._by_feature(np.where(levels > 1, rows * share - excess, 0.0))

    @contextmanager
    def threads(self) -> Iterator[None]:
        """Keep the threads alive between passes."""
        n_threads = 1 if self.work < _WORTH_SHARING else min(n_workers(self.n_jobs), len(self.cases.n_levels))
        if n_threads == 1:
            yield
            return
        from joblib import Parallel

        # Passes write into shared arrays, which only threads can.
        with Parallel(n_jobs=n_threads, require="sharedmem") as pool:
            self._pool = pool
            try:
                yield
            finally:
                self._pool = None

    @property
    def work(self) -> int:
        """About how many steps one pass takes."""
        return int(self._entering.sum()) + int(self.cases.start[-1])

    @property
    def hessian_work(self) -> int:
        """About how many steps the whole Hessian takes: in each case, all pairs of features that enter."""
        return int((self._entering**2 / np.maximum(np.diff(self.cases.start), 1)).sum())

    @cached_property
    def _entering(self) -> Floats:
        """About how many times, for each variable, a feature enters a case."""
        n_cases, n_slots = np.diff(self.cases.start), np.diff(self.slots.start)
        listed = np.diff(self.slots.bounds[self.slots.lists])
        owner = np.repeat(np.arange(len(n_cases)), n_slots)
        dense = np.bincount(owner, weights=~self.slots.listed, minlength=len(n_cases))
        return np.asarray(listed + dense * n_cases / 2)

    def _by_feature(self, sums: Floats) -> Floats:
        return np.asarray(
            np.bincount(self.slots.feature, weights=sums, minlength=self.n_features), np.float64
        )

    @cached_property
    def _first_kept(self) -> Integers:
        levels = self.cases.n_levels
        columns = np.where(levels == 2, 1, levels)
        return np.concatenate([[0], np.cumsum(np.diff(self.cases.start) * columns)])

    def _sweep(
        self, mode: int, weights: Floats, sums: Floats, probabilities: Floats = _NOTHING, look: Look = unseen
    ) -> Floats:
        values = np.zeros(len(self.cases.n_levels))
        layout = (self.conditions, self.cases, self.slots)
        given = np.array(weights, dtype=np.float64)
        self._each(
            lambda call: sweep(mode, *call, given, self._first_kept, probabilities, *layout, values, sums),
            look,
        )
        return values

    @cached_property
    def _short_calls(self) -> list[list[Call]]:
        """The arguments of one call after the other; Ctrl-C takes effect between them."""
        cases, n_cases = self.cases, np.diff(self.cases.start)
        # A list that is empty costs a look, a chance an exponential.
        looks, probabilities = np.diff(self.slots.lists), n_cases * cases.n_levels
        steps = self._entering + _STEPS_OF_A_LOOK * looks + _STEPS_OF_A_PROBABILITY * probabilities
        return short_calls(steps, -(-n_cases // cases.block), _AT_ONCE)

    def _each(self, make: Callable[[Call], object], look: Look) -> None:
        """Make all calls of a pass, in threads those of each variable apart."""
        if self._pool is None:
            for place, calls in enumerate(self._short_calls):
                for call in calls:
                    make(call)
                look((place + 1) / len(self._short_calls))
            return
        from joblib import delayed

        def make_all(calls: list[Call]) -> None:
            for call in calls:
                make(call)

        self._pool(delayed(make_all)(calls) for calls in self._calls_by_variable)

    @cached_property
    def _calls_by_variable(self) -> list[list[Call]]:
        """The same for single variables, which threads share out."""
        apart = []
        for calls in self._short_calls:
            together = calls[0].variables
            apart += [calls] if len(together) == 1 else [[Call(v, *calls[0][1:])] for v in together[:, None]]
        return apart
