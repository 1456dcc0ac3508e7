r"""`unless datasets`: the bundled tables and the generator, listed or written as CSV.

\b
Examples:
  unless datasets
  unless datasets ucb_admissions -o berkeley.csv
  unless datasets csi --variables 6 --rows 1000 --seed 0 -o made.csv
"""

import csv
import io
import sys
from textwrap import fill
from typing import TYPE_CHECKING, Any, TextIO

import click

from unless.cli.files import check_output
from unless.cli.options import file_option, make_command
from unless.cli.output import say, say_json
from unless.data.showing import count

if TYPE_CHECKING:
    from unless.data.dataset import Dataset

MADE = "csi"
MADE_ABOUT = (
    "Made up, with a known truth: while W = 0 all columns are linked to each other, while W = 1 only to W. "
    "Its size is set by --variables and --rows, its numbers by --seed."
)
MADE_SOURCE = "Edera, Schlueter and Bromberg (2014); in Python: unless.datasets.make_csi"


@make_command("datasets", "List the bundled tables, or write one as CSV.", __doc__)
@click.argument("name", required=False)
@file_option("-o", "--output", help="Write here and not to stdout.")
@click.option("--counts", is_flag=True, help="Write distinct rows, with a column `count`.")
@click.option("--variables", type=int, metavar="N", help="csi: the number of columns (6).")
@click.option("--rows", type=click.IntRange(min=1), metavar="N", help="csi: the number of rows (1000).")
@click.option("--law", type=click.Choice(["normal", "uniform"]), help="csi: how weights are drawn (normal).")
@click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", help="csi: the same seed gives the same table (0)."
)
@click.option("--json", "as_json", is_flag=True, help="List as JSON.")
def command(name: str | None, output: str | None, counts: bool, as_json: bool, **made: Any) -> None:
    """List the bundled tables, or write the one called NAME as CSV."""
    from unless.runtime.files import replacing

    sizes = {option: value for option, value in made.items() if value is not None}
    if name is None:
        if output or counts or sizes:
            raise click.UsageError("Name the table to write")
        _list(as_json)
        return
    if as_json:
        raise click.UsageError("--json lists the tables; a table itself is written as CSV")
    if sizes and name != MADE:
        raise click.UsageError(f"--{next(iter(sizes))} is only for {MADE}")
    data = _make(**sizes) if name == MADE else _load(name)
    if output is None:
        _write(data, sys.stdout, counts)
        return
    check_output(output)
    text = io.StringIO(newline="")
    _write(data, text, counts)
    with replacing(output) as stream:
        stream.write(text.getvalue().encode())


def _load(name: str) -> "Dataset":
    from unless.datasets.tables import catalogue, load
    from unless.errors import UnknownName

    if name not in catalogue():
        raise UnknownName(f"There is no dataset {name!r}; there are {', '.join([*catalogue(), MADE])}.")
    return load(name)


def _make(variables: int = 6, rows: int = 1000, law: Any = "normal", seed: int = 0) -> "Dataset":
    import numpy as np

    from unless.datasets.synthetic import make_csi

    rng = np.random.default_rng(seed)
    return make_csi(variables, law=law, random_state=rng).sample(rows, rng)


def _write(data: "Dataset", stream: TextIO, counts: bool) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*data.names, *(["count"] if counts else [])])
    levels = [variable.levels for variable in data.domain]
    for codes, number in zip(data.rows.tolist(), data.counts.tolist(), strict=True):
        labels = [level[code] for level, code in zip(levels, codes, strict=True)]
        if counts:
            writer.writerow([*labels, number])
        else:
            writer.writerows([labels] * number)


def _list(as_json: bool) -> None:
    from unless.datasets.tables import catalogue

    described = catalogue().values()
    if as_json:
        fields = ("name", "n_rows", "n_columns", "about", "source")
        tables: list[dict[str, Any]] = [
            {**{field: getattr(one, field) for field in fields}, "made": False} for one in described
        ]
        made = dict(zip(fields, (MADE, None, None, MADE_ABOUT, MADE_SOURCE), strict=True))
        say_json([*tables, {**made, "made": True}])
        return
    for one in described:
        say(f"{one.name}: {count(one.n_rows, 'row')}, {count(one.n_columns, 'column')}")
        say(f"{_indented(one.about)}\n{_indented(one.source)}\n")
    say(f"{MADE}: as many rows and columns as you ask for\n{_indented(MADE_ABOUT)}\n{_indented(MADE_SOURCE)}")


def _indented(text: str) -> str:
    return fill(text, 100, initial_indent="    ", subsequent_indent="    ")
