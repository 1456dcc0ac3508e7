r"""`unless show`: what a saved model says, everywhere or in a context.

{QUOTING}

A finding is of one of these kinds. linked: given all other columns; gated: only in some contexts, and
absent in the others; differs: in all contexts, not equally; partly: in some contexts, the others not
settled; determined: one column tells the other. Of other pairs is counted how many are associated (they
go together, but through other columns or for want of a test), unlinked (absent, with a bound) and open
(for want of data).

In a context each finding is read by its gate, without a new test: holds, absent (with the largest V that
is not ruled out), holds in part, not settled, or fixed, where the context gives one of its columns a
label.

\b
Examples:
  unless show model.unless
  unless show model.unless --context Dept=A --context Gender=Male
  unless show model.unless --target Admit
  unless show model.unless --json
  unless show graph.unless survey.csv

\b
The JSON document, keys sorted:
  format, version   "unless-statements", 2
  learner, settings, results   how the model was learned, at what cost
  variables         name and levels, in their order
  context           the context looked at, {} for none
  n_rows            the rows looked at, null where the file keeps none
  made_by           fdr and effect of the statements
  note              why there are none, or what was left out
  counts            how many statements are of each kind: linked, gated,
                    differs, partly, determined, associated, unlinked,
                    open
  statements        findings first, the surest and strongest at the top:
    kind, is_finding   one of these, and whether it is a finding
    pair            two names, sorted
    gate            null, or linked and not_linked: lists of contexts,
                    each the levels that some variables have
    given           the columns held fixed
    confidence      the probability that it is true, null where it is
                    no finding
    state           in a context: "holds", "absent", "holds in part",
                    "not settled" or "fixed"; else null
    bound           the largest V not ruled out where it is absent
    more_rows       how many more rows would settle it, about
    source, n_broken   of determined: the column that tells the other,
                    and the rows that break it
    n_rows          of the table
    support         null: no bootstrap
    sentence        all of this in English
    evidence        the tests, that of the linked side of a gate first:
                    where (contexts), n_rows, statistic, df, p, q,
                    information (bits a row), cramers_v,
                    cramers_v_limit, more_rows, method, contrast (null,
                    or the share of a level of a column, high and low,
                    at_high and at_low levels of the other), and trend
                    of ordered columns: first, second, tau, and level,
                    if the second has two levels without an order
  target            with --target: the column; each statement then has
                    direction (in English, or null) and strength
                    (confidence x bits a row), by which they are sorted
A structure without statements and rows is listed: a graph (format
"unless-graph") with its links; a graph with gates
("unless-labelled-graph") with each the regions in which it is linked: the
levels of each variable with a condition; a set of features
("unless-features") n_features, and with each pair the n_features that
speak of both.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from unless.cli.files import open_record, table_of, with_database
from unless.cli.options import context_option, gathered, make_command, matching_options, target_option
from unless.cli.output import (
    LEGEND,
    context_text,
    document,
    edge_text,
    how_learned,
    of,
    say,
    say_json,
    say_notes,
    say_statements,
    say_states,
    say_table,
    size_of,
    size_text,
)
from unless.data.showing import count, visible
from unless.errors import FileFormatError, UnlessError

if TYPE_CHECKING:
    from unless.data.dataset import Dataset
    from unless.formats.record import Record
    from unless.knowledge.statements import Statements
    from unless.structures.structure import Edge


@make_command("show", "Say what is linked in a saved model, and when, everywhere or in a context.", __doc__)
@click.argument("model", type=click.Path())
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path())
@context_option("Read the findings where NAME is LABEL; repeat it to narrow the context.")
@target_option
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@matching_options
def command(
    model: str,
    files: tuple[str, ...],
    context: tuple[tuple[str, str], ...],
    target: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Say what is linked in MODEL, and when, everywhere or in a context.

    What was said when it was learned is kept in MODEL. A table in FILE is explained anew; a structure that
    keeps neither statements nor rows is shown as the pairs that it links. MODEL or FILE may be a pipe, or
    - for standard input.
    """
    # The record and not the learner: showing needs no kernels.
    files = with_database(files, options)
    record = open_record(model)
    where = gathered("--context", context)
    data = table_of(record, files, options, model)
    if files and data is not None:
        say_notes(data)
    statements = _statements_of(record, model, data if files else None)
    if statements is None:
        if target is not None:
            raise click.UsageError("--target needs rows, and this model keeps none; name the table as well")
        _show_plain(record, where, as_json)
        return
    wanted = target or record.results.get("target")
    if wanted is not None:
        statements = statements.about_column(str(wanted))
    _show_statements(record, statements, data, where, as_json)


def _show_statements(record: Any, statements: Any, data: Any, context: dict[str, str], as_json: bool) -> None:
    from unless.structures.structure import observed

    codes = record.domain.encode(context)
    if record.structure.kind == "contexts":
        # Refuses, with the nearest one that is there, a context that it does not know.
        record.structure.given(context)
    n_rows = None
    if data is not None:
        n_rows = int(data.counts[observed(data, data.domain.encode(context))].sum())
    elif statements and not context:
        n_rows = statements[0].n_rows
    labels = dict(record.domain.decode(codes))
    if as_json:
        about = record.learner, record.settings, record.results
        say_json(document(statements, record.domain, n_rows, labels, about))
        return
    whole = n_rows if data is None else data.n_rows
    _say_all(statements, record, (n_rows, whole), labels)


