"""Where a pair is linked: what the gate trees of its two ends say together."""

from collections.abc import Iterator, Sequence
from math import comb
from typing import NamedTuple

from scipy.special import chdtri

from unless.independence.logistic import Effect, average, common, size_of, total, turned
from unless.independence.statistics import NOTHING, Statistic
from unless.learners.gating import GateTree, gate_ranks
from unless.learners.neighbourhoods import Asker
from unless.learners.parts import Conditions, Part

# The ends of a pair may cut the table in different ways; beyond so many cells one end's way is enough.
MAX_CELLS = 8


class Found(NamedTuple):
    """A hypothesis about a pair that was tested in a part of the table.

    `corrected` is its p after the search that led to it, `doubt` what that becomes because its gates may be
    none; `gate` is the variable between whose levels the link may differ, for hypotheses of that kind.
    """

    conditions: Conditions
    statistic: Statistic
    n_rows: int
    corrected: float
    gate: int | None = None
    doubt: float = 0.0

    @property
    def p(self) -> float:
        """The p of the whole claim, gates and all."""
        return max(self.corrected, self.doubt)


class Pair(NamedTuple):
    """All about a pair: parts where it seems linked, where it does not, between which levels it differs."""

    linked: tuple[Found, ...] = ()
    unlinked: tuple[Found, ...] = ()
    differs: tuple[Found, ...] = ()


Meeting = tuple[Part, GateTree | None, GateTree | None]


class Cell(NamedTuple):
    """A part in which a pair has one set of weights, and the test that they are all zero."""

    part: Part
    effect: Effect
    n_rows: int
    size: Statistic


class Choice(NamedTuple):
    """The best account of some cells: what it is worth, and what it says.

    `differ` is the test that the weights of the cells differ at all.
    """

    worth: float
    differ: Statistic
    linked: tuple[Found, ...]
    unlinked: tuple[Found, ...]
    differs: tuple[Found, ...]


class Linker:
    """Decides, pair by pair, in which contexts there is a link."""

    def __init__(
        self, askers: Sequence[Asker], trees: Sequence[GateTree], alpha: float, n_gates: int
    ) -> None:
        self.askers, self.trees, self.alpha = askers, trees, alpha
        self.table = askers[0].table
        self.n_gates = n_gates
        self.n_asked = self.n_searched = 0
        self.rank = gate_ranks(trees)
        self.doubts = _gate_doubts(trees, len(askers) * (n_gates + 1))

    def pair(self, a: int, b: int) -> Pair:
        """Say where two variables are linked."""
        mine, yours = self._stops(a, b), self._stops(b, a)
        switched = [*self._switched(a, b, mine), *self._switched(b, a, yours)]
        apart = _without_overlap(switched)
        if any(not found.conditions for found in apart):
            return Pair(linked=tuple(apart))
        # Where one end alone is heard its leaves may lie where a gate of the other has spoken.
        spoken_for = [found.conditions for found in apart]
        cells = [
            cell
            for cell in self._cells(a, b, mine, yours)
            if not any(meet(cell.part.conditions, conditions) for conditions in spoken_for)
        ]
        if not cells:
            return Pair(linked=tuple(apart))
        self.n_searched += 1
        before = self.n_asked
        # Where a gate of one end has spoken the rest of the table is no region, and each cell is its own.
        best = self._each(cells) if apart else self._best(cells, ())
        n_tried = self.n_asked - before
        linked = tuple(self._doubted(_corrected(found, n_tried)) for found in best.linked)
        differs = tuple(
            _corrected(found, self.n_gates ** len(found.conditions or ((),))) for found in best.differs
        )
        return Pair((*apart, *linked), best.unlinked, differs)

    def _stops(self, a: int, b: int) -> list[GateTree]:
        # A gate sees the links that it switches as its own, switched by their ends: there the others know.
        return [] if self.rank[a] > self.rank[b] else list(self.trees[a].stops(b))

    def _switched(self, a: int, b: int, stops: list[GateTree]) -> Iterator[Found]:
        """Give the parts in which b is a gate of a's links, and so linked to a; and test that it is not."""
        ask = self.askers[a]
        for stop in stops:
            if stop.gate != b:
                continue
            apart = [ask.regression(child.part, stop.union) for child in stop.children]
            without = ask.regression(stop.part, stop.union)
            gained = sum(one.log_likelihood for one in apart) - without.log_likelihood
            df = sum(one.n_weights for one in apart) - without.n_weights
            statistic = Statistic(max(0.0, 2 * gained), df)
            self.n_asked += 1
            # Either end might have said it, and the neighbours it is said with were searched for.
            n_tried = 2 * comb(len(self.askers) - 2, len(stop.union))
            p = min(1.0, n_tried * statistic.p)
            found = Found(stop.part.conditions, statistic, self.table.n_rows(stop.part), p)
            yield self._doubted(found, b)

    def _doubted(self, found: Found, *gates: int) -> Found:
        """Correct for the gates that could have been chosen, unless those chosen are gates for sure."""
        named = {*gates, *(variable for variable, _ in found.conditions)}
        doubt = max((self.doubts.get(gate, 0.0) for gate in named), default=0.0)
        return found._replace(doubt=min(1.0, doubt, found.corrected * self.n_gates ** len(named)))

    def _cells(self, a: int, b: int, mine: list[GateTree], yours: list[GateTree]) -> Iterator[Cell]:
        here = [stop for stop in mine if stop.gate is None]
        there = [stop for stop in yours if stop.gate is None]
        if not any(b in stop.blanket for stop in here) and not any(a in stop.blanket for stop in there):
            return
        meetings = list(_meetings(here, there))
        if len(meetings) > MAX_CELLS:
            meetings = list(_meetings(*(([], there) if len(there) <= len(here) else (here, []))))
        for part, one, other in meetings:
            said = [] if one is None else [self.askers[a].effect(part, one.blanket, b)]
            if other is not None:
                said.append(turned(self.askers[b].effect(part, other.blanket, a)))
            effect = average(said[0], said[-1])
            yield Cell(part, effect, self.table.n_rows(part), size_of(effect))

    def _each(self, cells: list[Cell]) -> Choice:
        choices = [self._best([cell], cell.part.conditions) for cell in cells]
        return Choice(
            sum(choice.worth for choice in choices),
            NOTHING,
            tuple(one for choice in choices for one in choice.linked),
            tuple(one for choice in choices for one in choice.unlinked),
            (),
        )

    def _best(self, cells: list[Cell], path: Conditions) -> Choice:
        """Choose between no link, one link, and a gate that says which of the two."""
        self.n_asked += 1
        effects = [cell.effect for cell in cells]
        together = common(effects)
        alone = total(cell.size for cell in cells)
        differ = Statistic(max(0.0, alone.value - together.value), alone.df - together.df)
        n_rows = sum(cell.n_rows for cell in cells)
        found = Found(path, together, n_rows, together.p)
        choices = [Choice(0.0, differ, (), (found,), ())]
        if together.df:
            worth = together.value - float(chdtri(together.df, self.alpha))
            choices.append(Choice(worth, differ, (found,), (), ()))
        choices += [self._split(cells, differ, path, gate) for gate in _gates(cells)]
        return max(choices, key=lambda choice: choice.worth)

    def _split(self, cells: list[Cell], differ: Statistic, path: Conditions, gate: int) -> Choice:
        sides: dict[tuple[int, ...], list[Cell]] = {}
        for cell in cells:
            sides.setdefault(dict(cell.part.conditions)[gate], []).append(cell)
        below = [
            self._best(side, tuple(sorted({**dict(path), gate: levels}.items())))
            for levels, side in sorted(sides.items())
        ]
        contrast = _contrast(differ, [choice.differ for choice in below])
        n_rows = sum(cell.n_rows for cell in cells)
        told = Found(path, contrast, n_rows, contrast.p, gate)
        return Choice(
            sum(choice.worth for choice in below),
            differ,
            tuple(one for choice in below for one in choice.linked),
            tuple(one for choice in below for one in choice.unlinked),
            (told, *(one for choice in below for one in choice.differs)),
        )


