"""Columns that stand for others: numbers in groups, parts of dates; added to a table before it is read."""

# ruff: noqa: S608 (every name in the SQL is our own, c0, c1, ...; every text goes through `quoted`)

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from math import isfinite

import numpy as np

from unless.data.domain import Kind
from unless.data.duck import Workshop
from unless.data.moments import formats_of, parse_moment, part_label, part_of
from unless.data.profile import HEAD, text_or_null
from unless.data.settings import Settings, Shape
from unless.data.source import Field, Source


def with_shapes(source: Source, how: Settings, shop: Workshop) -> tuple[Source, Settings]:
    """Add the columns that are made of others, and give codes the names of their groups."""
    names, fields = list(source.names), {one.name: one for one in source.fields}
    arrays: dict[str, object] = {}
    shapes = dict(how.shapes)
    for name, shape in how.shapes.items():
        base = fields.get(shape.column)
        if base is None or (shape.part and name in source.names):
            # The table lacks the column, which is said where columns are chosen; or it has the part itself.
            shapes.pop(name)
            continue
        if shape.part and shape.written is None:
            shape = shapes[name] = replace(shape, written=_written(source, base, how, shop))
        made = replace(base, name=name)
        if base.form == "code":
            made, array = _recoded(source, made, shape, f"s{len(arrays)}")
            arrays[made.column] = array
        fields[name] = made
        if name not in names:
            names.append(name)
    if arrays:
        held = {**source.held[0], **arrays}  # type: ignore[dict-item]
        shop.register("given", held)
        source = replace(source, held=(held,))
    found = replace(source, names=tuple(names), fields=tuple(fields.values()))
    return found, replace(how, shapes=shapes)


def _written(source: Source, base: Field, how: Settings, shop: Workshop) -> str:
    if base.form == "code":
        return next(iter(formats_of(label for label in base.labels if label.strip())), "")
    rows = shop.rows(f"select {text_or_null(base, how)} from {source.relation} limit {HEAD}")
    return next(iter(formats_of(row[0] for row in rows if row[0] is not None)), "")


def _recoded(source: Source, made: Field, shape: Shape, column: str) -> tuple[Field, object]:
    name_of = shaper(shape)
    groups = [name_of(label) for label in made.labels]
    labels = tuple(dict.fromkeys([*shape.levels, *groups]))
    places = {label: place for place, label in enumerate(labels)}
    lookup = np.array([*(places[group] for group in groups), -1], dtype=np.int32)
    codes = source.held[0][made.column]  # type: ignore[index]
    kind: Kind = "integer" if shape.part == "year" and not shape.cuts else "category"
    field = replace(made, column=column, kind=kind, labels=labels, levels=shape.levels or None)
    return field, lookup[codes]


def shaper(shape: Shape) -> Callable[[str], str]:
    """Return what names the group of a label; what is neither a number nor a date keeps its name."""

    def name_of(label: str) -> str:
        number: float | None
        if shape.part:
            moment = parse_moment(label, shape.written or "")
            number = None if moment is None else part_of(moment, shape.part)
        else:
            number = _number(label)
        if number is None:
            return label
        if shape.cuts:
            return shape.levels[bisect_right(shape.cuts, number)]
        return part_label(int(number), shape.part)

    return name_of


def _number(label: str) -> float | None:
    try:
        number = float(label)
    except ValueError:
        return None
    return number if isfinite(number) else None
