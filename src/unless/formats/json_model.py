"""Log-linear models as plain JSON, for other programs; and names beside a file whose format has none.

    {"format": "unless-log-linear", "version": 1,
     "variables": [{"name": "Dept", "levels": ["A", "B", "C"], "kind": "text"}],
     "features": [{"weight": 1.5, "conditions": [{"variable": "Dept", "level": "A", "equal": true}]}]}

A feature holds where all of its conditions hold: the variable has the level, or, with "equal": false, has it
not. p(x) is proportional to exp(sum of the weights of the features that hold in x). A weight is a number,
"inf" or "-inf".

The names of x.mn are in x.mn.names.json. JSON is read such that what is wrong with a value can be told by
line.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from unless.data.domain import Domain, Variable
from unless.errors import UnlessError
from unless.formats.gather import Piece, model_of_pieces
from unless.formats.text import (
    PathLike,
    about,
    line_at,
    nameless_domain,
    quote,
    read_text,
    valid_unicode,
    write_text,
    write_texts,
    wrong,
)
from unless.formats.wire import WireVariable, json_lines, read_variable, wire_domain
from unless.inference.model import LogLinearModel
from unless.structures.structure import CodedCondition

TOKEN = re.compile(r'[ \t\n,]+|("(?:[^"\\]|\\.)*+"|[{}\[\]:]|[^ \t\n,{}\[\]:"]+|")', re.DOTALL)
Decoded = TypeVar("Decoded")
STEP = re.compile(r"\.([^.\[]+)|\[([0-9]+)\]")
NAMES_FORMAT = "unless-names"
NAMES_VERSION = 1
FORMAT = "unless-log-linear"
VERSION = 1
WORDS: dict[float, Literal["inf", "-inf"]] = {float("inf"): "inf", float("-inf"): "-inf"}


def decoded(text: str, kind: type[Decoded]) -> Decoded:
    """Read a JSON text as a value of this type."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at ")
        raise wrong(line_of(text, path.strip("`")), message) from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise wrong(_line_of_byte(text, str(error)), f"it is not JSON ({error})") from None
    except RecursionError:
        raise wrong(1, "brackets are nested too deeply") from None


def _line_of_byte(text: str, message: str) -> int:
    place = re.search(r"\(byte ([0-9]+)\)", message)
    if not place:
        # Cut short: the trouble is at the end.
        return line_at(text, len(text.rstrip()))
    return text.encode()[: int(place[1])].count(b"\n") + 1


def domain_of(wires: list[WireVariable], text: str) -> Domain:
    """Make the variables that $.variables lists."""
    variables: dict[str, Variable] = {}
    for place, wire in enumerate(wires):
        try:
            variable = read_variable(wire)
        except UnlessError as error:
            raise wrong(line_of(text, f"$.variables[{place}].levels"), str(error).rstrip(".")) from None
        if wire.name in variables:
            raise wrong(line_of(text, f"$.variables[{place}].name"), f"{quote(wire.name)} appears twice")
        variables[wire.name] = variable
    return Domain(tuple(variables.values()))


def line_of(text: str, path: str) -> int:
    """Return the line of the value at a path such as $.features[3].weight; of what is around it if absent."""
    wanted = [int(index) if index else name for name, index in STEP.findall(path)]
    # How many steps of the path the open brackets agree with; -1 inside values the path does not lead to.
    agreed: list[int] = []
    open_values: list[int | str] = []
    best, depth_of_best, key = 0, -1, ""
    for match in TOKEN.finditer(text):
        word = match[1]
        if word is None or word == ":":
            continue
        if word in ("}", "]"):
            if agreed:
                agreed.pop()
                open_values.pop()
            continue
        if open_values and isinstance(open_values[-1], str) and not key:
            # In an object, names and values take turns.
            key = word
            continue
        agrees = _agrees(wanted, agreed, open_values, key)
        if agrees > depth_of_best:
            best, depth_of_best = match.start(1), agrees
        key = ""
        if word in ("{", "["):
            agreed.append(agrees)
            open_values.append("object" if word == "{" else -1)
    return line_at(text, best)


