"""Weights for the few of very many features that an L1 prior lets in.

At the optimum most weights are zero. So weights are fitted over a working set, which then takes in features
outside it whose slope exceeds the L1 part, until there are none.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.errors import TooLarge
from unless.inference.pseudo_likelihood import Conditionals
from unless.kernels.screening import Desk, Sheet, add_scores, find_slopes
from unless.learners.generation import Generated, Integers
from unless.runtime.checkpoints import Arrays, Checkpoint
from unless.runtime.memory import parse_memory, show_memory
from unless.weights.optimise import Minimum, Objective, Point, StopRules, minimise, owlqn
from unless.weights.priors import Prior

Floats = npt.NDArray[np.float64]
# On the way to the optimum a working set grows by half, and by this many features at least.
_LEAST_GROWTH = 500
_LOOK_AHEAD = 5
# A set of which more than this share is new is fitted for a few iterations only.
_STILL_GROWING = 0.02
_EARLY = 40
# Steps of a pass above which hundreds of passes for one Newton step are too many.
_CHEAP_PASS = 20_000_000
# Slope that is left, as a share of the rows, where more would not be worth while.
_ROUGHLY = 1e-4
# Rows times features in one call of a kernel: some tens of milliseconds.
_WORK_AT_ONCE = 10_000_000
# Levels times rows that numpy goes over at once: a few tens of milliseconds.
_NUMBERS_AT_ONCE = 1 << 20
# Features looked at before what was found is taken note of: a second or so.
_LOOK_AT_ONCE = 1 << 16


class Weighed(NamedTuple):
    """Features, by their numbers and sorted, with weights."""

    features: Integers
    weights: Floats

    def within(self, members: Integers) -> "Weighed":
        """Keep the features that are members."""
        inside = np.isin(self.features, members, assume_unique=True)
        return Weighed(self.features[inside], self.weights[inside])

    def joined(self, new: Integers) -> "Weighed":
        """Add features with weights of zero."""
        features = np.concatenate([self.features, new])
        weights = np.concatenate([self.weights, np.zeros(len(new))])
        order = np.argsort(features, kind="stable")
        return Weighed(features[order], weights[order])

    def with_best(self, others: Integers, weights: Floats, most: int) -> "Weighed":
        """Return the features of most weight, above zero, of these and others after them; ties by number."""
        features = np.concatenate([self.features, others])
        joined = np.concatenate([self.weights, weights])
        best = np.argsort(-joined, kind="stable")[: max(most, 0)]
        best = np.sort(best[joined[best] > 0])
        return Weighed(features[best], joined[best])


NOTHING = Weighed(np.empty(0, dtype=np.int64), np.empty(0))


class WorkingSets:
    """Generated features over the rows they came from."""

    def __init__(
        self, generated: Generated, n_jobs: int | None = None, max_memory: int | str | None = None
    ) -> None:
        self.generated = generated
        self.layout: dict[str, Any] = {"n_jobs": n_jobs, "max_memory": max_memory}
        data = generated.data
        _check(data, parse_memory(max_memory))
        self.first = np.concatenate([[0], np.cumsum(data.domain.n_levels)]).astype(np.int64)
        n_words = (data.n_distinct + 63) // 64
        padded = np.zeros((int(self.first[-1]), n_words * 64), dtype=np.bool_)
        for variable, codes in enumerate(data.rows.T):
            padded[self.first[variable] + codes.astype(np.int64), np.arange(data.n_distinct)] = True
        self.has = padded[:, : data.n_distinct]
        words = np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
        self.sheet = Sheet(generated.codes, self.first[:-1], words, generated.row, generated.kept)
        self.desk = Desk(
            np.empty(data.n_variables, dtype=np.int64),
            np.empty(n_words, dtype=np.uint64),
            np.empty(n_words, dtype=np.uint64),
            np.empty(n_words, dtype=np.int64),
        )

    def start(self, prior: Prior) -> Weighed:
        """Fit the features of one variable alone, after which slopes speak of dependence."""
        tolerance = _ROUGHLY * self.generated.data.n_rows
        return self.fit(NOTHING.joined(np.sort(self.generated.units)), prior, _EARLY, tolerance)[0]

    def converge(
        self,
        members: Integers,
        prior: Prior,
        start: Weighed,
        tolerance: float,
        max_iterations: int,
        step: Callable[[], object] = lambda: None,
        checkpoint: Checkpoint | None = None,
    ) -> tuple[Weighed, int]:
        """Fit until no feature, inside or outside the working set, has a slope beyond the tolerance.

        Returns the weights other than zero, and the iterations taken in all rounds together. A checkpoint
        keeps the rounds done.
        """
        checkpoint = Checkpoint() if checkpoint is None else checkpoint
        here, nearby, n_taken, settled = _last_round(checkpoint.read(), start)
        while n_taken < max_iterations:
            growth = max(_LEAST_GROWTH, len(here.features) // 2)
            new = self.promising(nearby, prior, here, growth, tolerance)
            if not len(new):
                # One look at all features, which may be millions, yields enough for several rounds.
                look = checkpoint.part(f"look-{n_taken}")
                nearby = self.promising(members, prior, here, _LOOK_AHEAD * growth, tolerance, look)
                new = nearby[:growth]
                if len(new):
                    checkpoint.save(partial(_round, here, nearby, n_taken, settled))
            if settled and not len(new):
                break
            # While the set still grows much, it is not worth while to fit it to the last digit.
            growing = len(new) > _STILL_GROWING * len(here.features)
            left = max_iterations - n_taken
            limit = min(left, _EARLY) if growing else left
            here, n_more, norm = self.fit(here.joined(new), prior, limit, tolerance, to_the_end=not growing)
            n_taken += n_more
            step()
            settled = norm <= tolerance
            if n_more == 0 and not settled:
                # Rounding hides all further progress.
                break
            checkpoint.save(partial(_round, here, nearby, n_taken, settled))
        return here, n_taken

    def fit(
        self,
        start: Weighed,
        prior: Prior,
        max_iterations: int,
        tolerance: float = 0.0,
        to_the_end: bool = False,
    ) -> tuple[Weighed, int, float]:
        """Fit a working set; returns weights other than zero, iterations, and the largest slope left.

        `to_the_end` takes Newton steps as well where they are cheap: each may cost hundreds of passes.
        """
        arrays = self.generated.spelled(start.features)
        conditionals = Conditionals.of(arrays, self.generated.data, **self.layout)
        objective = Objective(conditionals, prior, lambda: None)
        with conditionals.threads():
            if to_the_end and conditionals.work <= _CHEAP_PASS:
                limits = StopRules(tolerance, max_iterations)
                found: Minimum | Point = minimise(objective, start.weights, limits)
            else:
                objective.precondition(start.weights)
                found = owlqn(objective, start.weights, tolerance, max_iterations)
        kept = found.weights != 0
        return Weighed(start.features[kept], found.weights[kept]), found.n_iterations, found.norm

    def promising(
        self,
        members: Integers,
        prior: Prior,
        here: Weighed,
        most: int,
        tolerance: float = 0.0,
        checkpoint: Checkpoint | None = None,
    ) -> Integers:
        """Return the members outside that promise most: slope beyond the L1 part, squared, by curvature.

        They may be millions: a checkpoint keeps how far they were looked at.
        """
        outside = np.setdiff1d(members, here.features, assume_unique=True)
        checkpoint = Checkpoint() if checkpoint is None else checkpoint
        found, n_seen = _last_look(checkpoint.read())
        residuals = self.residuals(here)
        for begin in range(n_seen, len(outside), _LOOK_AT_ONCE):
            some = outside[begin : begin + _LOOK_AT_ONCE]
            slopes, bends = self.slopes(some, *residuals)
            beyond = np.maximum(np.abs(slopes) - prior.l1 - tolerance, 0.0)
            found = found.with_best(some, beyond**2 / np.maximum(bends + prior.precision, 1e-12), most)
            checkpoint.save(partial(_look, found, begin + len(some)))
        return found.features[np.argsort(-found.weights, kind="stable")]

    def residuals(self, here: Weighed) -> tuple[Floats, Floats]:
        """Return, for each level and row, what weights predict beyond what there is, and its variance."""
        data = self.generated.data
        excess, spread = _zeros(self.has.shape), _zeros(self.has.shape)
        at_once = max(1, _WORK_AT_ONCE // data.n_distinct)
        for begin in range(0, len(here.features), at_once):
            some = slice(begin, begin + at_once)
            add_scores(here.features[some], here.weights[some], self.sheet, self.desk, excess)
        for low, high in zip(self.first[:-1].tolist(), self.first[1:].tolist(), strict=True):
            for rows in _spans(data.n_distinct, _NUMBERS_AT_ONCE // max(1, high - low)):
                part, counts = excess[low:high, rows], data.counts[rows]
                part -= part.max(axis=0)
                np.exp(part, out=part)
                part /= part.sum(axis=0)
                spread[low:high, rows] = part * (1.0 - part) * counts
                part -= self.has[low:high, rows]
                part *= counts
        return excess, spread

    def slopes(self, features: Integers, excess: Floats, spread: Floats) -> tuple[Floats, Floats]:
        """Return the slope of the loss along each feature, and its curvature."""
        at_once = max(1, _WORK_AT_ONCE // self.generated.data.n_distinct)
        slopes, bends = np.empty(len(features)), np.empty(len(features))
        for begin in range(0, len(features), at_once):
            some = slice(begin, begin + at_once)
            find_slopes(features[some], self.sheet, self.desk, excess, spread, slopes[some], bends[some])
        return slopes, bends

    def log_likelihood(self, here: Weighed, data: Dataset) -> float:
        """Return the pseudo-log-likelihood of a table with the same columns, all rows together."""
        arrays = self.generated.spelled(here.features)
        judge = Conditionals.of(arrays, data, **self.layout, once=True)
        return -float(judge.losses(here.weights).sum())


def _zeros(shape: tuple[int, ...]) -> Floats:
    """Write zeros some lines after another: memory is there once it is written to, and that takes long."""
    made = np.empty(shape)
    at_once = max(1, _NUMBERS_AT_ONCE // max(1, shape[1]))
    for begin in range(0, shape[0], at_once):
        made[begin : begin + at_once] = 0.0
    return made


def _spans(n_rows: int, at_once: int) -> list[slice]:
    """Cut rows into even spans, of two rows at least: a single column numpy would add up in another order."""
    n_spans = max(1, min(-(-n_rows // max(1, at_once)), n_rows // 2))
    ends = [n_rows * span // n_spans for span in range(n_spans + 1)]
    return [slice(*ends[span : span + 2]) for span in range(n_spans)]


def _round(here: Weighed, nearby: Integers, n_taken: int, settled: bool) -> Arrays:
    return {**here._asdict(), "nearby": nearby, "n_taken": np.array(n_taken), "settled": np.array(settled)}


def _last_round(kept: Arrays | None, start: Weighed) -> tuple[Weighed, Integers, int, bool]:
    if kept is None:
        return start, NOTHING.features, 0, False
    here = Weighed(kept["features"], kept["weights"])
    return here, kept["nearby"], int(kept["n_taken"]), bool(kept["settled"])


def _look(found: Weighed, n_seen: int) -> Arrays:
    return {**found._asdict(), "n_seen": np.array(n_seen)}


def _last_look(kept: Arrays | None) -> tuple[Weighed, int]:
    return (NOTHING, 0) if kept is None else (Weighed(kept["features"], kept["weights"]), int(kept["n_seen"]))


def _check(data: Dataset, max_bytes: int) -> None:
    # Scores, spread and what is made of them on the way.
    need = int(data.domain.n_levels.sum()) * data.n_distinct * 40
    if need > max_bytes:
        raise TooLarge(
            f"The probabilities of all levels in {data.n_distinct:,} distinct rows of {data.n_variables:,} "
            f"columns would need about {show_memory(need)}, more than the {show_memory(max_bytes)} allowed; "
            "use fewer columns or raise max_memory=."
        )
