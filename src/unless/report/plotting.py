"""Figures with matplotlib: each function draws on axes and returns them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unless.data.dataset import Dataset
from unless.data.domain import Domain
from unless.data.showing import visible
from unless.errors import MissingExtra, SettingError
from unless.inference.model import LogLinearModel
from unless.inference.tables import read_rows
from unless.knowledge.explaining import explain_as_learned
from unless.knowledge.statements import State, Statement, Statements
from unless.report import layout
from unless.structures.structure import agreeing, as_structure
from unless.typing import Floats

# More tests than these, or more levels, are too many for one figure.
MOST_STATEMENTS = 20
MOST_PANELS = 12
GONE, INK = "#a3adb8", "#1b2430"
# The colours and marks of the page, a pair for each kind.
COLOURS = {
    "linked": "#0072b2", "gated": "#d55e00", "differs": "#00805d", "partly": "#a8457f", "determined": INK,
    "associated": "#7a8591", "open": "#7a8591", "unlinked": "#7a8591",
}  # fmt: skip
MARKS = {"gated": "D", "differs": "o", "partly": "D", "determined": "s"}
# How a line is drawn for what its statement says in a context; between fixed columns there is none.
DASHES: dict[str, Any] = {
    "holds": "-", "holds in part": (0, (7, 2)), "absent": (0, (3, 4)), "not settled": (0, (1, 2)),
}  # fmt: skip

Pair = tuple[int, int]


@dataclass(frozen=True)
class Picture:
    """Names, where they stand, how strong each link is (0 to 1), its kind, and which variables switch it."""

    labels: list[str]
    middles: Floats
    widths: dict[Pair, float]
    gates: dict[Pair, list[int]] = field(default_factory=dict)
    kinds: dict[Pair, str] = field(default_factory=dict)


def plot_links(
    learned: Any, data: object = None, *, context: Mapping[str, object] | None = None, ax: Any = None
) -> Any:
    """Draw the findings of a fitted estimator, or of a structure and its table, everywhere or in a context.

    Each kind has its colour and mark: linked (blue), gated (orange, a diamond), differs (green, a disc),
    partly (a hollow diamond), determined (black, a square); dotted arrows come from the columns of gates. In
    the context a finding holds (solid), holds in part (long dashes), is absent (grey dashes) or not settled
    (grey dots), as `Statement.state_in` says; columns that the context fixes have no links.

    Examples
    --------
    >>> import unless
    >>> est = unless.CSGS().fit(unless.datasets.load_ucb_admissions())
    >>> ax = unless.plot_links(est, context={"Dept": "B"})
    >>> ax.get_title()
    'Dept = B'
    """
    pyplot = _pyplot()
    table, statements = _findings_of(learned, data)
    picture = _picture(table.domain, statements)
    # What is refused leaves no empty figure behind.
    here = _here(table, statements, context)
    axes = pyplot.subplots(figsize=(7, 4.6))[1] if ax is None else ax
    draw(axes, picture, here)
    axes.set_title(_title(context))
    return axes


def plot_contexts(learned: Any, data: object = None, *, by: str, axes: Any = None) -> Any:
    """Draw what the findings say at each level of a variable, side by side on one layout."""
    pyplot = _pyplot()
    table, statements = _findings_of(learned, data)
    levels = table.domain[by].levels
    if len(levels) > MOST_PANELS:
        raise SettingError(
            f"{by!r} has {len(levels):,} levels, more than {MOST_PANELS} pictures; merge some."
        )
    if axes is None:
        columns = min(3, len(levels))
        shape = -(-len(levels) // columns), columns
        axes = pyplot.subplots(*shape, figsize=(4.2 * columns, 3 * shape[0]), squeeze=False)[1]
    picture, flat = _picture(table.domain, statements), np.asarray(axes).ravel()
    if len(flat) < len(levels):
        raise SettingError(f"{by!r} has {len(levels)} levels; give as many axes.")
    for level, one in zip(levels, flat, strict=False):
        context = {by: level}
        seen = table.rows[:, table.domain.index(by)] == table.domain[by].code(level)
        draw(one, picture, _here(table, statements, context) if seen.any() else {})
        one.set_title(_title(context) if seen.any() else f"{_title(context)}: no rows")
    for spare in flat[len(levels) :]:
        spare.set_axis_off()
    return axes


def plot_evidence(learned: Any, data: object = None, *, ax: Any = None) -> Any:
    """Draw how strong each pair is: Cramér's V of each test, and the largest V not ruled out, by kind."""
    pyplot = _pyplot()
    shown = _findings_of(learned, data)[1][:MOST_STATEMENTS]
    tests = [
        (one, where, evidence)
        for one in shown
        for where, evidence in zip(("", "elsewhere"), one.evidence, strict=False)
    ]
    axes = pyplot.subplots(figsize=(7, 1 + 0.3 * len(tests)))[1] if ax is None else ax
    for position, (one, _, evidence) in enumerate(tests):
        colour = COLOURS[one.kind]
        axes.plot(
            [evidence.cramers_v, evidence.cramers_v_limit], [position, position], color=colour, alpha=0.5
        )
        axes.plot(evidence.cramers_v, position, MARKS.get(one.kind, "o"), color=colour, mfc=_fill(one.kind))
    axes.set_yticks(range(len(tests)), [_label(one, where) for one, where, _ in tests], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel("Cramér's V, and its upper limit")
    for kind in dict.fromkeys(one.kind for one, _, _ in tests):
        axes.plot([], [], MARKS.get(kind, "o"), color=COLOURS[kind], mfc=_fill(kind), label=kind)
    if tests:
        axes.legend(loc="best", fontsize="small")
    return axes


def _fill(kind: str) -> str:
    """Fill the marks of what is claimed; those of the rest, and of "partly", are hollow."""
    return "white" if kind in ("partly", "associated", "open", "unlinked") else COLOURS[kind]


def plot_network(network: LogLinearModel, *, ax: Any = None) -> Any:
    """Draw which variables a model joins: the thicker a line, the larger the largest weight of a feature."""
    pyplot = _pyplot()
    strongest: dict[tuple[int, int], float] = {}
    index = network.domain.index
    for feature, weight in zip(network.features, np.abs(network.weights).tolist(), strict=True):
        ends = sorted(index(name) for name in feature.scope)
        for position, a in enumerate(ends):
            for b in ends[position + 1 :]:
                strongest[a, b] = max(strongest.get((a, b), 0.0), min(weight, 10.0))
    linked = {pair: weight for pair, weight in strongest.items() if weight}
    top = max(linked.values(), default=1.0)
    axes = pyplot.subplots(figsize=(7, 4.6))[1] if ax is None else ax
    widths = {pair: weight / top for pair, weight in linked.items()}
    draw(axes, _placed(network.domain.names, widths, {}, {}), dict.fromkeys(widths, "holds"))
    return axes


def _findings_of(learned: Any, data: object) -> tuple[Dataset, Statements]:
    """Take an estimator with what it remembers, or a structure with a table."""
    structure = getattr(learned, "structure_", learned)
    if data is None:
        if not hasattr(learned, "data_"):
            raise SettingError("Give the table as well: a structure keeps no rows.")
        return read_rows(as_structure(structure).domain, learned.data_), learned.statements_
    table = read_rows(as_structure(structure).domain, data)
    if hasattr(learned, "structure_"):
        return table, explain_as_learned(learned._proposing(structure), table, vars(learned))
    return table, explain_as_learned(structure, table, {})


def _picture(domain: Domain, statements: Statements) -> Picture:
    widths, gates, kinds = {}, {}, {}
    for one in statements.findings:
        pair = _ends(domain, one)
        # Of what is determined there is no test.
        widths[pair] = one.evidence[0].cramers_v if one.evidence else 0.3
        gates[pair] = list(map(domain.index, one.gate.names)) if one.gate else []
        kinds[pair] = str(one.kind)
    return _placed(domain.names, widths, gates, kinds)


def _ends(domain: Domain, one: Statement) -> Pair:
    a, b = sorted(map(domain.index, one.pair))
    return a, b


def _placed(
    names: Iterable[str],
    widths: dict[Pair, float],
    gates: dict[Pair, list[int]],
    kinds: dict[Pair, str],
) -> Picture:
    labels = [visible(name)[: layout.MOST_LETTERS] for name in names]
    boxes = [layout.box_width(label) for label in labels]
    return Picture(labels, layout.positions(len(labels), list(widths), boxes), widths, gates, kinds)


def _here(table: Dataset, statements: Statements, context: Mapping[str, object] | None) -> dict[Pair, State]:
    """Return what each finding says in a context; refuse one that no row shows."""
    codes = table.domain.encode(context)
    labels = table.domain.decode(codes)
    if not agreeing(table.rows, codes).any():
        raise SettingError(f"No row has {labels}; choose a context the data shows.")
    return {_ends(table.domain, one): one.state_in(dict(labels)) for one in statements.findings}


def _title(context: Mapping[str, object] | None) -> str:
    return ", ".join(f"{visible(name)} = {visible(str(label))}" for name, label in (context or {}).items())


def _label(one: Statement, where: str) -> str:
    pair = " – ".join(visible(name)[: layout.MOST_LETTERS] for name in one.pair)
    return f"{pair}, {where}" if where and one.gate else pair


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtra(
            "Figures need matplotlib; install it with: pip install 'unless[figures]'"
        ) from None
    return pyplot


def draw(axes: Any, picture: Picture, states: Mapping[Pair, str]) -> None:
    """Draw the links by their kinds and by what they say here; what is drawn first lies below."""
    middles = picture.middles
    for pair, strength in sorted(picture.widths.items()):
        state = states.get(pair, "fixed")
        if state == "fixed":
            continue
        a, b = pair
        kind = picture.kinds.get(pair, "linked")
        there = state in ("holds", "holds in part")
        colour = COLOURS[kind] if there else GONE
        width = 1.2 + 5 * min(1.0, strength) if there else 1.2
        axes.plot(
            middles[[a, b], 0], middles[[a, b], 1], color=colour, lw=width, ls=DASHES[state],
            solid_capstyle="round", zorder=1,
        )  # fmt: skip
        middle = middles[[a, b]].mean(axis=0)
        if kind in MARKS:
            fill = "white" if kind == "partly" else colour
            axes.plot(*middle, MARKS[kind], color=colour, mfc=fill, ms=6, zorder=3)
        for switch in picture.gates.get(pair, []):
            arrow = {"arrowstyle": "-|>", "ls": ":", "color": colour, "shrinkB": 5, "lw": 1.1}
            axes.annotate("", xy=middle, xytext=middles[switch], arrowprops=arrow, zorder=2)
    box = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": INK}
    for label, (x, y) in zip(picture.labels, middles.tolist(), strict=True):
        # A dollar sign in a name does not begin a formula.
        axes.text(x, y, label, ha="center", va="center", bbox=box, color=INK, zorder=4, parse_math=False)
    axes.margins(0.15)
    axes.invert_yaxis()
    axes.set_axis_off()
