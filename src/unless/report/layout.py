"""Where the boxes of a graph stand: computed once, the same every time, and never moved again."""

import unicodedata
from collections.abc import Sequence

import numpy as np

from unless.typing import Floats

# The height of a box, the room kept free around it, and the width of a letter, in the units of the plane.
HEIGHT, GAP, LETTER = 34.0, 22.0, 8.4
# Names are cut in the picture, never in the lists.
MOST_LETTERS = 18
# As the number of boxes grows so does the plane, wider than high.
WIDTH_PER_ROOT, ASPECT = 172.0, 0.66
_ROUNDS = 400


def box_width(name: str) -> float:
    """Return the width of a variable's box; letters of East Asian scripts take twice the room."""
    shown = name[:MOST_LETTERS]
    letters = sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in shown)
    return round(max(52.0, LETTER * letters + 26), 1)


def positions(n: int, edges: Sequence[tuple[int, int]], widths: Sequence[float]) -> Floats:
    """Place boxes so that linked ones are near."""
    if n == 0:
        return np.zeros((0, 2))
    linked = sorted({end for edge in edges for end in edge})
    alone = [one for one in range(n) if one not in set(linked)]
    middles = np.zeros((n, 2))
    scale = WIDTH_PER_ROOT * np.sqrt(max(len(linked), 4))
    if linked:
        middles[linked] = _spread(linked, edges) * (scale, scale * ASPECT)
        middles[linked] = _separate(middles[linked], np.array([widths[one] for one in linked]))
    _line_up(middles, alone, widths, middles[linked] if linked else None, scale)
    middles -= middles.min(axis=0)
    return np.round(middles, 1)


def _spread(linked: list[int], edges: Sequence[tuple[int, int]]) -> Floats:
    """Return middles between 0 and 1 by the method of Kamada and Kawai."""
    import networkx

    if len(linked) == 1:
        return np.full((1, 2), 0.5)
    graph = networkx.Graph()
    graph.add_nodes_from(linked)
    graph.add_edges_from(edges)
    lengths = dict(networkx.all_pairs_shortest_path_length(graph))
    longest = max(max(row.values()) for row in lengths.values())
    # Parts without a link between them stand next to each other, not far away.
    distances = {one: {other: lengths[one].get(other, longest + 1.5) for other in linked} for one in linked}
    start = networkx.circular_layout(graph)
    placed = networkx.kamada_kawai_layout(graph, dist=distances, pos=start)
    found = np.array([placed[one] for one in linked])
    span = found.max(axis=0) - found.min(axis=0)
    if span[1] > span[0]:
        found, span = found[:, ::-1], span[::-1]
    return np.asarray((found - found.min(axis=0)) / np.where(span > 1e-9, span, 1.0))


def _separate(middles: Floats, widths: Floats) -> Floats:
    """Push boxes that overlap apart, in fixed order, until none do or it has been tried long enough."""
    moved = middles.copy()
    reach = np.stack([np.add.outer(widths, widths) / 2 + GAP, np.full((len(middles),) * 2, HEIGHT + GAP)])
    for _ in range(_ROUNDS):
        still = True
        for one in range(len(moved)):
            for other in range(one + 1, len(moved)):
                offset = moved[other] - moved[one]
                overlap = reach[:, one, other] - np.abs(offset)
                if (overlap > 0.01).all():
                    axis = int(overlap[1] <= overlap[0])
                    push = overlap[axis] / 2 * (1 if offset[axis] >= 0 else -1)
                    moved[one, axis] -= push
                    moved[other, axis] += push
                    still = False
        if still:
            break
    return moved


def _line_up(
    middles: Floats, alone: list[int], widths: Sequence[float], others: Floats | None, scale: float
) -> None:
    """Put boxes without links in rows below the others."""
    left = 0.0 if others is None else float(others[:, 0].min())
    right = max(left + scale, left if others is None else float(others[:, 0].max()))
    x, y = left, 0.0 if others is None else float(others[:, 1].max()) + 2 * (HEIGHT + GAP)
    for one in alone:
        if x > left and x + widths[one] > right:
            x, y = left, y + HEIGHT + GAP
        middles[one] = x + widths[one] / 2, y
        x += widths[one] + GAP
