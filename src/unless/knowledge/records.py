"""Statements as files keep them: words in model.json, figures and tables as arrays.

Tables are kept as the cells that are not empty: a table of two columns of 200 levels has 40,000 cells, and no
more of them are counted than there are rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from math import isnan, nan
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from unless.counting.reference import MAX_BYTES
from unless.data.domain import Domain
from unless.errors import FileFormatError
from unless.formats.record import STATEMENT_MEMBERS, StatementsRecord
from unless.formats.structures import check, from_npy, read_regions, to_npy, wire_regions
from unless.formats.wire import (
    WireContrast,
    WireEvidence,
    WireGate,
    WireStatement,
    WireStatements,
)
from unless.knowledge.evidence import Contrast, PairEvidence, Trend, cut_names
from unless.knowledge.sentences import Gate
from unless.knowledge.statements import KINDS, Statement, Statements
from unless.typing import Floats, Integers

# The columns of statements_figures.npy and of statements_numbers.npy, one row for each test.
FIGURES = ("statistic", "p", "q", "information", "cramers_v", "cramers_v_limit")
NUMBERS = ("n_rows", "df", "more_rows")


def statements_to_record(statements: Statements, *, with_tables: bool = True) -> StatementsRecord:
    """Write statements with their evidence; `with_tables=False` leaves out counts of rows."""
    domain = statements.domain or Domain(())
    sides = [evidence for one in statements for evidence in one.evidence]
    cells = [_cells(evidence, with_tables) for evidence in sides]
    wires = iter([_wire_evidence(*both, with_tables) for both in zip(sides, cells, strict=True)])
    wire = WireStatements(
        [_wire_statement(one, list(islice(wires, len(one.evidence)))) for one in statements],
        statements.note,
        dict(statements.settings),
    )
    strata = [_codes(evidence, domain) for evidence in sides] if with_tables else []
    figures = [[*(getattr(evidence, name) for name in FIGURES), *_shares(evidence)] for evidence in sides]
    numbers = [
        [evidence.n_rows, evidence.df, -1 if evidence.more_rows is None else evidence.more_rows]
        for evidence in sides
    ]
    members = (
        to_npy(_joined([where for where, _ in cells]), "<i8"),
        to_npy(_joined([counts for _, counts in cells]), "<i8"),
        to_npy(np.array(figures, dtype=np.float64).reshape(-1, len(FIGURES) + 2), "<f8"),
        to_npy(np.array(numbers, dtype=np.int64).reshape(-1, len(NUMBERS)), "<i8"),
        to_npy(_joined(strata), "<u2"),
    )
    return StatementsRecord(wire, dict(zip(STATEMENT_MEMBERS, members, strict=True)))


def statements_from_record(record: StatementsRecord, domain: Domain) -> Statements:
    """Read what `statements_to_record` wrote of some variables, or say what is wrong with it."""
    by_name = domain.select(sorted(domain.names))
    reader = _StatementReader.of(record, by_name)
    said = tuple(reader.statement(one) for one in record.wire.statements)
    return Statements(said, record.wire.note, dict(record.wire.settings), by_name)


def _wire_statement(one: Statement, evidence: list[WireEvidence]) -> WireStatement:
    gate = None
    if one.gate is not None:
        gate = WireGate(wire_regions(one.gate.linked), wire_regions(one.gate.unlinked))
    return WireStatement(
        one.kind, one.pair, one.sentence, one.n_rows, evidence, list(one.given), gate, one.confidence,
        one.is_finding, one.source, one.n_broken, one.support,
    )  # fmt: skip


def _wire_evidence(
    evidence: PairEvidence, cells: tuple[Integers, Integers], with_tables: bool
) -> WireEvidence:
    contrast, shown = None, evidence.contrast
    if shown is not None:
        contrast = WireContrast(shown.column, shown.level, shown.other, shown.at_high, shown.at_low)
    n_strata = len(evidence.tables) if with_tables else 0
    return WireEvidence(
        wire_regions(evidence.where), contrast, evidence.method, list(evidence.table_given), n_strata,
        len(cells[0]), evidence.design_effect,
    )  # fmt: skip


def _cells(evidence: PairEvidence, with_tables: bool) -> tuple[Integers, Integers]:
    flat = evidence.tables.ravel() if with_tables else np.zeros(0, dtype=np.int64)
    where = np.flatnonzero(flat)
    return where, flat[where]


def _codes(evidence: PairEvidence, domain: Domain) -> Integers:
    """Write the levels that make the strata as codes, stratum by stratum."""
    levels = [domain[name].levels for name in evidence.table_given]
    code_of = [{label: code for code, label in enumerate(some)} for some in levels]
    codes = [codes[label] for labels in evidence.strata for codes, label in zip(code_of, labels, strict=True)]
    return np.array(codes, dtype=np.int64)


def _shares(evidence: PairEvidence) -> tuple[float, float]:
    return (nan, nan) if evidence.contrast is None else (evidence.contrast.high, evidence.contrast.low)


def _joined(parts: Iterable[Integers]) -> Integers:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


@dataclass
class _StatementReader:
    """Reads evidence one after the other: where it is in the arrays follows from what came before."""

    domain: Domain
    figures: Floats
    numbers: Integers
    cells: Integers
    counts: Integers
    strata: npt.NDArray[np.uint16]
    n_read: int = 0
    n_cells: int = 0
    n_codes: int = 0

    @classmethod
    def of(cls, record: StatementsRecord, domain: Domain) -> "_StatementReader":
        """Find the arrays, of the sizes that follow from the words."""
        sides = [evidence for one in record.wire.statements for evidence in one.evidence]
        n_cells = sum(evidence.n_cells for evidence in sides)
        n_codes = sum(evidence.n_strata * len(evidence.table_given) for evidence in sides)
        members = record.members
        counts = from_npy(members, "statements_counts.npy", "<i8", (n_cells,))
        figures = from_npy(members, "statements_figures.npy", "<f8", (len(sides), len(FIGURES) + 2))
        numbers = from_npy(members, "statements_numbers.npy", "<i8", (len(sides), len(NUMBERS)))
        check((counts > 0).all() and counts.sum(dtype=np.float64) < 2**62, "a cell is not counted")
        check(not np.isnan(figures[:, : len(FIGURES)]).any(), "a figure of the evidence is not a number")
        check((numbers >= -1).all() and (numbers[:, :2] >= 0).all(), "a number of the evidence is negative")
        return cls(
            domain,
            figures,
            numbers,
            from_npy(members, "statements_cells.npy", "<i8", (n_cells,)),
            counts,
            from_npy(members, "statements_strata.npy", "<u2", (n_codes,)),
        )

    def statement(self, wire: WireStatement) -> Statement:
        """Read one statement, and the evidence that is next."""
        check(wire.kind in KINDS, f"there is no kind of statement {wire.kind!r}")
        a, b = wire.pair
        check(a < b, "a pair is not two names in order")
        for name in (a, b, *wire.given):
            self.domain.index(name)
        check(wire.source is None or wire.source in wire.pair, "a source is not of its pair")
        check(wire.confidence is None or 0 <= wire.confidence <= 1, "a confidence is no probability")
        check(len(wire.evidence) <= 2, "a statement has more than two sides")
        gate = None
        if wire.gate is not None:
            linked, unlinked = wire.gate.linked, wire.gate.unlinked
            gate = Gate(read_regions(self.domain, linked), read_regions(self.domain, unlinked))
        return Statement(
            kind=cast(Any, wire.kind), pair=(a, b), gate=gate, given=tuple(wire.given),
            confidence=wire.confidence,
            evidence=tuple(self._evidence(one, (a, b)) for one in wire.evidence), n_rows=wire.n_rows,
            sentence=wire.sentence, is_finding=wire.is_finding, source=wire.source, n_broken=wire.n_broken,
            support=wire.support,
        )  # fmt: skip

    def _evidence(self, wire: WireEvidence, pair: tuple[str, str]) -> PairEvidence:
        figures, numbers = self.figures[self.n_read].tolist(), self.numbers[self.n_read].tolist()
        self.n_read += 1
        n_rows, df, more_rows = numbers
        tables = self._tables(wire, pair)
        positions = self.domain.index(pair[0]), self.domain.index(pair[1])
        return PairEvidence(
            where=read_regions(self.domain, wire.where),
            n_rows=n_rows,
            df=df,
            more_rows=None if more_rows < 0 else more_rows,
            contrast=self._contrast(wire.contrast, pair, *figures[len(FIGURES) :]),
            method=wire.method,
            table_given=tuple(wire.table_given),
            tables=tables,
            strata=self._labels(wire),
            trend=Trend.of(self.domain, positions, tables),
            design_effect=wire.design_effect,
            **dict(zip(FIGURES, figures, strict=False)),
        )

    def _contrast(
        self, wire: WireContrast | None, pair: tuple[str, str], high: float, low: float
    ) -> Contrast | None:
        if wire is None:
            return None
        check({wire.column, wire.other} == {*pair}, "a contrast is not of its pair")
        for name, labels in ((wire.column, [wire.level]), (wire.other, [wire.at_high, wire.at_low])):
            check({*labels} <= {*self.domain[name].levels}, "a contrast is of levels that are not there")
        check(not isnan(high) and not isnan(low), "a contrast has no shares")
        cut = cut_names(self.domain[wire.column], self.domain[wire.other])
        return Contrast(wire.column, wire.level, wire.other, wire.at_high, high, wire.at_low, low, cut)

    def _tables(self, wire: WireEvidence, pair: tuple[str, str]) -> Integers:
        begin, self.n_cells = self.n_cells, self.n_cells + wire.n_cells
        if not wire.n_strata:
            check(not wire.n_cells, "cells belong to no table")
            return np.zeros((0, 0, 0), dtype=np.int64)
        shape = wire.n_strata, *(len(self.domain[name].levels) for name in pair)
        size = shape[0] * shape[1] * shape[2]
        # As large as tables are ever counted: a small file must not ask for much memory.
        check(8 * size <= MAX_BYTES, "a table is larger than those that are counted")
        cells = self.cells[begin : self.n_cells]
        in_order = (np.diff(cells) > 0).all() and (not len(cells) or (cells[0] >= 0 and cells[-1] < size))
        check(in_order, "the cells of a table are not in order")
        flat = np.zeros(size, dtype=np.int64)
        flat[cells] = self.counts[begin : self.n_cells]
        return flat.reshape(shape)

    def _labels(self, wire: WireEvidence) -> tuple[tuple[str, ...], ...]:
        variables = [self.domain[name] for name in wire.table_given]
        begin, self.n_codes = self.n_codes, self.n_codes + wire.n_strata * len(variables)
        codes = self.strata[begin : self.n_codes].reshape(wire.n_strata, len(variables)).tolist()
        try:
            return tuple(
                tuple(variable.levels[code] for variable, code in zip(variables, row, strict=True))
                for row in codes
            )
        except IndexError:
            raise FileFormatError("a stratum is of a level that is not there") from None
