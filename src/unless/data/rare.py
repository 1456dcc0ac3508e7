"""Levels too seldom to say anything become one."""

from unless.data.dataset import Counts
from unless.data.domain import shorten
from unless.data.levels import MERGED, Draft, free_name


def merge_rare(
    draft: Draft, levels: tuple[str, ...], counts: Counts, threshold: int
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Merge levels seen fewer than `threshold` times into a last one; a single rare level keeps its name."""
    if threshold < 1:
        return levels, {}
    totals = draft.totals(counts)
    rare = [level for level in levels if level == MERGED or totals.get(level, 0) < threshold]
    if len(rare) < 2 and MERGED not in rare:
        return levels, {}
    kept = [level for level in levels if level not in set(rare)]
    other = free_name("other", kept)
    draft.notes.append(_note(draft.name, [level for level in rare if level != MERGED], threshold, other))
    return (*kept, other), dict.fromkeys(rare, other)


def _note(name: str, rare: list[str], threshold: int, other: str) -> str:
    which = f" ({shorten(rare)})" if rare else ""
    return f"Merged the levels of {name!r} seen fewer than {threshold:,} times{which} into {other!r}."