def _meetings(here: list[GateTree], there: list[GateTree]) -> Iterator[Meeting]:
    """Give the parts where leaves of the two ends meet; an end without leaves has nothing to say."""
    if not here or not there:
        for leaf in here:
            yield leaf.part, leaf, None
        for leaf in there:
            yield leaf.part, None, leaf
        return
    for one in here:
        for other in there:
            part = one.part.meets(other.part)
            if len(part.rows):
                yield part, one, other


def _gates(cells: list[Cell]) -> list[int]:
    """Return the variables that every cell has a condition on, and of which each level is on one side only.

    Where the two ends of a pair join the levels of a gate in different ways, a side may be a part of another.
    """
    named = [dict(cell.part.conditions) for cell in cells]
    shared = set.intersection(*(set(one) for one in named))
    return [gate for gate in sorted(shared) if _are_sides({one[gate] for one in named})]


def _are_sides(several: set[tuple[int, ...]]) -> bool:
    named = [level for levels in several for level in levels]
    return len(several) > 1 and len(named) == len(set(named))


def _contrast(overall: Statistic, within: list[Statistic]) -> Statistic:
    """Test that a link is the same on all sides of a gate, given what else it differs by."""
    value = overall.value - sum(one.value for one in within)
    df = overall.df - sum(one.df for one in within)
    return Statistic(max(0.0, value), df) if df > 0 else NOTHING


def _gate_doubts(trees: Sequence[GateTree], n_looked_at: int) -> dict[int, float]:
    """Return, for each gate, the chance of what is seen where it is plainest if it were a gate nowhere."""
    doubts: dict[int, float] = {}
    nodes = list(trees)
    while nodes:
        node = nodes.pop()
        nodes += node.children
        for one in node.candidates:
            if one.gate == node.gate:
                doubts[one.gate] = min(doubts.get(one.gate, 1.0), n_looked_at * one.p)
    return doubts


def _corrected(found: Found, n_tried: int) -> Found:
    return found._replace(corrected=min(1.0, found.statistic.p * n_tried))


def _without_overlap(found: list[Found]) -> list[Found]:
    kept: list[Found] = []
    for one in sorted(found, key=lambda one: (len(one.conditions), one.corrected, one.conditions)):
        if not any(meet(one.conditions, other.conditions) for other in kept):
            kept.append(one)
    return kept


def meet(one: Conditions, other: Conditions) -> bool:
    """Tell whether conditions can hold together."""
    known = dict(other)
    return all(set(levels) & set(known.get(variable, levels)) for variable, levels in one)
