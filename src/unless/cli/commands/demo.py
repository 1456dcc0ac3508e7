r"""`unless demo`: what the library finds in two tables everybody can check.

\b
Examples:
  unless demo
  unless demo --data titanic
  unless demo --json
  unless demo --report report.html
"""

from typing import Any

import click

from unless.cli.files import check_output
from unless.cli.options import file_option, make_command
from unless.cli.output import LEGEND, busy, document, note, say, say_json, say_statements
from unless.data.showing import count

TABLES = ("ucb_admissions", "titanic")


@make_command("demo", "Learn from two small tables and say what is linked, and when.", __doc__)
@click.option("--data", type=click.Choice(TABLES), help="Only this table.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print a list, one document a table, as `unless show --json` does, with its name as dataset.",
)
@file_option(
    "--report", help="Write a page about the table, or the first of the two, to look at in a browser."
)
def command(data: str | None, as_json: bool, report: str | None) -> None:
    """Learn from Berkeley admissions and from the Titanic, and say what is linked, and when."""
    if report:
        check_output(report)

    # The first run of an installation compiles the kernels, which takes some seconds.
    with busy("Learning ..."):
        learned = [_learn(name) for name in ([data] if data else TABLES)]
    if as_json:
        say_json([document for _, _, document in learned])
    else:
        _say_learned(learned)
    if report:
        described, learner, _ = learned[0]
        learner.report(report, title=described.about)
        note(f"Wrote {report}; open it in a browser.")


def _learn(name: str) -> tuple[Any, Any, dict[str, Any]]:
    from unless.datasets.tables import catalogue
    from unless.learners.registry import learn

    described = catalogue()[name]
    learner = learn(described.load(), show_progress=False)
    results = {"n_tests": learner.n_tests_, "n_distinct_tests": learner.n_distinct_tests_}
    about = type(learner).__name__, learner.answer_settings(), results
    data = learner.data_
    made = document(learner.statements_, data.domain, data.n_rows, {}, about)
    return described, learner, {"dataset": name, **made}


def _say_learned(learned: list[tuple[Any, Any, dict[str, Any]]]) -> None:
    for described, learner, _ in learned:
        say(f"{described.name}: {described.about}")
        say(f"{described.source}; {count(learner.data_.n_rows, 'row')}\n")
        say_statements(learner.statements_, "  ")
        say()
    say("Two columns are linked where one tells of the other what no third column tells.")
    say(LEGEND)
