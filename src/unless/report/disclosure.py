"""What a page may show of few rows: `min_cell` hides small counts and coarsens what they could be found from.

The rule, as docs/limits.md states it. A count below `min_cell` is not in the file at all: it is null, and the
page shows "<5". Every other count is rounded to a multiple of `min_cell`, totals included, so that a hidden
count cannot be had by subtraction: in a line of a table with one hidden cell, the rounded total and the
rounded other cells leave several values open. Shares are made of the rounded counts. A test of a pair that
has a small count somewhere loses its statistic, p, q and percentages, and its V has one digit. Rows and
probabilities of a model, from which small counts could be read off, are left out.
"""

import re
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.data.showing import count
from unless.errors import SettingError
from unless.knowledge.evidence import PairEvidence
from unless.knowledge.sentences import contrast_text, more_rows_text, rows_text
from unless.knowledge.statements import Statement
from unless.typing import Integers

# Multiples of 2 are too fine: a hidden cell could be found from a rounded line.
LEAST = 3
_V = re.compile(r"\bV (=|at most|up to) (\.\d\d|1)(?!\d)")
_TAU = re.compile(r"\btau = (-?)(\.\d\d|1)(?!\d)")
_P = re.compile(r", p [=<] [^)]*(?=\))")
_BOTH_MISSING = re.compile(r"both missing in (\d[\d,]*) of (\d[\d,]*) rows")
# Numbers of rows in a note: "3 of 2,201 rows", "12 distinct rows", "'age' (3)", "3 missing".
_ROWS = re.compile(
    r"(?<![\w.,'\"])(?:\d{1,3}(?:,\d{3})+|\d+)(?= of \d| (?:\w+ )?rows?\b| (?:missing|values?)\b|\))"
)


