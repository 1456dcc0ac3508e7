"""What a column is taken for: its role, by what it holds and how it is called."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, isclose

import numpy as np

from unless.data.columns.levels import free_name, levels_of
from unless.data.columns.numbers import LEAST_ROWS, Numbers, cuts_between, find_cuts, group_labels, merge_thin
from unless.data.columns.texts import (
    BUT_FOR,
    LEAST_ORDERED,
    MOST_CELLS,
    Choices,
    Numerals,
    Order,
    find_order,
    is_ambiguous,
    is_time_of_day,
    limit_of,
    means_none,
    part_label,
    snapped,
)
from unless.data.domain import listed, shorten, sort_labels
from unless.data.plan import AS_ASKED, BLANK, PARTS, DatePart, Part, PlanLine, Role
from unless.data.profile import Dates, Profile
from unless.data.settings import DAY_FIRST, DEFAULT_LEVELS, Settings
from unless.errors import DataError

# A table of fewer rows is read as it stands: too little is known of its columns to decide anything.
FEW_ROWS = 20
# So many different numbers or fewer are kept as levels.
NATURAL_VALUES = 10
# With more levels than this the seldom ones are merged: those of a smaller share of the rows than that, and
# more of them where too many would be left. Pairs of such columns would have less than a row in a cell.
MANY_LEVELS, SELDOM, MOST_LEVELS = 30, 1 / 300, 60
# A category is left out if merging seldom levels would take more than this share of the rows.
MOST_MERGED = 0.8
# Text of more words or letters than this, and different in more than half of the rows, is free text.
WORDS, LETTERS, MOSTLY = 4, 40, 0.5
# A column of text in which nearly all values differ names its rows.
NEARLY_ALL = 0.95
# An identifier that comes again has more values than this, or than half of the rows.
MANY_IDS = 50
# Empty cells of a question with several answers mean that none was ticked if they are not more than this.
MOST_EMPTY = 0.5
# A date is daily if this share of the days from first to last is there.
DAILY = 0.8

# Hours of the day are told apart if so many were seen; they are cut into night, morning, afternoon, evening.
LEAST_HOURS, PARTS_OF_DAY = 6, (6.0, 12.0, 18.0)

_ID_NAME = re.compile(
    r"(row[ _.-]?(names?|id|no|num|number|index)?|rows|unnamed: ?\d+|index|idx|level_0|ids?|uuid|guid"
    r"|column 1"
    r"|(case|record|obs|observation|serial|hh|household|house|family|fam|school|class|village|clinic|hospital"
    r"|site|cluster|resp|subj|pat|pers|p|s|user|cust|client|student|employee|emp)[ _.-]?(id|no|nr|num|number)"
    r"|psu|hhid|household|family|cluster"
    r"|(respondent|subject|patient|person|participant|customer|user)([ _.-]?(id|no|nr|num|number))?"
    r"|.+[ _.-](id|uuid|guid)|(id|uuid|guid)[ _.-].+)",
    re.IGNORECASE,
)
_CAMEL_ID = re.compile(r".*[a-z]I[Dd]")
# Names of row numbers, which are left out of small tables, too.
_ROW_NUMBER = re.compile(r"row[ _.-]?names?|unnamed: ?\d+|index|column 1|level_0|rowid", re.IGNORECASE)
_COUNT_NAME = re.compile(
    r"freq|freqs|frequency|frequencies|count|counts|n|n_obs|nobs|cases|n_cases", re.IGNORECASE
)
# A table of fewer rows is not taken for one of counts.
FEWEST_COUNTED = 4
# Names that surveys give to weights; of others a mean of 1 must say it.
_WEIGHT_NAME = re.compile(
    r"(fnl|final|fin|p|per|person|hh|house|household|sample|sampling|survey|design|post|base|rep|cal)[ _.-]?"
    r"(weights?|wgts?|wts?)|weights?[ _.-](final|sample|survey|design)|pweights?|aweights?"
    r"|(psp|ps|d|an)(weight|wght|wgt|wt)s?|(wt|wgt)[ _.-]?(final|ssall|pers?|hh|all)",
    re.IGNORECASE,
)
_MAYBE_WEIGHT = re.compile(r"(.+[ _.-])?(weights?|wgts?|wts?|w)", re.IGNORECASE)


def is_id_name(name: str) -> bool:
    """Tell whether a column is called as identifiers are."""
    return bool(_ID_NAME.fullmatch(name) or _CAMEL_ID.fullmatch(name))


def is_count_name(name: str) -> bool:
    """Tell whether a column is called as counts of rows are."""
    return bool(_COUNT_NAME.fullmatch(name))


def may_count(one: Profile) -> bool:
    """Tell whether a column may say how often each row occurs, but for its name."""
    typed = one.field.form in ("integer", "float", "decimal", "words", "text")
    return typed and one.is_number and one.is_whole and one.low >= 0 and one.high > 1 and not one.n_missing


def decide_role(one: Profile, how: Settings) -> PlanLine:
    """Give a column its role, and what follows from it."""
    if one.field.form == "unusable" or (one.kind is None and one.labels == {} and one.field.form == "json"):
        return _without(one, "nested", "its cells hold lists, records or bytes")
    line = _said(one, how)
    if line is None and not one.n_present:
        line = _empty(one, how)
    if line is None and one.choices is not None and one.n_rows >= FEW_ROWS:
        line = _choices(one, one.choices, how)
    if line is None:
        line = _left_out(one, how.columns is not None)
    if line is None and one.numbers is not None:
        line = _number(one, one.numbers, how)
    if line is None and one.dates is not None:
        line = _date(one, one.dates)
    return _category(one, how) if line is None else line


def _without(one: Profile, role: Role, why: str) -> PlanLine:
    return PlanLine(name=one.name, role=role, included=False, why=why)


def _said(one: Profile, how: Settings) -> PlanLine | None:
    """Follow what the arguments say of a column."""
    name = one.name
    if name in how.roles:
        return _as_asked(one, how.roles[name], how)
    if name in how.bins:
        return PlanLine(name=name, role="number", why="cut as asked")
    if name in how.ordered or name in how.levels:
        role: Role = "ordered" if name in how.ordered else "category"
        return PlanLine(name=name, role=role, levels=how.levels.get(name, _known_levels(one)))
    merged = isinstance(how.rare, dict) and name in how.rare
    if merged or (how.max_levels != DEFAULT_LEVELS and one.n_values <= how.max_levels):
        return PlanLine(name=name, role="category", why=AS_ASKED)
    return None


def _choices(one: Profile, choices: Choices, how: Settings, why: str = "") -> PlanLine:
    """Give each answer of a question with several of them a column of its own."""
    notes = [why] if why else []
    if choices.none:
        notes.append(f"{', '.join(map(repr, choices.none))} means that no other is ticked")
    if choices.left_out:
        rest = shorten(choices.left_out, 5)
        notes.append(f"left out, as hardly anybody or nearly everybody ticked it: {rest}")
    # A cell is empty where none was ticked, unless there is an answer for that.
    empty = 0 < one.n_missing <= MOST_EMPTY * one.n_rows
    is_none = (
        empty
        and how.missing == "auto"
        and not any(map(means_none, (*choices.chosen, *choices.left_out, *choices.none)))
    )
    return PlanLine(
        name=one.name,
        role="choices",
        choices=choices.chosen,
        separator=choices.separator,
        missing=is_none,
        why="; ".join(notes),
    )


def _empty(one: Profile, how: Settings) -> PlanLine:
    why = BLANK if re.fullmatch(r"column \d+", one.name) else "no row has a value"
    is_small = how.missing == "level" and one.n_rows < FEW_ROWS and why != BLANK
    return PlanLine(name=one.name, role="empty", included=is_small, why=why)


def _levels_of(one: Profile) -> tuple[str, ...]:
    """Return the levels of a column in the order in which reading gives them."""
    return levels_of(one.field, one.labels or ())


def _known_levels(one: Profile) -> tuple[str, ...]:
    """Return the levels of a column in the order that everyone knows, if there is one."""
    order = _order(one)
    return _levels_of(one) if order is None else (*order.levels, *order.no_answers)


def _as_asked(one: Profile, role: str, how: Settings) -> PlanLine:
    """Follow what the user said of a column, or say why that cannot be."""
    name, why = one.name, AS_ASKED
    if role == "choices":
        if one.choices is None:
            raise DataError(
                f"Column {name!r} holds no cells with several answers, parted by ; or | or a comma; give it "
                "another role."
            )
        return _choices(one, one.choices, how, why)
    if role == "number":
        if one.numbers is None:
            raise DataError(f"Column {name!r} holds text and is no number; give it another role.")
        return _cut(one, one.numbers, why)
    if role in ("date", DAY_FIRST) or set(role.split("+")) <= set(PARTS):
        asked = () if role in ("date", DAY_FIRST) else tuple(dict.fromkeys(role.split("+")))
        line = None if one.dates is None else _date(one, one.dates, asked)
        if line is None or not line.included or any(len(part.levels) > MOST_LEVELS for part in line.parts):
            raise DataError(
                f"Column {name!r} holds no dates with parts that repeat, or too many parts; give it another "
                "role."
            )
        return replace(line, why=f"{why}, {line.why}" if line.why else why)
    if role in ("category", "ordered"):
        return PlanLine(name=name, role=role, levels=_known_levels(one), why=why)  # type: ignore[arg-type]
    return _without(one, role, why)  # type: ignore[arg-type]


# Of $1,999.01 and 25%.
SIGNED = "it looks like numbers with signs or separators: write them as plain numbers to use it"


def _left_out(one: Profile, is_asked: bool) -> PlanLine | None:  # noqa: PLR0911 (one for each kind of column)
    """Return the line of a column that tells nothing of others; one asked for is kept if it can be."""
    if one.n_values == 1 and one.n_rows >= FEW_ROWS and not is_asked and not one.n_missing:
        label = next(iter(one.labels or ("",)))
        return _without(one, "constant", f"every row has {label!r}")
    if is_asked and one.n_values <= DEFAULT_LEVELS:
        return None
    if one.is_signed and one.n_values > NATURAL_VALUES:
        return _without(one, "text", SIGNED)
    if (why := _identifier(one)) is not None:
        return _without(one, "identifier", why)
    if one.n_rows < FEW_ROWS:
        return None
    if _is_weight(one):
        return _without(one, "weight", "it looks like weights of rows")
    if one.is_number or one.dates is not None:
        return None
    if _is_free_text(one) and one.n_values > MOSTLY * one.n_present:
        return _without(one, "text", "free text")
    return None


def _identifier(one: Profile) -> str | None:
    """Say why a column names its rows; None if it does not."""
    called = is_id_name(one.name)
    numbered = one.is_number and one.is_whole and one.high - one.low + 1 == one.n_rows
    if one.n_rows < FEW_ROWS:
        small = one.n_rows >= 4 and one.is_unique and numbered and _ROW_NUMBER.fullmatch(one.name)
        return "row numbers" if small else None
    if one.is_unique and (numbered or (called and (not one.is_number or one.is_whole))):
        named = "a name of identifiers and " if called else ""
        return f"{named}a different value in each row"
    if one.is_number and not (called and one.is_whole):
        return None
    if one.dates is not None and not called:
        return None
    if not one.is_number and one.n_values >= NEARLY_ALL * one.n_present and not _is_free_text(one):
        return "a different value in each row" if one.is_unique else "nearly every row has a value of its own"
    if called and (one.n_values > MANY_IDS or one.n_values > one.n_present / 2):
        return f"{one.n_values:,} identifiers that come again"
    return None


def _is_free_text(one: Profile) -> bool:
    return one.n_words > WORDS * one.n_present or one.n_letters > LETTERS * one.n_present


def _is_weight(one: Profile) -> bool:
    if not one.is_number or one.numbers is None or one.low < 0 or one.n_values <= NATURAL_VALUES:
        return False
    if _WEIGHT_NAME.fullmatch(one.name):
        return True
    mean = float((one.numbers.values * one.numbers.weights).sum() / one.numbers.total)
    return bool(_MAYBE_WEIGHT.fullmatch(one.name)) and not one.is_whole and isclose(mean, 1, abs_tol=0.1)


def _number(one: Profile, numbers: Numbers, how: Settings) -> PlanLine:
    small = one.n_rows < FEW_ROWS and one.n_values <= how.max_levels
    declared = one.kind in ("category", "boolean")
    if one.n_values > NATURAL_VALUES and not small and not declared:
        return _cut(one, numbers)
    # Fewer may be codes of kinds.
    role: Role = "category" if one.n_values < LEAST_ORDERED or declared else "ordered"
    levels = _levels_of(one)
    # 1 and 1.0 may be two labels of one number: then the column is text to the reader.
    thin = bool((numbers.weights < LEAST_ROWS).any())
    cuts = cuts_between(numbers) if thin and not small and not declared and one.n_values > 2 else ()
    if not cuts:
        return PlanLine(name=one.name, role=role, levels=levels)
    names = group_labels(cuts, numbers.whole, one.low, one.high)
    return PlanLine(name=one.name, role="ordered", levels=names, cuts=cuts, why="rare values are merged")


def _cut(one: Profile, numbers: Numbers, why: str = "") -> PlanLine:
    """Cut numbers into groups; where nearly all are one number there is nothing to cut."""
    cuts = find_cuts(numbers)
    written = ""
    if one.numerals is not None:
        written = one.numerals.written
        cuts = snapped(cuts, [limit_of(limit, written) for limit in one.numerals.limits])
        why = "; ".join(note for note in (why, _format_numerals(one.numerals)) if note)
    if not cuts:
        return _without(one, "constant", "nearly every row has the same number")
    levels = group_labels(cuts, one.is_whole, one.low, one.high)
    return PlanLine(name=one.name, role="number", levels=levels, cuts=cuts, why=why, written=written)


def _format_numerals(numerals: Numerals) -> str:
    """Say how numbers are written, and what is none."""
    notes = [] if numerals.is_plain else [f"read as numbers written like {numerals.written}"]
    if numerals.limits:
        notes.append(f"numbers beyond a limit: {shorten(numerals.limits, 4)}")
    if numerals.strays:
        ranked = sorted(numerals.strays.items(), key=lambda one: (-one[1], one[0]))
        strays = listed([f"{text!r} ({n:,})" for text, n in ranked], 5)
        n_cells = sum(numerals.strays.values())
        cells = "cell is" if n_cells == 1 else "cells are"
        notes.append(f"{n_cells:,} {cells} no number and missing: {strays}")
    return "; ".join(notes)


def cut_again(line: PlanLine, one: Profile, cuts: tuple[float, ...]) -> PlanLine:
    """Move the cuts of a column of numbers."""
    return replace(line, cuts=cuts, levels=group_labels(cuts, one.is_whole, one.low, one.high))


def _date(one: Profile, dates: Dates, asked: Sequence[str] = ()) -> PlanLine | None:
    """Keep the parts of dates that come again or follow each other: years, months, days of the week."""
    if one.n_rows < FEW_ROWS and not asked:
        return None
    wanted = asked or _parts_of(dates)
    parts = tuple(part for name in wanted if (part := _part(dates, name)) is not None)
    if not parts:
        if one.n_values <= MANY_LEVELS:
            return None
        return _without(one, "date", "no part of it comes again")
    why = ""
    if is_ambiguous(dates.written, one.formats):
        why = f"the month is taken to come before the day; the role {DAY_FIRST!r} says otherwise"
    return PlanLine(name=one.name, role="date", parts=parts, written=dates.written, why=why)


def _parts_of(dates: Dates) -> list[str]:
    """Choose the parts: a period that follows time, what comes again each year, week and day."""
    if is_time_of_day(dates.written):
        return ["hour"]
    days = (dates.last - dates.first).days
    wanted: list[str] = []
    if days > 2 * 365:
        wanted += ["year", "month"]
    elif days > 365:
        wanted.append("quarter")
    elif days > 31:
        wanted.append("month")
    if days >= 13 and dates.n_days >= DAILY * (days + 1):
        wanted.append("weekday")
    if len(dates.parts["hour"]) >= LEAST_HOURS:
        wanted.append("hour")
    return wanted


def _part(dates: Dates, name: str) -> DatePart | None:
    part: Part = name  # type: ignore[assignment]
    counts = dates.parts[part]
    if len(counts) < 2:
        return None
    if part == "hour" or (part == "year" and len(counts) > NATURAL_VALUES):
        numbers = Numbers(np.array(list(counts), float), np.array(list(counts.values()), float), whole=True)
        cuts = merge_thin(numbers, PARTS_OF_DAY) if part == "hour" else find_cuts(numbers)
        if not cuts:
            return None
        low, high = (0, 23) if part == "hour" else (min(counts), max(counts))
        return DatePart(part=part, cuts=cuts, levels=group_labels(cuts, True, low, high))
    months = (dates.last.year - dates.first.year) * 12 + dates.last.month - dates.first.month
    numbers_in_time = list(counts)
    if part == "month" and months < 12:
        # Months of less than a year follow each other, perhaps over its end.
        numbers_in_time.sort(key=lambda month: (month - dates.first.month) % 12)
    ordered = part in ("year", "quarter") or (part == "month" and months < 12)
    levels = tuple(part_label(number, part) for number in numbers_in_time)
    return DatePart(part=part, levels=levels, ordered=ordered and len(levels) > 2)


def is_sequence(one: Profile) -> bool:
    """Tell whether each row has a moment of its own, as in a table kept over time."""
    return one.dates is not None and one.dates.n_moments == one.n_rows and one.n_rows >= FEW_ROWS


def _category(one: Profile, how: Settings) -> PlanLine:
    name = one.name
    # A column that is checked or not shows a single label.
    missing = one.n_values == 1 and one.n_missing > 0 and one.n_rows >= FEW_ROWS
    if one.n_values <= MANY_LEVELS or one.n_rows < FEW_ROWS or how.rare_below(name):
        order = None if one.n_rows < FEW_ROWS or how.rare_below(name) else _order(one)
        if order is not None:
            return _in_order(one, order, missing)
        ordered = one.field.is_ordered
        role: Role = "ordered" if ordered else "category"
        return PlanLine(name=name, role=role, levels=_levels_of(one), missing=missing)
    if one.labels is None:
        about = "about " if one.n_exact is None else ""
        return _without(one, "text", f"{about}{one.n_values:,} levels, too many to relate")
    return merge_seldom(one, one.labels)


def _order(one: Profile) -> Order | None:
    """Find the order of the labels of a column that everyone knows, where the table gives none."""
    text = not one.is_number and not one.is_code and one.kind in ("text", "category") and bool(one.labels)
    declared = one.field.levels is not None and set(one.field.levels) != set(one.labels or ())
    if not text or declared or one.field.is_ordered or one.n_values > MANY_LEVELS:
        return None
    return find_order(one.name, sorted(one.labels or ()))


def _in_order(one: Profile, order: Order, missing: bool) -> PlanLine:
    """Give a column the order of its labels; answers that are no place in it are missing if they are few."""
    labels = one.labels or {}
    n_aside = sum(labels[label] for label in order.no_answers)
    if not order.is_scale or n_aside > (1 - MOST_CELLS) * one.n_present:
        levels = (*order.levels, *order.no_answers)
        why = order.why
        if order.is_scale:
            why = f"{BUT_FOR}{', '.join(map(repr, order.no_answers))}"
        return PlanLine(name=one.name, role="category", levels=levels, missing=missing, why=why)
    return PlanLine(
        name=one.name,
        role="ordered",
        levels=order.levels,
        missing=missing,
        why=order.why,
        no_answers=order.no_answers,
    )


def merge_seldom(one: Profile, labels: Mapping[str, int]) -> PlanLine:
    """Keep the levels seen most often; the others become one."""
    counts = sorted(labels.values(), reverse=True)
    rare = max(LEAST_ROWS, ceil(one.n_present * SELDOM))
    if sum(n >= rare for n in counts) > MOST_LEVELS:
        # Of levels seen equally often all are kept or none.
        rare = counts[MOST_LEVELS - 1] + (counts[MOST_LEVELS - 1] == counts[MOST_LEVELS])
    merged = sum(n for n in counts if n < rare)
    # A single level is not merged with itself.
    if sum(n < rare for n in counts) < 2 or (counts[0] < rare and counts[-1] >= LEAST_ROWS):
        return PlanLine(name=one.name, role="category", levels=_levels_of(one))
    if merged > MOST_MERGED * one.n_present:
        return _without(one, "text", f"{one.n_values:,} levels, nearly all of them seldom")
    why = f"{one.n_values:,} levels"
    kept = sort_labels(label for label, n in labels.items() if n >= rare)
    levels = (*kept, free_name("other", kept))
    return PlanLine(name=one.name, role="category", levels=levels, rare=rare, why=why)
