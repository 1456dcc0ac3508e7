"""The marginals of all variables at once."""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from unless.data.domain import Context, Domain
from unless.inference.distribution import Distribution

Floats = npt.NDArray[np.float64]


class Marginals(Mapping[str, Distribution]):
    """From the name of a variable to its `Distribution`; each is made when it is asked for.

    `flat` holds the probabilities of all levels of all variables, one after another; `log_partition` is the
    log partition function given the evidence.
    """

    def __init__(
        self, domain: Domain, flat: Floats, log_partition: float, evidence: Mapping[int, int]
    ) -> None:
        self.domain = domain
        self.flat = flat
        self.log_partition = log_partition
        self._codes = evidence

    @property
    def evidence(self) -> Context:
        """What the marginals are given."""
        return self.domain.decode(self._codes)

    def __getitem__(self, name: str) -> Distribution:
        position = self.domain.index(name)
        begin = int(self.domain.n_levels[:position].sum())
        variable = self.domain.variables[position]
        return Distribution((variable,), self.flat[begin : begin + len(variable.levels)], self.evidence)

    def __iter__(self) -> Iterator[str]:
        return iter(self.domain.names)

    def __len__(self) -> int:
        return len(self.domain)

    def __repr__(self) -> str:
        given = f" given {self.evidence}" if self._codes else ""
        return f"<Marginals of {len(self)} variables{given}>"
