"""A report to a file: explain, build, render, write."""

import os
from typing import Any

from unless.errors import SettingError
from unless.inference.model import LogLinearModel
from unless.inference.tables import read_rows
from unless.knowledge.explaining import explain
from unless.knowledge.statements import Statements
from unless.report.build import TITLE, Source, build
from unless.report.disclosure import Disclosure
from unless.report.document import render
from unless.structures.structure import as_structure


def write_report(  # noqa: PLR0913 (each says one thing about the page; they are independent)
    structure: Any,
    data: object,
    path: str | os.PathLike[str],
    *,
    statements: Statements | None = None,
    network: LogLinearModel | None = None,
    source: Source | None = None,
    target: str | None = None,
    title: str | None = None,
    rows: bool = True,
    min_cell: int | None = None,
) -> None:
    """Write what a structure and a table say as one HTML file that needs no network.

    The page holds the distinct rows of the table with their counts: a new file may be read by its owner
    alone, one that replaces another keeps who may read it.

    Parameters
    ----------
    structure, data
        A structure or a LogLinearModel, and the table it is explained by.
    statements
        What is said, if it is not to be made here by `unless.explain`.
    network
        A model with weights, for the part of the page that gives probabilities; a structure that is one
        serves as well.
    source
        How the structure was learned; without it only what reading did to the table is known.
    target
        Keep to what matters for this column, most first.
    rows
        False keeps the rows of the table out of the file, and all that could be them: tables of counts, and
        the probabilities of a network.
    min_cell
        Counts below this are not in the file, and others are rounded to multiples of it; no rows are kept.
        docs/limits.md states the rule.
    """
    from unless.runtime.files import replacing

    if title is not None and not isinstance(title, str):
        raise SettingError(f"title={title!r} is no text; give a string.")
    told = Disclosure.of(rows, min_cell)
    if network is not None and not told.keeps_rows:
        raise SettingError(
            "Small counts could be computed from the probabilities of network=; leave it out where min_cell= "
            "or rows=False is given."
        )
    table = read_rows(as_structure(structure).domain, data)
    if network is None and structure.kind == "model":
        network = structure
    source = source or Source(notes=table.notes)
    said = explain(structure, table) if statements is None else statements
    if target is not None:
        said = said.about_column(target)
    if title is None:
        title = TITLE if said.target is None else f"What matters for {said.target}"
    try:
        page = build(table, said, network=network, source=source, title=title, told=told)
        text = render(page).encode()
    except UnicodeEncodeError:
        raise SettingError("A name or label is not valid Unicode text; rename it before reporting.") from None
    with replacing(path, private=True) as stream:
        stream.write(text)
