r"""`unless learn`: from a table on disk to a saved model.

{QUOTING}

MODEL keeps the statements with their evidence, and the distinct rows of the table with their counts: what
is asked of it later needs no table. A new file with rows is readable by its owner alone; --no-rows
leaves rows out.

Any table will do: numbers are cut into groups, identifiers and free text left out, rows with missing
values left out or missing made a level. What is done with each column is told on stderr, unless all are
plain categories; `unless check` shows it alone, and options change it. The summary goes to stdout. The
output is replaced only when all went well.

\b
Examples:
  unless learn table.csv -o model.unless
  unless learn survey.csv -o model.unless --as zip=category --exclude name
  unless learn survey.csv -o model.unless --missing level --bins age=4
  unless learn counts.csv -o model.unless --count-column Freq
  unless learn 2023.parquet 2024.parquet -o model.unless --forbid sex:month
  unless learn table.csv -o model.unless --target income
  unless learn table.csv -o model.unless --no-rows
  unless learn book.xlsx -o model.unless --sheet answers
  unless learn --database shop.db --sql "select * from orders" -o model.unless
  zcat table.csv.gz | unless learn - -o model.unless
  unless learn table.csv -o model.unless --learner dtsl --set kappa=0.01
"""

import json
from collections.abc import Iterable
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from unless.cli.files import check_output, found_files, read_files, read_like, with_database
from unless.cli.options import (
    Written,
    assignment,
    file_option,
    gathered,
    jobs_option,
    make_command,
    names,
    pair,
    quiet_option,
    reading_options,
    repeated,
    stacked,
    target_option,
)
from unless.cli.output import (
    LEGEND,
    busy,
    document,
    either,
    note,
    say,
    say_json,
    say_plan,
    say_statements,
    summary,
)
from unless.data.showing import count, visible
from unless.learners import DEFAULT_LEARNER

if TYPE_CHECKING:
    from unless.data.dataset import Dataset
    from unless.learners.base import Estimator

# The sentences a summary shows; `unless show` shows all.
MOST_SENTENCES = 10

WITHOUT_ROWS = (
    "It keeps no rows: `unless ask`, `unless report` and `unless compare` need the table named as well, and "
    "`unless show --context` does not count the rows of a context."
)

# Named as the settings of the learners; what is not given is left to theirs.
learning_options = stacked(
    click.option(
        "--learner",
        default=DEFAULT_LEARNER,
        show_default=True,
        help="How to learn: GGS, CSGS, CSPC, CSIBMAP, CSGSSL, CSMPL, GSMN, IBMAPHC, GSSL, DTSL or ChowLiu.",
    ),
    click.option("--alpha", type=float, help="The level of a single test (0.05)."),
    click.option("--fdr", type=float, help="The share of findings that may be false; 1 lists all (0.05)."),
    click.option(
        "--test", type=click.Choice(["pearson", "likelihood_ratio", "bayesian"]), help="The test (pearson)."
    ),
    click.option(
        "--order",
        type=Written("order", lambda text: _order(text)),
        metavar="association|columns|A,B,...",
        help="In which order variables are visited (association).",
    ),
    click.option(
        "--blankets",
        type=click.Choice(["shared", "independent"]),
        help="Share edges between variables, as the paper does, or learn each variable alone (shared).",
    ),
    click.option(
        "--rule", type=click.Choice(["or", "and"]), help="How independent blankets are joined (or)."
    ),
    click.option("--max-blanket", type=int, metavar="N", help="Stop growing a blanket at N variables."),
    click.option(
        "--undecided",
        type=click.Choice(["independent", "keep"]),
        help="How a test without enough data is read (independent).",
    ),
    click.option("--effect", type=float, help="The effect, Cohen's w, a test should be able to see (0.3)."),
    repeated("--require", "A:B", pair, "Link this pair everywhere.", "required_edges"),
    repeated("--forbid", "A:B", pair, "Link this pair nowhere.", "forbidden_edges"),
    repeated(
        "--set",
        "NAME=VALUE",
        lambda text: _setting(text),
        "Any other setting of the learner, such as kappa=0.01 or prior='Gaussian(1) + Laplace(5)'.",
        "more",
    ),
    file_option(
        "--validation",
        help="Judge settings by this table, where the learner tries several (a share of the rows).",
    ),
    jobs_option,
    file_option(
        "--work-dir",
        metavar="FOLDER",
        help="Keep finished parts of the work in this folder, so that it can be stopped and taken up.",
    ),
    click.option("--resume", is_flag=True, help="Take up the work that was begun in --work-dir."),
)
LEARNING = (
    "alpha", "fdr", "test", "order", "blankets", "rule", "max_blanket", "undecided", "effect",
    "required_edges", "forbidden_edges", "n_jobs", "max_memory", "work_dir", "resume",
)  # fmt: skip


def _order(text: str) -> str | list[str]:
    # An order lists two names or more, so these two words cannot be names.
    return text if text in ("association", "columns") else names(text)


def _setting(text: str) -> tuple[str, Any]:
    name, value = assignment(text)
    return name, _priors(value) if name == "prior" and value not in ("validate", "null") else _value(value)


def _priors(text: str) -> Any:
    from unless.errors import SettingError
    from unless.weights.priors import parse_prior

    try:
        priors = [parse_prior(part) for part in text.split(",")]
    except SettingError as error:
        raise ValueError(str(error)) from None
    return priors if len(priors) > 1 else priors[0]


