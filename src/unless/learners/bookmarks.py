"""Work that cannot be cut: its finished stages, and how far the present one has got, kept in a folder."""

from collections.abc import Callable
from time import monotonic
from typing import Any

import numpy as np

from unless.learners.workplace import BOOKMARK, Arrays, Workplace

# Seconds between two states that are kept: what a kill loses at most, beside the step it was at.
SECONDS = 2.0
# A state is kept no sooner than so many times after what it took to write the last.
_PATIENCE = 20


class Bookmark:
    """How far work has got, in one file that later states replace; without a folder nothing is kept."""

    def __init__(self, place: Workplace | None = None, name: str = "here") -> None:
        self._place, self._name, self._file = place, name, f"{BOOKMARK}{name}"
        self._due = monotonic() + SECONDS

    @property
    def is_kept(self) -> bool:
        """Whether there is a folder for it."""
        return self._place is not None

    def beside(self, name: str) -> "Bookmark":
        """Return a bookmark for a part of the same work."""
        return Bookmark(self._place, f"{self._name}-{name}")

    def read(self) -> Arrays | None:
        """Return the last state, if one is there and whole."""
        if self._place is None or not self._place.finished([self._file]):
            return None
        return self._place.shard(self._file)

    def move(self, state: Callable[[], Arrays]) -> None:
        """Keep a state in place of the last one, unless that was written a moment ago.

        Where it cannot be written the work goes on, and the next state is tried again.
        """
        began = monotonic()
        if self._place is None or began < self._due:
            return
        self._place.try_to_keep(self._file, state())
        ended = monotonic()
        self._due = ended + max(SECONDS, _PATIENCE * (ended - began))


def once(
    place: Workplace | None,
    name: str,
    make: Callable[[], Arrays],
    is_final: Callable[[Arrays], bool] = lambda _: True,
) -> Arrays:
    """Return what a stage of the work gives: made now and kept if it is final, or taken from the folder."""
    if place is None:
        return make()
    if not place.finished([name]):
        made = make()
        if not is_final(made) or not place.try_to_keep(name, made):
            return made
    return place.shard(name)


def settled_seed(place: Workplace | None, random_state: Any) -> Any:
    """Return a seed that is the same whenever the work goes on, if none was given.

    What is kept later follows from it, and would be taken up with another seed if this one were not kept;
    without it nothing else is taken up.
    """
    if place is None or random_state is not None:
        return random_state
    name = f"{BOOKMARK}seed"
    if not place.finished([name]):
        place.forget()
        # It cannot be computed again.
        place.keep(name, {"words": np.random.default_rng().integers(0, 2**32, size=4)}, lasting=True)
    words: list[int] = place.shard(name)["words"].tolist()
    return words
