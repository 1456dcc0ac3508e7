"""What is said of each pair, with its evidence: as sentences, as a table, as plain values, in a context."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from unless.data.domain import Domain, any_agrees, quote_label
from unless.data.showing import MOST_ROWS, html_table
from unless.knowledge.evidence import Contrast, PairEvidence, furthest_apart, plain_fields, rounded
from unless.knowledge.sentences import (
    Gate,
    chance,
    decimal,
    level_text,
    name_text,
    percent,
    regions_text,
)
from unless.referee.verdicts import Kind
from unless.structures.structure import Edge

# The kinds that claim something of a pair, in the order of lists; those of `determined` stand apart.
FINDINGS: tuple[Kind, ...] = ("linked", "gated", "differs", "partly", "determined")
KINDS: tuple[Kind, ...] = (*FINDINGS, "associated", "unlinked", "open")
State = Literal["holds", "absent", "holds in part", "not settled", "fixed"]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What is said of a pair, how surely, and why.

    Parameters
    ----------
    kind
        "linked": linked given all other columns; "gated": linked where `gate.linked` says and absent
        elsewhere; "differs": linked on both sides of the gate, not equally; "partly": linked where
        `gate.linked` says, elsewhere not settled; "determined": one column is a copy or a function of the
        other. These are findings if `is_finding`. "associated": they go together, but through other columns
        or for want of a test given them; "unlinked": absent, with the bound; "open": not enough data.
    pair
        The two names, sorted.
    gate
        Where the pair is linked and where it is not, or not known to be; None where nothing was found to
        differ.
    given
        The columns that the evidence holds fixed: none of them can account for the link.
    confidence
        The probability that the sentence is true; None where nothing is claimed.
    evidence
        One test, or one on each side of the gate, the linked side first.
    source, n_broken
        Of "determined": the column that determines the other, and how many rows break it.
    """

    kind: Kind
    pair: Edge
    gate: Gate | None
    given: tuple[str, ...]
    confidence: float | None
    evidence: tuple[PairEvidence, ...]
    n_rows: int
    sentence: str
    is_finding: bool = False
    source: str | None = None
    n_broken: int = 0
    support: float | None = None

    @property
    def share_broken(self) -> float:
        """The share of the rows that break what is said to be determined."""
        return self.n_broken / self.n_rows if self.n_rows else 0.0

    @property
    def bound(self) -> float | None:
        """The largest V that is not ruled out (95 %) where the pair is said to be absent."""
        if self.kind in ("gated", "differs", "partly") and len(self.evidence) > 1:
            return self.evidence[1].cramers_v_limit
        return self.evidence[0].cramers_v_limit if self.kind == "unlinked" and self.evidence else None

    @property
    def more_rows(self) -> int | None:
        """How many more rows would settle an open question, about; None where nothing is open."""
        return self.evidence[0].more_rows if self.kind == "open" and self.evidence else None

    def state_in(self, context: Mapping[str, str]) -> State:
        """Tell what the statement says where some columns have these labels, without a new test."""
        if set(context) & set(self.pair):
            return "fixed"
        if self.kind in ("associated", "open"):
            return "not settled"
        if self.kind == "unlinked":
            return "absent"
        if self.gate is None or self.kind in ("linked", "differs", "determined"):
            return "holds"
        inside, outside = (any_agrees(side, context) for side in (self.gate.linked, self.gate.unlinked))
        if inside and outside:
            return "holds in part"
        if inside:
            return "holds"
        return "absent" if self.kind == "gated" else "not settled"

    def to_dict(self, tables: bool = True) -> dict[str, Any]:
        """Return plain values, ready for JSON; `tables=False` leaves the tables out."""
        return {
            "kind": self.kind,
            "pair": list(self.pair),
            "gate": self.gate and self.gate.to_dict(),
            "given": list(self.given),
            **plain_fields(
                self, "confidence", "is_finding", "sentence", "source", "n_broken", "bound", "more_rows",
                "support", "n_rows",
            ),
            "evidence": [side.to_dict(tables) for side in self.evidence],
        }  # fmt: skip

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        sides = zip(("linked", "elsewhere"), self.evidence, strict=False)
        rows = [
            (
                side if self.gate else "all rows",
                f"{one.n_rows:,}",
                decimal(one.cramers_v),
                decimal(one.cramers_v_limit),
                chance("p", one.p),
            )
            for side, one in sides
        ]
        return html_table(self.kind, ("where", "rows", "V", "V at most", "test"), rows, [f"{self.sentence}."])


@dataclass(frozen=True)
class InContext:
    """A statement read in a context: whether it holds there, and the bound where it is absent."""

    statement: Statement
    state: State

    @property
    def bound(self) -> float | None:
        """The largest V that is not ruled out where the pair is absent."""
        return self.statement.bound if self.state == "absent" else None

    @property
    def pair(self) -> Edge:
        """The two names."""
        return self.statement.pair

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "pair": list(self.pair),
            "kind": self.statement.kind,
            "state": self.state,
            "bound": rounded(self.bound),
            "is_finding": self.statement.is_finding,
            "sentence": self.statement.sentence,
        }

    def __str__(self) -> str:
        a, b = map(quote_label, self.pair)
        bound = "" if self.bound is None else f" (V at most {decimal(self.bound)})"
        return f"{a} and {b}: {self.state}{bound}"

    def _repr_html_(self) -> str:
        return html_table(str(self), (), (), [f"{self.statement.sentence}."])


