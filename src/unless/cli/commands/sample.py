r"""`unless sample`: rows drawn from a model, as CSV.

{QUOTING}

\b
Examples:
  unless sample fitted.unless -n 1000 -o drawn.csv
  unless sample fitted.unless -n 10 --given Dept=A --seed 7
  unless sample network.bif -n 100000 -o drawn.csv

\b
The JSON document, keys sorted:
  format, version   "unless-sample", 1
  given, seed       what was given, and the seed
  method            "exact" or "gibbs"
  n_rows, columns   how many rows, and the names of their columns
  rows              lists of labels, or null where --output got them
  output            the name of that file, or null
"""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unless.cli.files import check_output
from unless.cli.options import file_option, gathered, given_option, make_command, memory_option, seed_option
from unless.cli.output import note, say_json

if TYPE_CHECKING:
    from unless.data.dataset import Rows
    from unless.data.domain import Domain

# Rows turned into text at a time.
BLOCK = 10_000


@make_command("sample", "Draw rows from a model, as CSV.", __doc__)
@click.argument("model", type=click.Path())
@click.option(
    "-n",
    "--rows",
    "n_rows",
    type=click.IntRange(min=1),
    metavar="N",
    default=1000,
    show_default=True,
    help="The number of rows.",
)
@given_option
@seed_option
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "gibbs"]),
    default="auto",
    show_default=True,
    help="Exact, or by Gibbs sampling; auto is exact where it fits, else gibbs.",
)
@memory_option
@file_option("-o", "--output", help="Write here and not to stdout.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; with --output, all but the rows.")
def command(
    model: str,
    n_rows: int,
    given: tuple[tuple[str, str], ...],
    output: str | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Draw rows from MODEL and write them as CSV.

    MODEL may be a pipe, or - for standard input.
    """
    from unless.formats.catalogue import read_model
    from unless.inference.model import choose_method, sample_codes
    from unless.runtime.files import replacing

    facts = gathered("--given", given)
    if output is not None:
        check_output(output, [Path(model)] if Path(model).exists() else [], "model")
    net = read_model(model)
    method = choose_method(net, how["method"], how["max_memory"], draws=True)
    codes = net.domain.encode(facts)
    rows = sample_codes(net, n_rows, how["seed"], codes, method=method, max_memory=how["max_memory"])
    if output is not None:
        with replacing(output) as stream:
            for block in _csv(net.domain, rows):
                stream.write(block)
    elif not as_json:
        for block in _csv(net.domain, rows):
            click.echo(block, nl=False)
    if as_json:
        document = {"given": facts, "seed": how["seed"], "method": method, "n_rows": n_rows, "output": output}
        listed = [list(labels) for labels in _labels(net.domain, rows)] if output is None else None
        columns = list(net.domain.names)
        say_json({"format": "unless-sample", "version": 1, **document, "columns": columns, "rows": listed})
    elif method == "gibbs":
        note("Drawn by Gibbs sampling: rows that are nearly, not wholly, independent of each other.")


def _csv(domain: "Domain", rows: "Rows") -> Iterator[bytes]:
    header: list[tuple[str, ...]] = [domain.names]
    for begin in range(0, len(rows), BLOCK):
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(
            [*(header if not begin else []), *_labels(domain, rows[begin : begin + BLOCK])]
        )
        yield text.getvalue().encode("utf-8", "backslashreplace")


def _labels(domain: "Domain", rows: "Rows") -> Iterator[tuple[str, ...]]:
    columns = (
        [one.levels[code] for code in column] for one, column in zip(domain, rows.T.tolist(), strict=True)
    )
    return zip(*columns, strict=True)
