r"""`unless check`: what would be done with each column of a table.

{QUOTING}

Nothing is learned and nothing is written but the plan, with --save. `unless learn` does what the plan
says, and reads another table in the same way with --plan.

\b
Examples:
  unless check survey.csv
  unless check survey.csv --as zip=category --exclude name --ordered grade=low,mid,high
  unless check survey.csv --as tools=choices --join color=color_red,color_blue
  unless check survey.csv --save plan.json
  unless check --database shop.db --sql "select * from orders"
  unless learn next_year.csv --plan plan.json -o model.unless

\b
The JSON document, keys sorted:
  format, version   "unless-plan", 1
  n_rows            how many rows the table has
  columns           for each: name, role, included, done (in words), and where
                    they apply why, levels, cuts, rare, parts, written,
                    source, missing, choices and separator (of several
                    answers in a cell), columns (that are joined),
                    no_answers (labels read as missing)
  notes             what concerns several columns
  missing           what is done with missing values, in words
"""

from typing import Any

import click

from unless.cli.failures import in_options
from unless.cli.files import check_output, found_files, source_of, with_database
from unless.cli.options import file_option, make_command, preparing_options, settings_of
from unless.cli.output import busy, note, say, say_json
from unless.data.showing import count, visible


@make_command(
    "check", "Show what would be done with each column of a table, before it is learned from.", __doc__
)
@click.argument("files", metavar="FILE...", nargs=-1, type=click.Path())
@preparing_options
@file_option("--save", metavar="PLAN", help="Write the plan here, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def command(files: tuple[str, ...], save: str | None, as_json: bool, **options: Any) -> None:
    """Show what would be done with each column of a table, in one FILE or several with the same columns."""
    from unless.data.prepare import prepare

    files = with_database(files, options, required=True)
    if save is not None:
        check_output(save, found_files(files))
    with busy(f"Looking at {', '.join(files)} ..."):
        plan = prepare(source_of(files, options), **settings_of(options))
    if save is not None:
        plan.save(save)
    if as_json:
        say_json(plan.to_dict())
    else:
        say(in_options(str(plan)))
        kept = sum(one.included for one in plan.lines)
        size = f"{count(plan.n_rows, 'row')}, {count(plan.n_columns, 'column')}"
        say(f"\n{size}, {kept:,} of them learned from.")
    if save is not None:
        note(f"Saved as {visible(save)}.")
