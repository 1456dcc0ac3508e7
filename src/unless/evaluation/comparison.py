"""How far one structure is from another, pair by pair and context by context; weights do not matter.

Contexts are gone through one by one where they are few. Where they are many, a `ContextCounter` counts those
in unions of partial contexts (boxes), exactly.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isnan, log10, nan, prod
from typing import Any, NamedTuple

import numpy as np

from unless.data.dataset import Counts, Dataset, Rows
from unless.data.domain import Code, Domain, shorten
from unless.data.showing import MOST_ROWS, html_table
from unless.errors import SettingError, TooLarge
from unless.runtime.progress import BAR_DELAY, Bar, progress
from unless.structures.structure import (
    Box,
    By,
    Edge,
    Recoding,
    StructureView,
    as_structure,
    check_same,
    n_pairs,
    pair_names,
    row_keys,
)
from unless.typing import Bools, Integers

Contexts = Dataset | Iterable[Mapping[str, object]] | None
# Up to so many contexts are gone through one by one; beyond, the partial contexts of features are counted.
MAX_CONTEXTS = 2**20
# Answers held at once for one structure, a byte each.
_ANSWERS = 2**26
_PRODUCT = 2**20
_MAX_BLOCK, _MIN_BLOCK = 2**16, 64
_Sides = tuple[StructureView, StructureView]
# What is left of a pair is counted cell by cell once it has no more cells than this.
MAX_CELLS = 2**14
# A step is a condition of a partial context that is looked at: half a minute of them, at most.
MAX_STEPS = 2**25
_Boxes = frozenset[Box]
# Rows, and what each is worth; None: one each.
_Block = tuple[Rows, Counts | None]
# Contexts in which a pair interacts in the first, in the second, in both.
_Counts = tuple[int, int, int]


class PairCounts(NamedTuple):
    """In how many contexts a pair interacts in both, only in the second, only in the first, in neither."""

    tp: int
    fp: int
    fn: int
    tn: int

    def _repr_html_(self) -> str:
        rows = zip(("both", "the second only", "the first only", "neither"), self, strict=True)
        return html_table("Contexts of one pair", ("interacts in", "contexts"), rows)


@dataclass(frozen=True, repr=False)
class StructureComparison:
    """Pairs and contexts in which a learned structure is right or wrong about a true one.

    `tp`, `fp`, `fn` and `tn` add up to the number of contexts times the number of pairs; `pairs` has them
    pair by pair, by sorted names. `n_left_out` contexts had no answer on one side. A share of nothing is NaN.
    """

    by: str
    tp: int
    fp: int
    fn: int
    tn: int
    n_contexts: int
    n_left_out: int
    pairs: Mapping[Edge, PairCounts] = field(compare=False)

    @property
    def distance(self) -> int:
        """FP + FN: a pseudo-metric between structures, 0 where they interact alike."""
        return self.fp + self.fn

    @property
    def precision(self) -> float:
        """The share of the interactions drawn that are there."""
        return _share(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """The share of the interactions there that are drawn."""
        return _share(self.tp, self.tp + self.fn)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return _share(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    @property
    def false_positive_rate(self) -> float:
        """The share of the absent interactions that are drawn."""
        return _share(self.fp, self.fp + self.tn)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as what JSON knows; NaN becomes None."""
        shares = {
            name: None if isnan(getattr(self, name)) else getattr(self, name)
            for name in ("f1", "precision", "recall", "false_positive_rate")
        }
        numbers = ("tp", "fp", "fn", "tn", "distance", "n_contexts", "n_left_out")
        pairs = [{"pair": list(pair), **counts._asdict()} for pair, counts in self.pairs.items()]
        return {"by": self.by, **{name: getattr(self, name) for name in numbers}, **shares, "pairs": pairs}

    def _repr_html_(self) -> str:
        wrong = sorted(
            ((pair, counts) for pair, counts in self.pairs.items() if counts.fp or counts.fn),
            key=lambda one: (-one[1].fp - one[1].fn, one[0]),
        )
        rows = [
            (f"{a} - {b}", _number(counts.fp), _number(counts.fn)) for (a, b), counts in wrong[:MOST_ROWS]
        ]
        more = len(wrong) - len(rows)
        shares = (
            f"F1 {self.f1:.3f}, precision {self.precision:.3f}, recall {self.recall:.3f}, "
            f"false positive rate {self.false_positive_rate:.3f}"
        )
        size = f"{_number(self.n_contexts)} contexts x {len(self.pairs):,} pairs"
        title = f"StructureComparison by {self.by}"
        return html_table(title, ("pair", "too many", "missed"), rows, [shares, size], more)

    def __repr__(self) -> str:
        left_out = f" ({_number(self.n_left_out)} left out)" if self.n_left_out else ""
        return (
            f"<StructureComparison by {self.by}: F1 {self.f1:.3f}, precision {self.precision:.3f}, "
            f"recall {self.recall:.3f}, false positive rate {self.false_positive_rate:.3f}; "
            f"{_number(self.fp)} too many and {_number(self.fn)} missed in {_number(self.n_contexts)} "
            f"contexts{left_out} x {len(self.pairs):,} pairs>"
        )


