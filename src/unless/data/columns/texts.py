"""Texts that mean more than a name: dates, scales in words, cells with several answers, and numbers."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from math import inf, nextafter

from unless.data.columns.numbers import LEAST_ROWS
from unless.data.settings import MARKS, NO, YES
from unless.data.sources.session import quoted

_DAYS = (
    "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d %b %Y",
    "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y",
)  # fmt: skip
_CLOCKS = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p")
# How dates are written, in the order of trust: year, month and day in this order, which need no format; then
# those of which a table may hold one only. 03/04/2020 fits two of them: the month is taken to come first.
FORMATS = (
    "",
    *_DAYS,
    *(f"{day} {clock}" for day in _DAYS for clock in _CLOCKS),
    *(f"{day} {clock}" for day in ("%Y-%m-%d", "%Y/%m/%d") for clock in _CLOCKS[2:]),
    "%Y-%m",
    *_CLOCKS,
)
# What a text needs to be written so: what stands between the parts.
_MARKS = {one: frozenset(re.sub("%.", "", one)) for one in FORMATS}
_ISO = re.compile(
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}([ T]\d{1,2}:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII
)
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
# A zone behind a time of day; it is left out, so that all is in the time of its place.
_ZONE = r"(:[0-9]{2}(?:\.[0-9]+)?)(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)$"
FIRST = r"\1"
_NAMED_ZONE = r" (?:GMT|UTC|Z)(?:[+-][0-9:]+)?$"
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def parse_moment(text: str, written: str) -> datetime | None:
    """Read a date, perhaps with a time of day; None if it is none. The zone is left out."""
    try:
        if written:
            return datetime.strptime(re.sub(_NAMED_ZONE, "", text), written)
        if not _ISO.fullmatch(text):
            return None
        day, _, time = text.replace("/", "-").replace("T", " ").partition(" ")
        year, month, date = (int(number) for number in day.split("-"))
        hour, minute = (int(number) for number in time.split(":")[:2]) if time else (0, 0)
        return datetime(year, month, date, hour, minute)
    except ValueError:
        return None


def formats_of(texts: Iterable[str]) -> list[str]:
    """Return the ways of writing dates that all of these texts fit."""
    fitting = list(FORMATS)
    years: set[bool] = set()
    for text in texts:
        # No date is longer, or has no digit.
        if len(text) > 40 or not any(map(str.isdigit, text)):
            return []
        # Most texts are no dates, which each format would take its time to find out.
        marks = {" " if letter.isspace() else letter for letter in text}
        fitting = [one for one in fitting if _MARKS[one] <= marks and parse_moment(text, one) is not None]
        if not fitting:
            break
        years.add(bool(_SCHOOL_YEAR.fullmatch(text)) and int(text[2:4]) + 1 == int(text[5:]))
    return [one for one in fitting if one != "%Y-%m" or years != {True}]


# 2011-12 is a month, unless all are years of school.
_SCHOOL_YEAR = re.compile(r"[0-9]{4}-[0-9]{2}")


def is_time_of_day(written: str) -> bool:
    """Tell whether times are written without a day."""
    return written in _CLOCKS


def is_ambiguous(written: str, formats: Iterable[str]) -> bool:
    """Tell whether days and months could change places."""
    return written.startswith("%m/%d/") and f"%d/%m/{written[6:]}" in formats


def moment_sql(text: str, written: str) -> str:
    """Write a text as a moment in SQL; null where it is none."""
    if written:
        bare = f"regexp_replace({text}, {quoted(_NAMED_ZONE)}, '')"
        return f"try_strptime({bare}, {quoted(written)})"
    return f"try_cast(regexp_replace(({text})::VARCHAR, {quoted(_ZONE)}, {quoted(FIRST)}) as TIMESTAMP)"


def part_sql(moment: str, part: str) -> str:
    """Write the number of a part: the year, the month from 1, the day of the week from 1, the hour.

    Quarters are counted from the year 0.
    """
    if part == "quarter":
        return f"(year({moment}) * 4 + quarter({moment}) - 1)"
    return f"{ {'year': 'year', 'month': 'month', 'weekday': 'isodow', 'hour': 'hour'}[part] }({moment})"


def part_of(moment: datetime, part: str) -> int:
    """Return the number of a part, as `part_sql` writes it."""
    return {
        "year": moment.year,
        "quarter": moment.year * 4 + (moment.month - 1) // 3,
        "month": moment.month,
        "weekday": moment.isoweekday(),
        "hour": moment.hour,
    }[part]


def part_label(number: int, part: str) -> str:
    """Name a part."""
    if part == "quarter":
        return f"{number // 4} Q{number % 4 + 1}"
    if part in ("year", "hour"):
        return str(number)
    return (MONTHS if part == "month" else WEEKDAYS)[number - 1]


def label_in_sql(number: str, part: str) -> str:
    """Write the name of a part in SQL."""
    if part == "quarter":
        return f"(floor({number} / 4)::BIGINT || ' Q' || (({number})::BIGINT % 4 + 1))"
    if part in ("year", "hour"):
        return f"({number}::BIGINT)::VARCHAR"
    listed = ", ".join(quoted(name) for name in (MONTHS if part == "month" else WEEKDAYS))
    return f"list_extract([{listed}], ({number})::BIGINT)"


# Fewer levels are not ordered.
LEAST_LEVELS = 3
# Whole numbers of so many values are a scale, a count or a grade; fewer may be codes of kinds, without order,
# so that no trend is looked for unless the order is given.
LEAST_ORDERED = 5
IN_NUMBERS, IN_WORDS = "in the order of their numbers", "a scale in words"
BY_CALENDAR, BY_GRADES = "in the order of the calendar", "letter grades, the best last"
# Reasons for which levels are ordered though they are text.
KNOWN_ORDERS = (IN_NUMBERS, IN_WORDS, BY_GRADES)
# Answers that are not on a scale.
NO_ANSWERS = frozenset({
    "don't know", "dont know", "do not know", "i don't know", "dk", "not sure", "unsure", "can't say",
    "prefer not to say", "prefer not to answer", "no answer", "no response", "not applicable", "n/a", "na",
    "not available", "refused", "unknown", "not stated", "declined", "no opinion", "skipped", "other",
    "refuse to answer", "refused to answer", "declined to answer", "i prefer not to say", "rather not say",
    "i'd rather not say", "prefer not to respond", "prefer not to disclose", "no reply", "not reported",
    "cannot say", "can't choose", "not known",
})  # fmt: skip
# What a scale with such answers is said to be, where they are too many to be missing.
BUT_FOR = "a scale, but for "
# Whole numbers that often stand for no answer.
NO_ANSWER_CODES = frozenset(
    {-1, -2, -7, -8, -9, -97, -98, -99, -997, -998, -999, -9999, 8, 9, 97, 98, 99, 997}
)
NO_ANSWER_CODES |= {998, 999, 9997, 9998, 9999}
# From low to high; names of one place are parted by a stroke.
_SCALES = tuple(
    tuple(tuple(one.strip() for one in place.split("|")) for place in scale.split(","))
    for scale in (
        "strongly disagree|completely disagree|totally disagree|fully disagree|disagree strongly, "
        "disagree, somewhat disagree|slightly disagree|tend to disagree|mostly disagree|rather "
        "disagree|disagree somewhat|disagree slightly, neither agree nor "
        "disagree|neither|neutral|undecided|neither disagree nor agree, somewhat agree|slightly "
        "agree|tend to agree|mostly agree|rather agree|agree somewhat|agree slightly, agree, strongly "
        "agree|completely agree|totally agree|fully agree|agree strongly",
        "never, almost never|hardly ever|very rarely|very seldom, rarely|seldom, occasionally|once in a "
        "while, sometimes|about half the time|half the time, often|frequently|fairly often|regularly, "
        "usually|most of the time, very often|very frequently, almost always|nearly always, always|all "
        "the time",
        "never, rarely|seldom, less than yearly, yearly|annually|once a year, quarterly, less than "
        "monthly|less than once a month, monthly|once a month|every month, fortnightly|biweekly|every two "
        "weeks, weekly|once a week|every week, several times a week|a few times a week|more than once a "
        "week, daily|once a day|every day, several times a day|more than once a day|multiple times a day, "
        "hourly",
        "terrible|awful|horrible, very poor|very bad|extremely poor, poor|bad, below average, fair, "
        "average|okay|ok|acceptable|satisfactory|so-so|neutral|adequate, above average, good, very good, "
        "excellent|great|outstanding|superb|exceptional",
        "completely dissatisfied|extremely dissatisfied, very dissatisfied|very unsatisfied, "
        "dissatisfied|unsatisfied|not satisfied, somewhat dissatisfied|slightly dissatisfied|fairly "
        "dissatisfied, neither satisfied nor dissatisfied|neither|neutral|neither dissatisfied nor "
        "satisfied, somewhat satisfied|slightly satisfied|fairly satisfied, satisfied, very satisfied, "
        "completely satisfied|extremely satisfied",
        "extremely unlikely, very unlikely, unlikely, somewhat unlikely|rather unlikely, neither likely "
        "nor unlikely|neither|neutral|possibly|undecided, somewhat likely|rather likely, likely, very "
        "likely, extremely likely|certain",
        "much worse, worse|somewhat worse|slightly worse, about the same|the same|same|no "
        "change|unchanged, better|somewhat better|slightly better, much better",
        "strongly oppose, oppose, somewhat oppose, neutral|neither|undecided, somewhat support|somewhat "
        "favor, support|favor|favour, strongly support|strongly favor|strongly favour",
        "none|no|zero, very low|vlow|lowest, low, "
        "moderate|medium|med|mid|middle|normal|average|intermediate, high, very high|vhigh|highest, "
        "urgent|extreme|extremely high, critical|emergency",
        "none|no|absent|no symptoms, minimal|trace|very mild, mild|slight, moderate, "
        "severe|serious|major, very severe|critical|life-threatening, fatal|death",
        "not at all|none|nothing, very little|hardly|barely, a little|a little bit|slightly|a bit|not "
        "very|not much|not really, somewhat|some|to some extent|fairly|partly, moderately|a moderate "
        "amount, quite|quite a bit|quite a lot|mostly|considerably, very|very much|a lot|a great deal|to "
        "a great extent|highly, extremely|completely|absolutely|an extreme amount|totally",
        "xxs, xs|extra small|very small|tiny, s|small, m|medium|med|mid, l|large|big, xl|extra large|very "
        "large|huge, xxl|2xl, xxxl|3xl",
        "freshman|first-year, sophomore, junior, senior, graduate",
        "intern|trainee, junior|entry|entry level|associate, mid|mid-level|mid "
        "level|intermediate|regular, senior, lead|staff, principal|manager, director, vp|vice president, "
        "executive|c-level",
        "none|no experience, beginner|novice|basic, elementary, intermediate, advanced|proficient, "
        "expert|fluent, native",
        "none|no education|no schooling|no formal education|no school, less than high school|some high "
        "school|primary|primary school|elementary|elementary school, middle school|lower secondary, high "
        "school|secondary|secondary school|upper secondary|ged, vocational|trade school|vocational "
        "training, some college|some university, associate|college, "
        "bachelor|undergraduate|university|graduate|college graduate, master|postgraduate|mba, "
        "professional, doctorate|doctoral|phd|ph.d.|doctor",
        "1st|first, 2nd|second, 3rd|third, 4th|fourth, 5th|fifth, 6th|sixth, 7th|seventh, 8th|eighth, "
        "9th|ninth, 10th|tenth, 11th, 12th",
        "bronze, silver, gold, platinum, diamond",
        "far below expectations, below expectations|needs improvement|does not meet expectations, meets "
        "expectations|met expectations, exceeds expectations|exceeded expectations, far exceeds "
        "expectations|outstanding",
    )
)
_PLACES: tuple[dict[str, int], ...] = tuple(
    {name: place for place, names in enumerate(scale) for name in names} for scale in _SCALES
)
_NUMBER = r"([$€£¥]?[0-9][0-9,]*(?:\.[0-9]+)?)[ ]?(k|m|K|M|thousand|million)?(?![A-Za-z0-9.])"
_BELOW = r"(?:under|below|less than|fewer than|lower than|up to|at most|no more than|<=?|≤)"
_ABOVE = r"(?:over|above|more than|greater than|at least|>=?|≥)"
_OPEN = r"(?:\+|(?:or|and) (?:more|over|older|above|up|higher|greater)|plus)"
_RANGE = re.compile(
    rf"(?:age[sd]?[ ]?|between )?(?:(?P<below>{_BELOW})[ ]?)?(?:(?P<above>{_ABOVE})[ ]?)?{_NUMBER}"
    rf"(?:[ ]?(?:-|–|—|to|and|until)[ ]?(?:(?:under|less than|<)[ ]?)?{_NUMBER})?"
    rf"[ ]?(?P<open>{_OPEN})?(?P<less>[ ]?or (?:less|fewer|under|younger|below))?"
    rf"(?:[ ]?(?P<unit>[A-Za-z%€$ ./]+))?",
    re.IGNORECASE,
)
_GRADE = re.compile(r"([A-F])([+-]?)")
_GRADE_NAME = re.compile(r".*(grade|mark|score|rating)s?\b.*", re.IGNORECASE)
# A number before an answer, as in "1 - never" and "(5) always".
_NUMBERED = re.compile(r"(?:\(?[0-9]{1,2}\)?\s*[-–.):=]\s*|\(?[0-9]{1,2}\)?\s+)(?=[A-Za-z])")


@dataclass(frozen=True)
class Order:
    """The levels of a column in their order, and why they have it.

    `is_scale` is false where the order has no ends, as that of weekdays. `no_answers` are levels that are no
    place in the order, such as "don't know".
    """

    levels: tuple[str, ...]
    why: str
    is_scale: bool = True
    no_answers: tuple[str, ...] = ()


def find_order(name: str, labels: Iterable[str]) -> Order | None:
    """Find the order of labels that everyone knows; None if there is none.

    >>> find_order("x", ["often", "never", "sometimes"]).levels
    ('never', 'sometimes', 'often')
    >>> find_order("age", ["65+", "18-24", "under 18", "25-64"]).levels
    ('under 18', '18-24', '25-64', '65+')
    """
    known = list(dict.fromkeys(labels))
    aside = tuple(sorted(label for label in known if _plain(label) in NO_ANSWERS))
    for left_out in ((), aside) if aside else ((),):
        rest = [label for label in known if label not in left_out]
        if len(rest) < LEAST_LEVELS:
            return None
        for find in (_by_numbers, _by_ranges, _by_scale, _by_calendar):
            if (order := find(rest)) is not None:
                return Order(order.levels, order.why, order.is_scale, left_out)
        if (order := _by_grades(name, rest)) is not None:
            return Order(order.levels, order.why, True, left_out)
    return None


def find_no_answer_codes(values: Sequence[float]) -> tuple[int, ...]:
    """Return whole numbers that may stand for no answer: usual codes that are far from all other numbers.

    >>> find_no_answer_codes([1, 2, 3, 4, 5, 99]), find_no_answer_codes([-9, -1, 1, 2, 3])
    ((99,), (-9, -1))
    >>> find_no_answer_codes([-1, 0, 1, 2]), find_no_answer_codes([5, 6, 7, 8, 9])
    ((), ())
    """
    others = [value for value in values if value not in NO_ANSWER_CODES]
    if len(others) < 2:
        return ()
    low, high = min(others), max(others)
    span = high - low
    above = [int(value) for value in values if value in NO_ANSWER_CODES and value > high]
    below = [int(value) for value in values if value in NO_ANSWER_CODES and value < low]
    found = above if above and min(above) - high > span else []
    # Numbers from 1 on have no place below 0; those from 0 on may.
    if below and max(below) < 0 and (low >= 1 or low - max(below) > span):
        found += below
    return tuple(sorted(found))


def _plain(label: str) -> str:
    text = re.sub(r"[\u2018\u2019]", "'", label).strip().lower()
    return re.sub(r"[\s_]+", " ", text).rstrip(".!")


def _by_numbers(labels: list[str]) -> Order | None:
    """Order numbers that are written with a unit: 5%, 10%, 25%."""
    found = find_numerals(dict.fromkeys(labels, 1))
    if found is None or found.strays:
        return None
    numbers = {label: parse_number(label, found.written) for label in labels}
    # A few plain numbers may be codes of kinds.
    is_plain = found.written == PLAIN and len(labels) < LEAST_ORDERED
    if is_plain or len(set(numbers.values())) < len(labels):
        return None
    ordered = sorted(labels, key=lambda label: numbers[label] or 0.0)
    return Order(tuple(ordered), IN_NUMBERS)


def _by_ranges(labels: list[str]) -> Order | None:
    """Order ranges of numbers that do not overlap."""
    spans: dict[str, tuple[float, float]] = {}
    units = set()
    for label in labels:
        if _plain(label) in ("none", "never", "zero", "no"):
            spans[label] = (0.0, 0.0)
            continue
        found = _RANGE.fullmatch(re.sub(r"\s+", " ", label.strip()))
        if found is None or (span := _span(found)) is None:
            return None
        spans[label] = span
        units.add((found["unit"] or "").strip().lower().removesuffix("s").removesuffix("year"))
    ordered = sorted(labels, key=lambda label: (spans[label], label))
    pairs = itertools.pairwise(ordered)
    apart = all(spans[one][1] <= spans[other][0] and spans[one] != spans[other] for one, other in pairs)
    n_ranges = sum(low != high for low, high in spans.values())
    if not apart or not n_ranges or len(units) > 2:
        return None
    return Order(tuple(ordered), IN_NUMBERS)


def _span(match: "re.Match[str]") -> tuple[float, float] | None:
    groups = match.groups()
    first, times, last, other = groups[2:6]
    # In "10-20k" both are thousands.
    low = _number(first, times or (other if last else None))
    high = low if last is None else _number(last, other or times)
    if match["below"] or match["less"]:
        return None if last is not None or match["open"] or match["above"] else (-inf, low)
    if match["open"] or match["above"]:
        return None if last is not None else (low, inf)
    return (low, high) if low <= high else None


def _number(text: str, times: str | None) -> float:
    number = float(re.sub(r"[^0-9.]", "", text))
    factor = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6}.get((times or "").lower(), 1.0)
    return number * factor


def _by_scale(labels: list[str]) -> Order | None:
    """Order the answers of a scale in words, such as never, sometimes, always."""
    for cleaned in _cleaned(labels):
        for places in _PLACES:
            if all(text in places for text in cleaned.values()):
                found = {label: places[text] for label, text in cleaned.items()}
                if len(set(found.values())) == len(labels):
                    ordered = sorted(labels, key=lambda label: found[label])
                    return Order(tuple(ordered), IN_WORDS)
    return None


def _cleaned(labels: list[str]) -> Iterable[Mapping[str, str]]:
    """Give the ways in which labels may name places of a scale: as they are, without numbers or subject."""
    plain = {label: _plain(_NUMBERED.sub("", label.strip(), count=1)) for label in labels}
    yield plain
    school = {
        label: re.sub(r"('?s)?( degree| diploma| graduate| school graduate| education)$", "", text)
        for label, text in plain.items()
    }
    yield {label: re.sub(r"'s?$", "", text) for label, text in school.items()}
    # "Not at all important ... extremely important", "low risk ... high risk".
    endings = [text.split(" ")[-1] for text in plain.values()]
    common = max(set(endings), key=lambda one: (endings.count(one), one))
    if endings.count(common) >= len(labels) - 1 >= LEAST_LEVELS - 1:
        without = {label: text.removesuffix(common).strip() for label, text in plain.items()}
        yield {label: text or plain[label] for label, text in without.items()}
        yield {
            label: {"not": "not at all", "": "somewhat"}.get(text, text) for label, text in without.items()
        }


def _by_calendar(labels: list[str]) -> Order | None:
    """Order months and days of the week, which begin again and are no scale."""
    for names in (MONTHS, WEEKDAYS):
        places = {form: place for place, one in enumerate(names) for form in _short(one)}
        found = {label: places.get(_plain(label)) for label in labels}
        if all(place is not None for place in found.values()) and len(set(found.values())) == len(labels):
            ordered = sorted(labels, key=lambda label: found[label] or 0)
            return Order(tuple(ordered), BY_CALENDAR, is_scale=False)
    return None


def _short(name: str) -> set[str]:
    lower = name.lower()
    return {lower, lower[:3], lower[:4] if lower[:4] in ("sept", "tues", "thur") else lower, lower[:2]} - (
        {lower[:2]} if name in MONTHS else set()
    )


def _by_grades(name: str, labels: list[str]) -> Order | None:
    """Order letter grades; letters without + or - are grades only where the column is called so."""
    found = {label: _GRADE.fullmatch(label.strip()) for label in labels}
    signed = any(match is not None and match[2] for match in found.values())
    if not all(found.values()) or not (signed or _GRADE_NAME.fullmatch(name)):
        return None

    key = {label: (-ord(label.strip()[0]), {"-": -1, "": 0, "+": 1}[label.strip()[1:]]) for label in labels}
    return Order(tuple(sorted(labels, key=lambda label: key[label])), BY_GRADES)


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
_MEANS_NONE = re.compile(r"(none|nothing|no one|nobody|neither|never|no)\b|n/?a$|not applicable")
TICKED = frozenset({"1", "yes", "y", "true", "t", "x", "checked", "selected", YES})
_BLANK = frozenset({"0", "no", "n", "false", "f", "unchecked", "not selected", NO})


@dataclass(frozen=True)
class Choices:
    """The answers of a question with several of them, in the order of their names, and those left out.

    `none` are answers that stand alone and mean that no other holds: the others say that, too.
    """

    separator: str
    chosen: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    none: tuple[str, ...] = ()


def answers(text: str, separator: str) -> set[str]:
    """Return the answers in one cell.

    >>> sorted(answers("tv; radio;", ";"))
    ['radio', 'tv']
    """
    return {one.strip() for one in text.split(separator)} - {""}


def name_of_choice(column: str, choice: str) -> str:
    """Name the column that says whether an answer was ticked."""
    return f"{column}: {choice}"


def find_choices(counts: Mapping[str, int], *, is_asked: bool = False) -> Choices | None:
    """Find the answers in cells, each seen so many times; None if they hold single values.

    Where the user asked for it, only a separator must be there.
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
    # Nothing is learned from an answer that almost nobody, or almost everybody, gave.
    informative = {one for one, n in ticks.items() if min(n, total - n) >= (1 if is_asked else LEAST_ROWS)}
    joined: Counter[str] = Counter()
    for cell in several:
        joined.update(dict.fromkeys(cells[cell], counts[cell]))
    none = tuple(sorted(one for one in ticks if means_none(one) and joined[one] <= NEARLY_NONE * ticks[one]))
    informative -= set(none)
    chosen = sorted(informative, key=lambda one: (-ticks[one], one))[:MOST_CHOICES]
    if not is_asked and not _is_question(cells, counts, several, chosen, none, ticks, combinations):
        return None
    if not chosen:
        return None
    left_out = sorted(set(ticks) - set(chosen) - set(none), key=lambda one: (-ticks[one], one))
    return Choices(separator, tuple(sorted(chosen)), tuple(left_out), none)


