"""From a learned structure to a model that can be asked: features, then weights."""

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from unless.inference.model import LogLinearModel


def network(
    structure: Any, data: object, prior: Any, features: Literal["cliques", "pairs"], **settings: Any
) -> "LogLinearModel":
    """Give the features of a structure weights that suit a table; `settings` are those of `fit_weights`."""
    from unless.structures.featuring import features_of
    from unless.weights.fit import fit_weights

    return fit_weights(features_of(structure, features), data, prior, **settings)