def compare_structures(
    a: Any,
    b: Any,
    *,
    by: By = "graphs",
    contexts: Contexts = None,
    weighted: bool = False,
    show_progress: bool | None = None,
) -> StructureComparison:
    """Compare a learned structure b with a true one a: which pairs interact in which contexts.

    Parameters
    ----------
    a, b
        A CanonicalModel, Graph, FeatureSet or LogLinearModel each, of the same variables and levels in any
        order. A pair interacts in a context if it is an edge of the graph, or if some feature that
        speaks of both holds there (in a LogLinearModel, one whose weight is not 0).
    by
        "graphs" asks a canonical model for the graph of the context, so that it answers only for contexts
        it has; "features" takes the features of its cliques, which also hold in contexts they were not
        learned from. For the other kinds both are the same.
    contexts
        All complete contexts (None), the distinct rows of a Dataset, or a list of complete contexts. Those
        that one of the two cannot answer are left out and counted.
    weighted
        Count each context as often as `contexts` shows it, and not once.

    >>> from unless.datasets import make_csi
    >>> from unless.structures.graph import Graph
    >>> truth = make_csi(6, random_state=0)
    >>> found = compare_structures(truth, Graph(truth.domain, truth.edges({"W": 0})))
    >>> found.tp, found.fp, found.fn, found.tn
    (640, 320, 0, 0)
    """
    if by not in ("graphs", "features"):
        raise SettingError(f"by={by!r} is not known; use 'graphs' or 'features'.")
    first, second = as_structure(a), as_structure(b)
    domain = first.domain
    check_same(domain, second.domain, "structures")
    sides = first.view(domain, by), second.view(domain, by)
    if contexts is None and weighted:
        raise SettingError("weighted=True counts the rows of a table; give it as contexts=.")
    with progress("Comparing", show_progress, after=BAR_DELAY) as bar:
        if contexts is None:
            numbers, n_contexts, n_left_out = _in_all(domain, sides, bar)
        else:
            numbers, n_contexts, n_left_out = _in_some(_observed(contexts, domain), sides, weighted, bar)
    counts = [
        PairCounts(both, second - both, first - both, n_contexts - first - second + both)
        for first, second, both in numbers
    ]
    named = zip(pair_names(domain, np.arange(len(numbers))), counts, strict=True)
    tp, fp, fn, tn = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0, 0)
    return StructureComparison(by, tp, fp, fn, tn, n_contexts, n_left_out, dict(sorted(named)))


def _in_all(domain: Domain, sides: _Sides, bar: Bar) -> tuple[list[_Counts], int, int]:
    """Count in all contexts that both sides answer for; return how many these are, and how many others."""
    n_contexts = prod(domain.n_levels.tolist())
    known = [side.contexts for side in sides if side.contexts is not None]
    if known:
        rows = known[0][_answered(known[0], sides)]
        return _in_rows(_blocks(rows), sides, bar, len(rows)), len(rows), n_contexts - len(rows)
    if n_contexts <= MAX_CONTEXTS:
        return _in_rows(_all_blocks(domain, n_contexts), sides, bar, n_contexts), n_contexts, 0
    first, second = (side.boxes() for side in sides)
    counter, counts = ContextCounter(domain.n_levels.tolist()), []
    bar.begin("pairs", counter.n_pairs)
    for pair in range(counter.n_pairs):
        counts.append(counter.count(first.get(pair, []), second.get(pair, [])))
        bar()
    return counts, n_contexts, 0


