"""The answer to a query: probabilities of the joint levels of a few variables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import numpy.typing as npt

from unless.data.domain import Context, Variable
from unless.data.showing import MOST_LETTERS, html_table, visible
from unless.errors import UnknownName

Floats = npt.NDArray[np.float64]
Labels = str | tuple[str, ...]
# Longer answers are cut short when shown.
SHOWN = 20


@dataclass(frozen=True, eq=False, repr=False)
class Distribution(Mapping[Labels, float]):
    """Probabilities of the levels of one variable, or of the joint levels of several.

    `probabilities` has one axis per variable. `method` says how they were found; `error` holds the standard
    error of each probability, and is None where they are exact; `details` is what the method has to tell of
    its run, such as `r_hat`.

    Of one variable, `d["Admitted"]` is the probability of a level; of several, `d["Admitted", "Male"]`, or
    `d[{"Admit": "Admitted", "Gender": "Male"}]`.
    """

    variables: tuple[Variable, ...]
    probabilities: Floats
    evidence: Context = field(default_factory=Context)
    method: str = "exact"
    error: Floats | None = None
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables, one per axis."""
        return tuple(variable.name for variable in self.variables)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The levels along each axis."""
        return tuple(variable.levels for variable in self.variables)

    def as_dict(self) -> dict[Labels, float]:
        """Return a plain dictionary from a label, or from a tuple of labels, to its probability."""
        return dict(zip(self, self.probabilities.ravel().tolist(), strict=True))

    def most_probable(self) -> Context:
        """Return the most probable levels; of equals the first."""
        best = np.unravel_index(int(self.probabilities.argmax()), self.probabilities.shape)
        codes = map(int, best)
        return Context((v.name, v.levels[code]) for v, code in zip(self.variables, codes, strict=True))

    def __getitem__(self, key: object) -> float:
        return float(self.probabilities[self._cell(key)])

    def __iter__(self) -> Iterator[Labels]:
        if len(self.variables) == 1:
            return iter(self.variables[0].levels)
        return product(*self.labels)

    def __len__(self) -> int:
        return int(self.probabilities.size)

    def _cell(self, key: object) -> tuple[int, ...]:
        if isinstance(key, Mapping):
            unknown = sorted(set(map(str, key)) ^ set(self.names))
            if unknown:
                raise UnknownName(f"Give a label for each of {', '.join(self.names)}; see {unknown[0]!r}.")
            values = tuple(key[name] for name in self.names)
        else:
            values = key if isinstance(key, tuple) else (key,)
        if len(values) != len(self.variables):
            raise UnknownName(f"Give {len(self.variables)} labels, one for each of {', '.join(self.names)}.")
        return tuple(v.code(value) for v, value in zip(self.variables, values, strict=True))

    def __repr__(self) -> str:
        lines = [f"{', '.join(row)}: {shown}" for row, shown in self._shown()]
        more = len(self) - len(lines)
        return "\n".join([f"<{self._title()}>", *lines, *([f"... and {more:,} more"] if more else [])])

    def _repr_html_(self) -> str:
        rows = [(*labels, shown) for labels, shown in self._shown()]
        heads = [visible(name)[:MOST_LETTERS] for name in self.names]
        return html_table(self._title(), (*heads, "probability"), rows, more=len(self) - len(rows))

    def _title(self) -> str:
        given = f" given {self.evidence}" if self.evidence else ""
        return f"Distribution of {', '.join(self.names)}{given}, {self.method}"

    def _shown(self) -> Iterator[tuple[tuple[str, ...], str]]:
        errors = None if self.error is None else self.error.ravel()
        for cell, labels in zip(range(min(len(self), SHOWN)), product(*self.labels), strict=False):
            spread = "" if errors is None else f" ± {errors[cell]:.4f}"
            yield labels, f"{self.probabilities.flat[cell]:.4f}{spread}"
