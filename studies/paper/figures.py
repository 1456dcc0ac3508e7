"""The figures as SVG; lines differ in markers and dashes too, so that they survive black and white."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from studies.paper.methods import ASKING, GROUPS, METHODS, REFERENCES, Style
from studies.paper.plan import Shape, Study
from studies.paper.results import Results, curve
from studies.paper.variants import HEADLINE
from unless.errors import SettingError
from unless.runtime.files import replacing

# The same bytes whenever it is drawn: no dates, no random names.
_RC: dict[Any, Any] = {
    "svg.hashsalt": "unless",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
}


def check_drawing() -> None:
    """Refuse, before hours of work, to begin without the library that draws."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SettingError(
            "Figures need matplotlib; install it with pip install 'unless[figures]'."
        ) from None


def draw_figures(results: Results, folder: Path) -> None:
    """Draw all figures that the run has numbers for, and remove those that a wider plan drew here before."""
    study, large = results.plan.main, results.plan.large
    n_panels = len(study.n_variables)
    for drawn in folder.glob("figure[1-5]*.svg"):
        drawn.unlink()
    if {"CSGS", "CSPC"} <= set(study.methods):
        with _drawing(folder / "figure2.svg", n_panels, "number of tests") as axes:
            for panel, n in zip(axes, study.n_variables, strict=True):
                _draw_tests(panel, results, study, n)
    for group, methods in GROUPS.items():
        shown = [one for one in METHODS if one in methods and one in study.methods]
        if set(shown) <= set.intersection(*map(set, GROUPS.values())) and group:
            continue  # It has nothing of its own.
        # References learn nothing: they have no error of structure and no time of their own.
        learners = [one for one in shown if one not in REFERENCES]
        figures = [
            (1, "KL(truth || learned), nats", "kl", shown),
            (3, "F1 of (pair, context), by graphs", "graphs_f1", learners),
            (4, "CPU seconds, structure and weights", "seconds", learners),
        ]
        for number, y, field, drawn_methods in figures:
            if drawn_methods:
                with _drawing(folder / f"figure{number}{group}.svg", n_panels, y) as axes:
                    for panel, n in zip(axes, study.n_variables, strict=True):
                        _draw_curves(panel, results, study, "complete", n, field, drawn_methods)
        if large is not None:
            _draw_large(results, large, folder, group, [one for one in shown if one in large.methods])


def _draw_large(results: Results, large: Study, folder: Path, group: str, methods: Sequence[str]) -> None:
    places = [(shape, n) for shape in large.shapes for n in large.n_variables]
    wide = len(large.n_variables)
    learners = [one for one in methods if one not in REFERENCES]
    with _drawing(folder / f"figure5{group}.svg", len(places), "KL, nats", wide) as axes:
        for panel, (shape, n) in zip(axes, places, strict=True):
            _draw_curves(panel, results, large, shape, n, "kl", methods)
            panel.set_title(f"{shape}, n = {n}")
    with _drawing(folder / f"figure5-f1{group}.svg", len(places), "F1 by graphs", wide) as axes:
        for panel, (shape, n) in zip(axes, places, strict=True):
            _draw_curves(panel, results, large, shape, n, "graphs_f1", learners)
            panel.set_title(f"{shape}, n = {n}")


def _draw_curves(
    panel: Any, results: Results, study: Study, shape: Shape, n: int, field: str, methods: Sequence[str]
) -> None:
    """Draw a line for each method: mean, and a standard deviation each way."""
    for place, method in enumerate(methods):
        numbers = curve(results, study, HEADLINE.name, shape, n, method, field)
        if np.isfinite(numbers).any():
            _draw_line(
                panel, study.sizes, numbers, METHODS[method].style, place / max(1, len(methods) - 1) - 0.5
            )
    panel.set_xscale("log")
    if field == "graphs_f1":
        panel.set_ylim(0, 1)
    else:
        panel.set_yscale("log")
    panel.set_title(f"n = {n}")


def _draw_line(panel: Any, sizes: tuple[int, ...], numbers: Any, style: Style, shift: float) -> None:
    means = numbers.mean(axis=1)
    spread = numbers.std(axis=1, ddof=1) if numbers.shape[1] > 1 else np.zeros_like(means)
    # A lower end below zero has no place on a log axis: it ends at a tenth of the mean.
    down = np.minimum(spread, 0.9 * means)
    # Bars beside each other instead of on top of each other.
    x = np.array(sizes) * 1.12**shift
    panel.errorbar(
        x,
        means,
        yerr=(down, spread),
        label=style.label,
        color=style.colour,
        marker=style.marker or None,
        linestyle=style.dashes,
        markersize=4,
        markerfacecolor="white",
        linewidth=1.2,
        elinewidth=0.5,
        capsize=1,
    )


def _draw_tests(panel: Any, results: Results, study: Study, n: int) -> None:
    """Draw bars of questions and, inside them, of distinct tables."""
    places = np.arange(len(study.sizes))
    shown = [one for one in ASKING if one in study.methods]
    width = 0.8 / len(shown)
    for side, method in enumerate(shown):
        style = METHODS[method].style
        for field, word, alpha in (
            ("n_tests", "questions", 0.35),
            ("n_distinct_tests", "distinct tables", 1.0),
        ):
            numbers = curve(results, study, HEADLINE.name, "complete", n, method, field)
            panel.bar(
                places + (side - (len(shown) - 1) / 2) * width,
                numbers.mean(axis=1),
                0.95 * width,
                yerr=numbers.std(axis=1, ddof=1) if numbers.shape[1] > 1 else None,
                label=f"{style.label}, {word}",
                facecolor=style.colour,
                alpha=alpha,
                hatch=_HATCHES[side % len(_HATCHES)],
                edgecolor="black",
                linewidth=0.6,
                error_kw={"elinewidth": 0.6, "capsize": 1.5},
            )
    panel.set_yscale("log")
    panel.set_xticks(places, [_short(size) for size in study.sizes], rotation=45)
    panel.set_title(f"n = {n}")


_HATCHES = ("", "////", "....", "xxxx", "----")


def _short(size: int) -> str:
    return f"{size / 1_000:g}k" if size >= 1_000 else str(size)


@contextmanager
def _drawing(path: Path, n_panels: int, y: str, n_wide: int = 2) -> Iterator[list[Any]]:
    """Give panels to draw in, and write the file when they are drawn."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_RC):
        n_high = -(-n_panels // n_wide)
        figure = Figure(figsize=(4.6 * n_wide, 3.4 * n_high + 0.9), layout="constrained")
        FigureCanvasSVG(figure)
        panels = list(figure.subplots(n_high, n_wide, squeeze=False).ravel())
        yield panels[:n_panels]
        for unused in panels[n_panels:]:
            unused.set_visible(False)
        for panel in panels[:n_panels]:
            panel.set_xlabel("number of rows N")
            panel.set_ylabel(y)
        # A method may be missing in one panel and drawn in another.
        shown = [panel.get_legend_handles_labels() for panel in panels]
        by_label = {
            label: handle for handles, labels in shown for handle, label in zip(handles, labels, strict=True)
        }
        # As many columns as the longest label leaves room for, at this size of letters.
        n_columns = min(5, 75 * n_wide // (max(map(len, by_label)) + 9))
        figure.legend(by_label.values(), by_label, loc="outside lower center", ncols=n_columns, fontsize=8)
        with replacing(path) as stream:
            figure.savefig(stream, format="svg", metadata={"Date": None})
