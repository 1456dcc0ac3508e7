"""A progress bar on a terminal or in a notebook, nothing elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Bar:
    """Moves by one when it is called; without anything drawn it does nothing."""

    def __init__(self, title: str = "", drawn: Any = None) -> None:
        self._title, self._drawn = title, drawn

    def __call__(self) -> None:
        """Move by one."""
        if self._drawn is not None:
            self._drawn.update(1)

    def begin(self, stretch: str, total: int | None) -> None:
        """Start again for another stretch of the work, which has a time left of its own."""
        if self._drawn is not None:
            self._drawn.set_description(f"{self._title}, {stretch}", refresh=False)
            # Without a new total, a reset would keep that of the stretch before.
            self._drawn.total = total
            self._drawn.reset(total)

    def expect(self, total: int) -> None:
        """Say how many steps it seems there will be in all, where that only shows on the way."""
        if self._drawn is not None:
            self._drawn.total = total


@contextmanager
def progress(title: str, show: bool | None, total: int | None = None) -> Iterator[Bar]:
    """Yield a bar; `show=None` means: where somebody is looking."""
    if show is False or (show is None and not _is_watched()):
        yield Bar()
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=title, leave=False) as drawn:
        yield Bar(title, drawn)


def _is_watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
