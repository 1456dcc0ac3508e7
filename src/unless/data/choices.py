"""Questions with several answers: cells such as "a;b;c", and sets of columns of which one is ticked."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from unless.data.cutting import LEAST_ROWS

YES, NO = "yes", "no"
# The level of a row in which none of the columns of a joined set is ticked.
NONE = "none"
# What stands between the answers in a cell, the surest first.
SEPARATORS = (";", "|", ",")
# So large a share of the cells holds several answers, and so large a share another number of them than most
# do: "male, rural" always has two, and is no such question.
LEAST_SEVERAL, LEAST_VARIED = 0.05, 0.05
# So large a share of the answers that are ticked with others comes in more than one combination.
LEAST_AGAIN = 0.9
# Answers kept, at most, and the share of all ticks that they must have; the others are free text or rare.
MOST_CHOICES, LEAST_COVERED = 30, 0.8
# An answer that means none stands alone but for this share of its cells.
NEARLY_NONE = 0.1
# Characters of an answer, at most.
MOST_LETTERS = 80
# Marks between the name that a set of columns shares and what tells them apart.
_MARKS = "_.:- "
_MEANS_NONE = re.compile(r"(none|nothing|no one|nobody|neither|never|no)\b|n/?a$|not applicable")
TICKED = frozenset({"1", "yes", "y", "true", "t", "x", "checked", "selected", YES})
_BLANK = frozenset({"0", "no", "n", "false", "f", "unchecked", "not selected", NO})


@dataclass(frozen=True)
class Choices:
    """The answers of a question with several of them, in the order of their names, and those left out.

    `none` are answers that stand alone and mean that no other holds: the others say that, too.
    """

    separator: str
    kept: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    none: tuple[str, ...] = ()


def answers(cell: str, separator: str) -> set[str]:
    """Return the answers in one cell.

    >>> sorted(answers("tv; radio;", ";"))
    ['radio', 'tv']
    """
    return {one.strip() for one in cell.split(separator)} - {""}


def name_of_choice(column: str, choice: str) -> str:
    """Name the column that says whether an answer was ticked."""
    return f"{column}: {choice}"


def find_choices(counts: Mapping[str, int], *, is_asked: bool = False) -> Choices | None:
    """Find the answers in cells, each seen so many times; None if they hold single values.

    Somebody who asked for it is believed: only a separator must be there.
    """
    for separator in SEPARATORS:
        found = _split(counts, separator, is_asked)
        if found is not None:
            return found
    return None


def _split(counts: Mapping[str, int], separator: str, is_asked: bool) -> Choices | None:
    cells = {cell: answers(cell, separator) for cell in counts}
    total = sum(counts.values())
    several = [cell for cell, listed in cells.items() if len(listed) > 1]
    if len(several) < 2 - is_asked:
        return None
    ticks: Counter[str] = Counter()
    combinations: Counter[str] = Counter()
    for cell, listed in cells.items():
        for one in listed:
            ticks[one] += counts[cell]
            combinations[one] += 1
    # Nobody is told apart by an answer that hardly anybody, or nearly everybody, gave.
    told_apart = {one for one, n in ticks.items() if min(n, total - n) >= (1 if is_asked else LEAST_ROWS)}
    joined: Counter[str] = Counter()
    for cell in several:
        joined.update(dict.fromkeys(cells[cell], counts[cell]))
    none = tuple(sorted(one for one in ticks if means_none(one) and joined[one] <= NEARLY_NONE * ticks[one]))
    told_apart -= set(none)
    kept = sorted(told_apart, key=lambda one: (-ticks[one], one))[:MOST_CHOICES]
    if not is_asked and not _is_question(cells, counts, several, kept, none, ticks, combinations):
        return None
    if not kept:
        return None
    left_out = sorted(set(ticks) - set(kept) - set(none), key=lambda one: (-ticks[one], one))
    return Choices(separator, tuple(sorted(kept)), tuple(left_out), none)


def _is_question(
    cells: Mapping[str, set[str]],
    counts: Mapping[str, int],
    several: Sequence[str],
    kept: Sequence[str],
    none: Sequence[str],
    ticks: Counter[str],
    combinations: Counter[str],
) -> bool:
    total = sum(counts.values())
    if sum(counts[cell] for cell in several) < max(LEAST_SEVERAL * total, LEAST_ROWS):
        return False
    sizes: Counter[int] = Counter()
    for cell, listed in cells.items():
        sizes[len(listed)] += counts[cell]
    varied = total - sizes.most_common(1)[0][1] >= LEAST_VARIED * total
    # Answers that are ticked with others come in several combinations; some are always alone.
    together = {one for cell in several for one in cells[cell]} & set(kept)
    again = sum(combinations[one] > 1 for one in together) >= LEAST_AGAIN * len(together) > 0
    covered = sum(ticks[one] for one in (*kept, *none)) >= LEAST_COVERED * sum(ticks.values())
    short = all(len(one) <= MOST_LETTERS for one in kept)
    return len(kept) >= 2 and len(kept) < len(cells) and varied and again and covered and short


def means_none(answer: str) -> bool:
    """Tell whether an answer says that no other one holds."""
    return bool(_MEANS_NONE.match(answer.strip().lower()))


def is_tick_box(labels: Iterable[str]) -> bool:
    """Tell whether a column says yes or no."""
    found = {label.strip().lower() for label in labels}
    return len(found) == 2 and len(found & TICKED) == 1 and len(found & _BLANK) == 1


def is_ticked(label: str) -> bool:
    """Tell whether a label of such a column is the yes."""
    return label.strip().lower() in TICKED


def is_blank(label: str) -> bool:
    """Tell whether a label of such a column is the no."""
    return label.strip().lower() in _BLANK


def stems(name: str) -> list[str]:
    """Return what a set of columns with this one may be called: its beginnings before a mark.

    >>> stems("eye color_light blue")
    ['eye color_light', 'eye color', 'eye']
    """
    places = [place for place, letter in enumerate(name) if letter in _MARKS]
    found = [name[:place].rstrip(_MARKS) for place in reversed(places) if name[place:].strip(_MARKS)]
    return [one for one in dict.fromkeys(found) if one]


def level_names(stem: str, names: Sequence[str]) -> tuple[str, ...]:
    """Name the levels of a joined column: what stands behind the common stem in the names of its columns."""
    short = [name[len(stem) :].strip(_MARKS) if name.startswith(stem) else name for name in names]
    return tuple(short if all(short) and len(set(short)) == len(short) else names)


def columns_of_levels(name: str, levels: Iterable[str], columns: Iterable[str]) -> tuple[str, ...] | None:
    """Find, by their names, the columns that a joined column was made of; None if one is not there."""
    known = set(columns)
    stem = name.removesuffix(" (joined)")
    found = []
    for level in levels:
        named = [level, *(f"{stem}{mark}{level}" for mark in ("_", ".", ":", ": ", "-", " - ", " "))]
        column = next((one for one in reversed(named) if one in known), None)
        if column is None and level != NONE:
            return None
        found.append(column)
    return tuple(one for one in found if one is not None)
