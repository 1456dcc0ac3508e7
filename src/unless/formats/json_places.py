"""Where in a JSON text a value is, so that what is wrong with it can be told by line."""

import re

from unless.formats.text import line_at

TOKEN = re.compile(r'[ \t\n,]+|("(?:[^"\\]|\\.)*+"|[{}\[\]:]|[^ \t\n,{}\[\]:"]+|")', re.DOTALL)
STEP = re.compile(r"\.([^.\[]+)|\[([0-9]+)\]")


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
