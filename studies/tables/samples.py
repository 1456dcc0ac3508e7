"""Weighted and clustered samples: weights that undo a selection, weights that are noise, rows in clusters.

Compared on the same tables are the analysis that knows the weights or clusters, and the one that does not.
"""

from collections.abc import Sequence
from functools import lru_cache
from inspect import signature
from itertools import product
from typing import Any

import numpy as np

from studies.tables.asking import Floats, drawn_category, labelled, named, statements_of
from studies.tables.cases import Case, Line, Record, grouped, is_below, share, table

TITLE = "Weighted samples"
SIZES = (1_000,)
EFFECTS = (1.5, 3.0)
# Rows of a cluster, by design effect: with x the same in a cluster, 1 + (rows - 1) times the correlation of y
# within clusters.
CLUSTER = {1.5: 10, 3.0: 20}
SELECTED, SMOOTH = "selected by x and y", "selected smoothly"
DESIGNS = (SELECTED, SMOOTH, "noise weights", "clusters")
# A normal number is in the middle third between these.
THIRD = 0.4307
# The level at which p of x and y is looked at, beside the findings.
LEVEL = 0.05
# Correlation of x and y in the control.
LINKED = 0.25


def knows_weights() -> bool:
    """Tell whether tables may be read with weights and clusters."""
    import unless

    known: Any = unless
    return "weight_column" in signature(known.read).parameters


def make(design: str, effect: float, n: int, rng: np.random.Generator, link: float = 0.0) -> dict[str, Any]:
    """Draw a sample with this design effect, in whose population x and y are linked or not."""
    if design == "clusters":
        return _clustered(effect, n, rng, link)
    if design == "noise weights":
        columns = _columns(rng.normal(size=n), rng.normal(size=n), link, rng)
        return columns | {"weight": np.exp(np.sqrt(np.log(effect)) * rng.normal(size=n))}
    is_smooth = design == SMOOTH
    tilt = _smooth_tilt(effect) if is_smooth else _tilt(effect)
    x, y = _tilted(tilt, n, link, rng, is_smooth)
    return _columns(x, y, 0.0, rng) | {"weight": _weights(tilt, x, y, is_smooth)}


def _columns(x: Floats, y: Floats, link: float, rng: np.random.Generator) -> dict[str, Any]:
    n = len(x)
    y = link * x + np.sqrt(1 - link**2) * y
    return {
        "x": 50 + 10 * x,
        "y": labelled(np.searchsorted([-THIRD, THIRD], y), "abc"),
        "other": rng.normal(size=n),
        "kind": labelled(drawn_category(np.ones((n, 3)), rng), "rst"),
    }


def _weights(tilt: float, x: Floats, y: Floats, is_smooth: bool = False) -> Floats:
    """Return one over the chance to be in the sample: thirds of x and y that agree are drawn more often.

    Or, smoothly, the more the higher both are, or the lower: a few rows have very large weights.
    """
    if is_smooth:
        smooth: Floats = np.exp(-tilt * np.clip(x, -2, 2) * np.clip(y, -2, 2))
        return smooth
    thirds = [np.searchsorted([-THIRD, THIRD], one) - 1.0 for one in (x, y)]
    weights: Floats = np.exp(-tilt * thirds[0] * thirds[1])
    return weights


def _tilted(
    tilt: float, n: int, link: float, rng: np.random.Generator, is_smooth: bool = False
) -> tuple[Floats, Floats]:
    """Draw from the population, and keep rows by their chance."""
    xs: list[Floats] = []
    ys: list[Floats] = []
    n_kept = 0
    while n_kept < n:
        x = rng.normal(size=4 * n)
        y = link * x + np.sqrt(1 - link**2) * rng.normal(size=4 * n)
        most = np.exp(4 * tilt if is_smooth else tilt)
        kept = rng.random(4 * n) * most < 1 / _weights(tilt, x, y, is_smooth)
        xs.append(x[kept])
        ys.append(y[kept])
        n_kept += int(kept.sum())
    return np.concatenate(xs)[:n], np.concatenate(ys)[:n]


@lru_cache
def _smooth_tilt(effect: float) -> float:
    """Find the tilt of smooth weights by halving."""
    x, y = np.random.default_rng(0).normal(size=(2, 200_000))
    low, high = 0.0, 3.0
    for _ in range(30):
        tilt = (low + high) / 2
        weights = _weights(tilt, x, y, True)
        is_less = float(weights.mean() * (1 / weights).mean()) < effect
        low, high = (tilt, high) if is_less else (low, tilt)
    return low


def _tilt(effect: float) -> float:
    """Return the tilt whose weights have this design effect, 1 + their squared coefficient of variation.

    Over the nine cells of thirds, the means of w and of 1 / w are both 5/9 + 4/9 cosh(tilt).
    """
    return float(np.arccosh((np.sqrt(effect) - 5 / 9) * 9 / 4))


