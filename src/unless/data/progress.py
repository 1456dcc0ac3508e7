"""A progress bar on a terminal or in a notebook, nothing elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(title: str, show: bool | None, total: int | None = None) -> Iterator[Callable[[], object]]:
    """Yield a function that moves the bar by one; `show=None` means: where somebody is looking."""
    if show is False or (show is None and not _is_watched()):
        yield lambda: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=title, leave=False) as bar:
        yield lambda: bar.update(1)


def _is_watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
