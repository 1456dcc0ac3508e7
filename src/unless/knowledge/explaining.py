"""From a structure and a table to statements: the structure proposes, the referee decides what is said."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np

from unless.data.dataset import Dataset, regression_steps, unknown_levels
from unless.data.domain import MISSING_LABELS, Domain, Variable, date_of, shorten
from unless.errors import SettingError
from unless.inference.tables import read_rows
from unless.kernels.compiling import plain_if_small
from unless.knowledge import sentences as say
from unless.knowledge.evidence import EvidenceBuilder, PairEvidence, check_fdr_and_effect
from unless.knowledge.statements import Statement, Statements
from unless.referee.counted import Determined, determined_pairs, find_determined
from unless.referee.regressions import LinkEstimate
from unless.referee.verdicts import LOCAL, Kind, Pair, PairVerdict, Referee, listed, marginal_test
from unless.runtime.compilation import compile_ahead
from unless.runtime.memory import parse_memory
from unless.runtime.progress import BAR_DELAY, progress
from unless.structures.structure import as_structure, link_shares, pair_numbers

# Settings that statements share with the learner whose structure they explain, where it has them.
SHARED = frozenset({"fdr", "gates", "forbidden_gates", "forbidden_edges"})
# Fewer rows than one cell of a table needs say nothing about any pair.
LEAST_ROWS = 5
# Two columns go together where the p of their own table, times the number of pairs, is below this.
ASSOCIATED = 0.05
# Fewer rows missing together, or known together, are too few for a test.
LEAST_MISSING = 20
# A pair that is not linked shows no p below this.
ABSENT = 0.05


def explain(  # noqa: PLR0913 (every argument is one independent wish)
    structure: Any,
    data: object,
    *,
    target: str | None = None,
    gates: Iterable[str] | None = None,
    forbidden_gates: Iterable[str] = (),
    forbidden_edges: Iterable[Iterable[str]] = (),
    fdr: float = 0.05,
    effect: float = 0.2,
    max_memory: int | str | None = None,
    show_progress: bool | None = None,
) -> Statements:
    """Say of each pair whether it is linked, where, how surely, and why; or that the data cannot decide.

    The structure (CanonicalModel, Graph, FeatureSet, LabelledGraph, LogLinearModel) proposes pairs: those
    that it links in any row. Whatever proposed them, they are tested in the same way: see
    docs/reading-a-sentence.md.

    Parameters
    ----------
    target
        Keep what is said of this variable.
    gates, forbidden_gates
        The only variables that may be gates, and variables that may not.
    forbidden_edges
        Pairs of names that are known not to be linked. Nothing is said of them, and what is linked with
        neither end of a pair is no gate of it; all else is judged as if that were not known.
    fdr
        The share of findings that may be false; 1 lists all candidates.
    effect
        A pair is said to be not linked where Cramer's V is surely (95 %) at most this.

    Examples
    --------
    >>> import unless
    >>> data = unless.datasets.load_ucb_admissions()
    >>> found = unless.explain(unless.CSGS().fit(data).structure_, data)
    >>> [(one.kind, one.pair) for one in found.findings]
    [('gated', ('Admit', 'Gender')), ('linked', ('Dept', 'Gender')), ('linked', ('Admit', 'Dept'))]
    """
    check_fdr_and_effect(fdr, effect)
    if max_memory is not None:
        # Checked only: what is held at once is less than the least amount allowed.
        parse_memory(max_memory)
    # Sorted, as files keep them.
    settings = {"effect": float(effect), "fdr": float(fdr)}
    domain = as_structure(structure).domain
    if not isinstance(data, Dataset) or data.domain != domain:
        data = read_rows(domain, data, show_progress)
    # By name: the order of the columns decides nothing, not even the rounding.
    table = data.select(sorted(domain.names))
    may_gate = _gate_mask(table.domain, gates, forbidden_gates, target)
    never = _forbidden_pairs(table.domain, forbidden_edges)
    if note := _nothing_to_say(table):
        return Statements(note=note, settings=settings, domain=table.domain)
    # Each pair is looked at given several sets of columns.
    with plain_if_small(20.0 * regression_steps(table), "statements") as is_first:
        if is_first:
            compile_ahead("statements", show_progress)
        made = _explained(structure, table, may_gate, never, settings, show_progress)
    return made if target is None else made.about_column(target)


def _explained(
    structure: Any,
    table: Dataset,
    may_gate: Any,
    never: set[Pair],
    settings: dict[str, float],
    show_progress: bool | None,
) -> Statements:
    fdr, effect = settings["fdr"], settings["effect"]
    proposed = _proposed(structure, table)
    with progress("Explaining", show_progress, after=BAR_DELAY) as bar:
        bar.begin("columns and pairs", table.n_variables + int(proposed.sum()) // 2)
        determined = find_determined(table)
        functions = [(one.source, one.column) for one in determined]
        # A learner that has a column and a function of it sees the links of neither.
        for column in {column for pair in functions for column in pair}:
            proposed[column, :] = proposed[:, column] = True
        referee = Referee(table, determined_pairs(determined, table.n_variables), may_gate, functions, bar)
        # The calendar links parts of one date, whatever the rows.
        dates = _dates(table.domain)
        calendar = {pair for columns in dates.values() for pair in permutations(columns, 2)}
        verdicts = referee.judge(calendar, never)
    writer = _StatementWriter(table, referee, EvidenceBuilder(table, effect), fdr, effect)
    unsaid = {*calendar, *never, *(pair[::-1] for pair in never)}
    news = [one for one in determined if (one.source, one.column) not in unsaid]
    said = [*writer.of_pairs(verdicts, proposed), *writer.of_determined(news)]
    return Statements(tuple(sorted(said, key=_importance)), _note(table, never), settings, table.domain)


def explain_as_learned(
    structure: Any, data: Dataset, settings: Mapping[str, Any], **wanted: Any
) -> Statements:
    """Explain a structure with those of its learner's settings that statements share; None is the default."""
    shared = {name: value for name, value in settings.items() if name in SHARED and value is not None}
    return explain(structure, data, **{**shared, **wanted})


