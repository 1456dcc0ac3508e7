"""Settings of learners: how they are declared and checked, and what the kernels read of them.

A learner declares each setting once, as a field of its class:

    alpha: float = setting(default=0.05, check=between(0, 1), kw_only=False)
    rule: Literal["or", "and"] = setting(default="or")

`HasSettings` makes the constructor, its signature, the checks, `repr` and what files keep from these fields,
and adds the documentation of inherited settings to that of the class.
"""

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin

import numpy as np

from unless.counting.slices import association_order
from unless.data.dataset import Dataset
from unless.data.domain import Domain, shorten
from unless.errors import SettingError
from unless.independence.power import critical_values, minimum_rows
from unless.kernels.answers import BAYESIAN, LIKELIHOOD_RATIO, PEARSON, Rules
from unless.kernels.bits import pack_sets
from unless.runtime.memory import parse_memory
from unless.typing import Bools

Value = TypeVar("Value")
# Raises SettingError where a setting, by its name, cannot have a value.
Check = Callable[[str, Any], object]
EdgeNames = Collection[tuple[str, str]] | None
KERNEL_TESTS = {"pearson": PEARSON, "likelihood_ratio": LIKELIHOOD_RATIO, "bayesian": BAYESIAN}


@dataclass(frozen=True, eq=False)
class Setting:
    """One setting of a learner, as its class declares it."""

    default: Any
    check: Check | None
    kw_only: bool
    # Whether it cannot change the answer, and is not saved with it.
    machine: bool

    def checks_of(self, annotation: object) -> list[Check]:
        """Return its checks: the one that is declared, and what follows from its type."""
        checks = [] if self.check is None else [self.check]
        if get_origin(annotation) is Literal:
            checks.append(one_of(*get_args(annotation)))
        elif annotation is bool:
            checks.append(_check_bool)
        return checks


def setting(
    *, default: Value, check: Check | None = None, kw_only: bool = True, machine: bool = False
) -> Value:
    """Declare a setting in the body of a learner's class.

    A setting whose type is `Literal` or `bool` is checked by its type. A `machine` setting changes how the
    work is done and never the answer.
    """
    declared: Any = Setting(default, check, kw_only, machine)
    return declared  # type: ignore[no-any-return]


def learned(*, init: Literal[False] = False) -> Any:
    """Declare a result, which `fit` sets: no setting, and no attribute before."""
    return None if init else learned


