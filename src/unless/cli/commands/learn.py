"""`unless learn`: from a table on disk to a saved model."""

from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from unless.cli.options import QUOTING, Written, jobs, names, pair, stacked
from unless.cli.reading import reading_options

if TYPE_CHECKING:
    from unless.cli.links import View
    from unless.learners.estimator import Estimator

# The pairs a summary shows; `unless show` shows all.
MOST_PAIRS = 10

# Named as the settings of the learners; what is not given is left to theirs.
learning_options = stacked(
    click.option("--learner", default="CSGS", show_default=True, help="How to learn."),
    click.option(
        "--alpha", type=float, help="Variables are dependent where the test's p is below this (0.05)."
    ),
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
    click.option(
        "--require",
        "required_edges",
        type=Written("A:B", pair),
        multiple=True,
        help="Link this pair everywhere.",
    ),
    click.option(
        "--forbid",
        "forbidden_edges",
        type=Written("A:B", pair),
        multiple=True,
        help="Link this pair nowhere.",
    ),
    click.option("--jobs", "n_jobs", type=Written("N", jobs), help="Threads to use, -1 for all (1)."),
)
LEARNING = (
    "alpha", "test", "order", "blankets", "rule", "max_blanket", "undecided", "effect", "required_edges",
    "forbidden_edges", "n_jobs", "max_memory",
)  # fmt: skip


def _order(text: str) -> str | list[str]:
    # A list of one is no order, so these two words can be no names.
    return text if text in ("association", "columns") else names(text)


@click.command(
    "learn",
    short_help="Learn from a table of categories and keep what was learned in a file.",
    epilog=f"""
    {QUOTING}

    What was done to the table is told on stderr, the summary on stdout. The output is replaced only when all
    went well.

    \b
    Examples:
      unless learn table.csv -o model.unless
      unless learn survey.csv -o model.unless --missing level --bins age=4
      unless learn counts.csv -o model.unless --count-column Freq
      unless learn 2023.parquet 2024.parquet -o model.unless --forbid sex:month
    """,
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output",
    metavar="MODEL",
    required=True,
    type=click.Path(),
    help="Where to save, such as model.unless.",
)
@reading_options
@learning_options
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors, and the JSON if asked for.")
@click.option("--json", "as_json", is_flag=True, help="Print the links as `unless show --json` does.")
def command(files: tuple[str, ...], output: str, quiet: bool, as_json: bool, **options: Any) -> None:
    """Learn from a table of categories, in one FILE or several with the same columns, and save a model.

    Reads CSV, TSV, Parquet, JSON lines, ARFF and Excel, also compressed.
    """
    from unless.cli.display import busy, note, say_json
    from unless.cli.links import look
    from unless.cli.reading import found_files, read_files
    from unless.cli.telling import document
    from unless.cli.wording import visible
    from unless.cli.writing import check_output
    from unless.learners.files import save

    check_output(output, found_files(files))
    learner = _learner(options, quiet)
    with busy(f"Reading {', '.join(files)} ...", quiet=quiet):
        data = read_files(files, options)
    if not quiet:
        for line in data.notes:
            note(visible(line))
    learner.fit(data)
    view = look(learner.structure_)
    save(learner, output)
    if as_json:
        results = {
            "n_tests": learner.n_tests_,
            "n_distinct_tests": learner.n_distinct_tests_,
            "notes": list(learner.notes_),
        }
        told = document(view, data.domain, type(learner).__name__, learner.answer_settings(), results)
        say_json({"model": output, **told})
    elif not quiet:
        _tell(learner, view)
        note(f"\nSaved. See all of it with: unless show {visible(quote(output))}")


def _learner(options: dict[str, Any], quiet: bool) -> "Estimator":
    from unless.learners.catalogue import learner_named

    given = {name: options[name] for name in LEARNING if options[name] not in (None, ())}
    if quiet:
        given["show_progress"] = False
    return learner_named(options["learner"])().set_params(**given)


def _tell(learner: "Estimator", view: "View") -> None:
    from unless.cli.display import say
    from unless.cli.telling import say_links
    from unless.cli.wording import count, of

    say(
        f"{type(learner).__name__} learned from {count(view.whole.n_rows, 'row')} of "
        f"{count(learner.n_features_in_, 'column')}: {count(view.whole.n_contexts, 'context')}, "
        f"{count(view.n_graphs, 'different graph')}."
    )
    say(f"It asked {count(learner.n_tests_, 'test')}, {learner.n_distinct_tests_:,} of them distinct.")
    varying = [link for link in view.links if link.whole.n_contexts < view.whole.n_contexts]
    say(
        f"{count(view.n_pairs, 'pair')}: {len(view.links) - len(varying):,} linked everywhere, "
        f"{len(varying):,} in some contexts, {view.n_pairs - len(view.links):,} nowhere."
    )
    if varying:
        shown = sorted(varying, key=lambda link: _interest(link, view))[:MOST_PAIRS]
        say(f"\nLinks that depend on the context ({of(len(shown), len(varying), 'pair')}):\n")
        say_links(shown, view)


def _interest(link: Any, view: "View") -> tuple[bool, int, Any]:
    # What one variable decides can be said in words; of the others, those near one half vary the most.
    return link.gate is None, abs(2 * link.whole.n_rows - view.whole.n_rows), link.pair
