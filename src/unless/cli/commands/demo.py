"""`unless demo`: what the library finds in two tables everybody can check."""

from typing import Any

import click

TABLES = ("ucb_admissions", "titanic")


@click.command(
    "demo",
    short_help="Learn from two small tables and say what depends on what, and when.",
    epilog="""
    \b
    Examples:
      unless demo
      unless demo --data titanic
      unless demo --json
    """,
)
@click.option("--data", type=click.Choice(TABLES), help="Only this table.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print a list, one document a table, as `unless show --json` does.",
)
def command(data: str | None, as_json: bool) -> None:
    """Learn from Berkeley admissions and from the Titanic, and say what depends on what, and when."""
    from unless.cli.display import busy, say_json

    # The first run of an installation compiles the kernels, which takes some seconds.
    with busy("Learning ..."):
        learned = [_learn(name) for name in ([data] if data else TABLES)]
    if as_json:
        say_json([document for _, _, document in learned])
        return
    _tell(learned)


def _learn(name: str) -> tuple[Any, Any, dict[str, Any]]:
    from unless.cli.links import look
    from unless.cli.telling import document
    from unless.datasets import catalogue
    from unless.learners.csgs import CSGS

    described = catalogue()[name]
    learner = CSGS(show_progress=False).fit(described.load())
    view = look(learner.structure_)
    results = {"n_tests": learner.n_tests_, "n_distinct_tests": learner.n_distinct_tests_}
    told = document(view, learner.structure_.domain, "CSGS", learner.answer_settings(), results)
    return described, view, {"dataset": name, **told}


def _tell(learned: list[tuple[Any, Any, dict[str, Any]]]) -> None:
    from unless.cli.display import say
    from unless.cli.telling import by_share, say_links, sentence
    from unless.cli.wording import count

    say("Two columns are linked where one tells something about the other that no other column tells.")
    say("A context is a combination of values that occurs in the table; each has links of its own.")
    for described, view, _ in learned:
        say(f"\n{described.name}: {described.about}")
        size = f"{count(view.here.n_rows, 'row')}, {count(view.here.n_contexts, 'context')}"
        say(f"{described.source}; {size}\n")
        links = by_share(view.links)
        say_links(links, view)
        say("\nIn words:")
        for link in links:
            say(f"  {sentence(link, view)}.")
