"""Answers: the probabilities of the joint levels of a few variables, the marginals of all, the best state."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, product
from typing import Literal

import numpy as np

from unless.data.domain import Context, Domain, Variable
from unless.data.showing import MOST_LETTERS, MOST_ROWS, html_table, visible
from unless.errors import ImpossibleEvidence, TooLarge, UnknownName
from unless.runtime.memory import show_memory
from unless.typing import Floats

# A joint table is enumerated state by state.
MAX_JOINT = 2**22
# The most axes that arrays of every version of numpy can have.
MAX_AXES = 32

# What may be large: how well each value of a row is predicted from the others, or how probable the row is.
Measure = Literal["pseudo_log_likelihood", "log_likelihood"]
Labels = str | tuple[str, ...]
# Longer answers are cut short when shown.
SHOWN = 20
# Levels of one variable that a notebook shows.
MOST_LEVELS = 4


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
        return float(self.probabilities[self._index_of(key)])

    def __iter__(self) -> Iterator[Labels]:
        if len(self.variables) == 1:
            return iter(self.variables[0].levels)
        return product(*self.labels)

    def __len__(self) -> int:
        return int(self.probabilities.size)

    def _index_of(self, key: object) -> tuple[int, ...]:
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


class MostProbable(Context):
    """A most probable assignment, with the log of its probability given the evidence."""

    __slots__ = ("log_probability",)

    def __init__(self, context: Context, log_probability: float) -> None:
        super().__init__(context)
        self.log_probability = log_probability

    def _repr_html_(self) -> str:
        title = f"Most probable, log probability {self.log_probability:.4f}"
        return html_table(title, ("variable", "level"), list(self.items()))


def impossible(domain: Domain, evidence: Mapping[int, int]) -> ImpossibleEvidence:
    """Say that nothing can be said."""
    if not evidence:
        return ImpossibleEvidence(
            "The weights of the model leave no state possible; drop a weight of infinity."
        )
    return ImpossibleEvidence(
        f"The model gives the evidence {domain.decode(evidence)} probability zero; drop some of it."
    )


def check_joint(domain: Domain, variables: list[int]) -> None:
    """Refuse a joint table that no engine could fill."""
    # Numbers of this size overflow those of numpy, silently.
    n_cells = math.prod(domain.n_levels[variables].tolist())
    if n_cells > MAX_JOINT:
        size = f"{n_cells:.3g} cells ({show_memory(8 * n_cells)})" if n_cells < 1e300 else "over 1e300 cells"
        raise TooLarge(
            f"A joint table of these variables has {size}, more than the {MAX_JOINT:,} that are enumerated; "
            "ask about fewer variables at once."
        )
    if len(variables) > MAX_AXES:
        raise TooLarge(f"A joint table has at most {MAX_AXES} variables; ask about fewer at once.")
