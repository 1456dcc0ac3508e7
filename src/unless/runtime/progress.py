"""A progress bar on a terminal or in a notebook, nothing elsewhere, and never two indicators at a time."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from time import monotonic
from typing import Any

# Where it is not known how many steps there will be: the share that is done, or the time that has passed.
_SHARE = "{desc}{percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
_TIME = "{desc}{elapsed}{postfix}"
# Seconds that work may take before a bar is worth drawing.
BAR_DELAY = 1.0
# Seconds between two looks at a share.
_PAUSE = 0.1
# Spinners that give way to a bar: how each is stopped, and started again.
_spinners: list[tuple[Callable[[], object], Callable[[], object]]] = []
_bars: list[Any] = []
# Work that is to be quiet, and with it all that it calls.
_silences: list[str] = []
# Called with the share of some work that is done.
Look = Callable[[float], object]
# Whether a bar is drawn; None draws it on a terminal or in a notebook.
Show = bool | None


class Bar:
    """Moves by one when it is called; without anything drawn it does nothing.

    What takes `draw` draws it only after some seconds: most work is done by then.
    """

    def __init__(
        self, title: str = "", drawn: Any = None, draw: Callable[[], Any] | None = None, after: float = 0.0
    ) -> None:
        self._title, self._drawn, self._draw = title, drawn, draw
        self._begun = self._looked = monotonic()
        self._due = self._begun + after
        self._stage: tuple[str, int | None, bool] | None = None
        self._n_done = 0

    def __call__(self) -> None:
        """Move by one."""
        if self._is_drawn():
            self._drawn.update(1)
        else:
            self._n_done += 1

    @property
    def is_silent(self) -> bool:
        """Whether nothing will ever be drawn."""
        return self._drawn is None and self._draw is None

    def begin(self, stage: str, total: int | None, *, counted: bool = True) -> None:
        """Start again for another stage of the work, which has a time left of its own.

        One that is not `counted` in steps is moved by `share`.
        """
        self._stage, self._n_done, self._begun = (stage, total, counted), 0, monotonic()
        if self._is_drawn():
            self._show_stage(*self._stage)

    def set_total(self, total: int) -> None:
        """Say how many steps it seems there will be in all, where that only shows on the way."""
        if self._is_drawn():
            self._drawn.total = total

    def share(self, done: float, note: str = "") -> None:
        """Say which share of the stage is done, below 0 where that is not known, and a note beside it."""
        now = monotonic()
        if now - self._looked < _PAUSE or not self._is_drawn():
            return
        self._looked = now
        self._drawn.bar_format = _TIME if done < 0 else _SHARE
        self._drawn.total = None if done < 0 else 1.0
        self._drawn.n = max(0.0, min(done, 1.0))
        self._drawn.set_postfix_str(note, refresh=False)
        self._drawn.refresh()

    def _is_drawn(self) -> bool:
        if self._draw is not None and monotonic() >= self._due:
            self._drawn, self._draw = self._draw(), None
            if self._drawn is None:
                return False
            begun, n_done = self._begun, self._n_done
            if self._stage is not None:
                self._show_stage(*self._stage)
            # The time left is reckoned from where the work began.
            self._drawn.start_t -= monotonic() - begun
            self._drawn.update(n_done)
        return self._drawn is not None

    def _show_stage(self, stage: str, total: int | None, counted: bool) -> None:
        self._drawn.set_description(f"{self._title}, {stage}" if stage else self._title, refresh=False)
        self._drawn.bar_format = None if counted else _TIME
        # Without a new total, a reset would keep that of the stage before.
        self._drawn.total = total
        # A bar in a notebook is made as wide as a share here, and nowhere else.
        self._drawn.reset(total if counted else 1.0)
        self._drawn.total = total


@contextmanager
def progress(title: str, show: bool | None, total: int | None = None, after: float = 0.0) -> Iterator[Bar]:
    """Yield a bar; `show=None` means: on a terminal or in a notebook, if it takes seconds."""
    if not is_shown(show):
        with _silence(title) if show is not None else nullcontext():
            yield Bar()
        return
    drawn: list[Any] = []

    def draw() -> Any:
        tqdm = _bar_class()
        # Before the bar is made: while one spins, what goes to stderr is written above it, line by line.
        for stop, _ in _spinners:
            stop()
        made: Any = tqdm(total=total, desc=title, leave=False)
        if made.disable:
            # As the user's environment says.
            for _, start in _spinners:
                start()
            return None
        drawn.append(made)
        _bars.append(made)
        return made

    try:
        late = show is None and after > 0
        yield Bar(title, None if late else draw(), draw if late else None, after)
    finally:
        for bar in drawn:
            # Bars of the same place are equal.
            _bars[:] = [other for other in _bars if other is not bar]
            bar.close()
            for _, start in _spinners:
                start()


@contextmanager
def showing_share(title: str, show: bool | None, stage: str) -> Iterator[Look]:
    """Yield a function to call with the share that is done, for work that is not counted in steps."""
    with progress(title, show, after=BAR_DELAY) as bar:
        bar.begin(stage, None, counted=False)
        yield bar.share


def unseen(share: float) -> None:
    """Look at nothing."""


def within(look: Look, begin: float, end: float) -> Look:
    """Return what a part of the work, from one share of the whole to another, reports its own share to."""
    return unseen if look is unseen else lambda share: look(begin + share * (end - begin))


@contextmanager
def _silence(title: str) -> Iterator[None]:
    _silences.append(title)
    try:
        yield
    finally:
        _silences.remove(title)


@contextmanager
def giving_way(stop: Callable[[], object], start: Callable[[], object]) -> Iterator[None]:
    """Stop a spinner while a bar is drawn."""
    _spinners.append((stop, start))
    try:
        yield
    finally:
        _spinners.pop()


def _bar_class() -> Any:
    """Return the bar for this output; a notebook without ipywidgets gets the one of a terminal."""
    if "ipykernel" in sys.modules and find_spec("ipywidgets") is None:
        from tqdm import tqdm as plain

        return plain
    from tqdm.auto import tqdm

    return tqdm


def is_shown(show: bool | None) -> bool:
    """Tell whether a bar would be drawn: where it is asked for, or on a terminal that shows no other yet.

    What is called by work that is to be quiet is quiet as well, unless it is asked for.
    """
    if show is not None:
        return bool(show)
    return not _bars and not _silences and ("ipykernel" in sys.modules or _is_terminal(sys.stderr))


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        # There is none, it is closed, or an object of the caller's.
        return False
