r"""`unless report`: a saved model as one page.

The page is one HTML file that needs no network and no server: findings as sentences with their evidence,
a graph that changes with the context chosen, and a table of all statements. What `unless learn` saves
brings its rows along; for other models, or without rows, name the table. The page gives the probabilities
of all columns under the context chosen with --what-if, which fits a model with weights, or with --network,
which names one.

A page holds the distinct rows of the table with their counts, and says so at its end. --min-cell 5 leaves
out every count below 5 and rounds the others to multiples of 5; --no-rows leaves out all counts but those
in sentences.

\b
Examples:
  unless report model.unless -o report.html --open
  unless report graph.graphml table.csv -o report.html
  unless report model.unless -o report.html --what-if
  unless report model.unless -o report.html --network fitted.unless
  unless report model.unless -o report.html --target income
  unless report model.unless -o report.html --min-cell 5
"""

from pathlib import Path
from typing import Any

import click

from unless.cli.files import check_output, open_record, table_of, with_database
from unless.cli.options import file_option, make_command, matching_options, target_option
from unless.cli.output import busy, note


@make_command("report", "Write a model as one page that shows what is linked, and when.", __doc__)
@click.argument("model", type=click.Path())
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path())
@file_option("-o", "--output", metavar="OUT", required=True, help="Where to write the page.")
@target_option
@click.option("--title", metavar="TEXT", help="The title of the page.")
@file_option("--network", help="Show the probabilities of a model with weights, as `unless fit` writes.")
@click.option("--what-if", is_flag=True, help="Fit a model with weights, and show its probabilities.")
@click.option(
    "--min-cell",
    metavar="N",
    type=click.IntRange(min=3),
    help="Hide counts below N and round the others; no rows are kept.",
)
@click.option(
    "--no-rows", is_flag=True, help="Keep rows, tables of counts and probabilities out of the page."
)
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
@matching_options
def command(
    model: str,
    files: tuple[str, ...],
    output: str,
    network: str | None,
    what_if: bool,
    min_cell: int | None,
    no_rows: bool,
    is_opened: bool,
    **options: Any,
) -> None:
    """Write what MODEL says, and what its table or FILE says of that, as one HTML page.

    MODEL or FILE may be a pipe, or - for standard input.
    """
    if network and what_if:
        raise click.UsageError("--what-if fits a model and --network names one; give one of them")
    if (network or what_if) and (no_rows or min_cell):
        asked, option = "--network" if network else "--what-if", "--min-cell" if min_cell else "--no-rows"
        raise click.UsageError(
            f"small counts could be computed from the probabilities of {asked}; leave it out with {option}"
        )
    files = with_database(files, options)
    inputs = [Path(name) for name in (model, *files, *([network] if network else []))]
    check_output(output, [source for source in inputs if source.exists()], "input")
    about = {name: options.pop(name) for name in ("target", "title")}
    about |= {"rows": not no_rows, "min_cell": min_cell}
    with busy("Writing ..."):
        _write(model, files, output, network or what_if, options, **about)
    note(f"Wrote {output}; open it in a browser.")
    if is_opened:
        click.launch(Path(output).resolve().as_uri())


def _write(
    model: str,
    files: tuple[str, ...],
    output: str,
    network: str | bool,
    options: dict[str, Any],
    **about: Any,
) -> None:
    from unless.formats.catalogue import read_model
    from unless.formats.record import Record
    from unless.formats.text import ending_of, take
    from unless.learners.base import Estimator
    from unless.learners.files import load
    from unless.report.writing import Provenance, write_report

    taken = take(model)
    learned = load(taken) if ending_of(taken) == ".unless" else open_record(taken).structure
    net = read_model(network) if isinstance(network, str) else network or None
    structure = learned.structure_ if isinstance(learned, Estimator) else learned
    data = None
    if files or not hasattr(learned, "data_"):
        data = table_of(Record(structure), files, options, model)
        if data is None:
            raise click.UsageError(
                "This model keeps no rows; name the table as well: unless report MODEL FILE -o OUT"
            )
    if isinstance(learned, Estimator):
        learned.report(output, data=data, network=net, **about)
        return
    # A model's own rows come without a word on how they were read.
    source = None if files else Provenance()
    write_report(structure, data, output, network=net, source=source, **about)