def _agrees(wanted: list[int | str], agreed: list[int], open_values: list[int | str], key: str) -> int:
    """Say how many steps of the path lead to the value that begins here."""
    if not open_values:
        return 0
    last = open_values[-1]
    if isinstance(last, int):
        open_values[-1] = step = last + 1
        here: int | str = step
    else:
        here = key[1:-1]
    above = agreed[-1]
    if 0 <= above < len(wanted) and wanted[above] == here:
        return above + 1
    return -1


class WireNames(msgspec.Struct, forbid_unknown_fields=True):
    """The whole of a file of names."""

    format: str
    version: int
    variables: list[WireVariable]


def names_path(path: PathLike) -> Path:
    """Return the place of the names of a file, packed or not."""
    beside = Path(path)
    return beside.with_name(beside.name.removesuffix(".gz") + ".names.json")


def write_with_names(path: PathLike, text: str, domain: Domain) -> None:
    """Write a text and the names that belong to it, both or neither."""
    write_texts((names_path(path), names_text(domain)), (path, text))


def read_with_names(
    path: PathLike,
    parse: Callable[[str], tuple[list[int], Decoded]],
    model_of: Callable[[Domain, Decoded], LogLinearModel],
) -> LogLinearModel:
    """Read a text that knows numbers of levels alone, with the names that lie beside it."""
    with about(path):
        sizes, content = parse(read_text(path))
    domain = domain_beside(path, sizes)
    with about(path):
        return model_of(domain, content)


def names_text(domain: Domain) -> str:
    """Return the file of names: the same domain, the same text."""
    with valid_unicode():
        variables = json_lines(wire_domain(domain))
    return f'{{"format": "{NAMES_FORMAT}", "version": {NAMES_VERSION}, "variables": [\n{variables}\n]}}\n'


def domain_beside(path: PathLike, sizes: list[int], line: int = 1) -> Domain:
    """Return the variables named beside a file; v0, v1, ... where no names, or those of another file, are."""
    with about(path):
        nameless = nameless_domain(sizes, line)
    named = _read_names(names_path(path))
    if named is None or named.n_levels.tolist() != sizes:
        return nameless
    return named


def _read_names(beside: Path) -> Domain | None:
    if not beside.is_file():
        return None
    with about(beside):
        text = read_text(beside)
        wire = decoded(text, WireNames)
        if wire.format != NAMES_FORMAT or wire.version != NAMES_VERSION:
            raise wrong(line_of(text, "$.format"), "it is not a file of names this version knows")
        return domain_of(wire.variables, text)


class WireLiteral(msgspec.Struct, forbid_unknown_fields=True):
    """A variable has a level, or has it not."""

    variable: str
    level: str
    equal: bool = True


class WireFeature(msgspec.Struct, forbid_unknown_fields=True):
    """A weight, and the conditions it is given for."""

    weight: float | Literal["inf", "-inf"]
    conditions: list[WireLiteral]


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
                WireLiteral(variables[v].name, variables[v].levels[level], equal)
                for v, level, equal in literals
            ],
        )
        for literals, weight in zip(conditions, model.weights.tolist(), strict=True)
    )
    with valid_unicode():
        return (
            f'{{"format": "{FORMAT}", "version": {VERSION},\n'
            f'"variables": [\n{json_lines(wire_domain(model.domain))}\n],\n'
            f'"features": [\n{json_lines(features)}\n]}}\n'
        )


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
        line=lambda position: line_of(text, f"$.features[{position}]"),
    )


def _pieces(features: list[WireFeature], domain: Domain, text: str) -> Iterator[Piece]:
    codes = {
        variable.name: (position, {label: code for code, label in enumerate(variable.levels)})
        for position, variable in enumerate(domain)
    }
    for position, feature in enumerate(features):
        literals: list[CodedCondition] = []
        for number, condition in enumerate(feature.conditions):
            path = f"$.features[{position}].conditions[{number}]"
            if condition.variable not in codes:
                raise wrong(line_of(text, f"{path}.variable"), f"there is no {quote(condition.variable)}")
            variable, levels = codes[condition.variable]
            if condition.level not in levels:
                raise wrong(
                    line_of(text, f"{path}.level"),
                    f"{quote(condition.level)} is not a level of {quote(condition.variable)}",
                )
            literals.append((variable, levels[condition.level], condition.equal))
        yield tuple(literals), float(feature.weight), position