def _proposed(structure: Any, table: Dataset) -> Any:
    """Return, for each pair of columns, whether the structure links it in any row."""
    shares, n = link_shares(structure, table), table.n_variables
    linked = np.zeros((n, n), dtype=np.bool_)
    off = ~np.eye(n, dtype=np.bool_)
    linked[off] = shares[pair_numbers(n)[off]] > 0
    return linked


@dataclass
class _StatementWriter:
    """Turns verdicts on positions into statements on names."""

    table: Dataset
    referee: Referee
    evidence: EvidenceBuilder
    fdr: float
    effect: float

    @property
    def n_rows(self) -> int:
        """The rows of the table, those with missing values included where tests can use them."""
        return int(self.referee.table.row_counts.sum())

    def of_pairs(self, verdicts: list[PairVerdict], proposed: Any) -> list[Statement]:
        """Say something of each pair."""
        candidates = [one for one in verdicts if one.is_candidate and proposed[one.pair]]
        # q bounds the share of false findings whatever the confidences; they must agree.
        chosen = listed([one.confidence if one.q <= self.fdr else 0.0 for one in candidates], self.fdr)
        links = [one for one, is_listed in zip(candidates, chosen, strict=True) if is_listed]
        findings = {one.pair: one for one in self._modest(links)}
        return [
            self._claim(findings[one.pair])
            if one.pair in findings
            else self._no_claim(one, len(verdicts), bool(proposed[one.pair]))
            for one in verdicts
        ]

    def _modest(self, links: list[PairVerdict]) -> list[PairVerdict]:
        """Keep the surest gates, as long as at most `fdr` of all findings are expected false.

        Of links whose gate is less sure, it is left open what is elsewhere.
        """
        doubt = sum(1 - one.confidence for one in links)
        gated = [one for one in links if one.kind == "gated"]
        sure = set()
        for one in sorted(gated, key=lambda one: (-one.confidence * one.gate_confidence, one.pair)):
            doubt += one.confidence * (1 - one.gate_confidence)
            local = 1 - one.confidence * one.gate_confidence
            if doubt > self.fdr * len(links) or local > min(1.0, LOCAL * self.fdr):
                break
            sure.add(one.pair)
        return [
            replace(one, kind="partly", gate_confidence=1.0)
            if one.kind == "gated" and one.pair not in sure
            else one
            for one in links
        ]

    def _claim(self, one: PairVerdict) -> Statement:
        """Say that a pair is linked, everywhere or where its gate says."""
        pair, given, n_rows = self._names(one), self._given(one), self.n_rows
        # Sums of weights round to a little above 1.
        confidence = one.confidence * one.gate_confidence
        if one.account is None:
            evidence = self._evidence(one, one.link, ())
            v_alone, p_alone = marginal_test(self.referee, one.pair)
            once = p_alone >= ABSENT and v_alone < one.link.v / 2
            sentence = say.linked_sentence(pair, evidence, given, one.confidence, n_rows, once)
            sentence = self._missing_together(one) or sentence + self._cut(given)
            return self._statement(one, one.kind, (evidence,), sentence, given, min(1.0, confidence))
        gate = say.Gate.of(self.table.domain, one.account.clauses)
        sides = (
            self._evidence(one, one.account.inside, gate.linked),
            self._evidence(one, one.account.outside, gate.unlinked, own_p=True),
        )
        given = [name for name in given if name not in gate.names]
        domain = self.table.domain
        sentence = say.gated_sentence(one.kind, pair, gate, sides, given, confidence, domain, n_rows)
        if one.kind != "gated":
            sentence = self._missing_together(one) or sentence
        sentence += self._cut([*given, *gate.names])
        return self._statement(one, one.kind, sides, sentence, given, min(1.0, confidence), gate)

    def _missing_together(self, one: PairVerdict) -> str:
        """Say of a pair that only its missing values go together that they do; else nothing."""
        read = self.referee.table
        codes, counts = [_missing_code(self.table.domain.variables[c]) for c in one.pair], read.row_counts
        if None in codes or any(self.table.domain.names[c] in unknown_levels(self.table) for c in one.pair):
            return ""
        missing = [read.codes[c] == code for c, code in zip(one.pair, codes, strict=True)]
        n_both = int(counts[missing[0] & missing[1]].sum())
        known = ~(missing[0] | missing[1])
        if n_both < LEAST_MISSING or int(counts[known].sum()) < LEAST_MISSING:
            return ""
        test = self.referee.wide.within(*one.pair, one.given, known)
        if test.p < ABSENT:
            return ""
        limit = self.referee.wide.estimate(*one.pair, test, float(read.counts[known].sum())).largest_v
        return say.missing_sentence(self._names(one), n_both, self.n_rows, limit, one.confidence)

    def _cut(self, names: Iterable[str]) -> str:
        """Say which columns that are held fixed are so only by their groups: the rest can link others.

        Numbers that were cut are held fixed by finer groups where the table has them (`Detail.finer`).
        """
        finer = {} if self.table.detail is None else self.table.detail.finer
        fixed = [self.table.domain[name] for name in sorted(names) if name not in finer]
        return say.cut_text([(one.name, len(one.cuts) + 1) for one in fixed if one.cuts])

    def _evidence(
        self, one: PairVerdict, link: LinkEstimate, where: Any, own_p: bool = False
    ) -> PairEvidence:
        p = link.statistic.p if own_p else one.p
        return self.evidence.of(
            one.pair, link, one.given, where=where, p=p, q=1.0 if own_p else one.q, with_tables=True,
            method=one.method,
        )  # fmt: skip

    def _statement(
        self,
        one: PairVerdict,
        kind: Kind,
        sides: tuple[PairEvidence, ...],
        sentence: str,
        given: list[str],
        confidence: float | None = None,
        gate: say.Gate | None = None,
    ) -> Statement:
        return Statement(
            kind=kind, pair=self._names(one), gate=gate, given=tuple(given), confidence=confidence,
            evidence=sides, n_rows=self.n_rows, sentence=sentence, is_finding=confidence is not None,
        )  # fmt: skip

    def _no_claim(self, one: PairVerdict, n_pairs: int, is_proposed: bool) -> Statement:
        """Say that a pair goes together through others, is not linked, or that it is open."""
        pair, given = self._names(one), self._given(one)
        link = one.link
        v_alone, p_alone = marginal_test(self.referee, one.pair)
        is_absent = one.p >= ABSENT and link.largest_v <= self.effect and bool(link.statistic.df)
        kind: Kind = "unlinked" if is_absent else "open"
        if p_alone * n_pairs < ASSOCIATED:
            kind = "associated"
        evidence = self.evidence.of(
            one.pair, link, one.given, p=one.p, q=one.q, with_tables=False, method=one.method
        )
        if kind == "associated":
            sentence = say.associated_sentence(
                pair, v_alone, given, is_absent, link.largest_v, is_alone=self.table.n_variables == 2
            )
        elif kind == "unlinked":
            sentence = say.unlinked_sentence(pair, evidence, given)
        elif one.q <= self.fdr and not is_proposed:
            sentence = say.unproposed_sentence(pair, evidence, given)
        else:
            sentence = say.open_sentence(pair, evidence, given)
        return self._statement(one, kind, (evidence,), sentence, given)

    def of_determined(self, determined: Iterable[Determined]) -> list[Statement]:
        """Say which columns others determine; of a copy once."""
        names, said = self.table.domain.names, []
        for one in determined:
            column, source = names[one.column], names[one.source]
            if one.is_copy and column < source:
                continue
            n_rows = self.n_rows
            sentence = say.determined_sentence(column, source, one.is_copy, one.n_broken, n_rows)
            first, second = sorted((column, source))
            said.append(
                Statement(
                    kind="determined", pair=(first, second), gate=None, given=(),
                    confidence=DETERMINED_CONFIDENCE, evidence=(), n_rows=n_rows, sentence=sentence,
                    is_finding=True, source=source, n_broken=one.n_broken,
                )
            )  # fmt: skip
        return said

    def _names(self, one: PairVerdict) -> tuple[str, str]:
        names = self.table.domain.names
        return names[one.pair[0]], names[one.pair[1]]

    def _given(self, one: PairVerdict) -> list[str]:
        """Name the columns given, those first that the pair goes together with most."""
        strength = {c: min(self.referee.association(c, end) for end in one.pair) for c in one.given}
        ordered = sorted(one.given, key=lambda c: (-round(strength[c], 9), c))
        return [self.table.domain.names[c] for c in ordered]


