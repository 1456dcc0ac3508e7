"""Growth laws of CSGS: time, memory and distinct tables against rows, contexts, columns and levels."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.big_tables import write_chain
from benchmarks.child import in_child
from benchmarks.growth import Slope, fit_slope
from benchmarks.options import Options
from benchmarks.result import Entry, Line, Note, Table
from benchmarks.scaling_run import measure_point
from studies.paper.figures import check_drawing

TITLE = "Growth laws"
HEAD = """# How it grows

Written by `python -m benchmarks --only scaling --plots docs/scaling --write docs/scaling.md`. Every point is
a process of its own, on one thread; times are CPU, medians of the turns. An exponent is the slope of a line
through logarithms, with its 95 % interval; it is fitted from where fixed costs no longer rule.

Machine: {machine}.

![Against rows](scaling/rows.svg) ![Against contexts](scaling/contexts.svg)
![Against columns](scaling/columns.svg) ![Against columns, few false links](scaling/columns_strict.svg)
![Against levels](scaling/levels.svg)
"""
TURNS = 3
# Eight columns of 864 states: the number of distinct rows is bounded, so that only N grows.
FEW_STATES = (2, 3, 2, 3, 2, 2, 3, 2)
Answer = dict[str, float]
# A file or the shape of a tree, and the learner's settings.
Request = tuple[str | dict[str, Any], dict[str, Any]]


@dataclass(frozen=True)
class Measure:
    """One figure that grows, what theory says of it, and what it should be."""

    what: str
    figure: Callable[[Answer], float]
    expected: str
    start: float = 0.0
    # Whether fixed costs, those of the first point, are taken off.
    beyond: bool = False
    most: float | None = None
    near: float | None = None

    def points(self, found: dict[float, Answer]) -> dict[float, float]:
        """Return the figure at every point where there is one."""
        fixed = self.figure(next(iter(found.values()))) if self.beyond else 0.0
        points = {x: self.figure(one) - fixed for x, one in found.items()}
        return {x: y for x, y in points.items() if y > 0}


@dataclass(frozen=True)
class Law:
    """What grows, the points that are measured, and the figures that grow with it."""

    key: str
    short: str
    title: str
    axis: str
    requests: dict[float, Request]
    measures: Sequence[Measure]


def run(options: Options) -> Iterator[Entry]:
    """Measure every law; the figures are drawn where --plots says."""
    if options.plots:
        check_drawing()
    turns = min(TURNS, options.repeats)
    with tempfile.TemporaryDirectory() as folder:
        for law in (
            rows_law(Path(folder)),
            contexts_law(),
            columns_law(),
            strict_columns_law(),
            levels_law(),
        ):
            found = {x: in_child(measure_point, *request, turns) for x, request in law.requests.items()}
            yield _table(law, found)
            slopes = {}
            for measure in law.measures:
                slopes[measure.what] = slope = _slope(measure, found)
                yield from _lines(law, measure, slope)
            if options.plots:
                draw(law, found, slopes, options.plots)
    yield Note(
        "N: read from CSV and learned; the number of distinct rows is bounded by 864 states, so that only "
        "reading grows. Fixed costs are those of the first point. m: a random "
        "tree over 30 columns, nearly every row distinct. n: 5,000 rows of such a tree; with "
        "alpha = 0.05 every blanket takes in a twentieth of all columns by chance, so that more columns also "
        "mean longer blankets and narrower slices; with alpha = 0.5 / n this chance is the same for all n. "
        "Levels: 12 columns, 20,000 rows."
    )
    yield Note(
        "Memory while learning grows with contexts x columns (one bit for each pair while blankets are "
        "joined). The model keeps each different graph once and an index; where nearly every context has a "
        "graph of its own there is nothing to share, and its size is that of the rows and one bit a pair."
    )


def rows_law(folder: Path) -> Law:
    """Read and learn 1e3 to 1e7 rows with a bounded number of distinct ones."""
    requests: dict[float, Request] = {}
    for n_rows in (1_000, 10_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000):
        (path,) = write_chain(folder / str(n_rows), n_rows, FEW_STATES, form="csv")
        requests[float(n_rows)] = (str(path), {})
    return Law(
        "rows",
        "N",
        "Rows N, at most 864 distinct: read and learn",
        "rows N",
        requests,
        (
            Measure("time", lambda one: one["total"], "1", start=100_000, beyond=True, near=1.0),
            Measure("time, fixed costs included", lambda one: one["total"], "up to 1", start=300_000),
            Measure("peak memory", lambda one: one["peak"], "0"),
        ),
    )


def contexts_law() -> Law:
    """Learn 1e3 to 1e6 rows, nearly all distinct."""
    sizes = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
    return Law(
        "contexts",
        "m",
        "Distinct rows m: learn",
        "distinct rows m",
        {float(m): _tree(m, 30, 2, 0.5) for m in sizes},
        (
            Measure("distinct tables", lambda one: one["distinct"], "below 1", most=0.85),
            Measure("time", lambda one: one["learn"], "1", start=10_000),
            Measure(
                "memory", lambda one: one["peak"] - one["before"], "1 at most", start=30_000, beyond=True
            ),
            Measure("size of the model", lambda one: one["model"], "1"),
        ),
    )


def columns_law() -> Law:
    """Learn 10 to 300 columns at the usual alpha."""
    return Law(
        "columns",
        "n",
        "Columns n, 5,000 rows, alpha = 0.05: learn",
        "columns n",
        {float(n): _tree(5_000, n, 2, 0.6) for n in (10, 20, 40, 80, 160, 300)},
        (
            Measure("time", lambda one: one["learn"], "2 and more", start=20),
            Measure("distinct tables", lambda one: one["distinct"], "2 and more", start=20),
        ),
    )


def strict_columns_law() -> Law:
    """Learn 10 to 1,000 columns with as few false links at every size."""
    sizes = (10, 30, 100, 300, 1_000)
    return Law(
        "columns_strict",
        "n, few false links",
        "Columns n, 5,000 rows, alpha = 0.5 / n: learn",
        "columns n",
        {float(n): _tree(5_000, n, 2, 0.6, alpha=0.5 / n) for n in sizes},
        (
            Measure("time", lambda one: one["learn"], "2", start=30),
            Measure("distinct tables", lambda one: one["distinct"], "2", start=30),
            Measure("memory", lambda one: one["peak"] - one["before"], "2", start=30, beyond=True),
        ),
    )


def levels_law() -> Law:
    """Learn 2 to 16 levels."""
    return Law(
        "levels",
        "levels",
        "Levels, 12 columns, 20,000 rows: learn",
        "levels of each column",
        {float(levels): _tree(20_000, 12, levels, 0.5) for levels in (2, 3, 4, 8, 16)},
        (
            Measure("time", lambda one: one["learn"], "1 to 2"),
            Measure("distinct tables", lambda one: one["distinct"], "not known"),
        ),
    )


def _tree(n_rows: int, n_columns: int, n_levels: int, keep: float, **settings: Any) -> Request:
    table = {"n_rows": n_rows, "n_columns": n_columns, "n_levels": n_levels, "keep": keep, "seed": 1}
    return table, settings


def _slope(measure: Measure, found: dict[float, Answer]) -> Slope:
    points = {x: y for x, y in measure.points(found).items() if x >= measure.start}
    return fit_slope(list(points), list(points.values()))


def _lines(law: Law, measure: Measure, slope: Slope) -> Iterator[Entry]:
    where = f" from {measure.start:,.0f} on" if measure.start else ""
    what = f"{law.short}: {measure.what}{' beyond the first point' * measure.beyond}{where}"
    yield Line(f"{what}; expected {measure.expected}", slope.value, "", str(slope), at_most=measure.most)
    if measure.near is not None:
        yield Line(f"{what}; off {measure.near:g} by", abs(slope.value - measure.near), at_most=0.15)


def _table(law: Law, found: dict[float, Answer]) -> Table:
    headers = (
        law.axis,
        "contexts",
        "read s",
        "learn s",
        "tests",
        "distinct",
        "graphs",
        "peak MB",
        "model MB",
    )
    rows = tuple(
        (
            f"{x:,.0f}",
            f"{one['contexts']:,}",
            f"{one['read']:.3g}",
            f"{one['learn']:.3g}",
            f"{one['tests']:,}",
            f"{one['distinct']:,}",
            f"{one['graphs']:,}",
            f"{one['peak'] / 1e6:,.0f}",
            f"{one['model'] / 1e6:.3g}",
        )
        for x, one in found.items()
    )
    return Table((f"{law.title}: {headers[0]}", *headers[1:]), rows)


def draw(law: Law, found: dict[float, Answer], slopes: dict[str, Slope], folder: Path) -> None:
    """Draw the figures of a law, each with its line; the same bytes for the same numbers."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "unless", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(4.2, 3.4), layout="constrained")
        axes = figure.subplots()
        for measure, marker in zip(law.measures, "osv^", strict=False):
            slope = slopes[measure.what]
            points = measure.points(found)
            xs = [x for x in points if x >= measure.start]
            base = points[xs[0]]
            axes.plot(list(points), [y / base for y in points.values()], marker, ms=4)
            label = f"{measure.what}: {slope.value:.2f} ({slope})"
            axes.plot(
                xs, [slope.at(x) / base for x in xs], "-", lw=1, color=axes.lines[-1].get_color(), label=label
            )
        axes.set(xscale="log", yscale="log", xlabel=law.axis, ylabel="times the first fitted point")
        axes.set_title(law.title, fontsize=9)
        axes.legend(fontsize=7)
        figure.savefig(folder / f"{law.key}.svg", metadata={"Date": None})
