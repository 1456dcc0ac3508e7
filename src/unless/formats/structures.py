"""Structures to the members of an .unless file and back; what comes back is checked before it is believed.

Arrays are .npy members whose type and shape are known before they are read. How weights were found is kept
beside them.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import structs

from unless.data.dataset import MOST_ROWS, Dataset, are_distinct, come_in_order, rows_increase
from unless.data.domain import Domain, Region
from unless.errors import FileFormatError, SettingError
from unless.formats.wire import (
    WireCandidate,
    WireCanonicalModel,
    WireCompleted,
    WireCondition,
    WireFeatureSet,
    WireFit,
    WireGraph,
    WireLabelledGraph,
    WireLink,
    WireLogLinearModel,
    WireStructure,
    WireTable,
)
from unless.inference.model import LogLinearModel
from unless.structures.canonical import CanonicalModel
from unless.structures.graph import FeatureSet, Graph
from unless.structures.labelled import LabelledGraph, Link
from unless.structures.structure import FeatureArrays, Structure, is_padded_with_zeros, packed_width
from unless.weights.priors import parse_prior
from unless.weights.report import Candidate, Completed, FitReport

FEATURE_TYPES = {"equal": "|u1", "level": "<u2", "start": "<i8", "variable": "<i4"}
FEATURE_MEMBERS = [f"{name}.npy" for name in FEATURE_TYPES]
Members = Mapping[str, bytes]


def to_npy(array: npt.NDArray[Any], dtype: str) -> bytes:
    """Write an array as numpy.save would, byte for byte the same with every numpy."""
    return _header(dtype, array.shape) + np.ascontiguousarray(array, dtype=dtype).tobytes()


def from_npy(members: Mapping[str, bytes], name: str, dtype: str, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Read an array of exactly this type and shape.

    Nothing in the member is interpreted: its header must be the one expected, so it can ask for no memory.
    """
    content = members[name]
    header = _header(dtype, shape)
    if len(content) != len(header) + prod(shape) * np.dtype(dtype).itemsize or not content.startswith(header):
        raise FileFormatError(f"{name} has another type or size than model.json says")
    return np.frombuffer(content, dtype=dtype, offset=len(header)).reshape(shape)


def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    fields = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode("ascii")
    # Version 1.0 of the format: ten bytes, then the fields, padded so that data begins at a multiple of 64.
    padding = -(10 + len(fields) + 1) % 64
    text = fields + b" " * padding + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def wire_report(report: FitReport | None) -> WireFit | None:
    """Write a report; one with numbers that JSON has no word for is left out."""
    if report is None:
        return None
    numbers = [report.objective, report.gradient_norm, report.tolerance]
    if not all(map(math.isfinite, numbers + [tried.score for tried in report.candidates])):
        return None
    return WireFit(
        **{
            **vars(report),
            "prior": repr(report.prior),
            "candidates": [WireCandidate(repr(tried.prior), tried.score) for tried in report.candidates],
            "completed": None if report.completed is None else WireCompleted(**asdict(report.completed)),
        }
    )


def read_report(wire: WireFit | None) -> FitReport | None:
    """Read a report."""
    if wire is None:
        return None
    return FitReport(
        **{
            **structs.asdict(wire),
            "prior": parse_prior(wire.prior),
            "candidates": tuple(Candidate(parse_prior(one.prior), one.score) for one in wire.candidates),
            "completed": None if wire.completed is None else Completed(**structs.asdict(wire.completed)),
        }
    )


def structure_members(structure: Structure) -> tuple[WireStructure, dict[str, bytes]]:
    """Turn a structure into its sizes and its arrays."""
    if isinstance(structure, CanonicalModel):
        return _canonical_members(structure)
    if isinstance(structure, FeatureSet):
        return _feature_members(structure)
    if isinstance(structure, LogLinearModel):
        return _model_members(structure)
    if isinstance(structure, LabelledGraph):
        return WireLabelledGraph(_wire_links(structure.links), _wire_links(structure.weighed)), {}
    if type(structure) is Graph:
        return WireGraph(), {"links.npy": to_npy(structure.packed, "|u1")}
    raise SettingError(f"{structure!r} cannot be saved; save the model it came from.")


