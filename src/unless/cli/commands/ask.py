r"""`unless ask`: one question about two columns, put to the rows of a model and to the model.

{QUOTING}

The data answer independent, dependent, or undecided where there are too few rows, by one test pooled
over the strata of the columns given; the model answers by its graph. A single question needs no
correction, but whoever asks many and tells of the smallest p does: `unless show` is corrected for that.

\b
Examples:
  unless ask model.unless Admit Gender
  unless ask model.unless Admit Gender --given Dept
  unless ask model.unless Admit Gender --context Dept=A --json
  unless ask graph.graphml Admit Gender --table survey.csv

\b
The JSON document, keys sorted:
  format, version   "unless-answer", 1
  pair, given, context   the question
  answer            of the data: independent, dependent or undecided
  data              the test: answer, n_rows, rows_used, statistic, df, p,
                    method (chi-square, or permutations or moments
                    where cells are nearly empty), q (is p), n_choices
                    (1), critical_p, information (bits a row),
                    cramers_v, cramers_v_limit,
                    effect_size, odds_ratio (null, or value, low, high,
                    levels), power, more_rows, small_expectations, given,
                    left_out, and tables: the counts, levels of A by
                    levels of B, in each stratum given
  model             separated: whether its graph separates the two, null
                    where it knows no such context; share: of the rows
                    with a link
  agrees            whether both say the same, null where one is silent
"""

from typing import Any

import click

from unless.cli.files import open_record, table_of, with_database
from unless.cli.options import context_option, file_option, gathered, make_command, matching_options
from unless.cli.output import say, say_json, say_notes
from unless.data.showing import visible


@make_command(
    "ask", "Ask the rows of a saved model about two columns, given others or in a context.", __doc__
)
@click.argument("model", type=click.Path())
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--given", "-g", metavar="NAME", multiple=True, help="Hold this column fixed; repeat it for more."
)
@context_option("Ask only where NAME is LABEL; repeat it to narrow the context.")
@file_option("--table", multiple=True, help="Ask this table; needed where MODEL keeps no rows.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@matching_options
def command(
    model: str,
    a: str,
    b: str,
    given: tuple[str, ...],
    context: tuple[tuple[str, str], ...],
    table: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Ask whether the columns A and B of MODEL go together, given others or in a context.

    MODEL, or a table, may be a pipe, or - for standard input.
    """
    from unless.knowledge.asking import ask

    table = with_database(table, options)
    record = open_record(model)
    data = table_of(record, table, options, model)
    if data is None:
        raise click.UsageError("This model keeps no rows; name the table as well: --table FILE")
    if table:
        say_notes(data)
    shared: dict[str, Any] = {
        name: record.settings[name] for name in ("alpha", "effect") if name in record.settings
    }
    where = gathered("--context", context)
    asked = ask(record.structure, data, a, b, given=given, context=where, **shared)
    if as_json:
        say_json({"format": "unless-answer", "version": 1, **asked.to_dict()})
        return
    for line in str(asked).splitlines():
        say(visible(line) if line else "")
