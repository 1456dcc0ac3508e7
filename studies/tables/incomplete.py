"""`python -m studies.tables.incomplete`: what networks lose by missing values, by complete rows and by EM.

Tables are drawn from known laws (`studies/truth/laws.py`), and values of half of the columns are deleted: at
random (MCAR), or by what one complete column of the row shows (MAR). A network is fitted to the complete
rows, to all rows by EM, and to the table before anything was deleted; how far each is from the law is exact.
A cell is one table; it is one JSON file, so that a run that was stopped goes on where it was. 360 cells take
about ten minutes of one core. The page goes to docs/accuracy/incomplete.md.
"""

import argparse
import json
import sys
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from studies.truth import laws
from studies.truth.judge import wilson
from studies.truth.laws import Law
from unless.data.dataset import Dataset, Detail
from unless.inference.model import LogLinearModel
from unless.structures.graph import Graph
from unless.structures.structure import features_of

Floats = npt.NDArray[np.float64]
Record = dict[str, Any]
Codes = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
# Base seeds below this one were used while the method was designed.
DESIGN_SEEDS, SEED = 1_000, 31_415
LAWS: dict[str, Callable[[np.random.Generator], Law]] = {"pairwise": laws.pairwise, "gated": laws.gated}
MECHANISMS = ("MCAR", "MAR")
SHARES = (0.10, 0.25, 0.40)
SIZES = (300, 1_000, 5_000)
TABLES = 10
# Sizes of tables that a column is predicted from, the rows predicted, and the chance of an unknown class.
PREDICTED_SIZES, N_PREDICTED, UNKNOWN_CLASS = (300, 1_000), 1_000, 1e-3
WAYS = ("complete", "em", "full")
STRUCTURES = ("true", "learned")
CELLS = Path("build/tables/incomplete")
PAGE = Path("docs/accuracy/incomplete.md")


@dataclass(frozen=True)
class Cell:
    """One table: its law, how values are deleted and how many, its rows and its number."""

    law: str
    mechanism: str
    share: float
    n: int
    index: int

    @property
    def key(self) -> str:
        """The name of the cell's file."""
        return f"{self.law}-{self.mechanism}-{100 * self.share:.0f}-{self.n}-{self.index:03d}"


def plan(tables: int = TABLES) -> list[Cell]:
    """List the cells, the first tables of all kinds before the second."""
    kinds = list(product(LAWS, MECHANISMS, SHARES, SIZES))
    return [Cell(*kind, index) for index in range(tables) for kind in kinds]


