"""The third narrow waist: features and their weights as one distribution."""

from typing import Any

import numpy as np
import numpy.typing as npt

from unless.data.dataset import Rows
from unless.data.domain import Domain
from unless.errors import SettingError
from unless.structures.features import FeatureSet

Floats = npt.NDArray[np.float64]


class LogLinearModel:
    """p(x) = exp(sum of the weights of the features that hold in x) / Z.

    Immutable. Weight k belongs to feature k in the order of `features`.
    """

    def __init__(self, features: FeatureSet, weights: npt.ArrayLike, *, report: Any = None) -> None:
        values = np.array(weights, dtype=np.float64)
        if values.shape != (len(features),):
            raise SettingError(
                f"There are {values.size:,} weights for {len(features):,} features; give one for each."
            )
        if np.isnan(values).any():
            raise SettingError("A weight is not a number; give a number for each feature.")
        values.setflags(write=False)
        self.features = features
        self.weights: Floats = values
        # How the weights were found, where they were found here.
        self.fit_report = report

    @property
    def domain(self) -> Domain:
        """The variables the model is about."""
        return self.features.domain

    def log_potentials(self, rows: Rows) -> Floats:
        """Return the log of the unnormalised probability of each row of codes."""
        from unless.kernels.potentials import log_potentials

        # Copies, because numba would compile once more for arrays that cannot be written.
        arrays = map(np.array, (*self.features.arrays, self.weights))
        sums: Floats = log_potentials(np.ascontiguousarray(rows), *arrays)
        return sums

    def __repr__(self) -> str:
        return f"<LogLinearModel: {len(self.features):,} features over {len(self.domain)} variables>"
