"""Two tables, or the groups of one, side by side: which links differ, by a test of the difference itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain, Region, Variable, quote_label
from unless.data.showing import MOST_ROWS, html_table
from unless.errors import SettingError
from unless.independence.design_effects import drawn_alike
from unless.knowledge import sentences as say
from unless.knowledge.evidence import EvidenceBuilder, PairEvidence, check_fdr_and_effect, plain_fields
from unless.referee.differences import Change, Difference, find_differences
from unless.referee.regressions import LinkEstimate
from unless.structures.structure import Edge

CORRECTION = "Benjamini-Yekutieli"


@dataclass(frozen=True, kw_only=True)
class PairChange:
    """What is said of one pair in two tables or in groups of rows.

    Parameters
    ----------
    kind
        "gained": linked in the second, and in the first absent or nearly so; "lost": the reverse; "stronger",
        "weaker": linked in both, in the second more or less strongly; "other": the link differs in another
        way. "not shown": no difference is shown, which does not mean that there is none.
    pair
        The two names, sorted.
    where
        The first and the second in words, "in 2023" or "where Dept = A"; empty where more than two groups
        differ and no cut of them in two is sure.
    given
        The columns that the test holds fixed.
    statistic, df, p, q
        The test that the pair is linked alike everywhere; q is corrected over all pairs.
    limit, more_rows
        The largest difference of V that is not ruled out (95 %), and how many more rows would bring it down
        to the effect worth seeing, about; None where it is there, or where rows would not help.
    first, second
        The link on the two sides; None where no difference is shown.
    """

    kind: Change
    pair: Edge
    where: tuple[str, str] | None
    given: tuple[str, ...]
    statistic: float
    df: int
    p: float
    q: float
    limit: float
    more_rows: int | None
    first: PairEvidence | None
    second: PairEvidence | None
    sentence: str

    @property
    def is_shown(self) -> bool:
        """Whether the two are said to differ."""
        return self.kind != "not shown"

    def to_dict(self, tables: bool = False) -> dict[str, Any]:
        """Return plain values, ready for JSON; `tables=True` puts the tables behind each side in."""
        return {
            "kind": self.kind,
            "pair": list(self.pair),
            "where": None if self.where is None else list(self.where),
            "given": list(self.given),
            **plain_fields(self, "statistic", "df", "p", "q", "limit", "more_rows"),
            "first": self.first and self.first.to_dict(tables),
            "second": self.second and self.second.to_dict(tables),
            "sentence": self.sentence,
        }

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        sides = zip(self.where or ("first", "second"), (self.first, self.second), strict=True)
        rows = [
            (where, f"{one.n_rows:,}", say.decimal(one.cramers_v), say.decimal(one.cramers_v_limit))
            for where, one in sides
            if one is not None
        ]
        return html_table(self.kind, ("where", "rows", "V", "V at most"), rows, [f"{self.sentence}."])


@dataclass(frozen=True)
class Comparison:
    """All pairs that were compared, those that differ first, the surest of them at the top.

    `sides` are the names of what was compared with its number of rows, `notes` say what was left out.
    """

    changes: tuple[PairChange, ...]
    sides: tuple[tuple[str, int], ...]
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def differences(self) -> tuple[PairChange, ...]:
        """The pairs that are said to differ."""
        return tuple(one for one in self.changes if one.is_shown)

    def about(self, a: str, b: str) -> PairChange | None:
        """Return what is said of a pair, named in either order, if it was compared."""
        wanted = (a, b) if a < b else (b, a)
        return next((one for one in self.changes if one.pair == wanted), None)

    def of_kind(self, *kinds: Change) -> tuple[PairChange, ...]:
        """Return the pairs that differ in one of some ways."""
        return tuple(one for one in self.changes if one.kind in kinds)

    def to_dict(self, tables: bool = False) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "sides": [{"name": name, "n_rows": n_rows} for name, n_rows in self.sides],
            "settings": dict(self.settings),
            "notes": list(self.notes),
            "pairs": [one.to_dict(tables) for one in self.changes],
        }

    def lines(self) -> list[str]:
        """Return what differs, line by line, how many pairs show no difference, and what was left out."""
        lines = [f"{one.sentence}." for one in self.differences]
        return [*lines, *self._rest(), *self.notes]

    def _rest(self) -> list[str]:
        rest = self.of_kind("not shown")
        # Of one pair or two everything fits into sentences of its own.
        if len(rest) <= 2:
            return [f"{one.sentence}." for one in rest]
        effect = say.decimal(self.settings.get("effect", 0.0))
        settled = [one for one in rest if one.df and one.more_rows is None]
        wanting = [one.more_rows for one in rest if one.more_rows is not None]
        n_constant = len(rest) - len(settled) - len(wanting)
        need = f"need more rows to tell (about {max(wanting, default=0):,} more for all)"
        parts = (
            (len(settled), f"differ by {effect} in V at most"),
            (len(wanting), need),
            (n_constant, "cannot be compared, for a column does not vary"),
        )
        text = "; ".join(f"{n:,} {words}" for n, words in parts if n)
        return [f"No difference is shown for {len(rest):,} pairs: {text}."]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        shown = self.differences
        rows = [(f"{one.sentence}.", one.kind) for one in shown[:MOST_ROWS]]
        notes = [*self._rest(), *self.notes]
        sides = ", ".join(f"{name}: {n_rows:,} rows" for name, n_rows in self.sides)
        title = f"{repr(self)[1:-1]} ({sides})"
        return html_table(title, ("difference", "kind"), rows, notes, len(shown) - len(rows))

    def __repr__(self) -> str:
        return f"<Comparison: {len(self.differences)} of {len(self.changes)} pairs differ>"


def compare_tables(
    first: object,
    second: object,
    *,
    names: tuple[str, str] = ("first", "second"),
    fdr: float = 0.05,
    effect: float = 0.2,
) -> Comparison:
    """Say which pairs of columns are not linked alike in two tables, by a test of the difference.

    Parameters
    ----------
    first, second
        Datasets, or whatever `unless.read` reads. Columns that only one of them has are left out, with a
        note; levels are the same where their labels are.
    names
        What the tables are called in sentences.
    fdr
        The share of the differences said that may be false, however the tests depend on each other.
    effect
        A difference of Cramer's V worth seeing: of pairs without a difference it is said how many rows would
        rule it out.

    Examples
    --------
    >>> import unless
    >>> data = unless.datasets.load_ucb_admissions()
    >>> unless.compare_tables(data, data)
    <Comparison: 0 of 3 pairs differ>
    """
    settings = _settings(fdr, effect)
    if names[0] == names[1]:
        raise SettingError(f"names={names!r} calls both tables the same; give two names.")
    given = isinstance(second, Dataset) and not isinstance(first, Dataset)
    tables = [_read(second if given else first)]
    # Numbers of both are cut at the same values.
    tables.append(_read(first if given else second, tables[0].domain))
    if given:
        tables.reverse()
    drawn = [_as_drawn_alike(table) for table in tables]
    tables = [table for table, _ in drawn]
    shared = sorted(set(tables[0].names) & set(tables[1].names))
    if len(shared) < 2:
        raise SettingError("The two tables share fewer than two columns; give tables of the same columns.")
    notes = [
        note.replace("The table", quote_label(name), 1)
        for name, (_, note) in zip(names, drawn, strict=True)
        if note
    ]
    notes += [
        f"Only in {quote_label(name)}, left out: {', '.join(map(quote_label, left))}."
        for name, table in zip(names, tables, strict=True)
        if (left := [column for column in table.names if column not in shared])
    ]
    group = "table"
    while group in shared:
        group += "_"
    stacked = _stacked([table.select(shared) for table in tables], group, names)
    found = find_differences(stacked, group, fdr=fdr, effect=effect)
    writer = _ChangeWriter(stacked, group, effect, are_tables=True)
    sides = tuple(zip(names, (one.n_rows for one in tables), strict=True))
    return Comparison(tuple(map(writer.of, found.pairs)), sides, (*notes, *found.notes), settings)


def compare_groups(data: object, by: str, *, fdr: float = 0.05, effect: float = 0.2) -> Comparison:
    """Say which pairs of columns are not linked alike in the groups that a column makes.

    Of more than two groups each pair is tested once, whether all groups are alike. Where they are not, the
    cut of the groups in two that fits best is named, if it is sure beyond the choice among all cuts. The
    first side is the one with the group that comes first.

    Parameters
    ----------
    data
        A Dataset, or whatever `unless.read` reads.
    by
        The column whose levels are the groups.
    fdr, effect
        As of `compare_tables`.

    Examples
    --------
    >>> import unless
    >>> found = unless.compare_groups(unless.datasets.load_ucb_admissions(), "Dept")
    >>> [(one.kind, one.pair, one.where[0]) for one in found.differences]
    [('lost', ('Admit', 'Gender'), 'where Dept = A')]
    """
    settings = _settings(fdr, effect)
    table = _read(data)
    if len(np.unique(table.rows[:, table.index(by)])) < 2:
        raise SettingError(f"Column {by!r} makes one group; name a column with two or more.")
    ordered, note = _as_drawn_alike(table.select(sorted(table.names)))
    found = find_differences(ordered, by, fdr=fdr, effect=effect)
    writer = _ChangeWriter(ordered, by, effect)
    names = [f"{quote_label(by)} = {quote_label(label)}" for label in found.groups]
    sides = tuple(zip(names, found.n_rows, strict=True))
    notes = (note, *found.notes) if note else found.notes
    return Comparison(tuple(map(writer.of, found.pairs)), sides, notes, {**settings, "by": by})


def _as_drawn_alike(table: Dataset) -> tuple[Dataset, str]:
    """Return rows that all count the same, and what was done to a survey for that."""
    if table.design is None:
        return table, ""
    alike = drawn_alike(table)
    columns = " and ".join(map(quote_label, table.design.columns))
    return alike, (
        f"The table is a survey ({columns}): its {table.n_rows:,} rows are compared as {alike.n_rows:,} "
        "drawn alike."
    )


class _ChangeWriter:
    """Turns differences into what is said, with the evidence of both sides."""

    def __init__(self, data: Dataset, group: str, effect: float, are_tables: bool = False) -> None:
        self.data, self.group, self.are_tables = data, group, are_tables
        self.evidence = EvidenceBuilder(data, effect)

    def of(self, one: Difference) -> PairChange:
        """Say how a pair differs, or that no difference is shown."""
        where, first, second = None, None, None
        if one.groups is not None and one.sides is not None:
            where = self._where(one.groups[0]), self._where(one.groups[1])
            first, second = (
                self._evidence(one, side, labels) for side, labels in zip(one.sides, one.groups, strict=True)
            )
            sentence = say.change_sentence(one.kind, one.pair, where, (first, second), one.given, one.q)
        elif one.is_shown:
            sentence = say.differing_sentence(one.pair, self.group, one.given, one.q)
        else:
            is_tested = bool(one.statistic.df)
            sentence = say.not_shown_sentence(one.pair, one.given, one.limit, one.more_rows, is_tested)
        return PairChange(
            kind=one.kind, pair=one.pair, where=where, given=one.given, statistic=one.statistic.value,
            df=one.statistic.df, p=one.p, q=one.q, limit=one.limit, more_rows=one.more_rows, first=first,
            second=second, sentence=sentence,
        )  # fmt: skip

    def _where(self, labels: Sequence[str]) -> str:
        if self.are_tables:
            return f"in {quote_label(labels[0])}"
        return f"where {say.regions_text([self._region(labels)], self.data.domain)}"

    def _region(self, labels: Sequence[str]) -> Region:
        return Region.of(self.data.domain, {self.group: labels})

    def _evidence(self, one: Difference, link: LinkEstimate, labels: Sequence[str]) -> PairEvidence:
        index = self.data.domain.index
        a, b = (index(name) for name in one.pair)
        evidence = self.evidence.of(
            (a, b), link, [index(name) for name in one.given], where=(self._region(labels),),
            p=link.statistic.p, q=1.0, with_tables=True,
        )  # fmt: skip
        # The column that names the two tables is none of theirs.
        return replace(evidence, where=()) if self.are_tables else evidence


def _read(source: object, beside: Domain | None = None) -> Dataset:
    if isinstance(source, Dataset):
        return source
    from unless.data.read import read, read_beside

    return read(source) if beside is None else read_beside(source, beside)


def _stacked(tables: Sequence[Dataset], group: str, names: tuple[str, str]) -> Dataset:
    """Put tables of the same columns below each other, with a column that names them."""
    variables, columns = [], []
    for position, name in enumerate(tables[0].names):
        sides = [table.domain[name] for table in tables]
        levels = _united(*(one.levels for one in sides))
        number = {label: code for code, label in enumerate(levels)}
        coded = [np.array([number[label] for label in one.levels]) for one in sides]
        parts = zip(coded, tables, strict=True)
        columns.append(np.concatenate([codes[table.rows[:, position]] for codes, table in parts]))
        kinds = {one.kind for one in sides}
        same = sides[0] if len({(one.levels, one.cuts) for one in sides}) == 1 else Variable(name, levels)
        kind = kinds.pop() if len(kinds) == 1 else "text"
        variables.append(replace(same, kind=kind, ordered=all(one.ordered for one in sides)))
    columns.append(np.repeat(np.arange(len(tables)), [table.n_distinct for table in tables]))
    variables.append(Variable(group, names))
    counts = np.concatenate([table.counts for table in tables])
    stacked = Dataset.from_codes(Domain(tuple(variables)), np.column_stack(columns), counts)
    return stacked.select(sorted(stacked.names))


def _united(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Unite levels, whichever comes first; where both have levels of their own, in the order of labels."""
    if set(first) == set(second):
        return min(first, second)
    if set(first) > set(second):
        return first
    return second if set(second) > set(first) else tuple(sorted({*first, *second}))


def _settings(fdr: float, effect: float) -> dict[str, Any]:
    check_fdr_and_effect(fdr, effect)
    return {"fdr": float(fdr), "effect": float(effect), "correction": CORRECTION}
