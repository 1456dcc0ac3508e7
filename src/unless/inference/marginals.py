"""The marginals of all variables at once."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from unless.data.domain import Context, Domain
from unless.data.showing import MOST_ROWS, html_table
from unless.inference.distribution import Distribution

Floats = npt.NDArray[np.float64]
# Levels of one variable that a notebook shows.
MOST_LEVELS = 4


class Marginals(Mapping[str, Distribution]):
    """From the name of a variable to its `Distribution`; each is made when it is asked for.

    `flat` holds the probabilities of all levels of all variables, one after another; `log_partition` is the
    log partition function given the evidence, None where it is not known.
    """

    def __init__(
        self, domain: Domain, flat: Floats, log_partition: float | None, evidence: Mapping[int, int]
    ) -> None:
        self.domain = domain
        self.flat = flat
        self.log_partition = log_partition
        self._codes = evidence
        self._answers: list[Distribution] | None = None

    @classmethod
    def of(cls, domain: Domain, answers: list[Distribution], evidence: Mapping[int, int]) -> "Marginals":
        """Collect the answers of a method that gives more than probabilities."""
        flat = np.concatenate([np.zeros(0), *(answer.probabilities for answer in answers)])
        marginals = cls(domain, flat, None, evidence)
        marginals._answers = answers
        return marginals

    @property
    def method(self) -> str:
        """How the marginals were found."""
        return self._answers[0].method if self._answers else "exact"

    @cached_property
    def evidence(self) -> Context:
        """What the marginals are given."""
        return self.domain.decode(self._codes)

    def __getitem__(self, name: str) -> Distribution:
        position = self.domain.index(name)
        if self._answers is not None:
            return self._answers[position]
        end = self._ends[position]
        variable = self.domain.variables[position]
        return Distribution((variable,), self.flat[end - len(variable.levels) : end], self.evidence)

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(self.domain.n_levels.tolist()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.domain.names)

    def __len__(self) -> int:
        return len(self.domain)

    def _repr_html_(self) -> str:
        rows = [(name, _levels_text(self[name])) for name in self.domain.names[:MOST_ROWS]]
        return html_table(repr(self)[1:-1], ("variable", "probabilities"), rows, more=len(self) - len(rows))

    def __repr__(self) -> str:
        given = f" given {self.evidence}" if self._codes else ""
        return f"<Marginals of {len(self)} variables{given}, {self.method}>"


def _levels_text(answer: Distribution) -> str:
    """Write the most probable levels of one variable."""
    shares = answer.probabilities.tolist()
    first = sorted(range(len(shares)), key=lambda code: (-shares[code], code))[:MOST_LEVELS]
    said = [f"{answer.labels[0][code]} {shares[code]:.3f}" for code in first]
    return ", ".join([*said, *(["..."] if len(shares) > len(first) else [])])