def holes_of(cell: Cell, codes: Codes, rng: np.random.Generator) -> Bools:
    """Choose the values to delete: in half of the columns this share of them on average.

    MAR: how probably a value goes depends on the level that a column without holes, one for each column with
    holes, has in its row. The least probable level of it loses 1.6 times the share, the most probable one 0.4
    times, before both are scaled so that the share is right.
    """
    n_rows, n_columns = codes.shape
    columns = rng.permutation(n_columns)
    with_holes, whole = columns[: n_columns // 2], columns[n_columns // 2 :]
    holes = np.zeros(codes.shape, dtype=np.bool_)
    for column in with_holes.tolist():
        probabilities = np.full(n_rows, cell.share)
        if cell.mechanism == "MAR":
            cause = codes[:, rng.choice(whole)]
            n_levels = int(cause.max()) + 1
            order = np.argsort(np.bincount(cause, minlength=n_levels))
            steps = np.empty(n_levels)
            steps[order] = np.linspace(1.6, 0.4, n_levels)
            probabilities = steps[cause] * cell.share / steps[cause].mean()
        holes[:, column] = rng.random(n_rows) < probabilities
    return holes


def with_holes(law: Law, codes: Codes, holes: Bools, known: bool = True) -> Dataset:
    """Make a table with missing values; without `known`, of the complete rows alone."""
    whole = ~holes.any(axis=1)
    complete = Dataset.from_codes(law.domain, codes[whole])
    if not known:
        return complete
    missing = {name: holes[:, place] for place, name in enumerate(law.names)}
    shown = np.where(holes, 0, codes).astype(np.uint16)
    return replace(complete, detail=Detail.of(shown, np.ones(len(codes), dtype=np.int64), None, missing))


def divergence(law: Law, net: LogLinearModel) -> float:
    """Return the Kullback-Leibler divergence from a law to a network, in nats."""
    fitted = joint_of(law, net)
    return float((law.joint * (np.log(law.joint) - np.log(fitted))).sum())


def joint_of(law: Law, net: LogLinearModel) -> Floats:
    """Return the whole joint table of a network."""
    states = np.indices(law.sizes).reshape(len(law.sizes), -1).T
    logs = net.log_potentials(states.astype(np.uint16))
    joint = np.exp(logs - logs.max())
    return np.asarray((joint / joint.sum()).reshape(law.sizes))


def distance_of_marginals(law: Law, joint: Floats, columns: Iterable[int]) -> float:
    """Return the mean over columns of half the differences between two laws of single columns."""
    apart = []
    for column in columns:
        rest = tuple(axis for axis in range(joint.ndim) if axis != column)
        apart.append(np.abs(joint.sum(axis=rest) - law.joint.sum(axis=rest)).sum() / 2)
    return float(np.mean(apart))


def measure(cell: Cell, seed: int) -> Record:
    """Delete values of one table, fit networks to it and say how far they are from its law."""
    import unless

    rng = np.random.default_rng([seed, zlib.crc32(cell.key.encode())])
    law = LAWS[cell.law](rng)
    codes = law.sample_codes(cell.n, rng)
    holes = holes_of(cell, codes, rng)
    tables = {
        "complete": with_holes(law, codes, holes, known=False),
        "em": with_holes(law, codes, holes),
        "full": Dataset.from_codes(law.domain, codes),
    }
    edges = [(law.names[a], law.names[b]) for scope, _ in law.factors for a in scope for b in scope if a < b]
    learned = {way: unless.GGS().fit(tables[way]).structure_ for way in ("complete", "full")}
    found: Record = {"n_complete": tables["complete"].n_rows}
    for structure in STRUCTURES:
        for way in WAYS:
            shape = (
                Graph(law.domain, edges)
                if structure == "true"
                else learned["full" if way == "full" else "complete"]
            )
            start = time.process_time()
            net = unless.fit_weights(features_of(shape, "cliques"), tables[way])
            found[f"{structure} {way} seconds"] = time.process_time() - start
            joint = joint_of(law, net)
            kl = float((law.joint * (np.log(law.joint) - np.log(joint))).sum())
            columns = np.flatnonzero(holes.any(axis=0)).tolist()
            found[f"{structure} {way}"] = kl
            found[f"{structure} {way} marginals"] = distance_of_marginals(law, joint, columns)
            if way == "em" and net.fit_report.completed is not None:
                found[f"{structure} rounds"] = net.fit_report.completed.n_rounds
    return found | (predicted(cell, law, codes, holes, rng) if cell.n in PREDICTED_SIZES else {})


def predicted(cell: Cell, law: Law, codes: Codes, holes: Bools, rng: np.random.Generator) -> Record:
    """Predict a column of fresh rows, some of whose values are missing, and return the log losses.

    The column is the complete one that most is linked with. Of the rows to predict, values of the same
    columns are missing, at random and as many. Learned from are the complete rows of a Dataset, all its rows
    (EM), and a frame, in which missing values are a level.
    """
    import unless

    whole = np.flatnonzero(~holes.any(axis=0)).tolist()
    others = set(law.names)
    target = max((law.names[place] for place in whole), key=lambda one: _links(law, one, others))
    fresh = law.sample_codes(N_PREDICTED, rng)
    hidden = np.zeros(fresh.shape, dtype=np.bool_)
    columns = np.flatnonzero(holes.any(axis=0))
    hidden[:, columns] = rng.random((len(fresh), len(columns))) < cell.share
    learned_from: dict[str, Any] = {
        "complete": with_holes(law, codes, holes, known=False),
        "em": with_holes(law, codes, holes),
        "level": columns_of(law, codes, holes),
    }
    truth = columns_of(law, fresh, np.zeros_like(hidden))[target]
    found: Record = {}
    for way, table in learned_from.items():
        est = unless.UnlessClassifier(target).fit(table)
        # A class that no row learned from has gets a small probability.
        place = {str(label): code for code, label in enumerate(est.classes_.tolist())}
        codes_of = [place.get(str(label), -1) for label in truth]
        for rows, gone in (("whole", np.zeros_like(hidden)), ("hidden", hidden)):
            asked = columns_of(law, fresh, gone)
            del asked[target]
            probabilities = np.column_stack([est.predict_proba(asked), np.full(len(fresh), UNKNOWN_CLASS)])
            of_truth = probabilities[np.arange(len(fresh)), codes_of]
            found[f"loss {rows} {way}"] = float(-np.log(of_truth).mean())
    return found


def _links(law: Law, name: str, others: set[str]) -> float:
    return sum(law.strength(name, other) for other in sorted(others - {name}))


def columns_of(law: Law, codes: Codes, holes: Bools) -> dict[str, list[str | None]]:
    """Write a table as columns of labels, None where a value is missing."""
    return {
        name: [
            None if gone else law.levels[place][code]
            for code, gone in zip(codes[:, place].tolist(), holes[:, place].tolist(), strict=True)
        ]
        for place, name in enumerate(law.names)
    }


def run(cells: Iterable[Cell], folder: Path, seed: int, budget: float = np.inf) -> int:
    """Measure the cells that have no file yet; returns how many are left when the time is over."""
    folder.mkdir(parents=True, exist_ok=True)
    begun, n_left = time.monotonic(), 0
    for cell in cells:
        path = folder / f"{cell.key}.json"
        if path.exists():
            continue
        if time.monotonic() - begun > budget:
            n_left += 1
            continue
        record = {**asdict(cell), **measure(cell, seed)}
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps(record, sort_keys=True))
        draft.replace(path)
    return n_left