def read_structure(wire: WireStructure, domain: Domain, members: Members) -> Structure:
    """Turn sizes and arrays into a structure, or say what is wrong with them."""
    if isinstance(wire, WireCanonicalModel):
        return _read_canonical(wire, domain, members)
    if isinstance(wire, WireFeatureSet):
        expect_members(members, *FEATURE_MEMBERS)
        return _read_features(wire, domain, members)
    if isinstance(wire, WireLogLinearModel):
        return _read_model(wire, domain, members)
    if isinstance(wire, WireLabelledGraph):
        return _read_labelled(wire, domain, members)
    return _read_graph(domain, members)


def table_members(table: Dataset) -> tuple[WireTable, dict[str, bytes]]:
    """Turn a collapsed table into its size and its arrays, which a canonical model has as its contexts."""
    members = {
        "counts.npy": to_npy(table.counts, "<i8"),
        "rows.npy": to_npy(table.rows, _code_dtype(table.domain)),
    }
    return WireTable(table.n_distinct), members


def read_table(n_distinct: int, domain: Domain, members: Members) -> Dataset:
    """Turn size and arrays into a collapsed table, or say what is wrong with them."""
    counts = from_npy(members, "counts.npy", "<i8", (n_distinct,))
    rows = from_npy(members, "rows.npy", _code_dtype(domain), (n_distinct, len(domain)))
    is_counted = (counts > 0).all() and counts.sum(dtype=np.float64) < MOST_ROWS
    check(is_counted, "counts are not positive whole numbers")
    check((rows < domain.n_levels).all(), "a level is out of range")
    check(rows_increase(rows), "contexts are not distinct and in order")
    return Dataset(domain, rows.astype(np.uint16), counts.astype(np.int64))


def _canonical_members(model: CanonicalModel) -> tuple[WireStructure, dict[str, bytes]]:
    members = {
        **table_members(Dataset(model.domain, model.rows, model.counts))[1],
        "graph_index.npy": to_npy(model.graph_index, "<i4"),
        "graphs.npy": to_npy(model.packed, "|u1"),
    }
    return WireCanonicalModel(len(model), model.n_graphs), members


def _read_canonical(wire: WireCanonicalModel, domain: Domain, members: Members) -> CanonicalModel:
    expect_members(members, "counts.npy", "graph_index.npy", "graphs.npy", "rows.npy")
    table = read_table(wire.n_contexts, domain, members)
    index = from_npy(members, "graph_index.npy", "<i4", (wire.n_contexts,))
    packed = from_npy(members, "graphs.npy", "|u1", (wire.n_graphs, packed_width(len(domain))))
    check(((index >= 0) & (index < wire.n_graphs)).all(), "a context has a graph that is not there")
    check(len(np.unique(index)) == wire.n_graphs, "a graph belongs to no context")
    check(is_padded_with_zeros(packed, len(domain)), "bits after the last pair are set")
    check(are_distinct(packed) and come_in_order(index), "graphs are not distinct and in order")
    return CanonicalModel(domain, table.rows, table.counts, packed, index.astype(np.int32))


def _read_graph(domain: Domain, members: Members) -> Graph:
    expect_members(members, "links.npy")
    packed = from_npy(members, "links.npy", "|u1", (packed_width(len(domain)),))
    check(is_padded_with_zeros(packed[None], len(domain)), "bits after the last pair are set")
    return Graph.from_packed(domain, packed)


def _wire_links(links: Iterable[Link]) -> list[WireLink]:
    return [WireLink(link.pair, wire_regions(link.regions)) for link in links]


def wire_regions(regions: Iterable[Region]) -> list[list[WireCondition]]:
    """Write regions as the levels that variables may have."""
    return [[WireCondition(name, list(labels)) for name, labels in region.conditions] for region in regions]


