"""Missing values: holes at random, holes that depend on another column, questions skipped together.

Compared on the same tables are the default, `missing="drop"`, and the table without holes.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from studies.tables.asking import drawn_category, findings_of, labelled, named
from studies.tables.cases import Case, Line, Record, grouped, is_below, share, table

TITLE = "Missing values"
SIZES = (1_200,)
RATES = (0.05, 0.1, 0.2, 0.4)
MECHANISMS = ("at random", "by a column", "skipped together")
# region - income - job - owner, region - hours; mood depends on nothing.
LINKS = frozenset(
    named(*pair) for pair in (("region", "income"), ("income", "job"), ("job", "owner"), ("region", "hours"))
)
HOLED = ("income", "job", "owner", "hours", "mood")
SKIPPED = ("job", "hours", "mood")
# How much more often than on average rows of each region lack a value.
_BY_REGION = np.array([0.4, 1.0, 1.6])


def make(n: int, rng: np.random.Generator, strength: float = 1.0) -> dict[str, npt.NDArray[Any]]:
    """Draw a table whose links are known; with a strength of 0 there are none."""
    region = rng.integers(0, 3, n)
    income = strength * 0.35 * (region - 1) + rng.normal(size=n)
    job = drawn_category(np.exp(strength * 0.45 * income[:, None] * np.array([-1, 0, 1])), rng)
    owner = drawn_category(np.exp(strength * 0.4 * (job[:, None] - 1) * np.array([-1, 1]) / 1.0), rng)
    hours = 38 + 6 * (strength * 0.3 * (region - 1) + rng.normal(size=n))
    return {
        "region": labelled(region, "nsw"),
        "income": np.round(np.exp(8 + 0.5 * income)),
        "job": labelled(job, "abc"),
        "owner": labelled(owner, "ny"),
        "hours": np.round(hours, 1),
        "mood": labelled(rng.integers(0, 4, n), "klmo"),
    }


def with_holes(
    columns: dict[str, npt.NDArray[Any]], mechanism: str, rate: float, rng: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    """Make holes: this share of each column that has any."""
    n = len(columns["region"])
    code = np.searchsorted(np.array(["n", "s", "w"]), columns["region"].astype(str))
    chance = np.full(n, rate) if mechanism == "at random" else rate * _BY_REGION[code]
    together = rng.random(n) < chance
    made = dict(columns)
    for name in SKIPPED if mechanism == "skipped together" else HOLED:
        lacks = together if mechanism == "skipped together" else rng.random(n) < chance
        column = columns[name].astype(object if columns[name].dtype == object else np.float64)
        column[lacks] = np.nan if column.dtype != object else None
        made[name] = column
    return made


def cases(quick: bool) -> list[Case]:
    """List the cases: tables with links, and tables without any."""
    return [
        *(Case("missing", "links", n, (1 if n == SIZES[0] else 0) if quick else 204) for n in SIZES),
        Case("missing", "no links", 1_000, 1 if quick else 204),
    ]


def measure(case: Case, rng: np.random.Generator) -> Record:
    """Make all kinds of holes in one table; count true and false findings of the default and of `drop`."""
    has_links = case.name == "links"
    columns = make(case.n, rng, float(has_links))
    links = LINKS if has_links else frozenset()
    told: dict[str, list[int]] = {"full": _judged(columns, links)} if has_links else {}
    for mechanism, rate in product(MECHANISMS, RATES):
        holed = with_holes(columns, mechanism, rate, rng)
        told[f"{mechanism} {rate:g}"] = _judged(holed, links)
        if has_links:
            told[f"{mechanism} {rate:g} drop"] = _judged(holed, links, missing="drop")
    return {"told": told}


def _judged(columns: dict[str, Any], links: frozenset[tuple[str, str]], **settings: Any) -> list[int]:
    """Count true findings, false ones, and those of the false whose sentence speaks of missing values."""
    from unless.errors import UnlessError

    try:
        said = findings_of(columns, **settings)
    except UnlessError:
        # Nothing may be left where all incomplete rows are dropped.
        return [0, 0, 0]
    false = [one for one in said if one.pair not in links]
    return [
        len({one.pair for one in said} & links),
        len(false),
        sum("missing" in one.sentence for one in false),
    ]


def section(records: Sequence[Record]) -> str:
    """Tell how many findings are true, and how many links are found."""
    parts = [
        f"Six columns, two of them numbers, {len(LINKS)} true links in a tree, one column that depends on "
        "nothing. Holes in five columns at random, or by the region (rows of one region lack a value four "
        "times as often as those of another), or in three columns skipped together, by the region. Found: of "
        "the true links, those among the findings, by default, with `missing='drop'`, and without holes. A "
        "false finding is one about a pair that the law does not link, whatever the sentence says of missing "
        "values."
    ]
    links = [one for one in records if one["name"] == "links"]
    rows = []
    for (n,), group in grouped(links, lambda one: (one["n"],)):
        for mechanism, rate in product(MECHANISMS, RATES):
            key = f"{mechanism} {rate:g}"
            true, false = (sum(one["told"][key][k] for one in group) for k in (0, 1))
            dropped, false_drop = (sum(one["told"][f"{key} drop"][k] for one in group) for k in (0, 1))
            full = sum(one["told"]["full"][0] for one in group)
            most = len(LINKS) * len(group)
            rows.append(
                (f"{n:,}", mechanism, f"{rate:g}", share(false, true + false),
                 share(false_drop, dropped + false_drop), share(true, most), share(dropped, most),
                 share(full, most))
            )  # fmt: skip
    if rows:
        headers = (
            "rows",
            "holes",
            "rate",
            "findings false",
            "false, `drop`",
            "found",
            "found, `drop`",
            "found, no holes",
        )
        parts.append(table(headers, rows))
    none = [one for one in records if one["name"] == "no links"]
    if none:
        by_rate: list[tuple[str, ...]] = [
            (mechanism, *(share(_any_false(none, f"{mechanism} {rate:g}"), len(none)) for rate in RATES))
            for mechanism in MECHANISMS
        ]
        parts.append(
            "Tables of 1,000 rows in which nothing is linked, with any finding (at most .05):\n\n"
            + table(("holes", *(f"rate {rate:g}" for rate in RATES)), by_rate)
        )
    return "\n\n".join(parts)


def _any_false(group: Sequence[Record], key: str) -> int:
    return sum(one["told"][key][1] > 0 for one in group)


def lines(records: Sequence[Record]) -> list[Line]:
    """Return what must be shown."""
    made: list[Line] = []
    links = [one for one in records if one["name"] == "links"]
    none = [one for one in records if one["name"] == "no links"]
    for mechanism in MECHANISMS:
        keys = [f"{mechanism} {rate:g}" for rate in RATES]
        true, false = (sum(one["told"][key][k] for one in links for key in keys) for k in (0, 1))
        dropped = sum(one["told"][f"{key} drop"][0] for one in links for key in keys)
        most = len(LINKS) * len(links) * len(keys)
        made.append((f"holes {mechanism}: false findings", "<= .05", share(false, true + false),
                     is_below(false, true + false, 0.05)))  # fmt: skip
        words = f"{share(true, most)}; drop {share(dropped, most)}"
        is_met = true >= dropped if most else None
        made.append((f"holes {mechanism}: links found, against `drop`", ">= drop", words, is_met))
        k, n = sum(_any_false(none, key) for key in keys), len(none) * len(keys)
        made.append(
            (
                f"holes {mechanism}, nothing linked: tables with a finding",
                "<= .05",
                share(k, n),
                is_below(k, n, 0.05),
            )
        )
    return made
