"""Which pairs interact where, asked of structures and of models with weights."""

from typing import Any

from unless.data.domain import Domain
from unless.errors import SettingError
from unless.inference.model import LogLinearModel
from unless.structures import interactions
from unless.structures.canonical import CanonicalModel
from unless.structures.graph import FeatureSet, Graph
from unless.structures.interactions import By, ByFeatures, Side
from unless.structures.labelled import LabelledGraph


def side_of(structure: Any, by: By, domain: Domain) -> Side:
    """Make a structure, or the features of a model, answer in the coding of a domain."""
    if isinstance(structure, LogLinearModel):
        # A weight of zero leaves every probability as it is: its feature is not there.
        return ByFeatures(structure.features, domain, structure.weights != 0)
    return interactions.side_of(structure, by, domain)


def domain_of(structure: Any) -> Domain:
    """Return the domain of a structure; refuse what is none."""
    if isinstance(structure, CanonicalModel | FeatureSet | Graph | LabelledGraph | LogLinearModel):
        return structure.domain
    hint = " (of a learner, its structure_)" if hasattr(structure, "fit") else ""
    raise SettingError(
        f"A {type(structure).__name__} is no structure; give a CanonicalModel, LabelledGraph, Graph, "
        f"FeatureSet or LogLinearModel{hint}."
    )
