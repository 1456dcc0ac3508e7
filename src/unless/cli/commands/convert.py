r"""`unless convert`: a model or a graph in another format.

Formats go by the endings of the files. Models with weights: .unless, .mn (Libra), .uai, .json and
.bif, which gets a directed network with the same joint distribution. Graphs: .graphml and .unless; of a
model, .graphml gets the graph alone. Names have no place in .mn and .uai: they lie beside, in a file that
ends in .names.json.

\b
Examples:
  unless convert fitted.unless fitted.mn
  unless convert network.bif network.uai
  unless convert fitted.unless fitted.bif
  unless convert learned.unless graph.graphml

\b
The JSON document, keys sorted:
  format, version   "unless-conversion", 1
  input, output     the two files
  names             the file that holds the names, or null
  kind              what was written: "model", "graph", "features"
                    or "contexts" (a graph for each context)
  n_variables, and n_features, n_edges or n_contexts
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from unless.cli.files import check_model_output, open_record
from unless.cli.options import make_command
from unless.cli.output import note, say, say_json, size_of, size_text
from unless.data.showing import visible
from unless.errors import SettingError
from unless.formats import FORMATS, WITHOUT_NAMES

if TYPE_CHECKING:
    from unless.formats.record import Record
    from unless.structures.structure import Structure


@make_command("convert", "Write a model or a graph in another format.", __doc__)
@click.argument("source", metavar="IN", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON.")
def command(source: str, target: str, as_json: bool) -> None:
    """Read a model or a graph from IN and write it to OUT, in the format of its ending.

    IN may be a pipe, or - for standard input; its format is then known by how it begins.
    """
    from unless.formats.json_model import names_path
    from unless.formats.text import ending_of

    check_model_output(target, [], source, FORMATS)
    record = open_record(source)
    ending = ending_of(target)
    written = _shaped(record.structure, source, target, ending)
    _write(written, record, target, ending)
    size = size_of(written)
    names = str(names_path(target)) if ending in WITHOUT_NAMES else None
    if as_json:
        document = {"input": source, "output": target, "names": names, **size}
        say_json({"format": "unless-conversion", "version": 1, **document})
        return
    say(f"{visible(target)}: {size_text(size)}")
    if names:
        note(f"Its names are in {visible(names)}; keep the two together.")
    if written.kind != record.structure.kind:
        note("Only the graph was written.")


def _shaped(structure: "Structure", source: str, target: str, ending: str) -> "Structure":
    """Make of a structure what the target can hold, or say why it cannot."""
    from unless.structures.graph import Graph

    if ending == ".graphml":
        return structure.graph_given()
    if ending != ".unless" and structure.kind != "model":
        raise SettingError(
            f"{source!r} holds no weights, so it cannot become {target!r}; find them with `unless fit`."
        )
    if structure.kind == "graph" and not getattr(structure, "context", None):
        # A graph without a context is written as a plain graph.
        return Graph.from_packed(structure.domain, structure.graph_given().packed)
    return structure


def _write(structure: Any, record: "Record", target: str, ending: str) -> None:
    from unless.formats.catalogue import write_model
    from unless.formats.graphml import write_graphml
    from unless.formats.record import save_record

    if ending == ".unless":
        save_record(replace(record, structure=structure), target)
    elif structure.kind == "model":
        write_model(structure, target)
    elif structure.kind == "graph":
        write_graphml(structure, target)
