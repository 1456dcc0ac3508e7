"""What a page holds: plain values, in a fixed order, ready for JSON."""

import re
from typing import Any

import msgspec


class Variable(msgspec.Struct, frozen=True):
    """A variable and where its box stands; x and y are the middle, on a plane of the page's own units."""

    name: str
    levels: list[str]
    x: float
    y: float
    width: float
    # So many gated links does it switch.
    n_gated: int


class Bars(msgspec.Struct, frozen=True):
    """The table of a pair in some contexts: counts and limits of shares, [level of a][level of b].

    `a` and `b` are the levels shown, by position; rare ones may be left out.
    """

    where: str
    is_linked: bool | None
    answer: str
    n_rows: int
    p: float
    cramers_v: float
    more_rows: int | None
    a: list[int]
    b: list[int]
    counts: list[list[int]]
    totals: list[int]
    low: list[list[float]]
    high: list[list[float]]


class Link(msgspec.Struct, frozen=True):
    """A pair that the structure claims to be linked, in the order of the bits of the graphs.

    `statement` is the position of its statement, `drawn` whether the data show a dependence; `switches` are
    the variables of its gate.
    """

    a: int
    b: int
    statement: int
    drawn: bool
    share: float
    switches: list[int]


class Contexts(msgspec.Struct, frozen=True):
    """The contexts a structure was asked about: codes by column, counts, and which of the graphs each has.

    Arrays are little-endian bytes in base64: `codes` of one or two bytes each, `graph` of four; a graph is
    `stride` bytes with one bit for each link, lowest first. `note` says in words whose rows these are, where
    they are not all rows of the table.
    """

    n: int
    codes: list[str]
    code_bytes: list[int]
    counts: list[int]
    graph: str
    n_graphs: int
    stride: int
    graphs: str
    note: str = ""


class Given(msgspec.Struct, frozen=True):
    """The marginals of all variables, one after another, under one level of one variable."""

    variable: int
    code: int
    marginals: list[float]


class WhatIf(msgspec.Struct, frozen=True):
    """What the page can say of probabilities: `kind` is "joint", "gates" or "none"; `how` says it in words.

    `joint` holds the probabilities of all states, 8 bytes each in base64, the last variable fastest;
    `before` the marginals without evidence, `given` those for single levels.
    """

    kind: str
    how: str
    joint: str = ""
    before: list[float] = []
    given: list[Given] = []


class Page(msgspec.Struct, frozen=True):
    """One report. `about` is said in its head, `left_out` in its foot; `statements` are those of the API."""

    title: str
    n_rows: int
    n_columns: int
    about: list[tuple[str, str]]
    notes: list[str]
    headline: str
    variables: list[Variable]
    links: list[Link]
    at_least: float
    contexts: Contexts
    statement_note: str
    settings: dict[str, Any]
    statements: list[dict[str, Any]]
    # The two sides of each statement's gate in words, and the tables of those worth a picture.
    where: list[tuple[str, str]]
    bars: list[list[Bars]]
    what_if: WhatIf
    left_out: list[str]


# What could end a script element, or turn or hide what an editor shows of the file. Outside of strings JSON
# has none of these, and inside it knows their escapes.
_UNSAFE = re.compile("[<>&\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def to_json(page: Page) -> bytes:
    """Write a page as JSON that may stand inside a script element: no character of it can end one."""
    text = msgspec.json.encode(page).decode()
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text).encode()
