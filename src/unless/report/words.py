"""Numbers in words, and names as a page may show them."""

from html import escape

from unless.data.showing import visible


def shown(text: str) -> str:
    r"""Escape a text of the table for HTML; what would not be seen, or would turn what follows, is spelt.

    >>> print(shown("</script>"), shown("a\u202eb"))
    &lt;/script&gt; a\u202eb
    """
    return escape(visible(text), quote=True)


def name(text: str) -> str:
    """Write a name or a label so that its direction does not turn what stands around it."""
    return f"<bdi>{shown(text)}</bdi>"


def count(number: int, noun: str) -> str:
    """Write a number with what it counts: "1 row", "4,526 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(parts: list[str]) -> str:
    """Join parts of a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part) if parts else ""


def value(setting: object) -> str:
    """Write a setting as its owner would say it."""
    if isinstance(setting, bool):
        return "yes" if setting else "no"
    return "none" if setting is None else str(setting)
