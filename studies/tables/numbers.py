"""Numbers: a column `y` depends on a number `x` monotonically, in a U shape, or not at all.

Compared on the same tables are the default, equal-frequency groups of 2 to 8, and cuts chosen by `y` on other
rows than those that are tested: on one half for the other half (honest), and crosswise.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt

from studies.tables.asking import Columns, Floats, drawn_category, findings_of, labelled, pairs_of, standard
from studies.tables.cases import Case, Record, grouped, share, table

TITLE = "Numbers"
SIZES = (200, 500, 2_000, 10_000)
GROUPS = tuple(range(2, 9))
SHAPES = ("monotone", "U", "none")
SUPERVISED = ("honest", "crosswise")
# What n times the squared correlation of y with the effect is: as strong as a link needs to be to be found in
# more than half of the tables.
STRENGTH = {"monotone": 32.0, "U": 48.0, "none": 0.0}
# Leaves of the tree that chooses cuts by y, the places where it may cut, and the rows of each leaf.
LEAVES, PLACES, LEAST_LEAF = 3, 31, 0.1


def _counts(rng: np.random.Generator, n: int) -> Floats:
    return rng.negative_binomial(1, 1 / 7, n).astype(np.float64)


XS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda rng, n: rng.normal(50, 10, n),
    "skewed": lambda rng, n: np.exp(rng.normal(7, 1, n)),
    "counts": _counts,
    "uniform": lambda rng, n: rng.uniform(0, 100, n),
}
YS = ("two levels", "three levels", "number")


def effect(x: Floats, shape: str) -> Floats:
    """Return what y follows, with variance 1: x itself, or how far its rank is from the middle."""
    if shape == "monotone":
        return standard(np.clip(standard(x), -4, 4))
    ranks = np.searchsorted(np.sort(x), x, side="left") + np.searchsorted(np.sort(x), x, side="right")
    return standard((ranks / (2 * len(x)) - 0.5) ** 2)


def make(shape: str, x_kind: str, y_kind: str, n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Draw a table: x, y, a number, a category and a scale that depend on nothing."""
    x = XS[x_kind](rng, n)
    strength = np.sqrt(STRENGTH[shape] / n)
    follows = effect(x, shape) if shape != "none" else np.zeros(n)
    y: npt.NDArray[Any]
    if y_kind == "number":
        y = np.round(100 + 15 * (strength * follows + np.sqrt(1 - strength**2) * rng.normal(size=n)), 1)
    elif y_kind == "two levels":
        # The variance of a share is at most a quarter: twice the weight is the same correlation.
        y = labelled(drawn_category(np.column_stack([np.ones(n), np.exp(2 * strength * follows)]), rng), "np")
    else:
        weight = np.sqrt(1.5) * strength * follows
        y = labelled(drawn_category(np.exp(np.column_stack([-weight, np.zeros(n), weight])), rng), "abc")
    return {
        "x": x,
        "y": y,
        "other": rng.normal(170, 8, n),
        "kind": labelled(rng.integers(0, 3, n), "rst"),
        "scale": rng.integers(1, 6, n),
    }


# ---------------------------------------------------------------------- cuts chosen by y


def indicators(y: npt.NDArray[Any]) -> Floats:
    """Return what a tree is to tell: a number as it is, or a column for each level."""
    if y.dtype.kind == "f":
        return standard(y)[:, None]
    levels: Floats = (y[:, None] == np.unique(y)[None, :]).astype(np.float64)
    return levels