def _show_plain(record: Any, context: dict[str, str], as_json: bool) -> None:
    if as_json:
        say_json(_structure_document(record, context))
        return
    _say_structure(record.structure, context, f"Learned by {record.learner}." if record.learner else "")


def _say_all(
    statements: Any, record: Any, rows: tuple[int | None, int | None], context: dict[str, str]
) -> None:
    from unless.data.survey import SURVEY

    part, whole = rows
    if context:
        counted = "" if part is None or whole is None else f" {of(part, whole, 'row')}"
        say(f"Where {context_text(context)}:{counted}\n")
        say_states(statements, context)
        return
    # A file keeps rows of a survey as fewer rows drawn alike.
    survey = [one for one in record.results.get("notes", []) if one.startswith(SURVEY)]
    if survey and statements:
        whole = statements[0].n_rows
    parts = [record.learner, None if whole is None else count(whole, "row"), _size(record.structure)]
    say(f"{', '.join(part for part in parts if part)}\n")
    if survey:
        say("\n".join([*map(visible, survey), ""]))
    say_statements(statements)
    if statements:
        say(f"\n{LEGEND}")


def _size(structure: Any) -> str:
    if structure.kind == "links":
        # Its links are proposals; what is said of them follows.
        return count(len(structure.domain), "column")
    if structure.kind != "contexts":
        return size_text(size_of(structure))
    columns, contexts = count(len(structure.domain), "column"), count(len(structure), "context")
    return f"{columns}, {contexts}, {count(structure.n_graphs, 'different graph')}"


def _statements_of(record: "Record", path: str, data: "Dataset | None" = None) -> "Statements | None":
    """Return what a file says: as kept, or of the table given; None where it keeps neither words nor rows."""
    from unless.knowledge.explaining import explain_as_learned
    from unless.knowledge.records import statements_from_record

    if data is None and record.statements is not None:
        try:
            return statements_from_record(record.statements, record.domain)
        except UnlessError as error:
            raise FileFormatError(f"{path!r} is damaged: {str(error).rstrip('.')}.") from None
    table = record.table if data is None else data
    if table is None:
        return None
    # Name and settings of the learner of a classifier are kept apart.
    inner = json.loads(str(record.results.get("learner_settings", "{}")))
    name, structure = record.results.get("learner_name", record.learner), record.structure
    if name is not None:
        from unless.learners.registry import learner_named

        structure = learner_named(str(name))._proposing(structure)
    return explain_as_learned(structure, table, {**record.settings, **inner})


def _say_structure(structure: Any, context: Mapping[str, str], title: str = "") -> None:
    """Print the pairs a structure links, or refuse a context before anything is printed."""
    from unless.structures.structure import n_pairs

    links = _links(structure, context)
    if title:
        say(title)
    columns = count(len(structure.domain), "column")
    pairs = of(len(links), n_pairs(len(structure.domain)), "pair")
    headers: tuple[str, ...] = ("Pair",)
    where = f" where {context_text(context)}" if context else ""
    if structure.kind == "graph":
        say(f"A graph over {columns}: {pairs} linked, everywhere.")
        rows: list[tuple[str, ...]] = [(edge_text(edge),) for edge in sorted(links)]
    elif structure.kind == "links":
        say(f"A graph with gates over {columns}{where}: {pairs} linked.")
        headers = ("Pair", "Linked")
        rows = [(edge_text(edge), visible(_region_text(structure, edge))) for edge in sorted(links)]
    else:
        features = count(structure.indicators().n_compatible(context), "feature")
        say(f"{features} over {columns}{where}: {pairs} together in a feature.")
        headers = ("Pair", "Features with both")
        ranked = sorted(links, key=lambda edge: (-links[edge], edge))
        rows = [(edge_text(edge), f"{links[edge]:,}") for edge in ranked]
    if rows:
        say()
        say_table(headers, rows, numbers=() if structure.kind == "links" else (1,))


def _structure_document(record: Any, context: Mapping[str, str]) -> dict[str, Any]:
    """Make the JSON that `unless show --help` describes for structures without contexts."""
    structure = record.structure
    links = _links(structure, context)
    common = how_learned(record.domain, record.learner, record.settings, record.results)
    common["version"] = 1
    if structure.kind == "graph":
        return {"format": "unless-graph", **common, "links": [{"pair": list(edge)} for edge in sorted(links)]}
    if structure.kind == "links":
        linked = [
            {"pair": list(edge), "regions": [region.to_dict() for region in structure.regions(*edge)]}
            for edge in sorted(links)
        ]
        return {"format": "unless-labelled-graph", **common, "context": dict(context), "links": linked}
    return {
        "format": "unless-features",
        **common,
        "context": dict(context),
        "n_features": structure.indicators().n_compatible(context),
        "links": [{"pair": list(edge), "n_features": links[edge]} for edge in sorted(links)],
    }


def _links(structure: Any, context: Mapping[str, str]) -> "dict[Edge, int]":
    if structure.kind == "links":
        return dict.fromkeys(structure.given(context).edges, 1)
    if structure.kind == "graph":
        if context:
            raise click.UsageError("a graph is the same in every context; leave out --context")
        return dict.fromkeys(structure.edges, 1)
    counts: dict[Edge, int] = structure.indicators().pair_counts(context)
    return counts


def _region_text(graph: Any, edge: "Edge") -> str:
    if graph.has_edge(*edge):
        return "everywhere"
    return " or ".join(f"where {region}" for region in graph.regions(*edge))