def _in_some(data: Dataset, sides: _Sides, weighted: bool, bar: Bar) -> tuple[list[_Counts], int, int]:
    """Count in the contexts of a table that both sides answer for."""
    answered = _answered(data.rows, sides)
    rows, counts = data.rows[answered], data.counts[answered] if weighted else None
    n_contexts = len(rows) if counts is None else int(counts.sum())
    n_all = data.n_rows if weighted else len(data.rows)
    return _in_rows(_blocks(rows, counts), sides, bar, len(rows)), n_contexts, n_all - n_contexts


class ContextCounter:
    """Counts the complete contexts that lie in one union of boxes, in another, and in both, pair by pair.

    It counts its steps too, so that what would take hours is refused and not begun.
    """

    def __init__(self, n_levels: list[int]) -> None:
        self.n_levels, self.n_pairs = n_levels, n_pairs(len(n_levels))
        self._n_contexts = prod(n_levels)
        self._n_done = self._n_steps = 0
        self._known: dict[tuple[_Boxes, _Boxes], _Counts] = {}

    def count(self, first: Sequence[Box], second: Sequence[Box]) -> _Counts:
        """Return, for the next pair, the numbers of contexts in the first, in the second and in both."""
        unions = _reduced(first), _reduced(second)
        if unions not in self._known:
            n_inside, counts = self._count(*unions, {})
            self._known[unions] = _times(counts, self._n_contexts // n_inside)
        self._n_done += 1
        return self._known[unions]

    def _count(
        self, first: _Boxes, second: _Boxes, seen: dict[tuple[_Boxes, _Boxes], tuple[int, _Counts]]
    ) -> tuple[int, _Counts]:
        """Return the number of contexts of the variables in the boxes, and the three counts among them."""
        if (first, second) in seen:
            return seen[first, second]
        mentions = Counter(variable for box in (*first, *second) for variable, _ in box)
        variables = sorted(mentions)
        n_inside = prod(self.n_levels[variable] for variable in variables)
        self._spend(mentions.total() + len(first) + len(second) + 1)
        if n_inside <= MAX_CELLS:
            counts = self._by_cells(first, second, variables)
        else:
            # What most boxes mention makes them shorter, and is often a gate that ends many of them.
            split = min(variables, key=lambda variable: (-mentions[variable], variable))
            counts = (0, 0, 0)
            for level, n_alike in self._alike(first | second, split):
                n_part, more = self._count(_given(first, split, level), _given(second, split, level), seen)
                more = _times(more, n_inside // self.n_levels[split] // n_part * n_alike)
                counts = counts[0] + more[0], counts[1] + more[1], counts[2] + more[2]
        seen[first, second] = n_inside, counts
        return n_inside, counts

    def _spend(self, n_steps: int) -> None:
        self._n_steps += n_steps
        if self._n_steps > MAX_STEPS:
            estimate = self._n_steps * self.n_pairs / (self._n_done + 1)
            raise TooLarge(
                f"Comparing in all 2^{self._n_contexts.bit_length() - 1} contexts needs about {estimate:.1g} "
                f"steps, more than the {MAX_STEPS:.1g} allowed; give contexts=, such as the table."
            )

    def _alike(self, boxes: _Boxes, variable: int) -> list[tuple[int, int]]:
        """Return one level of each kind that the boxes tell apart, and how many are of that kind."""
        masks = sorted({levels for box in boxes for one, levels in box if one == variable})
        kinds: dict[tuple[int, ...], list[int]] = {}
        for level in range(self.n_levels[variable]):
            kinds.setdefault(tuple(mask >> level & 1 for mask in masks), []).append(level)
        return [(levels[0], len(levels)) for levels in kinds.values()]

    def _by_cells(self, first: _Boxes, second: _Boxes, variables: list[int]) -> _Counts:
        """Use a bit for each context of the variables, all of them in one number."""
        sizes = [self.n_levels[variable] for variable in variables]
        n_cells = prod(sizes)
        # How many cells lie between one level of a variable and the next.
        strides = {variable: prod(sizes[axis + 1 :]) for axis, variable in enumerate(variables)}
        unions = []
        for boxes in (first, second):
            union = 0
            for box in boxes:
                cells = (1 << n_cells) - 1
                for variable, levels in box:
                    cells &= _cells(n_cells, strides[variable], self.n_levels[variable], levels)
                union |= cells
            unions.append(union)
        one, other = unions
        return one.bit_count(), other.bit_count(), (one & other).bit_count()


@lru_cache(maxsize=2**12)
def _cells(n_cells: int, stride: int, n_levels: int, levels: int) -> int:
    """Return the cells in which a variable has one of some levels."""
    run = (1 << stride) - 1
    bits = sum(run << level * stride for level in range(n_levels) if levels >> level & 1)
    width = stride * n_levels
    while width < n_cells:
        bits |= bits << width
        width *= 2
    return bits & ((1 << n_cells) - 1)


def _reduced(boxes: Iterable[Box]) -> _Boxes:
    # Where everything is in, nothing else matters.
    reduced = frozenset(boxes)
    return frozenset({()}) if () in reduced else reduced


def _given(boxes: _Boxes, variable: int, level: int) -> _Boxes:
    """Fix a variable: drop what contradicts, and leave the variable out of the rest."""
    return _reduced(
        tuple(pair for pair in box if pair[0] != variable)
        for box in boxes
        if all(one != variable or levels >> level & 1 for one, levels in box)
    )


def _times(counts: _Counts, factor: int) -> _Counts:
    return counts[0] * factor, counts[1] * factor, counts[2] * factor


def _in_rows(blocks: Iterable[_Block], sides: _Sides, bar: Bar, n_rows: int) -> list[_Counts]:
    """Count in rows that both sides know."""
    bar.begin("contexts", None, counted=False)
    total: Any = 0
    n_done = 0
    for rows, counts in blocks:
        first, second = (side.links(rows) for side in sides)
        total = total + np.stack([_total(links, counts) for links in (first, second, first & second)], axis=1)
        n_done += len(rows)
        bar.share(n_done / max(1, n_rows))
    return [(one, two, both) for one, two, both in total.tolist()]


def _total(links: Bools, counts: Counts | None) -> Integers:
    if counts is None:
        return np.asarray(np.count_nonzero(links, axis=1))
    # A product makes eight bytes of each answer.
    step = max(1, _PRODUCT // max(1, len(counts)))
    parts = [links[begin : begin + step] @ counts for begin in range(0, len(links), step)]
    return np.concatenate([*parts, np.zeros(0, dtype=np.int64)])


def _blocks(rows: Rows, counts: Counts | None = None) -> Iterator[_Block]:
    size = _block_size(rows.shape[1])
    # At least one block, so that without any row all counts are zero.
    for begin in range(0, max(1, len(rows)), size):
        part = slice(begin, begin + size)
        yield rows[part], None if counts is None else counts[part]


def _all_blocks(domain: Domain, n_contexts: int) -> Iterator[_Block]:
    shape = tuple(domain.n_levels.tolist())
    size = _block_size(len(domain))
    for begin in range(0, n_contexts, size):
        numbers = np.arange(begin, min(begin + size, n_contexts))
        yield np.column_stack(np.unravel_index(numbers, shape)).astype(Code), None


def _block_size(n_variables: int) -> int:
    return max(_MIN_BLOCK, min(_MAX_BLOCK, _ANSWERS // max(1, n_pairs(n_variables))))


def _answered(rows: Rows, sides: _Sides) -> Bools:
    answered = np.ones(len(rows), dtype=np.bool_)
    for side in sides:
        if side.contexts is not None:
            known = set(row_keys(side.contexts))
            answered &= np.fromiter((key in known for key in row_keys(rows)), np.bool_, len(rows))
    return answered


def _observed(contexts: Any, domain: Domain) -> Dataset:
    """Say contexts in the coding of a domain."""
    if isinstance(contexts, Dataset):
        rows = Recoding(contexts.domain, domain, "tables").rows(contexts.rows)
        return Dataset.from_codes(domain, rows, contexts.counts)
    given = None if isinstance(contexts, str | Mapping) or not isinstance(contexts, Iterable) else [*contexts]
    if given is None or not all(isinstance(context, Mapping) for context in given):
        raise SettingError(
            "contexts= is a Dataset or a list of contexts that map names to labels; read a table with "
            "unless.read."
        )
    for context in given:
        missing = [name for name in domain.names if name not in context]
        if missing:
            raise SettingError(
                f"A context gives no value to {shorten(missing)}; give it to all, or contexts=None."
            )
    codes = [list(domain.encode(context).values()) for context in given]
    return Dataset.from_codes(domain, np.array(codes, dtype=np.int64).reshape(-1, len(domain)))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else nan


def _number(number: int) -> str:
    return f"{number:,}" if number < 10**15 else f"about 10^{log10(number):.0f}"
