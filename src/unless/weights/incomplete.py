"""Weights from rows with missing values, by EM.

The E step gives each row its completions, with their probabilities under the present weights given what the
row shows. The M step fits the weights to all completed rows, each counted by its probability. It ends when a
round changes the completions of an average row by less than a thousandth. Where some rows have too many
completions to list, these are drawn anew in each round (data augmentation): the rule looks at the other rows,
and if it does not end EM after 20 rounds the weights returned are the mean of those of the last 10.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Dataset
from unless.errors import TooLarge
from unless.inference.completing import MOST_ROWS, Completions, Incomplete
from unless.inference.fit_report import Completed, FitReport
from unless.inference.model import LogLinearModel
from unless.inference.priors import Prior
from unless.runtime.memory import parse_memory, show_memory
from unless.structures.distinct import distinct_rows
from unless.structures.graph import FeatureSet
from unless.weights.objective import make_loss

Floats = npt.NDArray[np.float64]
# Done when a round changes the completions of an average row by less than this, or after so many rounds.
LEAST_CHANGE = 1e-3
MOST_ROUNDS = 100
# Rounds where some completions are drawn, and the last of them whose weights are averaged.
DRAWN_ROUNDS, AVERAGED = 20, 10
# The share of the memory that completed rows may take, and what each takes by column and beside them.
_SHARE = 0.5
_BYTES_A_CELL, _BYTES_A_ROW = 48, 64


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
        self.completions = Completions(
            features.domain, incomplete.cells, most_rows=self._most_rows(), random_state=random_state
        )
        self._known: tuple[Dataset, npt.NDArray[np.intp]] | None = None

    def _most_rows(self) -> int:
        """Return how many completed rows there may be; refuse a table of which memory holds none for each."""
        limit, n_rows = parse_memory(self.layout.get("max_memory")), len(self.incomplete.counts)
        each = _BYTES_A_CELL * self.data.n_variables + _BYTES_A_ROW
        if n_rows * each > _SHARE * limit:
            need = show_memory(n_rows * each / _SHARE)
            raise TooLarge(
                f"{n_rows:,} different rows with missing values would need {need}, and {show_memory(limit)} "
                "are allowed; leave them out with incomplete='drop', or raise max_memory=."
            )
        return int(min(MOST_ROWS, _SHARE * limit // each))

    def fit(self, prior: Prior, start: Floats, settings: dict[str, Any]) -> tuple[Floats, FitReport]:
        """Return the weights where rounds of EM change no more, and how they were found."""
        from unless.weights.fitting import fit

        bar, made = settings["step"], self.completions
        weights, reports, trail = start, list[FitReport](), list[Floats]()
        before: Floats | None = None
        change: float | None = None
        most = DRAWN_ROUNDS if made.n_drawn else MOST_ROUNDS
        while len(reports) < most:
            model = LogLinearModel(self.features, weights)
            made.draw(model)
            chances = made.chances(model)
            change = None if before is None else self.change(before, chances)
            if change is not None and change < LEAST_CHANGE:
                break
            before = chances
            table, counts = self.completed(chances)
            bar.begin(f"EM round {len(reports) + 1}", None, counted=False)
            loss = make_loss(self.features, table, **self.layout, counts=counts)
            weights, report = fit(self.features, loss, prior, weights, **settings)
            reports.append(report)
            trail = [*trail[1 - AVERAGED :], weights]
        if made.n_drawn and len(reports) == most:
            weights = np.mean(trail, axis=0)
        return weights, self._report(reports, change)

    def complete(self, model: LogLinearModel) -> tuple[Dataset, Floats]:
        """Return all rows, completed under a model, and how much each counts."""
        self.completions.draw(model)
        return self.completed(self.completions.chances(model))

    def change(self, before: Floats, after: Floats) -> float | None:
        """Return what a round changed of the completions of an average row: half of all differences.

        Rows whose completions are drawn are left out; None where all are.
        """
        made = self.completions
        if made.n_drawn == made.n_rows:
            return None
        worth = self.incomplete.weights[made.owner[: made.n_listed]]
        moved = np.abs(after - before)[: made.n_listed]
        # The completions of a row have a probability of 1 together.
        return float((moved * worth).sum() / 2 / (after[: made.n_listed] * worth).sum())

    def completed(self, chances: Floats) -> tuple[Dataset, Floats]:
        """Return all rows, the complete ones and the completions, and how much each counts."""
        made, data = self.completions, self.data
        if self._known is None or made.n_drawn:
            rows, place = distinct_rows(np.concatenate([data.rows, made.rows]))
            self._known = Dataset(data.domain, rows, np.ones(len(rows), dtype=np.int64)), place
        table, place = self._known
        shares = chances * self.incomplete.weights[made.owner]
        whole = data.counts.astype(np.float64) if data.weights is None else data.weights
        weighed = np.concatenate([whole, shares])
        return table, np.bincount(place, weighed, table.n_distinct).astype(np.float64)

    def _report(self, reports: list[FitReport], change: float | None) -> FitReport:
        n_incomplete, n_drawn = int(self.incomplete.counts.sum()), self.completions.n_drawn
        told = Completed(self.data.n_rows, n_incomplete, len(reports), n_drawn, change)
        return replace(
            reports[-1],
            n_iterations=sum(one.n_iterations for one in reports),
            n_evaluations=sum(one.n_evaluations for one in reports),
            completed=told,
        )
