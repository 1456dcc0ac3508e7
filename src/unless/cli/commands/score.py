r"""`unless score`: how probable a table is under a model.

Columns that MODEL does not know are left out. A .data file of codes, as Libra writes them, is read by
position where MODEL is an .mn file or a schema lies beside the table. Scores are mean logs, in nats per
row: the nearer to 0 the better. A row with missing values counts with what it shows; --pll and --cmll
need complete rows, which --missing drop leaves.

\b
Examples:
  unless score fitted.unless new.csv
  unless score fitted.unless new.csv --pll --by-variable
  unless score network.mn test.data --pll --json
  unless score fitted.unless new.csv --cmll --target Admit

\b
The JSON document, keys sorted:
  format, version   "unless-score", 1
  measure           "log_likelihood", "pseudo_log_likelihood" or
                    "conditional_marginal_log_likelihood"
  n_rows            how many rows were scored
  per_row           the mean over rows; null where a row is impossible
  by_variable       null, or what each variable adds, by its name
"""

from typing import TYPE_CHECKING, Any

import click

from unless.cli.files import read_like, with_database
from unless.cli.options import Written, make_command, matching_options, names
from unless.cli.output import MEASURES, note, number, say, say_json, say_notes, say_table
from unless.data.showing import count, visible

if TYPE_CHECKING:
    from unless.data.dataset import Dataset
    from unless.inference.model import LogLinearModel


@make_command("score", "Say how probable a table is under a model.", __doc__)
@click.argument("model", type=click.Path())
@click.argument("files", metavar="FILE...", nargs=-1, type=click.Path())
@click.option("--pll", is_flag=True, help="The pseudo-log-likelihood: each column given all others.")
@click.option(
    "--cmll",
    is_flag=True,
    help="The conditional marginal log-likelihood: each quarter of the columns given the others.",
)
@click.option(
    "--target",
    "targets",
    type=Written("NAME[,NAME...]", names),
    help="With --cmll: these columns, each given all but these.",
)
@click.option("--by-variable", is_flag=True, help="With --pll or --cmll: what each variable adds.")
@matching_options
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(model: str, files: tuple[str, ...], by_variable: bool, as_json: bool, **options: Any) -> None:
    """Say how probable the rows of a table, in one FILE or several, are under MODEL.

    MODEL or FILE may be a pipe, or - for standard input.
    """
    from unless.formats.catalogue import read_model
    from unless.inference.tables import incomplete_rows

    files = with_database(files, options, required=True)
    measure = _measure(options, by_variable)
    net = read_model(model)
    data = read_like(net.domain, files, options, model, holes=measure == "log_likelihood")
    say_notes(data)
    value, shares = _score(net, data, measure, options)
    n_incomplete = int(incomplete_rows(data).counts.sum())
    n_rows = data.n_rows + n_incomplete
    if n_incomplete:
        note(f"{count(n_incomplete, 'row')} of {n_rows:,} lack values; of these what is shown is scored.")
    if as_json:
        document = {
            "measure": measure,
            "n_rows": n_rows,
            "per_row": number(value),
            "by_variable": {name: number(share) for name, share in shares.items()} if by_variable else None,
        }
        say_json({"format": "unless-score", "version": 1, **document})
    else:
        _say_score(value, shares if by_variable else {}, measure, n_rows)


def _measure(options: dict[str, Any], by_variable: bool) -> str:
    if options["pll"] and options["cmll"]:
        raise click.UsageError("--pll and --cmll exclude each other")
    if options["targets"] and not options["cmll"]:
        raise click.UsageError("--target is only for --cmll")
    if options["pll"]:
        return "pseudo_log_likelihood"
    if options["cmll"]:
        return "conditional_marginal_log_likelihood"
    if by_variable:
        raise click.UsageError(
            "--by-variable is only for --pll and --cmll; a log-likelihood is of all columns at once"
        )
    return "log_likelihood"


def _score(
    net: "LogLinearModel", data: "Dataset", measure: str, options: dict[str, Any]
) -> tuple[float, dict[str, float]]:
    from unless.errors import TooLarge
    from unless.runtime.memory import show_memory

    max_memory = options["max_memory"]
    if measure != "log_likelihood":
        if measure == "pseudo_log_likelihood":
            found = net.pseudo_log_likelihood(data, max_memory=max_memory)
        else:
            found = net.conditional_marginal_log_likelihood(data, options["targets"], max_memory=max_memory)
        return float(found), dict(found.by_variable)
    if not net.exact.fits(max_memory):
        raise TooLarge(
            f"A log-likelihood needs tables of about {show_memory(net.exact.cost.n_bytes)}; score by --pll "
            "or --cmll, or raise max_memory=."
        )
    return net.score(data, max_memory=max_memory), {}


def _say_score(value: float, shares: dict[str, float], measure: str, n_rows: int) -> None:
    say(f"{MEASURES[measure]} per row: {value:.6f} ({count(n_rows, 'row')})")
    if value == float("-inf"):
        note("The model gives some of the rows probability zero.")
    if shares:
        say()
        rows = [(visible(name), f"{share:.6f}") for name, share in shares.items()]
        say_table(("Variable", "Adds"), rows, numbers=(1,))
