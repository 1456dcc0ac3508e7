"""Dates: how they are written, and the parts of them that come again."""

import re
from collections.abc import Iterable
from datetime import datetime

from unless.data.source import quoted

# How dates are written, in the order of trust: year, month and day in this order, which need no format; then
# those of which a table may hold one only. 03/04/2020 fits two of them: the month is taken to come first.
FORMATS = ("", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
_ISO = re.compile(
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}([ T]\d{1,2}:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII
)
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def parse_moment(text: str, written: str) -> datetime | None:
    """Read a date, perhaps with a time of day; None if it is none. The zone is left out."""
    try:
        if written:
            return datetime.strptime(text, written)
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
    for text in texts:
        fitting = [one for one in fitting if parse_moment(text, one) is not None]
        if not fitting:
            break
    return fitting


def moment_sql(text: str, written: str) -> str:
    """Write a text as a moment in SQL; null where it is none."""
    if written:
        return f"try_strptime({text}, {quoted(written)})"
    return f"try_cast({text} as TIMESTAMP)"


def part_sql(moment: str, part: str) -> str:
    """Write the number of a part: the year, the month from 1, the day of the week from 1."""
    return f"{ {'year': 'year', 'month': 'month', 'weekday': 'isodow'}[part] }({moment})"


def part_of(moment: datetime, part: str) -> int:
    """Return the number of a part, as `part_sql` writes it."""
    return {"year": moment.year, "month": moment.month, "weekday": moment.isoweekday()}[part]


def part_label(number: int, part: str) -> str:
    """Name a part."""
    if part == "year":
        return str(number)
    return (MONTHS if part == "month" else WEEKDAYS)[number - 1]
