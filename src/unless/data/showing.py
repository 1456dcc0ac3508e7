"""How values, names and small tables are written; plain Python, as child processes import it."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from html import escape
from numbers import Integral, Real
from typing import Any

# Joiners have no shape of their own, but Persian names and many signs fall apart without them.
_JOINERS = "\u200c\u200d"
# Longer tables and texts are cut short when shown.
MOST_ROWS = 20
MOST_LETTERS = 120


def to_label(value: object) -> str:
    """Write a scalar as a label: text as it is, integers without a point, other numbers at full precision.

    >>> to_label(2.0), to_label(True), to_label("2.0")
    ('2', 'True', '2.0')
    """
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "item"):
        value = _scalar(value)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return str(int(value))
    # A day is often stored as the midnight it begins with.
    return str(value).removesuffix(" 00:00:00") if isinstance(value, datetime) else str(value)


def _scalar(value: Any) -> object:
    """Return the Python scalar inside a numpy one, at the precision a person would write it with."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "f" and value.dtype.itemsize < 8:
        # 0.1 in single precision is 0.10000000149 in double.
        return float(str(value))
    if kind == "M":
        # Nanoseconds have no Python scalar and would come out as a number.
        return value.astype("datetime64[us]").item()
    return value.item()


def count(number: int, noun: str) -> str:
    """Write a number with what it counts: "1 row", "4,526 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def visible(text: str) -> str:
    """Show what would not be seen, or would move the cursor, as its escape."""
    shown = "".join(
        one if one.isprintable() or one in _JOINERS else one.encode("unicode_escape").decode() for one in text
    )
    return shown or "''"


def html_text(text: object) -> str:
    """Write a text of the table so that a browser shows it and takes nothing in it for markup."""
    shown = visible(str(text))
    cut = shown if len(shown) <= MOST_LETTERS else f"{shown[: MOST_LETTERS - 1]}…"
    return f"<bdi>{escape(cut, quote=True)}</bdi>"


def html_table(
    title: str,
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    notes: Iterable[str] = (),
    more: int = 0,
) -> str:
    """Write a title, a table cut to its first rows, and notes; `more` counts rows that were not given."""
    listed = list(rows)
    left = len(listed) - MOST_ROWS + more if len(listed) > MOST_ROWS else more
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    body = "".join(
        "<tr>" + "".join(f"<td>{html_text(cell)}</td>" for cell in row) + "</tr>"
        for row in listed[:MOST_ROWS]
    )
    said = [*notes, *([f"... and {left:,} more"] if left > 0 else [])]
    notes_text = "".join(f"<p>{html_text(note)}</p>" for note in said)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if listed else ""
    return f"<div><p>{html_text(title)}</p>{table}{notes_text}</div>"
