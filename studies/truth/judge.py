"""Judges sentences against a known law: which of them are true, which gates and links were found.

A statement is any object with `kind`, `pair`, `gate`, `confidence`, `source`, `share_broken` and `bound`;
of those a kind does not need, none is read.

>>> from types import SimpleNamespace
>>> from studies.truth.laws import gated
>>> law = gated(np.random.default_rng(0))
>>> is_true(law, SimpleNamespace(kind="linked", pair=law.gates[0].pair, gate=None))
True
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt
from typing import Any

import numpy as np

from studies.truth.laws import LEAST_BITS, Bools, Codes, Floats, Law, TrueGate, distinct_settings, named
from unless.data.domain import Region

FINDINGS = ("linked", "gated", "differs", "partly", "determined")
# Log odds ratios further apart than this are not the same.
LEAST_ODDS = 1e-6
# A gate of a network counts as true if the information outside is at most this share of that inside.
GATE_RULE = 0.1
# A column is nearly a function of another if at most this share of the rows break it.
NEARLY = 0.01
# How a true gate may have been said, the best first.
GATE_OUTCOMES = ("exact", "levels", "added", "fewer", "other", "differs", "partly", "linked", "missed")


@dataclass(frozen=True)
class Verdict:
    """Whether a sentence is true, and the figures that decided it.

    `strict` is the definition; `rule` is the one for networks, whose tiny effects no table can show: a gate
    may leave a tenth of its information outside, a bound need hold only for V pooled over the rows, and a
    column nearly determined may break the rule in one row of a hundred. Both are None for kinds that are
    not judged. `inside` and `outside` are bits weighted by the probability of their rows, `covered` the
    share of rows in which a bound holds.
    """

    strict: bool | None
    rule: bool | None
    inside: float = 0.0
    outside: float = 0.0
    largest_v: float | None = None
    covered: float | None = None


def is_true(law: Law, statement: Any, rows: Codes | None = None, *, rule: bool = False) -> bool | None:
    """Tell whether a sentence is true, or None if its kind claims nothing that can be judged."""
    verdict = judge(law, statement, rows)
    return verdict.rule if rule else verdict.strict


def judge(law: Law, statement: Any, rows: Codes | None = None) -> Verdict:
    """Judge one sentence by its kind, over given rows or those by which the law judges its pairs."""
    kind = statement.kind
    a, b = statement.pair
    if kind in FINDINGS[:4] and law.is_apart(a, b, names_of(statement.gate)):
        return Verdict(False, False)
    if kind == "linked":
        return _judge_linked(law, statement, rows)
    if kind in ("gated", "differs", "partly"):
        return _judge_sides(law, statement, rows)
    if kind == "determined":
        return _judge_determined(law, statement)
    if kind == "unlinked":
        return _judge_bound(law, statement, rows)
    return Verdict(None, None)


def _judge_linked(law: Law, statement: Any, rows: Codes | None) -> Verdict:
    _, weights, information = _informed(law, statement.pair, (), rows)
    linked = bool((information > LEAST_BITS).any())
    return Verdict(linked, linked, inside=float(information @ weights))


def _judge_sides(law: Law, statement: Any, rows: Codes | None) -> Verdict:
    names = names_of(statement.gate)
    if set(names) & set(statement.pair):
        return Verdict(False, False)
    judged, weights, information = _informed(law, statement.pair, names, rows)
    inside = in_regions(law, statement.gate.linked, judged)
    linked = information > LEAST_BITS
    within, beyond = bool(linked[inside].any()), bool(linked[~inside].any())
    bits_in = float(information[inside] @ weights[inside])
    bits_out = float(information[~inside] @ weights[~inside])
    strict = rule = within
    if statement.kind == "gated":
        strict = within and not beyond
        rule = within and bits_out <= GATE_RULE * bits_in
    elif statement.kind == "differs":
        strict = rule = within and beyond and _odds_differ(law, statement.pair, names, judged, inside)
    return Verdict(strict, rule, bits_in, bits_out)


def _judge_determined(law: Law, statement: Any) -> Verdict:
    column = next(name for name in statement.pair if name != statement.source)
    broken, by_constant = law.broken(statement.source, column)
    said = float(getattr(statement, "share_broken", None) or 0.0)
    holds = by_constant > 0 and broken <= max(said, 1e-12)
    return Verdict(holds, holds or broken <= min(NEARLY, by_constant / 2))


def _judge_bound(law: Law, statement: Any, rows: Codes | None) -> Verdict:
    a, b = statement.pair
    bound = float(getattr(statement, "bound", None) or 0.0) + 1e-6
    if law.is_apart(a, b):
        return Verdict(True, True, largest_v=0.0, covered=1.0)
    judged, weights, _ = _informed(law, statement.pair, (), rows)
    v = law.conditional_v(a, b, judged)
    largest, pooled = float(v.max()), float(np.sqrt(v**2 @ weights))
    covered = float(weights[v <= bound].sum())
    return Verdict(largest <= bound, pooled <= bound, largest_v=largest, covered=covered)


def in_regions(law: Law, regions: Iterable[Region], rows: Codes) -> Bools:
    """Tell, for each row, whether one of the regions holds it."""
    inside = np.zeros(len(rows), dtype=np.bool_)
    for region in regions:
        inside |= region.holds(law.domain, rows.astype(np.uint16))
    return inside


def _informed(
    law: Law, pair: tuple[str, str], names: Sequence[str], rows: Codes | None
) -> tuple[Codes, Floats, Floats]:
    """Return rows, their probabilities, and the bits that a pair shares in each; kept with the law."""
    a, b = pair
    if rows is not None:
        return rows, np.full(len(rows), 1 / max(len(rows), 1)), law.information(a, b, rows, names)
    # Of a network the rows are always the same, and a gate matters only if it would be left out.
    kept_in = tuple(sorted(set(names) & set(law.left_out(a, b)))) if law.by_rows else tuple(names)
    key = ("informed", *named(a, b), kept_in)
    if key not in law.cache:
        judged, weights = law.settings(a, b, names)
        law.cache[key] = (judged, weights, law.information(a, b, judged, names))
    kept: tuple[Codes, Floats, Floats] = law.cache[key]
    return kept


def _odds_differ(law: Law, pair: tuple[str, str], names: Sequence[str], rows: Codes, inside: Bools) -> bool:
    """Tell whether crossing the gate, all other columns held fixed, changes some odds ratio of a pair.

    Where no setting of the other columns occurs on both sides, rows are compared whatever their settings.
    """
    given = [place for place in law.given(*pair, names) if law.names[place] not in names]
    odds = law.effects(*pair, rows, names)
    group, _ = distinct_settings(rows[:, given], [law.sizes[place] for place in given])
    shared = np.intersect1d(group[inside], group[~inside])
    if len(shared):
        chosen = np.isin(group, shared)
        group, odds, inside = np.searchsorted(shared, group[chosen]), odds[chosen], inside[chosen]
    else:
        group = np.zeros_like(group)
    bounds = [_extremes(odds[side], group[side], int(group.max()) + 1) for side in (inside, ~inside)]
    (low_in, high_in), (low_out, high_out) = bounds
    with np.errstate(invalid="ignore"):
        # Equal infinities differ by nan, which is no difference.
        apart = (high_in - low_out > LEAST_ODDS) | (high_out - low_in > LEAST_ODDS)
    return bool(apart.any())


def _extremes(odds: Floats, group: Codes, n_groups: int) -> tuple[Floats, Floats]:
    """Return the least and the largest of each log odds ratio in each group; undefined ones are left out."""
    low, high = (np.full((n_groups, odds.shape[1]), sign * np.inf) for sign in (1, -1))
    defined = ~np.isnan(odds)
    np.minimum.at(low, group, np.where(defined, odds, np.inf))
    np.maximum.at(high, group, np.where(defined, odds, -np.inf))
    empty = np.ones_like(low, dtype=np.bool_)
    np.logical_and.at(empty, group, ~defined)
    low[empty] = high[empty] = np.nan
    return low, high


# ---------------------------------------------------------------------- lists of statements


def findings_of(statements: Iterable[Any]) -> list[Any]:
    """Return the statements that claim a dependence."""
    return [one for one in statements if one.kind in FINDINGS]


def records(law: Law, statements: Iterable[Any]) -> list[dict[str, Any]]:
    """Return, for each finding, plain values: what it claims, how sure it is, and whether it is true."""
    told = []
    for one in findings_of(statements):
        verdict = judge(law, one)
        told.append(
            {
                "kind": one.kind,
                "pair": list(one.pair),
                "confidence": one.confidence,
                "true": verdict.strict,
                "rule": verdict.rule,
                "gate": list(names_of(one.gate)),
            }
        )
    return told


def names_of(gate: Any) -> tuple[str, ...]:
    """Return the columns on which a gate depends, sorted; none where there is no gate."""
    return () if gate is None else tuple(sorted({name for region in gate.linked for name in region.names}))


def exact_gates(law: Law, statements: Iterable[Any]) -> list[tuple[TrueGate, str]]:
    """Say of each true gate how it was said: one of GATE_OUTCOMES, the best if it was said twice."""
    said = findings_of(statements)
    outcomes = []
    for gate in law.gates:
        hows = [_how_said(law, gate, one) for one in said if tuple(one.pair) == gate.pair]
        outcomes.append((gate, min(hows, key=GATE_OUTCOMES.index, default="missed")))
    return outcomes


def count_gates(law: Law, statements: Iterable[Any]) -> dict[int, Counter[str]]:
    """Count the outcomes of gates of one variable, of two, ..."""
    counts: dict[int, Counter[str]] = {}
    for gate, how in exact_gates(law, statements):
        counts.setdefault(len(gate.where), Counter())[how] += 1
    return counts


def _how_said(law: Law, gate: TrueGate, statement: Any) -> str:
    if statement.kind != "gated":
        return "linked" if statement.kind == "determined" else str(statement.kind)
    said, true = set(names_of(statement.gate)), set(gate.names)
    if said == true:
        return "exact" if _same_levels(law, gate, statement.gate) else "levels"
    return "added" if said > true else "fewer" if said < true else "other"


def _same_levels(law: Law, gate: TrueGate, said: Any) -> bool:
    """Tell whether the settings of the gating columns said to have the link are the true ones."""
    places = [law.domain.index(name) for name in gate.names]
    cells = np.array(list(product(*(range(law.sizes[place]) for place in places))), dtype=np.int64)
    rows = np.zeros((len(cells), len(law.names)), dtype=np.int64)
    rows[:, places] = cells
    true = in_regions(law, (Region.of(law.domain, dict(gate.where)),), rows)
    return bool(np.array_equal(true, in_regions(law, said.linked, rows)))


def link_recall(
    law: Law, statements: Iterable[Any], thresholds: Sequence[float] = (0.001, 0.01)
) -> dict[float, tuple[int, int]]:
    """Return, for each least I(a; b | all others) in bits, how many of such links were found, and all.

    Columns that determine one another carry the same links; such links count once, whichever is named.
    """
    class_of = _classes(law)
    found = {frozenset(class_of[name] for name in one.pair) for one in findings_of(statements)}
    strengths: dict[frozenset[str], float] = {}
    for a, b in law.pairs:
        between = frozenset((class_of[a], class_of[b]))
        if len(between) == 2 and not law.is_apart(a, b):
            strengths[between] = max(law.strength(a, b), strengths.get(between, 0.0))
    answer = {}
    for least in thresholds:
        links = [between for between, strength in strengths.items() if strength >= least]
        answer[least] = (sum(between in found for between in links), len(links))
    return answer


def _classes(law: Law) -> dict[str, str]:
    class_of = {name: name for name in law.names}
    for source, column in sorted(law.functions):
        old, new = class_of[column], class_of[source]
        class_of = {name: new if one == old else one for name, one in class_of.items()}
    return class_of


def function_recall(law: Law, statements: Iterable[Any]) -> tuple[int, int]:
    """Return how many of the pairs in which one column determines the other are said so, of all."""
    pairs = {named(*pair) for pair in law.functions}
    said = {named(*one.pair) for one in statements if one.kind == "determined"}
    return len(pairs & said), len(pairs)


def wilson(k: int, n: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of k in n; (0, 1) if there is none."""
    if not n:
        return 0.0, 1.0
    share, spread = k / n, z * z / n
    middle = (share + spread / 2) / (1 + spread)
    half = sqrt(share * (1 - share) * spread + spread * spread / 4) / (1 + spread)
    return max(0.0, middle - half) if k else 0.0, min(1.0, middle + half) if k < n else 1.0
