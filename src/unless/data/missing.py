"""What stands for a missing value, and what is done about it."""

from collections.abc import Sequence

import numpy as np

from unless.data.dataset import Counts
from unless.data.levels import NOTHING, Draft, free_name
from unless.data.settings import Settings
from unless.errors import DataError, MissingValues


def apply_policy(drafts: Sequence[Draft], counts: Counts, how: Settings) -> tuple[Counts, list[str]]:
    """Refuse, drop or name the missing values of a table; returns the counts left and what was done."""
    counts = _forget_empty_holes(drafts, counts)
    holes = {draft.name: int(counts[draft.codes == NOTHING].sum()) for draft in drafts}
    holes = {name: n for name, n in holes.items() if n}
    if not holes:
        return counts, []
    written = _written(drafts, holes)
    named = {name: n for name, n in holes.items() if how.missing == "level" or name in how.missing_levels}
    rest = {name: n for name, n in holes.items() if name not in named}
    if rest and how.missing == "error":
        raise MissingValues(_refusal(rest, written))
    done = [f"Read {written} as missing."] if written else []
    if named:
        done.append(_name_holes(drafts, named, how))
    if rest:
        counts, note = _drop(drafts, counts, rest)
        done.append(note)
    return counts, done


def _forget_empty_holes(drafts: Sequence[Draft], counts: Counts) -> Counts:
    # A row counted zero times shows levels, not holes.
    hole = np.zeros(len(counts), dtype=bool)
    for draft in drafts:
        hole |= draft.codes == NOTHING
    return _keep(drafts, counts, ~(hole & (counts == 0)))


def _drop(drafts: Sequence[Draft], counts: Counts, holes: dict[str, int]) -> tuple[Counts, str]:
    whole = np.ones(len(counts), dtype=bool)
    for draft in drafts:
        if draft.missing_label is None:
            whole &= draft.codes != NOTHING
    before = int(counts.sum())
    kept = _keep(drafts, counts, whole)
    if not kept.sum():
        worst = max(holes, key=lambda name: holes[name])
        raise DataError(
            f"Every row has a missing value, {worst!r} most often ({holes[worst]:,}), so nothing is left; "
            "leave such columns out with exclude= or pass missing='level'."
        )
    gone = before - int(kept.sum())
    return kept, f"Dropped {gone:,} of {before:,} rows with missing values in {_listed(holes)}."


def _keep(
    drafts: Sequence[Draft], counts: Counts, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Counts:
    if chosen.all():
        return counts
    for draft in drafts:
        draft.codes = draft.codes[chosen]
    return counts[chosen]


def _name_holes(drafts: Sequence[Draft], holes: dict[str, int], how: Settings) -> str:
    names = set()
    for draft in drafts:
        if draft.name in holes:
            # Levels given by hand may already have a place for it.
            given = [label for label in ("missing", "(missing)") if label in how.levels.get(draft.name, ())]
            draft.missing_label = given[0] if given else free_name("missing", draft.labels)
            names.add(draft.missing_label)
    return f"Made missing values in {_listed(holes)} a level, {' or '.join(map(repr, sorted(names)))}."


def _refusal(holes: dict[str, int], written: str) -> str:
    ways = "drop those rows with missing='drop'"
    if not written:
        return (
            f"There are missing values in {_listed(holes)}; {ways} or make them a level with missing='level'."
        )
    return (
        f"There are missing values, some written as {written}, in {_listed(holes)}; {ways}, make them a "
        "level with missing='level', or say with missing_values= what stands for missing."
    )


def _written(drafts: Sequence[Draft], holes: dict[str, int]) -> str:
    found = {word for draft in drafts if draft.name in holes for word in draft.missing_words}
    return ", ".join(map(repr, sorted(found)[:4]))


def _listed(holes: dict[str, int], at_most: int = 6) -> str:
    shown = [f"{name!r} ({n:,})" for name, n in holes.items()]
    more = f" and {len(shown) - at_most:,} more columns" if len(shown) > at_most else ""
    return ", ".join(shown[:at_most]) + more
