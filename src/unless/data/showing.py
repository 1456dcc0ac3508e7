"""Names and small tables for notebooks: static, escaped, no script."""

from collections.abc import Iterable, Sequence
from html import escape

# Joiners have no shape of their own, but Persian names and many signs fall apart without them.
_JOINERS = "\u200c\u200d"
# Longer tables and texts are cut short when shown.
MOST_ROWS = 20
MOST_LETTERS = 120


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
