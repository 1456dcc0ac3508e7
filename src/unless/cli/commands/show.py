"""`unless show`: what a saved model says, everywhere or in a context."""

from typing import Any

import click

from unless.cli.options import QUOTING, Written, assignment, gathered
from unless.cli.reading import matching_options


@click.command(
    "show",
    short_help="Say what depends on what in a saved model, everywhere or in a context.",
    epilog=f"""
    {QUOTING}

    \b
    Examples:
      unless show model.unless
      unless show model.unless --context Dept=A --context Gender=Male
      unless show model.unless --target Admit
      unless show model.unless --json
      unless show graph.unless survey.csv

    \b
    The JSON document, keys sorted:
      format, version   "unless-statements", 1
      learner, settings, results   how the model was learned, at what cost
      variables         name and levels, in their order
      context           the context looked at, {{}} for none
      n_rows            the rows looked at
      made_by           alpha, fdr, correction, effect, max_gate, test and
                        n_bootstrap of the statements
      note              why there are none, or what was left out
      statements        one for each pair, the most telling first:
        pair            two names, sorted
        claim           what the model says: "linked", "gated" or "never"
        verdict, agrees   what the data say of the claim; whether they agree
        gate            null, or linked and not_linked: lists of contexts,
                        each the levels that some variables have
        share, agreement  of the rows with the link; that are as claimed
        support         null: no bootstrap
        sentence        all of this in English
        linked, not_linked   null, or the test where the claim says so:
                        answer, n_rows, rows_used, statistic, df, p, q,
                        n_choices, critical_p, information (bits),
                        cramers_v, cramers_v_limit, effect_size,
                        odds_ratio (value, low, high, levels), power,
                        more_rows, given, left_out, small_expectations
    Without rows, a graph (format "unless-graph") lists its links only; a graph with gates
    ("unless-labelled-graph") with each the regions in which it is linked: the
    levels of each variable with a condition; a set of features
    ("unless-features") n_features, and with each pair the n_features that
    speak of both.
    """,
)
@click.argument("model", type=click.Path())
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path())
@click.option(
    "--context",
    "-c",
    type=Written("NAME=LABEL", assignment),
    multiple=True,
    help="Look only where NAME is LABEL; repeat it to narrow the context.",
)
@click.option("--target", metavar="NAME", help="Say only what is about this column.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@matching_options
def command(
    model: str,
    files: tuple[str, ...],
    context: tuple[tuple[str, str], ...],
    target: str | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Say what depends on what in MODEL, everywhere or in a context, with the evidence of its rows.

    A model that keeps no rows, such as a graph, is weighed by the table in FILE, or shown as the pairs that
    it links.
    """
    from unless.cli.models import open_record
    from unless.cli.reading import say_notes, table_of
    from unless.structures.canonical import CanonicalModel

    # The record and not the learner: showing needs no kernels.
    record = open_record(model)
    where = gathered("--context", context)
    data = table_of(record.structure, files, reading, model)
    if data is None:
        if target is not None:
            raise click.UsageError("--target needs rows, and this model keeps none; name the table as well")
        _show_plain(record, where, as_json)
        return
    say_notes(data)
    if isinstance(record.structure, CanonicalModel):
        # Refuses, with the nearest one that is there, a context that it does not know.
        record.structure.given(where)
    _show_explained(record, data, where, target, as_json)


def _show_explained(
    record: Any, data: Any, context: dict[str, str], target: str | None, as_json: bool
) -> None:
    from unless.cli.display import say_json
    from unless.cli.telling import document
    from unless.knowledge.explaining import explain_as_learned
    from unless.knowledge.presence import observed

    held = data.domain.encode(context)
    n_rows = int(data.counts[observed(data, held)].sum())
    statements = explain_as_learned(record.structure, data, record.settings, target=target, context=context)
    if as_json:
        about = record.learner, record.settings, record.results
        say_json(document(statements, record.domain, n_rows, data.domain.decode(held), about))
    else:
        _tell(statements, record, (n_rows, data.n_rows), data.domain.decode(held))


def _show_plain(record: Any, context: dict[str, str], as_json: bool) -> None:
    from unless.cli.display import say_json
    from unless.cli.plain import say_structure, structure_document

    if as_json:
        about = record.learner, record.settings, record.results
        say_json(structure_document(record.structure, context, *about))
        return
    say_structure(record.structure, context, f"Learned by {record.learner}." if record.learner else "")


def _tell(statements: Any, record: Any, rows: tuple[int, int], context: dict[str, str]) -> None:
    from unless.cli.display import say
    from unless.cli.telling import LEGEND, context_text, say_statements
    from unless.cli.wording import count, of

    if context:
        say(f"Where {context_text(context)}: {of(*rows, 'row')}\n")
    else:
        learner = f"{record.learner}, " if record.learner else ""
        say(f"{learner}{count(rows[1], 'row')}, {_size(record.structure)}\n")
    say_statements(statements)
    if statements:
        say(f"\n{LEGEND}")


def _size(structure: Any) -> str:
    from unless.cli.models import size_text, told
    from unless.cli.wording import count
    from unless.structures.canonical import CanonicalModel

    if not isinstance(structure, CanonicalModel):
        return size_text(told(structure))
    columns, contexts = count(len(structure.domain), "column"), count(len(structure), "context")
    return f"{columns}, {contexts}, {count(structure.n_graphs, 'different graph')}"
