"""Dates: how they are written, and the parts of them that come again."""

import re
from collections.abc import Iterable
from datetime import datetime

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
        fitting = [one for one in fitting if parse_moment(text, one) is not None]
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