def load(folder: Path) -> list[Record]:
    """Read the cells that are finished."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


# ---------------------------------------------------------------------- the page


def half_width(values: Floats) -> float:
    """Return half the width of the 95 % interval of a mean."""
    return float(1.96 * values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def ratio_text(ratios: Floats) -> str:
    """Write the geometric mean of ratios with its 95 % interval."""
    logs = np.log(ratios)
    spread = half_width(logs)
    low, middle, high = np.exp([logs.mean() - spread, logs.mean(), logs.mean() + spread])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def share_text(k: int, n: int) -> str:
    """Write a share with its counts and Wilson's 95 % interval."""
    low, high = wilson(k, n)
    return f"{k} of {n} = {k / n:.3f} ({low:.3f} to {high:.3f})"


def page(records: list[Record], seed: int) -> str:
    """Write what was found."""
    lines = [
        "# Networks from tables with missing values",
        "",
        f"Written by `python -m studies.tables.incomplete`: {len(records)} tables, base seed {seed} "
        f"(the method was chosen on base seeds below {DESIGN_SEEDS:,}). Each table has 8 columns and "
        "is drawn from a law of its own (`pairwise` or `gated`, studies/truth/laws.py). In 4 of the "
        "columns this share of the values is deleted: at random (MCAR), or depending on what another "
        "column of the row shows (MAR). Networks are fitted with the default prior to the complete "
        "rows, to all rows by EM, and to the table before anything was deleted. KL is the exact "
        "divergence from the law to the network, in nats, as a geometric mean over tables; ratios are"
        " geometric means with 95 % intervals over tables, shares have Wilson's.",
    ]
    titles = {
        "true": "the links of the law",
        "learned": "links learned by GGS, from complete rows or the full table",
    }
    for structure in STRUCTURES:
        lines += ["", f"## KL with {titles[structure]}", ""]
        lines += _table(
            (
                "deleted",
                "rows",
                "complete rows",
                "KL complete",
                "KL EM",
                "KL full",
                "EM / complete",
                "EM nearer to the law",
                "EM rounds",
            ),
            [_line(name, group, structure) for name, group in _groups(records)],
        )
    lines += ["", "## Laws of single columns that have missing values", ""]
    lines += [
        "Half the sum of the differences between the fitted and the true probabilities of a column's levels, "
        "mean over the 4 columns and over tables, with the links of the law. Where values are missing by "
        "what other columns show, the error of complete rows does not go away with more rows; "
        "that of EM does.",
        "",
    ]
    lines += _table(
        ("deleted", "rows", "complete", "EM", "full", "EM nearer to the law"),
        [_marginals(name, group) for name, group in _groups(records)],
    )
    lines += ["", "## One column predicted", ""]
    lines += [
        f"Log loss, in nats, of `UnlessClassifier` for {N_PREDICTED:,} fresh rows, mean over tables of"
        " 300 and 1,000 rows: of rows that show everything, and of rows in which as many values of "
        "the same columns are missing at random. The column predicted is the complete one with the "
        "strongest links. It learned from the complete rows of a `Dataset`, from all its rows by EM, "
        "and from a frame, where missing values are a level.",
        "",
    ]
    some = [one for one in records if "loss whole em" in one]
    lines += _table(
        (
            "deleted",
            "rows predicted",
            "complete",
            "level",
            "EM",
            "EM better than complete",
            "EM better than level",
        ),
        [_losses(name, group, rows) for name, group in _by_share(some) for rows in ("whole", "hidden")],
    )
    return "\n".join(lines) + "\n"


