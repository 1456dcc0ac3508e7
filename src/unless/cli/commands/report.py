"""`unless report`: a saved model as one page."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unless.cli.reading import matching_options

if TYPE_CHECKING:
    from unless.data.dataset import Dataset
    from unless.formats.text import PathLike
    from unless.inference.model import LogLinearModel


@click.command(
    "report",
    short_help="Write a model as one page that shows what is linked, and when.",
    epilog="""
    The page is one HTML file that needs no network and no server: findings as sentences with their evidence,
    a graph that changes with the context chosen, and a table of all statements. What `unless learn` saves
    brings its rows along; for other models, or without rows, name the table. The page gives probabilities
    where all combinations of levels are few, or where --network names a model with weights.

    A page holds the distinct rows of the table with their counts, and says so at its end. --min-cell 5 leaves
    out every count below 5 and rounds the others to multiples of 5; --no-rows leaves out all counts but those
    in sentences.

    \b
    Examples:
      unless report model.unless -o report.html --open
      unless report graph.graphml table.csv -o report.html
      unless report model.unless -o report.html --network fitted.unless
      unless report model.unless -o report.html --target income
      unless report model.unless -o report.html --min-cell 5
    """,
)
@click.argument("model", type=click.Path())
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path())
@click.option(
    "-o", "--output", metavar="OUT", required=True, type=click.Path(), help="Where to write the page."
)
@click.option("--target", metavar="NAME", help="Say what matters for this column, most first.")
@click.option("--title", metavar="TEXT", help="The title of the page.")
@click.option(
    "--network", metavar="FILE", type=click.Path(), help="A model with weights, as `unless fit` writes."
)
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
    target: str | None,
    title: str | None,
    network: str | None,
    min_cell: int | None,
    no_rows: bool,
    is_opened: bool,
    **reading: Any,
) -> None:
    """Write what MODEL says, and what its table or FILE says of that, as one HTML page.

    MODEL or FILE may be a pipe, or - for standard input.
    """
    from unless.cli.display import busy, note
    from unless.cli.reading import with_database
    from unless.cli.writing import check_output

    if network and (no_rows or min_cell):
        option = "--min-cell" if min_cell else "--no-rows"
        raise click.UsageError(
            f"small counts could be computed from the probabilities of --network; leave it out with {option}"
        )
    files = with_database(files, reading)
    inputs = [Path(name) for name in (model, *files, *([network] if network else []))]
    check_output(output, [source for source in inputs if source.exists()], "input")
    with busy("Writing ..."):
        _write(model, files, output, (target, title), network, reading, rows=not no_rows, min_cell=min_cell)
    note(f"Wrote {output}; open it in a browser.")
    if is_opened:
        click.launch(Path(output).resolve().as_uri())


def _write(
    model: str,
    files: tuple[str, ...],
    output: str,
    about: tuple[str | None, str | None],
    network: str | None,
    reading: dict[str, Any],
    **told: Any,
) -> None:
    from unless.cli.models import ending
    from unless.formats.text import take
    from unless.learners.base import Estimator
    from unless.learners.files import load
    from unless.report.writing import Provenance, write_report

    taken = take(model)
    learned = load(taken) if ending(taken) == ".unless" else _structure(taken)
    net = _network(network)
    target, title = about
    if isinstance(learned, Estimator):
        keeps_rows = hasattr(learned, "data_") and not files
        data = None if keeps_rows else _data(learned.structure_, files, reading, model)
        learned.report(output, data=data, network=net, target=target, title=title, **told)
        return
    data = _data(learned, files, reading, model)
    # A model's own rows come without a word on how they were read.
    source = None if files else Provenance()
    write_report(learned, data, output, network=net, source=source, target=target, title=title, **told)


def _structure(model: "PathLike") -> Any:
    from unless.cli.models import open_record

    return open_record(model).structure


def _network(path: str | None) -> "LogLinearModel | None":
    from unless.formats.catalogue import read_model

    return read_model(path) if path else None


def _data(structure: Any, files: tuple[str, ...], reading: dict[str, Any], model: str) -> "Dataset":
    from unless.cli.reading import table_of

    data = table_of(structure, files, reading, model)
    if data is None:
        raise click.UsageError(
            "This model keeps no rows; name the table as well: unless report MODEL FILE -o OUT"
        )
    return data
