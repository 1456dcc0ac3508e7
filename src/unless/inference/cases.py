"""Rows collapsed, for each variable, to the cases its features can tell apart."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.errors import TooLarge
from unless.kernels.cases import Cases, Conditions, Slots, list_cases
from unless.runtime.memory import show_memory
from unless.runtime.progress import Look, unseen
from unless.structures.conditions import FeatureArrays

Integers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint16]
Words = npt.NDArray[np.uint64]
# Whole numbers, or shares of rows.
Counts = npt.NDArray[np.int64] | npt.NDArray[np.float64]
# Cases of a block: their scores fit the second cache, and their numbers two bytes.
_BLOCK = 2**13
# Scores of a block of a variable with many levels.
_MOST_SCORES = 2**17
# A slot that holds in more than one case of so many is found faster from bitmaps than read from a list.
_SPARSE = 4
# Steps in one call that lists cases, about a tenth of a second; those that a list takes, even an empty one.
_AT_ONCE = 1.5e7
_STEPS_OF_A_LIST = 8
# A fixed seed: the keys only name cases, and every name is checked.
_KEY_SEED = 1604


class _Table(NamedTuple):
    """The cases of one variable: a row that shows each, and what the variable is in them."""

    rows: Integers | None  # None where cases are the table's rows themselves
    observed: Integers
    level: Codes
    counts: npt.NDArray[np.float64]


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
    tables: list[_Table] = []
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


def short_calls(steps: npt.NDArray[np.float64], n_blocks: Integers, most: float) -> list[list[Call]]:
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
    return [call for calls in short_calls(steps, n_blocks, _AT_ONCE) for call in calls]


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


def _collapse(codes: Codes, counts: Counts, variable: int, blanket: Integers, keys: _Keys) -> _Table:
    """Put the rows together that agree in the blanket, where that saves at least half of them."""
    _, rows, case = np.unique(keys.of(blanket), return_index=True, return_inverse=True)
    level = codes[variable]
    same = 2 * len(rows) <= len(case) and all((codes[u] == codes[u][rows][case]).all() for u in blanket)
    if not same:
        ones = np.ones(len(case), dtype=np.int64)
        return _Table(None, ones, np.array(level), counts.astype(np.float64))
    order = np.lexsort((level, case))
    case, level = case[order], level[order]
    first = np.flatnonzero(np.r_[True, (case[1:] != case[:-1]) | (level[1:] != level[:-1])])
    told = np.add.reduceat(counts[order], first).astype(np.float64)
    return _Table(rows, np.bincount(case[first], minlength=len(rows)), level[first], told)


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
