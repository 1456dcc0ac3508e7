"""Features: conjunctions of conditions on labels, and sets of them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
import numpy.typing as npt

from unless.data.domain import Domain
from unless.data.labels import to_label
from unless.data.showing import MOST_ROWS, html_table
from unless.errors import SettingError, UnlessError
from unless.structures.conditions import FeatureArrays, Literal, normalised, tidy
from unless.structures.graph import Graph, InstantiatedGraph
from unless.structures.pairs import Edge
from unless.structures.separation import Names


@dataclass(frozen=True, order=True, slots=True)
class Condition:
    """A variable has a level, or has it not."""

    name: str
    label: str
    equal: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", to_label(self.label))

    def __str__(self) -> str:
        return f"{self.name} {'=' if self.equal else '!='} {self.label}"

    def _repr_html_(self) -> str:
        return html_table(str(self), (), ())


@dataclass(frozen=True, repr=False)
class Feature:
    """An indicator: 1 where all of its conditions hold, 0 elsewhere.

    >>> str(Feature([Condition("Gender", "Male", equal=False), Condition("Dept", "A")]))
    'Dept = A & Gender != Male'
    """

    conditions: tuple[Condition, ...]

    def __init__(self, conditions: Iterable[Condition]) -> None:
        # A frozen value is completed once, here.
        object.__setattr__(self, "conditions", tuple(sorted(set(conditions))))

    @classmethod
    def of(cls, context: Mapping[str, object]) -> "Feature":
        """Return the indicator of an assignment."""
        return cls(Condition(name, to_label(value)) for name, value in context.items())

    @property
    def scope(self) -> tuple[str, ...]:
        """The names of the variables it speaks of, sorted."""
        return tuple(dict.fromkeys(condition.name for condition in self.conditions))

    def matches(self, context: Mapping[str, object]) -> bool:
        """Tell whether all conditions hold in a context that gives a value to the whole scope."""
        for name in self.scope:
            if name not in context:
                raise SettingError(f"The feature speaks of {name!r}, to which the context gives no value.")
        return all((to_label(context[c.name]) == c.label) == c.equal for c in self.conditions)

    def __iter__(self) -> Iterator[Condition]:
        return iter(self.conditions)

    def __len__(self) -> int:
        return len(self.conditions)

    def __str__(self) -> str:
        return " & ".join(map(str, self.conditions))

    def __repr__(self) -> str:
        return f"<Feature: {self}>"

    def _repr_html_(self) -> str:
        rows = [(one.name, "is" if one.equal else "is not", one.label) for one in self]
        return html_table("Feature", ("variable", "", "level"), rows)


class FeatureSet:
    """Distinct features over one domain, in a fixed order: by size, by scope, by values.

    Features that are true together are one feature: of two levels, "!= a" is "= b".
    """

    domain: Domain
    arrays: FeatureArrays

    def __init__(self, domain: Domain, features: Iterable[Feature] = ()) -> None:
        said = FeatureArrays.of(_literals(domain, feature) for feature in features)
        self._settle(domain, said)

    @classmethod
    def from_arrays(cls, domain: Domain, arrays: FeatureArrays) -> "FeatureSet":
        """Take features given by positions and codes, in any order and with repetitions."""
        levels = domain.n_levels
        variable = arrays.variable.astype(np.int64)
        if ((variable < 0) | (variable >= len(domain))).any() or (arrays.level >= levels[variable]).any():
            raise SettingError(
                "A condition is outside the domain; give positions of variables and codes of levels."
            )
        features = object.__new__(cls)
        features._settle(domain, arrays)
        return features

    def take(self, chosen: npt.ArrayLike) -> "FeatureSet":
        """Keep some of the features: a yes or no for each, in the order of the set."""
        kept = np.asarray(chosen)
        if kept.dtype != np.bool_ or kept.shape != (len(self),):
            raise SettingError(f"Say yes or no for each of the {len(self):,} features to keep some of them.")
        return FeatureSet.from_arrays(self.domain, self.arrays.take(kept))

    def graph(self) -> Graph:
        """Link every two variables that appear together in some feature."""
        return self._graph(np.ones(len(self), dtype=np.bool_))

    def given(self, context: Mapping[str, object] | None = None) -> InstantiatedGraph:
        """Link every two variables that appear together in some feature the context does not contradict.

        A feature that leaves variables of the context out acts in every context, so it counts here too; the
        graph is thus the union, over all completions of the context, of the pairs that interact there.
        """
        codes = self.domain.encode(context)
        graph = self._graph(self._compatible(codes))
        return graph._as(InstantiatedGraph, context=self.domain.decode(codes))

    def n_compatible(self, context: Mapping[str, object] | None = None) -> int:
        """Count the features that a context does not contradict."""
        return int(self._compatible(self.domain.encode(context)).sum())

    def pair_counts(self, context: Mapping[str, object] | None = None) -> dict[Edge, int]:
        """Count, for every two variables linked in `given(context)`, the features that speak of both."""
        together = self._together(self._compatible(self.domain.encode(context)))
        names = self.domain.names
        first, second = np.nonzero(np.triu(together, 1))
        counts = together[first, second].tolist()
        pairs = zip(first.tolist(), second.tolist(), strict=True)
        # In either order of columns a pair is named in sorted order.
        return {
            (min(names[a], names[b]), max(names[a], names[b])): n
            for (a, b), n in zip(pairs, counts, strict=True)
        }

    def is_independent(
        self, a: Names, b: Names, given: Names = (), context: Mapping[str, object] | None = None
    ) -> bool:
        """Tell whether the given variables and those of the context separate a from b in `given(context)`."""
        return self.given(context).is_independent(a, b, given)

    def _compatible(self, codes: Mapping[int, int]) -> npt.NDArray[np.bool_]:
        if not len(self):
            return np.zeros(0, dtype=np.bool_)
        fixed = np.full(len(self.domain), -1)
        fixed[list(codes)] = list(codes.values())
        _, variable, level, equal = self.arrays
        holds = (fixed[variable] < 0) | ((fixed[variable] == level) == equal)
        return np.logical_and.reduceat(holds, self.arrays.start[:-1])

    def _graph(self, kept: npt.NDArray[np.bool_]) -> Graph:
        names = self.domain.names
        first, second = np.nonzero(np.triu(self._together(kept), 1))
        edges: frozenset[Edge] = frozenset(
            (names[a], names[b]) for a, b in zip(first.tolist(), second.tolist(), strict=True)
        )
        return Graph(self.domain, edges)

    def _together(self, kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Count, for every two variables, the features among some that speak of both."""
        from scipy.sparse import csr_array

        # Copies, because duplicates are summed in place.
        start, variable = np.array(self.arrays.start), np.array(self.arrays.variable)
        shape = len(self), len(self.domain)
        speaks = csr_array((np.ones(len(variable), dtype=np.int64), variable, start), shape=shape)
        speaks.sum_duplicates()
        # A variable with several conditions in a feature is in it once.
        speaks.data[:] = np.repeat(kept, np.diff(speaks.indptr))
        return np.asarray((speaks.T @ speaks).toarray())

    @cached_property
    def _literal_set(self) -> frozenset[tuple[Literal, ...]]:
        return frozenset(self.arrays.literals())

    def _settle(self, domain: Domain, arrays: FeatureArrays) -> None:
        frozen = normalised(arrays, domain.n_levels)
        for array in frozen:
            array.flags.writeable = False
        self.__dict__.update(domain=domain, arrays=frozen)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("A set of features does not change; make another one.")

    def __len__(self) -> int:
        return len(self.arrays.start) - 1

    def __iter__(self) -> Iterator[Feature]:
        variables = self.domain.variables
        conditions = {
            (position, level, equal): Condition(variable.name, label, equal)
            for position, variable in enumerate(variables)
            for level, label in enumerate(variable.levels)
            for equal in (True, False)
        }
        for literals in self.arrays.literals():
            yield Feature(conditions[literal] for literal in literals)

    def __contains__(self, feature: object) -> bool:
        if not isinstance(feature, Feature):
            return False
        try:
            literals = tidy(_literals(self.domain, feature), self.domain.n_levels)
        except UnlessError:
            # A name or level from elsewhere, or a contradiction, is in no set.
            return False
        return tuple(literals) in self._literal_set

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeatureSet):
            return NotImplemented
        if self.domain != other.domain:
            return _levels(self.domain) == _levels(other.domain) and set(self) == set(other)
        return self.arrays.same_as(other.arrays)

    def __hash__(self) -> int:
        return hash((frozenset(self.domain.names), len(self)))

    def __dir__(self) -> list[str]:
        # What other parts of the library use is no help to people.
        inner = ("arrays", "from_arrays")
        return [name for name in super().__dir__() if not name.startswith("_") and name not in inner]

    def _repr_html_(self) -> str:
        first = [(str(feature),) for feature in islice(self, MOST_ROWS)]
        return html_table(repr(self)[1:-1], ("feature",), first, more=len(self) - len(first))

    def __repr__(self) -> str:
        return f"<FeatureSet: {len(self):,} features over {len(self.domain)} variables>"


def _literals(domain: Domain, feature: Feature) -> list[Literal]:
    return [(domain.index(c.name), domain[c.name].code(c.label), c.equal) for c in feature]


def _levels(domain: Domain) -> dict[str, frozenset[str]]:
    return {variable.name: frozenset(variable.levels) for variable in domain}
