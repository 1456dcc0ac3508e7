"""Structures and models on the command line: opened by their endings, told in words."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from unless.cli.options import Written, assignment, gathered
from unless.cli.wording import count

if TYPE_CHECKING:
    from unless.data.dataset import Dataset
    from unless.formats.record import Record
    from unless.formats.text import PathLike
    from unless.knowledge.statements import Statements
    from unless.structures.graph import FeatureSet
    from unless.structures.structure import Structure

# Scores in words.
MEASURES = {
    "log_likelihood": "Log-likelihood",
    "pseudo_log_likelihood": "Pseudo-log-likelihood",
    "conditional_marginal_log_likelihood": "Conditional marginal log-likelihood",
}
given_option = click.option(
    "--given",
    "-g",
    type=Written("NAME=LABEL", assignment),
    multiple=True,
    help="Where NAME is LABEL; repeat it to say more.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    show_default=True,
    help="The same seed gives the same draws.",
)
memory_option = click.option(
    "--max-memory",
    metavar="SIZE",
    help="Memory for exact answers, such as '2 GB' (60 % of what the process may take, at most 4 GB).",
)


def evidence(given: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Make one assignment of what was given."""
    return gathered("--given", given)


def ending(path: "str | PathLike") -> str:
    """Return the ending of a file that may be packed, or that which suits what a stream held."""
    from unless.formats.text import ending_of

    return ending_of(path)


def open_record(path: "str | PathLike") -> "Record":
    """Read a structure or a model by its ending; what has none that is known should be an .unless file."""
    from unless.formats.catalogue import READERS, read_model
    from unless.formats.graphml import read_graphml
    from unless.formats.record import Record, load_record
    from unless.formats.text import take

    path = take(path)
    if ending(path) == ".graphml":
        return Record(read_graphml(path))
    if ending(path) in READERS and ending(path) != ".unless":
        return Record(read_model(path))
    return load_record(path)


def statements_of(record: "Record", path: str, data: "Dataset | None" = None) -> "Statements | None":
    """Return what a file says: as kept, or of the table given; None where it keeps neither words nor rows."""
    from unless.errors import FileFormatError, UnlessError
    from unless.knowledge.explaining import explain_as_learned
    from unless.knowledge.records import statements_from_record

    if data is None and record.statements is not None:
        try:
            return statements_from_record(record.statements, record.domain)
        except UnlessError as error:
            raise FileFormatError(f"{path!r} is damaged: {str(error).rstrip('.')}.") from None
    table = record.table if data is None else data
    return None if table is None else explain_as_learned(record.structure, table, record.settings)


def features_of(structure: "Structure", kind: str | None) -> "FeatureSet":
    """Return the features of a structure; only a graph for each context leaves a choice of `kind`."""
    from unless.errors import SettingError

    suits = {"pairs": ("contexts",), "cliques": ("contexts", "graph")}
    if kind and structure.kind not in suits[kind]:
        raise SettingError(
            f"--features {kind} is for a structure with a graph for each context, as --learner CSGS learns."
        )
    return structure.indicators("pairs" if kind == "pairs" else "cliques")


def told(structure: "Structure") -> dict[str, Any]:
    """Return the kind and the size of a structure."""
    noun, size = structure.size
    return {"kind": structure.kind, "n_variables": len(structure.domain), noun: size}


def size_text(size: Mapping[str, Any]) -> str:
    """Say what `told` tells."""
    names = {
        "model": ("a model", "n_features", "weight"),
        "features": ("a set of features", "n_features", "feature"),
        "graph": ("a graph", "n_edges", "edge"),
        "links": ("a graph with gates", "n_links", "link"),
        "contexts": ("a graph for each context", "n_contexts", "context"),
    }
    kind, field, noun = names[size["kind"]]
    return f"{kind}, {count(size['n_variables'], 'variable')}, {count(size[field], noun)}"


def rows_of(record: "Record") -> "Dataset | None":
    """Return the rows that a model keeps, if it does."""
    return record.structure.observed