def _is_question(
    cells: Mapping[str, set[str]],
    counts: Mapping[str, int],
    several: Sequence[str],
    chosen: Sequence[str],
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
    together = {one for cell in several for one in cells[cell]} & set(chosen)
    again = sum(combinations[one] > 1 for one in together) >= LEAST_AGAIN * len(together) > 0
    covered = sum(ticks[one] for one in (*chosen, *none)) >= LEAST_COVERED * sum(ticks.values())
    short = all(len(one) <= MOST_LETTERS for one in chosen)
    return len(chosen) >= 2 and len(chosen) < len(cells) and varied and again and covered and short


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


def joined_levels(name: str, names: Sequence[str]) -> tuple[str, ...]:
    """Name the levels of a joined column: what stands behind the common stem in the names of its columns."""
    stem = name.removesuffix(" (joined)")
    short = [one[len(stem) :].strip(MARKS) if one.startswith(stem) else one for one in names]
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


# So large a share of the cells must be numbers that are written alike; the others are missing.
MOST_CELLS = 0.95
# So many of very many texts are looked at first; if most of these are no numbers, neither are the others.
SOME = 200
# The share by which a value written with < is below its limit, and one with > above it.
STEP = 1e-9
# Numbers without a unit.
PLAIN = "1,234.5"
_BLANKS = " \u00a0\u202f"
_MINUS, _QUOTE = "\u2212", "\u2019"
_CURRENCIES = r"[$€£¥₹]|USD|EUR|GBP|CHF|CAD|AUD|JPY|INR|Rs\.?|kr"
_LIMIT = rf"(?:[<>]=?|[≤≥])[{_BLANKS}]?"
# Anything that may be a number, whatever its separators mean.
_ANY = re.compile(
    rf"(?P<limit>{_LIMIT})?[-+{_MINUS}(]?[{_BLANKS}]?(?P<before>{_CURRENCIES})?[{_BLANKS}]?[-+{_MINUS}]?"
    rf"(?P<number>[0-9.,](?:[0-9.,'{_QUOTE}{_BLANKS}]*[0-9.,])?)(?:[eE][-+]?[0-9]{{1,3}})?"
    rf"(?P<gap>[{_BLANKS}]?)(?P<after>%|‰|{_CURRENCIES}|[A-Za-zµ°][A-Za-z0-9µ°/²³]{{0,6}})?\)?"
)
_PLAIN_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
# The text of a convention: what stands before and after, and which marks part thousands and decimals.
_CONVENTION = re.compile(r"(?P<before>.*?)1(?P<thousands>[.,])234(?P<decimal>[.,])5(?P<after>.*)", re.DOTALL)


@dataclass(frozen=True)
class Numerals:
    """How the numbers of a column of text are written, and what in it is no number.

    `written` is the number 1234.5 in this way, such as "$1,234.5" or "1.234,5 €". `strays` are the other
    texts and their cells; `limits` the texts such as "<5". Numbers are `is_plain` without unit and separator.
    """

    written: str
    strays: Mapping[str, int] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    is_plain: bool = False


@lru_cache(maxsize=256)
def _pattern(written: str) -> str:
    """Return the pattern of all numbers that are written in this way; its first group is the digits."""
    found = _CONVENTION.fullmatch(written)
    if found is None:
        return r"(\b\B)"
    thousands, decimal = re.escape(found["thousands"]), re.escape(found["decimal"])
    before, after = found["before"].strip(), found["after"].strip()
    start = rf"(?:{re.escape(before)})[{_BLANKS}]?" if before else ""
    end = rf"[{_BLANKS}]?(?:{re.escape(after.removesuffix('s'))})s?" if after[-1:].isalpha() else ""
    end = end or (rf"[{_BLANKS}]?{re.escape(after)}" if after else "")
    whole = rf"[1-9][0-9]{{0,2}}(?:[{thousands}'{_QUOTE}{_BLANKS}][0-9]{{3}})+|[0-9]+"
    digits = rf"(?:{whole})(?:{decimal}[0-9]*)?|{decimal}[0-9]+"
    return (
        rf"(?:{_LIMIT})?[-+{_MINUS}(]?[{_BLANKS}]?{start}[-+{_MINUS}]?"
        rf"((?:{digits})(?:[eE][-+]?[0-9]{{1,3}})?){end}\)?"
    )


def parse_number(text: str, written: str) -> float | None:
    """Read a number that is written in this way; None if it is none.

    >>> [parse_number(text, "$1,234.5") for text in ("$1,999.01", "-$5", "($7.50)", "5 EUR")]
    [1999.01, -5.0, -7.5, None]
    >>> parse_number("1.234,56 €", "1.234,5 €")
    1234.56
    """
    found = re.fullmatch(_pattern(written), text.strip())
    if found is None:
        return None
    decimal = _decimal(written)
    digits = re.sub(rf"[^0-9eE+{re.escape(decimal)}-]", "", found[1]).replace(decimal, ".")
    number = float(digits)
    if re.match(rf"[^0-9]*[-{_MINUS}(]", text.strip()):
        number = -number
    step = max(abs(number), STEP) * STEP
    return number - step * text.strip().startswith(("<", "≤")) + step * text.strip().startswith((">", "≥"))


def number_in_sql(text: str, written: str) -> str:
    """Write in SQL what `parse_number` gives, null where a text is no number."""
    decimal = _decimal(written)
    value, pattern = f"trim({text})", quoted(_pattern(written))
    digits = f"regexp_extract({value}, {quoted('^' + _pattern(written) + '$')}, 1)"
    kept = f"regexp_replace({digits}, {quoted(f'[^0-9eE+{decimal}-]')}, '', 'g')"
    number = f"try_cast(replace({kept}, {quoted(decimal)}, '.') as DOUBLE)"
    number = f"({number} * case when regexp_matches({value}, '^[^0-9]*[-{_MINUS}(]') then -1 else 1 end)"
    side = f"case when {value}[1] in ('<', '≤') then -1 when {value}[1] in ('>', '≥') then 1 else 0 end"
    limited = f"({number} + greatest(abs({number}), {STEP!r}) * {STEP!r} * ({side}))"
    return f"(case when regexp_full_match({value}, {pattern}) then {limited} end)"


def _decimal(written: str) -> str:
    found = _CONVENTION.fullmatch(written)
    return "." if found is None else found["decimal"]


def signature_sql(text: str) -> str:
    """Write a text in SQL with all digits alike, so that few differ; a single zero before a mark stays."""
    zeros = f"regexp_replace({text}, '(^|[^0-9])0([.,])', '\\1Z\\2')"
    return f"replace(regexp_replace({zeros}, '[0-9]', '9', 'g'), 'Z', '0')"


def might_be_number_sql(text: str) -> str:
    """Write in SQL whether a text may be a number, whatever its separators mean."""
    pattern = quoted(_without_names(_ANY.pattern))
    # No number begins with a small letter but k, of kr; a pattern takes ten times as long to tell.
    may = f"{text} < 'a' or ({text} >= 'k' and {text} < 'l') or {text} >= '~'"
    return f"case when {may} then regexp_full_match(trim({text}), {pattern}) else false end"


def _without_names(pattern: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


def find_numerals(counts: Mapping[str, int]) -> Numerals | None:
    """Find the one way in which nearly all of these texts, each in so many cells, are numbers.

    Where 1,234 may be both, the comma parts thousands.
    """
    total = sum(counts.values())
    if len(counts) > 10 * SOME:
        some = sorted(counts)[:: len(counts) // SOME]
        if 2 * sum(_ANY.fullmatch(text.strip()) is not None for text in some) < len(some):
            return None
    units: Counter[tuple[str, str]] = Counter()
    for text, n in counts.items():
        if found := _ANY.fullmatch(text.strip()):
            gap = " " if found["gap"] else ""
            units[found["before"] or "", f"{gap}{found['after']}" if found["after"] else ""] += n
    if not units or sum(units.values()) < MOST_CELLS * total:
        return None
    # "5 kg" and "5kg" are one unit, and so are "1 day" and "2 days".
    merged: Counter[tuple[str, str]] = Counter()
    for (before, after), n in units.items():
        merged[before, after.strip().removesuffix("s")] += n
    (before, plain), _ = merged.most_common(1)[0]
    spelled = [pair for pair in units if (pair[0], pair[1].strip().removesuffix("s")) == (before, plain)]
    after = max(spelled, key=lambda pair: (units[pair], pair))[1]
    best: Numerals | None = None
    least = MOST_CELLS * total
    for marks in ((",", "."), (".", ",")):
        written = f"{before}1{marks[0]}234{marks[1]}5{after}"
        strays = {text: n for text, n in counts.items() if parse_number(text, written) is None}
        n_fit = total - sum(strays.values())
        if n_fit >= least and (best is None or n_fit > total - sum(best.strays.values())):
            limits = tuple(sorted(text for text in counts if text not in strays and _is_limit(text)))
            others = [text for text in counts if text not in strays and not _is_limit(text)]
            is_plain = written == PLAIN and all(map(_PLAIN_NUMBER.fullmatch, map(str.strip, others)))
            best = Numerals(written, dict(sorted(strays.items())), limits, is_plain)
    return best


def _is_limit(text: str) -> bool:
    return text.strip().startswith(("<", ">", "≤", "≥"))


def snapped(cuts: Iterable[float], limits: Iterable[tuple[float, bool]]) -> tuple[float, ...]:
    """Move cuts beside a limit to the limit itself; each limit comes with whether its values are above."""
    kept = set(cuts)
    for number, is_above in limits:
        near = 3 * max(abs(number), STEP) * STEP
        beside = {cut for cut in kept if (0 < cut - number <= near if is_above else 0 < number - cut <= near)}
        if beside:
            kept = (kept - beside) | {nextafter(number, inf) if is_above else number}
    return tuple(sorted(kept))


def limit_of(text: str, written: str) -> tuple[float, bool]:
    """Return the number in a text such as "<5", and whether values are above it."""
    bare = re.sub(rf"^{_LIMIT}", "", text.strip())
    return parse_number(bare, written) or 0.0, text.strip().startswith((">", "≥"))