def _missing_code(variable: Variable) -> int | None:
    """Return the code of the level that stands for missing values, if there is one."""
    return next((variable.levels.index(label) for label in MISSING_LABELS if label in variable.levels), None)


# A function is said only where chance cannot make it (referee/counted.py).
DETERMINED_CONFIDENCE = 0.999


def _importance(one: Statement) -> tuple[int, float, Any]:
    """Rank gates, other findings (by confidence x rows inside x bits a row), what is determined, the rest."""
    if one.is_finding and one.kind != "determined":
        side = one.evidence[0]
        worth = (one.confidence or 0.0) * side.n_rows * side.information
        return int(one.kind != "gated"), -round(worth / max(1, one.n_rows), 9), one.pair
    groups = {"determined": 2, "associated": 3, "open": 4, "unlinked": 5}
    return groups.get(one.kind, 6), 0.0, one.pair


def _nothing_to_say(data: Dataset) -> str:
    if data.n_variables < 2:
        return "The table has one variable; there is no pair to speak of."
    if len(data.constant_names) > data.n_variables - 2:
        return "Fewer than two variables vary in the table; there is nothing that could depend."
    if data.n_rows < LEAST_ROWS:
        return f"The table has {data.n_rows:,} rows; fewer than {LEAST_ROWS} say nothing about any pair."
    return ""


