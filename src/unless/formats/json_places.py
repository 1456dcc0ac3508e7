"""JSON read such that what is wrong with a value can be told by line."""

import re
from typing import TypeVar

import msgspec

from unless.data.domain import Domain, Variable
from unless.errors import UnlessError
from unless.formats.text import line_at, quote, wrong
from unless.formats.wire import WireVariable, read_variable

TOKEN = re.compile(r'[ \t\n,]+|("(?:[^"\\]|\\.)*+"|[{}\[\]:]|[^ \t\n,{}\[\]:"]+|")', re.DOTALL)
Kind = TypeVar("Kind")
STEP = re.compile(r"\.([^.\[]+)|\[([0-9]+)\]")


def decoded(text: str, kind: type[Kind]) -> Kind:
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
    places: list[int | str] = []
    best, depth_of_best, key = 0, -1, ""
    for match in TOKEN.finditer(text):
        word = match[1]
        if word is None or word == ":":
            continue
        if word in ("}", "]"):
            if agreed:
                agreed.pop()
                places.pop()
            continue
        if places and isinstance(places[-1], str) and not key:
            # In an object, names and values take turns.
            key = word
            continue
        agrees = _agrees(wanted, agreed, places, key)
        if agrees > depth_of_best:
            best, depth_of_best = match.start(1), agrees
        key = ""
        if word in ("{", "["):
            agreed.append(agrees)
            places.append("object" if word == "{" else -1)
    return line_at(text, best)


def _agrees(wanted: list[int | str], agreed: list[int], places: list[int | str], key: str) -> int:
    """Say how many steps of the path lead to the value that begins here."""
    if not places:
        return 0
    last = places[-1]
    if isinstance(last, int):
        places[-1] = step = last + 1
        here: int | str = step
    else:
        here = key[1:-1]
    above = agreed[-1]
    if 0 <= above < len(wanted) and wanted[above] == here:
        return above + 1
    return -1