class HasSettings:
    """A class whose fields are its settings: its constructor stores them and does nothing else.

    They are listed in the order of the class, then of its base.
    """

    _settings: ClassVar[Mapping[str, Setting]] = {}
    _checks: ClassVar[Mapping[str, list[Check]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        declared = {name: value for name, value in vars(cls).items() if isinstance(value, Setting)}
        for name in [name for name, value in vars(cls).items() if value is learned or name in declared]:
            # Before the constructor, or `fit`, there is no such attribute.
            delattr(cls, name)
        annotations = inspect.get_annotations(cls)
        own_checks = {name: one.checks_of(annotations[name]) for name, one in declared.items()}
        cls._settings = {**declared, **{k: v for k, v in cls._settings.items() if k not in declared}}
        cls._checks = {**own_checks, **{k: v for k, v in cls._checks.items() if k not in declared}}
        if "__init__" not in vars(cls):
            cls.__init__ = _constructor(cls)  # type: ignore[method-assign]
        _document_inherited(cls)

    def check_settings(self) -> None:
        """Refuse settings that are wrong whatever the table."""
        for name, checks in self._checks.items():
            for check in checks:
                check(name, getattr(self, name))

    @classmethod
    def default_settings(cls) -> dict[str, Any]:
        """Return the constructor's arguments with their defaults, in their order."""
        return {name: one.default for name, one in inspect.signature(cls).parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the settings by name."""
        return {name: getattr(self, name) for name in self.default_settings()}

    def set_params(self, **settings: Any) -> Self:
        """Change settings by name."""
        for name, value in settings.items():
            if name not in self.default_settings():
                known = ", ".join(self.default_settings())
                raise SettingError(f"{type(self).__name__} has no setting {name!r}; it has {known}.")
            setattr(self, name, value)
        return self

    def answer_settings(self) -> dict[str, Any]:
        """Return the settings that shape the answer: those that are saved with it."""
        machine = {name for name, one in self._settings.items() if one.machine}
        return {name: value for name, value in self.get_params().items() if name not in machine}

    def __repr__(self) -> str:
        defaults = self.default_settings()
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if not _same(value, defaults[name])
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _constructor(kind: type[HasSettings]) -> Any:
    """Make the constructor of a class: it stores its settings and does nothing else."""
    parameter = inspect.Parameter
    annotations: dict[str, Any] = {}
    for one in reversed(kind.__mro__):
        annotations |= inspect.get_annotations(one)
    parameters = [
        parameter(
            name,
            parameter.KEYWORD_ONLY if one.kw_only else parameter.POSITIONAL_OR_KEYWORD,
            default=one.default,
            annotation=annotations[name],
        )
        for name, one in kind._settings.items()
    ]
    signature = inspect.Signature(parameters)

    def __init__(self: HasSettings, *values: Any, **settings: Any) -> None:  # noqa: N807
        try:
            bound = signature.bind(*values, **settings)
        except TypeError as error:
            raise TypeError(f"{kind.__name__}() {error}") from None
        bound.apply_defaults()
        vars(self).update(bound.arguments)

    made: Any = __init__
    itself = parameter("self", parameter.POSITIONAL_OR_KEYWORD)
    made.__signature__ = inspect.Signature([itself, *parameters], return_annotation=None)
    return made


def _document_inherited(kind: type[HasSettings]) -> None:
    """Add the parameters that a class inherits to the section Parameters of its documentation."""
    own, inherited = (inspect.cleandoc(one.__doc__ or "") for one in (kind, kind.__mro__[1]))
    title = "\nParameters\n----------\n"
    if title in own and title in inherited:
        before, entries = own.split(title)
        listed, blank, after = entries.partition("\n\n")
        more = inherited.split(title)[1].partition("\n\n")[0]
        kind.__doc__ = f"{before}{title}{listed}\n{more}{blank}{after}"


def _same(value: object, default: object) -> bool:
    # Arrays compare element by element, and are never a default; a file gives lists back for tuples.
    if isinstance(value, list) and isinstance(default, tuple):
        value = tuple(value)
    return type(value) is type(default) and bool(value == default)


def one_of(*choices: str) -> Check:
    """Allow some texts only."""

    def check(name: str, value: Any) -> None:
        if not isinstance(value, str) or value not in choices:
            raise SettingError(f"{name}={value!r} is not one of {', '.join(map(repr, choices))}.")

    return check


def between(low: float, high: float) -> Check:
    """Allow the numbers of an open interval."""

    def check(name: str, value: Any) -> None:
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not is_number or not low < float(value) < high:
            raise SettingError(f"{name}={value!r} must be a number between {low} and {high}, both excluded.")

    return check


def at_least(low: int, *, optional: bool = True) -> Check:
    """Allow whole numbers from `low` on, and None if it is `optional`."""

    def check(name: str, value: Any) -> None:
        if value is None and optional:
            return
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
            either = "None or " if optional else ""
            raise SettingError(f"{name}={value!r} must be {either}a whole number of at least {low}.")

    return check


def check_n_jobs(name: str, value: object) -> None:
    """Allow None and whole numbers other than 0."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value == 0:
        raise SettingError(f"{name}={value!r} must be None, a number of threads, or -1 for all of them.")


def check_memory(_: str, value: int | str | None) -> None:
    """Allow None and an amount of memory."""
    if value is not None:
        parse_memory(value)


def check_folder(name: str, value: object) -> None:
    """Allow None and the path of a folder."""
    if value is not None and (not isinstance(value, str | os.PathLike) or not str(value).strip()):
        raise SettingError(f"{name}={value!r} must be None or the path of a folder.")


def _check_bool(name: str, value: object) -> None:
    if not isinstance(value, bool | np.bool_):
        raise SettingError(f"{name}={value!r} must be True or False.")


def resolve_order(data: Dataset, order: str | Sequence[str]) -> list[int]:
    """Return the columns in the order a learner visits them."""
    if isinstance(order, str):
        one_of("association", "columns")("order", order)
        return association_order(data) if order == "association" else list(range(data.n_variables))
    # An iterator would be empty at the second look, and a set has another order in another process.
    if not isinstance(order, Collection) or isinstance(order, AbstractSet | Mapping):
        raise SettingError(f"order={order!r} must be 'association', 'columns' or a list of all names.")
    names = list(order)
    columns = [data.domain.index(name) for name in names]
    if sorted(columns) != list(range(data.n_variables)):
        missing = [name for name in data.names if name not in names]
        what = f"leaves out {shorten(missing)}" if missing else "names a variable twice"
        raise SettingError(f"order= must name every variable once; it {what}.")
    return columns


def edge_matrix(domain: Domain, edges: EdgeNames, setting: str) -> Bools:
    """Turn pairs of names into a symmetric matrix of columns."""
    matrix = np.zeros((len(domain), len(domain)), dtype=np.bool_)
    if edges is None:
        return matrix
    if not isinstance(edges, Collection):
        # An iterator would be empty at the second fit.
        raise SettingError(f"{setting}= must be a list of pairs of names.")
    for edge in edges:
        pair = tuple(edge) if isinstance(edge, Iterable) and not isinstance(edge, str) else (edge,)
        if len(pair) != 2 or pair[0] == pair[1]:
            raise SettingError(f"{setting}= holds {edge!r}; each edge is a pair of two different names.")
        a, b = (domain.index(name) for name in pair)
        matrix[a, b] = matrix[b, a] = True
    return matrix


def edge_limits(domain: Domain, required: EdgeNames, forbidden: EdgeNames) -> tuple[Bools, Bools]:
    """Return the edges that must be there and those that must not, as matrices of columns."""
    must = edge_matrix(domain, required, "required_edges")
    never = edge_matrix(domain, forbidden, "forbidden_edges")
    if (must & never).any():
        a, b = np.argwhere(must & never)[0]
        raise SettingError(
            f"The edge {domain.names[a]!r} - {domain.names[b]!r} is both required and forbidden."
        )
    return must, never


def kernel_rules(data: Dataset, order: list[int], settings: Mapping[str, Any]) -> Rules:
    """Write the settings of CSGS or CSPC, checked already, as the kernels read them."""
    alpha, effect = float(settings["alpha"]), float(settings["effect"])
    max_blanket = settings.get("max_blanket")
    must, never = edge_limits(data.domain, settings["required_edges"], settings["forbidden_edges"])
    max_df = int(np.prod([size - 1 for size in _most_levels(data)]))
    keep_undecided = settings["undecided"] == "keep"
    # Only a learner that treats "undecided" in its own way needs to know how many rows settle a question.
    enough: Any = minimum_rows(alpha, effect, max_df) if keep_undecided else np.zeros(max_df + 1, np.int64)
    return Rules(
        critical=np.array(critical_values(alpha, max_df)),
        minimum_rows=np.array(enough),
        test=KERNEL_TESTS[settings["test"]],
        keep_undecided=keep_undecided,
        max_blanket=len(data.domain) if max_blanket is None else int(max_blanket),
        required=pack_sets(must[np.ix_(order, order)]),
        forbidden=pack_sets(never[np.ix_(order, order)]),
    )


def _most_levels(data: Dataset) -> list[int]:
    """Return how many levels occur in the two variables with most; others give no degree of freedom."""
    most: list[int] = []
    for column in np.argsort(-data.domain.n_levels):
        # Counted only as long as a variable could have more.
        if len(most) == 2 and most[0] >= data.domain.n_levels[column]:
            break
        most = sorted([*most, int(np.count_nonzero(np.bincount(data.rows[:, column])))])[-2:]
    return most
