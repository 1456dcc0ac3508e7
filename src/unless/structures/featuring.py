"""One function that knows all structures: what features each of them stands for."""

from typing import Any, Literal

from unless.errors import SettingError
from unless.structures.canonical import CanonicalModel
from unless.structures.graph import FeatureSet, Graph
from unless.structures.labelled import LabelledGraph


def features_of(structure: Any, kind: Literal["cliques", "pairs"] = "cliques") -> FeatureSet:
    """Return the features of a canonical model, a labelled graph, a graph or a set of features.

    `kind` is that of `CanonicalModel.features`; a graph has those of its cliques, a labelled graph those of
    its links, a set of features its own.
    """
    if kind not in ("cliques", "pairs"):
        raise SettingError(f"features={kind!r} is not known; use 'cliques' or 'pairs'.")
    if isinstance(structure, CanonicalModel | LabelledGraph):
        return structure.features(kind)
    if isinstance(structure, FeatureSet):
        return structure
    if isinstance(structure, Graph):
        if kind == "pairs":
            raise SettingError("A single graph has the features of its cliques; use features='cliques'.")
        return structure.features()
    raise SettingError(
        f"A {type(structure).__name__} is no structure; give a CanonicalModel, LabelledGraph, Graph "
        "or FeatureSet."
    )