def _clustered(effect: float, n: int, rng: np.random.Generator, link: float) -> dict[str, Any]:
    rows = CLUSTER[effect]
    within = (effect - 1) / (rows - 1)
    cluster = np.arange(n) // rows
    n_clusters = int(cluster[-1]) + 1
    x = rng.normal(size=n_clusters)[cluster]
    y = np.sqrt(within) * rng.normal(size=n_clusters)[cluster] + np.sqrt(1 - within) * rng.normal(size=n)
    return _columns(x, y, link, rng) | {"school": np.char.add("s", cluster.astype(str)).astype(object)}


def cases(quick: bool) -> list[Case]:
    """List the cases: null and control, by design, design effect and rows."""
    made = []
    for kind, design, effect, n in product(("apart", "linked"), DESIGNS, EFFECTS, SIZES):
        number = 204
        made.append(
            Case(
                "samples",
                f"{kind}, {design}, {effect:g}",
                n,
                (1 if n == SIZES[0] else 0) if quick else number,
            )
        )
    return made


def measure(case: Case, rng: np.random.Generator) -> Record:
    """Say whether x and y are among the findings: with weights or clusters, and without."""
    kind, design, effect = case.name.split(", ")
    columns = make(design, float(effect), case.n, rng, LINKED if kind == "linked" else 0.0)
    column = "school" if design == "clusters" else "weight"
    plain = {name: values for name, values in columns.items() if name != column}
    found = {"unweighted": _found(plain)}
    if knows_weights():
        setting = "cluster_column" if design == "clusters" else "weight_column"
        found["weighted"] = _found(columns, **{setting: column})
    return {"found": found}


def _found(columns: dict[str, Any], **settings: Any) -> list[int]:
    """Tell whether x and y are among the findings, whether their p is below the level, and other findings."""
    statements = statements_of(columns, **settings)
    about = [one for one in statements if named(*one.pair) == ("x", "y")]
    return [
        int(any(one.is_finding for one in about)),
        int(any(one.evidence[0].p < LEVEL for one in about if one.evidence)),
        sum(named(*one.pair) != ("x", "y") for one in statements.findings),
    ]


def section(records: Sequence[Record]) -> str:
    """Tell how often x and y are linked falsely with and without weights, and rightly."""
    rows = []
    for (design, effect, n), group in grouped(
        _with_kinds(records), lambda one: (one["design"], one["effect"], one["n"])
    ):
        cells: list[str] = [design, f"{effect:g}", f"{n:,}"]
        for kind, place, way in (
            *product(("apart",), (1, 0), ("weighted", "unweighted")),
            *product(("linked",), (0,), ("weighted", "unweighted")),
        ):
            some = [one for one in group if one["kind"] == kind and way in one["found"]]
            cells.append(share(sum(one["found"][way][place] for one in some), len(some)) if some else "-")
        rows.append(tuple(cells))
    words = (
        "In the population x (a number) and y (three levels) are independent. `selected by x and y`: rows "
        "in the same outer third of both are drawn more often, those in opposite thirds less, and weights "
        "undo it; `selected smoothly`: the more often the further both are from the middle on one side, so "
        "that few rows have very large weights. `noise weights` depend on nothing. `clusters`: x is the same "
        "for all rows of a cluster, "
        "and y is alike in them. What is said of x and y is looked at with weights or clusters told to "
        f"Unless, and without: how often p is below {LEVEL:g}, and how often the two are a finding, which "
        f"takes a far smaller p. Both should be at most .05. In the control the correlation is {LINKED:g}."
    )
    if not rows:
        return words
    headers = (
        "design", "effect", "rows", "p < .05, told", "p < .05, not told", "false finding, told",
        "false finding, not told", "control: found, told", "control: found, not told",
    )  # fmt: skip
    return f"{words}\n\n{table(headers, rows)}"


def _with_kinds(records: Sequence[Record]) -> list[Record]:
    told = []
    for one in records:
        kind, design, effect = one["name"].split(", ")
        told.append({**one, "kind": kind, "design": design, "effect": float(effect)})
    return told


def lines(records: Sequence[Record]) -> list[Line]:
    """Return what must be shown."""
    made: list[Line] = []
    for (effect,), group in grouped(_with_kinds(records), lambda one: (one["effect"],)):
        apart = [one for one in group if one["kind"] == "apart"]
        some = [one for one in apart if "weighted" in one["found"]]
        for place, what in ((1, "p < .05"), (0, "false links")):
            k = sum(one["found"]["weighted"][place] for one in some)
            made.append(
                (f"samples with design effect {effect:g}, told: {what}", "<= .05",
                 share(k, len(some)) if some else "not run", is_below(k, len(some), 0.05))
            )  # fmt: skip
        for design in (SELECTED, SMOOTH):
            chosen = [one for one in some if one["design"] == design]
            k = sum(one["found"]["weighted"][1] for one in chosen)
            made.append((f"the same, {design}, told: p < .05", "<= .05", share(k, len(chosen)),
                         is_below(k, len(chosen), 0.05)))  # fmt: skip
        for design in (SELECTED, "clusters"):
            rest = [one for one in apart if one["design"] == design]
            k = sum(one["found"]["unweighted"][1] for one in rest)
            made.append((f"the same, {design}, not told: p < .05", "fails", share(k, len(rest)), None))
    return made
