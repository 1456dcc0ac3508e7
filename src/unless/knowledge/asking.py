"""One question put to the data and to a structure, side by side."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Context, Domain
from unless.data.showing import MOST_LETTERS, html_table, visible
from unless.errors import SettingError
from unless.independence.design_effects import drawn_alike
from unless.independence.statistics import check_effect, check_rate
from unless.inference.tables import read_rows
from unless.knowledge.evidence import Evidence, Levels, settle, weigh
from unless.knowledge.measures import rounded
from unless.knowledge.sentences import chance, decimal, more_rows_text, rows_text
from unless.knowledge.strata import Counter
from unless.structures.graph import Graph
from unless.structures.labelled import spoken
from unless.structures.pairs import pair_names
from unless.structures.structure import as_structure, link_shares, observed, pair_numbers

# A link that a structure draws in at least this share of the rows of a context is one of its graph there.
DRAWN = 0.1
# More strata than this are counted, and not shown.
MOST_TABLES = 12


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question about a pair in a context, and its two answers.

    `data` is the test on the rows of the context, pooled over the strata of the given variables; a single
    question needs no correction, so that q is p. `separated` tells whether the structure's graph in the
    context separates the two given the others, None where it knows no such context; `share` in which share
    of the context's rows it links them directly.
    """

    pair: tuple[str, str]
    given: tuple[str, ...]
    context: Context
    data: Evidence
    separated: bool | None
    share: float | None
    n_rows: int
    domain: Domain

    @property
    def answer(self) -> str:
        """The answer of the data."""
        return self.data.answer

    @property
    def agrees(self) -> bool | None:
        """Whether data and structure say the same; None where one of them says nothing."""
        if self.separated is None or self.data.answer == "undecided":
            return None
        return self.separated == (self.data.answer == "independent")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "pair": list(self.pair),
            "given": list(self.given),
            "context": dict(self.context),
            "answer": self.answer,
            "data": self.data.to_dict(),
            "model": {"separated": self.separated, "share": rounded(self.share)},
            "agrees": self.agrees,
        }

    def __str__(self) -> str:
        a, b = map(spoken, self.pair)
        given = f" given {', '.join(map(spoken, self.given))}" if self.given else ""
        where = f" where {self.context}" if self.context else ""
        lines = [f"{a} and {b}{given}{where}", f"  data:  {self._data()}", f"  model: {self._model()}"]
        return "\n".join([*lines, *self._tables()])

    def _repr_html_(self) -> str:
        title, *_ = str(self).split("\n", 1)
        parts = [html_table(title, (), (), [f"data: {self._data()}", f"model: {self._model()}"])]
        if len(self.data.tables) > MOST_TABLES:
            return parts[0]
        for labels, table in zip(self.data.strata, self.data.tables.tolist(), strict=True):
            head, *lines = _cells(table, self.pair, self.domain)
            heads = ["", *(visible(level)[:MOST_LETTERS] for level in head[1:])]
            parts.append(html_table(self._stratum(labels) or "Rows", heads, lines))
        return "".join(parts)

    def _data(self) -> str:
        side, rows = self.data, rows_text(self.data.n_rows, self.n_rows)
        if not side.df:
            return f"undecided, for nothing varies ({rows})"
        odds = side.odds_ratio
        ratio = (
            ""
            if odds is None or odds.low is None
            else f", odds ratio {odds.value:.2f} ({odds.low:.2f} to {odds.high:.2f})"
        )
        there = " there" if self.context else ""
        how = "" if side.method == "chi-square" else f" by {side.method}"
        more = f"; {more_rows_text(side.more_rows, there)}" if side.more_rows else ""
        return (
            f"{side.answer} ({rows}, V = {decimal(side.cramers_v)}, {chance('p', side.p)}{how}{ratio}){more}"
        )

    def _model(self) -> str:
        if self.separated is None or self.share is None:
            return "it knows no such context"
        said = "independent" if self.separated else "dependent"
        return f"{said} (a link in {100 * self.share:.0f} % of these rows)"

    def _tables(self) -> list[str]:
        side = self.data
        if len(side.tables) > MOST_TABLES:
            return [f"  ({len(side.tables):,} tables)"]
        lines = []
        for labels, table in zip(side.strata, side.tables, strict=True):
            named = self._stratum(labels)
            lines += [
                "",
                *([f"  {named}"] if named else []),
                *_table_lines(table.tolist(), self.pair, self.domain),
            ]
        return lines

    def _stratum(self, labels: tuple[str, ...]) -> str:
        return ", ".join(
            f"{spoken(name)} = {spoken(label)}" for name, label in zip(self.given, labels, strict=True)
        )


