r"""`unless compare`: which links differ between two tables, or between the groups of one.

A link is gained, lost, stronger or weaker only where a test of the difference shows it, corrected for the
number of pairs; of all other pairs no difference is shown, which does not mean that there is none. Models
that keep their rows are compared by them. Two models without rows, or with --table, are compared as
structures: that is no test, and says nothing of what chance would do.

{QUOTING}

\b
Examples:
  unless compare 2023.csv 2024.csv
  unless compare survey.csv --by Region
  unless compare --database shop.db --sql "select * from orders" --by city
  unless compare 2023.unless 2024.unless --json
  unless compare ggs.unless csgs.unless --table survey.csv

\b
The JSON document, keys sorted:
  format, version   "unless-changes", 2
  is_test           whether differences were tested; else the document
                    has first, second and structures: in how many
                    contexts, or rows, each pair is linked in both (tp),
                    in the second (fp), in the first (fn), nowhere (tn)
  sides             name and n_rows of what is compared
  settings          fdr, effect, correction, and by
  notes             what was left out
  pairs             one for each pair, those that differ first:
    kind            "gained", "lost", "stronger", "weaker", "other" or
                    "not shown"
    pair            two names, sorted
    where           the first and the second in words, or null
    given           the columns held fixed
    statistic, df, p, q   the test that both are alike
    limit           the largest difference of V not ruled out (95 %)
    more_rows       that would rule out `effect`, about, or null
    first, second   the link there, as `unless show --json` has it
    sentence        all of this in English
"""

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from unless.cli.files import open_record, read_files, read_like, with_database
from unless.cli.options import MATCHING, file_option, make_command, reading_options
from unless.cli.output import busy, say, say_json
from unless.data.showing import count, visible
from unless.errors import SettingError
from unless.formats import FORMATS

if TYPE_CHECKING:
    from unless.data.dataset import Dataset
    from unless.evaluation.comparison import StructureComparison
    from unless.formats.record import Record
    from unless.knowledge.comparing import Comparison