def _by_share(records: list[Record]) -> list[tuple[str, list[Record]]]:
    kinds = list(product(MECHANISMS, SHARES))
    groups = [
        (
            f"{kind}, {100 * share:.0f} %",
            [one for one in records if (one["mechanism"], one["share"]) == (kind, share)],
        )
        for kind, share in kinds
    ]
    return [*((name, some) for name, some in groups if some), ("all", records)]


def _losses(name: str, group: list[Record], rows: str) -> tuple[str, ...]:
    of = {way: np.array([one[f"loss {rows} {way}"] for one in group]) for way in ("complete", "level", "em")}
    means = [f"{of[way].mean():.4f}" for way in ("complete", "level", "em")]
    better = [share_text(int((of["em"] < of[way]).sum()), len(group)) for way in ("complete", "level")]
    return (name, "complete" if rows == "whole" else "with holes", *means, *better)


def _groups(records: list[Record]) -> list[tuple[tuple[str, str], list[Record]]]:
    groups = []
    for mechanism in MECHANISMS:
        for share, n in product(SHARES, SIZES):
            some = [
                one for one in records if (one["mechanism"], one["share"], one["n"]) == (mechanism, share, n)
            ]
            groups.append(((f"{mechanism}, {100 * share:.0f} %", f"{n:,}"), some))
        groups.append(((f"{mechanism}, all", ""), [one for one in records if one["mechanism"] == mechanism]))
    return [*((name, some) for name, some in groups if some), (("all", ""), records)]


def _line(name: tuple[str, str], group: list[Record], structure: str) -> tuple[str, ...]:
    of = {way: np.array([one[f"{structure} {way}"] for one in group]) for way in WAYS}
    n_rows = np.array([one["n"] for one in group])
    complete = np.array([one["n_complete"] for one in group]) / n_rows
    means = [f"{np.exp(np.log(of[way]).mean()):.4f}" for way in WAYS]
    nearer = share_text(int((of["em"] < of["complete"]).sum()), len(group))
    rounds = np.median([one.get(f"{structure} rounds", 0) for one in group])
    return (
        *name,
        f"{100 * complete.mean():.0f} %",
        *means,
        ratio_text(of["em"] / of["complete"]),
        nearer,
        f"{rounds:.0f}",
    )


def _marginals(name: tuple[str, str], group: list[Record]) -> tuple[str, ...]:
    of = {way: np.array([one[f"true {way} marginals"] for one in group]) for way in WAYS}
    means = [f"{of[way].mean():.4f} ± {half_width(of[way]):.4f}" for way in WAYS]
    return (*name, *means, share_text(int((of["em"] < of["complete"]).sum()), len(group)))


def _table(headers: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[place]) for row in (headers, *rows)) for place in range(len(headers))]
    lined = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in (headers, *rows)
    ]
    return [lined[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lined[1:]]


def main(words: list[str] | None = None) -> int:
    """Run the cells that are missing, then write the page; returns 0, or 1 if there was no time for all."""
    parser = argparse.ArgumentParser(prog="python -m studies.tables.incomplete", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="base seed of all tables (%(default)s)")
    parser.add_argument("--tables", type=int, default=TABLES, help="tables of each kind (%(default)s)")
    parser.add_argument("--budget", type=float, default=np.inf, help="seconds after which no cell is started")
    parser.add_argument("--cells", type=Path, help="folder of the cells (build/tables/incomplete/SEED)")
    parser.add_argument("--out", type=Path, help="the page (docs/accuracy/incomplete.md)")
    options = parser.parse_args(words)
    folder = options.cells or CELLS / str(options.seed)
    n_left = run(plan(options.tables), folder, options.seed, options.budget)
    out = options.out or (PAGE if options.seed >= DESIGN_SEEDS else folder.parent / f"{options.seed}.md")
    out.write_text(page(load(folder), options.seed))
    sys.stdout.write(f"{out}\n")
    return int(n_left > 0)


if __name__ == "__main__":
    sys.exit(main())
