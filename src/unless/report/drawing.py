"""Boxes, lines and the arrows from gates to links, on axes of matplotlib."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

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
    places: npt.NDArray[np.float64]
    widths: dict[Pair, float]
    gates: dict[Pair, list[int]] = field(default_factory=dict)
    kinds: dict[Pair, str] = field(default_factory=dict)


def draw(axes: Any, picture: Picture, states: Mapping[Pair, str]) -> None:
    """Draw the links by their kinds and by what they say here; what is drawn first lies below."""
    places = picture.places
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
            places[[a, b], 0], places[[a, b], 1], color=colour, lw=width, ls=DASHES[state],
            solid_capstyle="round", zorder=1,
        )  # fmt: skip
        middle = places[[a, b]].mean(axis=0)
        if kind in MARKS:
            axes.plot(
                *middle,
                MARKS[kind],
                color=colour,
                mfc="white" if kind == "partly" else colour,
                ms=6,
                zorder=3,
            )
        for switch in picture.gates.get(pair, []):
            arrow = {"arrowstyle": "-|>", "ls": ":", "color": colour, "shrinkB": 5, "lw": 1.1}
            axes.annotate("", xy=middle, xytext=places[switch], arrowprops=arrow, zorder=2)
    box = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": INK}
    for label, (x, y) in zip(picture.labels, places.tolist(), strict=True):
        # A dollar sign in a name is no formula.
        axes.text(x, y, label, ha="center", va="center", bbox=box, color=INK, zorder=4, parse_math=False)
    axes.margins(0.15)
    axes.invert_yaxis()
    axes.set_axis_off()
