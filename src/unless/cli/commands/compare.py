"""`unless compare`: what two models, or the groups of one table, say differently."""

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from unless.cli.commands.learn import learning_options
from unless.cli.reading import reading_options

if TYPE_CHECKING:
    from unless.data.dataset import Dataset
    from unless.knowledge.comparing import Changes
    from unless.knowledge.statements import Statements


@click.command(
    "compare",
    short_help="Say what two models, or the groups of a table, say differently.",
    epilog="""
    A dependence is gained where only the second finds it, lost where only the first does, and changed where
    both do but in other contexts. By groups, each group of a table is learned from alone, by the options of
    `unless learn`, and the first group is compared with each of the others.

    \b
    Examples:
      unless compare 2023.unless 2024.unless
      unless compare ggs.unless csgs.unless --table survey.csv
      unless compare survey.csv --by Region
      unless compare survey.csv --by Region --json

    \b
    The JSON document, keys sorted:
      format, version   "unless-changes", 1
      comparisons       for each: first, second (what is compared), gained,
                        lost, changed (each a list of pair, first, second:
                        statements as `unless show --json` has them, or
                        null), n_same (of the pairs both speak of) and
                        notes (of first and second: why there are no
                        statements, or what was left out)
    """,
)
@click.argument("files", metavar="A B | TABLE", nargs=-1, required=True, type=click.Path())
@click.option("--by", metavar="NAME", help="Compare the groups that this column of a table makes.")
@click.option(
    "--table",
    metavar="FILE",
    multiple=True,
    type=click.Path(),
    help="Weigh both models by this table; needed where one keeps no rows.",
)
@reading_options
@learning_options
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(
    files: tuple[str, ...], by: str | None, table: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Say which dependences two models, or the groups of one table, do not share."""
    from unless.cli.display import busy, say_json

    if by is not None and table:
        raise click.UsageError("--table is for two models; with --by the table comes first")
    with busy("Comparing ..."):
        compared = _models(files, table, options) if by is None else _groups(files, by, options)
    if as_json:
        listed = [{"first": first, "second": second, **one.to_dict()} for first, second, one in compared]
        say_json({"format": "unless-changes", "version": 1, "comparisons": listed})
        return
    _tell(compared)


def _models(
    files: tuple[str, ...], table: tuple[str, ...], options: dict[str, Any]
) -> "list[tuple[str, str, Changes]]":
    from unless.knowledge.comparing import compare_statements

    if len(files) != 2:
        raise click.UsageError("give two models, or a table and --by")
    _refuse_unused(options, is_read=bool(table))
    first, second = (_statements(path, table, options) for path in files)
    return [(files[0], files[1], compare_statements(first, second))]


def _refuse_unused(options: dict[str, Any], is_read: bool) -> None:
    """Refuse options that read or learn, where nothing is read or learned."""
    from unless.cli.reading import MATCHING

    context = click.get_current_context()
    for one in context.command.params:
        given = context.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE
        if one.name in options and given and not (is_read and one.name in MATCHING):
            raise click.UsageError(f"{one.opts[0]} is for tables; models were read and learned before")


def _statements(path: str, table: tuple[str, ...], options: dict[str, Any]) -> "Statements":
    from unless.cli.models import open_record
    from unless.cli.reading import MATCHING, table_of
    from unless.errors import SettingError
    from unless.knowledge.explaining import explain_as_learned

    record = open_record(path)
    reading = {name: options[name] for name in MATCHING}
    data = table_of(record.structure, table, reading, path)
    if data is None:
        raise SettingError(
            f"{path!r} keeps no rows to weigh; name the table it was learned from with --table."
        )
    return explain_as_learned(record.structure, data, record.settings)


def _groups(files: tuple[str, ...], by: str, options: dict[str, Any]) -> "list[tuple[str, str, Changes]]":
    from unless.cli.reading import read_files
    from unless.errors import SettingError
    from unless.knowledge.comparing import compare_statements

    data = read_files(files, options)
    place, labels = data.domain.index(by), data.domain[by].levels
    seen = [code for code in range(len(labels)) if (data.rows[:, place] == code).any()]
    if len(seen) < 2:
        raise SettingError(f"Column {by!r} makes one group; name a column with two or more.")
    names = [f"{by} = {labels[code]}" for code in seen]
    groups = [_learned(_part(data, by, data.rows[:, place] == code), options) for code in seen]
    return [
        (names[0], name, compare_statements(groups[0], group))
        for name, group in zip(names[1:], groups[1:], strict=True)
    ]


def _part(data: "Dataset", by: str, inside: Any) -> "Dataset":
    from unless.data.dataset import Dataset

    part = Dataset(data.domain, data.rows[inside].copy(), data.counts[inside].copy())
    return part.select([name for name in data.names if name != by])


def _learned(data: "Dataset", options: dict[str, Any]) -> "Statements":
    from unless.cli.commands.learn import learner_of

    return learner_of(options, quiet=True).fit(data).statements_


def _tell(compared: "list[tuple[str, str, Changes]]") -> None:
    from unless.cli.display import say
    from unless.cli.wording import visible

    for place, (first, second, changes) in enumerate(compared):
        say(f"{'' if not place else chr(10)}First:  {visible(first)}\nSecond: {visible(second)}\n")
        for line in changes.lines():
            say(visible(line))