@make_command("compare", "Say which links differ between two tables, or between the groups of one.", __doc__)
@click.argument("files", metavar="A B | TABLE", nargs=-1, type=click.Path())
@click.option("--by", metavar="NAME", help="Compare the groups that this column of a table makes.")
@file_option("--table", multiple=True, help="Compare two models as structures, over the rows of this table.")
@click.option("--fdr", type=float, help="The share of the differences said that may be false (0.05).")
@click.option("--effect", type=float, help="A difference of Cramer's V worth seeing (0.2).")
@reading_options
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(
    files: tuple[str, ...], by: str | None, table: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Say which links differ between two tables or models, or between the groups of one table.

    A table may be a pipe, or - for standard input; a model is named by its file.
    """
    if by is None and len(files) == 2 and all(map(_is_model, files)):
        table = with_database(table, options)
    else:
        files = with_database(files, options, required=True)
    if by is not None and table:
        raise click.UsageError("--table is for two models; with --by the table comes first")
    with busy("Comparing ..."):
        compared = _by_groups(files, by, options) if by is not None else _of_two(files, table, options)
    if isinstance(compared, tuple):
        _say_structures(files, *compared, as_json)
    else:
        _say_changes(compared, as_json)


def _by_groups(files: tuple[str, ...], by: str, options: dict[str, Any]) -> "Comparison":
    from unless.knowledge.comparing import compare_groups

    is_model = len(files) == 1 and _is_model(files[0])
    if is_model:
        _refuse_unused(options, is_read=False, is_table=False)
    data = _rows_of_one(files[0]) if is_model else read_files(files, options)
    return compare_groups(data, by, **_testing(options))


def _of_two(
    files: tuple[str, ...], table: tuple[str, ...], options: dict[str, Any]
) -> "Comparison | tuple[StructureComparison, int]":
    from unless.knowledge.comparing import compare_tables

    if len(files) != 2:
        raise click.UsageError("give two tables or models, or a table and --by")
    are_models = [_is_model(path) for path in files]
    if table and not all(are_models):
        raise click.UsageError("--table is for two models; two tables are compared by their own rows")
    _refuse_unused(options, is_read=bool(table), is_table=not all(are_models))
    if all(are_models):
        records = [open_record(path) for path in files]
        tables = [record.structure.observed for record in records]
        if table or any(one is None for one in tables):
            return _as_structures(files, records, table, options)
    else:
        tables = [
            _rows_of_one(path) if is_model else None for path, is_model in zip(files, are_models, strict=True)
        ]
        for side, path in enumerate(files):
            if tables[side] is None:
                # Numbers of both are cut at the same values.
                other = tables[1 - side]
                tables[side] = read_files([path], options, beside=None if other is None else other.domain)
    return compare_tables(*tables, names=_names(*files), **_testing(options))


def _names(first: str, second: str) -> tuple[str, str]:
    """Call two files what tells them apart in a sentence, the shorter the better."""
    for names in ((PurePath(first).name, PurePath(second).name), (first, second)):
        if names[0] != names[1]:
            return names
    return "first", "second"


def _is_model(path: str) -> bool:
    """Tell by the ending whether a file holds a model."""
    from unless.formats.text import ending_of

    return ending_of(path) in FORMATS


def _rows_of_one(path: str) -> "Dataset":
    data = open_record(path).structure.observed
    if data is None:
        raise SettingError(f"{path!r} keeps no rows to compare; name the table it was learned from instead.")
    return data


def _testing(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("fdr", "effect") if options[name] is not None}


def _refuse_unused(options: dict[str, Any], is_read: bool, is_table: bool) -> None:
    """Refuse options that read a table or test a difference, where there is none."""
    context = click.get_current_context()
    for one in context.command.params:
        given = context.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE
        if one.name not in options or not given:
            continue
        if one.name in ("fdr", "effect"):
            if is_read:
                raise click.UsageError(f"{one.opts[0]} is for tests; with --table nothing is tested")
        elif not (is_table or (is_read and one.name in MATCHING)):
            raise click.UsageError(f"{one.opts[0]} is for tables; models were read and learned before")


def _as_structures(
    files: tuple[str, ...], records: "list[Record]", table: tuple[str, ...], options: dict[str, Any]
) -> "tuple[StructureComparison, int]":
    """Compare two models without a test; return also the number of rows, 0 where contexts are counted."""
    from unless.evaluation.comparison import compare_structures

    first, second = (record.structure for record in records)
    if not table:
        return compare_structures(first, second, by="features", show_progress=False), 0
    data = read_like(first.domain, table, {name: options[name] for name in MATCHING}, files[0])
    compared = compare_structures(
        first, second, by="features", contexts=data, weighted=True, show_progress=False
    )
    return compared, data.n_rows


def _say_changes(compared: "Comparison", as_json: bool) -> None:
    if as_json:
        say_json({"format": "unless-changes", "version": 2, "is_test": True, **compared.to_dict()})
        return
    for name, n_rows in compared.sides:
        say(visible(f"{name}: {count(n_rows, 'row')}"))
    say("")
    for line in compared.lines():
        say(visible(line))


def _say_structures(
    files: tuple[str, ...], compared: "StructureComparison", n_rows: int, as_json: bool
) -> None:
    first, second = files
    if as_json:
        document = {"is_test": False, "first": first, "second": second, "structures": compared.to_dict()}
        say_json({"format": "unless-changes", "version": 2, **document})
        return
    say(visible(f"First:  {first}"))
    say(visible(f"Second: {second}"))
    what = "rows" if n_rows else "contexts"
    say(f"\nCompared as structures, in {compared.n_contexts:,} {what}. This is no test of a difference.\n")
    for (a, b), counts in compared.pairs.items():
        if counts.fp or counts.fn:
            parts = [
                f"only in the {side} in {number:,}"
                for side, number in (("first", counts.fn), ("second", counts.fp))
                if number
            ]
            say(visible(f"{a} - {b}: linked {', '.join(parts)} of {compared.n_contexts:,} {what}"))
    n_same = sum(not (one.fp or one.fn) for one in compared.pairs.values())
    say(f"{count(n_same, 'pair')} drawn alike.")
