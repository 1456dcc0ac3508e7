"""What model.json holds, typed: msgspec validates it while decoding."""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from unless.data.domain import Domain, Kind, Variable
from unless.inference.results import Measure
from unless.weights.report import StoppedBy

FORMAT = "unless"
# 2: the table, and statements with their evidence.
VERSION = 2

Natural = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
WireScalar = None | bool | Whole | float | str
# One value, or a list of values, of pairs of names, or of records. A plain int, because msgspec 0.22 crashes
# where a bounded one stands beside a tuple.
WireValue = WireScalar | list[bool | int | float | str | tuple[str, str] | dict[str, WireScalar] | None]


class Opening(msgspec.Struct):
    """As much as every version says about itself."""

    format: str
    version: Natural


class WireVariable(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A variable and its levels; `ordered` and `cuts` are written only where there are such."""

    name: str
    levels: list[str]
    kind: Kind
    ordered: bool = False
    cuts: list[float] = msgspec.field(default_factory=list)


class WireCanonicalModel(msgspec.Struct, forbid_unknown_fields=True, tag="canonical_model"):
    """The sizes of a canonical model; its arrays are members."""

    n_contexts: Natural
    n_graphs: Natural


class WireGraph(msgspec.Struct, forbid_unknown_fields=True, tag="graph"):
    """A graph; its edges are a member."""


class WireFeatureSet(msgspec.Struct, forbid_unknown_fields=True, tag="feature_set"):
    """The sizes of a set of features; its arrays are members."""

    n_features: Natural
    n_conditions: Natural


class WireCandidate(msgspec.Struct, forbid_unknown_fields=True):
    """A prior that was tried, as text, and its score."""

    prior: str
    score: float


class WireCompleted(msgspec.Struct, forbid_unknown_fields=True):
    """How rows with missing values were used."""

    n_complete: Natural
    n_incomplete: Natural
    n_rounds: Natural
    n_drawn: Natural
    change: float | None = None


class WireFit(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How weights were found: a `FitReport`, its priors as text."""

    prior: str
    measure: Measure
    stopped_by: StoppedBy
    n_iterations: Natural
    n_evaluations: Natural
    objective: float
    gradient_norm: float
    tolerance: float
    candidates: list[WireCandidate]
    completed: WireCompleted | None = None


class WireLogLinearModel(
    msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, tag="log_linear_model"
):
    """The sizes of a set of features with weights; its arrays are members."""

    n_features: Natural
    n_conditions: Natural
    fit: WireFit | None = None


class WireCondition(msgspec.Struct, forbid_unknown_fields=True):
    """A variable and the levels it may have."""

    name: str
    levels: list[str]


class WireLink(msgspec.Struct, forbid_unknown_fields=True):
    """A pair and the regions in which it is linked."""

    pair: tuple[str, str]
    regions: list[list[WireCondition]]


class WireLabelledGraph(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, tag="labelled_graph"):
    """A labelled graph, all of it; no links that are only weighed is not said."""

    links: list[WireLink]
    weighed: list[WireLink] = []


WireStructure = WireCanonicalModel | WireGraph | WireFeatureSet | WireLogLinearModel | WireLabelledGraph


class WireTable(msgspec.Struct, forbid_unknown_fields=True):
    """The size of the collapsed table; its rows and counts are members."""

    n_distinct: Natural


class WireContrast(msgspec.Struct, forbid_unknown_fields=True):
    """The names and levels of a `Contrast`; its two shares stand beside the figures of the evidence."""

    column: str
    level: str
    other: str
    at_high: str
    at_low: str


class WireEvidence(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The words and sizes of a `PairEvidence`; its figures and the cells of its tables are members."""

    where: list[list[WireCondition]]
    contrast: WireContrast | None
    method: str
    table_given: list[str]
    n_strata: Natural
    n_cells: Natural
    design_effect: float | None = None


class WireGate(msgspec.Struct, forbid_unknown_fields=True):
    """The regions on both sides of a gate."""

    linked: list[list[WireCondition]]
    unlinked: list[list[WireCondition]]


class WireStatement(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A `Statement`; what most of them do not have is not said."""

    kind: str
    pair: tuple[str, str]
    sentence: str
    n_rows: Natural
    evidence: list[WireEvidence]
    given: list[str] = []
    gate: WireGate | None = None
    confidence: float | None = None
    is_finding: bool = False
    source: str | None = None
    n_broken: Natural = 0
    support: float | None = None


class WireStatements(msgspec.Struct, forbid_unknown_fields=True):
    """All statements, in their order."""

    statements: list[WireStatement]
    note: str
    settings: dict[str, WireScalar]


class WireRecord(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The whole of model.json; a table and statements that are not kept are not said."""

    format: str
    version: int
    learner: str | None
    settings: dict[str, WireValue]
    results: dict[str, WireValue]
    domain: list[WireVariable]
    structure: WireStructure
    table: WireTable | None = None
    statements: WireStatements | None = None


def json_lines(items: Iterable[msgspec.Struct]) -> str:
    """Write the items of a list, one a line, for people who read and compare files."""
    return ",\n".join(msgspec.json.encode(item).decode() for item in items)


def wire_domain(domain: Domain) -> list[WireVariable]:
    """Write a domain."""
    return [WireVariable(one.name, list(one.levels), one.kind, one.ordered, list(one.cuts)) for one in domain]


def read_domain(variables: list[WireVariable]) -> Domain:
    """Read a domain, which checks its own names and levels."""
    return Domain(tuple(map(read_variable, variables)))


def read_variable(wire: WireVariable) -> Variable:
    """Read a variable, which checks itself."""
    return Variable(wire.name, tuple(wire.levels), wire.kind, wire.ordered, tuple(wire.cuts))