def ask(
    structure: Any,
    data: object,
    a: str,
    b: str,
    *,
    given: Iterable[str] = (),
    context: Mapping[str, object] | None = None,
    alpha: float = 0.05,
    effect: float = 0.3,
) -> Asked:
    """Ask data and structure whether a and b are independent given some variables in a context."""
    check_rate("alpha", alpha)
    check_effect(effect)
    domain = as_structure(structure).domain
    table = read_rows(domain, data).select(sorted(domain.names))
    if not isinstance(given, Iterable):
        raise SettingError(f"given={given!r} is no list of names; give one, or () for none.")
    by = [given] if isinstance(given, str) else list(given)
    held = table.domain.encode(context)
    _refuse_repeats([a, b, *by, *(table.names[place] for place in held)])
    pair, given_places = (
        (table.domain.index(a), table.domain.index(b)),
        [table.domain.index(one) for one in by],
    )
    table = drawn_alike(table, pair)
    inside = observed(table, held)
    levels = Levels(alpha, alpha, effect)
    evidence = weigh(Counter(table).count(*pair, given_places, inside), pair, table.domain, levels)
    separated, share = _drawn(structure, table, pair, [*by, *(table.names[place] for place in held)], held)
    return Asked(
        pair=(a, b),
        given=tuple(table.names[one] for one in sorted(given_places)),
        context=table.domain.decode(held),
        data=settle(evidence, evidence.p, alpha, levels),
        separated=separated,
        share=share,
        n_rows=table.n_rows,
        domain=table.domain,
    )


def _drawn(
    structure: Any, table: Dataset, pair: tuple[int, int], given: Sequence[str], held: Mapping[int, int]
) -> tuple[bool | None, float | None]:
    """Ask the graph of the links that are drawn in most rows of a context."""
    shares = link_shares(structure, table, held)
    if not len(shares):
        return None, None
    graph = Graph(table.domain, pair_names(table.domain, np.flatnonzero(shares >= DRAWN)))
    names = table.names[pair[0]], table.names[pair[1]]
    return graph.is_independent(*names, given), float(shares[pair_numbers(len(table.domain))[pair]])


def _refuse_repeats(names: list[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise SettingError(
            f"{repeated[0]!r} appears twice in the question; give each variable one part in it."
        )


def _table_lines(table: list[list[int]], pair: tuple[str, str], domain: Domain) -> list[str]:
    """Write a table with the levels that occur, numbers to the right."""
    cells = _cells(table, pair, domain)
    widths = [max(len(line[place]) for line in cells) for place in range(len(cells[0]))]
    return [
        "  "
        + "  ".join(
            [
                line[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
            ]
        ).rstrip()
        for line in cells
    ]


def _cells(table: list[list[int]], pair: tuple[str, str], domain: Domain) -> list[list[str]]:
    """Return a table with the levels that occur, its head first."""
    rows = [code for code, line in enumerate(table) if any(line)]
    columns = [code for code in range(len(table[0])) if any(line[code] for line in table)]
    a, b = (domain[name].levels for name in pair)
    cells = [["", *(b[code] for code in columns)]]
    return cells + [[a[code], *(f"{table[code][other]:,}" for other in columns)] for code in rows]