class Listed(tuple[Any, ...]):
    """Statements, or readings of them in a context, as a tuple that notebooks show line by line."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_table(f"{len(self):,} statements", ("statement",), [(f"{one}.",) for one in self])


def by_strength(statements: tuple[Statement, ...], target: str) -> tuple[Statement, ...]:
    """Order what is said of a column: what determines it, findings by strength, then the rest."""
    ordered = sorted(enumerate(statements), key=lambda one: (_rank(one[1], target), one[0]))
    return tuple(statement for _, statement in ordered)


def strength(statement: Statement) -> float:
    """Return confidence x bits a row of the table; of a link that holds in part of it, the bits there."""
    sides = statement.evidence if statement.kind == "differs" else statement.evidence[:1]
    bits = sum(side.n_rows * side.information for side in sides)
    return (statement.confidence or 0.0) * bits / max(1, statement.n_rows)


def _rank(statement: Statement, target: str) -> tuple[int, float]:
    if not statement.is_finding:
        return 3, 0.0
    if statement.kind == "determined":
        # A column that determines the target comes first; one that the target determines says less.
        return (0 if statement.source != target else 2), 0.0
    return 1, -round(strength(statement), 9)


class Direction(NamedTuple):
    """Which level of the target is more common at which level of the other column, and where that holds."""

    contrast: Contrast
    where: str

    def __str__(self) -> str:
        one = self.contrast
        where = f"Where {self.where}, " if self.where else ""
        # "age is 45 or more is more common" cannot be read.
        level = f"{name_text(one.column)} = {one.level if one.column in one.cut else name_text(one.level)}"
        low = one.at_low if one.other in one.cut else name_text(one.at_low)
        return (
            f"{where}{level} is more common when {level_text(one, one.other, one.at_high)}: "
            f"{percent(one.high)} against {percent(one.low)} when {low}"
        )

    def _repr_html_(self) -> str:
        return html_table(f"{self}.", (), ())


def direction_of(statement: Statement, target: str, domain: Domain | None) -> Direction | None:
    """Say in which direction a finding goes, in shares of one level of the target.

    Of a target of two levels it is the second; of others the level whose shares are furthest apart. The
    columns that the statement is given are mixed alike at each level of the other column. None where there is
    no finding, or where neither tables nor shares of the target are kept.
    """
    if domain is None or not statement.is_finding or not statement.evidence:
        return None
    side = statement.evidence[0]
    where = regions_text(side.where, domain) if side.where else ""
    found = side.contrast
    if side.tables.size:
        other = statement.pair[0] if statement.pair[1] == target else statement.pair[1]
        tables = side.tables if statement.pair[0] == target else side.tables.transpose(0, 2, 1)
        shown = np.flatnonzero(tables.sum(axis=(0, 2)))
        level = int(shown[-1]) if len(shown) == 2 else None
        pair = domain[target], domain[other]
        found = furthest_apart(*pair, tables, level) or furthest_apart(*pair, tables, level, False)
    return None if found is None or found.column != target else Direction(found, where)


def target_lines(statements: "Statements", target: str, at_most: int | None = None) -> list[str]:
    """Head the list, number its findings, and say each in its direction and in full."""
    findings = statements.findings
    if not findings:
        return [f"Nothing was found to matter for {name_text(target)}."]
    lines = [f"What matters for {name_text(target)}, most first:"]
    for number, one in enumerate(findings[:at_most], 1):
        direction = direction_of(one, target, statements.domain)
        lines.append(f"{number}. {f'{direction}. ' if direction else ''}{one.sentence}.")
    if at_most is not None and len(findings) > at_most:
        lines.append(f"... and {len(findings) - at_most:,} more.")
    return lines


@dataclass(frozen=True)
class Statements(Sequence[Statement]):
    """Statements, findings first, the surest and strongest of them at the top.

    `note` says why there are none, or what was left out; `settings` how they were made. Those about one
    column, the `target`, are in the order in which they matter for it.
    """

    statements: tuple[Statement, ...] = ()
    note: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    domain: Domain | None = None
    target: str | None = None

    @overload
    def __getitem__(self, index: int) -> Statement: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Statement, ...]: ...
    def __getitem__(self, index: int | slice) -> Statement | tuple[Statement, ...]:
        return self.statements[index]

    def __len__(self) -> int:
        return len(self.statements)

    def __iter__(self) -> Iterator[Statement]:
        return iter(self.statements)

    @property
    def findings(self) -> tuple[Statement, ...]:
        """What is claimed: links, gates, differences; then columns that others determine."""
        return Listed(one for one in self.statements if one.is_finding)

    def of_kind(self, *kinds: Kind) -> tuple[Statement, ...]:
        """Return the statements of some kinds that are findings, or that claim nothing."""
        return Listed(
            one
            for one in self.statements
            if one.kind in kinds and (one.is_finding or one.kind not in FINDINGS)
        )

    def about(self, a: str, b: str) -> Statement | None:
        """Return the statement about a pair, named in either order, if there is one."""
        wanted = (a, b) if a < b else (b, a)
        return next((one for one in self.statements if one.pair == wanted), None)

    def about_column(self, name: str) -> "Statements":
        """Keep what is said of one column: what matters most for it first, by confidence x bits a row."""
        if self.domain is not None:
            self.domain.index(name)
        kept = tuple(one for one in self.statements if name in one.pair)
        return replace(self, statements=by_strength(kept, name), target=name)

    def direction(self, statement: Statement) -> Direction | None:
        """Say which level of the target goes up with which level of the other column; None if unknown."""
        return None if self.target is None else direction_of(statement, self.target, self.domain)

    def given(self, context: Mapping[str, object]) -> tuple[InContext, ...]:
        """Read each statement where some columns have these labels, by its gate, without a new test."""
        labels = {name: str(value) for name, value in context.items()}
        if self.domain is not None:
            labels = dict(self.domain.decode(self.domain.encode(context)))
        return Listed(InContext(one, one.state_in(labels)) for one in self.statements)

    def counts(self) -> dict[str, int]:
        """Count the statements of each kind, as lists and headlines show them."""
        return {kind: len(self.of_kind(kind)) for kind in KINDS}

    def to_dict(self, tables: bool = False) -> dict[str, Any]:
        """Return plain values, ready for JSON; `tables=True` puts the tables behind each test in."""
        return {
            "settings": dict(self.settings),
            "note": self.note,
            "statements": [one.to_dict(tables) | self.aimed(one) for one in self.statements],
            **({} if self.target is None else {"target": self.target}),
        }

    def aimed(self, one: Statement) -> dict[str, Any]:
        """Return the direction and strength of a statement about a target, as plain values."""
        if self.target is None:
            return {}
        direction = self.direction(one)
        return {"direction": direction and str(direction), "strength": rounded(strength(one))}

    def to_frame(self, backend: str | None = None) -> Any:
        """Return one row for each test as a DataFrame of pandas, else polars, else pyarrow, else a dict."""
        from unless.inference.frames import columns_to_frame

        rows = [
            _row(one, where, evidence)
            for one in self.statements
            for where, evidence in zip(("linked", "elsewhere"), one.evidence, strict=False)
        ]
        return columns_to_frame({name: [row[n] for row in rows] for n, name in enumerate(_COLUMNS)}, backend)

    def lines(self, at_most: int | None = None) -> list[str]:
        """Return the findings, as many as wanted, then what is determined, and counts of the other pairs."""
        after = [text for text in (self._rest(), self.note) if text]
        if self.target is not None:
            return [*target_lines(self, self.target, at_most), *after]
        links = [one for one in self.findings if one.kind != "determined"]
        lines = [f"{one.sentence}." for one in links[:at_most]]
        if at_most is not None and len(links) > at_most:
            lines.append(f"... and {len(links) - at_most:,} more.")
        lines += [f"{one.sentence}." for one in self.of_kind("determined")]
        return [*lines, *after]

    def _rest(self) -> str:
        counts = self.counts()
        parts = [
            f"{counts[kind]:,} {words}"
            for kind, words in (
                ("associated", "associated only through others, or for want of a test"),
                ("unlinked", "not linked"),
                ("open", "open for want of data"),
            )
            if counts[kind]
        ]
        # Of one pair or two everything fits into sentences of its own.
        others = [one for one in self.statements if one.kind in ("associated", "unlinked", "open")]
        if len(others) <= 2:
            return " ".join(f"{one.sentence}." for one in others)
        return f"Other pairs: {', '.join(parts)}." if parts else ""

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        rows = [(f"{one.sentence}.", one.kind) for one in self.statements[:MOST_ROWS]]
        notes = [self.note] if self.note else []
        return html_table(repr(self)[1:-1], ("statement", "kind"), rows, notes, len(self) - len(rows))

    def __repr__(self) -> str:
        return f"<Statements: {len(self)}>"


_FIGURES = ("statistic", "df", "p", "q", "information", "cramers_v", "cramers_v_limit", "more_rows")
_COLUMNS = (
    "a", "b", "kind", "is_finding", "confidence", "where", "rows", *_FIGURES, "support", "sentence",
)  # fmt: skip


def _row(one: Statement, where: str, evidence: PairEvidence) -> tuple[Any, ...]:
    figures = (getattr(evidence, name) for name in _FIGURES)
    where = where if one.gate else "everywhere"
    return (
        *one.pair, one.kind, one.is_finding, one.confidence, where, evidence.n_rows, *figures, one.support,
        one.sentence,
    )  # fmt: skip