@dataclass(frozen=True)
class Disclosure:
    """What a page keeps of the table: whether its rows, and the least count it shows (0 for all)."""

    rows: bool = True
    min_cell: int = 0

    @classmethod
    def of(cls, rows: object, min_cell: object) -> "Disclosure":
        """Check what was asked for; to hide small counts the rows must go."""
        if not isinstance(rows, bool):
            raise SettingError(f"rows={rows!r} must be True or False.")
        if min_cell is None:
            return cls(rows)
        if isinstance(min_cell, bool) or not isinstance(min_cell, int | np.integer) or min_cell < LEAST:
            raise SettingError(f"min_cell={min_cell!r} must be a whole number of {LEAST} or more, such as 5.")
        return cls(rows, int(min_cell))

    @property
    def keeps_rows(self) -> bool:
        """Whether the page holds the rows of the table."""
        return self.rows and not self.min_cell

    @property
    def keeps_charts(self) -> bool:
        """Whether the page holds tables of counts: without rows it does not, for they may be all rows."""
        return self.rows

    def summary(self, n_distinct: int) -> str:
        """Say in one line what the page reveals."""
        hidden = (
            f"Counts below {self.min_cell} are hidden and others rounded to multiples of {self.min_cell}; "
        )
        if self.keeps_rows:
            return f"This page holds {count(n_distinct, 'distinct row')} with their counts."
        if self.min_cell:
            return f"{hidden}no rows{'' if self.keeps_charts else ' and no tables of counts'} are kept."
        return "This page holds no rows and no tables of counts; its sentences tell numbers of rows."

    def check(self, data: Dataset) -> None:
        """Refuse a table that has fewer rows than may be shown."""
        if data.n_rows < self.min_cell:
            raise SettingError(
                f"The table has fewer rows than min_cell={self.min_cell}, so that nothing could be shown; "
                "lower it."
            )

    def shown(self, number: int) -> int | None:
        """Return a count as it may be shown: None if it is too small, else rounded."""
        if not self.min_cell:
            return number
        return None if number < self.min_cell else self.min_cell * round(number / self.min_cell)

    def words(self, number: int) -> str:
        """Write a count as it may be shown."""
        shown = self.shown(number)
        return f"fewer than {self.min_cell}" if shown is None else f"{shown:,}"

    def text(self, text: str) -> str:
        """Write a note so that the numbers of rows in it are those that may be shown."""
        if not self.min_cell:
            return text
        return _ROWS.sub(lambda match: self.words(_number(match[0])), text)

    def statement(self, one: Statement, data: Dataset) -> dict[str, Any]:
        """Return a statement as plain values, its counts and figures as they may be shown."""
        plain = one.to_dict(tables=False)
        if not self.min_cell:
            return plain
        small = [self._is_small(one.pair, evidence, data) for evidence in one.evidence]
        coarse = any(small)
        return plain | {
            "evidence": list(map(self._evidence, plain["evidence"], small)),
            "sentence": self._sentence(one, coarse),
            "n_rows": self.shown(one.n_rows),
            "n_broken": self.shown(one.n_broken) if one.n_broken else 0,
            "bound": _limit(plain["bound"], coarse),
            "more_rows": _significant(plain["more_rows"], 1),
            "support": _decimals(plain["support"], 2),
            "confidence": _decimals(plain["confidence"], 3),
        }

    def _evidence(self, plain: dict[str, Any], is_small: bool) -> dict[str, Any]:
        digits = 1 if is_small else 2
        shown = plain | {
            "n_rows": self.shown(plain["n_rows"]),
            "cramers_v": _decimals(plain["cramers_v"], digits),
            "cramers_v_limit": _limit(plain["cramers_v_limit"], is_small),
            "more_rows": _significant(plain["more_rows"], 1),
        }
        for name, n_digits in (("statistic", 3), ("p", 1), ("q", 1), ("information", 2)):
            shown[name] = None if is_small else _significant(plain[name], n_digits)
        if contrast := plain["contrast"]:
            shares = {name: _decimals(contrast[name], 2) for name in ("high", "low")}
            shown["contrast"] = None if is_small else contrast | shares
        if trend := plain.get("trend"):
            shown["trend"] = trend | {"tau": _decimals(trend["tau"], digits)}
        return shown

    def _sentence(self, one: Statement, coarse: bool) -> str:
        sentence = one.sentence
        for evidence in one.evidence:
            if coarse and evidence.contrast is not None:
                sentence = sentence.replace(f"{contrast_text(evidence.contrast)}; ", "")
        for n_rows in [
            *(evidence.n_rows for evidence in one.evidence),
            *([one.n_broken] if one.n_broken else []),
        ]:
            sentence = sentence.replace(rows_text(n_rows, one.n_rows), self._rows(n_rows, one.n_rows))
        sentence = _BOTH_MISSING.sub(
            lambda match: f"both missing in {self._rows(_number(match[1]), _number(match[2]))}", sentence
        )
        for more in {one.more_rows, *(evidence.more_rows for evidence in one.evidence)} - {None}:
            rounded = _significant(more, 1)
            sentence = sentence.replace(
                more_rows_text(int(more or 0), ""), more_rows_text(int(rounded or 0), "")
            )
        if not coarse:
            return sentence
        sentence = _V.sub(lambda match: f"V {match[1]} {_coarse_v(match)}", sentence)
        sentence = _TAU.sub(lambda match: f"tau = {match[1]}{_tenth(round(10 * float(match[2])))}", sentence)
        return _P.sub("", sentence)

    def _rows(self, n_rows: int, whole: int) -> str:
        if n_rows == whole:
            return f"{self.words(n_rows)} rows"
        return f"{self.words(n_rows)} of {self.words(whole)} rows"

    def _is_small(self, pair: tuple[str, str], evidence: PairEvidence, data: Dataset) -> bool:
        """Tell whether a count of the pair is too small to be shown here; levels not seen are left out."""
        table = pair_table(data, pair, evidence)
        seen = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        return bool((seen < self.min_cell).any())


def pair_table(data: Dataset, pair: tuple[str, str], evidence: PairEvidence) -> Integers:
    """Count the levels of a pair in the rows of one side."""
    a, b = (data.domain.index(name) for name in pair)
    inside = np.ones(len(data.counts), dtype=np.bool_)
    if evidence.where:
        inside = np.logical_or.reduce([region.holds(data.domain, data.rows) for region in evidence.where])
    shape = int(data.domain.n_levels[a]), int(data.domain.n_levels[b])
    table = np.zeros(shape, dtype=np.int64)
    np.add.at(table, (data.rows[inside, a], data.rows[inside, b]), data.counts[inside])
    return table


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _decimals(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _significant(value: float | None, digits: int) -> float | int | None:
    if value is None or not value or not isfinite(value):
        return value
    rounded = round(value, digits - 1 - floor(log10(abs(value))))
    return int(rounded) if isinstance(value, int) else rounded


def _limit(value: float | None, coarse: bool) -> float | None:
    """Round a bound; where it gets one digit, up, so that it stays a bound."""
    if value is None or not coarse:
        return _decimals(value, 2)
    return min(1.0, ceil(round(10 * value, 9)) / 10)


def _coarse_v(match: re.Match[str]) -> str:
    value = 10 * float(match[2])
    return _tenth(round(value) if match[1] == "=" else ceil(round(value, 6)))


def _tenth(tenths: int) -> str:
    return "1" if tenths >= 10 else f".{tenths}"
