"""Text with an order that everyone knows: ranges of numbers, and scales such as never ... always."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from unless.data.moments import MONTHS, WEEKDAYS
from unless.data.written import PLAIN, find_numerals, parse_number

# Fewer levels have no order to speak of.
LEAST_LEVELS = 3
# Whole numbers of so many values are a scale, a count or a grade; fewer may be codes of kinds, without order,
# so that no trend is looked for unless the order is given.
LEAST_ORDERED = 5
IN_NUMBERS, IN_WORDS = "in the order of their numbers", "a scale in words"
BY_CALENDAR, BY_GRADES = "in the order of the calendar", "letter grades, the best last"
# Reasons for which levels are ordered though they are text.
KNOWN_ORDERS = (IN_NUMBERS, IN_WORDS, BY_GRADES)
# Answers that are no place on a scale.
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


def _span(found: "re.Match[str]") -> tuple[float, float] | None:
    groups = found.groups()
    first, times, last, other = groups[2:6]
    # In "10-20k" both are thousands.
    low = _number(first, times or (other if last else None))
    high = low if last is None else _number(last, other or times)
    if found["below"] or found["less"]:
        return None if last is not None or found["open"] or found["above"] else (-inf, low)
    if found["open"] or found["above"]:
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