def _dates(domain: Domain) -> dict[str, list[int]]:
    """Return the columns that are parts of one date, by that date, where they are several."""
    parts: dict[str, list[int]] = {}
    for column, name in enumerate(domain.names):
        if (date := date_of(name)) is not None:
            parts.setdefault(date, []).append(column)
    return {date: columns for date, columns in parts.items() if len(columns) > 1}


def _note(data: Dataset, never: set[Pair]) -> str:
    notes = []
    if names := data.constant_names:
        shown, them = ("shows", "it") if len(names) == 1 else ("show", "them")
        listed = shorten(names, len(names))
        notes.append(f"{listed} {shown} a single level, so that nothing can be said of pairs with {them}.")
    if dates := sorted(_dates(data.domain)):
        listed = " or of ".join(map(repr, dates[:3]))
        more = " and of other dates" if len(dates) > 3 else ""
        notes.append(f"Nothing is said of pairs of parts of {listed}{more}: the calendar links them.")
    if never:
        pairs = [f"{data.names[a]} - {data.names[b]}" for a, b in sorted(never)]
        notes.append(f"Nothing is said of what is forbidden: {shorten(pairs)}.")
    return " ".join(notes)


def _forbidden_pairs(domain: Domain, edges: Iterable[Iterable[str]]) -> set[Pair]:
    """Return pairs of names as pairs of columns."""
    if isinstance(edges, str) or not isinstance(edges, Iterable):
        raise SettingError(f"forbidden_edges={edges!r} is no list; give a list of pairs of names.")
    pairs = set()
    for edge in edges:
        names = list(edge) if isinstance(edge, Iterable) and not isinstance(edge, str) else [edge]
        if len(names) != 2 or names[0] == names[1]:
            raise SettingError(
                f"forbidden_edges= holds {edge!r}; each edge is a pair of two different names."
            )
        a, b = sorted(map(domain.index, names))
        pairs.add((a, b))
    return pairs


def _gate_mask(
    domain: Domain, gates: Iterable[str] | None, forbidden: Iterable[str], target: str | None
) -> Any:
    if target is not None:
        domain.index(target)
    lists = []
    for setting, names in (
        ("gates", domain.names if gates is None else gates),
        ("forbidden_gates", forbidden),
    ):
        if isinstance(names, str) or not isinstance(names, Iterable):
            what = "one name" if isinstance(names, str) else "no list"
            raise SettingError(f"{setting}={names!r} is {what}; give a list of names.")
        lists.append(list(names))
        for name in lists[-1]:
            domain.index(name)
    allowed = {*lists[0]} - {*lists[1]}
    return np.array([name in allowed for name in domain.names], dtype=np.bool_)
