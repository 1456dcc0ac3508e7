"""What a structure links and what the data say, pair by pair."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain, shorten
from unless.data.progress import Bar
from unless.knowledge.evidence import Evidence, Levels, bootstrap_support, settle, weigh
from unless.knowledge.gates import SURELY, SURELY_NOT, Gate, GateFinder, Leaf, read_tree
from unless.knowledge.levels import Box, holds
from unless.knowledge.measures import Correction, corrected, critical_values
from unless.knowledge.presence import Bools, Presence
from unless.knowledge.sentences import length, sentence
from unless.knowledge.statements import Claim, Statement
from unless.knowledge.strata import MOST_CELLS, Counter
from unless.structures.pairs import n_pairs, pair_nodes
from unless.structures.regions import Region

# A neighbour is who is linked in at least this share of the rows looked at.
NEIGHBOUR = 0.25
# Of more pairs than this, those that are never linked are not tested.
MOST_PAIRS = 5_000


@dataclass(frozen=True)
class Found:
    """A pair, what the structure says of it and what the data say."""

    pair: tuple[int, int]
    gate: Gate | bool
    share: float
    agreement: float
    linked: Evidence | None
    unlinked: Evidence | None
    support: float | None = None

    def said(self, domain: Domain, n_rows: int, target: str | None) -> Statement:
        """Put it into words."""
        names = (domain.names[self.pair[0]], domain.names[self.pair[1]])
        claim: Claim = "gated" if isinstance(self.gate, Gate) else "linked" if self.gate else "never"
        spoken = names[::-1] if target == names[1] else names
        return Statement(
            pair=names,
            claim=claim,
            gate=self.gate if isinstance(self.gate, Gate) else None,
            share=self.share,
            agreement=self.agreement,
            linked=self.linked,
            unlinked=self.unlinked,
            n_rows=n_rows,
            sentence=sentence((spoken[0], spoken[1]), self.gate, self.linked, self.unlinked, domain, n_rows),
            support=self.support,
        )


class Judge:
    """Works out what to say about each pair of a table."""

    def __init__(
        self, data: Dataset, presence: Presence, gates: list[int], levels: Levels, correction: Correction
    ) -> None:
        self.data = data
        self.gate_variables = gates
        self.presence = presence
        self.levels = levels
        self.correction = correction
        self.counter = Counter(data)

    def pairs(self, target: str | None, held: set[str]) -> tuple[list[int], int, str]:
        """Return the pairs to speak of, the number of those left out, and a sentence about them."""
        still = {*self.data.constant_names} | held
        names, n = self.data.names, self.data.n_variables
        first, second = pair_nodes(np.arange(n_pairs(n)), n)
        numbers = [
            number
            for number, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True))
            if target in (None, names[a], names[b]) and names[a] not in still and names[b] not in still
        ]
        notes = _constant_note([name for name in self.data.constant_names if name not in held])
        if target in held:
            notes = [f"The context holds {target!r} at one level, so that nothing can be said of it."]
        n_levels = self.data.domain.n_levels.astype(np.int64)
        kept = [k for k in numbers if n_levels[first[k]] * n_levels[second[k]] <= MOST_CELLS]
        if len(kept) < len(numbers):
            notes.append(
                f"Pairs of columns with too many levels to be tested: {len(numbers) - len(kept):,}; merge "
                "levels with rare= or bins=."
            )
        if len(kept) > MOST_PAIRS:
            n_before, kept = len(kept), [number for number in kept if self.presence.shares[number] > 0]
            notes.append(
                f"{n_before - len(kept):,} pairs that are never linked were not tested; name a target= "
                "to test those of one variable."
            )
        return kept, len(numbers) - len(kept), " ".join(notes)

    def found(self, pairs: list[int], max_gate: int, bar: Bar) -> list[Found]:
        """Find the gate of each pair and count what speaks for and against it."""
        bar.begin("pairs", len(pairs))
        domain = self.data.domain
        found = []
        for number, tree in GateFinder(self.presence, self.gate_variables, max_gate).trees(pairs):
            a, b = (int(side[0]) for side in pair_nodes(np.array([number]), len(domain)))

            def is_linked(leaf: Leaf, box: Box, a: int = a, b: int = b) -> bool:
                if not SURELY_NOT <= leaf.share < SURELY:
                    return leaf.share >= SURELY
                return self._evidence(a, b, [box], tuple(box)).p < self.levels.alpha

            gate = read_tree(tree, domain, is_linked)
            found.append(self._judged(number, (a, b), gate))
            bar()
        return found

    def _judged(self, number: int, pair: tuple[int, int], gate: Gate | bool) -> Found:
        share = float(self.presence.shares[number])
        if isinstance(gate, bool):
            evidence = self._evidence(*pair, None, ())
            agreement = share if gate else 1 - share
            return Found(pair, gate, share, agreement, evidence if gate else None, None if gate else evidence)
        deciding = tuple(self.data.domain.index(name) for name in gate.names)
        chosen = self._n_choices(pair, gate)
        sides = [
            self._evidence(*pair, gate.linked, deciding, chosen),
            # Chosen because little is seen there, which needs no correction.
            self._evidence(*pair, gate.unlinked, deciding),
        ]
        said = self._mask(gate.linked, self.presence.rows)
        agrees = self.presence.linked(number) == said
        agreement = float(self.presence.counts[agrees].sum()) / float(self.presence.counts.sum())
        return Found(pair, gate, share, agreement, sides[0], sides[1])

    def _n_choices(self, pair: tuple[int, int], gate: Gate) -> int:
        """Count the descriptions that name as many levels, of all variables that may be named."""
        domain = self.data.domain
        n_named = min(length(side, domain)[-1] for side in (gate.linked, gate.unlinked))
        n_levels = sum(int(domain.n_levels[one]) for one in self.gate_variables if one not in pair)
        # Beyond this a float could not hold it.
        return min(max(1, math.comb(n_levels, n_named)), 10**300)

    def _evidence(
        self, a: int, b: int, where: Any, deciding: tuple[int, ...], n_choices: int = 1
    ) -> Evidence:
        inside = None if where is None else self._mask(where, self.data.rows)
        nearby = None if where is None else self._mask(where, self.presence.rows)
        blankets = [
            [c for c in self.presence.neighbours(end, nearby, NEIGHBOUR) if c not in (a, b)] for end in (a, b)
        ]
        blanket = min(blankets, key=lambda one: float(np.log(self.data.domain.n_levels[one]).sum()))
        counted = self.counter.count_within_bounds(a, b, [deciding, blanket], inside)
        return weigh(counted, (a, b), self.data.domain, self.levels, n_choices)

    def _mask(self, where: Any, rows: Any) -> Bools:
        masks = [
            one.holds(self.data.domain, rows)
            if isinstance(one, Region)
            else holds(one, rows, self.data.domain)
            for one in where
        ]
        return np.asarray(np.logical_or.reduce(masks))

    def settled(self, found: list[Found], n_untested: int) -> list[Found]:
        """Give all tests their q, and with it their answers.

        A learner chose the links it claims by looking at the same rows, so that all pairs are one family: the
        test where a pair is claimed to be linked, or everywhere. The far sides of gates are a second one.
        """
        primary = self._settled([one.linked or one.unlinked for one in found], n_untested)
        far = self._settled([one.unlinked if one.linked else None for one in found], 0)
        return [
            replace(one, linked=side, unlinked=other) if one.linked else replace(one, unlinked=side)
            for one, side, other in zip(found, primary, far, strict=True)
        ]

    def _settled(self, family: list[Evidence | None], n_more: int) -> list[Evidence | None]:
        """Correct over a family and as many tests more that were not made."""
        tested = [(place, side) for place, side in enumerate(family) if side is not None and side.df]
        paid = [min(1.0, side.p * side.n_choices) for _, side in tested] + [1.0] * n_more
        q = corrected(paid, self.correction)
        critical = critical_values(paid, self.correction, self.levels.fdr)
        found = {place: (q[number], critical[number]) for number, (place, _) in enumerate(tested)}
        settled: list[Evidence | None] = []
        for place, side in enumerate(family):
            rate, limit = found.get(place, (1.0, 0.0))
            settled.append(side and settle(side, rate, limit / side.n_choices, self.levels))
        return settled

    def supported(
        self, found: list[Found], n_resamples: int, random_state: int | None, bar: Bar
    ) -> list[Found]:
        """Resample each test so often, if at all."""
        if not n_resamples:
            return found
        rng = np.random.default_rng(random_state)
        supported = []
        bar.begin("resamples of pairs", len(found))
        for one in sorted(found, key=lambda one: one.pair):
            shares = [
                bootstrap_support(side, self.data.n_rows, self.levels, n_resamples, rng)
                for side in (one.linked, one.unlinked)
                if side is not None
            ]
            supported.append(replace(one, support=min(shares)))
            bar()
        return supported


def _constant_note(names: list[str]) -> list[str]:
    if not names:
        return []
    shown, them = ("shows", "it") if len(names) == 1 else ("show", "them")
    return [f"{shorten(names)} {shown} a single level, so that nothing can be said of pairs with {them}."]
