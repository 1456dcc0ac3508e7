"""`python -m studies.paper`: the experiments of the CSGS paper, run again."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unless.cli.options import Written, jobs, names
from unless.cli.program import Answering

if TYPE_CHECKING:
    from studies.paper.claims import Finding


def _numbers(text: str) -> list[int]:
    try:
        return [int(word) for word in names(text)]
    except ValueError:
        raise ValueError(f"{text!r} is no list of whole numbers; write 20,100,1000.") from None


@click.command(
    cls=Answering,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""
    Every run (a learner on a table) is a file in the folder; a study that was stopped goes on when the same
    command is given again. The folder then holds figures (SVG), all numbers (CSV) and the table of claims.
    Figures need matplotlib: pip install 'unless[figures]'.

    \b
    Examples:
      python -m studies.paper --out paper --quick
      python -m studies.paper --out paper
      python -m studies.paper --out some --sizes 100,1000 --reps 3 --learners CSGS,CSPC

    \b
    The JSON document, keys sorted:
      format, version   "unless-paper", 2
      n_cells           how many (n, N) every claim was looked at in
      claims            one record each: key, words, compared, variant,
                        cspc, n_for, n_against, p, settled_for,
                        settled_against, verdict
    """,
)
@click.option(
    "--out", "folder", required=True, metavar="DIR", type=click.Path(file_okay=False), help="Where to."
)
@click.option("--quick", is_flag=True, help="Fewer sizes and networks: minutes.")
@click.option("--sizes", type=Written("N[,N...]", _numbers), help="Numbers of rows, 10 to 100000.")
@click.option("--variables", type=Written("N[,N...]", _numbers), help="Numbers of variables (6,7,8,9).")
@click.option(
    "--reps", type=click.IntRange(min=1), metavar="N", help="Networks for each number of variables (10)."
)
@click.option(
    "--learners", type=Written("NAME[,NAME...]", names), help="Only these; references count as such."
)
@click.option(
    "--jobs", "n_jobs", type=Written("N", jobs), default="-1", help="Processes side by side (-1: all cores)."
)
@click.option("--json", "as_json", is_flag=True, help="Print the claims as JSON.")
def command(folder: str, n_jobs: int, as_json: bool, **wishes: Any) -> None:
    """Repeat the experiments of the paper behind CSGS, and say which of its claims hold."""
    from studies.paper.claims import headline_findings
    from studies.paper.paper import run_paper
    from studies.paper.plan import make_plan
    from unless.cli.output import note, say_json

    plan = make_plan(
        quick=wishes["quick"],
        sizes=wishes["sizes"],
        n_networks=wishes["reps"],
        methods=wishes["learners"],
        n_variables=wishes["variables"],
    )
    try:
        results = run_paper(plan, Path(folder), n_jobs)
    except KeyboardInterrupt:
        note("What is finished is kept: the same command goes on with it.")
        raise
    n_cells = len(plan.main.n_variables) * len(plan.main.sizes)
    found = [one for some in headline_findings(results).values() for one in some]
    if as_json:
        claims = [finding.to_dict() for finding in found]
        say_json({"format": "unless-paper", "version": 2, "n_cells": n_cells, "claims": claims})
    else:
        _tell(found, n_cells)
        note(f"Figures, tables and claims are in {folder}.")


def _tell(found: list["Finding"], n_cells: int) -> None:
    from studies.paper.methods import METHODS
    from unless.cli.output import say, say_table

    if not found:
        say("No claim of the paper speaks of these learners alone.")
        return
    rows = [
        (
            one.claim.compares,
            METHODS[one.cspc].style.label if one.claim.is_of_cspc else "",
            f"{one.signs.n_for}",
            f"{one.signs.n_against}",
            f"{one.signs.p:.2g}",
            one.verdict,
        )
        for one in found
    ]
    head = ("Compared", "CSPC", "For", "Against", "Sign test p", "Verdict")
    say(f"Claims of the paper, of {n_cells} cells each:\n")
    say_table(head, rows, numbers=(2, 3, 4))


if __name__ == "__main__":
    command()
