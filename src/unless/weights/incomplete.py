"""Weights from rows with missing values, by EM.

The E step gives each row its completions, with their probabilities under the present weights given what the
row shows. The M step fits the weights to all completed rows, each counted by its probability. Where some rows
have too many completions to list, these are drawn anew in each round (data augmentation), and the weights
returned are the mean of those of the last rounds.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.errors import DataError
from unless.inference.completing import MOST_ROWS, Completions, Incomplete
from unless.inference.fit_report import Completed, FitReport
from unless.inference.model import LogLinearModel
from unless.inference.priors import Prior
from unless.runtime.memory import parse_memory
from unless.structures.distinct import distinct_rows
from unless.structures.features import FeatureSet
from unless.weights.objective import make_loss

Floats = npt.NDArray[np.float64]
# Done when a round changes the completions of an average row by less than this share, or after so many.
LEAST_CHANGE = 1e-3
MOST_ROUNDS = 100
# Rounds where some completions are drawn, and the last of them whose weights are averaged.
DRAWN_ROUNDS, AVERAGED = 20, 10
# The share of the memory that completed rows may take, and what each takes by column and beside them.
_SHARE = 0.25
_BYTES_A_CELL, _BYTES_A_ROW = 64, 64


class ExpectationMaximisation:
    """EM for the weights of features over a table, some rows of which have missing values."""

    def __init__(
        self,
        features: FeatureSet,
        data: Dataset,
        incomplete: Incomplete,
        layout: dict[str, Any],
        random_state: Any = None,
    ) -> None:
        self.features, self.data, self.incomplete, self.layout = features, data, incomplete, layout
        need = _BYTES_A_CELL * data.n_variables + _BYTES_A_ROW
        most = int(min(MOST_ROWS, _SHARE * parse_memory(layout.get("max_memory")) // need))
        domain = features.domain
        self.completions = Completions(domain, incomplete.cells, most_rows=most, random_state=random_state)
        self._known: tuple[Dataset, npt.NDArray[np.intp]] | None = None

    def fit(self, prior: Prior, start: Floats, settings: dict[str, Any]) -> tuple[Floats, FitReport]:
        """Return the weights where rounds of EM change no more, and how they were found."""
        from unless.weights.fitting import fit

        if not self.data.n_rows and not len(self.incomplete.counts):
            raise DataError("The table has no rows; there is nothing to fit weights to.")
        bar, made = settings["step"], self.completions
        weights, reports, trail = start, [], []
        before, change = np.zeros(0), np.inf
        most = DRAWN_ROUNDS if made.n_drawn else MOST_ROUNDS
        while len(reports) < most:
            model = LogLinearModel(self.features, weights)
            made.draw(model)
            chances = made.chances(model)
            if len(before) and not made.n_drawn:
                change = self.change(before, chances)
                if change < LEAST_CHANGE:
                    break
            before = chances
            table, counts = self.completed(chances)
            bar.begin(f"EM round {len(reports) + 1}", None, counted=False)
            loss = make_loss(self.features, table, **self.layout, counts=counts)
            weights, report = fit(self.features, loss, prior, weights, **settings)
            reports.append(report)
            trail = [*trail[1 - AVERAGED :], weights]
        if made.n_drawn:
            weights = np.mean(trail, axis=0)
        return weights, self._report(reports, change)

    def change(self, before: Floats, after: Floats) -> float:
        """Return what a round changed of the completions of an average row: half of all differences."""
        counts = self.incomplete.counts
        moved = np.bincount(self.completions.owner, np.abs(after - before), len(counts)) / 2
        return float((moved * counts).sum() / counts.sum())

    def completed(self, chances: Floats) -> tuple[Dataset, Floats]:
        """Return all rows, the complete ones and the completions, and how much each counts."""
        made, data = self.completions, self.data
        if self._known is None or made.n_drawn:
            rows, place = distinct_rows(np.concatenate([data.rows, made.rows]))
            self._known = Dataset(data.domain, rows, np.ones(len(rows), dtype=np.int64)), place
        table, place = self._known
        shares = chances * self.incomplete.counts[made.owner]
        weighed = np.concatenate([data.counts.astype(np.float64), shares])
        return table, np.bincount(place, weighed, table.n_distinct)

    def _report(self, reports: list[FitReport], change: float) -> FitReport:
        n_incomplete, n_drawn = int(self.incomplete.counts.sum()), self.completions.n_drawn
        told = Completed(self.data.n_rows, n_incomplete, len(reports), n_drawn, min(change, 1.0))
        return replace(
            reports[-1],
            n_iterations=sum(one.n_iterations for one in reports),
            n_evaluations=sum(one.n_evaluations for one in reports),
            completed=told,
        )
