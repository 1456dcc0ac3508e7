"""Climbs one after another, each from the best graph so far, with a checkpoint of all the rest depends on."""

import json
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from unless.learners.climbing import Climb, Flip, Limits, Links, Scorer, Way, climb_on, perturbed, tolerance
from unless.runtime.checkpoints import Arrays, Checkpoint
from unless.runtime.progress import Bar


class Expedition:
    """A climb from a start, and others from the best graph so far with some of its edges flipped."""

    def __init__(
        self, scorer: Scorer, start: Links, limits: Limits, rng: np.random.Generator, checkpoint: Checkpoint
    ) -> None:
        self._scorer, self._limits, self._rng, self._checkpoint = scorer, limits, rng, checkpoint
        self._n_ended = 0
        self._best: Climb | None = None
        kept = checkpoint.read()
        if kept is None:
            self._way = self._set_out(start)
        else:
            self._way = self._from_record(kept)
        if checkpoint.is_saved:
            # Between two looks all is as it would be had the work never been stopped.
            scorer.note = lambda: checkpoint.save(self._written)

    def run(self, n_restarts: int, bar: Bar) -> Climb:
        """Climb, and so many times again; return the best."""
        while True:
            done = climb_on(self._scorer, self._way, self._limits, bar)
            if self._best is None or done.score > self._best.score + tolerance(self._best.score):
                self._best = done
            if self._n_ended == n_restarts:
                return self._best
            self._n_ended += 1
            self._way = self._set_out(perturbed(self._best.links, self._limits, self._rng))

    def _set_out(self, links: Links) -> Way:
        self._scorer.n_asked += len(links) * (len(links) - 1)
        return Way(links.copy())

    def _written(self) -> Arrays:
        known = self._scorer.known
        told = {
            "n_asked": self._scorer.n_asked,
            "n_ended": self._n_ended,
            "rng": self._rng.bit_generator.state,
            "best_score": None if self._best is None else self._best.score,
        }
        best = () if self._best is None else _climb_arrays("best", self._best.links, self._best.path).items()
        return {
            "told": np.frombuffer(json.dumps(told).encode(), dtype=np.uint8),
            **_climb_arrays("here", self._way.links, self._way.path),
            **dict(best),
            "variables": np.fromiter((a for a, _ in known), dtype=np.int32),
            "sizes": np.fromiter((len(blanket) for _, blanket in known), dtype=np.int32),
            "members": np.fromiter(chain.from_iterable(blanket for _, blanket in known), dtype=np.int32),
            "scores": np.fromiter(known.values(), dtype=np.float64),
        }

    def _from_record(self, kept: Arrays) -> Way:
        told: Mapping[str, Any] = json.loads(kept["told"].tobytes())
        members, sizes = iter(kept["members"].tolist()), kept["sizes"].tolist()
        for a, size, score in zip(kept["variables"].tolist(), sizes, kept["scores"].tolist(), strict=True):
            # What was asked follows from what is known.
            self._scorer.learn(a, tuple(islice(members, size)), score)
        self._scorer.n_asked, self._n_ended = told["n_asked"], told["n_ended"]
        self._rng.bit_generator.state = told["rng"]
        if told["best_score"] is not None:
            links, path = _read_climb("best", kept)
            self._best = Climb(links, told["best_score"], tuple(path))
        return Way(*_read_climb("here", kept))


def _climb_arrays(name: str, links: Links, path: Sequence[tuple[Flip, float]]) -> Arrays:
    return {
        f"{name}_links": links,
        f"{name}_flips": np.array([flip for flip, _ in path], dtype=np.int32).reshape(-1, 2),
        f"{name}_scores": np.array([score for _, score in path], dtype=np.float64),
    }


def _read_climb(name: str, kept: Arrays) -> tuple[Links, list[tuple[Flip, float]]]:
    flips = ((int(a), int(b)) for a, b in kept[f"{name}_flips"].tolist())
    return kept[f"{name}_links"], list(zip(flips, kept[f"{name}_scores"].tolist(), strict=True))
