"""A model for notebooks: its heaviest features, as a small table."""

from typing import TYPE_CHECKING

import numpy as np

from unless.data.showing import MOST_ROWS, html_table

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel


def model_html(model: "LogLinearModel") -> str:
    """Write the features of the largest weights, whatever their sign."""
    order = np.argsort(-np.abs(model.weights), kind="stable")[:MOST_ROWS]
    chosen = np.zeros(len(model.weights), dtype=np.bool_)
    chosen[order] = True
    # The set keeps its order when some are taken.
    texts = dict(zip(np.flatnonzero(chosen).tolist(), model.features.take(chosen), strict=True))
    rows = [(str(texts[int(place)]), f"{model.weights[place]:+.3f}") for place in order]
    return html_table(repr(model)[1:-1], ("feature", "weight"), rows, more=len(model.weights) - len(rows))
