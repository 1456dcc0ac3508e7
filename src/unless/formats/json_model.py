"""Log-linear models as plain JSON, for other programs.

    {"format": "unless-log-linear", "version": 1,
     "variables": [{"name": "Dept", "levels": ["A", "B", "C"], "kind": "text"}],
     "features": [{"weight": 1.5, "conditions": [{"variable": "Dept", "level": "A", "equal": true}]}]}

A feature holds where all of its conditions hold: the variable has the level, or, with "equal": false, has it
not. p(x) is proportional to exp(sum of the weights of the features that hold in x). A weight is a number,
"inf" or "-inf".
"""

from collections.abc import Iterator
from typing import Literal as Word

import msgspec

from unless.data.domain import Domain
from unless.errors import SettingError
from unless.formats.gather import Piece, model_of_pieces
from unless.formats.json_places import decoded, domain_of, line_of
from unless.formats.text import PathLike, about, quote, read_text, write_text, wrong
from unless.formats.wire import WireVariable, json_lines, wire_domain
from unless.inference.model import LogLinearModel
from unless.structures.conditions import Literal

FORMAT = "unless-log-linear"
VERSION = 1
WORDS: dict[float, Word["inf", "-inf"]] = {float("inf"): "inf", float("-inf"): "-inf"}


class WireCondition(msgspec.Struct, forbid_unknown_fields=True):
    """A variable has a level, or has it not."""

    variable: str
    level: str
    equal: bool = True


class WireFeature(msgspec.Struct, forbid_unknown_fields=True):
    """A weight, and the conditions it is given for."""

    weight: float | Word["inf", "-inf"]
    conditions: list[WireCondition]


class WireModel(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    format: str
    version: int
    variables: list[WireVariable]
    features: list[WireFeature]


def read_json(path: PathLike) -> LogLinearModel:
    """Read a model from JSON."""
    with about(path):
        return parse_json(read_text(path))


def write_json(model: LogLinearModel, path: PathLike) -> None:
    """Write a model as JSON."""
    write_text(path, json_text(model))


def json_text(model: LogLinearModel) -> str:
    """Return a model as JSON, one variable and one feature a line."""
    variables = model.domain.variables
    conditions = model.features.arrays.literals()
    features = (
        WireFeature(
            WORDS.get(weight, weight),
            [
                WireCondition(variables[v].name, variables[v].levels[level], equal)
                for v, level, equal in literals
            ],
        )
        for literals, weight in zip(conditions, model.weights.tolist(), strict=True)
    )
    try:
        return (
            f'{{"format": "{FORMAT}", "version": {VERSION},\n'
            f'"variables": [\n{json_lines(wire_domain(model.domain))}\n],\n'
            f'"features": [\n{json_lines(features)}\n]}}\n'
        )
    except UnicodeEncodeError:
        raise SettingError("A name or label is not valid Unicode text; rename it before saving.") from None


def parse_json(text: str) -> LogLinearModel:
    """Read a model from JSON; what is wrong is told by line."""
    wire = decoded(text, WireModel)
    if wire.format != FORMAT:
        raise wrong(line_of(text, "$.format"), f"the format is not {FORMAT!r}")
    if wire.version != VERSION:
        raise wrong(line_of(text, "$.version"), f"version {wire.version} is not known here, only {VERSION}")
    domain = domain_of(wire.variables, text)
    return model_of_pieces(
        domain,
        _pieces(wire.features, domain, text),
        line=lambda place: line_of(text, f"$.features[{place}]"),
    )


def _pieces(features: list[WireFeature], domain: Domain, text: str) -> Iterator[Piece]:
    codes = {
        variable.name: (place, {label: code for code, label in enumerate(variable.levels)})
        for place, variable in enumerate(domain)
    }
    for place, feature in enumerate(features):
        literals: list[Literal] = []
        for number, condition in enumerate(feature.conditions):
            path = f"$.features[{place}].conditions[{number}]"
            if condition.variable not in codes:
                raise wrong(line_of(text, f"{path}.variable"), f"there is no {quote(condition.variable)}")
            variable, levels = codes[condition.variable]
            if condition.level not in levels:
                raise wrong(
                    line_of(text, f"{path}.level"),
                    f"{quote(condition.level)} is not a level of {quote(condition.variable)}",
                )
            literals.append((variable, levels[condition.level], condition.equal))
        yield tuple(literals), float(feature.weight), place
