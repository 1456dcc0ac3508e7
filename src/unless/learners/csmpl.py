"""CSMPL: labelled graphs by marginal pseudo-likelihood (after Pensar, Nyman and Corander, 2017)."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Region
from unless.errors import SettingError, TooLarge
from unless.learners.base import Learner, Run
from unless.learners.ibmap import tolerance
from unless.learners.settings import EdgeNames, at_least, edge_limits, learned, setting
from unless.runtime.memory import show_memory
from unless.structures.labelled import LabelledGraph, Link
from unless.typing import Bools

Links = Bools
Pair = tuple[int, int]
# The levels of each gate at which a link is there; without gates, everywhere.
Label = tuple[tuple[int, tuple[int, ...]], ...]
# Bytes of memory, roughly, for each score that is kept, and for each neighbour that it was weighed with.
_BYTES_OF_A_SCORE, _BYTES_OF_A_NEIGHBOUR = 300, 80
# Lines of a table of probabilities are numbered without gaps before their numbers would pass 64 bits.
_LARGEST = 2**62


class CSMPL(Learner):
    """Learn which pairs are linked, and at which levels of their common neighbours, by greedy search.

    Each variable has a table of probabilities given its blanket, with all parameters integrated out under a
    Dirichlet prior that is worth one row. A link may be labelled with levels of gates, which are common
    neighbours of its ends, at which it is absent: rows there share a line of the table whatever the other end
    is. The score is the sum over variables, less log M for each level named, where M is how many could be.
    From the required links, the move that gains most is made until none gains: link, unlink, link but for one
    level of a gate, name one more level, forget a gate. A link to a gate has no label itself.

    `score_` is the score reached. `n_tests_` counts the scores of variables that were looked at.

    Parameters
    ----------
    max_blanket
        No variable gets more neighbours than this, unless more are required.
    required_edges, forbidden_edges
        Pairs of names that are linked everywhere, or nowhere.

    Examples
    --------
    >>> import unless
    >>> est = unless.CSMPL().fit(unless.datasets.load_ucb_admissions())
    >>> [str(link) for link in est.structure_]
    ['Admit - Dept', 'Dept - Gender']
    """

    kept_structure = LabelledGraph
    _work = "Scores of {n:,} variables in {m:,} distinct rows"
    saves_answer = True
    _counts = ("weighed", "score")
    max_blanket: int | None = setting(default=None, check=at_least(0))
    required_edges: EdgeNames = setting(default=None)
    forbidden_edges: EdgeNames = setting(default=None)
    score_: float = learned()

    def _bytes_needed(self, data: Dataset, run: Run) -> int:  # noqa: ARG002
        # The scores of all pairs; those on the way are bounded while they grow.
        scores = data.n_variables**2 * (_BYTES_OF_A_SCORE + _BYTES_OF_A_NEIGHBOUR)
        return scores + _bytes_beside_scores(data)

    def _learn(self, data: Dataset, run: Run, *_: Dataset) -> None:
        # By name: the order of the columns must not decide anything, not even the rounding.
        named = data.select(sorted(data.names))
        must, never = edge_limits(named.domain, self.required_edges, self.forbidden_edges)
        scores = TableScores(named, run.max_bytes - _bytes_beside_scores(named))
        search = LabelSearch(scores, must, never, self.max_blanket)
        first = run.steps(len(search.pairs), "looking at all pairs")
        for pair in search.pairs:
            search.look(pair)
            first.tick()
        steps = run.steps(None, "moves")
        while search.step():
            steps.tick()
        self.structure_ = LabelledGraph(
            data.domain, (_link(named, pair, label) for pair, label in search.links.items())
        )
        self.score_ = search.score()
        self.n_tests_, self.n_distinct_tests_ = search.scores.n_asked, len(search.scores.known)

    def _to_record(self) -> tuple[LabelledGraph, dict[str, Any]]:
        return self.structure_, {"score": self.score_}

    def _from_record(self, structure: Any, results: Mapping[str, Any]) -> None:
        super()._from_record(structure, results)
        if not isinstance(results["score"], float):
            raise SettingError("its score is no number")
        self.score_ = results["score"]


def _bytes_beside_scores(data: Dataset) -> int:
    """Return what moves, codes, and what one score numbers and counts take."""
    n, m = data.n_variables, data.n_distinct
    return n * n * _BYTES_OF_A_SCORE + 8 * n * m + 100 * m * int(data.domain.n_levels.max())


def _link(named: Dataset, pair: Pair, label: Label) -> Link:
    levels = [variable.levels for variable in named.domain]
    where = {named.names[c]: [levels[c][code] for code in there] for c, there in label}
    return Link((named.names[pair[0]], named.names[pair[1]]), (Region.of(named.domain, where),))


@dataclass
class TableScores:
    """The log marginal likelihood of each variable given labelled neighbours, computed once.

    What is kept of it may take `max_bytes`, about.
    """

    data: Dataset
    max_bytes: float = math.inf
    known: dict[tuple[int, tuple[tuple[int, Label], ...]], float] = field(default_factory=dict)
    n_asked: int = 0
    n_bytes: int = 0

    def __post_init__(self) -> None:
        self.codes = np.ascontiguousarray(self.data.rows.T).astype(np.int64)
        self.n_levels = [int(size) for size in self.data.domain.n_levels]

    def score(self, a: int, neighbours: Mapping[int, Label]) -> float:
        """Return the score of a variable."""
        self.n_asked += 1
        key = a, tuple(sorted(neighbours.items()))
        if key not in self.known:
            self.n_bytes += _BYTES_OF_A_SCORE + len(neighbours) * _BYTES_OF_A_NEIGHBOUR
            if self.n_bytes > self.max_bytes:
                raise TooLarge(
                    f"After {len(self.known):,} scores, what is kept of them needs more than the "
                    f"{show_memory(int(self.max_bytes))} left; raise max_memory=, or set max_blanket=, which "
                    "weighs fewer."
                )
            self.known[key] = self._score(*key)
        return self.known[key]

    def _score(self, a: int, neighbours: tuple[tuple[int, Label], ...]) -> float:
        line, share = np.zeros(self.codes.shape[1], dtype=np.int64), np.ones(self.codes.shape[1])
        n_lines = 1
        for b, label in neighbours:
            there = np.ones(len(line), dtype=np.bool_)
            for c, levels in label:
                there &= np.isin(self.codes[c], levels)
            n_lines *= self.n_levels[b] + 1
            if n_lines > _LARGEST:
                line = np.unique(line, return_inverse=True)[1].ravel()
                n_lines = (int(line.max()) + 1) * (self.n_levels[b] + 1)
            # Where the link is absent, all levels of b share a line, and a share of the prior each.
            line = line * (self.n_levels[b] + 1) + np.where(there, self.codes[b], self.n_levels[b])
            share[there] /= self.n_levels[b]
        _, first, line = np.unique(line, return_index=True, return_inverse=True)
        r, counts = self.n_levels[a], self.data.counts
        cells = np.bincount(line.ravel() * r + self.codes[a], weights=counts, minlength=len(first) * r)
        # Shares of blankets with very many lines would be zero.
        prior = np.maximum(share[first], 1e-300)
        # Here, because it takes long to load.
        from scipy.special import gammaln

        evidence = gammaln(prior) - gammaln(prior + cells.reshape(-1, r).sum(axis=1))
        each = np.repeat(prior / r, r)[cells > 0]
        return math.fsum(evidence) + math.fsum(gammaln(each + cells[cells > 0]) - gammaln(each))


@dataclass(frozen=True)
class Move:
    """A change of one link: its new label, or None where it goes; and what that adds to the score."""

    pair: Pair
    label: Label | None
    gain: float


class LabelSearch:
    """Greedy search over labelled graphs: the links so far, and the moves that each pair has."""

    def __init__(self, scores: TableScores, must: Links, never: Links, max_blanket: int | None) -> None:
        self.scores = scores
        self.n = len(must)
        varies = np.array([len(np.unique(codes)) > 1 for codes in scores.codes])
        self.must, self.open = must, ~(must | never) & varies[:, None] & varies[None, :]
        self.max_blanket = self.n if max_blanket is None else max_blanket
        self.links: dict[Pair, Label] = dict.fromkeys(zip(*np.nonzero(np.triu(must)), strict=True), ())
        self.pairs = list(combinations(range(self.n), 2))
        self.moves: dict[Pair, list[Move]] = {}

    def neighbours(self, a: int) -> dict[int, Label]:
        """Return the neighbours of a variable with the labels of their links."""
        return {sum(pair) - a: label for pair, label in self.links.items() if a in pair}

    def score(self) -> float:
        """Return the score of the graph."""
        local = [self.scores.score(a, self.neighbours(a)) for a in range(self.n)]
        return math.fsum([*local, *(-self._price(pair, label) for pair, label in self.links.items())])

    def look(self, pair: Pair) -> None:
        """Weigh the moves of a pair, unless they are known."""
        if pair not in self.moves:
            self.moves[pair] = list(self._moves(pair))

    def step(self) -> bool:
        """Make the move that gains most, the first of those that gain as much; tell whether there is one."""
        for pair in self.pairs:
            self.look(pair)
        moves = [move for pair in self.pairs for move in self.moves[pair]]
        margin = tolerance(self.score())
        best = max((move.gain for move in moves), default=-math.inf)
        if best <= margin:
            return False
        chosen = next(move for move in moves if move.gain >= best - margin)
        self.links.pop(chosen.pair, None)
        if chosen.label is not None:
            self.links[chosen.pair] = chosen.label
        # Moves of a pair follow from the links at its ends.
        for pair in self.pairs:
            if set(pair) & set(chosen.pair):
                self.moves.pop(pair, None)
        return True

    def _price(self, pair: Pair, label: Label) -> float:
        sizes = self.scores.n_levels
        n_named = sum(sizes[c] - len(there) for c, there in label)
        return n_named * math.log(max(1, sum(sizes) - sizes[pair[0]] - sizes[pair[1]]))

    def _moves(self, pair: Pair) -> Iterator[Move]:
        a, b = pair
        here = {end: self.neighbours(end) for end in pair}
        old = self.links.get(pair)
        before = sum(self.scores.score(end, here[end]) for end in pair)
        if old is not None:
            before -= self._price(pair, old)
        for label in self._labels(pair, old, here):
            after = 0.0
            for end, other in ((a, b), (b, a)):
                changed = {c: one for c, one in here[end].items() if c != other}
                after += self.scores.score(end, changed if label is None else {**changed, other: label})
            if label is not None:
                after -= self._price(pair, label)
            yield Move(pair, label, after - before)

    def _labels(
        self, pair: Pair, old: Label | None, here: Mapping[int, Mapping[int, Label]]
    ) -> Iterator[Label | None]:
        """Yield what the link of a pair may become."""
        a, b = pair
        if not self.open[pair] or (old is None and max(map(len, here.values())) >= self.max_blanket):
            return
        gates = {end: {c for label in here[end].values() for c, _ in label} for end in pair}
        if b in gates[a] or a in gates[b]:
            # A link to a gate stays as it is while it is one.
            return
        if old is None:
            yield ()
        else:
            yield None
            for gate, _ in old:
                yield tuple(one for one in old if one[0] != gate)
        label = {} if old is None else dict(old)
        for c in sorted(here[a].keys() & here[b].keys()):
            there = label.get(c, tuple(range(self.scores.n_levels[c])))
            if here[a][c] == here[b][c] == () and len(there) > 1:
                for level in there:
                    left = tuple(code for code in there if code != level)
                    yield tuple(sorted({**label, c: left}.items()))
