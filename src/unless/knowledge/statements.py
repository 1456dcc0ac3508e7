"""What is said about each pair, with its evidence: as sentences, as a table, as plain values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

from unless.data.showing import MOST_ROWS, html_table
from unless.independence.verdict import Answer
from unless.knowledge.evidence import Evidence
from unless.knowledge.gates import Gate
from unless.knowledge.measures import rounded
from unless.structures.pairs import Edge

Claim = Literal["linked", "gated", "never"]


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What a structure claims of a pair, and what the data say where it is said to be linked and where not.

    `claim` is the structure's: "linked" everywhere, "gated" (linked unless a gate) or "never" linked. `share`
    is the share of the rows in which the structure links the pair, `agreement` the share in which it says
    what the claim says. `support` is the share of bootstrap resamples with the same answers, if asked for.
    """

    pair: Edge
    claim: Claim
    gate: Gate | None
    share: float
    agreement: float
    linked: Evidence | None
    unlinked: Evidence | None
    n_rows: int
    sentence: str
    support: float | None = None

    @property
    def verdict(self) -> Answer:
        """The answer of the data: where the pair is claimed to be linked, or else everywhere."""
        side = self.linked or self.unlinked
        return side.answer if side else "undecided"

    @property
    def agrees(self) -> bool:
        """Whether the data do not contradict the structure."""
        linked_fails = self.linked is not None and self.linked.answer == "independent"
        return not linked_fails and not (self.unlinked is not None and self.unlinked.answer == "dependent")

    @property
    def is_dependent(self) -> bool:
        """Whether the data show a dependence anywhere."""
        return any(side.answer == "dependent" for side in self.evidence)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The tests made: one, or one on each side of the gate."""
        return tuple(side for side in (self.linked, self.unlinked) if side is not None)

    def to_dict(self, tables: bool = True) -> dict[str, Any]:
        """Return plain values, ready for JSON; `tables=False` leaves the tables out."""
        return {
            "pair": list(self.pair),
            "claim": self.claim,
            "verdict": self.verdict,
            "agrees": self.agrees,
            "gate": self.gate and self.gate.to_dict(),
            "share": rounded(self.share),
            "agreement": rounded(self.agreement),
            "support": rounded(self.support),
            "sentence": self.sentence,
            "linked": self.linked and self.linked.to_dict(tables),
            "not_linked": self.unlinked and self.unlinked.to_dict(tables),
        }

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Statements(Sequence[Statement]):
    """Statements, the most telling first: gates, then links, then what is undecided, then what is not linked.

    Within these, pairs that share more information come first. `note` says why there are none, or what was
    left out; `settings` how they were made.
    """

    statements: tuple[Statement, ...] = ()
    note: str = ""
    settings: dict[str, Any] = field(default_factory=dict)

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

    def about(self, a: str, b: str) -> Statement | None:
        """Return the statement about a pair, named in either order, if there is one."""
        wanted = (a, b) if a < b else (b, a)
        return next((one for one in self.statements if one.pair == wanted), None)

    def to_dict(self, tables: bool = False) -> dict[str, Any]:
        """Return plain values, ready for JSON; `tables=True` puts the tables behind each test in."""
        return {
            "settings": dict(self.settings),
            "note": self.note,
            "statements": [one.to_dict(tables) for one in self.statements],
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """Return one row for each test as a DataFrame of pandas, else polars, else pyarrow, else a dict."""
        from unless.inference.frames import columns_to_frame

        rows = [
            _row(one, side, evidence)
            for one in self.statements
            for side, evidence in (("linked", one.linked), ("not linked", one.unlinked))
            if evidence is not None
        ]
        return columns_to_frame({name: [row[name] for row in rows] for name in _COLUMNS}, backend)

    def lines(self, at_most: int | None = None) -> list[str]:
        """Return sentences, as many as wanted; pairs never linked, as the data agree, are counted."""
        never = [one for one in self.statements if one.claim == "never" and one.agrees]
        told = [one for one in self.statements if one.claim != "never" or not one.agrees]
        lines = [f"{one.sentence}." for one in told[:at_most]]
        if at_most is not None and len(told) > at_most:
            lines.append(f"... and {len(told) - at_most:,} more.")
        if len(never) == 1:
            lines.append(f"{never[0].sentence}.")
        elif never:
            n_open = sum(one.verdict == "undecided" for one in never)
            undecided = f" ({n_open:,} of them undecided)" if n_open else ""
            lines.append(f"{len(never):,} pairs are never linked{undecided}.")
        return [*lines, *([self.note] if self.note else [])]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        rows = [(f"{one.sentence}.", one.verdict) for one in self.statements[:MOST_ROWS]]
        notes = [self.note] if self.note else []
        return html_table(repr(self)[1:-1], ("statement", "answer"), rows, notes, len(self) - len(rows))

    def __repr__(self) -> str:
        return f"<Statements: {len(self)}>"


_COLUMNS = (
    "a", "b", "claim", "where", "answer", "rows", "rows_used", "statistic", "df", "p", "q", "information",
    "cramers_v", "odds_ratio", "more_rows", "share", "agreement", "support", "sentence",
)  # fmt: skip


def _row(one: Statement, side: str, evidence: Evidence) -> dict[str, Any]:
    regions = () if one.gate is None else one.gate.linked if side == "linked" else one.gate.unlinked
    return {
        "a": one.pair[0],
        "b": one.pair[1],
        "claim": one.claim,
        "where": " or ".join(map(str, regions)),
        "answer": evidence.answer,
        "rows": evidence.n_rows,
        "rows_used": evidence.rows_used,
        "statistic": evidence.statistic,
        "df": evidence.df,
        "p": evidence.p,
        "q": evidence.q,
        "information": evidence.information,
        "cramers_v": evidence.cramers_v,
        "odds_ratio": None if evidence.odds_ratio is None else evidence.odds_ratio.value,
        "more_rows": evidence.more_rows,
        "share": one.share,
        "agreement": one.agreement,
        "support": one.support,
        "sentence": one.sentence,
    }
