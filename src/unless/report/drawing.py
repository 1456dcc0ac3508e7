"""Boxes, lines and the arrows from gates to links, on axes of matplotlib."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

ALWAYS, GATED, GONE, INK = "#0072b2", "#d55e00", "#a3adb8", "#1b2430"


@dataclass(frozen=True)
class Picture:
    """Names, where they stand, how strong each link is (0 to 1) and which variables switch it."""

    labels: list[str]
    places: npt.NDArray[np.float64]
    widths: dict[tuple[int, int], float]
    gates: dict[tuple[int, int], list[int]]


def draw(axes: Any, picture: Picture, here: set[tuple[int, int]]) -> None:
    """Draw all links, those that are not here as dashes; what is drawn first lies below."""
    places = picture.places
    for (a, b), strength in sorted(picture.widths.items()):
        switches = picture.gates.get((a, b), [])
        there = (a, b) in here
        colour = GONE if not there else GATED if switches else ALWAYS
        style = {"lw": 1.2 + 5 * min(1.0, strength), "ls": "-"} if there else {"lw": 1.2, "ls": (0, (5, 4))}
        axes.plot(
            places[[a, b], 0], places[[a, b], 1], color=colour, solid_capstyle="round", zorder=1, **style
        )
        middle = places[[a, b]].mean(axis=0)
        if switches:
            axes.plot(*middle, "D", color=colour, ms=6, zorder=3)
        for switch in switches:
            arrow = {"arrowstyle": "-|>", "ls": ":", "color": colour, "shrinkB": 5, "lw": 1.1}
            axes.annotate("", xy=middle, xytext=places[switch], arrowprops=arrow, zorder=2)
    box = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": INK}
    for label, (x, y) in zip(picture.labels, places.tolist(), strict=True):
        # A dollar sign in a name is no formula.
        axes.text(x, y, label, ha="center", va="center", bbox=box, color=INK, zorder=4, parse_math=False)
    axes.margins(0.15)
    axes.invert_yaxis()
    axes.set_axis_off()
