"""What a page holds: plain values, in a fixed order, ready for JSON.

`unless.report.writing.gather` computes them all; `unless.report.html.render` makes the page from them alone.
"""

from typing import Any

import msgspec


class Box(msgspec.Struct, frozen=True):
    """A variable and where its box stands; x and y are the middle, on a plane of the page's own units."""

    name: str
    levels: list[str]
    x: float
    y: float
    width: float
    # So many gated links does it switch.
    n_gated: int


class Bars(msgspec.Struct, frozen=True):
    """Shares of the levels of one column at each level of the other: [level][level of the other].

    `where` are levels that all rows here have, in words. `given` are the columns that are mixed alike at each
    level of the other column; where there are none the shares are plain, and `counts` are theirs. `a` and `b`
    are the levels shown, by position; rare ones may be left out. Counts that are too small to be told are
    None, and so are the shares that rest on them.
    """

    where: str
    given: list[str]
    n_rows: int | None
    a: list[int]
    b: list[int]
    shares: list[list[float | None]]
    counts: list[list[int | None]] | None
    rows: list[int | None]
    low: list[list[float | None]]
    high: list[list[float | None]]


class Chart(msgspec.Struct, frozen=True):
    """What a picture shows of one side of a statement: its shares, and those of the strata behind them.

    `column` says which column of the pair, 0 or 1, has its shares shown; `evidence` is the position of what
    they rest on.
    """

    evidence: int = msgspec.field(name="side")
    column: int
    whole: Bars
    strata: list[Bars]
    n_left_out: int


class Line(msgspec.Struct, frozen=True):
    """A finding as a line between two variables: `statement` is its position, `switches` are its gate."""

    a: int
    b: int
    statement: int
    switches: list[int]


class Contexts(msgspec.Struct, frozen=True):
    """The distinct rows of the table: codes by column, and counts; none where the page keeps no rows.

    Codes are little-endian, of one or two bytes each, in base64. `note` says in words which rows these are,
    where they are not all.
    """

    n: int
    codes: list[str]
    code_bytes: list[int]
    counts: list[int]
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
    """One report. `about` is said in its head, `left_out` in its foot; `statements` are those of the API.

    `counts` are the statements of each kind, as `Statements.counts` gives them, those left out included.
    """

    title: str
    n_rows: int
    n_columns: int
    about: list[tuple[str, str]]
    notes: list[str]
    headline: str
    counts: dict[str, int]
    variables: list[Box]
    links: list[Line]
    contexts: Contexts
    statement_note: str
    settings: dict[str, Any]
    statements: list[dict[str, Any]]
    # The two sides of each statement's gate in words, and the pictures of its evidence.
    where: list[tuple[str, str]]
    charts: list[list[Chart]]
    what_if: WhatIf
    left_out: list[str]
    # What the page reveals of single rows, in one line; counts below `min_cell` are not in it.
    reveals: str = ""
    min_cell: int = 0
    # Of a survey: which rows are counted on the page, and how many were looked at.
    survey: str = ""
