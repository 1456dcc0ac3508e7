"""Successive halving: many settings get a little work each, the better ones more (Jamieson, Talwalkar 2016).

What is counted is work (features let in, iterations), never time: the answer is the same on every machine.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.errors import TooLarge
from unless.learners.generation import Integers
from unless.learners.working_sets import Weighed, WorkingSets
from unless.runtime.checkpoints import Arrays, Checkpoint, CheckpointStore, once, settings_digest
from unless.runtime.progress import Bar
from unless.weights.priors import Prior

# Of so many settings one goes on to the next rung.
SHARE = 4
# Features a working set may hold, and iterations it is fitted for, on the first rung; doubled on each next.
FIRST_FEATURES = 2_000
FIRST_ITERATIONS = 20
_ROUNDS = 2
# So many times the features that a rung allows are shortlisted for it.
_LOOK_AHEAD = 4


def successive_halving(
    n_settings: int, advance: Callable[[int, int], float], share: int = SHARE
) -> tuple[int, list[float], list[int]]:
    """Return the best setting, and of each its last score and the rung it got to.

    `advance(setting, rung)` works on a setting as much as the rung allows, and returns its score. The first
    of equals goes on.
    """
    scores, rungs = [0.0] * n_settings, [0] * n_settings
    alive = list(range(n_settings))
    rung = 0
    while True:
        for setting in alive:
            scores[setting], rungs[setting] = advance(setting, rung), rung
        ranked = sorted(alive, key=lambda setting: (-scores[setting], setting))
        if len(ranked) <= share:
            return ranked[0], scores, rungs
        alive = sorted(ranked[: -(-len(ranked) // share)])
        rung += 1


def n_on_rungs(n_settings: int, share: int = SHARE) -> list[int]:
    """Return how many settings get to each rung."""
    there = [n_settings]
    while there[-1] > share:
        there.append(-(-there[-1] // share))
    return there


class Search:
    """Numbers of draws, pruning and priors, judged by the pseudo-log-likelihood of unseen rows."""

    def __init__(
        self,
        working: WorkingSets,
        unseen: Dataset,
        settings: Sequence[Mapping[str, Any]],
        priors: Sequence[Prior],
        bar: Bar,
        folder: CheckpointStore | None = None,
    ) -> None:
        self.working, self.unseen, self.priors, self.bar, self.folder = working, unseen, priors, bar, folder
        chosen = [working.generated.chosen(one["n_draws"], one["prune"]) for one in settings]
        # From few features to many, so that the weights of one setting are a start for the next.
        order = sorted(range(len(settings)), key=lambda place: (len(chosen[place]), place))
        self.settings = [settings[place] for place in order]
        self.members = [chosen[place] for place in order]
        self.found: dict[int, Weighed] = {}
        self.nearby: Integers = np.empty(0, dtype=np.int64)
        self.looked = (-1, -1)
        self.too_large: list[tuple[int, int]] = []
        self.scores: list[float] = []
        self.rungs: list[int] = []

    def run(self) -> int:
        """Return the place of the best: settings one after another, each under all priors."""
        n_places = len(self.settings) * len(self.priors)
        # Each rung allows twice the work of the one before.
        work = (n_there << rung for rung, n_there in enumerate(n_on_rungs(n_places)))
        self.bar.begin("choosing", sum(work))
        best, self.scores, self.rungs = successive_halving(n_places, self._advance)
        if best not in self.found:
            raise TooLarge(
                f"None of the {n_places:,} settings fits the memory allowed; give larger values of prune=, "
                "fewer draws, or raise max_memory=."
            )
        return best

    def at(self, place: int) -> tuple[Mapping[str, Any], Prior, Integers, Weighed]:
        """Return the setting, the prior, the features and the weights at a place."""
        setting, prior = divmod(place, len(self.priors))
        return self.settings[setting], self.priors[prior], self.members[setting], self.found[place]

    def records(self) -> list[dict[str, Any]]:
        """Tell what was tried: a setting without a score did not fit the memory allowed."""
        told = []
        for place, (score, rung) in enumerate(zip(self.scores, self.rungs, strict=True)):
            setting, prior = divmod(place, len(self.priors))
            told.append(
                {
                    **self.settings[setting],
                    "prior": repr(self.priors[prior]),
                    "n_features": len(self.members[setting]),
                    "pseudo_log_likelihood": score / self.unseen.n_rows if place in self.found else None,
                    "rung": rung if place in self.found else -1,
                }
            )
        return told

    def _advance(self, place: int, rung: int) -> float:
        for _ in range(1 << rung):
            self.bar()
        try:
            done = once(self.folder, self._name("tried", rung, place), lambda: self._try(place, rung))
        except TooLarge:
            self.found.pop(place, None)
            self.too_large.append((rung, place))
            return -np.inf
        self.found[place] = Weighed(done["features"], done["weights"])
        return float(done["score"])

    def _name(self, kind: str, rung: int, number: int) -> str:
        # What was too large depends on the memory allowed, and what comes later depends on it.
        return f"{kind}-{settings_digest([*self.settings, self.too_large])}-{rung}-{number:05}"

    def _try(self, place: int, rung: int) -> Arrays:
        """Let more features in and fit them, as far as the rung allows."""
        setting, prior = divmod(place, len(self.priors))
        belief = self.priors[prior]
        most = FIRST_FEATURES << rung
        here = self.found[place] if rung else self._begin(place)
        nearby = self._shortlist(setting, rung, here, _LOOK_AHEAD * most)
        for round_ in range(_ROUNDS):
            room = (most - len(here.features)) // (_ROUNDS - round_)
            new = self.working.promising(nearby, belief, here, room)
            here = self.working.fit(here.joined(new), belief, (FIRST_ITERATIONS << rung) // _ROUNDS)[0]
        score = self.working.log_likelihood(here, self.unseen)
        return {**here._asdict(), "score": np.array(score)}

    def _begin(self, place: int) -> Weighed:
        """Start from the same prior over fewer features, or else from features of one variable."""
        setting, prior = divmod(place, len(self.priors))
        before = self.found.get(place - len(self.priors))
        return (
            self.working.start(self.priors[prior]) if before is None else before.within(self.members[setting])
        )

    def _shortlist(self, setting: int, rung: int, here: Weighed, most: int) -> Integers:
        """Look at all features of a setting, which may be millions, once on each rung for all its priors."""
        if self.looked != (setting, rung):
            weakest, members = min(self.priors, key=lambda prior: prior.l1), self.members[setting]
            name = self._name("listed", rung, setting)

            def look() -> Arrays:
                checkpoint = Checkpoint(self.folder, f"{name}-look")
                return {
                    "features": self.working.promising(members, weakest, here, most, checkpoint=checkpoint)
                }

            self.nearby, self.looked = once(self.folder, name, look)["features"], (setting, rung)
        return self.nearby