def tree_cuts(x: Floats, told: Floats, leaves: int = LEAVES) -> list[float]:
    """Cut x, best first, where the squared error of what is told falls most."""
    places = np.unique(np.quantile(x, np.arange(1, PLACES + 1) / (PLACES + 1)))
    cuts: list[float] = []
    least = max(5, int(LEAST_LEAF * len(x)))
    while len(cuts) < leaves - 1:
        bounds = [-np.inf, *sorted(cuts), np.inf]
        best: tuple[float, float] | None = None
        for low, high in pairwise(bounds):
            inside = (x >= low) & (x < high)
            for place in places[(places > low) & (places < high)].tolist():
                left, right = inside & (x < place), inside & (x >= place)
                n_left, n_right = int(left.sum()), int(right.sum())
                if min(n_left, n_right) < least:
                    continue
                apart = told[left].mean(axis=0) - told[right].mean(axis=0)
                gain = float((apart**2).sum()) * n_left * n_right / (n_left + n_right)
                if best is None or gain > best[0]:
                    best = gain, place
        if best is None:
            break
        cuts.append(best[1])
    return sorted(cuts)


def honest(columns: Columns, rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    """Choose cuts on half of the rows; return the other half with x cut there, and settings."""
    n = len(columns["x"])
    chosen = rng.permutation(n) < n // 2
    cuts = tree_cuts(columns["x"][chosen], indicators(columns["y"])[chosen])
    kept = {name: column[~chosen] for name, column in columns.items()}
    kept["x"] = np.searchsorted(cuts, kept["x"], side="right")
    return kept, _ordered(kept["x"])


def crosswise(columns: Columns, rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    """Cut each half of the rows where the other half says; groups are in the order of y there."""
    n, told = len(columns["x"]), indicators(columns["y"])
    first = rng.permutation(n) < n // 2
    groups = np.zeros(n, dtype=np.int64)
    for half in (first, ~first):
        cuts = tree_cuts(columns["x"][~half], told[~half])
        leaf = np.searchsorted(cuts, columns["x"], side="right")
        means = np.array([told[~half & (leaf == k)].mean(axis=0) for k in range(len(cuts) + 1)])
        # By the level of y that differs most between the leaves; of two levels always by the same one.
        by = int(np.argmax(np.ptp(means, axis=0))) if means.shape[1] > 2 else means.shape[1] - 1
        rank = np.argsort(np.argsort(means[:, by]))
        groups[half] = rank[leaf[half]]
    return {**columns, "x": groups}, _ordered(groups)


def _ordered(groups: npt.NDArray[np.int64]) -> dict[str, Any]:
    levels = np.unique(groups).tolist()
    return {"ordered": {"x": levels}} if len(levels) > 2 else {}


# ---------------------------------------------------------------------- cases


def cases(quick: bool) -> list[Case]:
    """List the cases: every shape, kind of x, kind of y and number of rows."""
    made = []
    for shape, x_kind, y_kind, n in product(SHAPES, XS, YS, SIZES):
        number = 17 if not quick else int(n < SIZES[-1])
        made.append(Case("numbers", f"{shape}, {x_kind}, {y_kind}", n, number, block=4))
    return made


def measure(case: Case, rng: np.random.Generator) -> Record:
    """Look for the link of x and y, cut in every way; without an effect by default and by y only."""
    shape, x_kind, y_kind = case.name.split(", ")
    columns = make(shape, x_kind, y_kind, case.n, rng)
    ways: dict[str, tuple[Columns, dict[str, Any]]] = {"default": (columns, {})}
    if shape != "none":
        cut = ("x", "y") if y_kind == "number" else ("x",)
        ways |= {str(k): (columns, {"bins": dict.fromkeys(cut, k)}) for k in GROUPS}
    ways |= {"honest": honest(columns, rng), "crosswise": crosswise(columns, rng)}
    found, false = {}, {}
    for name, (kept, settings) in ways.items():
        said = pairs_of(findings_of(kept, **settings))
        found[name] = ("x", "y") in said
        false[name] = len(said - ({("x", "y")} if shape != "none" else set()))
    return {"found": found, "false": false}


# ---------------------------------------------------------------------- what is told


def best_groups(records: Sequence[Record]) -> tuple[int, int]:
    """Return the number of equal groups that finds most links, and how many it finds."""
    counts = {k: sum(one["found"][str(k)] for one in records) for k in GROUPS}
    best = max(GROUPS, key=lambda k: (counts[k], -k))
    return best, counts[best]


def section(records: Sequence[Record]) -> str:
    """Tell the power of each way to cut, and how often something is said of nothing."""
    parts = [
        "A column y depends on a number x, in a table with three other columns that depend on nothing. x is "
        "normal, log-normal, a skewed count with ties, or uniform; y has two levels, three levels, or is a "
        "number. Effects are weak, so that ways to cut differ: n times the squared correlation is "
        f"{STRENGTH['monotone']:g} (monotone) or {STRENGTH['U']:g} (U shape), whatever n is. Equal groups "
        "are `bins={'x': k}` (of y, too, where it is a number); the best of 2 to 8 is chosen after the fact, "
        "for each row of the table. `honest` chooses cuts by y on half of the rows and tests on the other "
        "half; `crosswise` cuts each half where the other half says.",
    ]
    for words, key in (
        ("By rows:", lambda one: (one["shape"], one["n"])),
        ("By kind of x:", lambda one: (one["shape"], one["x"])),
        ("By kind of y:", lambda one: (one["shape"], one["y"])),
    ):
        rows = []
        for (shape, what), group in grouped(_with_kinds(records), key):
            if shape == "none":
                continue
            total = len(group)
            best, found = best_groups(group)
            each = {
                way: sum(one["found"][way] for one in group)
                for way in ("default", *map(str, GROUPS), *SUPERVISED)
            }
            rows.append(
                (shape, f"{what:,}" if isinstance(what, int) else what, share(each["default"], total),
                 f"{best}: {share(found, total)}",
                 " ".join(f"{each[str(k)] / total:.2f}".removeprefix("0") for k in GROUPS),
                 *(share(each[way], total) for way in SUPERVISED))
            )  # fmt: skip
        if rows:
            headers = (
                "effect",
                "",
                "default",
                "best of 2 to 8",
                "2 3 4 5 6 7 8 groups",
                "honest",
                "crosswise",
            )
            parts.append(f"Links found. {words}\n\n{table(headers, rows)}")
    rows = []
    none = [one for one in _with_kinds(records) if one["shape"] == "none"]
    for (n,), group in grouped(none, lambda one: (one["n"],)):
        rows.append((f"{n:,}", *(_with_any(group, way) for way in ("default", *SUPERVISED))))
    if rows:
        rows.append(("all", *(_with_any(none, way) for way in ("default", *SUPERVISED))))
        parts.append(
            "Without an effect, tables with any finding (at most .05):\n\n"
            + table(("rows", "default", *SUPERVISED), rows)
        )
    return "\n\n".join(parts)


def _with_any(group: Sequence[Record], way: str) -> str:
    return share(sum(one["false"][way] > 0 for one in group), len(group))


def _with_kinds(records: Sequence[Record]) -> list[Record]:
    told = []
    for one in records:
        shape, x_kind, y_kind = one["name"].split(", ")
        told.append({**one, "shape": shape, "x": x_kind, "y": y_kind})
    return told


def lines(records: Sequence[Record]) -> list[tuple[str, str, str, bool | None]]:
    """Return what must be shown: the line, its aim, what was reached, and whether it is met."""
    made: list[tuple[str, str, str, bool | None]] = []
    told = _with_kinds(records)
    for shape in ("monotone", "U"):
        group = [one for one in told if one["shape"] == shape]
        if group:
            total = len(group)
            ours = sum(one["found"]["default"] for one in group)
            best = sum(best_groups(some)[1] for _, some in grouped(group, lambda one: (one["n"],)))
            by_y = max(sum(one["found"][way] for one in group) for way in SUPERVISED)
            words = f"{share(ours, total)}; best {share(best, total)}; by y {share(by_y, total)}"
            what = f"links found, {shape} effect, against the best of 2 to 8 groups"
            made.append((what, ">= best - .05", words, ours >= best - 0.05 * total))
    none = [one for one in told if one["shape"] == "none"]
    if none:
        k = sum(one["false"]["default"] > 0 for one in none)
        made.append(
            ("tables without an effect with a finding", "<= .05", share(k, len(none)), k <= 0.05 * len(none))
        )
    return made