def _value(text: str) -> Any:
    """Read a number, true, false, null or a list of them as JSON does; all else is a word."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@make_command("learn", "Learn from a table and keep what was learned in a file.", __doc__)
@click.argument("files", metavar="FILE...", nargs=-1, type=click.Path())
@file_option("-o", "--output", metavar="MODEL", required=True, help="Where to save, such as model.unless.")
@reading_options
@learning_options
@target_option
@click.option(
    "--no-rows", is_flag=True, help="Leave the rows of the table out of MODEL; its statements are kept."
)
@quiet_option
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the statements as `unless show --json` does, MODEL as model, and the plan.",
)
def command(
    files: tuple[str, ...],
    output: str,
    target: str | None,
    no_rows: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Learn from a table of categories, in one FILE or several with the same columns, and save a model.

    Reads CSV, TSV, Parquet, JSON lines, ARFF, Excel, SQLite, DuckDB, Stata and SPSS, also compressed; FILE
    may be a pipe, or - for standard input.
    """
    from unless.learners.files import save

    files = with_database(files, options, required=True)
    check_output(output, found_files(files))
    learner = learner_of(options, quiet)
    if no_rows:
        _check_rows(learner)
    with busy(f"Reading {', '.join(files)} ...", quiet=quiet):
        data = read_files(files, options, quiet=quiet)
        beside = _judge(options, data, quiet)
    if not quiet:
        say_plan(data)
    if target is not None:
        # Before the work begins, a name that is not there is refused.
        data.domain.index(target)
    learner.fit(data, **beside)
    learner.target_ = target
    save(learner, output, rows=not no_rows)
    if as_json:
        plan = None if data.plan is None else data.plan.to_dict()
        say_json({"model": output, "plan": plan, **_document(learner)})
    elif not quiet:
        _say_learned(learner)
        note(f"\nSaved. See more of it with: unless show {visible(quote(output))}")
        if no_rows:
            note(WITHOUT_ROWS)


def learner_of(options: dict[str, Any], quiet: bool) -> "Estimator":
    """Make the learner that the options ask for."""
    from unless.learners.registry import learner_named

    given = {name: options[name] for name in LEARNING if options[name] not in (None, ())}
    more = gathered("--set", options["more"])
    if twice := sorted(given.keys() & more.keys()):
        raise click.UsageError(f"{twice[0]} is given by its own option and by --set")
    given.update(more)
    if quiet:
        given["show_progress"] = False
    learner = learner_named(options["learner"])
    _refuse_unknown(learner, given.keys() - more.keys())
    return learner().set_params(**given)


def _refuse_unknown(learner: "type[Estimator]", given: Iterable[str]) -> None:
    """Refuse an option that the learner has no use for, and name the learners that have."""
    from unless.learners.registry import LEARNERS

    options = {one.name: one.opts[0] for one in click.get_current_context().command.params}
    for name in sorted(set(given) - learner.default_settings().keys()):
        able = either([known for known, other in LEARNERS.items() if name in other.default_settings()])
        raise click.UsageError(f"{options[name]} is no setting of {learner.__name__}; add --learner {able}")


def _check_rows(learner: "Estimator") -> None:
    """Refuse, before the work begins, to leave out rows that are part of what is learned."""
    from unless.structures.canonical import CanonicalModel

    if learner.kept_structure is CanonicalModel:
        raise click.UsageError(
            f"{type(learner).__name__} files a graph under each row of the table, which --no-rows would "
            "leave out; add --learner GGS"
        )


def _judge(options: dict[str, Any], data: "Dataset", quiet: bool) -> dict[str, Any]:
    """Read the table to judge settings by, with the levels of the table to learn from."""
    from unless.learners.feature_search import FeatureLearner
    from unless.learners.registry import learner_named

    if options["validation"] is None:
        return {}
    if not issubclass(learner_named(options["learner"]), FeatureLearner):
        raise click.UsageError(f"--validation is of no use to {options['learner']}, which tries one setting")
    return {
        "validation": read_like(data.domain, (options["validation"],), {**options, "sql": None}, quiet=quiet)
    }


def _document(learner: "Estimator") -> dict[str, Any]:
    from unless.learners.base import make_record

    record = make_record(learner, rows=False, statements=False)
    about = record.learner, record.settings, record.results
    return document(learner.statements_, record.domain, learner.data_.n_rows, {}, about)


def _say_learned(learner: "Estimator") -> None:
    data, structure = learner.data_, learner.structure_
    columns = count(data.n_variables, "column")
    table = f"{count(data.n_rows, 'row')} of {columns}"
    if data.detail is not None and data.detail.missing:
        table = f"{data.n_rows:,} complete rows of {int(data.detail.counts.sum()):,}, {columns}"
    size = ""
    if structure.kind == "contexts":
        size = f": {count(len(structure), 'context')}, {count(structure.n_graphs, 'different graph')}"
    say(f"{type(learner).__name__} learned from {table}{size}.")
    if learner.n_tests_:
        verb, noun = learner._counts
        say(f"It {verb} {count(learner.n_tests_, noun)}, {learner._distinct_tests()} of them distinct.")
    if learner.statements_:
        say(f"{summary(learner.statements_)}\n")
    say_statements(learner.statements_, at_most=MOST_SENTENCES)
    if learner.statements_:
        say(f"\n{LEGEND}")
