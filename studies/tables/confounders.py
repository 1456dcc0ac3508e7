"""Confounders that are cut: a number `z` drives `x` and `y`, and nothing joins these two.

Beside it stands the positive control: the same law, and a link of x and y on top.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from studies.tables.asking import Floats, findings_of, labelled, standard
from studies.tables.cases import Case, Line, Record, grouped, is_below, share, table

TITLE = "Confounders that are cut"
SIZES = (500, 2_000, 5_000, 20_000)
# How strongly x and y follow z: correlation with what they follow. The last are noisy functions of z.
STRENGTHS = {"moderate": 0.5, "strong": 0.8, "noisy function": 0.95}
SHAPES = ("linear", "bent", "growing", "waves")
ENDS = ("numbers", "mixed", "categories")
# Partial correlation of x and y given z where they are linked.
LINKED = 0.25


def follows(z: Floats, shape: str) -> Floats:
    """Return what x and y follow, with variance 1."""
    if shape == "bent":
        return standard(z**2)
    if shape == "growing":
        return standard(np.exp(np.minimum(z, 3.0)))
    return standard(np.sin(2.5 * z)) if shape == "waves" else standard(z)


def make(
    shape: str, strength: str, ends: str, n: int, rng: np.random.Generator, link: float = 0.0
) -> dict[str, Any]:
    """Draw a table: z, x and y that follow it, and two columns that depend on nothing."""
    z = rng.normal(size=n)
    rho = STRENGTHS[strength]
    common, own = follows(z, shape), np.sqrt(1 - rho**2)
    noise = rng.normal(size=n)
    other = link * noise + np.sqrt(1 - link**2) * rng.normal(size=n)
    x, y = rho * common + own * noise, rho * common + own * other
    columns: dict[str, Any] = {"z": 40 + 12 * z, "x": 10 + 3 * x, "y": 250 + 60 * y}
    if ends == "categories":
        columns["x"] = labelled(np.searchsorted([-0.5, 0.5], x), "lmh")
    if ends != "numbers":
        columns["y"] = labelled((y > 0).astype(np.int64), "np")
    columns["other"] = rng.uniform(0, 1, n)
    columns["kind"] = labelled(rng.integers(0, 3, n), "rst")
    return columns


def cases(quick: bool) -> list[Case]:
    """List the cases; the positive control has moderate and strong confounders."""
    made = []
    for kind, (strength, shape, ends, n) in product(
        ("apart", "linked"), product(STRENGTHS, SHAPES, ENDS, SIZES)
    ):
        if kind == "linked" and strength == "noisy function":
            continue
        number = 17 if kind == "apart" else 9
        if quick:
            number = int(n <= SIZES[1])
        made.append(Case("confounders", f"{kind}, {strength}, {shape}, {ends}", n, number))
    return made


def measure(case: Case, rng: np.random.Generator) -> Record:
    """Say whether x and y are among the findings, how, and whether anything else false is."""
    kind, strength, shape, ends = case.name.split(", ")
    columns = make(shape, strength, ends, case.n, rng, LINKED if kind == "linked" else 0.0)
    said = findings_of(columns)
    about = [one.kind for one in said if one.pair == ("x", "y")]
    false = [one.pair for one in said if one.pair not in (("x", "y"), ("x", "z"), ("y", "z"))]
    return {"kinds": about, "others": len(false), "causes": len({one.pair for one in said} & _CAUSES)}


_CAUSES = {("x", "z"), ("y", "z")}


def _with_kinds(records: Sequence[Record]) -> list[Record]:
    keys = ("kind", "strength", "shape", "ends")
    return [{**one, **dict(zip(keys, one["name"].split(", "), strict=True))} for one in records]


def section(records: Sequence[Record]) -> str:
    """Tell how often the two are linked falsely, and how often rightly."""
    told = _with_kinds(records)
    parts = [
        "A number z drives x and y, which follow it linearly, by its square, exponentially or in waves; both "
        "are numbers, or one or both are categories. `moderate` and `strong` are correlations of "
        f"{STRENGTHS['moderate']:g} and {STRENGTHS['strong']:g} with what is followed, `noisy function` "
        f"{STRENGTHS['noisy function']:g}. Nothing joins x and y, so that any finding about the two is false "
        f"(at most .05). In the control their partial correlation given z is {LINKED:g}."
    ]
    for words, key in (
        ("By rows", lambda one: (one["n"],)),
        ("By shape", lambda one: (one["shape"],)),
        ("By ends", lambda one: (one["ends"],)),
    ):
        rows = []
        for (what,), group in grouped(told, key):
            cells = [f"{what:,}" if isinstance(what, int) else what]
            for strength in STRENGTHS:
                apart = [one for one in group if one["kind"] == "apart" and one["strength"] == strength]
                cells.append(share(sum(bool(one["kinds"]) for one in apart), len(apart)))
            linked = [one for one in group if one["kind"] == "linked"]
            cells.append(share(sum(bool(one["kinds"]) for one in linked), len(linked)))
            rows.append(tuple(cells))
        if rows:
            headers = ("", *(f"false, {name}" for name in STRENGTHS), "control: link found")
            parts.append(f"{words}:\n\n{table(headers, rows)}")
    return "\n\n".join(parts)


def lines(records: Sequence[Record]) -> list[Line]:
    """Return what must be shown."""
    told, made = _with_kinds(records), []
    for strength in STRENGTHS:
        apart = [one for one in told if one["kind"] == "apart" and one["strength"] == strength]
        k = sum(bool(one["kinds"]) for one in apart)
        made.append(
            (f"a confounder that is cut, {strength}: false links", "<= .05", share(k, len(apart)),
             is_below(k, len(apart), 0.05))
        )  # fmt: skip
    linked = [one for one in told if one["kind"] == "linked"]
    k = sum(bool(one["kinds"]) for one in linked)
    made.append(("the same, true links found", "beside", share(k, len(linked)), None))
    return made