def _read_labelled(wire: WireLabelledGraph, domain: Domain, members: Members) -> LabelledGraph:
    expect_members(members)
    links, weighed = _read_links(wire.links, domain), _read_links(wire.weighed, domain)
    graph = LabelledGraph(domain, links, weighed)
    check((graph.links, graph.weighed) == (links, weighed), "links are not distinct and in order")
    return graph


def _read_links(links: Iterable[WireLink], domain: Domain) -> tuple[Link, ...]:
    return tuple(Link(link.pair, read_regions(domain, link.regions)) for link in links)


def read_regions(domain: Domain, regions: Iterable[list[WireCondition]]) -> tuple[Region, ...]:
    """Read regions that are written in the one way in which they are written here."""
    return tuple(_read_region(domain, conditions) for conditions in regions)


def _read_region(domain: Domain, conditions: list[WireCondition]) -> Region:
    told = tuple((condition.name, tuple(condition.levels)) for condition in conditions)
    region = Region.of(domain, dict(told))
    check(region.conditions == told, "a region is not said in the usual way")
    return region


def _feature_members(features: FeatureSet) -> tuple[WireStructure, dict[str, bytes]]:
    arrays = features.arrays
    members = {f"{name}.npy": to_npy(getattr(arrays, name), dtype) for name, dtype in FEATURE_TYPES.items()}
    return WireFeatureSet(len(features), len(arrays.variable)), members


def _model_members(model: LogLinearModel) -> tuple[WireStructure, dict[str, bytes]]:
    _, members = _feature_members(model.features)
    wire = WireLogLinearModel(
        len(model.features), len(model.features.arrays.variable), wire_report(model.fit_report)
    )
    return wire, {**members, "weights.npy": to_npy(model.weights, "<f8")}


def _read_model(wire: WireLogLinearModel, domain: Domain, members: Members) -> LogLinearModel:
    expect_members(members, *FEATURE_MEMBERS, "weights.npy")
    weights = from_npy(members, "weights.npy", "<f8", (wire.n_features,))
    # Infinite weights are allowed: they say what is impossible.
    check(not np.isnan(weights).any(), "a weight is not a number")
    return LogLinearModel(_read_features(wire, domain, members), weights, report=read_report(wire.fit))


def _read_features(wire: WireFeatureSet | WireLogLinearModel, domain: Domain, members: Members) -> FeatureSet:
    equal = from_npy(members, "equal.npy", FEATURE_TYPES["equal"], (wire.n_conditions,))
    level = from_npy(members, "level.npy", FEATURE_TYPES["level"], (wire.n_conditions,))
    start = from_npy(members, "start.npy", FEATURE_TYPES["start"], (wire.n_features + 1,))
    variable = from_npy(members, "variable.npy", FEATURE_TYPES["variable"], (wire.n_conditions,))
    in_order = start[0] == 0 and start[-1] == wire.n_conditions and (start[1:] > start[:-1]).all()
    check(in_order, "features do not follow one another")
    check((equal <= 1).all(), "a condition is neither equal nor unequal")
    arrays = FeatureArrays(
        start.astype(np.int64), variable.astype(np.int32), level.astype(np.uint16), equal.astype(np.bool_)
    )
    features = FeatureSet.from_arrays(domain, arrays)
    check(features.arrays.same_as(arrays), "features are not distinct and in order")
    return features


def _code_dtype(domain: Domain) -> str:
    return "|u1" if domain.n_levels.max(initial=0) <= 256 else "<u2"


def expect_members(members: Members, *names: str) -> None:
    """Refuse a file with other members than these and model.json."""
    expected = " and ".join([*([", ".join(names)] if names else []), "model.json"])
    check({*members} == {*names, "model.json"}, f"its members are not {expected}")


def check(condition: Any, trouble: str) -> None:
    """Refuse a file in which something does not hold."""
    if not condition:
        raise FileFormatError(trouble)
