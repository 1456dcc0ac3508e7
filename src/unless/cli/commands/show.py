"""`unless show`: the links in a saved model, everywhere or in a context."""

from typing import Any

import click

from unless.cli.options import QUOTING, Written, assignment, gathered


@click.command(
    "show",
    short_help="Show which pairs are linked, everywhere or in a context.",
    epilog=f"""
    {QUOTING}

    \b
    Examples:
      unless show model.unless
      unless show model.unless --context Dept=A --context Gender=Male
      unless show model.unless --json

    \b
    The JSON document, keys sorted:
      format, version   "unless-links", 1
      learner, settings, results   how the model was learned, at what cost
      variables         name and levels, in their order
      context           the context looked at, {{}} for none
      here, whole       n_rows, n_contexts, n_graphs: in the context, in all
      links             each pair linked anywhere, sorted; a pair that is
                        not listed is linked nowhere:
        pair            two names, sorted
        here, whole     n_rows and n_contexts in which it is linked, and
                        its share of the rows
        gate            null, or the variable whose levels alone decide the
                        link here: variable, linked, not_linked
    A graph (format "unless-graph") lists its links only; a set of features
    ("unless-features") n_features, and with each pair the n_features that
    speak of both.
    """,
)
@click.argument("model", type=click.Path())
@click.option(
    "--context",
    "-c",
    type=Written("NAME=LABEL", assignment),
    multiple=True,
    help="Look only where NAME is LABEL; repeat it to narrow the context.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(model: str, context: tuple[tuple[str, str], ...], as_json: bool) -> None:
    """Show which pairs are linked in MODEL, everywhere or in a context, and in what share of the rows."""
    from unless.cli.display import say_json
    from unless.cli.links import look
    from unless.cli.telling import document
    from unless.formats.record import load_record
    from unless.structures.canonical import CanonicalModel

    # The record and not the learner: showing needs no kernels.
    record = load_record(model)
    where = gathered("--context", context)
    if not isinstance(record.structure, CanonicalModel):
        _show_plain(record, where, as_json)
        return
    view = look(record.structure, where)
    if as_json:
        say_json(document(view, record.domain, record.learner, record.settings, record.results))
    elif view.context:
        _tell_context(view)
    else:
        _tell_whole(view, record)


def _show_plain(record: Any, context: dict[str, str], as_json: bool) -> None:
    from unless.cli.display import say_json
    from unless.cli.plain import say_structure, structure_document

    if as_json:
        about = record.learner, record.settings, record.results
        say_json(structure_document(record.structure, context, *about))
        return
    say_structure(record.structure, context, f"Learned by {record.learner}." if record.learner else "")


def _tell_whole(view: Any, record: Any) -> None:
    from unless.cli.display import say
    from unless.cli.telling import by_share, say_links
    from unless.cli.wording import count, of

    learner = f"{record.learner}, " if record.learner else ""
    say(
        f"{learner}{count(view.whole.n_rows, 'row')}, {count(len(record.domain), 'column')}, "
        f"{count(view.whole.n_contexts, 'context')}, {count(view.n_graphs, 'different graph')}\n"
    )
    if view.links:
        say_links(by_share(view.links), view)
        say()
    n_never = view.n_pairs - len(view.links)
    say(
        f"Linked nowhere: {of(n_never, view.n_pairs, 'pair')}."
        if n_never
        else "Every pair is linked somewhere."
    )


def _tell_context(view: Any) -> None:
    from unless.cli.display import say, say_table
    from unless.cli.telling import by_share, context_text, pair_text, say_links
    from unless.cli.wording import count, of, percent

    rows = of(view.here.n_rows, view.whole.n_rows, "row")
    contexts = of(view.here.n_contexts, view.whole.n_contexts, "context")
    say(f"Where {context_text(view.context)}: {rows}, {contexts}\n")
    present = by_share(link for link in view.links if link.here.n_contexts)
    absent = [link for link in view.links if not link.here.n_contexts]
    if present:
        say_links(present, view)
    else:
        say("No pair is linked here.")
    if not absent:
        say("\nEvery link of the whole table is found here.")
        return
    say("\nNot linked here, though elsewhere:")
    say_table(
        ("Pair", "Linked in", f"of all {count(view.whole.n_rows, 'row')}"),
        [
            (pair_text(link), percent(link.whole.n_rows, view.whole.n_rows), f"{link.whole.n_rows:,}")
            for link in absent
        ],
        numbers=(1, 2),
    )
